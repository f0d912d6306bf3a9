"""Gives columns names that are unique, whatever the source allows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


def unique_names(names: Sequence[str], *, within: str = "") -> tuple[list[str], list[str]]:
    """Return a unique name for each column and a warning for each that had to change.

    Later columns of one name get a number and nameless ones their position. The same names always
    become the same names, and no name that was unique changes.
    """
    counts = Counter(names)
    if len(counts) == len(names) and "" not in counts:
        return list(names), []
    taken = set(names)
    times_seen: Counter[str] = Counter()
    unique, warnings = [], []
    for position, name in enumerate(names, start=1):
        times_seen[name] += 1
        if name and times_seen[name] == 1:
            unique.append(name)
            continue
        new = f"{name}_{times_seen[name]}" if name else f"column_{position}"
        while new in taken:
            times_seen[name] += 1
            new = f"{name or f'column_{position}'}_{times_seen[name]}"
        taken.add(new)
        unique.append(new)
        place = f" in {within}" if within else ""
        reason = f"column name '{name}' occurs again" if name else "a column has no name"
        warnings.append(f"{reason}{place}; it is called '{new}' here")
    return unique, warnings
