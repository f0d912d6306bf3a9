"""What is observed on columns: counts, sizes and, where allowed, ranges; no part of a contract."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Annotated, NamedTuple, Self

from pydantic import Field as ModelField
from pydantic import JsonValue

from lumos.core.errors import InvalidModelError
from lumos.core.models.base import LARGEST_INTEGER, CanonicalModel, Count, Name

Bound = bool | int | float | str
"""An end of a range. Decimals and large integers are spelled out; dates and times are ISO 8601,
times with microseconds, so that later ones sort after earlier ones."""
_StoredBound = (
    bool | Annotated[int, ModelField(ge=-LARGEST_INTEGER, le=LARGEST_INTEGER)] | float | str
)


class ColumnStatistics(NamedTuple):
    """The statistics of one column over the footers of any number of files.

    The statistics of no file are `ColumnStatistics()`, and adding up is associative and
    commutative, so it may happen in any order and in parts. None means unknown; what is unknown
    in one file is unknown in the sum.
    """

    value_count: int | None = 0
    """Entries, nulls included; inside of lists, the entries of all lists."""
    null_count: int | None = 0
    compressed_bytes: int | None = 0
    uncompressed_bytes: int | None = 0
    minimum: Bound | None = None
    maximum: Bound | None = None

    def merged_with(self, other: ColumnStatistics) -> ColumnStatistics:
        """Return the statistics of both together."""
        low, high = self._range_with(other)
        return ColumnStatistics(
            _sum(self.value_count, other.value_count),
            _sum(self.null_count, other.null_count),
            _sum(self.compressed_bytes, other.compressed_bytes),
            _sum(self.uncompressed_bytes, other.uncompressed_bytes),
            low,
            high,
        )

    def _range_with(self, other: ColumnStatistics) -> tuple[Bound | None, Bound | None]:
        if self.minimum is None or self.maximum is None:
            return (other.minimum, other.maximum) if self._is_empty() else (None, None)
        if other.minimum is None or other.maximum is None:
            return (self.minimum, self.maximum) if other._is_empty() else (None, None)
        ranked = [
            (_rank(bound), bound)
            for bound in (self.minimum, self.maximum, other.minimum, other.maximum)
        ]
        if len({rank[0] for rank, _ in ranked}) > 1:
            return None, None  # the column holds numbers here and times there
        return min(ranked)[1], max(ranked)[1]

    def _is_empty(self) -> bool:
        return self.value_count is not None and self.value_count == self.null_count

    def to_json(self) -> list[JsonValue]:
        """Return the statistics as a JSON array; the range is left out where there is none."""
        return list(self if self.minimum is not None else self[:4])

    @classmethod
    def from_json(cls, document: JsonValue) -> Self:
        """Return the statistics of which `to_json` made this array.

        Raises:
            InvalidModelError: the array does not hold statistics of a column.
        """
        if not isinstance(document, list) or len(document) not in (4, 6):
            raise InvalidModelError("not the statistics of a column")
        return cls(*document)  # type: ignore[arg-type]

    def facts(self, path: str) -> ColumnFacts:
        """Return the statistics as the observed facts of the column at this path."""
        return ColumnFacts(
            path=path,
            value_count=self.value_count,
            null_count=self.null_count,
            compressed_bytes=self.compressed_bytes,
            uncompressed_bytes=self.uncompressed_bytes,
            min=self.minimum,
            max=self.maximum,
        )


class ColumnFacts(CanonicalModel):
    """Observed facts on one column of a dataset."""

    path: Name = ModelField(
        description="The column, or what is inside it: `address.city`, `items[].price`."
    )
    value_count: Count | None = ModelField(
        default=None, description="Entries counted, nulls included."
    )
    null_count: Count | None = None
    compressed_bytes: Count | None = None
    uncompressed_bytes: Count | None = None
    min: _StoredBound | None = ModelField(
        default=None, description="Only where allowed, and never for text."
    )
    max: _StoredBound | None = None


class PartitionRange(CanonicalModel):
    """The values of one partition key: names of folders, not values of the data."""

    key: Name
    type: str | None = ModelField(default=None, description="The type that holds every value.")
    min: str | None = None
    max: str | None = None


def merged_columns(
    parts: Iterable[Mapping[str, ColumnStatistics]],
) -> dict[str, ColumnStatistics]:
    """Return the statistics of each column over all parts; a part may lack columns."""
    merged: dict[str, ColumnStatistics] = {}
    for part in parts:
        for path, statistics in part.items():
            known = merged.get(path)
            merged[path] = statistics if known is None else known.merged_with(statistics)
    return merged


def bound_of(value: object) -> Bound | None:
    """Return an end of a range as it may be stored; None for what has no order or no spelling."""
    match value:
        case bool():
            return value
        case int():
            return value if -LARGEST_INTEGER <= value <= LARGEST_INTEGER else str(value)
        case float():
            return value if math.isfinite(value) else None
        case Decimal():
            return f"{value:f}" if value.is_finite() else None
        case datetime():
            text = value.replace(tzinfo=None).isoformat(timespec="microseconds")
            return text if value.tzinfo is None else f"{text}Z"
        case time():
            return value.isoformat(timespec="microseconds")
        case date():
            return value.isoformat()
        case _:
            return None


def _sum(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else left + right


def _rank(bound: Bound) -> tuple[str, bool | Decimal | str, str]:
    """What a bound is sorted by: its kind, its worth and, so that no tie is left, its spelling."""
    if isinstance(bound, bool):
        return "boolean", bound, ""
    try:
        return "number", Decimal(bound), repr(bound)
    except InvalidOperation:
        return f"text {len(str(bound))}", str(bound), ""
