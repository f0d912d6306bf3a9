"""The claim on one snapshot folder: who holds it may write or remove the folder."""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from lumos.core.store.snapshots.snapshot_files import DurableFiles

CLAIM_NAME = ".writer.lock"
_ATTEMPTS = 1_000


class FolderClaim:
    """An operating system lock on a folder; it ends with the process, however that ends."""

    def __init__(self, folder: Path, *, descriptor: int, files: DurableFiles) -> None:
        self.folder = folder
        self._descriptor = descriptor
        self._files = files

    @classmethod
    def create(cls, folder: Path, *, files: DurableFiles) -> Self:
        """Make the folder where it is missing, and wait until the claim on it is ours."""
        for _ in range(_ATTEMPTS):
            files.make_folder(folder)
            # A collector may remove the folder before we have locked it: then we begin again.
            with suppress(FileNotFoundError):
                claim = cls._take(folder, files=files, wait=True)
                if claim is not None:
                    return claim
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder))

    @classmethod
    def try_existing(cls, folder: Path, *, files: DurableFiles) -> Self | None:
        """Claim an existing folder, or return None where a live writer holds it or it is gone."""
        try:
            return cls._take(folder, files=files, wait=False)
        except (FileNotFoundError, NotADirectoryError):
            return None

    @classmethod
    def _take(cls, folder: Path, *, files: DurableFiles, wait: bool) -> Self | None:
        path = folder / CLAIM_NAME
        descriptor = files.open_lock(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            if _is_same_file(descriptor, path):
                return cls(folder, descriptor=descriptor, files=files)
        except BlockingIOError:
            pass
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        return None

    def release(self) -> None:
        """Give the claim up; the lock file goes first, so that nobody locks a file left behind."""
        path = self.folder / CLAIM_NAME
        with suppress(OSError):  # a file left behind is collected later
            if _is_same_file(self._descriptor, path):  # else it is the claim of a later writer
                self._files.remove(path)
        os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


def _is_same_file(descriptor: int, path: Path) -> bool:
    """Return whether the locked file still is the one at `path`, and not one removed meanwhile."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
