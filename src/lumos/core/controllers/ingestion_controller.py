"""Ingestion: scan the sources on Spark, publish what changed, store a snapshot."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import orjson

from lumos.core.controllers.results import ErrorDetail, IngestResult, NewVersion
from lumos.core.errors import LumosError, UsageError
from lumos.core.events import running
from lumos.core.models import Contributor, LumosDataset
from lumos.core.own_process import only_new_garbage
from lumos.core.platform.factory import EMBEDDED
from lumos.core.private_files import make_private_folder
from lumos.core.progress import SILENT, Progress
from lumos.core.run_report import RunRecorder
from lumos.core.store.renaming import rename_datasets
from lumos.core.store.snapshots.snapshot_files import storing
from lumos.core.store.state_folder import FILE_INDEX, WORK_PREFIX
from lumos.feature.discovery.written_config import sources_document
from lumos.feature.ingestion.found_datasets import Find, FoundDatasets
from lumos.feature.ingestion.local_names import renamed_datasets
from lumos.feature.ingestion.records import PreviousScan
from lumos.feature.ingestion.scan.file_functions import READERS
from lumos.feature.ingestion.scan.files import FileScan
from lumos.feature.ingestion.scan.records import RecordScan
from lumos.feature.ingestion.scan.sources import (
    Folders,
    ScanSources,
    refuse_equal_roots,
    scan_sources,
)
from lumos.feature.snapshot.scratch import scratch_folder
from lumos.feature.versioning.reported_change import ReportedChange
from lumos.spark.failures import spark_failures
from lumos.spark.file_index import FileIndex, Origin
from lumos.spark.lazy_session import LazySession, OpenSession

if TYPE_CHECKING:
    from collections import Counter

    from pydantic import JsonValue

    from lumos.core.controllers.runs import BeginRun
    from lumos.core.controllers.snapshot_controller import SnapshotController
    from lumos.core.models import DatasetVersion
    from lumos.core.run_report import Clock
    from lumos.core.settings import SourceEntry
    from lumos.core.store.catalog.catalog_tables import CatalogTables
    from lumos.core.store.database import StateDatabase
    from lumos.feature.ingestion.found_datasets import Judge
    from lumos.feature.ingestion.state_writer import StateWriter
    from lumos.feature.sync.results import SyncResult
    from lumos.spark.file_index import IndexTables, Session
    from lumos.spark.stages.rows import BuiltDataset

_PARTS_OF_A_SOURCE = 64
"""Into so many parts a large source is divided, to be listed side by side."""


class Inspect(Protocol):
    """Looks at the files and datasets of a run before anything of it is published."""

    def __call__(self, now: IndexTables, recorder: RunRecorder) -> None: ...


class _Run(NamedTuple):
    """What a run is to do."""

    sources: ScanSources
    recorder: RunRecorder
    full: bool
    under: Folders | None
    progress: Progress
    inspect: Inspect | None = None
    snapshot_always: bool = True
    whole_sources: Callable[[], ScanSources] | None = None
    """Plans the same sources without `under`."""
    settings: str | None = None
    """The settings file, where all of its sources are looked at."""

    @property
    def origin(self) -> Origin:
        return Origin(READERS, self.sources.places)

    def look_at(self, files: FileScan) -> None:
        """Call the inspector of the files, if any, before anything is published."""
        if self.inspect is not None and files.pipeline is not None:
            self.inspect(files.pipeline.tables, self.recorder)


@dataclass
class _Scanned:
    """What a run saw."""

    files: FileScan
    records: RecordScan

    @property
    def finds(self) -> list[Find]:
        return [*self.files.finds(), *self.records.finds()]

    @property
    def may_need_spark(self) -> bool:
        return self.files.may_need_spark or self.records.may_need_spark

    @cached_property
    def formats(self) -> Counter[str]:
        return self.files.formats() + self.records.formats()

    def found(self) -> Iterator[BuiltDataset]:
        yield from self.files.found()
        yield from self.records.found()


class IngestionController:
    """What `lumos ingest` and `lumos discover` do."""

    def __init__(
        self,
        *,
        entries: Callable[[], Sequence[SourceEntry]],
        settings_file: Callable[[], str | None],
        open_session: OpenSession,
        writer: Callable[[], StateWriter],
        look_at_state: Callable[[], CatalogTables | None],
        snapshots: Callable[[], SnapshotController],
        state_dir: Callable[[], Path],
        begin_run: BeginRun,
        sync: Callable[[Progress], SyncResult] | None,
        version_of: Callable[[str], DatasetVersion | None],
        judge: Judge,
        clock: Clock,
    ) -> None:
        """Take the parts.

        Args:
            entries: the sources of the settings.
            settings_file: the file that names them, as it is known again; None without one.
            open_session: starts Spark.
            writer: writes to the state.
            look_at_state: the state, to be read; None where there is none.
            snapshots: stores what the state holds.
            state_dir: the state folder.
            begin_run: keeps other writers away, and stores what the run did.
            sync: brings the catalog of the settings up to date; None where the state is it.
            version_of: the current version of a dataset.
            judge: says what changed.
            clock: the time.
        """
        self._sync = sync
        self._version_of = version_of
        self._judge = judge
        self._entries = entries
        self._settings_file = settings_file
        self._open_session = open_session
        self._writer = writer
        self._look_at_state = look_at_state
        self._snapshots = snapshots
        self._state_dir = state_dir
        self._begin_run = begin_run
        self._clock = clock

    @running("ingest")
    def ingest(
        self,
        *,
        names: Sequence[str] = (),
        dry_run: bool = False,
        full: bool = False,
        under: Folders | None = None,
        inspect: Inspect | None = None,
        snapshot_always: bool = True,
        progress: Progress = SILENT,
    ) -> IngestResult:
        """Bring the catalog up to date with the sources of the settings, or some of them.

        A dry run reports what would change and writes nothing. With `under`, only these folders are
        looked into, and all else stays as it was found last. Without `snapshot_always`, a snapshot
        is stored only where a contract changed.

        Raises:
            UsageError: there is no source, or none of that name.
            SourceError: no source at all can be scanned.
        """
        entries = self.chosen(names)
        recorder = RunRecorder("ingest", started_at=self._clock())
        sources = self._sources(entries, recorder, under=under)
        run = _Run(
            sources,
            recorder,
            full=full,
            under=under,
            progress=progress,
            inspect=inspect,
            snapshot_always=snapshot_always,
            whole_sources=lambda: self._sources(entries, recorder),
            settings=None if names or under is not None else self._settings_file(),
        )
        if dry_run:
            return self._look(run, self._look_at_state())
        with self._begin_run("ingest") as kept, only_new_garbage():
            result = self._ingested(run)
            kept.keep(result.as_run_report())
        return self._synced(result, progress)

    def _synced(self, result: IngestResult, progress: Progress) -> IngestResult:
        """Bring the catalog of the settings up to date; what was ingested is kept if that fails."""
        if self._sync is None:
            return result
        try:
            return result.model_copy(update={"sync": self._sync(progress)})
        except LumosError as error:
            detail = ErrorDetail.model_validate(error.as_json())
            return result.model_copy(update={"sync_error": detail})

    @running("discover")
    def discover(
        self, entries: Sequence[SourceEntry], *, progress: Progress = SILENT
    ) -> IngestResult:
        """Find the datasets of sources that no settings name; nothing is written."""
        recorder = RunRecorder("discover", started_at=self._clock())
        sources = self._sources(entries, recorder)
        return self._look(_Run(sources, recorder, full=True, under=None, progress=progress), None)

    def write_config(
        self,
        output: Path,
        address: str,
        *,
        source: Mapping[str, JsonValue],
        result: IngestResult,
    ) -> None:
        """Write settings that find again what a discovery found."""
        text = sources_document(
            address,
            source,
            datasets=result.found,
            unreadable=[item.item for item in result.failed],
            at=self._clock(),
        )
        with storing(output):
            output.write_text(text, encoding="utf-8")

    def _sources(
        self, entries: Sequence[SourceEntry], recorder: RunRecorder, *, under: Folders | None = None
    ) -> ScanSources:
        skip = str(self._state_dir().absolute())
        return scan_sources(
            entries,
            recorder,
            skip=skip,
            parallel=_PARTS_OF_A_SOURCE,
            under=under,
            order=[entry.name for entry in self._entries()],
        )

    def chosen(self, names: Sequence[str]) -> list[SourceEntry]:
        """Return the sources of these names, or all.

        Raises:
            UsageError: there is no source, or none of that name.
            ConfigurationError: two local sources have the same root.
        """
        entries = list(self._entries())
        known = ", ".join(entry.name for entry in entries)
        if not entries:
            raise UsageError(
                "there is no source to ingest",
                hint="name some under `sources` in lumos.yaml, or try: lumos discover PATH",
            )
        for name in names:
            if name not in {entry.name for entry in entries}:
                raise UsageError(f"there is no source {name}", hint=f"known: {known}")
        refuse_equal_roots(entries)
        return [entry for entry in entries if not names or entry.name in names]

    def _look(self, run: _Run, state: CatalogTables | None) -> IngestResult:
        with (
            LazySession(self._open_session, run.progress.note) as session,
            scratch_folder() as work,
            spark_failures(),
        ):
            index = FileIndex(self._state_dir() / FILE_INDEX)
            known = index.read(session, run.origin)
            run = _with_unknown_sources_whole(run, known)
            scanned = self._scanned(session, run, work=work, known=known)
            scanned.files.remember_what_is_forgotten(index, known)
            run.look_at(scanned.files)
            found = self._found(run, state)
            found.plan(scanned.finds)
            _record_outcomes(found, scanned, recorder=run.recorder)
            datasets = tuple(
                LumosDataset.from_json(orjson.loads(built.document)) for built in scanned.found()
            )
        had_state = state is not None
        return self._result(run, scanned, found=found, had_state=had_state, datasets=datasets)

    def _ingested(self, run: _Run) -> IngestResult:
        folder = self._state_dir() / FILE_INDEX
        with storing(self._state_dir()):
            make_private_folder(folder)
            for leftover in self._state_dir().glob(f"{WORK_PREFIX}*"):  # of a run that was killed
                shutil.rmtree(leftover, ignore_errors=True)
            temporary = tempfile.TemporaryDirectory(prefix=WORK_PREFIX, dir=self._state_dir())
        started = self._clock()
        with (
            temporary as work,
            LazySession(self._open_session, run.progress.note, meanwhile=self._writer) as session,
            spark_failures(),
        ):
            index = FileIndex(folder)
            known = index.read(session, run.origin)
            run = _with_unknown_sources_whole(run, known)
            scanned = self._scanned(session, run, work=Path(work), known=known)
            scanned.files.remember_what_is_forgotten(index, known)
            run.look_at(scanned.files)
            writer = self._writer()
            _rename(writer.database, run)
            found = self._found(run, writer.tables)
            finds = scanned.finds
            if scanned.may_need_spark:
                finds = found.compare(finds, Path(work))
            session.end_meanwhile()
            run.progress.stage("publishing", unit="datasets")
            earlier = self._snapshots().newest()
            if earlier is not None and (warning := self._snapshots().clock_warning()):
                run.recorder.warning(warning)
            with writer.database.transaction():
                scanned.records.publish_others(found, writer)
                found.publish(finds, writer)
                scanned.records.publish_observations(found, writer)
                scanned.records.keep_marks(writer)
                if run.settings is not None:
                    now = [each.contributor for each in run.sources.speakers.values()]
                    writer.tables.configured_sources.replace(run.settings, now)
            _record_outcomes(found, scanned, recorder=run.recorder)
            scanned.files.keep(index, origin=run.origin, run=f"{started:%Y%m%dT%H%M%S%f}")
        snapshot = None
        if run.snapshot_always or found.changes:
            run.progress.stage("storing the snapshot", unit="datasets")
            snapshot = self._snapshots().create(EMBEDDED, reuse_identical=True).id
        return self._result(
            run, scanned, found=found, had_state=earlier is not None, snapshot=snapshot
        )

    def _scanned(
        self, session: Session, run: _Run, *, work: Path, known: IndexTables | None
    ) -> _Scanned:
        files = FileScan.of(
            run.sources,
            session,
            known=known,
            work=work,
            full=run.full,
            under=run.under,
            recorder=run.recorder,
            progress=run.progress,
        )
        records = RecordScan.of(
            run.sources.handlers,
            session,
            work=work,
            previous=self._previous(run),
            recorder=run.recorder,
            progress=run.progress,
        )
        if not run.sources.by_name:
            records.require_any()
        return _Scanned(files, records)

    def _previous(self, run: _Run) -> dict[str, PreviousScan]:
        """Return what the last scans left for the next ones to plan by."""
        state = None if run.full else self._look_at_state()
        if state is None:
            return {}
        names = [handler.name for handler in run.sources.handlers]
        return {name: PreviousScan(state.scan_marks.of(name)) for name in names}

    def _found(self, run: _Run, state: CatalogTables | None) -> FoundDatasets:
        speakers = run.sources.speakers
        taken_out: list[Contributor] = []
        if state is not None and run.settings is not None:
            now = (speaker.contributor for speaker in speakers.values())
            taken_out = state.configured_sources.taken_out(run.settings, now)
        return FoundDatasets(speakers, self._judge, self._clock(), state, taken_out=taken_out)

    def _result(
        self,
        run: _Run,
        scanned: _Scanned,
        *,
        found: FoundDatasets,
        had_state: bool,
        snapshot: str | None = None,
        datasets: tuple[LumosDataset, ...] = (),
    ) -> IngestResult:
        """Say what a run did; on the first run everything is new, so nothing has changed."""
        changes = sorted(
            found.changes if had_state else (),
            key=lambda change: (change.dataset, change.path, change.rule),
        )
        versions = {change.dataset: self._version_of(change.dataset) for change in changes}
        return IngestResult.of(
            run.recorder.finish(at=self._clock()),
            files=scanned.files.totals,
            datasets=found.counts(scanned.formats.total()),
            formats=dict(scanned.formats.most_common()),
            snapshot=snapshot,
            changes=tuple(map(ReportedChange.of, changes)),
            versions=tuple(
                NewVersion.of(urn, version)
                for urn, version in sorted(versions.items())
                if version is not None and snapshot is not None
            ),
            found=datasets,
        )


def _rename(database: StateDatabase, run: _Run) -> None:
    """Give the datasets of local sources the URNs that they have now, with all their history."""
    renamed = renamed_datasets(database, run.sources.by_name.values())
    if renamed:
        with database.transaction():
            for renaming in renamed:
                rename_datasets(database, renaming)
    if count := sum(len(renaming.names) for renaming in renamed):
        run.recorder.warning(
            f"{count:,} datasets of local sources have new URNs, lumos://local/ROOT/…; their "
            "history went along"
        )


def _with_unknown_sources_whole(run: _Run, known: IndexTables | None) -> _Run:
    """Return the run; over everything where a source is not known of which it sees just a part.

    What is known of the other folders would be nothing, and they would look removed.
    """
    if run.under is None or run.whole_sources is None:
        return run
    if known is not None and all(known.knows(source) for source in run.sources.by_name):
        return run
    return run._replace(sources=run.whole_sources(), under=None)


def _record_outcomes(found: FoundDatasets, scanned: _Scanned, *, recorder: RunRecorder) -> None:
    """Put into the report which datasets failed, changed or were removed."""
    recorder.warnings(scanned.files.evidence.warnings)
    recorder.warnings(found.warnings)
    for urn, error in found.failures:
        recorder.failed(urn, error, scope_seen=True)
    recorder.done_many(scanned.formats.total() - len(found.failures))
