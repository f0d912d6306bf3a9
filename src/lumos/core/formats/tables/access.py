"""How a table's log is reached: by what is handed in, and by nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol


class TableEntry(NamedTuple):
    """A file as its folder lists it."""

    name: str
    """Without its folder."""
    size: int
    mtime_us: int


class TableAccess(Protocol):
    """Reads files of one source; all paths are relative to the source's root.

    Readers of tables run without network and credentials, so their caller answers.
    """

    def list(self, folder: str) -> Iterable[TableEntry]:
        """Yield the files directly in a folder, in any order, without its sub-folders.

        A folder that does not exist has none; on object stores there is no difference.

        Raises:
            UnreadableItemError: it could not be listed.
        """

    def read(self, path: str, *, start: int = 0, length: int | None = None) -> bytes:
        """Return the bytes of a file from `start`; to its end where no length is given.

        A range that reaches past the end gives what there is.

        Raises:
            UnreadableItemError: the file is gone or may not be read.
        """
