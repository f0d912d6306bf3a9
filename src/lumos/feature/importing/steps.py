"""What an import does to each dataset of a snapshot and to the lineage that leads to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from lumos.core.errors import InvalidModelError
from lumos.core.models import DatasetLineage, LumosDataset, Urn, with_parts
from lumos.core.platform.refusals import REFUSALS
from lumos.core.store.documents import checked_key
from lumos.core.store.snapshots.part_format import item_of, urn_of_line
from lumos.feature.importing.plan import PlannedAction
from lumos.feature.snapshot.source import section_lines

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.errors import LumosError
    from lumos.feature.importing.buckets import EdgeChange, ImportBucket
    from lumos.feature.snapshot.source import SnapshotSource

_WRITING = frozenset({PlannedAction.CREATE, PlannedAction.UPDATE})


class Step(NamedTuple):
    """What an import does to a dataset and to the lineage that leads to it."""

    name: str
    """What a report calls it."""
    urn: Urn
    changes: Sequence[EdgeChange] = ()
    dataset: LumosDataset | None = None
    """What is written; None where the dataset stays as it is."""
    action: PlannedAction | None = None


class ImportSteps:
    """Makes steps of the buckets of a snapshot; what cannot be stored is refused by name."""

    def __init__(
        self, *, refused: Callable[[str, LumosError], None], keeps_edges: bool = True
    ) -> None:
        """Get ready.

        Args:
            refused: is called with what is refused and why; it raises where the run is to end.
            keeps_edges: whether the catalog keeps edges; if not, datasets list their neighbours.
        """
        self._refused = refused
        self._keeps_edges = keeps_edges

    def of_line(self, bucket: ImportBucket, line: bytes) -> Step | None:
        """Return the step of a dataset; None where it is refused."""
        urn = urn_of_line(line).decode()
        changes = self._nameable(bucket.changes.pop(urn, []))
        try:
            checked_key(urn)
            action, dataset = bucket.plan(line)
        except REFUSALS as error:
            self._refused(urn, error)
            return None
        written = dataset if action in _WRITING else None
        if written is not None and self._keeps_edges:
            # From a list of neighbours, an edge with a job would get a twin without one.
            written = with_parts(written, lineage=DatasetLineage())
        return Step(urn, Urn(urn), changes, written, action)

    def of_edges(self, bucket: ImportBucket) -> Iterator[Step]:
        """Yield steps for edges that lead to datasets which the snapshot does not have."""
        for urn in sorted(bucket.changes):
            if changes := self._nameable(written_only(bucket.changes[urn])):
                yield Step(f"lineage of {urn}", Urn(urn), changes)

    def _nameable(self, changes: Iterable[EdgeChange]) -> list[EdgeChange]:
        """Return the edges whose names can be stored; the others are refused one by one."""
        kept: list[EdgeChange] = []
        for change in changes:
            edge = change.edge
            try:
                for urn in edge.key:
                    checked_key(urn)
            except InvalidModelError as error:
                self._refused(edge_item(edge.upstream_urn, edge.downstream_urn), error)
            else:
                kept.append(change)
        return kept


def written_only(changes: Iterable[EdgeChange]) -> list[EdgeChange]:
    """Leave out removals: they are for datasets that the snapshot has."""
    return [change for change in changes if not change.removed]


def edge_item(upstream: str, downstream: str) -> str:
    """Return what a report calls an edge."""
    return f"lineage from {upstream} to {downstream}"


def extensions_in(source: SnapshotSource) -> Iterator[tuple[str, JsonValue]]:
    """Yield the extensions of a snapshot by name."""
    for line in section_lines(source, "extensions"):
        item = item_of(line)
        yield str(item["name"]), item["value"]
