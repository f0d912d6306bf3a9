"""Which folders have to be looked into after something happened to a path."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from typing import Final

from lumos.core.formats.tables.marks import table_of_path
from lumos.core.storage.selection import FileSelection, Folder

WHOLE_FOLDER: Final = b""
"""The root of a source: all of it has to be looked into."""
MOST_FOLDERS: Final = 64
"""So many folders are looked into one by one; beyond that, those above them are."""
_LOG_FOLDERS: Final = ("_delta_log", ".hoodie")


def folder_of_file(path: str, selection: FileSelection) -> bytes | None:
    """Return the folder to look into after a file came, changed or went; None for no data.

    A file of a table's log stands for the whole table. Any other is found by its own folder.
    """
    if not selection.wanted(path):
        return None
    mark = table_of_path(path)
    return os.fsencode(mark.root if mark is not None else path.rpartition("/")[0])


def folder_of_folder(path: str, selection: FileSelection) -> bytes | None:
    """Return the folder to look into after a folder came, changed or went; None for no data."""
    match selection.folder(path):
        case Folder.HIDDEN:
            return None
        case Folder.LOG:
            parts = path.split("/")
            log = next(place for place, part in enumerate(parts) if part in _LOG_FOLDERS)
            return os.fsencode("/".join(parts[:log]))
        case Folder.PLAIN:
            return os.fsencode(path)


def folder_of_missing(path: str, selection: FileSelection) -> bytes | None:
    """Return what to look into where there is nothing any more: it was a file or a folder."""
    if table_of_path(path) is not None:
        return folder_of_file(path, selection)
    return folder_of_folder(path, selection)


def fewest(folders: Iterable[bytes], most: int = MOST_FOLDERS) -> tuple[bytes, ...]:
    """Return folders that hold all of these, none within another, and no more than `most`.

    Where there are too many, the folders above the most crowded ones take their place first.
    """
    chosen = _outermost(folders)
    while len(chosen) > most:
        crowds = Counter(map(_above, chosen))
        largest = max(crowds.values())
        if largest > 1:
            crowded = {above for above, count in crowds.items() if count == largest}
            chosen = _outermost(_above(f) if _above(f) in crowded else f for f in chosen)
        else:
            deepest = max(folder.count(b"/") for folder in chosen)
            chosen = _outermost(
                _above(folder) if folder.count(b"/") == deepest else folder for folder in chosen
            )
    return chosen


def _above(folder: bytes) -> bytes:
    return folder.rpartition(b"/")[0]


def _outermost(folders: Iterable[bytes]) -> tuple[bytes, ...]:
    """Leave out folders that lie within others."""
    every = set(folders)
    if WHOLE_FOLDER in every:
        return (WHOLE_FOLDER,)
    return tuple(sorted(folder for folder in every if every.isdisjoint(_all_above(folder))))


def _all_above(folder: bytes) -> Iterable[bytes]:
    while folder := _above(folder):
        yield folder
