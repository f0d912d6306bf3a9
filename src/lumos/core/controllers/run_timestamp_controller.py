"""Ingestion of the one partition that a run is about."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lumos.core.controllers.ingestion_controller import IngestionController, chosen_sources
from lumos.core.errors import UsageError
from lumos.core.events import running
from lumos.core.progress import SILENT, Progress
from lumos.core.runtime.unit_of_work import UnitOfWork
from lumos.core.store.state_folder import FILE_INDEX
from lumos.feature.ingestion.handlers.factory import HandlerFactory
from lumos.feature.ingestion.partition_check import (
    PartitionCheck,
    PartitionedSource,
    partition_folders,
    path_pattern,
)
from lumos.feature.ingestion.scan.file_functions import READERS
from lumos.feature.ingestion.scan.sources import ScanSources, files_of
from lumos.spark.failures import spark_failures
from lumos.spark.file_index import FileIndex, Origin
from lumos.spark.warm_session import WarmSession

if TYPE_CHECKING:
    from lumos.core.controllers.results import IngestResult
    from lumos.core.settings import SourceEntry


class RunTimestampController:
    """What `lumos ingest --run-timestamp` does."""

    def __init__(self, work: UnitOfWork) -> None:
        self._work = work

    @running("ingest of a partition")
    def ingest(
        self,
        timestamp: datetime | str,
        *,
        names: Sequence[str] = (),
        dry_run: bool = False,
        full: bool = False,
        progress: Progress = SILENT,
    ) -> IngestResult:
        """Bring the catalog up to date with the partition of a time, and check that partition.

        Only sources with a `partitioning_format` are looked at. One that was never ingested is
        listed as a whole, once. A partition that is missing is a failed item of the report; one
        that is late, or has another schema than its dataset, is a warning.

        Args:
            timestamp: the time that the run is about; without a time zone it is taken as UTC.
            names: the sources; all that have a format if none is given.
            dry_run: report what would change and write nothing.
            full: open every file of the partition, also unchanged ones.
            progress: receives the progress.

        Raises:
            UsageError: no source has a `partitioning_format`, or one that is named has none.
            ConfigurationError: a format is invalid, or no dataset has partitions of that form.
        """
        time = parsed_timestamp(timestamp)
        with (
            WarmSession(self._work.spark_session) as session,
            UnitOfWork(self._work.project, open_session=session) as work,
        ):
            chosen = chosen_sources(work.settings.sources, names)
            sources = self._sources(chosen, are_named=bool(names))
            entries = sorted({source.entry for source in sources})
            with session(progress.note) as spark, spark_failures():
                index = FileIndex(self._work.state_dir / FILE_INDEX)
                scanned = ScanSources({source.name: source.scanned for source in sources})
                before = index.read(lambda: spark, Origin(READERS, scanned.places))
                under = None if before is None else partition_folders(before, sources, time)
            check = PartitionCheck(sources, time, before=before, now=self._work.clock())
            if under is None:
                check.told.append("not every source was known, so all was listed once")
            result = IngestionController(work).ingest(
                names=entries,
                dry_run=dry_run,
                full=full,
                under=under,
                inspect=check,
                progress=progress,
            )
        return result.model_copy(update={"partitions": tuple(check.found)})

    def _sources(
        self, entries: Sequence[SourceEntry], *, are_named: bool
    ) -> list[PartitionedSource]:
        skip = str(self._work.state_dir.absolute())
        sources = []
        for entry in entries:
            handler = HandlerFactory.get_handler(entry)
            naming = handler.partition_naming()
            if naming is None:
                if are_named:
                    raise _no_format(f"source '{entry.name}' has no partitioning_format")
                continue
            path_pattern(naming.format)
            sources += [
                PartitionedSource(
                    entry.name, files.storage.name, files, naming.format, naming.delay
                )
                for files in files_of(entry, skip=skip)
            ]
        if not sources:
            raise _no_format("no source has a partitioning_format")
        return sources


def parsed_timestamp(timestamp: datetime | str) -> datetime:
    """Return the time that a text says; without a time zone it is taken as UTC.

    Raises:
        UsageError: it says none.
    """
    if isinstance(timestamp, str):
        try:
            timestamp = datetime.fromisoformat(timestamp)
        except ValueError:
            raise UsageError(
                "the run timestamp is no ISO 8601 time",
                hint="write it as 2024-01-31 or 2024-01-31T00:00:00Z",
            ) from None
    return timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=UTC)


def _no_format(what: str) -> UsageError:
    return UsageError(
        f"--run-timestamp: {what}",
        hint="set it on the source, for example to year=%Y/month=%m/day=%d",
    )
