"""A snapshot with the content of the newest one is not stored again, when that is asked."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from given_work import open_work
from lumos.core.controllers.snapshot_controller import SnapshotController
from lumos.core.controllers.system_controller import SystemController
from lumos.core.models import Snapshot
from lumos.core.store.snapshots.manifest import MANIFEST_NAME
from lumos.core.store.snapshots.snapshot_store import SnapshotStore
from snapshot_samples import AT, sample_snapshot

LATER = AT + timedelta(days=1)
LAST = AT + timedelta(days=2)


@pytest.fixture
def store(tmp_path: Path) -> SnapshotStore:
    return SnapshotStore(tmp_path / "snapshots", part_bytes=4_000)


def again(store: SnapshotStore, snapshot: Snapshot) -> str:
    return store.write(snapshot, at=LATER, reuse_identical=True).id


def test_the_same_content_at_another_time_is_the_newest_snapshot(store: SnapshotStore) -> None:
    first = store.write(sample_snapshot(), at=AT, reuse_identical=True)
    later = sample_snapshot().model_copy(update={"export_timestamp": LATER, "lumos_version": "9"})

    assert store.write(later, at=LATER, reuse_identical=True) == first
    assert store.list() == [first]


@pytest.mark.parametrize(
    "other",
    [sample_snapshot(39), sample_snapshot(note="edited"), sample_snapshot(complete=False)],
    ids=["a dataset less", "a description edited", "incomplete"],
)
def test_another_content_is_a_new_snapshot(store: SnapshotStore, other: Snapshot) -> None:
    first = store.write(sample_snapshot(), at=AT)

    assert again(store, other) != first.id
    assert len(store.list()) == 2


def test_only_the_newest_is_reused(store: SnapshotStore) -> None:
    store.write(sample_snapshot(), at=AT)
    store.write(sample_snapshot(39), at=LATER)

    store.write(sample_snapshot(), at=LAST, reuse_identical=True)

    assert len(store.list()) == 3


def test_a_damaged_newest_snapshot_is_not_reused(store: SnapshotStore) -> None:
    first = store.write(sample_snapshot(), at=AT)
    part = next((store.root / first.id).glob("datasets-*"))
    part.write_bytes(part.read_bytes()[:-1])

    second = again(store, sample_snapshot())

    assert second != first.id
    assert store.verify(second).ok

    (store.root / second / MANIFEST_NAME).write_bytes(b"{}")
    third = store.write(sample_snapshot(), at=LAST, reuse_identical=True)
    assert third.id not in {first.id, second}


def test_a_catalog_without_changes_gives_the_snapshot_that_is_there(tmp_path: Path) -> None:
    moments = iter([AT, LATER, LAST])
    with open_work(
        state_dir=tmp_path / "state", environment={}, clock=lambda: next(moments)
    ) as work:
        assert SystemController(work).init(tmp_path)
        first = SnapshotController(work).create(reuse_identical=True)

        assert SnapshotController(work).create(reuse_identical=True) == first
        assert SnapshotController(work).create() != first
