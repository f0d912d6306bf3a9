"""A snapshot on its way into a catalog: bucket by bucket, so that memory stays bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple, Protocol

from typing_extensions import override

from lumos.core.models import LineageEdge, LumosDataset
from lumos.core.store.line_sorter import LineSorter, SortedLine
from lumos.core.store.manifest import SnapshotHeader
from lumos.core.store.part_format import dataset_line, dataset_of, item_line, item_of, urn_of
from lumos.core.store.snapshot_files import DurableFiles, storing
from lumos.core.store.snapshot_sections import SnapshotSections
from lumos.core.store.snapshot_store import SnapshotStore
from lumos.core.store.snapshot_writer import (
    bucket_rank,
    buckets_by_rank,
    place_of_rank,
)
from lumos.feature.snapshot.bucket_work import BucketEngine, BucketWork, Codec
from lumos.feature.snapshot.import_plan import ImportMode, PlannedAction, plan_dataset
from lumos.feature.snapshot.pairs import PAIRS, BucketPair, aligned_buckets
from lumos.feature.snapshot.scratch import scratch_folder
from lumos.feature.snapshot.source import StoredSource, in_parts, section_lines

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.feature.snapshot.source import SnapshotSource

_CHANGING = {b"c": PlannedAction.CREATE, b"u": PlannedAction.UPDATE}
_MARKS = {action: mark for mark, action in _CHANGING.items()}
_IN_CATALOG, _IN_SNAPSHOT = b"0", b"1"


class Plan(NamedTuple):
    """What happens to a dataset; the dataset itself only where it is written."""

    action: PlannedAction
    dataset: LumosDataset | None = None


class Plans(Protocol):
    """What an import does to each dataset, asked in the order of `import_buckets`."""

    def of_bucket(self, place: int) -> Callable[[bytes], Plan]:
        """Return what plans the lines of the bucket at that place."""


class EdgeChange(NamedTuple):
    """An edge that is written, or one that is removed."""

    edge: LineageEdge
    removed: bool


class ImportBucket(NamedTuple):
    """The datasets of one bucket, and the changes of edges by the dataset that they lead to."""

    lines: list[bytes]
    plan: Callable[[bytes], Plan]
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
    def of_bucket(self, place: int) -> Callable[[bytes], Plan]:
        return self._plan

    def _plan(self, line: bytes) -> Plan:
        present = self._find(urn_of(line).decode())
        planned = self._plan_of(present, dataset_of(line))
        return Plan(planned.action, planned.dataset)


class PreparedPlans(Plans):
    """Plans that were made beforehand; only those that change something are held, on disk."""

    def __init__(self, changing: Iterable[SortedLine], *, buckets: int, otherwise: Plan) -> None:
        self._changing = _BucketCursor(changing, buckets)
        self._otherwise = otherwise

    @override
    def of_bucket(self, place: int) -> Callable[[bytes], Plan]:
        planned = {item.key: item.line for item in self._changing.take(place)}

        def plan(line: bytes) -> Plan:
            wanted = planned.get(urn_of(line))
            if wanted is None:
                return self._otherwise
            return Plan(_CHANGING[wanted[:1]], dataset_of(wanted[1:]))

        return plan


@contextmanager
def prepared_plans(
    source: SnapshotSource,
    present: Iterable[LumosDataset],
    *,
    mode: ImportMode,
    exact: bool,
    engine: BucketEngine,
    own_versions: bool = True,
) -> Iterator[Plans]:
    """Compare a snapshot with all datasets of a catalog on an engine, and yield what changes.

    The catalog's datasets are put into parts in a temporary folder first.
    """
    work = plan_work(mode, exact=exact, own_versions=own_versions)
    kept = PlannedAction.SKIP if mode is ImportMode.SKIP_EXISTING else PlannedAction.KEEP
    with scratch_folder() as folder, _sorter() as sorter:
        catalog = _in_store(SnapshotStore(folder), source, present=present)
        with in_parts(source, engine) as incoming:
            tasks = list(aligned_buckets(catalog, incoming, section="datasets"))
            for found in engine.run(work, tasks):
                urn = urn_of(found[1:])
                sorter.add(bucket_rank(urn), urn, line=found)
        yield PreparedPlans(sorter, buckets=source.bucket_count(), otherwise=Plan(kept))


def plan_work(
    mode: ImportMode, *, exact: bool, own_versions: bool = True
) -> BucketWork[BucketPair, bytes]:
    """Return the planning of one bucket, as every engine carries it out."""
    plan = partial(plan_pair, mode=mode, exact=exact, own_versions=own_versions)
    return BucketWork(plan, PAIRS, Codec(bytes, bytes))


def plan_pair(
    pair: BucketPair, *, mode: ImportMode, exact: bool, own_versions: bool = True
) -> Iterator[bytes]:
    """Yield each dataset that is to be written as its line behind a mark of what is done to it.

    The old side of the pair is the catalog, the new one the snapshot.
    """
    for present_lines, incoming_lines in pair.lines():
        known = {urn_of(line): line for line in present_lines}
        for line in incoming_lines:
            present = known.get(urn_of(line))
            if present == line:
                continue
            planned = plan_dataset(
                dataset_of(present) if present else None,
                dataset_of(line),
                mode=mode,
                exact=exact,
                own_versions=own_versions,
            )
            if mark := _MARKS.get(planned.action):
                yield mark + dataset_line(planned.dataset)


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


def _in_store(
    store: SnapshotStore, source: SnapshotSource, *, present: Iterable[LumosDataset]
) -> StoredSource:
    known = {name: getattr(source.header, name) for name in SnapshotHeader.model_fields}
    header = SnapshotHeader.model_validate(known)
    sections = SnapshotSections(datasets=present)
    info = store.write_sections(header, sections, at=header.export_timestamp)
    return StoredSource(store.open(info.id))


def _add_edge(sorter: LineSorter, item: dict[str, JsonValue], *, origin: bytes) -> None:
    ends = [str(item.get(name) or "") for name in ("downstream_urn", "upstream_urn", "job_urn")]
    rank = bucket_rank(ends[0].encode())
    sorter.add(rank, "\n".join(ends).encode() + origin, line=item_line(item))


def _edge(line: bytes) -> LineageEdge:
    return LineageEdge.from_json(item_of(line))
