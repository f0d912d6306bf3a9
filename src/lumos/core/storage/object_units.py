"""Divides an object storage into parts that can be listed at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

MOST_LEVELS: Final = 6
_CALLS_PER_UNIT: Final = 4
_AT_ONCE: Final = 16

_Kind = Literal["all", "direct", "folders"]


@dataclass(frozen=True)
class ListUnit:
    """A part of an object storage."""

    prefixes: tuple[str, ...]
    """Without a slash at their ends; empty for the whole storage."""
    kind: _Kind = "all"
    """`all` below the prefixes, the objects that lie `direct` in a single one of them, or what is
    in those `folders` of a single one that the range names."""
    after: str | None = None
    """The name of a folder; those up to it are not in the range."""
    until: str | None = None
    """The name of the last folder in the range; folders that are made later are in one, too."""

    def text(self) -> str:
        """Return the unit as text that travels."""
        return json.dumps([self.prefixes, self.kind, self.after, self.until])

    @classmethod
    def of_text(cls, text: str) -> ListUnit:
        prefixes, kind, after, until = json.loads(text)
        return cls(tuple(prefixes), kind, after, until)


class FolderLevel(NamedTuple):
    """What lies directly below a prefix."""

    folders: tuple[str, ...]
    """Whole prefixes, without a slash at their ends."""
    has_objects: bool


LevelOf = Callable[[str], FolderLevel | None]
"""Returns a level of the storage; None where it cannot be looked at."""


def divided(prefix: str, *, wanted: int, level_of: LevelOf, ranges: bool) -> list[ListUnit]:
    """Divide all below a prefix into about as many units as wanted, with few calls.

    Args:
        prefix: without a slash at its end; empty for the whole storage.
        wanted: how many units.
        level_of: looks at one level; called at most a few times for each unit wanted.
        ranges: whether the storage can begin a listing in the middle of a prefix.
    """
    whole: Sequence[str] = [prefix]
    parents: Mapping[str, Sequence[str]] = {}
    done: list[ListUnit] = []
    calls = 0
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        for _ in range(MOST_LEVELS):
            calls += len(whole)
            if not 0 < len(whole) < wanted or calls > wanted * _CALLS_PER_UNIT:
                break
            levels = dict(zip(whole, threads.map(level_of, whole), strict=True))
            done.extend(_ended(levels))
            parents = {each: level.folders for each, level in levels.items() if level}
            whole = [folder for folders in parents.values() for folder in folders]
    if not parents:
        return [*done, *(ListUnit((each,)) for each in whole)]
    return [*done, *_units(parents, wanted=wanted, ranges=ranges)]


def _ended(levels: Mapping[str, FolderLevel | None]) -> Iterator[ListUnit]:
    """Yield units for what no deeper level will hold."""
    for prefix, level in levels.items():
        if level is None:
            yield ListUnit((prefix,))
        elif level.has_objects or not level.folders:
            yield ListUnit((prefix,), "direct")


def _units(
    parents: Mapping[str, Sequence[str]], *, wanted: int, ranges: bool
) -> Iterator[ListUnit]:
    total = sum(len(folders) for folders in parents.values())
    for parent, unsorted in parents.items():
        folders = sorted(unsorted, key=sort_key)
        parts = min(len(folders), max(1, round(wanted * len(folders) / total))) if folders else 0
        for index in range(parts):
            start, end = index * len(folders) // parts, (index + 1) * len(folders) // parts
            if end - start == 1 or not ranges:
                yield ListUnit(tuple(folders[start:end]))
            else:
                after = _name(folders[start - 1]) if start > 0 else None
                until = _name(folders[end - 1]) if end < len(folders) else None
                yield ListUnit((parent,), "folders", after, until)


def sort_key(folder: str) -> str:
    """Return what puts folders into the order in which storages list their objects."""
    return f"{folder}/"


def _name(prefix: str) -> str:
    return prefix.rpartition("/")[2]


def distinct(prefixes: Iterable[str]) -> tuple[str, ...]:
    """Return prefixes without slashes at their ends, and without those that lie in others."""
    clean = sorted({prefix.strip("/") for prefix in prefixes} or {""}, key=sort_key)
    kept: list[str] = []
    for prefix in clean:
        if not any(above == "" or f"{prefix}/".startswith(f"{above}/") for above in kept):
            kept.append(prefix)
    return tuple(kept)
