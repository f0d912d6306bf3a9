"""How bytes reach the disk and stay there: every call that a crash or a full disk can break."""

from __future__ import annotations

import errno
import os
import secrets
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, ClassVar

from lumos.core.errors import StateError, StateReadOnlyError, StorageFullError
from lumos.core.private_files import make_private_folder, private_opener

TEMP_PREFIX = ".tmp-"
_MODE_BEFORE_UMASK = 0o666
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_READ_ONLY = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})


class DurableFiles:
    """The file system calls of the commit protocol, one method each so that a test can fail it.

    What it makes is private to this user, unless `for_others` is set: then the umask decides, as
    it does for all files that a user asks for.
    """

    for_others: ClassVar[bool] = False

    def make_folder(self, folder: Path) -> None:
        if self.for_others:
            folder.mkdir(parents=True, exist_ok=True)
        else:
            make_private_folder(folder)

    def open_new(self, path: Path) -> int:
        return self._opened(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)

    def open_lock(self, path: Path) -> int:
        return self._opened(path, os.O_RDWR | os.O_CREAT)

    def _opened(self, path: Path, flags: int) -> int:
        if self.for_others:
            return os.open(path, flags | os.O_CLOEXEC, _MODE_BEFORE_UMASK)
        return private_opener(os.fspath(path), flags)

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


class FilesForOthers(DurableFiles):
    """Files that a user asked for at a place of their choice: the umask decides who reads them."""

    for_others = True


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
