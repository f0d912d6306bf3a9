"""An export or a prune may be killed at any moment: nothing torn, and it can be run again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kill_moments import Moments
from lumos.core.store.settings import RetentionSettings
from lumos.core.store.snapshots.folder_claim import CLAIM_NAME
from lumos.core.store.snapshots.retention import prunable
from lumos.core.store.snapshots.snapshot_files import TEMP_PREFIX
from lumos.core.store.snapshots.snapshot_order import STORE_FILES
from lumos.core.store.snapshots.snapshot_store import SnapshotStore
from lumos.feature.snapshot.contents import source_content
from lumos.feature.snapshot.export import export_document
from lumos.feature.snapshot.source import LoadedSource, open_source
from lumos.feature.snapshot.verification import verify
from snapshot_crash_actions import KEPT, STATES
from snapshot_samples import AT, sample_snapshot

FULL_SIZE = os.environ.get("LUMOS_TEST_FULL") == "1"
KILLS = 600 if FULL_SIZE else 25
TESTS = Path(__file__).parents[1]
KILLED = signal.SIGKILL.value
LONGEST = 0.3
LAST = sample_snapshot(2, note="last")


def kill_often(action: str, folder: Path, *, look: Callable[[], None]) -> tuple[int, int]:
    """Return how many kills there were, and how often the action had come to its end."""
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")  # noqa: T201
    chance = random.Random(seed)
    command = [sys.executable, str(TESTS / "snapshot_crash_actions.py"), action, str(folder)]
    ends, moments = 0, Moments(LONGEST, chance)
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number in range(KILLS):
            process.stdin.write("go\n")
            process.stdin.flush()
            begin, writer, before = time.monotonic(), 0, ends
            while not writer or (number == 0 and not ends):  # the first tells how long one takes
                word, _, rest = process.stdout.readline().strip().partition(" ")
                assert word, "the process that forks the writers ended"
                writer = int(rest) if word == "started" else writer
                ends += word == "done"
            if number == 0:
                moments = Moments(min(2 * (time.monotonic() - begin), LONGEST), chance)
            else:
                moments.wait()
            os.kill(writer, signal.SIGKILL)
            while not (line := process.stdout.readline().strip()).startswith("dead"):
                ends += line == "done"
            assert int(line.split()[1]) == KILLED, "the writer failed before it was killed"
            moments.got_somewhere(ends > before)
            look()
        process.stdin.close()
    return KILLS, ends


def is_one_of_the_states(path: Path) -> None:
    if not path.exists():
        return
    store = SnapshotStore(path.parent / "nowhere")
    if path.is_dir() and not (path / "manifest.json").exists():
        return  # never finished
    report = verify(str(path), store=store)
    assert report.ok, report.problems
    assert open_source(str(path), store=store).load() in STATES


def test_a_killed_export_leaves_the_file_as_it_was_or_whole(tmp_path: Path) -> None:
    target = tmp_path / "backup.json"

    _, ends = kill_often("file", tmp_path, look=lambda: is_one_of_the_states(target))

    assert ends > KILLS // 10, "hardly an export came through"
    export_document(LoadedSource(LAST, "memory"), target)
    assert open_source(str(target), store=SnapshotStore(tmp_path)).load() == LAST


def test_a_killed_export_leaves_the_folder_as_it_was_or_whole(tmp_path: Path) -> None:
    target = tmp_path / "backup"

    _, ends = kill_often("folder", tmp_path, look=lambda: is_one_of_the_states(target))

    assert ends > KILLS // 10, "hardly an export came through"
    store = SnapshotStore(tmp_path / "nowhere")
    store.write_folder(source_content(LoadedSource(LAST, "memory")), target, at=AT)
    source = open_source(str(target), store=store)
    assert source.load() == LAST
    assert {path.name for path in target.iterdir()} == {
        "manifest.json",
        *(path.name for path in target.iterdir() if path.suffix == ".zst"),
    }


def test_a_killed_prune_leaves_every_snapshot_whole_or_gone(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path / "store")

    def look() -> None:
        listed = store.list()
        assert [info.problem for info in listed if info.problem] == []
        assert all(store.verify(info.id).ok for info in listed)
        assert not listed or store.latest() == listed[-1]

    _, ends = kill_often("prune", tmp_path, look=look)

    assert ends > KILLS // 20, "hardly a prune came through"
    newest = [info.id for info in store.list()][-KEPT:]
    for info in prunable(store.list(), RetentionSettings(keep_last=KEPT), now=AT):
        assert store.remove(info.id)
    store.collect_orphans()
    assert [info.id for info in store.list()] == newest
    left = [
        path for path in store.root.rglob("*") if path.name.startswith((TEMP_PREFIX, CLAIM_NAME))
    ]
    assert left == []
    assert {path.name for path in store.root.iterdir()} - STORE_FILES == set(newest)


def test_the_harness_notices_a_torn_file(tmp_path: Path) -> None:
    target = tmp_path / "backup.json"
    export_document(LoadedSource(STATES[0], "memory"), target)
    target.write_bytes(target.read_bytes()[:-500])

    with pytest.raises(AssertionError):
        is_one_of_the_states(target)
