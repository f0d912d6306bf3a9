"""A folder of one run that only its user can read, and that is removed also after a kill -9.

A lock file in the folder is held by the process that made the folder and by the JVM, which inherits
its descriptor: the lock is free only when both have ended. The next run that makes a folder at the
same place first removes the folders whose lock is free.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from lumos.core.store.state_folder import RUN_PREFIX

_UNLOCKED_PREFIX: Final = ".lumos-new-"
_LOCK: Final = "run.lock"


class RunFolder(NamedTuple):
    """A private folder.

    Attributes:
        path: of mode 0700.
        lock: a descriptor for child processes to inherit, which keeps the folder from being swept.
    """

    path: Path
    lock: int


@contextmanager
def run_folder(place: Path | None = None) -> Iterator[RunFolder]:
    """Make a private folder below `place`, the temporary folder by default, and remove it at last.

    Raises:
        OSError: it cannot be made.
    """
    parent = place or Path(tempfile.gettempdir())
    sweep(parent)
    # Locked before it gets the name that a sweep looks for. The name cannot be guessed, so nobody
    # else can have made it before.
    unlocked = Path(tempfile.mkdtemp(prefix=_UNLOCKED_PREFIX, dir=parent))
    lock = os.open(unlocked / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with suppress(OSError):  # a file system without locks: no sweep can get it either
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        folder = unlocked.rename(parent / f"{RUN_PREFIX}{secrets.token_hex(8)}")
        try:
            yield RunFolder(folder, lock)
        finally:
            _remove(folder)
    finally:
        os.close(lock)


def sweep(parent: Path) -> None:
    """Remove the folders of this user below `parent` whose processes have all ended."""
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(RUN_PREFIX):
                with suppress(OSError):
                    _remove_abandoned(Path(entry.path))


def _remove_abandoned(folder: Path) -> None:
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        return
    try:
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        folder.rmdir()  # what is left of a removal that was killed at its end
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(folder)
    finally:
        os.close(lock)


def _remove(folder: Path) -> None:
    """Remove a folder, its lock at last: until then a sweep can go on where a killed one ended."""
    with suppress(OSError):
        for entry in folder.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            elif entry.name != _LOCK:
                entry.unlink(missing_ok=True)
        (folder / _LOCK).unlink(missing_ok=True)
        folder.rmdir()
