"""One import into a catalog other than the state: planned into a scratch state, then synced."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from typing_extensions import override

from lumos.core.json_reading import named_texts_at
from lumos.core.models import Urn
from lumos.core.models.base import sha256_of
from lumos.core.platform.abilities import ExtensionAbility, IdentityAbility
from lumos.core.platform.batch import Batch
from lumos.core.platform.batches import batches, together
from lumos.core.platform.interface import Capability
from lumos.core.platform.refusals import REFUSALS, ends_run
from lumos.core.progress import SILENT, Progress
from lumos.core.store.snapshots.part_format import item_of, urn_of_line
from lumos.core.store.snapshots.snapshot_writer import buckets_by_rank
from lumos.feature.importing.comparison import bulk_look_ups, compared_buckets
from lumos.feature.importing.entities import entity_count, planned_entities
from lumos.feature.importing.plan import ImportMode, PlannedAction
from lumos.feature.importing.scratch_state import ScratchState, scratch_state
from lumos.feature.importing.steps import ImportSteps, Step, edge_item, extensions_in
from lumos.feature.snapshot.source import section_lines
from lumos.feature.sync.items import DATASET, EDGE, EXTENSION, IDENTITY, edge_ends, edge_name
from lumos.feature.sync.plan import SyncPlan
from lumos.feature.sync.removals import Removals
from lumos.feature.sync.settings import SyncSettings, Truth, TruthSettings
from lumos.feature.sync.sync_run import SyncRun
from lumos.feature.sync.tally import Ends, SyncTally

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.errors import LumosError
    from lumos.core.platform.interface import MetadataPlatformInterface
    from lumos.core.run_report import Clock
    from lumos.core.store.sync_states import SyncStates
    from lumos.feature.importing.look_ups import LookUps
    from lumos.feature.importing.marks import ImportMarks
    from lumos.feature.importing.tally import ImportTally
    from lumos.feature.snapshot.source import SnapshotSource

_AS_PLANNED: Final = TruthSettings.model_validate(
    dict.fromkeys(TruthSettings.model_fields, Truth.LUMOS)
)
"""What people said in the catalog is in the plan already, as far as the mode keeps it."""
_AT_A_TIME: Final = 500


class CatalogTarget(NamedTuple):
    """A catalog that is imported into."""

    platform: MetadataPlatformInterface
    marks: ImportMarks
    workers: int
    """How many requests may be under way at once, where the catalog takes as many."""


class CatalogImport:
    """One import into another catalog that is under way.

    What the catalog is to hold, given what it has, is put into a scratch state that a sync then
    sends. An import that was interrupted is planned anew: what the catalog took is as wanted.
    """

    def __init__(
        self,
        target: CatalogTarget,
        mode: ImportMode,
        *,
        tally: ImportTally,
        clock: Clock,
        progress: Progress = SILENT,
    ) -> None:
        self._platform, self._marks, self._workers = target
        self._mode = mode
        self._tally = tally
        self._clock = clock
        self._progress = progress
        self._steps = ImportSteps(refused=self._refuse, keeps_edges=self._can(Capability.LINEAGE))
        self._actions: dict[PlannedAction, list[str]] = {}
        self._surplus: list[str] = []
        """Edges to remove, as `edge_name` calls them."""

    def apply(
        self,
        source: SnapshotSource,
        batch_size: int,
        *,
        restart: bool = False,
    ) -> None:
        """Write everything that the catalog can keep; what it cannot is named in the report."""
        look_ups = bulk_look_ups(
            self._platform,
            self._mode,
            source=source,
            workers=self._workers,
            marks=None if restart else self._marks,
        )
        with scratch_state(self._clock, lease=self._marks.database) as scratch:
            self._plan_entities(source, scratch)
            self._plan_extensions(source, scratch)
            self._plan_datasets(source, scratch, batch_size, look_ups=look_ups)
            self._plan_identities(source, scratch)
            try:
                self._send(scratch, batch_size)
            finally:
                self._count(scratch.sent)
        self._remember(source, look_ups, batch_size)
        self._tally.recorder.warnings(self._platform.notices())

    def _plan_entities(self, source: SnapshotSource, scratch: ScratchState) -> None:
        if not self._can(Capability.ENTITIES):
            self._left_out("people, tags, terms, domains or jobs", entity_count(source))
            return
        planned = planned_entities(self._platform, source, mode=self._mode)
        with scratch.database.transaction():
            for name, entity in planned:
                self._attempt(name, partial(scratch.catalog.apply, Batch(entities=(entity,))))

    def _plan_extensions(self, source: SnapshotSource, scratch: ScratchState) -> None:
        """Plan extensions, without those that were imported before and are still the same."""
        count = source.section_count("extensions")
        if not count:
            return
        if not self._can(Capability.EXTENSIONS):
            self._left_out("extensions", count)
            return
        with scratch.database.transaction():
            for name, value in self._extensions_to_write(source):
                write = partial(scratch.catalog.apply, Batch(extensions={name: value}))
                self._attempt(_extension_item(name), write)

    def _extensions_to_write(self, source: SnapshotSource) -> Iterator[tuple[str, JsonValue]]:
        skips = self._mode is ImportMode.SKIP_EXISTING
        held: dict[str, JsonValue] | None = None
        for name, value in extensions_in(source):
            item = _extension_item(name)
            if skips or self._marks.of([item]).get(item) == sha256_of(value):
                if held is None:
                    held = ExtensionAbility.of(self._platform).extensions()
                if name in held and (skips or held[name] == value):
                    continue
            yield name, value

    def _plan_datasets(
        self,
        source: SnapshotSource,
        scratch: ScratchState,
        batch_size: int,
        *,
        look_ups: LookUps,
    ) -> None:
        if not self._can(Capability.LINEAGE):
            self._left_out("lineage edges", source.section_count("lineage_edges"))
        total = source.section_count("datasets")
        self._progress.stage("comparing datasets", total=total, unit="datasets")
        seen = 0
        compared = compared_buckets(
            source,
            self._platform,
            mode=self._mode,
            own_versions=False,
            look_ups=look_ups,
        )
        with closing(compared) as buckets:
            for bucket in buckets:
                for lines in batches(bucket.lines, batch_size):
                    look_ups.ahead(lines)
                    steps = map(partial(self._steps.of_line, bucket), lines)
                    self._add(filter(None, steps), scratch)
                    seen += len(lines)
                    self._progress.advance(seen)
                self._add(self._steps.of_edges(bucket), scratch)

    def _add(self, steps: Iterable[Step], scratch: ScratchState) -> None:
        """Put what steps write into the scratch state."""
        planned = [*steps]
        writing = [step for step in planned if step.dataset is not None]
        passed = [step for step in planned if step.dataset is None]
        for step in passed:
            if step.action is not None:
                self._tally.count(step.urn, step.action)
        for step in self._stored(writing, scratch):
            passed.append(step)
            if step.action is not None:
                self._actions.setdefault(step.action, []).append(step.urn)
        changes = [change for step in passed for change in step.changes]
        self._surplus.extend(edge_name(change.edge) for change in changes if change.removed)
        scratch.put_edges(change.edge for change in changes if not change.removed)

    def _stored(self, steps: Sequence[Step], scratch: ScratchState) -> Iterator[Step]:
        """Store datasets, and yield the steps of those that can be stored."""

        def put(some: Sequence[Step]) -> Sequence[tuple[Step, LumosError | None]]:
            scratch.put_datasets(step.dataset for step in some if step.dataset is not None)
            return [(step, None) for step in some]

        for step, error in together(put, steps, refused=lambda step, error: (step, error)):
            if error is None:
                yield step
            else:
                self._refuse(step.name, error)

    def _plan_identities(self, source: SnapshotSource, scratch: ScratchState) -> None:
        count = source.section_count("identity_map")
        if not count:
            return
        if not self._can(Capability.IDENTITY_MAP):
            self._left_out("identities of other catalogs", count)
            return
        held = IdentityAbility.of(self._platform).identity_map()
        with scratch.database.transaction():
            for line in section_lines(source, "identity_map"):
                item = item_of(line)
                urn = str(item["urn"])
                known = held.get(Urn(urn), {})
                ids = named_texts_at(item, "ids")
                new = {each: ids[each] for each in ids if known.get(each) != ids[each]}
                self._attempt(f"identity of {urn}", partial(scratch.put_identities, urn, new))

    def _send(self, scratch: ScratchState, batch_size: int) -> None:
        settings = SyncSettings(truth=_AS_PLANNED, workers=self._workers, batch_size=batch_size)
        ends = Ends(scratch.catalog, self._platform, scratch.sent)
        tally = _ImportedTally(self._tally.recorder)
        plan = SyncPlan(ends, tally=tally)
        plan.make()
        tally.of(DATASET).unchanged += self._tally.unchanged  # the catalog took these before
        run = SyncRun(
            ends, settings, plan=plan, tally=tally, clock=self._clock, progress=self._progress
        )
        run.send()
        Removals(ends, settings, tally=tally, dry_run=False).remove_edges(
            name for name in self._surplus if edge_ends(name)[1] not in run.refused_datasets
        )
        self._tally.removed_edges += tally.of(EDGE).removed

    def _count(self, sent: SyncStates) -> None:
        """Count what the catalog acknowledged, and keep marks of extensions."""
        for action, urns in self._actions.items():
            for some in batches(urns, _AT_A_TIME):
                for urn in sent.hashes(DATASET, some):
                    self._tally.count(urn, action)
        self._tally.edges = sum(1 for _ in sent.names(EDGE))
        marks = sent.hashes(EXTENSION, [*sent.names(EXTENSION)])
        self._marks.keep({_extension_item(name): mark for name, mark in marks.items()})

    def _remember(self, source: SnapshotSource, look_ups: LookUps, batch_size: int) -> None:
        """Keep marks of the datasets that were written."""
        written = {*self._tally.created, *self._tally.updated}
        if not written:
            return
        for bucket in buckets_by_rank(source.bucket_count()):
            lines = ((urn_of_line(line).decode(), line) for line in source.bucket_lines(bucket))
            for some in batches(((urn, line) for urn, line in lines if urn in written), batch_size):
                look_ups.remember(dict(some))

    def _attempt(self, item: str, act: Callable[[], object]) -> None:
        try:
            act()
        except REFUSALS as error:
            self._refuse(item, error)

    def _refuse(self, item: str, error: LumosError) -> None:
        """Record what was refused; where nothing else would fare better, the run ends."""
        self._tally.recorder.failed(item, error)
        if ends_run(error):
            raise error

    def _left_out(self, what: str, count: int) -> None:
        if count:
            name = self._platform.name
            self._tally.recorder.warning(f"{name} keeps no {what}: {count:,} were left out")

    def _can(self, capability: Capability) -> bool:
        return capability in self._platform.capabilities


class _ImportedTally(SyncTally):
    """What is sent, named as an import does, whose report counts datasets alone."""

    @override
    def done(self, count: int) -> None:
        pass

    @override
    def item(self, kind: str, name: str) -> str:
        if kind == DATASET:
            return name
        if kind == EDGE:
            return edge_item(*edge_ends(name)[:2])
        if kind == IDENTITY:
            return f"identity of {name}"
        return _extension_item(name) if kind == EXTENSION else super().item(kind, name)


def _extension_item(name: str) -> str:
    return f"extension {name}"
