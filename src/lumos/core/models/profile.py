"""What a look at the data itself showed: observations on demand, no part of a contract."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field as ModelField

from lumos.core.models.base import LARGEST_INTEGER, CanonicalModel, Count, Name, UtcDatetime

_Value = bool | Annotated[int, ModelField(ge=-LARGEST_INTEGER, le=LARGEST_INTEGER)] | float | str
"""A value as `ColumnFacts` spells it: decimals and large integers as text, times in ISO 8601."""


class Quantile(CanonicalModel):
    """A value of a column that no more than a share of its values lie below."""

    share: Annotated[float, ModelField(ge=0, le=1)] = ModelField(description="0.5 for the median.")
    value: _Value


class LengthProfile(CanonicalModel):
    """How long values are: characters of text, bytes of binary, entries of lists and maps."""

    min: Count
    mean: float
    max: Count


class ColumnProfile(CanonicalModel):
    """What the data of one column shows. It never holds text of the data."""

    path: Name = ModelField(description="The column, or a member of it: `address.city`.")
    type: Name = ModelField(description="The type as the schema has it.")
    value_count: Count = ModelField(description="Values that are there, without nulls.")
    null_count: Count = ModelField(description="Rows without a value.")
    null_share: Annotated[float, ModelField(ge=0, le=1)] | None = ModelField(
        default=None, description="Nulls of all rows; absent where there are no rows."
    )
    misfit_count: Count = ModelField(
        default=0, description="Values that are not of the column's type, such as `n/a` of numbers."
    )
    not_finite_count: Count = ModelField(
        default=0, description="Numbers that are NaN or infinite; no other figure counts them."
    )
    true_count: Count | None = ModelField(default=None, description="Of booleans.")
    distinct_count: Count | None = ModelField(
        default=None, description="About how many different values, within a few percent."
    )
    min: _Value | None = ModelField(default=None, description="Of numbers, dates and times.")
    max: _Value | None = None
    mean: float | None = ModelField(default=None, description="Of numbers.")
    stddev: float | None = ModelField(default=None, description="Of numbers, by the sample.")
    quantiles: tuple[Quantile, ...] = ModelField(default=(), description="Of numbers.")
    length: LengthProfile | None = ModelField(
        default=None, description="Of text, binary values, lists and maps."
    )


class DatasetProfile(CanonicalModel):
    """What the data of a dataset showed at one time."""

    profiled_at: UtcDatetime
    row_count: Count = ModelField(description="Rows that the figures are of.")
    file_count: Count = ModelField(description="Files that the rows come from.")
    failed_file_count: Count = ModelField(
        default=0, description="Files that could not be read and are left out."
    )
    sample: Annotated[float, ModelField(gt=0, le=1)] | None = ModelField(
        default=None, description="The share of rows looked at; absent where all were."
    )
    seed: int | None = ModelField(
        default=None, description="What the sample was drawn with; the same draws the same rows."
    )
    columns: tuple[ColumnProfile, ...] = ()
