"""What OpenMetadata has of a table besides its latest profile: earlier ones, and its writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from lumos.core.json_reading import objects_at
from lumos.core.platform.impl.openmetadata.mapping.figures import (
    TABLE,
    count,
    moment_of,
    table_figures,
)

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json


SYSTEM: Final = "systemProfile"
EARLIER: Final = "earlierProfiles"
_OPERATIONS: Final = frozenset({"INSERT", "UPDATE", "DELETE", "WRITE"})
_DAY: Final = 86_400_000


class Window(NamedTuple):
    """A span of time, in milliseconds, with both ends."""

    start: int
    end: int


def window_before(at: int, *, days: int) -> Window:
    """Return the days before a profile, and the one after it, as writes may be reported later."""
    return Window(max(0, at - days * _DAY), at + _DAY)


def told_history(
    profiles: Iterable[JsonValue], writes: Iterable[JsonValue], *, before: int
) -> dict[str, JsonValue]:
    """Return earlier profiles of a table and what was written to it, the oldest first."""
    earlier = [table_figures(each) for each in profiles if isinstance(each, dict)]
    return {
        **_listed(EARLIER, [each for each in earlier if _time(each) < before]),
        **_listed(SYSTEM, [_write(each) for each in writes if isinstance(each, dict)]),
    }


def kept_history(kept: Mapping[str, JsonValue], *, before: int) -> dict[str, JsonValue]:
    """Return what of kept figures is such a history, checked anew."""
    given = ((kept.get(name) or []) for name in (EARLIER, SYSTEM))
    profiles, writes = (each if isinstance(each, list) else [] for each in given)
    return told_history(profiles, writes, before=before)


def bodies_of(figures: Json) -> list[Json]:
    """Return the requests that bring a profile and its history to a server, the latest last.

    As long as that one is missing, all are sent again.
    """
    earlier = objects_at(figures, EARLIER)
    latest = {name: value for name, value in figures.items() if name != EARLIER}
    before: list[Json] = [{TABLE: each} for each in earlier]
    return [*before, latest]


def last_written(kept: Mapping[str, JsonValue]) -> datetime | None:
    """Return when a table was last written to, where that is known."""
    writes = objects_at(kept, SYSTEM)
    return moment_of(max(map(_time, writes))) if writes else None


def _listed(name: str, figures: Iterable[Json]) -> dict[str, JsonValue]:
    found = sorted((each for each in figures if _time(each) >= 0), key=_time)
    return {name: [*found]} if found else {}


def _write(told: Json) -> Json:
    rows = told.get("rowsAffected")
    write: Json = {name: told[name] for name in ("timestamp",) if name in told}
    if told.get("operation") in _OPERATIONS:
        write["operation"] = told["operation"]
    if count(rows) is not None:
        write["rowsAffected"] = count(rows)
    return write


def _time(figures: Mapping[str, JsonValue]) -> int:
    at = count(figures.get("timestamp"))
    return -1 if at is None else at
