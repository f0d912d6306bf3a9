"""Two snapshots are compared in all that they hold, without reading what is the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from lumos.core.models import LineageEdge, LumosDataset, Snapshot, with_parts
from lumos.core.store.snapshots.snapshot_store import SnapshotStore
from lumos.feature.snapshot.canonical_diff import MOST_EXAMPLES, canonical_diff
from lumos.feature.snapshot.source import LoadedSource, SnapshotSource, StoredSource
from snapshot_samples import AT, sample_snapshot

SIZE = 120


def stored(snapshot: Snapshot, folder: Path, *, part_bytes: int = 10_000) -> StoredSource:
    store = SnapshotStore(folder, part_bytes=part_bytes)
    return StoredSource(store.open(store.write(snapshot, at=AT).id))


def worse() -> Snapshot:
    """Return a snapshot in which every third dataset lost something, and other things did."""
    whole = sample_snapshot(SIZE)
    datasets = [_worse(number, each) for number, each in enumerate(whole.datasets)]
    edges = [
        LineageEdge.from_json({**each.to_json(), "confidence": 0.5}) if number < 2 else each
        for number, each in enumerate(whole.lineage_edges)
    ]
    return whole.model_copy(
        update={
            "datasets": tuple(datasets[:-1]),
            "lineage_edges": tuple(edges[:-1]),
            "tags": (),
            "extensions": {},
        }
    )


def _worse(number: int, dataset: LumosDataset) -> LumosDataset:
    if number % 3 == 0:
        return with_parts(dataset, statistics=None)
    return with_parts(dataset, tags=(*dataset.tags, "late")) if number % 3 == 1 else dataset


def numbers(old: SnapshotSource, new: SnapshotSource) -> dict[str, tuple[int, int, int]]:
    found = canonical_diff(old, new)
    return {each.concept: (each.lacking, each.differing, each.more) for each in found.concepts}


def test_what_is_lost_is_counted_by_concept(tmp_path: Path) -> None:
    old, new = stored(sample_snapshot(SIZE), tmp_path / "old"), stored(worse(), tmp_path / "new")
    assert numbers(old, new) == {
        "dataset": (1, 0, 0),
        "tag": (0, 0, 40),
        "statistics": (40, 0, 0),
        "lineage_edge": (1, 2, 0),
        "tag_definition": (1, 0, 0),
        "catalog_extension": (1, 0, 0),
    }
    found = canonical_diff(old, new)
    assert found.datasets == len(found.unlike) == 80
    assert [each.urn for each in found.unlike] == sorted(each.urn for each in found.unlike)
    assert found.unlike[0].concepts == ("statistics",)
    assert found.of("dataset").examples == (f"lumos://s3/lake/raw/table_{SIZE - 1:05d}",)
    assert found.of("statistics").examples == tuple(
        f"lumos://s3/lake/raw/table_{number:05d}" for number in range(0, 3 * MOST_EXAMPLES, 3)
    )
    assert found.of("tag").examples == ()
    assert found.of("quality").lacking == 0


@pytest.mark.parametrize("part_bytes", [2_000, 10_000, 1_000_000])
def test_it_makes_no_difference_how_the_sides_are_cut(tmp_path: Path, part_bytes: int) -> None:
    whole = stored(sample_snapshot(SIZE), tmp_path / "old")
    other = stored(worse(), tmp_path / "new", part_bytes=part_bytes)
    held = LoadedSource(worse(), "held")
    expected = canonical_diff(LoadedSource(sample_snapshot(SIZE), "whole"), held)
    assert canonical_diff(whole, other) == expected
    assert canonical_diff(whole, held) == expected


def test_parts_with_equal_checksums_are_not_read(tmp_path: Path) -> None:
    whole = sample_snapshot(SIZE)
    old, new = stored(whole, tmp_path / "old"), stored(whole, tmp_path / "new")
    parts = [*tmp_path.rglob("*.jsonl.zst")]
    assert parts
    for part in parts:
        part.unlink()
    assert canonical_diff(old, new).concepts == ()
