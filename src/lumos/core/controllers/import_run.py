"""One import that is under way."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, cast

from lumos.core.controllers.import_batches import (
    BatchWriter,
    Step,
    change_edges,
    takes_batches,
)
from lumos.core.controllers.import_checkpoint import Done, ImportCheckpoint
from lumos.core.controllers.import_comparison import bulk_look_ups, compared_buckets
from lumos.core.controllers.publishing import Outcome
from lumos.core.errors import InvalidModelError
from lumos.core.models import DatasetLineage, LumosDataset, Urn, with_parts
from lumos.core.models.base import sha256_of
from lumos.core.platform.abilities import (
    Capability,
    ExtensionAbility,
    IdentityAbility,
    derives_versions,
)
from lumos.core.platform.batch import Batch, Identity
from lumos.core.platform.batches import batches
from lumos.core.platform.refusals import REFUSALS, ends_run
from lumos.core.progress import SILENT, Progress
from lumos.core.store.documents import checked_key
from lumos.core.store.part_format import item_of, urn_of
from lumos.feature.snapshot.import_plan import ImportMode, PlannedAction
from lumos.feature.snapshot.source import section_lines

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.controllers.import_look_ups import LookUps
    from lumos.core.controllers.import_memory import ImportMemory
    from lumos.core.controllers.import_tally import ImportTally
    from lumos.core.controllers.import_target import ImportTarget
    from lumos.core.errors import LumosError
    from lumos.feature.snapshot.bucket_work import BucketEngine
    from lumos.feature.snapshot.import_buckets import EdgeChange, ImportBucket
    from lumos.feature.snapshot.source import SnapshotSource


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
        self._platform, self._publisher, self._database = target[:3]
        self._known = target.memory
        self._memory = target.memory if self._publisher.keeps_history else None
        self._workers = min(target.workers, self._platform.CONCURRENCY)
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
            self._platform,
            self._mode,
            source=source,
            engine=engine,
            own_versions=self._publisher.keeps_history,
            workers=self._workers,
            memory=None if restart else self._known,
        )
        compared = compared_buckets(
            source,
            self._platform,
            mode=self._mode,
            engine=engine,
            own_versions=self._publisher.keeps_history,
            look_ups=self._look_ups,
        )
        with closing(compared) as buckets:
            for place, bucket in enumerate(buckets):
                done = before.of_bucket(place)
                if done is not None:
                    self._apply_bucket(bucket, batch_size, place=place, done=done)
        self._catch_up()
        self._apply_rest(source, passed_over)
        if self._checkpoint:
            self._checkpoint.clear()

    def _catch_up(self) -> None:
        """Record versions of what a run that was killed wrote, and this one left as it was."""
        if self._memory is None:
            return
        for urn in self._memory.unrecorded():
            self._attempt(f"version of {urn}", partial(self._record_late, self._memory, urn))

    def _record_late(self, memory: ImportMemory, urn: str) -> None:
        self._publisher.refresh(Urn(urn))
        memory.recorded([urn])

    @contextmanager
    def _writing(self, steps: Iterable[Step]) -> Iterator[Iterable[Step]]:
        """Let steps be one transaction, from which a run that is killed can be completed."""
        if self._memory is None:
            with self._database.transaction():
                yield steps
            return
        planned = [*steps]
        written = [step.urn for step in planned if not step.rests]
        self._memory.expect(written)
        with self._database.transaction():
            yield planned
            self._memory.recorded(written)

    def _apply_bucket(
        self, bucket: ImportBucket, batch_size: int, *, place: int, done: int
    ) -> None:
        for line in bucket.lines[:done]:
            bucket.changes.pop(urn_of(line).decode(), None)
        for lines in batches(bucket.lines[done:], batch_size):
            if self._look_ups:
                self._look_ups.ahead(lines)
            with self._writing(self._steps(bucket, lines)) as steps:
                written = self._carry_out(steps)
                if self._look_ups:
                    self._look_ups.remember(_lines_of(lines, written))
                done += len(lines)
                self._came_to(self._done.after_lines(place, done, new=len(lines)))
        for urns in batches(sorted(bucket.changes), batch_size):
            left = {
                urn: changes
                for urn in urns
                if (changes := self._nameable(written_only(bucket.changes[urn])))
            }
            leading = [Step(f"lineage of {urn}", Urn(urn), left[urn]) for urn in left]
            with self._writing(leading) as steps:
                self._carry_out(steps)
        self._came_to(self._done.after_bucket(place))

    def _carry_out(self, steps: Iterable[Step]) -> set[str]:
        """Do what is planned, and return which datasets were written, as far as that is told."""
        if self._writer:
            done = self._writer.write(steps)
            for step in done:
                self._count(step)
            return {step.urn for step in done if step.dataset is not None}
        for step in steps:
            self._attempt(step.name, partial(self._put, step))
            if step.action is not None:
                self._advance()
        return set()

    def _count(self, step: Step) -> None:
        self._tally.count_edges(step.changes)
        if step.action is not None:
            self._tally.count(step.urn, step.action)

    def _steps(self, bucket: ImportBucket, lines: Sequence[bytes]) -> Iterator[Step]:
        for line in lines:
            urn = urn_of(line).decode()
            changes = self._nameable(bucket.changes.pop(urn, []))
            try:
                checked_key(urn)
                action, dataset = bucket.plan(line)
            except REFUSALS as error:
                self._refuse(urn, error)
                self._advance()
                continue
            written = None
            if dataset is not None and action in _WRITING:
                written = self._without_listed_lineage(dataset)
            yield Step(urn, Urn(urn), changes, written, action, bucket.upstream.get(urn, ()))

    def _nameable(self, changes: Iterable[EdgeChange]) -> list[EdgeChange]:
        """Return the edges whose names can be stored; the others are refused one by one."""
        kept: list[EdgeChange] = []
        for change in changes:
            edge = change.edge
            try:
                for urn in edge.key:
                    checked_key(urn)
            except InvalidModelError as error:
                self._refuse(f"lineage from {edge.upstream_urn} to {edge.downstream_urn}", error)
            else:
                kept.append(change)
        return kept

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

    def _put(self, step: Step) -> None:
        change_edges(self._platform, step.changes)
        if step.dataset is not None:
            outcome = self._publisher.publish(step.dataset)
            if outcome is Outcome.UNCHANGED and not step.changes:
                step = step._replace(action=PlannedAction.KEEP)  # it takes no other version
        elif step.changes:
            self._publisher.refresh(step.urn)
        self._count(step)

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
                self._attempt(name, partial(self._platform.apply, Batch(entities=(entity,))))

    def _extensions_to_skip(self, source: SnapshotSource) -> frozenset[str]:
        """Return the names of extensions that are there and are to stay as they are."""
        if self._mode is not ImportMode.SKIP_EXISTING or not self._can(Capability.EXTENSIONS):
            return frozenset()
        there = source.section_count("extensions") > 0
        return frozenset(ExtensionAbility.of(self._platform).extensions()) if there else frozenset()

    def _prepare_extensions(self, source: SnapshotSource, passed_over: frozenset[str]) -> None:
        """Write first what the definitions of other catalogs say of what datasets refer to."""
        if self._can(Capability.EXTENSIONS):
            for name, value in _extensions(source, passed_over):
                prepare = partial(self._platform.apply, Batch(definitions={name: value}))
                self._attempt(f"definitions of extension {name}", prepare)

    def _apply_rest(self, source: SnapshotSource, passed_over: frozenset[str]) -> None:
        with self._database.transaction():
            if self._can(Capability.EXTENSIONS):
                for name, value in self._extensions_to_write(source, passed_over):
                    self._attempt(f"extension {name}", partial(self._extend, name, value))
            else:
                self._left_out("extensions", source.section_count("extensions"))
            identities = source.section_count("identity_map")
            if self._can(Capability.IDENTITY_MAP):
                ask = IdentityAbility.of(self._platform).identity_map
                held = ask() if self._asks_first and identities else {}
                for line in section_lines(source, "identity_map"):
                    item = item_of(line)
                    named = held.get(Urn(str(item["urn"])), {})
                    act = partial(self._name, item, held=named)
                    self._attempt(f"identity of {item['urn']}", act)
            else:
                self._left_out("identities of other catalogs", identities)

    def _extensions_to_write(
        self, source: SnapshotSource, passed_over: frozenset[str]
    ) -> Iterator[tuple[str, JsonValue]]:
        """Yield extensions, without those that were written before and are still the same."""
        held: dict[str, JsonValue] | None = None
        for name, value in _extensions(source, passed_over):
            item = f"extension {name}"
            if self._known and self._known.marks([item]).get(item) == sha256_of(value):
                if held is None:
                    held = ExtensionAbility.of(self._platform).extensions()
                if name in held and held[name] == value:
                    continue
            yield name, value

    def _extend(self, name: str, value: JsonValue) -> None:
        self._platform.apply(Batch(extensions={name: value}))
        if self._known:
            self._known.keep_marks({f"extension {name}": sha256_of(value)})

    @property
    def _asks_first(self) -> bool:
        """Whether asking a catalog for what it has is cheaper than telling it again."""
        return not derives_versions(self._platform)

    def _name(self, item: dict[str, JsonValue], *, held: Mapping[str, str]) -> None:
        new = [
            Identity(str(item["urn"]), catalog, external_id)
            for catalog, external_id in cast("dict[str, str]", item["ids"]).items()
            if held.get(catalog) != external_id
        ]
        if new:
            self._platform.apply(Batch(identities=new))

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


def _lines_of(lines: Iterable[bytes], urns: Container[str]) -> dict[str, bytes]:
    named = ((urn_of(line).decode(), line) for line in lines)
    return {urn: line for urn, line in named if urn in urns}


def written_only(changes: Iterable[EdgeChange]) -> list[EdgeChange]:
    """Leave out removals: they are for datasets that the snapshot has."""
    return [change for change in changes if not change.removed]
