"""Datasets whose names are nearly what somebody typed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lumos.core.store.catalog.search_words import name_key

if TYPE_CHECKING:
    from lumos.core.store.database import StateDatabase

_MOST_COMPARED: Final = 20_000
"""Comparing takes about ten microseconds for each name, and somebody waits."""
_MOST_LETTERS_APART: Final = 3
_LIKENESS: Final = 0.7


def near_names(database: StateDatabase, typed: str, *, most: int = 3) -> tuple[str, ...]:
    """Return names of datasets that differ from a name by a slip, the likeliest first.

    Where several datasets have such a name, or a URN was typed, their URNs are returned.
    """
    from difflib import SequenceMatcher, get_close_matches

    is_urn = "://" in typed
    key = name_key(typed.rstrip("/").rpartition("/")[2] if is_urn else typed)
    if not key:
        return ()
    rows = database.query(
        "SELECT name, name_key, urn FROM datasets "
        "WHERE length(name_key) BETWEEN :shortest AND :longest ORDER BY urn LIMIT :most",
        {
            "shortest": len(key) - _MOST_LETTERS_APART,
            "longest": len(key) + _MOST_LETTERS_APART,
            "most": _MOST_COMPARED,
        },
    )
    by_key: dict[str, list[tuple[str, str]]] = {}
    for row in rows:
        by_key.setdefault(row.text("name_key"), []).append((row.text("name"), row.text("urn")))
    found: list[str] = []
    for near in get_close_matches(key, by_key, n=most, cutoff=_LIKENESS):
        same = by_key[near]
        if is_urn:
            same = sorted(same, key=lambda each: -SequenceMatcher(None, typed, each[1]).ratio())
        found += [urn if is_urn or len(same) > 1 else name for name, urn in same]
    return tuple(found[:most])
