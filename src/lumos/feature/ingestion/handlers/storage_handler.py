"""The base of handlers whose sources are files in a storage."""

from __future__ import annotations

from abc import abstractmethod
from datetime import timedelta
from typing import TYPE_CHECKING, Final, TypeVar

from pydantic import Field
from typing_extensions import override

from lumos.core.formats.file_names import PATTERNS
from lumos.feature.ingestion.handlers.base_ingestion_handler import (
    PartitionNaming,
    SourceHandler,
    SourceSettings,
)

if TYPE_CHECKING:
    from lumos.core.storage.port import StorageSource

_UNITS: Final = {"m": "minutes", "h": "hours", "d": "days"}


class FileSettings(SourceSettings):
    """Which files of a storage to read."""

    file_patterns: tuple[str, ...] = Field(
        default=(),
        description="Names to read, such as `*.parquet`; one with a slash fits the whole path. "
        "Where none is given, every known format.",
    )
    exclude: tuple[str, ...] = Field(
        default=(), description="Names or paths, of files or folders, to leave out."
    )
    partitioning_format: str | None = Field(
        default=None,
        min_length=1,
        description="Folders of a partition, such as `year=%Y/month=%m/day=%d`, "
        "for `--run-timestamp`.",
    )
    partition_delay: str | None = Field(
        default=None,
        pattern=r"^[0-9]{1,6}[mhd]$",
        description="How long after its end a partition may come, such as `90m`, `6h` or `2d`; "
        "later is late. Without, none is.",
    )
    value_ranges: bool = Field(
        default=False,
        description="Whether the smallest and largest value of columns without text are kept; "
        "else no value of the data is.",
    )
    path_specs: tuple[str, ...] = Field(
        default=(),
        description="How paths are read where the rules are wrong, such as "
        "`crm/{table}/dt={yyyy-mm-dd}/*`; the first that fits decides.",
    )

    @property
    def patterns(self) -> tuple[str, ...]:
        """The names to read, those of every known format where none is given."""
        return self.file_patterns or PATTERNS


S = TypeVar("S", bound=FileSettings)


class StorageHandler(SourceHandler[S]):
    """A source of files in a storage; a subclass says where they lie."""

    @override
    @abstractmethod
    def storages(self) -> tuple[StorageSource, ...]:
        """Return where the files lie: a storage for each bucket, each under a different name."""

    @override
    def partition_naming(self) -> PartitionNaming | None:
        settings = self.settings
        if settings.partitioning_format is None:
            return None
        return PartitionNaming(settings.partitioning_format, _delay(settings.partition_delay))


def _delay(text: str | None) -> timedelta | None:
    return None if text is None else timedelta(**{_UNITS[text[-1]]: int(text[:-1])})
