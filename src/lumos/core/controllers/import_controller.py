"""Reading a snapshot into a catalog, so that it can be repeated and interrupted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from lumos.core.controllers.results import ImportResult
from lumos.core.errors import InvalidModelError, PlatformError
from lumos.core.models import DatasetLineage, LumosDataset, with_parts
from lumos.core.platform.interface import Capability, MetadataPlatformInterface
from lumos.core.run_report import RunRecorder, RunReport
from lumos.feature.snapshot.import_plan import ImportMode, PlannedAction, plan_dataset

if TYPE_CHECKING:
    from lumos.core.controllers.publishing import Clock, Publisher, Transactional
    from lumos.core.models import LineageEdge, Snapshot, Urn

T = TypeVar("T")
DEFAULT_BATCH = 500


class ImportTarget(NamedTuple):
    """A catalog that can be written, with the database that its versions are kept in."""

    platform: MetadataPlatformInterface
    publisher: Publisher
    database: Transactional


@dataclass
class _Tally:
    """What an import did to datasets and edges."""

    recorder: RunRecorder
    created: list[Urn] = field(default_factory=list)
    updated: list[Urn] = field(default_factory=list)
    unchanged: int = 0
    skipped: int = 0
    edges: int = 0

    def count(self, dataset: LumosDataset, action: PlannedAction) -> None:
        if action is PlannedAction.KEEP:
            self.unchanged += 1
        elif action is PlannedAction.SKIP:
            self.skipped += 1
            self.recorder.skipped(dataset.urn, reason="the catalog has it already")
        else:
            (self.created if action is PlannedAction.CREATE else self.updated).append(dataset.urn)
            self.recorder.done(dataset.urn)


class ImportController:
    """What `lumos import` does.

    Each batch is one transaction, and everything written is an upsert: an interrupted import is
    finished by running it again.
    """

    def __init__(
        self,
        *,
        open_snapshot: Callable[[str], Snapshot],
        look: Callable[[], MetadataPlatformInterface | None],
        target: Callable[[], ImportTarget],
        write_lock: Callable[[str], AbstractContextManager[None]],
        keep_report: Callable[[RunReport], None],
        clock: Clock,
    ) -> None:
        """Take the ways to the parts, so that a wrong input or a dry run touches no state.

        Args:
            open_snapshot: loads the snapshot that the user named.
            look: the catalog for reading only; None where there is none yet.
            target: the catalog for writing.
            write_lock: keeps other writers away.
            keep_report: stores what the run did.
            clock: the time.
        """
        self._open_snapshot = open_snapshot
        self._look = look
        self._target = target
        self._write_lock = write_lock
        self._keep_report = keep_report
        self._clock = clock

    def run(
        self,
        reference: str,
        *,
        mode: ImportMode = ImportMode.UPDATE,
        dry_run: bool = False,
        batch_size: int = DEFAULT_BATCH,
    ) -> ImportResult:
        """Bring the catalog up to what a snapshot says; what it does not name stays."""
        tally = _Tally(RunRecorder("import", started_at=self._clock()))
        snapshot = self._open_snapshot(reference)
        if dry_run:
            self._rehearse(snapshot, mode, tally=tally)
            report = tally.recorder.finish(at=self._clock())
        else:
            with self._write_lock("import"):
                ImportRun(self._target(), mode, tally=tally).apply(snapshot, batch_size)
                report = tally.recorder.finish(at=self._clock())
                self._keep_report(report)
        return ImportResult(
            dry_run=dry_run,
            created=tuple(tally.created),
            updated=tuple(tally.updated),
            unchanged=tally.unchanged,
            skipped=tally.skipped,
            lineage_edges=tally.edges,
            report=report,
        )

    def _rehearse(self, snapshot: Snapshot, mode: ImportMode, *, tally: _Tally) -> None:
        catalog = self._look()
        for dataset in snapshot.datasets:
            present = catalog.find_dataset(dataset.urn) if catalog else None
            tally.count(dataset, plan_dataset(present, dataset, mode=mode).action)
        known = _known_edges(catalog) if catalog else {}
        tally.edges = sum(1 for edge in snapshot.lineage_edges if known.get(edge.key) != edge)


class ImportRun:
    """One import that is under way."""

    def __init__(self, target: ImportTarget, mode: ImportMode, *, tally: _Tally) -> None:
        self._platform, self._publisher, self._database = target
        self._mode = mode
        self._tally = tally

    def apply(self, snapshot: Snapshot, batch_size: int) -> None:
        """Write everything that the catalog can keep; what it cannot is named in the report."""
        self._apply_entities(snapshot)
        edges_into = self._edges_to_write(snapshot)
        for datasets in _batches(snapshot.datasets, batch_size):
            with self._database.transaction():
                for dataset in datasets:
                    edges = edges_into.pop(dataset.urn, [])
                    self._attempt(dataset.urn, partial(self._put, dataset, edges))
        for urns in _batches(sorted(edges_into), batch_size):
            with self._database.transaction():
                for urn in urns:
                    edges = edges_into[urn]
                    self._attempt(f"lineage of {urn}", partial(self._lead, urn, edges))
        self._apply_rest(snapshot)

    def _put(self, dataset: LumosDataset, edges: Sequence[LineageEdge]) -> None:
        present = self._platform.find_dataset(dataset.urn)
        planned = plan_dataset(present, dataset, mode=self._mode)
        for edge in edges:
            self._platform.emit_edge(edge)
        if planned.action in {PlannedAction.CREATE, PlannedAction.UPDATE}:
            self._publisher.publish(self._without_listed_lineage(planned.dataset))
        elif edges:
            self._publisher.refresh(dataset.urn)
        self._tally.edges += len(edges)
        self._tally.count(dataset, planned.action)

    def _lead(self, urn: Urn, edges: Sequence[LineageEdge]) -> None:
        for edge in edges:
            self._platform.emit_edge(edge)
        self._publisher.refresh(urn)
        self._tally.edges += len(edges)

    def _without_listed_lineage(self, dataset: LumosDataset) -> LumosDataset:
        """Leave lineage to the edges: from a list alone, edges with a job would get a twin."""
        if not self._can(Capability.LINEAGE):
            return dataset
        return with_parts(dataset, lineage=DatasetLineage())

    def _apply_entities(self, snapshot: Snapshot) -> None:
        from lumos.core.controllers.import_entities import entities_of, planned_entities

        if not self._can(Capability.ENTITIES):
            self._left_out("people, tags, terms, domains or jobs", len(entities_of(snapshot)))
            return
        with self._database.transaction():
            for name, entity in planned_entities(self._platform, snapshot, mode=self._mode):
                self._attempt(name, partial(self._platform.emit_entity, entity))

    def _edges_to_write(self, snapshot: Snapshot) -> dict[Urn, list[LineageEdge]]:
        if not self._can(Capability.LINEAGE):
            self._left_out("lineage edges", len(snapshot.lineage_edges))
            return {}
        known = _known_edges(self._platform)
        grouped: dict[Urn, list[LineageEdge]] = {}
        for edge in snapshot.lineage_edges:
            present = known.get(edge.key)
            kept = present is not None and self._mode is ImportMode.SKIP_EXISTING
            if present != edge and not kept:
                grouped.setdefault(edge.downstream_urn, []).append(edge)
        return grouped

    def _apply_rest(self, snapshot: Snapshot) -> None:
        with self._database.transaction():
            if self._can(Capability.EXTENSIONS):
                known = self._platform.extensions() if snapshot.extensions else {}
                for name, value in snapshot.extensions.items():
                    if name not in known or self._mode is not ImportMode.SKIP_EXISTING:
                        self._platform.emit_extension(name, value)
            else:
                self._left_out("extensions", len(snapshot.extensions))
            if self._can(Capability.IDENTITY_MAP):
                for urn, ids in snapshot.identity_map.items():
                    self._attempt(f"identity of {urn}", partial(self._name, urn, ids))
            else:
                self._left_out("identities of other catalogs", len(snapshot.identity_map))

    def _name(self, urn: Urn, ids: Mapping[str, str]) -> None:
        for catalog, external_id in ids.items():
            self._platform.emit_identity(urn, catalog, external_id=external_id)

    def _attempt(self, item: str, act: Callable[[], None]) -> None:
        """Do one step whole or not at all; what is refused is recorded and the import goes on."""
        try:
            with self._database.transaction():
                act()
        except (PlatformError, InvalidModelError) as error:
            if error.retryable:
                raise
            self._tally.recorder.failed(item, error)

    def _left_out(self, what: str, count: int) -> None:
        if count:
            name = self._platform.name
            self._tally.recorder.warning(f"{name} keeps no {what}: {count:,} were left out")

    def _can(self, capability: Capability) -> bool:
        return capability in self._platform.capabilities


def _known_edges(platform: MetadataPlatformInterface) -> dict[tuple[str, str, str], LineageEdge]:
    if Capability.LINEAGE not in platform.capabilities:
        return {}
    return {edge.key: edge for edge in platform.list_edges()}


def _batches(items: Sequence[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch
