"""Ingestion of the one partition that a run is about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lumos.core.errors import UsageError
from lumos.core.events import running
from lumos.core.progress import SILENT, Progress
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
    from pathlib import Path

    from lumos.core.controllers.ingestion_controller import IngestionController
    from lumos.core.controllers.results import IngestResult
    from lumos.core.run_report import Clock
    from lumos.core.settings import SourceEntry
    from lumos.spark.lazy_session import OpenSession


class RunTimestampController:
    """What `lumos ingest --run-timestamp` does."""

    def __init__(
        self,
        *,
        ingestion_on: Callable[[OpenSession], IngestionController],
        open_session: OpenSession,
        state_dir: Callable[[], Path],
        clock: Clock,
    ) -> None:
        self._ingestion_on = ingestion_on
        self._open_session = open_session
        self._state_dir = state_dir
        self._clock = clock

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
        with WarmSession(self._open_session) as session:
            ingestion = self._ingestion_on(session)
            sources = self._sources(ingestion.chosen(names), are_named=bool(names))
            entries = sorted({source.entry for source in sources})
            with session(progress.note) as spark, spark_failures():
                index = FileIndex(self._state_dir() / FILE_INDEX)
                scanned = ScanSources({source.name: source.scanned for source in sources})
                before = index.read(lambda: spark, Origin(READERS, scanned.places))
                under = None if before is None else partition_folders(before, sources, time)
            check = PartitionCheck(sources, time, before=before, now=self._clock())
            if under is None:
                check.told.append("not every source was known, so all was listed once")
            result = ingestion.ingest(
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
        skip = str(self._state_dir().absolute())
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
