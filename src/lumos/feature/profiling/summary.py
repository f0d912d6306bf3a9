"""From the figures of flat columns to the profile of a dataset."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from lumos.core.models.profile import ColumnProfile, LengthProfile, Quantile
from lumos.core.models.statistics import Bound, bound_of
from lumos.spark.stages.profiling import SHARES, ColumnKind, Figures

if TYPE_CHECKING:
    from lumos.feature.profiling.columns import ProfiledColumn

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def column_profiles(
    columns: Sequence[ProfiledColumn], figures: Figures
) -> tuple[ColumnProfile, ...]:
    """Return the profile of each column, in their order."""
    return tuple(
        _profile(column, figures.columns[column.flat.name], rows=figures.rows) for column in columns
    )


def _profile(column: ProfiledColumn, told: Mapping[str, object], *, rows: int) -> ColumnProfile:
    given = _count(told.get("given", told["count"]))
    quantiles = told.get("quantiles")
    values = quantiles if isinstance(quantiles, list) else []
    return ColumnProfile(
        path=column.path,
        type=column.field.signature(),
        value_count=given,
        null_count=rows - given,
        null_share=(rows - given) / rows if rows else None,
        misfit_count=given - _count(told["count"]),
        not_finite_count=_count(told["count"]) - _count(told.get("finite", told["count"])),
        true_count=None if "true" not in told else _count(told["true"]),
        distinct_count=None if "distinct" not in told else _distinct(told, given),
        min=_value(told.get("min"), column),
        max=_value(told.get("max"), column),
        mean=_finite(told.get("mean")),
        stddev=_finite(told.get("stddev")),
        quantiles=tuple(
            Quantile(share=share, value=value)
            for share, each in zip(SHARES[: len(values)], values, strict=True)
            if (value := _value(each, column)) is not None
        ),
        length=_length(told),
    )


def _distinct(told: Mapping[str, object], given: int) -> int:
    """Return the estimate, which may not say that there are more than values."""
    return min(_count(told["distinct"]), given)


def _length(told: Mapping[str, object]) -> LengthProfile | None:
    mean = _finite(told.get("length"))
    if mean is None:
        return None
    return LengthProfile(min=_count(told["shortest"]), mean=mean, max=_count(told["longest"]))


def _value(found: object, column: ProfiledColumn) -> Bound | None:
    """Return a value as it is stored; what no calendar holds is left out."""
    if found is None or column.flat.kind not in (ColumnKind.MOMENT, ColumnKind.TIME):
        return bound_of(found)
    try:
        moment = _EPOCH + timedelta(microseconds=_number(found))
    except OverflowError:
        return None
    if column.flat.kind is ColumnKind.TIME:
        return bound_of(moment.timetz().replace(tzinfo=None))
    return bound_of(moment if column.has_zone else moment.replace(tzinfo=None))


def _finite(found: object) -> float | None:
    return found if isinstance(found, float) and math.isfinite(found) else None


def _count(found: object) -> int:
    return _number(found or 0)


def _number(found: object) -> int:
    assert isinstance(found, int)  # noqa: S101 - as Spark counts
    return found
