"""A process that exports or prunes without end, so that a test can kill it at any moment.

Run: python snapshot_crash_actions.py ACTION FOLDER, and write a line for each child to fork.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from lumos.core.store.settings import RetentionSettings
from lumos.core.store.snapshots.retention import prunable
from lumos.core.store.snapshots.snapshot_store import SnapshotStore
from lumos.feature.snapshot.contents import source_content
from lumos.feature.snapshot.export import export_document
from lumos.feature.snapshot.scratch import PassingFiles
from lumos.feature.snapshot.source import LoadedSource
from snapshot_samples import AT, sample_snapshot

STATES = tuple(sample_snapshot(20, note=note) for note in ("one", "two"))
SOURCES = tuple(LoadedSource(state, "memory") for state in STATES)
FILES = PassingFiles()  # what a kill leaves does not depend on what reached the disk
KEPT = 2
ADDED = 3


def export_files(folder: Path) -> None:
    target = folder / "backup.json"
    while True:
        for number, source in enumerate(SOURCES):
            export_document(source, target, pretty=bool(number), files=FILES)
            os.write(1, b"done\n")


def export_folders(folder: Path) -> None:
    store = SnapshotStore(folder / "nowhere", files=FILES, part_bytes=4_000)
    while True:
        for source in SOURCES:
            store.write_folder(source_content(source), folder / "backup", at=AT)
            os.write(1, b"done\n")


def prune(folder: Path) -> None:
    """Add snapshots after those that are there, and remove all but the newest."""
    store = SnapshotStore(folder / "store", files=FILES, part_bytes=4_000)
    while True:
        newest = store.latest()
        begin = newest.stored_at if newest and newest.stored_at else AT
        for second in range(1, ADDED + 1):
            store.write(STATES[second % 2], at=begin + timedelta(seconds=second))
        for info in prunable(store.list(), RetentionSettings(keep_last=KEPT), now=AT):
            store.remove(info.id)
        os.write(1, b"done\n")


ACTIONS: dict[str, Callable[[Path], None]] = {
    "file": export_files,
    "folder": export_folders,
    "prune": prune,
}


def main() -> None:
    action, folder = ACTIONS[sys.argv[1]], Path(sys.argv[2])
    for _ in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                action(folder)
            finally:
                os._exit(1)
        os.write(1, f"started {child}\n".encode())
        _, status = os.waitpid(child, 0)
        os.write(1, f"dead {status}\n".encode())


if __name__ == "__main__":
    main()
