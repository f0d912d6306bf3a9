"""Ingestion: scan the sources on Spark, publish what changed, store a snapshot."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import orjson

from lumos.core.controllers.results import (
    DatasetCounts,
    FileTotals,
    IngestResult,
    NewVersion,
    ReportedChange,
)
from lumos.core.controllers.storage_functions import (
    LocalUnit,
    origin_of,
    shown_path,
    storage_functions,
)
from lumos.core.errors import LumosError, SourceError, UnreadableItemError, UsageError
from lumos.core.models import DatasetVersion, LumosDataset
from lumos.core.run_report import RunRecorder, RunReport
from lumos.feature.ingestion.handlers.factory import HandlerFactory
from lumos.feature.snapshot.import_plan import ImportMode, PlannedAction, plan_dataset
from lumos.spark.file_index import FileIndex
from lumos.spark.pipeline import Pipeline

if TYPE_CHECKING:
    from lumos.core.controllers.import_controller import ImportTarget
    from lumos.core.controllers.publishing import Clock
    from lumos.core.controllers.snapshot_controller import SnapshotController
    from lumos.core.settings import SourceEntry
    from lumos.spark.handles import SparkSession

Tell = Callable[[str], None]
_WORK_PREFIX = "work-"


class OpenSession(Protocol):
    """Starts Spark for the length of a `with` block."""

    def __call__(self, tell: Tell) -> AbstractContextManager[SparkSession]: ...


@dataclass
class _Sources:
    """The sources of a run that can be scanned."""

    units: list[tuple[str, str]] = field(default_factory=list)
    roots: dict[str, str] = field(default_factory=dict)
    incomplete: set[str] = field(default_factory=set)


@dataclass
class _Outcome:
    """What a run did to datasets."""

    found: int = 0
    created: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0
    formats: Counter[str] = field(default_factory=Counter)
    datasets: list[LumosDataset] = field(default_factory=list)

    def see(self, dataset: LumosDataset) -> None:
        self.found += 1
        self.formats[dataset.format or "unknown"] += 1

    def count(self, action: PlannedAction) -> None:
        match action:
            case PlannedAction.CREATE:
                self.created += 1
            case PlannedAction.UPDATE:
                self.updated += 1
            case _:
                self.unchanged += 1

    def counts(self) -> DatasetCounts:
        return DatasetCounts(
            found=self.found,
            created=self.created,
            updated=self.updated,
            unchanged=self.unchanged,
            removed=self.removed,
        )


class IngestionController:
    """What `lumos ingest` and `lumos discover` do."""

    def __init__(
        self,
        *,
        entries: Callable[[], Sequence[SourceEntry]],
        open_session: OpenSession,
        target: Callable[[], ImportTarget],
        snapshots: Callable[[], SnapshotController],
        state_dir: Callable[[], Path],
        write_lock: Callable[[str], AbstractContextManager[None]],
        keep_report: Callable[[RunReport], None],
        version_of: Callable[[str], DatasetVersion | None],
        clock: Clock,
    ) -> None:
        self._version_of = version_of
        self._entries = entries
        self._open_session = open_session
        self._target = target
        self._snapshots = snapshots
        self._state_dir = state_dir
        self._write_lock = write_lock
        self._keep_report = keep_report
        self._clock = clock

    def ingest(
        self,
        *,
        names: Sequence[str] = (),
        dry_run: bool = False,
        full: bool = False,
        tell: Tell,
    ) -> IngestResult:
        """Bring the catalog up to date with the sources of the settings, or some of them.

        Raises:
            UsageError: there is no source, or none of that name.
            SourceError: no source at all can be scanned.
        """
        entries = self._chosen(names)
        recorder = RunRecorder("ingest", started_at=self._clock())
        sources = _planned(entries, recorder)
        if dry_run:
            return self._look(sources, recorder, full=full, tell=tell)
        with self._write_lock("ingest"):
            result = self._ingested(sources, recorder, full=full, tell=tell)
            self._keep_report(result.as_run_report())
        return result

    def discover(self, entries: Sequence[SourceEntry], *, tell: Tell) -> IngestResult:
        """Find the datasets of sources that no settings name; nothing is written."""
        recorder = RunRecorder("discover", started_at=self._clock())
        return self._look(_planned(entries, recorder), recorder, full=True, tell=tell)

    def _chosen(self, names: Sequence[str]) -> list[SourceEntry]:
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
        return [entry for entry in entries if not names or entry.name in names]

    def _look(
        self, sources: _Sources, recorder: RunRecorder, *, full: bool, tell: Tell
    ) -> IngestResult:
        with (
            self._open_session(tell) as spark,
            tempfile.TemporaryDirectory(prefix="lumos-") as work,
        ):
            pipeline = Pipeline(spark, storage_functions(sources.roots), work=Path(work), tell=tell)
            index = FileIndex(self._state_dir() / "file_index").read(spark)
            counts = pipeline.run(sources.units, index.limit(0) if full else index)
            failed = _record_problems(pipeline, sources, recorder=recorder)
            outcome = _Outcome()
            for built in pipeline.datasets():
                outcome.datasets.append(LumosDataset.from_json(orjson.loads(built.document)))
                outcome.see(outcome.datasets[-1])
                recorder.done(built.urn)
        return IngestResult.of(
            recorder.finish(at=self._clock()),
            files=FileTotals(**counts._asdict(), unreadable=failed),
            datasets=outcome.counts(),
            formats=dict(outcome.formats.most_common()),
            found=tuple(outcome.datasets),
        )

    def _ingested(
        self, sources: _Sources, recorder: RunRecorder, *, full: bool, tell: Tell
    ) -> IngestResult:
        folder = self._state_dir() / "file_index"
        folder.mkdir(parents=True, exist_ok=True)
        for leftover in self._state_dir().glob(f"{_WORK_PREFIX}*"):  # of a run that was killed
            shutil.rmtree(leftover, ignore_errors=True)
        started = self._clock()
        with (
            self._open_session(tell) as spark,
            tempfile.TemporaryDirectory(prefix=_WORK_PREFIX, dir=self._state_dir()) as work,
        ):
            index = FileIndex(folder)
            pipeline = Pipeline(spark, storage_functions(sources.roots), work=Path(work), tell=tell)
            known = index.read(spark)
            counts = pipeline.run(sources.units, known.limit(0) if full else known)
            failed = _record_problems(pipeline, sources, recorder=recorder)
            tell("publishing")
            outcome = self._published(pipeline, sources, recorder=recorder)
            others = known.where(~known.source.isin(list(sources.roots)))
            index.replace(others.unionByName(pipeline.facts()), run=f"{started:%Y%m%dT%H%M%S%f}")
        return self._stored(
            recorder,
            files=FileTotals(**counts._asdict(), unreadable=failed),
            outcome=outcome,
        )

    def _published(
        self, pipeline: Pipeline, sources: _Sources, *, recorder: RunRecorder
    ) -> _Outcome:
        platform, publisher, database = self._target()
        outcome = _Outcome()
        with database.transaction():
            for built in pipeline.datasets():
                found = LumosDataset.from_json(orjson.loads(built.document))
                present = platform.find_dataset(found.urn)
                planned = plan_dataset(present, found, mode=ImportMode.UPDATE)
                if planned.action is not PlannedAction.KEEP:
                    publisher.publish(planned.dataset)
                outcome.see(found)
                outcome.count(planned.action)
                recorder.done(found.urn)
            keys = pipeline.dataset_keys()
            gone = [
                dataset
                for dataset in platform.list()
                if (origin := origin_of(dataset)) is not None
                and origin.source in sources.roots
                and origin.source not in sources.incomplete
                and (origin.source, origin.dataset) not in keys
            ]
            for dataset in gone:
                publisher.retire(dataset)
                outcome.removed += 1
        return outcome

    def _stored(
        self, recorder: RunRecorder, *, files: FileTotals, outcome: _Outcome
    ) -> IngestResult:
        snapshots = self._snapshots()
        earlier = snapshots.newest()
        snapshot = snapshots.create()
        changes: tuple[ReportedChange, ...] = ()
        if earlier is not None and earlier != snapshot.id:
            changes = snapshots.diff(earlier, snapshot.id).changes
        versions = tuple(
            NewVersion(
                dataset=urn,
                version=version.version,
                previous_version=version.previous_version,
                change_type=version.change_type,
                backward_compatible=version.backward_compatible,
            )
            for urn in sorted({change.dataset for change in changes})
            if (version := self._version_of(urn)) is not None
        )
        return IngestResult.of(
            recorder.finish(at=self._clock()),
            files=files,
            datasets=outcome.counts(),
            formats=dict(outcome.formats.most_common()),
            snapshot=snapshot.id,
            changes=changes,
            versions=versions,
        )


def _planned(entries: Sequence[SourceEntry], recorder: RunRecorder) -> _Sources:
    """Ask every source what there is to scan; one that cannot say is named, the others go on."""
    sources = _Sources()
    failure: LumosError | None = None
    for entry in entries:
        try:
            handler = HandlerFactory.get_handler(entry)
            unit = LocalUnit.of(handler)
        except SourceError as error:
            failure = error
            recorder.failed(entry.name, error)
            continue
        sources.units.append((handler.name, unit.as_text()))
        sources.roots[handler.name] = unit.root
    if failure is not None and not sources.units:
        raise failure
    return sources


def _record_problems(pipeline: Pipeline, sources: _Sources, *, recorder: RunRecorder) -> int:
    """Put everything that could not be listed or read into the report; return how many files."""
    for part in pipeline.unlisted():
        sources.incomplete.add(part.source)
        path = shown_path(sources.roots[part.source], part.path)
        recorder.failed(path, UnreadableItemError(part.reason))
    failed = 0
    for file in pipeline.unreadable():
        failed += 1
        path = shown_path(sources.roots[file.source], file.path)
        recorder.failed(path, UnreadableItemError(file.reason), scope_seen=True)
    for file in pipeline.warnings():
        path = shown_path(sources.roots[file.source], file.path)
        for text in orjson.loads(file.reason):
            recorder.warning(f"{path}: {text}")
    return failed
