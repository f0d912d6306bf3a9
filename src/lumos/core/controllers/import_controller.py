"""Reading a snapshot into a catalog, so that it can be repeated and interrupted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from lumos.core.controllers.results import ImportResult
from lumos.core.errors import InvalidModelError, PlatformError
from lumos.core.platform.interface import Capability, Entity, MetadataPlatformInterface
from lumos.core.run_report import RunRecorder, RunReport
from lumos.feature.snapshot.import_plan import ImportMode, ImportPlan, plan_import

if TYPE_CHECKING:
    from lumos.core.controllers.publishing import Clock, Publisher, Transactional
    from lumos.core.models import LineageEdge, Snapshot, Urn

T = TypeVar("T")
DEFAULT_BATCH = 500


class ImportController:
    """What `lumos import` does.

    Each batch is one transaction, and everything written is an upsert: an interrupted import is
    finished by running it again.
    """

    def __init__(
        self,
        platform: MetadataPlatformInterface,
        publisher: Publisher,
        *,
        database: Transactional,
        open_snapshot: Callable[[str], Snapshot],
        write_lock: Callable[[str], AbstractContextManager[None]],
        keep_report: Callable[[RunReport], None],
        clock: Clock,
    ) -> None:
        self._platform = platform
        self._publisher = publisher
        self._database = database
        self._open_snapshot = open_snapshot
        self._write_lock = write_lock
        self._keep_report = keep_report
        self._clock = clock

    def run(
        self,
        reference: str,
        *,
        mode: ImportMode = ImportMode.OVERWRITE,
        dry_run: bool = False,
        batch_size: int = DEFAULT_BATCH,
    ) -> ImportResult:
        """Bring the catalog up to what a snapshot says; what it does not name stays."""
        recorder = RunRecorder("import", started_at=self._clock())
        snapshot = self._open_snapshot(reference)
        if dry_run:
            plan = self._plan(snapshot, mode)
            recorder.done_many(len(plan.datasets_to_write))
            report = self._finished(plan, recorder)
        else:
            with self._write_lock("import"):
                plan = self._plan(snapshot, mode)
                self._apply(snapshot, plan, recorder=recorder, batch_size=batch_size)
                report = self._finished(plan, recorder)
                self._keep_report(report)
        return ImportResult(
            dry_run=dry_run,
            created=tuple(dataset.urn for dataset in plan.created),
            updated=tuple(dataset.urn for dataset in plan.updated),
            unchanged=len(plan.unchanged),
            skipped=len(plan.skipped),
            lineage_edges=len(plan.edges_to_write),
            report=report,
        )

    def _finished(self, plan: ImportPlan, recorder: RunRecorder) -> RunReport:
        for urn in plan.skipped:
            recorder.skipped(urn, reason="the catalog has it already")
        return recorder.finish(at=self._clock())

    def _plan(self, snapshot: Snapshot, mode: ImportMode) -> ImportPlan:
        found = (self._platform.find_dataset(dataset.urn) for dataset in snapshot.datasets)
        existing = {dataset.urn: dataset for dataset in found if dataset is not None}
        edges = tuple(self._platform.list_edges()) if self._can(Capability.LINEAGE) else ()
        return plan_import(snapshot, existing, mode=mode, existing_edges=edges)

    def _apply(
        self, snapshot: Snapshot, plan: ImportPlan, *, recorder: RunRecorder, batch_size: int
    ) -> None:
        if self._can(Capability.ENTITIES):
            with self._database.transaction():
                for entity in _entities(snapshot):
                    self._attempt(_name(entity), recorder, self._platform.emit_entity, entity)
        edges_into = _by_downstream(plan.edges_to_write)
        for datasets in _batches(plan.datasets_to_write, batch_size):
            with self._database.transaction():
                for dataset in datasets:
                    for edge in edges_into.pop(dataset.urn, ()):
                        self._platform.emit_edge(edge)
                    if self._attempt(dataset.urn, recorder, self._publisher.publish, dataset):
                        recorder.done(dataset.urn)
        for urns in _batches(sorted(edges_into), batch_size):
            with self._database.transaction():
                for urn in urns:
                    for edge in edges_into[urn]:
                        self._platform.emit_edge(edge)
                    self._publisher.refresh(urn)
        if self._can(Capability.EXTENSIONS):
            with self._database.transaction():
                for name, value in snapshot.extensions.items():
                    self._platform.emit_extension(name, value)
        elif snapshot.extensions:
            names = ", ".join(sorted(snapshot.extensions))
            recorder.warning(f"{self._platform.name} cannot keep extensions: {names}")
        if self._can(Capability.IDENTITY_MAP):
            with self._database.transaction():
                for urn, ids in snapshot.identity_map.items():
                    for catalog, external_id in ids.items():
                        self._platform.emit_identity(urn, catalog, external_id=external_id)

    def _attempt(
        self, item: str, recorder: RunRecorder, act: Callable[[T], object], argument: T
    ) -> bool:
        """Do one step; what the catalog refuses is recorded and the import goes on."""
        try:
            act(argument)
        except (PlatformError, InvalidModelError) as error:
            if error.retryable:
                raise
            recorder.failed(item, error)
            return False
        return True

    def _can(self, capability: Capability) -> bool:
        return capability in self._platform.capabilities


def _by_downstream(edges: Sequence[LineageEdge]) -> dict[Urn, list[LineageEdge]]:
    grouped: dict[Urn, list[LineageEdge]] = {}
    for edge in edges:
        grouped.setdefault(edge.downstream_urn, []).append(edge)
    return grouped


def _entities(snapshot: Snapshot) -> Iterator[Entity]:
    yield from snapshot.users
    yield from snapshot.groups
    yield from snapshot.tags
    yield from snapshot.glossary
    yield from snapshot.domains
    yield from snapshot.jobs


def _name(entity: Entity) -> str:
    name = getattr(entity, "username", None) or getattr(entity, "name", "")
    return f"{type(entity).__name__.lower()} {name}"


def _batches(items: Sequence[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch
