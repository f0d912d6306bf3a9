"""Folders and files that only their owner can read, whatever the umask.

There are two kinds of folder. A folder whose content is trusted or secret (the token of the
Spark engine, an archive that a JVM maps) must be a real folder of this user: anything else is
refused. The state folder is chosen by the user, who may have linked it or put it on a file system
without modes: it is made private where that is possible, and used in any case.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from lumos.core.errors import NotPrivateError

FOLDER_MODE: Final = 0o700
FILE_MODE: Final = 0o600

_OTHERS: Final = 0o077
_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LINK_ERRORS: Final = frozenset({errno.ELOOP, errno.ENOTDIR})


def make_trusted_folder(folder: Path, *, hint: str) -> None:
    """Make a folder of mode 0700, or tighten one that exists and belongs to this user.

    Missing parents are made with mode 0700 too.

    Args:
        folder: the folder to make.
        hint: what the user can do when the folder is refused.

    Raises:
        NotPrivateError: it is a symlink or not a folder, belongs to another user, or its mode
            cannot be restricted.
        OSError: it cannot be made.
    """
    _make(folder)
    try:
        descriptor = os.open(folder, _FOLDER_FLAGS)
    except OSError as error:
        if error.errno not in _LINK_ERRORS:
            raise
        raise NotPrivateError(folder, "it is a symlink or not a folder", hint=hint) from None
    try:
        _require_private(descriptor, folder, mode=FOLDER_MODE, hint=hint)
    finally:
        os.close(descriptor)


def open_trusted_file(path: Path, flags: int, *, hint: str) -> int:
    """Open a file and return its descriptor; with O_CREAT in `flags` it is made with mode 0600.

    Raises:
        NotPrivateError: it is a symlink or not a regular file, belongs to another user, or its
            mode cannot be restricted.
        OSError: it cannot be opened.
    """
    # Without O_NONBLOCK the opening of a named pipe waits for its other end.
    flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, FILE_MODE)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise NotPrivateError(path, "it is a symlink", hint=hint) from None
    try:
        _require_private(descriptor, path, mode=FILE_MODE, hint=hint)
        os.set_blocking(descriptor, True)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def make_private_folder(folder: Path) -> None:
    """Make a folder and its missing parents with mode 0700; an existing one stays as it is.

    A symlink is followed. Another process may remove the folder as soon as it is there.

    Raises:
        OSError: it cannot be made.
    """
    _make(folder)
    try:
        is_folder = stat.S_ISDIR(folder.stat().st_mode)
    except FileNotFoundError:
        is_folder = not folder.is_symlink()
    if not is_folder:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))


def is_open_to_others(path: Path) -> bool:
    """Return whether group or others have rights on a file or folder of this user."""
    try:
        found = path.stat()
    except OSError:
        return False
    return bool(found.st_mode & _OTHERS) and _is_own(found)


def tighten(path: Path) -> None:
    """Take the rights of group and others from a file or folder of this user and all in it.

    What belongs to another user, is a symlink, or lies on a file system without modes stays as it
    is. A folder that is private already is not entered: nobody else can reach what is in it.
    """
    if is_open_to_others(path):
        _tighten(path)


def tighten_below(folder: Path) -> None:
    """Take the rights of group and others from all that lies in a folder, at any depth."""
    with suppress(OSError):
        for entry in folder.iterdir():
            _tighten(entry)


def private_opener(path: str, flags: int) -> int:
    """Open a file for the built-in `open(..., opener=private_opener)`, made with mode 0600.

    An existing file of this user that is opened for writing gets that mode too.
    """
    descriptor = os.open(path, flags | os.O_CLOEXEC, FILE_MODE)
    if flags & (os.O_WRONLY | os.O_RDWR):
        with suppress(OSError):  # a file system without modes
            found = os.fstat(descriptor)
            if stat.S_ISREG(found.st_mode) and _is_loose(found, FILE_MODE) and _is_own(found):
                os.fchmod(descriptor, FILE_MODE)
    return descriptor


def write_private_text(path: Path, text: str) -> None:
    """Replace a file by one of mode 0600 with this text; a reader sees the old or the new one.

    Raises:
        OSError: it cannot be written.
    """
    temporary = path.with_name(f".tmp-{secrets.token_hex(4)}-{path.name}")
    try:
        with open(temporary, "x", encoding="utf-8", opener=private_opener) as file:
            file.write(text)
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def _tighten(path: Path) -> None:
    with suppress(OSError):
        found = path.lstat()
        if not _is_own(found):
            return
        if stat.S_ISDIR(found.st_mode):
            tighten_below(path)  # before the folder: a killed process leaves it open
        elif not stat.S_ISREG(found.st_mode):
            return
        if found.st_mode & _OTHERS:  # the owner gets no right that was not there
            path.chmod(found.st_mode & FOLDER_MODE)


def _make(folder: Path) -> None:
    """Make a folder and its missing parents, each for its owner alone.

    Whatever has the name already stays: the caller looks at what it is.
    """
    try:
        folder.mkdir(mode=FOLDER_MODE)
    except FileExistsError:
        pass
    except FileNotFoundError:
        if folder.parent == folder:
            raise
        _make(folder.parent)
        with suppress(FileExistsError):  # another process made it meanwhile
            folder.mkdir(mode=FOLDER_MODE)
    except OSError:
        # On a read-only file system the error for an existing folder may be another one.
        if not folder.is_dir():
            raise


def _require_private(descriptor: int, path: Path, *, mode: int, hint: str) -> None:
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):
        raise NotPrivateError(path, "it is not a regular file", hint=hint)
    if not _is_own(found):
        raise NotPrivateError(path, "it belongs to another user", hint=hint)
    if _is_loose(found, mode):
        with suppress(OSError):  # reported below
            os.fchmod(descriptor, mode)
        if _is_loose(os.fstat(descriptor), mode):
            raise NotPrivateError(path, "its file system keeps no permissions", hint=hint)


def _is_loose(found: os.stat_result, mode: int) -> bool:
    """Return whether a mode gives rights to others, or keeps rights from its owner."""
    return bool(found.st_mode & _OTHERS) or found.st_mode & mode != mode


def _is_own(found: os.stat_result) -> bool:
    return found.st_uid == os.geteuid()
