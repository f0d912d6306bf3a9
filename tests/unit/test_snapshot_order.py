"""The order of stored snapshots follows from when they were stored, not from any clock."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from typing_extensions import override

from lumos.core.errors import CorruptSnapshotError, SnapshotNotFoundError
from lumos.core.store.settings import RetentionSettings
from lumos.core.store.snapshots.manifest import MANIFEST_NAME, Manifest
from lumos.core.store.snapshots.retention import prunable
from lumos.core.store.snapshots.snapshot_files import DurableFiles
from lumos.core.store.snapshots.snapshot_order import ORDER_NAME
from lumos.core.store.snapshots.snapshot_store import SnapshotStore
from snapshot_samples import AT, sample_snapshot

AHEAD = timedelta(days=365)
TESTS = Path(__file__).parents[1]


@pytest.fixture
def store(tmp_path: Path) -> SnapshotStore:
    return SnapshotStore(tmp_path / "store")


def put(store: SnapshotStore, note: str, at: datetime = AT) -> str:
    return store.write(sample_snapshot(2, note=note), at=at).id


def listed(store: SnapshotStore) -> list[str]:
    return [info.id for info in store.list()]


def latest(store: SnapshotStore) -> str | None:
    newest = store.latest()
    return newest.id if newest else None


def without_number(store: SnapshotStore, identity: str) -> None:
    """Make a snapshot look as an older Lumos wrote it."""
    path = store.root / identity / MANIFEST_NAME
    manifest = Manifest.parse(path.read_bytes(), where=identity)
    old = manifest.model_copy(update={"sequence": None, "manifest_version": 1})
    path.write_bytes(old.render())
    assert b"sequence" not in path.read_bytes()


def test_one_run_with_a_clock_ahead_does_not_hold_the_latest_snapshot(
    store: SnapshotStore,
) -> None:
    before = put(store, "before")
    ahead = put(store, "ahead", AT + AHEAD)
    after = put(store, "after", AT + timedelta(hours=1))

    assert listed(store) == [before, ahead, after]
    assert latest(store) == store.open("latest").info.id == after
    with pytest.raises(SnapshotNotFoundError) as unknown:
        store.open("20200101T000000Z-00000000")
    assert unknown.value.hint == f"the newest are {after}, {ahead}, {before}"
    removed = prunable(store.list(), RetentionSettings(keep_last=1), now=AT + timedelta(hours=2))
    assert [info.id for info in removed] == [before, ahead]


@pytest.mark.parametrize("damage", ["missing", "empty", "no JSON", "another shape"])
def test_the_order_is_in_the_manifests_too(store: SnapshotStore, damage: str) -> None:
    ids = [put(store, "one", AT + AHEAD), put(store, "two"), put(store, "three", AT - AHEAD)]
    note = store.root / ORDER_NAME
    texts = {"empty": "", "no JSON": "{", "another shape": '{"snapshots": [1], "next": {}}'}
    if damage == "missing":
        note.unlink()
    else:
        note.write_text(texts[damage])

    assert listed(store) == ids
    assert latest(store) == ids[-1]
    assert store.write(sample_snapshot(2, note="four"), at=AT).sequence == 4


def test_a_note_from_a_backup_neither_hides_a_snapshot_nor_repeats_a_number(
    store: SnapshotStore,
) -> None:
    first = put(store, "one", AT + AHEAD)
    backup = (store.root / ORDER_NAME).read_bytes()
    second = put(store, "two")
    (store.root / ORDER_NAME).write_bytes(backup)

    assert latest(store) == second
    assert store.write(sample_snapshot(2, note="three"), at=AT).sequence == 3
    assert listed(store)[:2] == [first, second]


def test_a_note_that_contradicts_a_manifest_is_not_believed(store: SnapshotStore) -> None:
    ids = [put(store, "one"), put(store, "two")]
    wrong = {"next": 3, "snapshots": {ids[0]: 2, ids[1]: 1}}
    (store.root / ORDER_NAME).write_text(json.dumps(wrong))

    assert latest(store) == ids[1]


def test_a_number_is_not_given_twice_after_the_newest_was_removed(store: SnapshotStore) -> None:
    put(store, "one")
    assert store.remove(put(store, "two", AT + timedelta(hours=1)))

    assert store.write(sample_snapshot(2, note="three"), at=AT).sequence == 3


def test_snapshots_of_an_older_lumos_come_first_in_the_order_of_their_times(
    store: SnapshotStore,
) -> None:
    old = [put(store, "a", AT + AHEAD), put(store, "b"), put(store, "c", AT - AHEAD)]
    for identity in old:
        without_number(store, identity)
    (store.root / ORDER_NAME).unlink()
    by_time = sorted(old)

    assert listed(store) == by_time
    assert latest(store) == by_time[-1]
    new = store.write(sample_snapshot(2, note="new"), at=AT)
    assert new.sequence == 1
    assert listed(store) == [*by_time, new.id]
    assert latest(store) == new.id
    assert all(store.verify(identity).ok for identity in listed(store))


def test_the_content_hash_does_not_depend_on_the_number(store: SnapshotStore) -> None:
    put(store, "other")
    infos = [store.write(sample_snapshot(2), at=AT + timedelta(hours=hour)) for hour in (1, 2)]

    assert infos[0].sequence != infos[1].sequence
    assert infos[0].content_hash == infos[1].content_hash


def test_what_comes_back_within_the_second_is_the_newest_again(store: SnapshotStore) -> None:
    first, second, third = put(store, "a"), put(store, "b"), put(store, "a")

    assert len({first, second, third}) == 3
    assert latest(store) == third
    assert put(store, "a") == third


def test_a_damaged_manifest_that_may_be_the_newest_is_an_error(store: SnapshotStore) -> None:
    put(store, "one")
    path = store.root / put(store, "two", AT + timedelta(hours=1)) / MANIFEST_NAME
    for content in (b"", path.read_bytes()[:100]):
        path.write_bytes(content)
        with pytest.raises(CorruptSnapshotError):
            store.latest()
        assert listed(store)[-1] == path.parent.name
    (store.root / ORDER_NAME).unlink()
    with pytest.raises(CorruptSnapshotError):
        store.latest()


class FailsBeforeManifest(DurableFiles):
    """Files that fail once the number is noted, before the manifest takes its place."""

    @override
    def replace(self, source: Path, target: Path) -> None:
        if target.name == MANIFEST_NAME:
            raise OSError("the disk is gone")
        super().replace(source, target)


def test_a_number_whose_snapshot_was_never_committed_is_skipped(store: SnapshotStore) -> None:
    first = put(store, "one")
    failing = SnapshotStore(store.root, files=FailsBeforeManifest())
    with pytest.raises(Exception, match="cannot write"):
        put(failing, "two")

    assert latest(store) == first
    assert store.write(sample_snapshot(2, note="three"), at=AT).sequence == 3


def test_writers_of_many_processes_get_different_numbers(store: SnapshotStore) -> None:
    program = (
        "import sys; from datetime import timedelta; from pathlib import Path\n"
        "from lumos.core.store.snapshots.snapshot_store import SnapshotStore\n"
        "from snapshot_samples import AT, sample_snapshot\n"
        "store, name = SnapshotStore(Path(sys.argv[1])), sys.argv[2]\n"
        "for number in range(8):\n"
        "    at = AT + timedelta(days=hash((name, number)) % 700 - 350)\n"
        "    info = store.write(sample_snapshot(2, note=f'{name} {number}'), at=at)\n"
        "    print(info.sequence, info.id)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(store.root), str(name)],
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for name in range(4)
    ]
    written: dict[int, str] = {}
    for process in running:
        out, _ = process.communicate()
        assert process.returncode == 0
        lines = [line.split() for line in out.splitlines()]
        numbers = [int(number) for number, _ in lines]
        assert numbers == sorted(numbers)
        written |= {int(number): identity for number, identity in lines}

    assert sorted(written) == [*range(1, 33)]
    assert listed(store) == [identity for _, identity in sorted(written.items())]
    assert latest(store) == written[32]
