"""Keeps reads of files inside one folder, whatever symlinks lie below it.

A listing can show where a symlink leads, but who may write to the folder can put another one
there before the file is opened. So the path is checked again on the open file itself, where nobody
can change it any more. Hard links look like files and are not looked for.
"""

from __future__ import annotations

import os
import sys
from typing import Final

from lumos.core.errors import UnreadableItemError

OUTSIDE: Final = "it is a symlink that leads outside of the source"
ALLOW: Final = "allow it with follow_symlinks: all, or leave it out with: exclude"

_DESCRIPTORS: Final = "/proc/self/fd"
_F_GETPATH: Final = 50
_LONGEST_PATH: Final = 1024


def outside_error() -> UnreadableItemError:
    """Return the error for a file outside of its source; other settings may allow it later."""
    return UnreadableItemError(OUTSIDE, hint=ALLOW, retryable=True)


def is_inside(path: str, folder: str) -> bool:
    """Return whether a real path is a real folder or lies in it."""
    return path == folder or (
        path.startswith(folder) and (folder == "/" or path[len(folder)] == "/")
    )


def require_inside(descriptor: int, path: str, *, folder: str) -> None:
    """Check that an open file or folder lies in a folder.

    Args:
        descriptor: the open file.
        path: by which it was opened.
        folder: as `os.path.realpath` gives it.

    Raises:
        UnreadableItemError: it lies elsewhere.
    """
    if not is_inside(_real_path(descriptor, path), folder):
        raise outside_error()


def _real_path(descriptor: int, path: str) -> str:
    """Return the path of an open file, as the operating system reports it."""
    try:
        if sys.platform == "darwin":
            import fcntl

            told = fcntl.fcntl(descriptor, _F_GETPATH, b"\0" * _LONGEST_PATH)
            return os.fsdecode(told.rstrip(b"\0"))
        return os.readlink(f"{_DESCRIPTORS}/{descriptor}")
    except OSError:  # there is no /proc: the path is as good as it gets
        return os.path.realpath(path)
