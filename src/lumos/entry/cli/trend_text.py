"""What was measured of a dataset over time, as `lumos show --trend` prints it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from lumos.core.models import ObservationKind
from lumos.entry.cli.dataset_text import moment, size_text
from lumos.entry.cli.output import counted

if TYPE_CHECKING:
    from lumos.core.controllers.catalog_results import TrendResult
    from lumos.feature.extraction.trends import TrendPoint

_COLUMNS = {
    ObservationKind.STATISTICS: ("time", "rows", "change", "size", "files", "by"),
    ObservationKind.PROFILE: ("time", "rows", "change", "files", "by"),
    ObservationKind.QUALITY: ("time", "score", "failed checks", "change", "by"),
    ObservationKind.COST: ("time", "cost", "change", "by"),
}
_OTHERS = ("time", "by")
_LEFT = frozenset({"time", "by"})


def trend_lines(trend: TrendResult) -> Iterator[str]:
    """Yield a small table for each kind of measurement, newest last."""
    yield trend.urn
    if not trend.observations:
        yield "  nothing was measured of it yet; lumos ingest and lumos profile do"
    for kind, points in groupby(trend.observations, key=lambda point: point.kind):
        yield f"{kind.lower()}:"
        yield from _table(_COLUMNS.get(kind, _OTHERS), [*points])
    if trend.damaged:
        yield f"{counted(trend.damaged, 'measurement')} left out: damaged; see lumos doctor"


def _table(columns: Sequence[str], points: Sequence[TrendPoint]) -> Iterator[str]:
    cells = [columns, *([_cell(point, column) for column in columns] for point in points)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        aligned = (
            f"{cell:<{width}}" if column in _LEFT else f"{cell:>{width}}"
            for column, cell, width in zip(columns, row, widths, strict=True)
        )
        yield f"  {'  '.join(aligned)}".rstrip()


def _cell(point: TrendPoint, column: str) -> str:
    """Write one figure; `-` where it is not known."""
    cells = {
        "time": moment(point.at),
        "rows": _number(point.rows, before="about " if point.rows_estimated else ""),
        "size": None if point.size_bytes is None else size_text(point.size_bytes),
        "files": _number(point.files),
        "score": None if point.quality_score is None else f"{point.quality_score:g}%",
        "failed checks": _number(point.failed_checks),
        "cost": point.cost,
        "change": None if point.change is None else _change(point.change),
        "by": point.contributor,
    }
    return cells[column] or "-"


def _number(count: int | None, *, before: str = "") -> str | None:
    return None if count is None else f"{before}{count:,}"


def _change(change: float) -> str:
    return f"{int(change):+,}" if change.is_integer() else f"{change:+,.2f}"
