"""Column statistics in the footer of an ORC file."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Final

from lumos.core.formats.protobuf_walk import (
    DamagedMessageError,
    numbers_of,
    packed,
    parts_of,
    signed,
)
from lumos.core.models import ColumnStatistics, FieldType, TypeName
from lumos.core.models.statistics import Bound, bound_of

if TYPE_CHECKING:
    from lumos.core.formats.known_schemas import KnownSchema

_Message = Mapping[int, int | bytes]
_VALUES, _BUCKETS, _TIMESTAMPS, _BYTES_ON_DISK = 1, 5, 9, 11
_TIMES: Final = frozenset({TypeName.TIMESTAMP, TypeName.TIMESTAMP_NTZ})
_DOUBLE: Final = struct.Struct("<d")
_EPOCH: Final = date(1970, 1, 1)
_LAST_NANO: Final = 999_999
"""The last nanosecond of a millisecond, where the writer does not say which one it is."""


def column_statistics(
    contents: Sequence[bytes],
    known: KnownSchema,
    *,
    rows: int,
    value_ranges: bool,
) -> dict[str, ColumnStatistics]:
    """Return the statistics of each column by its path; ranges only where they are asked for.

    ORC counts the values of a column and not its nulls, so inside of lists, maps and unions
    nobody knows how many nulls there are.

    Raises:
        DamagedMessageError: the statistics are damaged.
    """
    found = {}
    for (path, leaf), (place, single) in zip(known.leaves, known.places, strict=True):
        if place >= len(contents):
            return {}
        content = contents[place]
        numbers = numbers_of(content)
        values, on_disk = numbers.get(_VALUES), numbers.get(_BYTES_ON_DISK)
        if not single and on_disk is None and not value_ranges:
            continue
        nulls = rows - values if single and values is not None else None
        low, high = _range(content, leaf) if value_ranges and values else (None, None)
        found[path] = ColumnStatistics(
            rows if single else None,
            nulls if nulls is None or nulls >= 0 else None,
            on_disk,
            None,
            low,
            high,
        )
    return found


def _range(content: bytes, leaf: FieldType) -> tuple[Bound | None, Bound | None]:
    try:
        ends = _ends(dict(parts_of(content)), leaf)
    except (ValueError, OverflowError, InvalidOperation, struct.error, DamagedMessageError):
        return None, None  # such as a year that no calendar here knows
    if ends is None:
        return None, None
    low, high = (bound_of(end) for end in ends)
    return (None, None) if low is None or high is None else (low, high)


def _ends(parts: _Message, leaf: FieldType) -> tuple[object, object] | None:
    if leaf.type is TypeName.BOOLEAN:
        trues = sum(packed(_message(parts, _BUCKETS).get(1, 0)))
        return trues == parts.get(_VALUES), trues > 0
    if leaf.type in _TIMES:
        return _moments(_message(parts, _TIMESTAMPS), leaf)
    if leaf.type not in _CONVERTERS:
        return None
    number, convert = _CONVERTERS[leaf.type]
    ends = _message(parts, number)
    if 1 not in ends or 2 not in ends:  # noqa: PLR2004 - minimum and maximum
        return None
    return convert(ends[1]), convert(ends[2])


def _moments(ends: _Message, leaf: FieldType) -> tuple[object, object] | None:
    low, high = ends.get(3), ends.get(4)
    if low is None or high is None:
        return None  # before ORC 1.5, in a time zone that the file does not name here
    nanos = (_number(ends.get(5, 1)) - 1, _number(ends.get(6, _LAST_NANO + 1)) - 1)
    zone = UTC if leaf.type is TypeName.TIMESTAMP else None
    epoch = datetime(1970, 1, 1, tzinfo=zone)
    return (
        epoch + timedelta(milliseconds=signed(_number(low)), microseconds=nanos[0] // 1_000),
        epoch + timedelta(milliseconds=signed(_number(high)), microseconds=nanos[1] // 1_000),
    )


def _message(parts: _Message, number: int) -> _Message:
    return dict(parts_of(_content(parts.get(number, b""))))


def _number(value: int | bytes) -> int:
    if not isinstance(value, int):
        raise DamagedMessageError
    return value


def _content(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise DamagedMessageError
    return value


def _integer(value: int | bytes) -> int:
    return signed(_number(value))


def _double(value: int | bytes) -> float:
    number: float = _DOUBLE.unpack(_content(value))[0]
    return number


def _decimal(value: int | bytes) -> Decimal:
    return Decimal(_content(value).decode("ascii"))


def _day(value: int | bytes) -> date:
    return _EPOCH + timedelta(days=signed(_number(value)))


_CONVERTERS: Final[dict[TypeName, tuple[int, Callable[[int | bytes], object]]]] = {
    TypeName.INT8: (2, _integer),
    TypeName.INT16: (2, _integer),
    TypeName.INT32: (2, _integer),
    TypeName.INT64: (2, _integer),
    TypeName.FLOAT: (3, _double),
    TypeName.DOUBLE: (3, _double),
    TypeName.DECIMAL: (6, _decimal),
    TypeName.DATE: (7, _day),
}
"""In which part of the statistics the ends of a range are, and how they are written there."""
