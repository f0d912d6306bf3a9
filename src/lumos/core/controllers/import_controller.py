"""Reading a snapshot into a catalog, so that it can be repeated and interrupted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

from lumos.core.controllers.cut_short import report_if_cut_short
from lumos.core.controllers.garbage import only_new_garbage
from lumos.core.controllers.import_batches import (
    BatchWriter,
    LookUps,
    Step,
    change_edges,
    takes_batches,
)
from lumos.core.controllers.import_checkpoint import Done, ImportCheckpoint
from lumos.core.controllers.import_comparison import bulk_look_ups, compared_buckets
from lumos.core.controllers.import_tally import ImportTally
from lumos.core.controllers.results import ImportResult
from lumos.core.models import DatasetLineage, LumosDataset, Urn, with_parts
from lumos.core.platform.batches import batches
from lumos.core.platform.factory import EMBEDDED
from lumos.core.platform.interface import Capability, MetadataPlatformInterface
from lumos.core.platform.refusals import REFUSALS, ends_run
from lumos.core.progress import SILENT, Progress
from lumos.core.run_report import RunRecorder, RunReport
from lumos.core.store.part_format import item_of, urn_of
from lumos.feature.snapshot.engine_choice import Engine
from lumos.feature.snapshot.import_plan import ImportMode, PlannedAction
from lumos.feature.snapshot.source import section_lines

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.controllers.import_checkpoint import Checkpoints
    from lumos.core.controllers.publishing import Clock, Publisher, Transactional
    from lumos.core.errors import LumosError
    from lumos.core.platform.fidelity import FidelityReport
    from lumos.feature.snapshot.bucket_work import BucketEngine
    from lumos.feature.snapshot.engines import Engines
    from lumos.feature.snapshot.import_buckets import EdgeChange, ImportBucket, Plan
    from lumos.feature.snapshot.source import SnapshotSource

DEFAULT_BATCH = 500


class ImportTarget(NamedTuple):
    """A catalog that can be written, with the database that its versions are kept in."""

    platform: MetadataPlatformInterface
    publisher: Publisher
    database: Transactional
    place: str | None = None
    """What tells it from other catalogs of the same kind, where there may be several."""
    workers: int = 8
    """How many requests may be under way at once, where the catalog takes as many."""


class ImportController:
    """What `lumos import` does.

    Each batch is one transaction together with how far the import came, and everything written is
    an upsert: an interrupted import is finished by running it again. No more than a bucket of a
    snapshot is held at a time.
    """

    def __init__(
        self,
        *,
        open_snapshot: Callable[[str], SnapshotSource],
        look: Callable[[], MetadataPlatformInterface | None],
        target: Callable[[], ImportTarget],
        write_lock: Callable[[str], AbstractContextManager[None]],
        keep_report: Callable[[RunReport], None],
        engines: Engines,
        clock: Clock,
        checkpoints: Callable[[], Checkpoints] | None = None,
    ) -> None:
        """Take the ways to the parts, so that a wrong input or a dry run touches no state.

        Args:
            open_snapshot: opens the snapshot that the user named.
            look: the catalog for reading only; None where there is none yet.
            target: the catalog for writing.
            write_lock: keeps other writers away.
            keep_report: stores what the run did.
            engines: who compares the snapshot with the catalog.
            clock: the time.
            checkpoints: keeps how far an interrupted import came; without it the next run looks
                at every dataset again.
        """
        self._checkpoints = checkpoints
        self._open_snapshot = open_snapshot
        self._look = look
        self._target = target
        self._write_lock = write_lock
        self._keep_report = keep_report
        self._engines = engines
        self._clock = clock

    def run(
        self,
        reference: str,
        *,
        mode: ImportMode = ImportMode.UPDATE,
        dry_run: bool = False,
        batch_size: int = DEFAULT_BATCH,
        restart: bool = False,
        engine: Engine = Engine.AUTO,
        tell: Callable[[str], None] = lambda _: None,
        planned: Callable[[FidelityReport], None] | None = None,
        progress: Progress = SILENT,
    ) -> ImportResult:
        """Bring the catalog up to what a snapshot says; datasets that it does not name stay.

        An import that was interrupted goes on where it stopped, unless `restart` is asked for or
        something else was written since. `planned` is told what becomes of each concept in a
        catalog other than Lumos's own, before anything is written to it.
        """
        tally = ImportTally(RunRecorder("import", started_at=self._clock()))
        source = self._open_snapshot(reference)
        source.require_whole()
        # Planning on Spark needs all of the catalog first: it never pays, but may be asked for.
        with self._engines.opened(engine, worth_spark=False, tell=tell) as worker:
            if dry_run:
                catalog = self._look()
                fidelity = _told(planned, source, catalog)
                self._rehearse(source, catalog, mode=mode, tally=tally, engine=worker)
                report = tally.recorder.finish(at=self._clock())
            else:
                with self._write_lock("import"), only_new_garbage():
                    target = self._target()
                    target.platform.reached()  # a wrong address is told once
                    fidelity = _told(planned, source, target.platform)
                    checkpoint = self._checkpoint(
                        source, mode, platform=target.place or target.platform.name
                    )
                    run = ImportRun(
                        target, mode, tally=tally, checkpoint=checkpoint, progress=progress
                    )
                    keep = partial(self._keep_cut_short, run)
                    with report_if_cut_short(tally.recorder, keep, clock=self._clock):
                        run.apply(source, batch_size, engine=worker, restart=restart)
                    tally.recorder.warnings(target.platform.remarks())
                    report = tally.recorder.finish(at=self._clock())
                    self._keep_report(report)
        return ImportResult(
            dry_run=dry_run,
            created=tuple(sorted(tally.created)),
            updated=tuple(sorted(tally.updated)),
            unchanged=tally.unchanged,
            skipped=tally.skipped,
            resumed=tally.resumed,
            lineage_edges=tally.edges,
            lineage_edges_removed=tally.removed_edges,
            fidelity=fidelity,
            report=report,
        )

    def _keep_cut_short(self, run: ImportRun, report: RunReport) -> None:
        self._keep_report(report)
        run.keep_place()

    def _checkpoint(
        self, source: SnapshotSource, mode: ImportMode, *, platform: str
    ) -> ImportCheckpoint | None:
        if self._checkpoints is None:
            return None
        return ImportCheckpoint.of(
            self._checkpoints(), source, mode=mode, platform=platform, clock=self._clock
        )

    def _rehearse(
        self,
        source: SnapshotSource,
        catalog: MetadataPlatformInterface | None,
        *,
        mode: ImportMode,
        tally: ImportTally,
        engine: BucketEngine,
    ) -> None:
        look_ups = bulk_look_ups(catalog, mode, engine=engine)
        for bucket in compared_buckets(
            source, catalog, mode=mode, engine=engine, look_ups=look_ups
        ):
            for lines in batches(bucket.lines, DEFAULT_BATCH):
                urns = [urn_of(line).decode() for line in lines]
                if look_ups:
                    look_ups.ahead(urns)
                for urn, line in zip(urns, lines, strict=True):
                    tally.count(urn, bucket.plan(line).action)
                    tally.count_edges(bucket.changes.pop(urn, ()))
            for changes in bucket.changes.values():
                tally.count_edges(_written(changes))


class ImportRun:
    """One import that is under way."""

    def __init__(
        self,
        target: ImportTarget,
        mode: ImportMode,
        *,
        tally: ImportTally,
        checkpoint: ImportCheckpoint | None = None,
        progress: Progress = SILENT,
    ) -> None:
        self._progress = progress
        self._seen = 0
        self._platform, self._publisher, self._database, _, workers = target
        self._workers = min(workers, self._platform.CONCURRENCY)
        self._look_ups: LookUps | None = None
        self._writer: BatchWriter | None = None
        if takes_batches(self._platform):
            self._writer = BatchWriter(
                self._platform,
                self._publisher,
                workers=self._workers,
                refused=self._refuse,
                advance=self._advance,
            )
        self._mode = mode
        self._tally = tally
        self._checkpoint = checkpoint
        self._done = Done()
        self._kept: Done | None = None

    def apply(
        self,
        source: SnapshotSource,
        batch_size: int,
        *,
        engine: BucketEngine,
        restart: bool = False,
    ) -> None:
        """Write everything that the catalog can keep; what it cannot is named in the report."""
        before = self._checkpoint.load() if self._checkpoint and not restart else Done()
        self._done, self._tally.resumed = before, before.datasets
        self._kept = None if before == Done() else before
        passed_over = self._extensions_to_skip(source)
        self._prepare_extensions(source, passed_over)
        self._seen = before.datasets
        total = source.section_count("datasets")
        self._progress.stage("writing datasets", total=total, unit="datasets")
        self._apply_entities(source)
        if not self._can(Capability.LINEAGE):
            self._left_out("lineage edges", source.section_count("lineage_edges"))
        self._look_ups = bulk_look_ups(
            self._platform, self._mode, engine=engine, workers=self._workers
        )
        compared = compared_buckets(
            source, self._platform, mode=self._mode, engine=engine, look_ups=self._look_ups
        )
        with closing(compared) as buckets:
            for place, bucket in enumerate(buckets):
                done = before.of_bucket(place)
                if done is not None:
                    self._apply_bucket(bucket, batch_size, place=place, done=done)
        self._apply_rest(source, passed_over)
        if self._checkpoint:
            self._checkpoint.clear()

    def _apply_bucket(
        self, bucket: ImportBucket, batch_size: int, *, place: int, done: int
    ) -> None:
        for line in bucket.lines[:done]:
            bucket.changes.pop(urn_of(line).decode(), None)
        for lines in batches(bucket.lines[done:], batch_size):
            with self._database.transaction():
                if self._writer:
                    self._put_together(self._writer, bucket, lines)
                else:
                    self._put_one_by_one(bucket, lines)
                done += len(lines)
                self._came_to(self._done.after_lines(place, done, new=len(lines)))
        for urns in batches(sorted(bucket.changes), batch_size):
            left = {urn: changes for urn in urns if (changes := _written(bucket.changes[urn]))}
            with self._database.transaction():
                self._lead_to(left)
        self._came_to(self._done.after_bucket(place))

    def _put_one_by_one(self, bucket: ImportBucket, lines: Sequence[bytes]) -> None:
        for line in lines:
            urn = urn_of(line).decode()
            changes = bucket.changes.pop(urn, [])
            put = partial(self._put, urn, plan=partial(bucket.plan, line), changes=changes)
            self._attempt(urn, put)
            self._advance()

    def _put_together(
        self, writer: BatchWriter, bucket: ImportBucket, lines: Sequence[bytes]
    ) -> None:
        if self._look_ups:
            self._look_ups.ahead([urn_of(line).decode() for line in lines])
        for step in writer.write(self._steps(bucket, lines)):
            self._tally.count_edges(step.changes)
            if step.action is not None:
                self._tally.count(step.urn, step.action)

    def _steps(self, bucket: ImportBucket, lines: Sequence[bytes]) -> Iterator[Step]:
        for line in lines:
            urn = urn_of(line).decode()
            changes = bucket.changes.pop(urn, [])
            try:
                action, dataset = bucket.plan(line)
            except REFUSALS as error:
                self._refuse(urn, error)
                self._advance()
                continue
            written = None
            if dataset is not None and action in _WRITING:
                written = self._without_listed_lineage(dataset)
            yield Step(urn, Urn(urn), changes, written, action)

    def _lead_to(self, left: Mapping[str, Sequence[EdgeChange]]) -> None:
        """Change the lineage of datasets that the snapshot does not have."""
        if self._writer:
            steps = [Step(f"lineage of {urn}", Urn(urn), left[urn]) for urn in left]
            for step in self._writer.write(steps):
                self._tally.count_edges(step.changes)
            return
        for urn, changes in left.items():
            self._attempt(f"lineage of {urn}", partial(self._lead, urn, changes))

    def _advance(self) -> None:
        self._seen += 1
        if not self._seen % _SHOWN_EVERY:
            self._progress.advance(self._seen)

    def _came_to(self, done: Done) -> None:
        """Keep how far it came, as long as nothing failed that the next run has to try again."""
        self._done = done
        if self._checkpoint and not self._tally.failed:
            self._checkpoint.save(done)
            self._kept = done

    def keep_place(self) -> None:
        """Keep how far it came once more: the report of a run voids what was kept before it."""
        if self._checkpoint and self._kept is not None:
            self._checkpoint.save(self._kept)

    def _put(self, urn: str, *, plan: Callable[[], Plan], changes: Sequence[EdgeChange]) -> None:
        planned = plan()
        change_edges(self._platform, changes)
        if planned.dataset is not None and planned.action in _WRITING:
            self._publisher.publish(self._without_listed_lineage(planned.dataset))
        elif changes:
            self._publisher.refresh(Urn(urn))
        self._tally.count_edges(changes)
        self._tally.count(urn, planned.action)

    def _lead(self, urn: str, changes: Sequence[EdgeChange]) -> None:
        change_edges(self._platform, changes)
        self._publisher.refresh(Urn(urn))
        self._tally.count_edges(changes)

    def _without_listed_lineage(self, dataset: LumosDataset) -> LumosDataset:
        """Leave lineage to the edges: from a list alone, edges with a job would get a twin."""
        if not self._can(Capability.LINEAGE):
            return dataset
        return with_parts(dataset, lineage=DatasetLineage())

    def _apply_entities(self, source: SnapshotSource) -> None:
        from lumos.core.controllers.import_entities import entity_count, planned_entities

        if not self._can(Capability.ENTITIES):
            self._left_out("people, tags, terms, domains or jobs", entity_count(source))
            return
        with self._database.transaction():
            for name, entity in planned_entities(self._platform, source, mode=self._mode):
                self._attempt(name, partial(self._platform.emit_entity, entity))

    def _extensions_to_skip(self, source: SnapshotSource) -> frozenset[str]:
        """Return the names of extensions that are there and are to stay as they are."""
        if self._mode is not ImportMode.SKIP_EXISTING or not self._can(Capability.EXTENSIONS):
            return frozenset()
        there = source.section_count("extensions") > 0
        return frozenset(self._platform.extensions()) if there else frozenset()

    def _prepare_extensions(self, source: SnapshotSource, passed_over: frozenset[str]) -> None:
        """Write first what the definitions of other catalogs say of what datasets refer to."""
        if self._can(Capability.EXTENSIONS):
            for name, value in _extensions(source, passed_over):
                prepare = partial(self._platform.prepare_extension, name, value)
                self._attempt(f"definitions of extension {name}", prepare)

    def _apply_rest(self, source: SnapshotSource, passed_over: frozenset[str]) -> None:
        with self._database.transaction():
            if self._can(Capability.EXTENSIONS):
                for name, value in _extensions(source, passed_over):
                    extend = partial(self._platform.emit_extension, name, value)
                    self._attempt(f"extension {name}", extend)
            else:
                self._left_out("extensions", source.section_count("extensions"))
            identities = source.section_count("identity_map")
            if self._can(Capability.IDENTITY_MAP):
                for line in section_lines(source, "identity_map"):
                    item = item_of(line)
                    self._attempt(f"identity of {item['urn']}", partial(self._name, item))
            else:
                self._left_out("identities of other catalogs", identities)

    def _name(self, item: dict[str, JsonValue]) -> None:
        for catalog, external_id in cast("dict[str, str]", item["ids"]).items():
            self._platform.emit_identity(str(item["urn"]), catalog, external_id=external_id)

    def _attempt(self, item: str, act: Callable[[], None]) -> None:
        """Do one step whole or not at all; what is refused is recorded and the import goes on."""
        try:
            with self._database.transaction():
                act()
        except REFUSALS as error:
            self._refuse(item, error)

    def _refuse(self, item: str, error: LumosError) -> None:
        """Record what was refused; where nothing else would fare better, the run ends."""
        self._tally.failed += 1
        self._tally.recorder.failed(item, error)
        if ends_run(error):
            raise error

    def _left_out(self, what: str, count: int) -> None:
        if count:
            name = self._platform.name
            self._tally.recorder.warning(f"{name} keeps no {what}: {count:,} were left out")

    def _can(self, capability: Capability) -> bool:
        return capability in self._platform.capabilities


_SHOWN_EVERY = 10
_WRITING = frozenset({PlannedAction.CREATE, PlannedAction.UPDATE})


def _extensions(
    source: SnapshotSource, passed_over: frozenset[str]
) -> Iterator[tuple[str, JsonValue]]:
    for line in section_lines(source, "extensions"):
        item = item_of(line)
        if str(item["name"]) not in passed_over:
            yield str(item["name"]), item["value"]


def _told(
    planned: Callable[[FidelityReport], None] | None,
    source: SnapshotSource,
    catalog: MetadataPlatformInterface | None,
) -> FidelityReport | None:
    """Tell what becomes of each concept, where somebody listens and anything can become of it."""
    if planned is None or catalog is None or catalog.name == EMBEDDED:
        return None
    from lumos.feature.snapshot.fidelity_count import counted_fidelity

    report = counted_fidelity(source, catalog)
    planned(report)
    return report


def _written(changes: Iterable[EdgeChange]) -> list[EdgeChange]:
    """Leave out removals: they are for datasets that the snapshot has."""
    return [change for change in changes if not change.removed]
