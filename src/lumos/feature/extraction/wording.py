"""How a report words numbers, times and its verdict."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lumos.feature.extraction.catalog_report import CatalogReport

_BYTES = ("B", "kB", "MB", "GB", "TB", "PB")
_NUMBERS = ("", "K", "M", "B", "T")
_AGES = ((86_400 * 365, "year"), (86_400, "day"), (3_600, "hour"), (60, "minute"))
_THOUSAND = 1_000
_ROUNDED = 999.5
_SMALL = 9.95


def verdict(report: CatalogReport) -> str:
    """Say in a sentence or two what needs attention."""
    inventory = report.inventory
    if not inventory.datasets:
        return "The catalog is empty."
    parts = [_changed(report)]
    if unread := report.unreadable.total:
        parts.append(f"{unread:,} {plural('item', unread)} could not be read.")
    gaps = [
        f"{count:,} without {what}"
        for count, what in (
            (inventory.without_owner.total, "an owner"),
            (inventory.without_description.total, "a description"),
        )
        if count
    ]
    if gaps:
        parts.append(f"Datasets: {', '.join(gaps)}.")
    else:
        parts.append("Every dataset has an owner and a description.")
    return " ".join(parts)


def _changed(report: CatalogReport) -> str:
    if report.changes is None:
        return "There is no earlier snapshot to compare with yet."
    when = f" since {moment(report.since)}" if report.since else ""
    total = report.changes.changes.total
    if not total:
        return f"Nothing changed{when}."
    if breaking := report.breaking:
        return (
            f"{breaking:,} of {total:,} {plural('change', total)}{when} {_is(breaking)} breaking."
        )
    return f"{total:,} {plural('change', total)}{when}, none of them breaking."


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


def plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"


def short(number: int | None) -> str:
    return "" if number is None else _scaled(number, _NUMBERS).replace(" ", "")


def size(number: int | None) -> str:
    return "" if number is None else _scaled(number, _BYTES)


def _scaled(number: float, units: tuple[str, ...]) -> str:
    if number < _THOUSAND:
        return f"{number:,} {units[0]}".strip()
    for unit in units:
        if number < _ROUNDED or unit == units[-1]:
            return f"{number:,.1f} {unit}" if number < _SMALL else f"{number:,.0f} {unit}"
        number /= _THOUSAND
    raise AssertionError("the last unit always fits")


def moment(at: datetime | None) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if at else ""


def day(at: datetime | None) -> str:
    return f"{at.astimezone(UTC):%d %B %Y}".removeprefix("0") if at else ""


def ago(at: datetime, *, now: datetime) -> str:
    seconds = int((now - at).total_seconds())
    if seconds < 0:
        return "in the future"
    for length, unit in _AGES:
        if count := seconds // length:
            return f"{count:,} {plural(unit, count)} ago"
    return "just now"
