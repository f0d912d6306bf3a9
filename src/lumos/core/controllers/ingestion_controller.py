"""Ingestion: scan the sources on Spark, publish what changed, store a snapshot."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import orjson

from lumos.core.controllers.found_datasets import FoundDatasets, Scope
from lumos.core.controllers.results import FileTotals, IngestResult, NewVersion, ReportedChange
from lumos.core.controllers.storage_functions import LocalUnit, shown_path, storage_functions
from lumos.core.errors import (
    ConfigurationError,
    LumosError,
    SourceError,
    UnreadableItemError,
    UsageError,
)
from lumos.core.run_report import RunRecorder, RunReport
from lumos.core.store.snapshot_files import storing
from lumos.feature.ingestion.handlers.factory import HandlerFactory
from lumos.spark.failures import spark_failures
from lumos.spark.file_index import FileIndex
from lumos.spark.pipeline import Pipeline

if TYPE_CHECKING:
    from lumos.core.controllers.import_controller import ImportTarget
    from lumos.core.controllers.publishing import Clock
    from lumos.core.controllers.snapshot_controller import SnapshotController
    from lumos.core.models import DatasetVersion
    from lumos.core.settings import SourceEntry
    from lumos.spark.handles import SparkSession

Tell = Callable[[str], None]
_WORK_PREFIX = "work-"


class OpenSession(Protocol):
    """Starts Spark for the length of a `with` block."""

    def __call__(self, tell: Tell) -> AbstractContextManager[SparkSession]: ...


class _Sources(NamedTuple):
    """The sources of a run that can be scanned."""

    units: list[tuple[str, str]]
    roots: dict[str, str]


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
        sources = _planned(entries, recorder, skip=self._skipped())
        if dry_run:
            return self._look(sources, recorder, full=full, tell=tell)
        with self._write_lock("ingest"):
            result = self._ingested(sources, recorder, full=full, tell=tell)
            self._keep_report(result.as_run_report())
        return result

    def discover(self, entries: Sequence[SourceEntry], *, tell: Tell) -> IngestResult:
        """Find the datasets of sources that no settings name; nothing is written."""
        recorder = RunRecorder("discover", started_at=self._clock())
        sources = _planned(entries, recorder, skip=self._skipped())
        return self._look(sources, recorder, full=True, tell=tell)

    def _skipped(self) -> tuple[str, ...]:
        return (str(self._state_dir().absolute()),)

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
        found = FoundDatasets(Scope(sources.roots), recorder)
        with (
            self._open_session(tell) as spark,
            tempfile.TemporaryDirectory(prefix="lumos-") as work,
            spark_failures(),
        ):
            pipeline = Pipeline(spark, storage_functions(sources.roots), work=Path(work), tell=tell)
            index = FileIndex(self._state_dir() / "file_index").read(spark)
            counts = pipeline.run(sources.units, index, full=full)
            failed = _record_problems(pipeline, found.scope, recorder=recorder)
            found.look_at(pipeline)
        return IngestResult.of(
            recorder.finish(at=self._clock()),
            files=FileTotals(**counts._asdict(), unreadable=failed),
            datasets=found.counts(),
            formats=dict(found.formats.most_common()),
            found=tuple(found.datasets),
        )

    def _ingested(
        self, sources: _Sources, recorder: RunRecorder, *, full: bool, tell: Tell
    ) -> IngestResult:
        folder = self._state_dir() / "file_index"
        with storing(self._state_dir()):
            folder.mkdir(parents=True, exist_ok=True)
            for leftover in self._state_dir().glob(f"{_WORK_PREFIX}*"):  # of a run that was killed
                shutil.rmtree(leftover, ignore_errors=True)
            temporary = tempfile.TemporaryDirectory(prefix=_WORK_PREFIX, dir=self._state_dir())
        started = self._clock()
        found = FoundDatasets(Scope(sources.roots), recorder)
        with temporary as work, self._open_session(tell) as spark, spark_failures():
            index = FileIndex(folder)
            pipeline = Pipeline(spark, storage_functions(sources.roots), work=Path(work), tell=tell)
            known = index.read(spark)
            counts = pipeline.run(sources.units, known, full=full)
            failed = _record_problems(pipeline, found.scope, recorder=recorder)
            if not full:
                _doubt_empty_sources(pipeline, found.scope, recorder=recorder)
            tell("publishing")
            found.publish(pipeline, self._target())
            others = known.where(~known.source.isin(list(sources.roots)))
            index.replace(others.unionByName(pipeline.facts()), run=f"{started:%Y%m%dT%H%M%S%f}")
        files = FileTotals(**counts._asdict(), unreadable=failed)
        return self._stored(recorder, files=files, found=found)

    def _stored(
        self, recorder: RunRecorder, *, files: FileTotals, found: FoundDatasets
    ) -> IngestResult:
        snapshots = self._snapshots()
        earlier = snapshots.newest()
        snapshot = snapshots.create()
        changes: tuple[ReportedChange, ...] = ()
        if earlier is not None and earlier != snapshot.id:
            differing = snapshots.diff(earlier, snapshot.id).changes
            changes = tuple(change for change in differing if change.dataset in found.touched)
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
            datasets=found.counts(),
            formats=dict(found.formats.most_common()),
            snapshot=snapshot.id,
            changes=changes,
            versions=versions,
        )


def _planned(
    entries: Sequence[SourceEntry], recorder: RunRecorder, *, skip: Sequence[str]
) -> _Sources:
    """Ask every source what there is to scan; one that cannot say is named, the others go on."""
    sources = _Sources([], {})
    failure: LumosError | None = None
    for entry in entries:
        try:
            handler = HandlerFactory.get_handler(entry)
            unit = LocalUnit.of(handler, skip=skip)
        except SourceError as error:
            failure = error
            recorder.failed(entry.name, error)
            continue
        sources.units.append((handler.name, unit.as_text()))
        sources.roots[handler.name] = unit.root
    if failure is not None and not sources.units:
        raise failure
    _refuse_overlaps(sources.roots)
    return sources


def _refuse_overlaps(roots: Mapping[str, str]) -> None:
    """Refuse sources that would find the same files: a dataset belongs to one source."""
    ordered = sorted((Path(root).parts, name) for name, root in roots.items())
    for (outer, first), (inner, second) in pairwise(ordered):
        if inner[: len(outer)] == outer:
            raise ConfigurationError(
                f"the sources {first} and {second} overlap: {Path(*inner)} lies in {Path(*outer)}",
                hint=f"leave {second} out, or exclude its folder from {first}",
            )


def _doubt_empty_sources(pipeline: Pipeline, scope: Scope, *, recorder: RunRecorder) -> None:
    """Take nothing as removed from a source without a single file: its disk may be missing."""
    for source in sorted(scope.roots.keys() - pipeline.sources_with_files()):
        scope.incomplete.add(source)
        recorder.incomplete(
            reason=f"source {source} has no file at all; nothing is taken as removed, unless --full"
        )


def _record_problems(pipeline: Pipeline, scope: Scope, *, recorder: RunRecorder) -> int:
    """Put everything that could not be listed or read into the report; return how many files."""
    for part in pipeline.unlisted():
        root = scope.roots[part.source]
        path = shown_path(root, part.path)
        scope.incomplete.add(part.source)
        scope.closed.setdefault(part.source, []).append(os.path.relpath(path, root))
        recorder.failed(path, UnreadableItemError(part.reason))
    failed = 0
    for file in pipeline.unreadable():
        failed += 1
        path = shown_path(scope.roots[file.source], file.path)
        recorder.failed(path, UnreadableItemError(file.reason), scope_seen=True)
    for odd in pipeline.warnings():
        path = shown_path(scope.roots[odd.source], odd.path)
        others = f" and {odd.files - 1:,} more" if odd.files > 1 else ""
        for text in orjson.loads(odd.texts):
            recorder.warning(f"{path}{others}: {text}")
    return failed
