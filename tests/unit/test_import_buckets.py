"""Imports bucket by bucket: the order of buckets, exact lineage, and damage found first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from given_work import open_work
from lumos.core.controllers.catalog_controller import CatalogController
from lumos.core.controllers.import_controller import ImportController
from lumos.core.controllers.snapshot_controller import SnapshotController
from lumos.core.errors import CorruptSnapshotError
from lumos.core.models import LineageEdge, Snapshot, load_snapshot
from lumos.core.runtime.unit_of_work import UnitOfWork
from lumos.core.store.snapshots.part_format import bucket_of
from lumos.core.store.snapshots.snapshot_store import SnapshotStore
from lumos.core.store.snapshots.snapshot_writer import bucket_rank, buckets_by_rank, place_of_rank
from lumos.feature.importing.buckets import (
    CatalogPlans,
    EdgeChange,
    edge_changes,
    import_buckets,
)
from lumos.feature.importing.plan import ImportMode
from lumos.feature.snapshot.source import LoadedSource, SnapshotSource, StoredSource
from snapshot_samples import AT, sample_dataset, sample_snapshot

HEADER: dict[str, Any] = {
    "snapshot_schema_version": 1,
    "lumos_version": "0",
    "export_timestamp": "2026-01-01T00:00:00Z",
    "source_platform": "x",
}
A, B, C = (f"lumos://s3/{name}" for name in "abc")
JOB = "lumos://airflow/dag/job"


@pytest.fixture
def work(tmp_path: Path) -> Iterator[UnitOfWork]:
    with open_work(state_dir=tmp_path / "state", environment={}) as work:
        yield work


def world(*edges: tuple[str, str], names: str = "abc", complete: bool = True) -> Snapshot:
    datasets = [{"urn": f"lumos://s3/{name}", "name": name, "platform": "s3"} for name in names]
    listed = [{"upstream_urn": source, "downstream_urn": target} for source, target in edges]
    return load_snapshot(
        {**HEADER, "complete": complete, "datasets": datasets, "lineage_edges": listed}
    )


class Catalog:
    """The embedded catalog, filled from snapshots."""

    def __init__(self, work: UnitOfWork, folder: Path) -> None:
        self._work = work
        self._store = SnapshotStore(folder / "given")

    def take(self, snapshot: Snapshot, mode: ImportMode = ImportMode.UPDATE, **more: Any) -> Any:
        info = self._store.write(snapshot, at=AT)
        place = str(self._store.root / info.id)
        return ImportController(self._work).run(place, mode=mode, **more)

    @property
    def edges(self) -> list[tuple[str, str]]:
        exported = SnapshotController(self._work).opened("embedded").load()
        return [(edge.upstream_urn, edge.downstream_urn) for edge in exported.lineage_edges]

    def versions(self, urn: str) -> list[str]:
        history = CatalogController(self._work).history(urn).schema_history
        return [version.version for version in history]


@pytest.fixture
def catalog(work: UnitOfWork, tmp_path: Path) -> Catalog:
    return Catalog(work, tmp_path)


def test_overwriting_removes_lineage_that_a_complete_snapshot_lacks(catalog: Catalog) -> None:
    catalog.take(world((A, B), (B, C)))

    planned = catalog.take(world((A, B)), ImportMode.OVERWRITE, dry_run=True)
    result = catalog.take(world((A, B)), ImportMode.OVERWRITE)

    for told in (planned, result):
        assert (told.lineage_edges, told.lineage_edges_removed) == (0, 1)
        assert told.updated == (C,)
    assert catalog.edges == [(A, B)]
    assert len(catalog.versions(C)) == 2
    assert catalog.versions(B) == ["1.0.0"]
    again = catalog.take(world((A, B)), ImportMode.OVERWRITE)
    assert (again.unchanged, again.lineage_edges_removed) == (3, 0)


@pytest.mark.parametrize("mode", [ImportMode.UPDATE, ImportMode.MERGE, ImportMode.SKIP_EXISTING])
def test_no_other_mode_removes_lineage(catalog: Catalog, mode: ImportMode) -> None:
    catalog.take(world((A, B), (B, C)))

    assert catalog.take(world((A, B)), mode).lineage_edges_removed == 0
    assert catalog.edges == [(A, B), (B, C)]


def test_an_incomplete_snapshot_removes_no_lineage(catalog: Catalog) -> None:
    catalog.take(world((A, B), (B, C)))

    result = catalog.take(world((A, B), complete=False), ImportMode.OVERWRITE)

    assert result.lineage_edges_removed == 0
    assert catalog.edges == [(A, B), (B, C)]


def test_lineage_of_datasets_that_the_snapshot_does_not_name_stays(catalog: Catalog) -> None:
    catalog.take(world((A, B), (B, C)))

    result = catalog.take(world(names="ab"), ImportMode.OVERWRITE)

    assert result.lineage_edges_removed == 1
    assert catalog.edges == [(B, C)]


def test_a_damaged_snapshot_is_refused_before_anything_is_written(
    work: UnitOfWork, tmp_path: Path
) -> None:
    store = SnapshotStore(tmp_path / "given", part_bytes=4_000)
    info = store.write(sample_snapshot(200), at=AT)
    part = sorted((store.root / info.id).glob("datasets-*"))[-1]
    part.write_bytes(part.read_bytes()[:-1])

    with pytest.raises(CorruptSnapshotError):
        ImportController(work).run(str(store.root / info.id))

    assert not (tmp_path / "state").exists()


def test_a_snapshot_of_many_buckets_arrives_whole(work: UnitOfWork, tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path / "given", part_bytes=4_000)
    snapshot = sample_snapshot(200)
    info = store.write(snapshot, at=AT)

    result = ImportController(work).run(str(store.root / info.id), batch_size=7)

    assert result.created == tuple(dataset.urn for dataset in snapshot.datasets)
    assert result.lineage_edges == 199
    exported = SnapshotController(work).opened("embedded").load()
    assert exported.lineage_edges == snapshot.lineage_edges
    assert [each.lineage for each in exported.datasets] == [
        each.lineage for each in snapshot.datasets
    ]
    assert exported.users == snapshot.users
    assert exported.identity_map == snapshot.identity_map
    assert exported.extensions == snapshot.extensions
    again = ImportController(work).run(str(store.root / info.id))
    assert (again.unchanged, again.lineage_edges) == (200, 0)


@given(st.integers(0, 8), st.binary(min_size=1, max_size=20))
def test_ranks_run_through_the_buckets_in_their_order(power: int, key: bytes) -> None:
    buckets = 1 << power
    order = buckets_by_rank(buckets)

    assert sorted(order) == [*range(buckets)]
    assert order[place_of_rank(bucket_rank(key), buckets)] == bucket_of(key, buckets)


Change = tuple[str, str, bool]


@given(
    known=st.sets(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=20),
    wanted=st.sets(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=20),
    exact=st.booleans(),
)
def test_changes_of_edges_are_the_difference_of_both_sides(
    tmp_path_factory: pytest.TempPathFactory,
    known: set[tuple[int, int]],
    wanted: set[tuple[int, int]],
    exact: bool,
) -> None:
    def edges(pairs: set[tuple[int, int]]) -> list[LineageEdge]:
        return [
            LineageEdge(
                upstream_urn=sample_dataset(first).urn,
                downstream_urn=sample_dataset(second + 10).urn,
            )
            for first, second in sorted(pairs)
        ]

    base = sample_snapshot(30)
    snapshot = base.model_copy(update={"lineage_edges": tuple(edges(wanted))})
    store = SnapshotStore(tmp_path_factory.mktemp("edges"), part_bytes=2_000)
    stored = StoredSource(store.open(store.write(snapshot, at=AT).id))
    expected = {(edge.key[:2], False) for edge in edges(wanted - known)}
    if exact:
        expected |= {(edge.key[:2], True) for edge in edges(known - wanted)}

    for source in (stored, LoadedSource(snapshot, "memory")):
        found = _changes(source, edges(known), exact=exact)
        assert {(change.edge.key[:2], change.removed) for change in found} == expected
        assert len(found) == len(expected)


def _changes(source: SnapshotSource, known: list[LineageEdge], *, exact: bool) -> list[EdgeChange]:
    plans = CatalogPlans(lambda _: None, ImportMode.OVERWRITE, exact=exact)
    with edge_changes(source, known, mode=ImportMode.OVERWRITE, exact=exact) as edges:
        return [
            change
            for bucket in import_buckets(source, plans, edges=edges)
            for changes in bucket.changes.values()
            for change in changes
        ]
