"""Which type holds every value of which other type, and which formats promote it, as data."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from lumos.core.changes.profiles import BASES
from lumos.core.models import FieldType, TimeUnit, TypeName

_T = TypeName

FORMATS: tuple[str, ...] = ("avro", "delta", "iceberg", "iceberg_v3")
"""The profiles that take a change of type by the lattice and not by the rule."""


class Promotion(NamedTuple):
    """A step from one type to another, and the formats that make it without rewriting data."""

    old: TypeName
    new: TypeName
    accepted_by: tuple[str, ...] = ()


WIDENINGS: tuple[Promotion, ...] = (
    Promotion(_T.INT8, _T.INT16, ("delta",)),
    Promotion(_T.INT8, _T.INT32, ("delta",)),
    Promotion(_T.INT8, _T.INT64, ("delta",)),
    Promotion(_T.INT16, _T.INT32, ("delta",)),
    Promotion(_T.INT16, _T.INT64, ("delta",)),
    Promotion(_T.INT32, _T.INT64, ("avro", "delta", "iceberg")),
    Promotion(_T.UINT8, _T.UINT16),
    Promotion(_T.UINT8, _T.UINT32),
    Promotion(_T.UINT8, _T.UINT64),
    Promotion(_T.UINT16, _T.UINT32),
    Promotion(_T.UINT16, _T.UINT64),
    Promotion(_T.UINT32, _T.UINT64),
    Promotion(_T.UINT8, _T.INT16),
    Promotion(_T.UINT8, _T.INT32),
    Promotion(_T.UINT8, _T.INT64),
    Promotion(_T.UINT16, _T.INT32),
    Promotion(_T.UINT16, _T.INT64),
    Promotion(_T.UINT32, _T.INT64),
    Promotion(_T.INT8, _T.FLOAT),
    Promotion(_T.INT16, _T.FLOAT),
    Promotion(_T.UINT8, _T.FLOAT),
    Promotion(_T.UINT16, _T.FLOAT),
    Promotion(_T.INT8, _T.DOUBLE, ("delta",)),
    Promotion(_T.INT16, _T.DOUBLE, ("delta",)),
    Promotion(_T.INT32, _T.DOUBLE, ("avro", "delta")),
    Promotion(_T.UINT8, _T.DOUBLE),
    Promotion(_T.UINT16, _T.DOUBLE),
    Promotion(_T.UINT32, _T.DOUBLE),
    Promotion(_T.FLOAT, _T.DOUBLE, ("avro", "delta", "iceberg")),
    Promotion(_T.DATE, _T.TIMESTAMP_NTZ, ("delta", "iceberg_v3")),
)
"""Steps to a type that holds every old value."""

LOSSY_PROMOTIONS: tuple[Promotion, ...] = (
    Promotion(_T.INT32, _T.FLOAT, ("avro",)),
    Promotion(_T.INT64, _T.FLOAT, ("avro",)),
    Promotion(_T.INT64, _T.DOUBLE, ("avro",)),
    Promotion(_T.STRING, _T.BINARY, ("avro",)),
    Promotion(_T.BINARY, _T.STRING, ("avro",)),
)
"""Steps that a format makes although values may lose digits or mean something else."""

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

DELTA_DIGITS: Mapping[TypeName, int] = MappingProxyType(
    {_T.INT8: 10, _T.INT16: 10, _T.INT32: 10, _T.INT64: 20}
)
"""How many digits before the point Delta asks for to promote a whole-number type to a decimal."""

EMPTY_TYPES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"unknown": ("iceberg_v3",), "void": ("delta",), "null": ("avro",), "[]": ("avro",)}
)
"""Types without a value, or with null alone, as sources spell them, and who promotes them."""

_TIMESTAMP_UNITS: Mapping[str, frozenset[TimeUnit | None]] = MappingProxyType(
    {
        "delta": frozenset({None, TimeUnit.MICROSECOND}),
        "iceberg_v3": frozenset({None, TimeUnit.MICROSECOND, TimeUnit.NANOSECOND}),
    }
)

NESTED = frozenset({_T.ARRAY, _T.MAP, _T.STRUCT, _T.UNION})

COARSEST_FIRST: tuple[TimeUnit, ...] = (
    TimeUnit.SECOND,
    TimeUnit.MILLISECOND,
    TimeUnit.MICROSECOND,
    TimeUnit.NANOSECOND,
)

_WIDER = frozenset((row.old, row.new) for row in WIDENINGS)
_ACCEPTED_BY = {(row.old, row.new): row.accepted_by for row in (*WIDENINGS, *LOSSY_PROMOTIONS)}


def widens(old: FieldType, new: FieldType) -> bool:
    """Return whether a type of another name holds every value of the old one."""
    if (old.type, new.type) in _WIDER:
        return True
    return new.type is TypeName.DECIMAL and _has_digits(new, DIGITS.get(old.type))


def is_empty_type(node: FieldType) -> bool:
    """Return whether a type has no value, or none but null."""
    return node.type is TypeName.UNKNOWN and (node.native_type or "").lower() in EMPTY_TYPES


def accepted_by(old: FieldType, new: FieldType) -> tuple[str, ...]:
    """Name the profiles of formats that make this step between two plain types in place."""
    formats = _formats(old, new)
    refined = (name for name, base in BASES.items() if base in formats)
    return tuple(sorted({*formats, *refined}))


def _formats(old: FieldType, new: FieldType) -> tuple[str, ...]:
    if old.type is TypeName.UNKNOWN:
        return EMPTY_TYPES.get((old.native_type or "").lower(), ())
    if old.type is new.type:
        return _formats_within(old, new)
    if new.type is TypeName.DECIMAL:
        return ("delta",) if _has_digits(new, DELTA_DIGITS.get(old.type)) else ()
    if TypeName.BINARY in (old.type, new.type) and (old.length, new.length) != (None, None):
        return ()  # fixed sizes in Avro are no `bytes`
    formats = _ACCEPTED_BY.get((old.type, new.type), ())
    if new.type is TypeName.TIMESTAMP_NTZ:
        return tuple(name for name in formats if new.unit in _TIMESTAMP_UNITS[name])
    return formats


def _formats_within(old: FieldType, new: FieldType) -> tuple[str, ...]:
    """Name the formats that take a change of the parameters of one and the same type."""
    match old.type:
        case TypeName.DECIMAL if old.precision is not None and new.precision is not None:
            more, finer = new.precision - old.precision, (new.scale or 0) - (old.scale or 0)
            if more < finer or finer < 0 or more == 0:
                return ()
            return ("delta",) if finer else ("delta", "iceberg")
        case TypeName.STRING if old.length is not None:
            # None of them knows a length: what fitted fits, and nothing else is asked.
            longer = new.length is None or new.length > old.length
            return ("avro", "delta", "iceberg") if longer else ()
        case _:
            return ()


def _has_digits(decimal: FieldType, digits: int | None) -> bool:
    if digits is None or decimal.precision is None:
        return False
    scale = decimal.scale or 0
    return scale >= 0 and decimal.precision - scale >= digits
