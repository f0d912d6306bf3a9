"""Ingestion: scan the sources on Spark, publish what changed, store a snapshot."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import orjson

from lumos.core.controllers.parts import following_sync, state_writer
from lumos.core.controllers.results import ErrorDetail, IngestResult, NewVersion
from lumos.core.controllers.snapshot_controller import SnapshotController
from lumos.core.errors import LumosError, UsageError
from lumos.core.events import running
from lumos.core.models import Contributor, LumosDataset
from lumos.core.own_process import only_new_garbage
from lumos.core.platform.factory import EMBEDDED
from lumos.core.private_files import make_private_folder
from lumos.core.progress import SILENT, Progress
from lumos.core.run_report import RunRecorder
from lumos.core.store.history import HistoryRepository
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
from lumos.feature.ingestion.source_addresses import source_mapping_of
from lumos.feature.snapshot.scratch import scratch_folder
from lumos.feature.versioning.planning import earlier_states
from lumos.feature.versioning.reported_change import ReportedChange
from lumos.spark.failures import spark_failures
from lumos.spark.file_index import FileIndex, Origin
from lumos.spark.lazy_session import LazySession

if TYPE_CHECKING:
    from collections import Counter

    from pydantic import JsonValue

    from lumos.core.models import Change, DatasetVersion, Urn
    from lumos.core.runtime.unit_of_work import UnitOfWork
    from lumos.core.settings import SourceEntry
    from lumos.core.store.catalog.catalog_tables import CatalogTables
    from lumos.core.store.database import StateDatabase
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


def chosen_sources(entries: Sequence[SourceEntry], names: Sequence[str]) -> list[SourceEntry]:
    """Return the sources of these names, or all.

    Raises:
        UsageError: there is no source, or none of that name.
        ConfigurationError: two local sources have the same root.
    """
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


class IngestionController:
    """What `lumos ingest` and `lumos discover` do."""

    def __init__(self, work: UnitOfWork) -> None:
        self._work = work
        self._clock = work.clock

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
        entries = chosen_sources(self._work.settings.sources, names)
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
            settings=None if names or under is not None else self._settings_file,
        )
        if dry_run:
            return self._look(run, self._work.tables_if_any())
        with self._work.begin_run("ingest") as kept, only_new_garbage():
            result = self._ingested(run)
            kept.keep(result.as_run_report())
        return self._synced(result, progress)

    def _synced(self, result: IngestResult, progress: Progress) -> IngestResult:
        """Bring the catalog of the settings up to date; what was ingested is kept if that fails."""
        sync = following_sync(self._work)
        if sync is None:
            return result
        try:
            return result.model_copy(update={"sync": sync(progress)})
        except LumosError as error:
            detail = ErrorDetail.model_validate(error.as_json())
            return result.model_copy(update={"sync_error": detail})

    @running("discover")
    def discover(
        self,
        address: str,
        *,
        instance: str | None = None,
        config: Path | None = None,
        progress: Progress = SILENT,
    ) -> IngestResult:
        """Find the datasets below a folder or an address; the catalog is not written.

        Args:
            address: a path, or an address such as `s3://bucket/prefix`.
            instance: the first part of the URNs, as the setting `instance`.
            config: a file to write settings to that find the same again.
            progress: receives how far it is.

        Raises:
            UsageError: the file for the settings exists already.
        """
        if config is not None and config.exists():
            raise UsageError(f"{config} exists already", hint="name another file with --output")
        recorder = RunRecorder("discover", started_at=self._clock())
        source = source_of(address, instance=instance)
        sources = self._sources(self._entries_of(source), recorder)
        run = _Run(sources, recorder, full=True, under=None, progress=progress)
        result = self._look(run, None)
        if config is not None:
            self._write_config(config, address, source=source, result=result)
        return result

    def _entries_of(self, source: Mapping[str, JsonValue]) -> tuple[SourceEntry, ...]:
        """Return the source that these settings stand for, as they are written."""
        from lumos.core.runtime.settings import settings_from_mapping

        written = {key: _escaped(value) for key, value in source.items()}
        return settings_from_mapping({"sources": [written]}, self._work.environment).sources

    def _write_config(
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
        skip = str(self._work.state_dir.absolute())
        return scan_sources(
            entries,
            recorder,
            skip=skip,
            parallel=_PARTS_OF_A_SOURCE,
            under=under,
            order=[entry.name for entry in self._work.settings.sources],
        )

    def _look(self, run: _Run, state: CatalogTables | None) -> IngestResult:
        with (
            LazySession(self._work.spark_session, run.progress.note) as session,
            scratch_folder() as work,
            spark_failures(),
        ):
            index = FileIndex(self._work.state_dir / FILE_INDEX)
            known = index.read(session, run.origin)
            run = _with_unknown_sources_whole(run, known)
            groups = _kept_groups(run, state)
            scanned = self._scanned(session, run, work=work, known=known, groups=groups)
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
        folder = self._work.state_dir / FILE_INDEX
        with storing(self._work.state_dir):
            make_private_folder(folder)
            for leftover in self._work.state_dir.glob(
                f"{WORK_PREFIX}*"
            ):  # of a run that was killed
                shutil.rmtree(leftover, ignore_errors=True)
            temporary = tempfile.TemporaryDirectory(prefix=WORK_PREFIX, dir=self._work.state_dir)
        started = self._clock()
        with (
            temporary as work,
            LazySession(
                self._work.spark_session,
                run.progress.note,
                meanwhile=partial(state_writer, self._work),
            ) as session,
            spark_failures(),
        ):
            index = FileIndex(folder)
            known = index.read(session, run.origin)
            run = _with_unknown_sources_whole(run, known)
            groups = _kept_groups(run, self._work.tables_if_any())
            scanned = self._scanned(session, run, work=Path(work), known=known, groups=groups)
            scanned.files.remember_what_is_forgotten(index, known)
            run.look_at(scanned.files)
            writer = state_writer(self._work)
            _rename(writer.database, run)
            found = self._found(run, writer.tables)
            finds = scanned.finds
            if scanned.may_need_spark:
                finds = found.compare(finds, Path(work))
            session.end_meanwhile()
            run.progress.stage("publishing", unit="datasets")
            snapshots = SnapshotController(self._work)
            earlier = snapshots.newest()
            if earlier is not None and (warning := snapshots.clock_warning()):
                run.recorder.warning(warning)
            with writer.database.transaction():
                scanned.records.publish_others(found, writer)
                found.publish(finds, writer)
                scanned.records.publish_observations(found, writer)
                scanned.records.keep_marks(writer)
                kept = scanned.files.groups_to_keep(groups, is_partial=run.under is not None)
                for source, marks in kept.items():
                    writer.tables.scan_marks.replace(source, marks)
                if run.settings is not None:
                    now = [each.contributor for each in run.sources.speakers.values()]
                    writer.tables.configured_sources.replace(run.settings, now)
            _record_outcomes(found, scanned, recorder=run.recorder)
            scanned.files.keep(index, origin=run.origin, run=f"{started:%Y%m%dT%H%M%S%f}")
        snapshot = None
        if run.snapshot_always or found.changes:
            run.progress.stage("storing the snapshot", unit="datasets")
            snapshot = snapshots.create(EMBEDDED, reuse_identical=True).id
        return self._result(
            run, scanned, found=found, had_state=earlier is not None, snapshot=snapshot
        )

    def _scanned(
        self,
        session: Session,
        run: _Run,
        *,
        work: Path,
        known: IndexTables | None,
        groups: Mapping[str, Mapping[str, str]],
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
            kept_groups=groups,
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
        state = None if run.full else self._work.tables_if_any()
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

    @property
    def _settings_file(self) -> str | None:
        """The settings file, by a name that is the same when the project is moved."""
        file = self._work.settings.file
        if file is None:
            return None
        return os.path.relpath(file.absolute(), self._work.state_dir.absolute())

    def _version_of(self, urn: Urn) -> DatasetVersion | None:
        return HistoryRepository(self._work.reader).current(urn)

    def _judge(self, old: LumosDataset | None, new: LumosDataset | None) -> tuple[Change, ...]:
        def earlier() -> list[LumosDataset]:
            urn = new.urn if new is not None else ""
            return earlier_states(lambda: HistoryRepository(self._work.reader).states(urn))

        return self._work.policy.judge(old, new, at=self._clock(), earlier=earlier)

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


def source_of(address: str, *, instance: str | None = None) -> dict[str, JsonValue]:
    """Return the settings of the source that a bare path or address stands for."""
    source = source_mapping_of(address)
    name = address.rstrip("/").rpartition("/")[2] or address
    if source["type"] == "local":
        path = os.path.abspath(Path(str(source["path"])).expanduser())
        name = os.path.basename(path) or path
        source["path"] = path
        folder = os.path.dirname(path) if os.path.isfile(path) else path
        if (root := os.path.basename(folder)) != name:
            source["root"] = root or None
    named = {} if instance is None else {"instance": instance}
    return {"type": source.pop("type"), "name": name, **named, **source}


def _escaped(value: JsonValue) -> JsonValue:
    """Return a value in which nothing is a variable."""
    return value.replace("${", "$${") if isinstance(value, str) else value


def _kept_groups(run: _Run, state: CatalogTables | None) -> dict[str, dict[str, str]]:
    """Return what datasets of groups of files were called before, by source and group."""
    if state is None:
        return {}
    return {name: state.scan_marks.of(name) for name in run.sources.by_name}


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
