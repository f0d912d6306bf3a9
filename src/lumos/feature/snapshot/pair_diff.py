"""Comparing one pair of buckets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol

from lumos.core.models import (
    Change,
    DatasetLineage,
    EdgeBasis,
    LineageEdge,
    LumosDataset,
    Urn,
    with_parts,
)
from lumos.core.models.sharing import Known, built_beside
from lumos.core.store.snapshots.part_format import (
    dataset_item_of,
    dataset_of_line,
    differing_lines,
    item_of,
    key_of_line,
    lines_of,
    urn_of_line,
)

if TYPE_CHECKING:
    from lumos.feature.snapshot.pairs import BucketPair

Sides = tuple[Urn, LumosDataset | None, LumosDataset | None]
_EDGES = "lineage_edges"
_INFERRED = f'"{EdgeBasis.INFERRED}"'.encode()


class DiffDatasets(Protocol):
    """Returns what changed from one state of a dataset to another; `None` is not to be there."""

    def __call__(
        self, old: LumosDataset | None, new: LumosDataset | None, /, *, observed: bool = True
    ) -> tuple[Change, ...]:
        """Return the changes; where not `observed`, the new state could not be looked at."""


DiffEdges = Callable[[LineageEdge | None, LineageEdge | None], tuple[Change, ...]]
"""Returns what changed in one step of lineage; `None` is not to be there."""


class FurtherDiffs(NamedTuple):
    """What is compared besides the contracts of datasets, if anything."""

    edges: DiffEdges | None = None
    """Compares what two snapshots say of one step of lineage."""
    observations: Callable[[LumosDataset, LumosDataset], tuple[Change, ...]] | None = None
    """Compares what was seen of a dataset; to look for that, more has to be parsed."""


NOTHING_FURTHER = FurtherDiffs()


class Fate(StrEnum):
    """What happened to a dataset that differs."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    UNOBSERVED = "unobserved"


class DatasetDifference(NamedTuple):
    """What happened to one dataset; without a fate it is as it was to those who use it."""

    urn: Urn
    fate: Fate | None = None
    changes: tuple[Change, ...] = ()


class ItemDifferences(NamedTuple):
    """How many items of a section differ in some buckets."""

    section: str
    added: int = 0
    removed: int = 0
    changed: int = 0


def diff_pair(
    pair: BucketPair,
    *,
    diff_datasets: DiffDatasets,
    new_is_complete: bool,
    further: FurtherDiffs = NOTHING_FURTHER,
) -> Iterator[DatasetDifference | ItemDifferences]:
    """Compare the buckets of a pair; only what differs is parsed.

    Raises:
        CorruptSnapshotError: a part is damaged.
    """
    if pair.section != "datasets":
        for text, other in pair.differing():
            yield from _diff_items(
                pair.section, lines_of(text), new_lines=lines_of(other), diff_edges=further.edges
            )
        return
    held = pair.held()
    observed = further.observations is not None
    sides = _held_sides(*held) if held else _stored_sides(pair, observations=observed)
    for urn, old, new in sides:
        if new is None and not new_is_complete:
            yield DatasetDifference(urn, Fate.UNOBSERVED, diff_datasets(old, None, observed=False))
            continue
        if old and new and not new_is_complete:
            new = _with_unobserved_lineage(old, new)  # noqa: PLW2901 - what is compared
        found = _difference(urn, old, new=new, diff_datasets=diff_datasets)
        if old and new and further.observations:
            found = found._replace(changes=found.changes + further.observations(old, new))
        yield found


def _stored_sides(pair: BucketPair, *, observations: bool) -> Iterator[Sides]:
    """Yield the datasets whose contracts differ; with `observations`, all whose lines differ."""
    for old, new in pair.differing():
        for old_line, new_line in differing_lines(old, new, observations=observations):
            if old_line is None:
                urn = Urn(urn_of_line(new_line or b"").decode())
                yield urn, None, dataset_of_line(new_line) if new_line else None
                continue
            document = dataset_item_of(old_line)
            known = Known(document, LumosDataset.from_json(document))
            after = built_beside(dataset_item_of(new_line), known) if new_line else None
            yield known.dataset.urn, known.dataset, after


def _held_sides(old: Sequence[LumosDataset], new: Sequence[LumosDataset]) -> Iterator[Sides]:
    """Yield the datasets that differ, of two sequences sorted by URN."""
    left, right = iter(old), iter(new)
    before, after = next(left, None), next(right, None)
    while before is not None or after is not None:
        if before is not None and (after is None or before.urn < after.urn):
            yield before.urn, before, None
            before = next(left, None)
        elif after is not None and (before is None or after.urn < before.urn):
            yield after.urn, None, after
            after = next(right, None)
        elif before is not None:
            if before is not after and before != after:
                yield before.urn, before, after
            before, after = next(left, None), next(right, None)


def _difference(
    urn: Urn, old: LumosDataset | None, *, new: LumosDataset | None, diff_datasets: DiffDatasets
) -> DatasetDifference:
    changes = diff_datasets(old, new)
    if old is None or new is None:
        return DatasetDifference(urn, Fate.ADDED if old is None else Fate.REMOVED, changes)
    # Without changes the stored hashes may only be of another formula; it costs to know.
    differs = changes or old.contract_hash != new.contract_hash
    return DatasetDifference(urn, Fate.CHANGED if differs else None, changes)


def _with_unobserved_lineage(old: LumosDataset, new: LumosDataset) -> LumosDataset:
    """Keep the neighbours that were not seen again: not to be seen is not to be gone."""
    seen = {*new.lineage.upstream}
    lineage = DatasetLineage(
        upstream=(*old.lineage.upstream, *seen),
        downstream=(*old.lineage.downstream, *new.lineage.downstream),
        inferred=(
            *(each for each in old.lineage.inferred if each not in seen),
            *new.lineage.inferred,
        ),
    )
    return new if lineage == new.lineage else with_parts(new, lineage=lineage)


def _diff_items(
    section: str,
    old_lines: list[bytes],
    *,
    new_lines: list[bytes],
    diff_edges: DiffEdges | None,
) -> Iterator[DatasetDifference | ItemDifferences]:
    """Yield how many items differ and, of steps of lineage, what changed."""
    before, after = set(old_lines), set(new_lines)
    gone = {key_of_line(section, line): line for line in before - after}
    come = {key_of_line(section, line): line for line in after - before}
    both = gone.keys() & come.keys()
    yield ItemDifferences(section, len(come) - len(both), len(gone) - len(both), len(both))
    if section == _EDGES and diff_edges is not None:
        inferred = {key for side in (gone, come) for key, line in side.items() if _INFERRED in line}
        for key in sorted(both | inferred):
            old, new = (
                LineageEdge.from_json(item_of(side[key])) if key in side else None
                for side in (gone, come)
            )
            edge = new or old
            if edge is not None and (changes := diff_edges(old, new)):
                yield DatasetDifference(edge.downstream_urn, changes=changes)
