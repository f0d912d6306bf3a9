"""A snapshot on its way into a catalog: bucket by bucket, so that memory stays bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple, Protocol

from typing_extensions import override

from lumos.core.models import LineageEdge, LumosDataset
from lumos.core.store.snapshots.line_sorter import LineSorter, SortedLine
from lumos.core.store.snapshots.part_format import dataset_of_line, item_line, item_of, urn_of_line
from lumos.core.store.snapshots.snapshot_files import DurableFiles, storing
from lumos.core.store.snapshots.snapshot_writer import (
    bucket_rank,
    buckets_by_rank,
    place_of_rank,
)
from lumos.feature.importing.plan import ImportMode, PlannedAction, plan_dataset
from lumos.feature.snapshot.scratch import scratch_folder
from lumos.feature.snapshot.source import section_lines

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.feature.snapshot.source import SnapshotSource

_IN_CATALOG, _IN_SNAPSHOT = b"0", b"1"


class BucketPlan(NamedTuple):
    """What happens to a dataset; the dataset itself only where it is written."""

    action: PlannedAction
    dataset: LumosDataset | None = None


class Plans(Protocol):
    """What an import does to each dataset, asked in the order of `import_buckets`."""

    def of_bucket(self, place: int) -> Callable[[bytes], BucketPlan]:
        """Return what plans the lines of the bucket at that place."""


class EdgeChange(NamedTuple):
    """An edge that is written, or one that is removed."""

    edge: LineageEdge
    removed: bool


class ImportBucket(NamedTuple):
    """The datasets of one bucket, and the changes of edges by the dataset that they lead to."""

    lines: list[bytes]
    plan: Callable[[bytes], BucketPlan]
    changes: dict[str, list[EdgeChange]]


def import_buckets(
    source: SnapshotSource, plans: Plans, *, edges: EdgeChanges
) -> Iterator[ImportBucket]:
    """Yield the buckets of a snapshot with all that concerns their datasets."""
    for place, bucket in enumerate(buckets_by_rank(source.bucket_count())):
        lines, plan = source.bucket_lines(bucket), plans.of_bucket(place)
        yield ImportBucket(lines, plan, edges.of_bucket(place))


class CatalogPlans(Plans):
    """Looks each dataset up in the catalog when its turn comes."""

    def __init__(
        self,
        find: Callable[[str], LumosDataset | None],
        mode: ImportMode,
        *,
        exact: bool,
        own_versions: bool = True,
    ) -> None:
        self._find = find
        self._plan_of = partial(plan_dataset, mode=mode, exact=exact, own_versions=own_versions)

    @override
    def of_bucket(self, place: int) -> Callable[[bytes], BucketPlan]:
        return self._plan

    def _plan(self, line: bytes) -> BucketPlan:
        present = self._find(urn_of_line(line).decode())
        planned = self._plan_of(present, dataset_of_line(line))
        return BucketPlan(planned.action, planned.dataset)


class EdgeChanges:
    """The edges of a snapshot that a catalog lacks or has otherwise, and those it has too many."""

    def __init__(
        self, edges: Iterable[SortedLine], *, buckets: int, mode: ImportMode, exact: bool
    ) -> None:
        self._cursor = _BucketCursor(edges, buckets)
        self._keeps_known = mode is ImportMode.SKIP_EXISTING
        self._exact = exact

    def of_bucket(self, place: int) -> dict[str, list[EdgeChange]]:
        """Return the changes by the dataset that the edges lead to; places are asked in order."""
        changes: dict[str, list[EdgeChange]] = {}
        for key, items in groupby(self._cursor.take(place), key=lambda item: item.key[:-1]):
            if found := [*self._changes([*items])]:
                changes.setdefault(key.partition(b"\n")[0].decode(), []).extend(found)
        return changes

    def _changes(self, items: list[SortedLine]) -> Iterator[EdgeChange]:
        known = [item.line for item in items if item.key.endswith(_IN_CATALOG)]
        wanted = [item.line for item in items if item.key.endswith(_IN_SNAPSHOT)]
        if known and not wanted and self._exact:
            yield EdgeChange(_edge(known[0]), removed=True)
        if not (known and self._keeps_known):
            for line in wanted:
                if line not in known:
                    yield EdgeChange(_edge(line), removed=False)


@contextmanager
def edge_changes(
    source: SnapshotSource, known: Iterable[LineageEdge], *, mode: ImportMode, exact: bool
) -> Iterator[EdgeChanges]:
    """Yield how the edges of a snapshot differ from those of a catalog; most wait on disk."""
    with _sorter() as sorter:
        for edge in known:
            _add_edge(sorter, edge.to_json(), origin=_IN_CATALOG)
        for line in section_lines(source, "lineage_edges"):
            _add_edge(sorter, item_of(line), origin=_IN_SNAPSHOT)
        yield EdgeChanges(sorter, buckets=source.bucket_count(), mode=mode, exact=exact)


class _BucketCursor:
    """Reads sorted lines bucket by bucket."""

    def __init__(self, lines: Iterable[SortedLine], buckets: int) -> None:
        self._groups = groupby(lines, key=lambda item: place_of_rank(item.rank, buckets))
        self._next: tuple[int, list[SortedLine]] | None = None

    def take(self, place: int) -> list[SortedLine]:
        """Return the lines of the bucket at a place; places are asked in ascending order."""
        if self._next is None:
            found, items = next(self._groups, (-1, iter(())))
            self._next = found, [*items]
        found, lines = self._next
        if found != place:
            return []
        self._next = None
        return lines


@contextmanager
def _sorter() -> Iterator[LineSorter]:
    with (
        scratch_folder() as folder,
        storing(folder),
        LineSorter(folder, files=DurableFiles()) as sorter,
    ):
        yield sorter


def _add_edge(sorter: LineSorter, item: dict[str, JsonValue], *, origin: bytes) -> None:
    ends = [str(item.get(name) or "") for name in ("downstream_urn", "upstream_urn", "job_urn")]
    rank = bucket_rank(ends[0].encode())
    sorter.add(rank, "\n".join(ends).encode() + origin, line=item_line(item))


def _edge(line: bytes) -> LineageEdge:
    return LineageEdge.from_json(item_of(line))
