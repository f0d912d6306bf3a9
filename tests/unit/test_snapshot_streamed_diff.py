"""A diff tells everything in order, however little of it fits into memory."""

from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path

import orjson
import pytest

from lumos.core.changes.policy import ChangePolicy
from lumos.core.errors import StorageFullError
from lumos.core.store.snapshots.line_sorter import LineSorter
from lumos.core.store.snapshots.snapshot_store import SnapshotStore
from lumos.entry.cli.diff_text import diff_chunks
from lumos.feature.snapshot.diff import SnapshotDiff, diff_snapshots, streamed_diff
from lumos.feature.snapshot.pair_diff import Fate
from lumos.feature.snapshot.source import LoadedSource, SnapshotSource, StoredSource
from snapshot_samples import AT, sample_dataset, sample_snapshot

JUDGE = ChangePolicy().judge


def source(numbers: range, *, note: str, store: SnapshotStore | None = None) -> SnapshotSource:
    datasets = tuple(sample_dataset(number, note=note) for number in numbers)
    snapshot = sample_snapshot(0).model_copy(update={"datasets": datasets})
    if store is None:
        return LoadedSource(snapshot, note)
    return StoredSource(store.open(store.write(snapshot, at=AT).id), note)


@pytest.fixture
def sides(tmp_path: Path) -> tuple[SnapshotSource, SnapshotSource]:
    """Two snapshots of which every dataset changed, came or went."""
    stores = [SnapshotStore(tmp_path / name, part_bytes=20_000) for name in ("old", "new")]
    return (
        source(range(120), note="before", store=stores[0]),
        source(range(20, 140), note="after", store=stores[1]),
    )


def document(old: SnapshotSource, new: SnapshotSource, *, held_bytes: int) -> bytes:
    with streamed_diff(old, new, diff_datasets=JUDGE, held_bytes=held_bytes) as found:
        return b"".join(diff_chunks(found, lambda _: True))


def test_what_waits_on_disk_is_told_as_if_it_were_held(
    sides: tuple[SnapshotSource, SnapshotSource],
) -> None:
    texts = {document(*sides, held_bytes=size) for size in (2_000, 50_000, 100_000_000)}

    (text,) = texts
    answer = orjson.loads(text)
    assert orjson.dumps(answer, option=orjson.OPT_INDENT_2) + b"\n" == text
    assert answer == diff_snapshots(*sides, diff_datasets=JUDGE).as_json()
    for name in ("added", "removed", "changed"):
        assert answer[name] == sorted(answer[name])
        assert len(answer[name]) == answer["summary"]["datasets"][name] > 0
    order = [(change["dataset"], change["path"], change["rule"]) for change in answer["changes"]]
    assert order == sorted(order)
    assert len(order) == answer["summary"]["changes"] > 100


def test_parts_and_memory_give_the_same_diff(
    sides: tuple[SnapshotSource, SnapshotSource],
) -> None:
    held = source(range(120), note="before"), source(range(20, 140), note="after")

    assert diff_snapshots(*held, diff_datasets=JUDGE) == diff_snapshots(*sides, diff_datasets=JUDGE)
    mixed = diff_snapshots(held[0], sides[1], diff_datasets=JUDGE)
    assert mixed == diff_snapshots(*sides, diff_datasets=JUDGE)


def test_equal_snapshots_are_an_empty_document() -> None:
    same = source(range(3), note="same")

    answer = orjson.loads(document(same, same, held_bytes=1))

    assert answer["changes"] == answer["changed"] == answer["unobserved"] == []
    assert answer["summary"]["worst_level"] is None
    assert SnapshotDiff(old="a", new="b").is_empty


def test_each_dataset_has_one_fate(sides: tuple[SnapshotSource, SnapshotSource]) -> None:
    with streamed_diff(*sides, diff_datasets=JUDGE, held_bytes=3_000) as found:
        fates = [fate for fate, _ in found.urns()]
        urns = [urn for _, urn in found.urns()]

    assert fates == sorted(fates, key=[*Fate].index)
    assert len({*urns}) == len(urns) == 140


def test_what_is_held_takes_little_more_memory_than_it_is_long(
    sides: tuple[SnapshotSource, SnapshotSource],
) -> None:
    length = len(document(*sides, held_bytes=100_000_000))
    tracemalloc.start()
    try:
        with streamed_diff(*sides, diff_datasets=JUDGE) as found:
            gc.collect()
            held, _ = tracemalloc.get_traced_memory()
            assert found.totals.changes > 100
    finally:
        tracemalloc.stop()

    assert held < 3 * length


def test_a_disk_without_room_is_said(
    sides: tuple[SnapshotSource, SnapshotSource], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_sorter: LineSorter) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(LineSorter, "_spill", full)

    with (
        pytest.raises(StorageFullError, match="no space"),
        streamed_diff(*sides, diff_datasets=JUDGE, held_bytes=2_000),
    ):
        pass
