"""The smallest type that holds the values of two others, where there is one.

The change rules know which step keeps every value; here two files of one dataset meet, so a third
type may be needed, and a whole number may meet a float as it does in text formats.
"""

from __future__ import annotations

from typing import Final, TypedDict

from lumos.core.changes.lattice import COARSEST_FIRST, DIGITS, NESTED, widens
from lumos.core.models import FieldType, TimeUnit, TypeName

_WHOLE: Final = (TypeName.INT16, TypeName.INT32, TypeName.INT64)
_FLOATS: Final = frozenset({TypeName.FLOAT, TypeName.DOUBLE})
_TIMES: Final = frozenset(
    {TypeName.TIME, TypeName.TIMESTAMP, TypeName.TIMESTAMP_NTZ, TypeName.DURATION}
)


class TypeParameters(TypedDict, total=False):
    """The parameters that two types of one name share."""

    precision: int | None
    scale: int | None
    length: int | None
    unit: TimeUnit | None
    timezone: str | None
    symbols: tuple[str, ...]


def common_type(one: FieldType, other: FieldType) -> FieldType | None:
    """Return a type for the values of both; None where they do not go together.

    Nested types of one kind go together; their members are the caller's to merge. What is no part
    of a type, such as a description, is left out.
    """
    if one.type is other.type:
        if one.type in NESTED:
            return one
        return FieldType(type=one.type, **_shared_parameters(one, other))
    if widens(one, other):
        return _bare(other)
    if widens(other, one):
        return _bare(one)
    if {one.type, other.type} == {TypeName.ENUM, TypeName.STRING}:
        return FieldType(type=TypeName.STRING)
    return _common_number(one, other)


def _common_number(one: FieldType, other: FieldType) -> FieldType | None:
    if one.type not in DIGITS:
        one, other = other, one
    if one.type not in DIGITS:
        return None
    if other.type in _FLOATS:
        return FieldType(type=TypeName.DOUBLE)
    if other.type is TypeName.DECIMAL and other.precision is not None:
        scale = max(other.scale or 0, 0)
        return _decimal(max(other.precision - scale, DIGITS[one.type]), scale)
    if other.type not in DIGITS:
        return None
    for name in _WHOLE:
        candidate = FieldType(type=name)
        if widens(one, candidate) and widens(other, candidate):
            return candidate
    return _decimal(max(DIGITS[one.type], DIGITS[other.type]), 0)


def _shared_parameters(one: FieldType, other: FieldType) -> TypeParameters:
    if one.type is TypeName.DECIMAL:
        return _decimal_parameters(one, other)
    if one.type in _TIMES:
        timezone = one.timezone if one.timezone == other.timezone else None
        return {"unit": _finer(one.unit, other.unit), "timezone": timezone}
    if one.type is TypeName.ENUM:
        return {"symbols": tuple(dict.fromkeys((*one.symbols, *other.symbols)))}
    return {"length": one.length if one.length == other.length else None}


def _decimal_parameters(one: FieldType, other: FieldType) -> TypeParameters:
    if (one.precision, one.scale) == (other.precision, other.scale):
        return {"precision": one.precision, "scale": one.scale}
    if one.precision is None or other.precision is None:
        return {}
    scale = max(one.scale or 0, other.scale or 0)
    whole = max(one.precision - (one.scale or 0), other.precision - (other.scale or 0))
    return {"precision": max(whole + scale, 0), "scale": scale}


def _decimal(whole_digits: int, scale: int) -> FieldType:
    return FieldType(type=TypeName.DECIMAL, precision=whole_digits + scale, scale=scale)


def _finer(one: TimeUnit | None, other: TimeUnit | None) -> TimeUnit | None:
    if one is None or other is None:
        return None
    return max(one, other, key=COARSEST_FIRST.index)


def _bare(node: FieldType) -> FieldType:
    return FieldType(
        type=node.type,
        precision=node.precision,
        scale=node.scale,
        length=node.length,
        unit=node.unit,
        timezone=node.timezone,
    )
