"""The bases of source handlers: what every source says of itself, and how records are scanned."""

from __future__ import annotations

import traceback
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeAlias, TypeVar, final

from pydantic import Field
from typing_extensions import override

from lumos.core.errors import LumosError, SourceError
from lumos.core.models import ContributorKind
from lumos.core.settings.confidential import ConfidentialSettings
from lumos.feature.ingestion.records import PreviousScan, ScanRecord, ScanUnit

if TYPE_CHECKING:
    from datetime import timedelta

    from lumos.core.storage.local import LocalSource
    from lumos.core.storage.port import StorageSource
    from lumos.core.storage.s3 import S3Source


class SourceSettings(ConfidentialSettings):
    """What every source has; a handler's own settings are a subclass."""

    type: str = Field(min_length=1, description="The kind of source, such as local or s3.")
    name: str = Field(min_length=1, description="How runs and reports call this source.")
    instance: str | None = Field(
        default=None,
        min_length=1,
        description="The first part of the path of its URNs, where two servers have equal names.",
    )


class RecordSourceSettings(SourceSettings):
    """What every source has that is scanned by records, and not as files of a storage."""

    concurrency: int = Field(
        default=4, ge=1, le=64, description="How many units are scanned at the same time, at most."
    )
    timeout_seconds: float = Field(
        default=300.0, gt=0, description="How long one attempt to scan a unit may take."
    )
    retries: int = Field(
        default=2,
        ge=0,
        le=10,
        description="How often a unit is scanned again that failed in a way that may pass.",
    )


class Claim(NamedTuple):
    """A URN prefix and the server that a source finds it on."""

    urn_prefix: str
    server: str
    """Where that is, without credentials: `db1.example.org:5432`."""


class EventQueue(NamedTuple):
    """A queue of notifications on changes in buckets."""

    url: str
    storages: tuple[S3Source, ...]
    """The buckets; the first gives the credentials for the queue."""


class PartitionNaming(NamedTuple):
    """How the partitions of a source are called, for runs that are about one of them."""

    format: str
    """Such as `year=%Y/month=%m/day=%d`."""
    delay: timedelta | None
    """How long after its end a partition may come; None where none is late."""


class _End:
    """Stands for the end of a scan."""


_END = _End()
S = TypeVar("S", bound=SourceSettings)


class SourceHandler(ABC, Generic[S]):
    """What every source handler says of its source.

    A subclass says how its source is read, by storages of files (`StorageHandler`) or by records
    (`BaseIngestionHandler`), and which of the other abilities it has. The caller asks for the
    ability and not for the class. It knows no catalog and writes nothing.
    """

    source_type: ClassVar[str]
    settings_model: ClassVar[type[SourceSettings]]
    contributes_as: ClassVar[ContributorKind] = ContributorKind.SOURCE
    """SOURCE for what is found where the data is, DECLARED for files that describe data."""

    def __init__(self, settings: S) -> None:
        self._settings = settings

    @property
    def name(self) -> str:
        """How runs and reports call this source."""
        return self._settings.name

    @property
    def settings(self) -> S:
        return self._settings

    def storages(self) -> tuple[StorageSource, ...]:
        """Return where the files of the source lie; the file pipeline lists and reads them."""
        return ()

    def scanner(self) -> BaseIngestionHandler[Any] | None:
        """Return what plans and scans records; None for a source of files."""
        return None

    def claims(self) -> Iterable[Claim]:
        """Return the URN prefixes that this source finds datasets under, and on which server.

        Two sources that claim one prefix on different servers are refused.
        """
        return ()

    def event_folders(self) -> tuple[LocalSource, ...]:
        """Return the storages whose changes the operating system reports."""
        return ()

    def event_queues(self) -> tuple[EventQueue, ...]:
        """Return the queues that report changes of the storages."""
        return ()

    def partition_naming(self) -> PartitionNaming | None:
        """Return how partitions are called, where one can be ingested by its time."""
        return None


class BaseIngestionHandler(SourceHandler[S]):
    """A source that yields canonical records: a database, a dbt project, a query log.

    A subclass sets `source_type` and `settings_model` and writes `plan` and `scan`. It holds one
    dataset at a time. It is picklable, as are its units: the Spark pipeline plans on the driver
    and scans on executors, each unit with a copy of the handler, so that `scan` needs no locks.
    One with credentials travels sealed and refuses any other pickle.

    An error raised by `scan` ends its unit, not the run: the unit is reported as failed, what was
    found before counts, and nothing of the source is taken as removed. An error raised by `plan`
    means that the source as a whole is not there.
    """

    @override
    @final
    def scanner(self) -> BaseIngestionHandler[S]:
        return self

    @abstractmethod
    def plan(self, previous: PreviousScan) -> Iterator[ScanUnit]:
        """Yield what to scan, in a stable order, without reading any data.

        Args:
            previous: what the last complete scan left; empty in the first run and with `--full`.

        Raises:
            SourceError: the source as a whole is not there or cannot be asked.
        """

    @abstractmethod
    def scan(self, unit: ScanUnit) -> Iterator[ScanRecord]:
        """Yield what one unit holds, in a stable order, one record at a time.

        Raises:
            LumosError: the rest of the unit cannot be scanned.
        """

    @final
    def planned_units(self, previous: PreviousScan) -> tuple[ScanUnit, ...]:
        """Return what `plan` yields.

        Raises:
            LumosError: the source as a whole could not be planned; no other error gets out.
        """
        with self._handler_errors("planning the scan"):
            return tuple(self.plan(previous))

    @final
    def records(self, unit: ScanUnit) -> Iterator[ScanRecord]:
        """Yield what `scan` yields, one record at a time.

        Raises:
            LumosError: the rest of the unit cannot be scanned; no other error gets out.
        """
        doing = f"scanning {unit.label}"
        with self._handler_errors(doing):
            records = iter(self.scan(unit))
        while True:
            with self._handler_errors(doing):
                record = next(records, _END)
                if not isinstance(record, ScanRecord | _End):
                    raise TypeError
            if isinstance(record, _End):
                return
            yield record

    @contextmanager
    def _handler_errors(self, doing: str) -> Iterator[None]:
        """Turn whatever a handler raises into an error that names source and unit.

        The foreign error's own words may hold data or secrets: they stay in the chained cause.
        """
        try:
            yield
        except LumosError:
            raise
        except Exception as error:
            what = f"{type(error).__name__} {_place(error)}".rstrip()
            raise SourceError(
                f"source '{self.name}' failed while {doing}: {what}",
                hint="this is a fault of the source handler; run with --debug for the trace",
            ) from error


RecordHandler: TypeAlias = BaseIngestionHandler[Any]
"""A handler of any source that yields records."""


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f"at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
