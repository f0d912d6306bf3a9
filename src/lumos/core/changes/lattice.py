"""Which type holds every value of which other type, as data."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from lumos.core.models import FieldType, TimeUnit, TypeName

_T = TypeName


class Widening(NamedTuple):
    """A step to a type that holds every old value, and the formats that promote it in place."""

    old: TypeName
    new: TypeName
    accepted_by: tuple[str, ...] = ()


WIDENINGS: tuple[Widening, ...] = (
    Widening(_T.INT8, _T.INT16, ("delta",)),
    Widening(_T.INT8, _T.INT32, ("delta",)),
    Widening(_T.INT8, _T.INT64, ("delta",)),
    Widening(_T.INT16, _T.INT32, ("delta",)),
    Widening(_T.INT16, _T.INT64, ("delta",)),
    Widening(_T.INT32, _T.INT64, ("avro", "delta", "iceberg")),
    Widening(_T.UINT8, _T.UINT16),
    Widening(_T.UINT8, _T.UINT32),
    Widening(_T.UINT8, _T.UINT64),
    Widening(_T.UINT16, _T.UINT32),
    Widening(_T.UINT16, _T.UINT64),
    Widening(_T.UINT32, _T.UINT64),
    Widening(_T.UINT8, _T.INT16),
    Widening(_T.UINT8, _T.INT32),
    Widening(_T.UINT8, _T.INT64),
    Widening(_T.UINT16, _T.INT32),
    Widening(_T.UINT16, _T.INT64),
    Widening(_T.UINT32, _T.INT64),
    Widening(_T.INT8, _T.FLOAT),
    Widening(_T.INT16, _T.FLOAT),
    Widening(_T.UINT8, _T.FLOAT),
    Widening(_T.UINT16, _T.FLOAT),
    Widening(_T.INT8, _T.DOUBLE, ("delta",)),
    Widening(_T.INT16, _T.DOUBLE, ("delta",)),
    Widening(_T.INT32, _T.DOUBLE, ("avro", "delta")),
    Widening(_T.UINT8, _T.DOUBLE),
    Widening(_T.UINT16, _T.DOUBLE),
    Widening(_T.UINT32, _T.DOUBLE),
    Widening(_T.FLOAT, _T.DOUBLE, ("avro", "delta", "iceberg")),
    Widening(_T.DATE, _T.TIMESTAMP_NTZ, ("delta", "iceberg_v3")),
)

DIGITS: Mapping[TypeName, int] = MappingProxyType(
    {
        _T.INT8: 3,
        _T.INT16: 5,
        _T.INT32: 10,
        _T.INT64: 19,
        _T.UINT8: 3,
        _T.UINT16: 5,
        _T.UINT32: 10,
        _T.UINT64: 20,
    }
)
"""How many digits before the point a decimal needs to hold every value of a whole-number type."""

NESTED = frozenset({_T.ARRAY, _T.MAP, _T.STRUCT, _T.UNION})

COARSEST_FIRST: tuple[TimeUnit, ...] = (
    TimeUnit.SECOND,
    TimeUnit.MILLISECOND,
    TimeUnit.MICROSECOND,
    TimeUnit.NANOSECOND,
)

_ACCEPTED_BY = {(row.old, row.new): row.accepted_by for row in WIDENINGS}


def widens(old: FieldType, new: FieldType) -> bool:
    """Tell whether a type of another name holds every value of the old one."""
    if (old.type, new.type) in _ACCEPTED_BY:
        return True
    if new.type is not TypeName.DECIMAL or old.type not in DIGITS or new.precision is None:
        return False
    scale = new.scale or 0
    return scale >= 0 and new.precision - scale >= DIGITS[old.type]


def accepted_by(old: FieldType, new: FieldType) -> tuple[str, ...]:
    """Name the table and message formats that make this step without rewriting data."""
    return _ACCEPTED_BY.get((old.type, new.type), ())
