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
_INTEGER_FORM = r"[+-]?(?:0|[1-9][0-9]{0,18})"
_NUMBER_FORM = r"[+-]?(?:(?:0|[1-9][0-9]{0,307})(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?"
_DATE_FORM = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME_FORM = r"[T ](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,9})?)?"
_ZONE_FORM = r" ?(?:Z|UTC|[+-][0-9]{2}(?::?[0-9]{2})?)"
_INTEGER: Final = re.compile(_INTEGER_FORM)
_NUMBER: Final = re.compile(_NUMBER_FORM)
_MOMENT: Final = re.compile(f"({_DATE_FORM})(?:{_TIME_FORM}({_ZONE_FORM})?)?")
_LONGEST_TYPED_VALUE = 400
_LENGTH_OF_DATE = 10

# Fewer digits than an integer may have: any number of them fits.
_SURE_INTEGER = r"[+-]?+(?:0|[1-9][0-9]{0,17}+)"
_LEAP_YEAR = "[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00"
_SURE_DAY = (
    r"(?!0000)(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    r"|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
    rf"|(?:{_LEAP_YEAR})-02-29)"
)
SURE_FORMS: Final[dict[TypeName, str]] = {
    TypeName.BOOLEAN: "true|false|True|False|TRUE|FALSE",
    TypeName.INT64: _SURE_INTEGER,
    TypeName.DOUBLE: rf"{_SURE_INTEGER}(?:\.[0-9]{{0,300}}+)?+(?:[eE][+-]?+[0-9]{{1,3}})?+",
    TypeName.DATE: _SURE_DAY,
    TypeName.TIMESTAMP_NTZ: _SURE_DAY + _TIME_FORM,
    TypeName.TIMESTAMP: _SURE_DAY + _TIME_FORM + _ZONE_FORM,
}
"""Patterns of values that are of a type for sure, or, of integers, of a narrower one."""

_MARK = "\x00"
"""Stands after each value of a joined column; text that holds one is not read as text."""
_COLUMNS: Final = {
    kind: re.compile(f"(?:(?:{form}){_MARK})++") for kind, form in SURE_FORMS.items()
}

_DECIMAL_COMMA: Final = re.compile(
    r"[+-]?(?:[0-9]{1,3}(?:\.[0-9]{3})+|0|[1-9][0-9]{0,17})(?:,[0-9]+)?"
)
_THOUSANDS: Final = re.compile(r"[+-]?[1-9][0-9]{0,2}(?:,[0-9]{3})+")

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
    distinct = set(values)
    distinct.discard("")
    if not distinct:
        return TypeName.UNKNOWN
    kind = value_type(next(iter(distinct)))
    if kind is TypeName.STRING:
        return TypeName.STRING
    if kind is not None and (common := _common_type(kind, distinct)) is not None:
        return common
    return _type_of_each(distinct)


def widened(one: TypeName, other: TypeName) -> TypeName:
    """Return the type that fits the values of both; UNKNOWN fits everything."""
    if one is other or other is TypeName.UNKNOWN:
        return one
    if one is TypeName.UNKNOWN:
        return other
    return _WIDENED.get(frozenset({one, other}), TypeName.STRING)


def has_decimal_commas(values: Iterable[str]) -> bool | None:
    """Tell whether a column holds numbers with decimal commas; None where commas may be thousands'.

    Only for files whose values may hold a comma without quotes.
    """
    with_comma = 0
    thousands = 0
    for text in set(values):
        stripped = text.strip()
        if value_type(stripped) is None:
            continue
        if not _DECIMAL_COMMA.fullmatch(stripped):
            return False
        if "," in stripped:
            with_comma += 1
            thousands += bool(_THOUSANDS.fullmatch(stripped))
    if not with_comma:
        return False
    return None if thousands == with_comma else True


def _common_type(kind: TypeName, distinct: set[str]) -> TypeName | None:
    """The type of all values where one look tells it, given that of one; None where not."""
    joined = _MARK.join(distinct) + _MARK
    if joined.count(_MARK) != len(distinct):
        return None
    if _COLUMNS[kind].fullmatch(joined):
        return kind
    if kind is TypeName.INT64 and _COLUMNS[TypeName.DOUBLE].fullmatch(joined):
        return TypeName.DOUBLE
    return None


def _type_of_each(distinct: set[str]) -> TypeName:
    kinds: set[TypeName] = set()
    for text in distinct:
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
