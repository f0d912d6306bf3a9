"""Differences in the conditions that every row has to meet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from lumos.core.changes.detectors.sets import only_in_one
from lumos.core.changes.finding import Finding
from lumos.core.changes.text import quoted
from lumos.core.models.base import canonical_json

if TYPE_CHECKING:
    from lumos.core.models import Check

_LEAST, _MOST = ("minimum", "min_length"), ("maximum", "max_length")
_TEXTS = ("pattern", "expression")


def check_findings(old: Sequence[Check], new: Sequence[Check]) -> Iterator[Finding]:
    """Yield checks, known by name and column, that came, went, or let fewer or more rows pass."""
    lost, won = only_in_one(_keyed(old), _keyed(new))
    before, after = _by_identity(lost), _by_identity(won)
    for identity in sorted(before.keys() | after.keys()):
        for one, other in zip_longest(before[identity], after[identity]):
            yield _finding(one, other)


def _keyed(checks: Sequence[Check]) -> list[tuple[bytes, Check]]:
    return [(canonical_json(check.to_json()), check) for check in checks]


def _by_identity(checks: Sequence[Check]) -> defaultdict[tuple[str, str], list[Check]]:
    grouped: defaultdict[tuple[str, str], list[Check]] = defaultdict(list)
    for check in checks:
        grouped[check.name or "", check.column or ""].append(check)
    return grouped


def _finding(old: Check | None, new: Check | None) -> Finding:
    return Finding(
        f"check.{_verb(old, new)}",
        old=old.to_json() if old else None,
        new=new.to_json() if new else None,
        subject=_named(old or new),
    )


def _named(check: Check | None) -> str:
    name, column = (check.name, check.column) if check else (None, None)
    named = f" {quoted(name)}" if name else ""
    return f"check{named}" + (f" on {quoted(column)}" if column else "")


def _verb(old: Check | None, new: Check | None) -> str:
    if old is None or new is None:
        return "added" if old is None else "removed"
    steps = {_step(old, new, name) for name in (*_LEAST, *_MOST, *_TEXTS)} - {"same"}
    return steps.pop() if len(steps) == 1 else "changed"


def _step(old: Check, new: Check, name: str) -> str:
    before, after = getattr(old, name), getattr(new, name)
    if before == after:
        return "same"
    if before is None or after is None:
        return "tightened" if before is None else "loosened"
    if name in _TEXTS:
        return "changed"
    return "tightened" if (after > before) == (name in _LEAST) else "loosened"
