"""Whether a promise in words or numbers became stronger or weaker."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

from lumos.core.models.base import canonical_json

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.models import DQAssertion

_SHARE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%\s*")
_DURATION = re.compile(
    r"\s*(\d+(?:\.\d+)?)\s*(m|min|minutes?|h|hours?|d|days?|w|weeks?)\s*", re.IGNORECASE
)
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_MORE_IS_STRONGER = frozenset({"min", "minimum", "min_value", "min_count", "mostly", "at_least"})
_LESS_IS_STRONGER = frozenset({"max", "maximum", "max_value", "max_count", "tolerance", "at_most"})


def promise_verb(old: str | None, new: str | None) -> str:
    """Compare two service levels: more percent and less time are stronger; words have no order."""
    before, after = _strength(old or ""), _strength(new or "")
    if before is None or after is None or before[0] != after[0] or before == after:
        return "changed"
    return "tightened" if after > before else "loosened"


def _strength(text: str) -> tuple[str, float] | None:
    if share := _SHARE.fullmatch(text):
        return "share", float(share[1])
    if duration := _DURATION.fullmatch(text):
        try:
            lasts = timedelta(**{_UNITS[duration[2][0].lower()]: float(duration[1])})
        except OverflowError:
            return None
        return "time", -lasts.total_seconds()
    return None


def threshold_verb(old: DQAssertion, new: DQAssertion) -> str:
    """Return whether only thresholds of a check moved, and whether fewer or more rows pass."""
    before, after = old.parameters, new.parameters
    same = (old.kind, old.expression, old.validator) == (new.kind, new.expression, new.validator)
    if not same or before.keys() != after.keys():
        return "changed"
    steps = {
        _step(name, before[name], after=after[name])
        for name in before
        if canonical_json(before[name]) != canonical_json(after[name])
    }
    return f"threshold.{steps.pop()}" if steps in ({"tightened"}, {"loosened"}) else "changed"


def _step(name: str, before: JsonValue, *, after: JsonValue) -> str:
    if not (_is_number(before) and _is_number(after)) or before == after:
        return "changed"
    raised = after > before  # type: ignore[operator]
    if name in _MORE_IS_STRONGER:
        return "tightened" if raised else "loosened"
    if name in _LESS_IS_STRONGER:
        return "loosened" if raised else "tightened"
    return "changed"


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
