"""A profile as `lumos profile` and `lumos show` print it: one line for each column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lumos.entry.cli.output import counted

if TYPE_CHECKING:
    from lumos.core.models.profile import ColumnProfile, DatasetProfile

_HEADERS = ("column", "type", "nulls", "distinct", "values")
_TO_THE_RIGHT = frozenset({2, 3})
_LONGEST_TYPE = 24
_MEDIAN = 0.5


def profile_lines(profile: DatasetProfile, *, indent: str = "  ") -> Iterator[str]:
    """Yield a table of what is known of each column."""
    yield from (f"{indent}{line}" for line in _table(list(map(_cells, profile.columns))))


def profile_summary(profile: DatasetProfile) -> str:
    """Say in one line what the figures are of, and of when."""
    parts = [f"{counted(profile.row_count, 'row')} of {counted(profile.file_count, 'file')}"]
    if profile.sample is not None:
        parts.append(f"a sample of {profile.sample:.3g} with seed {profile.seed}")
    if profile.failed_file_count:
        parts.append(f"{counted(profile.failed_file_count, 'file')} could not be read")
    return f"{', '.join(parts)}, {profile.profiled_at:%Y-%m-%d %H:%M} UTC"


def _cells(column: ColumnProfile) -> tuple[str, ...]:
    share = "" if column.null_share is None else _percent(column.null_share)
    distinct = "" if column.distinct_count is None else f"{column.distinct_count:,}"
    return column.path, _short(column.type), share, distinct, ", ".join(_values(column))


def _values(column: ColumnProfile) -> Iterator[str]:
    if column.min is not None and column.max is not None:
        yield f"{_plain(column.min)} to {_plain(column.max)}"
    if column.mean is not None:
        yield f"mean {column.mean:.6g}"
    for quantile in column.quantiles:
        if quantile.share == _MEDIAN:
            yield f"median {_plain(quantile.value)}"
    if column.true_count is not None and column.value_count:
        yield f"{_percent(column.true_count / column.value_count)} true"
    if length := column.length:
        yield f"length {length.min:,} to {length.max:,}, mean {length.mean:.6g}"
    if column.not_finite_count:
        yield f"{column.not_finite_count:,} not finite"
    if column.misfit_count:
        yield f"{column.misfit_count:,} of another type"


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    every = [_HEADERS, *rows]
    widths = [max(len(row[place]) for row in every) for place in range(len(_HEADERS) - 1)]
    for row in every:
        cells = [
            f"{cell:>{width}}" if place in _TO_THE_RIGHT else f"{cell:<{width}}"
            for place, (cell, width) in enumerate(zip(row, widths, strict=False))
        ]
        yield "  ".join([*cells, row[-1]]).rstrip()


def _percent(share: float) -> str:
    """Write a share so that only nothing is 0% and only everything is 100%."""
    if 0 < share < 0.001:  # noqa: PLR2004
        return "<0.1%"
    if 0.999 < share < 1:  # noqa: PLR2004
        return ">99.9%"
    return f"{share * 100:.3g}%"


def _short(type_: str) -> str:
    if type_.startswith("STRUCT<"):
        return "STRUCT"
    return type_ if len(type_) <= _LONGEST_TYPE else f"{type_[: _LONGEST_TYPE - 1]}…"


def _plain(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
