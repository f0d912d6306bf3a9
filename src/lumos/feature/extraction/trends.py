"""The figures of what was measured of a dataset over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from pydantic import Field

from lumos.core.models import (
    CostRecord,
    DatasetProfile,
    DatasetQuality,
    ObservationKind,
    OperationalMetadata,
)
from lumos.core.models.quality import AssertionStatus
from lumos.core.result_base import Result

if TYPE_CHECKING:
    from lumos.core.models import Observation
    from lumos.core.store.catalog.observations import StoredObservation

_FAILED = frozenset({AssertionStatus.FAILED, AssertionStatus.ERROR})


class TrendPoint(Result):
    """What was measured of a dataset at one time, in a few figures."""

    kind: ObservationKind
    at: datetime
    contributor: str = Field(description="Who measured it.")
    rows: int | None = None
    rows_estimated: bool = False
    size_bytes: int | None = None
    files: int | None = None
    quality_score: float | None = Field(default=None, description="In percent.")
    failed_checks: int | None = None
    cost: str | None = Field(default=None, description="Amount and currency.")
    change: float | None = Field(
        default=None,
        description="Against the one before of the same contributor: in rows, in percentage points "
        "of the score, or in the amount of money.",
    )


def trend_of(series: Sequence[StoredObservation]) -> Iterator[TrendPoint]:
    """Yield the figures of measurements of one kind, each with its change against the one before.

    A measurement is compared with the one before of the same contributor.
    """
    before: dict[str, Decimal | None] = {}
    for contributor, observation in series:
        point = _point(contributor, observation)
        figure = _figure(point)
        earlier = before.get(contributor)
        before[contributor] = figure
        if figure is None or earlier is None:
            yield point
        else:
            yield point.model_copy(update={"change": float(figure - earlier)})


def _point(contributor: str, observation: Observation) -> TrendPoint:
    kind, document = observation.kind, observation.document
    figures: dict[str, object] = {}
    if kind is ObservationKind.STATISTICS:
        seen = OperationalMetadata.from_json(document)
        exact = seen.row_count is not None
        figures["rows"] = seen.row_count if exact else seen.row_count_estimate
        figures["rows_estimated"] = not exact and seen.row_count_estimate is not None
        figures["size_bytes"], figures["files"] = seen.total_size_bytes, seen.file_count
    elif kind is ObservationKind.PROFILE:
        profile = DatasetProfile.from_json(document)
        figures["rows"], figures["files"] = profile.row_count, profile.file_count
    elif kind is ObservationKind.QUALITY:
        quality = DatasetQuality.from_json(document)
        figures["quality_score"] = quality.score
        if quality.checks:
            figures["failed_checks"] = sum(each.status in _FAILED for each in quality.checks)
    elif kind is ObservationKind.COST:
        cost = CostRecord.from_json(document)
        figures["cost"] = f"{cost.amount} {cost.currency}"
    return TrendPoint.model_validate(
        {"kind": kind, "at": observation.at, "contributor": contributor, **figures}
    )


def _figure(point: TrendPoint) -> Decimal | None:
    """Return the figure by which measurements are compared."""
    if point.cost is not None:
        return Decimal(point.cost.partition(" ")[0])
    figure = point.rows if point.rows is not None else point.quality_score
    if figure is None:
        figure = point.failed_checks
    return None if figure is None else Decimal(str(figure))
