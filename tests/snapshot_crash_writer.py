"""A warm process that forks writers of snapshots, for a test that kills them.

Each line on standard input starts a writer; it stores snapshots without end and prints the id of
each once its commit has returned. After the writer's death the line `dead` follows.
"""

from __future__ import annotations

import os
import sys
import traceback
from datetime import timedelta
from pathlib import Path

from typing_extensions import override

from lumos.core.store.snapshots.manifest import MANIFEST_NAME
from lumos.core.store.snapshots.snapshot_files import TEMP_PREFIX, DurableFiles
from lumos.core.store.snapshots.snapshot_store import SnapshotStore
from snapshot_samples import AT, sample_snapshot

SMALL_WRITE = 256


class ManifestFirst(DurableFiles):
    """A wrong protocol: the manifest takes its place before the parts do."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Path, Path]] = []

    @override
    def replace(self, source: Path, target: Path) -> None:
        if target.name != MANIFEST_NAME:
            self._waiting.append((source, target))
            return
        for part in [(source, target), *self._waiting]:
            super().replace(*part)
            self.sync_folder(target.parent)
        self._waiting.clear()


class PlainOverwrite(DurableFiles):
    """A wrong protocol: files are written in place, a little at a time."""

    @override
    def open_new(self, path: Path) -> int:
        final = _final(path)
        final.unlink(missing_ok=True)
        return super().open_new(final)

    @override
    def write(self, descriptor: int, content: memoryview) -> int:
        written = super().write(descriptor, content[:SMALL_WRITE])
        self.sync(descriptor)
        return written

    @override
    def replace(self, source: Path, target: Path) -> None:
        pass


def _final(path: Path) -> Path:
    _, _, name = path.name.removeprefix(TEMP_PREFIX).partition("-")
    return path.with_name(name)


PROTOCOLS: dict[str, type[DurableFiles]] = {
    "right": DurableFiles,
    "manifest-first": ManifestFirst,
    "plain-overwrite": PlainOverwrite,
}


SNAPSHOT = sample_snapshot(40)


def write_forever(root: Path, start: int, *, files: DurableFiles) -> None:
    store = SnapshotStore(root, files=files, part_bytes=4_000)
    number = start
    while True:
        info = store.write(SNAPSHOT, at=AT + timedelta(seconds=number))
        os.write(1, f"{info.id}\n".encode())
        number += 1


def main() -> None:
    root, protocol = Path(sys.argv[1]), PROTOCOLS[sys.argv[2]]
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                write_forever(root, int(line), files=protocol())
            except BaseException:  # noqa: BLE001 - the test shows why it failed
                traceback.print_exc()
                sys.stderr.flush()
            finally:
                os._exit(1)
        os.write(1, f"started {child}\n".encode())
        _, status = os.waitpid(child, 0)
        os.write(1, f"dead {status}\n".encode())


if __name__ == "__main__":
    main()
