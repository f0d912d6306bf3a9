"""Infers the type of a CSV column from the text of its values, and never keeps one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date
from typing import Final

from lumos.core.models import TypeName

_NOTHING: Final = frozenset({"", "null", "\\n", "na", "n/a", "none"})
_BOOLEANS: Final = frozenset({"true", "false"})
_NOT_FINITE: Final = frozenset({"nan", "inf", "-inf", "infinity", "-infinity"})
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
_INTEGER: Final = re.compile(r"[+-]?(?:0|[1-9][0-9]{0,18})")
_NUMBER: Final = re.compile(
    r"[+-]?(?:(?:0|[1-9][0-9]{0,307})(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?"
)
_MOMENT: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,9})?)?"
    r" ?(Z|UTC|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)
_LONGEST_TYPED_VALUE = 400
_LENGTH_OF_DATE = 10

_WIDENED: Final[dict[frozenset[TypeName], TypeName]] = {
    frozenset({TypeName.INT64, TypeName.DOUBLE}): TypeName.DOUBLE,
    frozenset({TypeName.DATE, TypeName.TIMESTAMP_NTZ}): TypeName.TIMESTAMP_NTZ,
}


def value_type(text: str) -> TypeName | None:
    """Return the narrowest type that a value fits; None for one that stands for no value.

    A number with leading zeros is text: it is a code, and would not survive as a number.
    """
    text = text.strip()
    folded = text.lower()
    if folded in _NOTHING:
        return None
    if len(text) > _LONGEST_TYPED_VALUE:
        return TypeName.STRING
    if folded in _BOOLEANS:
        return TypeName.BOOLEAN
    if _INTEGER.fullmatch(text):
        return TypeName.INT64 if _SMALLEST <= int(text) <= _LARGEST else TypeName.STRING
    if _NUMBER.fullmatch(text) or folded in _NOT_FINITE:
        return TypeName.DOUBLE
    return _moment_type(text)


def column_type(values: Iterable[str]) -> TypeName:
    """Return the type that every value of a column fits; UNKNOWN where there is none."""
    kinds: set[TypeName] = set()
    for text in set(values):
        kind = value_type(text)
        if kind is TypeName.STRING:
            return TypeName.STRING
        if kind is not None:
            kinds.add(kind)
    if not kinds:
        return TypeName.UNKNOWN
    if len(kinds) == 1:
        return kinds.pop()
    return _WIDENED.get(frozenset(kinds), TypeName.STRING)


def _moment_type(text: str) -> TypeName:
    match = _MOMENT.fullmatch(text)
    if match is None:
        return TypeName.STRING
    try:
        date.fromisoformat(match[1])
    except ValueError:
        return TypeName.STRING
    if len(text) == _LENGTH_OF_DATE:
        return TypeName.DATE
    return TypeName.TIMESTAMP if match[2] else TypeName.TIMESTAMP_NTZ
