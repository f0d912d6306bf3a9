"""Opening files that others named or wrote: regular files only, and no more bytes than expected.

A pipe may wait for ever, a device may never end. Whether a path leads to one is asked of the file
that was opened, so nobody can swap it in between.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import BinaryIO, Final

_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK  # waits for no writer
_KINDS: Final = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


_Place = str | bytes | os.PathLike[str]


class NotRegularError(OSError):
    """A path leads to something that is neither a file nor a folder."""


def open_regular(path: _Place) -> BinaryIO:
    """Open a regular file for reading; symlinks are followed.

    Raises:
        NotRegularError: it is a pipe, a socket or a device.
        IsADirectoryError: it is a folder.
        OSError: it cannot be opened.
    """
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket, or a device without a driver
            raise _not_regular("a socket or a device", path) from None
        raise
    try:
        require_regular(os.fstat(descriptor).st_mode, path)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def require_regular(mode: int, path: _Place) -> None:
    """Refuse the mode of anything but a regular file, naming what it is.

    Raises:
        NotRegularError: it is a pipe, a socket or a device.
        IsADirectoryError: it is a folder.
    """
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    raise _not_regular(next((kind for test, kind in _KINDS if test(mode)), "no file"), path)


def read_regular(path: _Place, *, most: int) -> bytes:
    """Return the content of a small regular file.

    Raises:
        OSError: it is larger than `most` bytes, not a regular file, or cannot be read.
    """
    with open_regular(path) as stream:
        content = stream.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most:,} bytes", os.fspath(path))
    return content


def _not_regular(kind: str, path: _Place) -> NotRegularError:
    return NotRegularError(errno.EINVAL, f"it is {kind}, not a regular file", os.fspath(path))
