"""Decides by its path alone whether a file is wanted."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from fnmatch import fnmatchcase
from typing import Final

from lumos.core.formats.tables.marks import table_of_path

_HIDDEN_PREFIXES: Final = (".", "~$")
"""The second begins the files by which Office says that a workbook is open."""
_TEMPORARY_SUFFIXES: Final = (
    ".crc", ".tmp", ".temp", ".inprogress", ".swp", "~", "._copying_", "_$folder$",
)  # fmt: skip
_LOG_FOLDERS: Final = {
    "_delta_log": (("_sidecars",),),
    ".hoodie": (("timeline",), ("timeline", "history")),
}
"""Hidden folders in which table formats keep their logs, and what below them matters."""
_WILD: Final = frozenset("*?[")
_MANY_FOLDERS: Final = 4096
_MOST_EXTENSIONS: Final = 2


class Folder(Enum):
    """What the files of a folder are."""

    HIDDEN = auto()
    PLAIN = auto()
    LOG = auto()
    """The log of a table format: hidden from people, needed by readers."""


class FileSelection:
    """Which files of a storage are wanted.

    Hidden and temporary files are not, whatever the patterns say. A name pattern fits the last
    part of a path; one with a slash fits the whole path. The logs of table formats are always
    wanted, except for what is excluded, unless `logs` is false.
    """

    def __init__(
        self, *, patterns: Sequence[str], exclude: Sequence[str] = (), logs: bool = True
    ) -> None:
        lowered = [pattern.lower() for pattern in patterns]
        simple = [pattern[1:] for pattern in lowered if _is_suffix(pattern)]
        # Most patterns are endings such as `.csv.gz`: a look-up for each file, however many.
        self._endings = frozenset(each for each in simple if _is_ending(each))
        self._suffixes = tuple(each for each in simple if not _is_ending(each))
        self._patterns = tuple(pattern for pattern in lowered if not _is_suffix(pattern))
        self._exclude = tuple(pattern.lower().strip("/") for pattern in exclude)
        self._logs = logs
        self._folders: dict[str, Folder] = {"": Folder.PLAIN}

    def folder(self, path: str) -> Folder:
        """Return what the files directly in a folder are; `path` has no slash at its end."""
        known = self._folders.get(path)
        if known is None:
            if len(self._folders) > _MANY_FOLDERS:
                self._folders = {"": Folder.PLAIN}
            known = self._folders[path] = self.child(self.folder(path.rpartition("/")[0]), path)
        return known

    def wanted(self, path: str) -> bool:
        """Return whether a file is wanted, by its path relative to the root."""
        folder, _, name = path.rpartition("/")
        kind = self.folder(folder)
        if kind is Folder.HIDDEN:
            return False
        lowered = name.lower()
        if kind is Folder.LOG:
            return not lowered.endswith(_TEMPORARY_SUFFIXES)
        if not name or is_hidden(name) or self._excluded(path):
            return False
        last = lowered.rfind(".")
        if last >= 0 and (
            lowered[last:] in self._endings
            or lowered[lowered.rfind(".", 0, last) :] in self._endings
        ):
            return True
        if lowered.endswith(self._suffixes) or matches(path, self._patterns):
            return True
        return self._logs and table_of_path(path) is not None

    def child(self, parent: Folder, path: str) -> Folder:
        """Return what the files of a folder are, where it is known of the folder above it."""
        if parent is Folder.HIDDEN or self._excluded(path):
            return Folder.HIDDEN
        if parent is Folder.PLAIN and not is_hidden(path.rpartition("/")[2]):
            return Folder.PLAIN
        return Folder.LOG if self._is_log(path) else Folder.HIDDEN

    def _is_log(self, path: str) -> bool:
        if not self._logs:
            return False
        parts = path.split("/")
        for index, part in enumerate(parts):
            if part in _LOG_FOLDERS:
                below = tuple(parts[index + 1 :])
                return not below or below in _LOG_FOLDERS[part]
            if is_hidden(part):
                return False
        return False

    def _excluded(self, path: str) -> bool:
        return bool(self._exclude) and matches(path, self._exclude)


def matches(path: str, patterns: Sequence[str]) -> bool:
    """Return whether a pattern fits: one with a slash the whole path, any other the name alone."""
    lowered = path.lower()
    name = lowered.rsplit("/", 1)[-1]
    return any(fnmatchcase(lowered if "/" in pattern else name, pattern) for pattern in patterns)


def is_hidden(name: str) -> bool:
    """Return whether writers use the name for what is not data, or not data yet."""
    lowered = name.lower()
    if lowered.startswith(_HIDDEN_PREFIXES) or lowered.endswith(_TEMPORARY_SUFFIXES):
        return True
    return lowered.startswith("_") and "=" not in lowered  # `_day=1` is a partition


def _is_ending(suffix: str) -> bool:
    """Return whether a suffix is one extension or two, so that names either end with it or not."""
    return suffix.startswith(".") and suffix.count(".") <= _MOST_EXTENSIONS


def _is_suffix(pattern: str) -> bool:
    """Return whether a pattern is a star and then plain text, the case that is worth its speed."""
    rest = pattern[1:]
    return pattern.startswith("*") and "/" not in rest and not _WILD.intersection(rest)
