"""Snapshots that a command needs as parts for as long as it runs."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from typing_extensions import override

from lumos.core.store.snapshots.line_sorter import MEMORY_BYTES
from lumos.core.store.snapshots.snapshot_files import DurableFiles, storing
from lumos.core.store.snapshots.snapshot_store import SnapshotStore

if TYPE_CHECKING:
    from lumos.core.store.snapshots.snapshot_sections import SnapshotContent
    from lumos.core.store.snapshots.stored_snapshot import StoredSnapshot

_PREFIX = "lumos-scratch-"
_LOCK = "owner.lock"
_MEMORY_BYTES = MEMORY_BYTES // 2  # a command may need several at once


class PassingFiles(DurableFiles):
    """Files that need not survive a power loss."""

    @override
    def sync(self, descriptor: int) -> None:
        pass

    @override
    def sync_folder(self, folder: Path) -> None:
        pass


class Scratch:
    """A temporary folder that goes with its last user; what killed processes left goes first."""

    def __init__(self) -> None:
        """Make the folder.

        Raises:
            StateError: the system's temporary folder cannot be written.
        """
        place = Path(tempfile.gettempdir())
        with storing(place):
            _sweep(place)
            self.folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
            descriptor = _locked(self.folder)
        self._gone = weakref.finalize(self, _remove, self.folder, descriptor)

    def store(self, content: SnapshotContent) -> StoredSnapshot:
        """Put a snapshot into parts."""
        store = SnapshotStore(self.folder, files=PassingFiles(), memory_bytes=_MEMORY_BYTES)
        info = store.write_content(content, at=content.header.export_timestamp)
        return store.open(info.id)

    def close(self) -> None:
        """Remove the folder."""
        self._gone()


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yield a temporary folder."""
    scratch = Scratch()
    try:
        yield scratch.folder
    finally:
        scratch.close()


def _locked(folder: Path) -> int:
    """Lock a folder; a lock that others could find before it is held would look left behind."""
    unseen = folder / f"{_LOCK}.new"
    descriptor = os.open(unseen, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    unseen.rename(folder / _LOCK)
    return descriptor


def _sweep(place: Path) -> None:
    """Remove the folders of processes that were killed; a living one holds its lock."""
    for folder in place.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if folder.lstat().st_uid != os.geteuid():  # of another user: not ours to look into
                continue
            descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)


def _remove(folder: Path, descriptor: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    os.close(descriptor)
