"""The base of handlers whose sources are files in a storage."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from pydantic import Field
from typing_extensions import override

from lumos.core.errors import SourceError
from lumos.feature.ingestion.handlers.base_ingestion_handler import (
    BaseIngestionHandler,
    SourceSettings,
)
from lumos.feature.ingestion.records import PreviousScan, ScanUnit
from lumos.feature.ingestion.stored_files import DATA_PATTERNS, StoredFiles

if TYPE_CHECKING:
    from lumos.core.storage.port import StorageSource
    from lumos.feature.ingestion.records import ScanRecord


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
        return self.file_patterns or DATA_PATTERNS


S = TypeVar("S", bound=FileSettings)


@dataclass(frozen=True, order=True)
class StorageUnit(ScanUnit):
    """A part of a storage."""

    storage: int
    """Which of the handler's storages, by its place."""
    unit: str
    """The part, in the words of the storage."""


class StorageHandler(BaseIngestionHandler[S]):
    """Reads files of a storage.

    A subclass says where they lie. `plan` and `scan` take each file as one dataset; the pipeline
    takes the storages themselves and puts files together.
    """

    @override
    @abstractmethod
    def storages(self) -> tuple[StorageSource, ...]:
        """Return where the files lie: a storage for each bucket, each under a name of its own."""

    def storage(self) -> StorageSource:
        """Return where the files lie.

        Raises:
            SourceError: they lie in more than one place.
        """
        first, *others = self.storages()
        if others:
            raise SourceError(f"source '{self.name}' has more than one bucket")
        return first

    @override
    def plan(self, previous: PreviousScan) -> Iterator[ScanUnit]:
        for place, source in enumerate(self.storages()):
            storage = source.open()
            for unit in storage.units(1):
                yield StorageUnit(storage.shown(b""), place, unit)

    @override
    def scan(self, unit: ScanUnit) -> Iterator[ScanRecord]:
        assert isinstance(unit, StorageUnit)  # noqa: S101 - as planned
        source = self.storages()[unit.storage]
        yield from StoredFiles(source.open(), platform=source.platform).records(unit.unit)
