"""How bytes reach the disk and stay there: every call that a crash or a full disk can break."""

from __future__ import annotations

import errno
import os
import secrets
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from lumos.core.errors import StateError, StateReadOnlyError, StorageFullError

TEMP_PREFIX = ".tmp-"
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_READ_ONLY = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})


class DurableFiles:
    """The file system calls of the commit protocol, one method each so that a test can fail it."""

    def make_folder(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)

    def open_new(self, path: Path) -> int:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)

    def open_lock(self, path: Path) -> int:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def open_spill(self, folder: Path) -> BinaryIO:
        """Open a file without a name, which vanishes with the process."""
        return tempfile.TemporaryFile(dir=folder)

    def write(self, descriptor: int, content: memoryview) -> int:
        """Write some of the content and return how much, as the system call does."""
        return os.write(descriptor, content)

    def sync(self, descriptor: int) -> None:
        os.fsync(descriptor)

    def close(self, descriptor: int) -> None:
        os.close(descriptor)

    def replace(self, source: Path, target: Path) -> None:
        os.replace(source, target)

    def sync_folder(self, folder: Path) -> None:
        """Make names that were created, replaced or removed in a folder survive a power loss."""
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def remove_folder(self, folder: Path) -> None:
        folder.rmdir()


def write_atomically(
    path: Path, chunks: Iterable[bytes], *, files: DurableFiles, temp: Path | None = None
) -> None:
    """Put a file in place whole or not at all: temp name, fsync, rename.

    The name itself is durable only after `sync_folder` of its folder.
    """
    temp = temp or path.with_name(f"{TEMP_PREFIX}{secrets.token_hex(4)}-{path.name}")
    try:
        descriptor = files.open_new(temp)
        try:
            for chunk in chunks:
                write_all(descriptor, chunk, files=files)
            files.sync(descriptor)
        finally:
            files.close(descriptor)
        files.replace(temp, path)
    except BaseException:
        with suppress(OSError):
            files.remove(temp)
        raise


def write_all(descriptor: int, content: bytes, *, files: DurableFiles) -> None:
    """Write every byte, also where the system takes only some at a time."""
    rest = memoryview(content)
    while rest:
        rest = rest[files.write(descriptor, rest) :]


@contextmanager
def storing(path: Path) -> Iterator[None]:
    """Turn an operating system error on the way to `path` into the Lumos error for it."""
    try:
        yield
    except OSError as error:
        raise storing_error(error, path) from error


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn an operating system error on reading `path` into a StateError."""
    try:
        yield
    except OSError as error:
        raise StateError(
            f"cannot read {error.filename or path}: {error.strerror or 'input/output error'}",
            hint="check that the file exists and that you may read it",
        ) from error


def storing_error(error: OSError, path: Path) -> StateError:
    """Say why something could not be stored, naming where."""
    named = str(error.filename or "")
    where = path if not named or TEMP_PREFIX in named else named
    reason = error.strerror or "input/output error"
    if error.errno in _FULL:
        return StorageFullError(
            f"no space left to write {where}",
            hint="free some space and run again; earlier snapshots are untouched",
        )
    if error.errno in _READ_ONLY:
        return StateReadOnlyError(
            f"cannot write {where}: {reason}",
            hint="make the folder writable, or choose another state folder",
        )
    if error.errno in {errno.ENOENT, errno.ENOTDIR, errno.EISDIR}:
        return StateError(
            f"cannot write {where}: {reason}", hint="give the path of a file to write"
        )
    return StateError(
        f"cannot write {where}: {reason}", hint="check the disk; earlier snapshots are untouched"
    )
