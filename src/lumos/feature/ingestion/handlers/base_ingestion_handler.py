"""The base of every source handler, and the one loop that drives them all."""

from __future__ import annotations

import traceback
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Generic, NamedTuple, TypeVar, final

from pydantic import Field

from lumos.core.errors import LumosError, SourceError
from lumos.core.models import ContributorKind, LumosDataset
from lumos.core.run_report import FOUND_TWICE
from lumos.core.settings.confidential import ConfidentialSettings
from lumos.feature.ingestion.records import (
    PreviousScan,
    ScanRecord,
    ScanUnit,
    ScanWarning,
    SkippedItem,
    UnlistedPart,
    UnreadableItem,
    printable,
)

if TYPE_CHECKING:
    from lumos.core.models import Urn
    from lumos.core.run_report import RunRecorder
    from lumos.core.storage.port import StorageSource


class SourceSettings(ConfidentialSettings):
    """What every source has; a handler's own settings are a subclass."""

    type: str = Field(min_length=1, description="The kind of source, such as local or s3.")
    name: str = Field(min_length=1, description="How runs and reports call this source.")


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
    instance: str | None = Field(
        default=None,
        min_length=1,
        description="The first part of the path of its URNs, where two servers have equal names.",
    )


class Claim(NamedTuple):
    """A URN prefix and the server that a source finds it on."""

    urn_prefix: str
    server: str
    """Where that is, without credentials: `db1.example.org:5432`."""


class _End:
    """Stands for the end of a scan."""


_END = _End()
S = TypeVar("S", bound=SourceSettings)


class BaseIngestionHandler(ABC, Generic[S]):
    """A source handler: says what to scan and yields canonical records.

    A subclass sets `source_type` and `settings_model` and writes `plan` and `scan`. It knows no
    catalog, writes nothing, and holds one dataset at a time. It is picklable, as are its units:
    the Spark pipeline plans on the driver and scans on executors, each unit with a copy of the
    handler, so that `scan` needs no locks. One with credentials travels sealed and refuses any
    other pickle.

    What `scan` yields decides how a run goes on:

    - `LumosDataset`: found and read.
    - `UnreadableItem`: it exists but could not be read. It is reported as failed, the scan goes
      on, and the run stays complete: what exists is not taken as removed.
    - `UnlistedPart`: a folder or schema could not be listed. It is reported as failed, the scan
      goes on, and the run is incomplete: nothing at all may be taken as removed.
    - `SkippedItem`, `ScanWarning`: reported, with no further effect.

    An error raised by `scan` ends its unit, not the run: the unit is reported as failed and the
    run is incomplete. An error raised by `plan`, or a missing source, is a `SourceError`.
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
        """Return where the files of the source lie; nothing where it is scanned by records.

        Files are listed and put together by the pipeline: `plan` and `scan` are then not asked.
        """
        return ()

    def claims(self) -> Iterable[Claim]:
        """Return the URN prefixes that this source finds datasets under, and on which server.

        Two sources that claim one prefix on different servers are refused.
        """
        return ()

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
    def ingest(self, recorder: RunRecorder) -> Iterator[LumosDataset]:
        """Yield every dataset of the source; all else goes to the recorder, with its reason.

        A dataset is recorded as done when the caller comes back for the next one.

        Raises:
            SourceError: the source as a whole could not be planned; no unit was scanned.
        """
        seen: set[Urn] = set()
        for unit in self.planned_units(PreviousScan()):
            try:
                for record in self.records(unit):
                    if not isinstance(record, LumosDataset):
                        self._report(record, recorder)
                    elif record.urn in seen:
                        recorder.skipped(str(record.urn), reason=FOUND_TWICE)
                    else:
                        seen.add(record.urn)
                        yield record
                        recorder.done(str(record.urn))
            except LumosError as error:  # the unit's: a caller's own error never comes back here
                recorder.failed(f"{self.name}: {unit.label}", error)

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

    def _report(self, record: ScanRecord, recorder: RunRecorder) -> None:
        match record:
            case UnreadableItem(item=item, error=error):
                recorder.failed(printable(item), error, scope_seen=True)
            case UnlistedPart(item=item, error=error):
                recorder.failed(printable(item), error)
            case SkippedItem(item=item, reason=reason):
                recorder.skipped(printable(item), reason=reason)
            case ScanWarning(item=item, text=text):
                recorder.warning(f"{printable(item)}: {text}")

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


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f"at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
