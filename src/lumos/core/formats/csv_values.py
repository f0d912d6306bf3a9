"""Infers the type of a CSV column from the text of its values, and never keeps one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date
from enum import Enum
from typing import Final

from lumos.core.models import TypeName

_NOTHING: Final = frozenset({"", "null", "\\n", "na", "n/a", "none"})
_BOOLEANS: Final = frozenset({"true", "false"})
_NOT_FINITE: Final = frozenset({"nan", "inf", "-inf", "infinity", "-infinity"})
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
_INTEGER_FORM = r"[+-]?(?:0|[1-9][0-9]{0,37})"
_NUMBER_FORM = r"[+-]?(?:(?:0|[1-9][0-9]{0,307})(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?"
_DATE_FORM = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME_FORM = r"[T ](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,9})?)?"
_ZONE_FORM = r" ?(?:Z|UTC|[+-][0-9]{2}(?::?[0-9]{2})?)"
_INTEGER: Final = re.compile(_INTEGER_FORM)
_NUMBER: Final = re.compile(_NUMBER_FORM)
_PHONE: Final = re.compile(r"\+[0-9]{7,}")
"""A plus before so many digits: nobody writes a number like this."""
_MOMENT: Final = re.compile(f"({_DATE_FORM})(?:{_TIME_FORM}({_ZONE_FORM})?)?")
_LONGEST_TYPED_VALUE = 400
_LENGTH_OF_DATE = 10

# Fewer digits than an integer may have: any number of them fits.
_SURE_INTEGER = r"(?:-?+(?:0|[1-9][0-9]{0,17}+)|\+(?:0|[1-9][0-9]{0,5}+))"
_LEAP_YEAR = "[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00"
_SURE_DAY = (
    r"(?!0000)(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    r"|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
    rf"|(?:{_LEAP_YEAR})-02-29)"
)
_CLOCK_FORM = (  # times of day, also with AM and PM
    r"(?:(?:[01]?[0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:[.,][0-9]{1,9})?)?"
    r"|(?:0?[1-9]|1[0-2])(?::[0-5][0-9]){1,2} ?[AaPp]\.?[Mm]\.?)"
)
SURE_FORMS: Final[dict[TypeName, str]] = {
    TypeName.BOOLEAN: "true|false|True|False|TRUE|FALSE",
    TypeName.INT64: _SURE_INTEGER,
    TypeName.DECIMAL: r"-?+(?:0|[1-9][0-9]{0,37}+)",
    TypeName.DOUBLE: rf"{_SURE_INTEGER}(?:\.[0-9]{{0,300}}+)?+(?:[eE][+-]?+[0-9]{{1,3}})?+",
    TypeName.DATE: _SURE_DAY,
    TypeName.TIME: _CLOCK_FORM,
    TypeName.TIMESTAMP_NTZ: _SURE_DAY + _TIME_FORM,
    TypeName.TIMESTAMP: _SURE_DAY + _TIME_FORM + _ZONE_FORM,
}
"""Patterns of values that are of a type for sure, or, of integers, of a narrower one."""

_DAY, _MONTH, _YEAR = r"(?:0?[1-9]|[12][0-9]|3[01])", r"(?:0?[1-9]|1[0-2])", r"(?:19|20)[0-9]{2}"
_SHORT_YEAR = r"(?:(?:19|20)?[0-9]{2})"
_MONTH_NAME = (
    r"(?:[Jj]an(?:uary)?|[Ff]eb(?:ruary)?|[Mm]ar(?:ch)?|[Aa]pr(?:il)?|[Mm]ay|[Jj]une?|[Jj]uly?"
    r"|[Aa]ug(?:ust)?|[Ss]ept?(?:ember)?|[Oo]ct(?:ober)?|[Nn]ov(?:ember)?|[Dd]ec(?:ember)?"
    r"|JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC)"
)
_FIRST_OF_MONTHS: Final = frozenset("jfmasondJFMASOND")
_OTHER_DAYS: Final = (
    rf"{_DAY}\.{_MONTH}\.{_YEAR}",
    rf"{_DAY}/{_MONTH}/{_SHORT_YEAR}",
    rf"{_MONTH}/{_DAY}/{_SHORT_YEAR}",
    rf"{_YEAR}/{_MONTH}/{_DAY}",
    rf"{_DAY}-{_MONTH}-{_YEAR}",
    rf"{_MONTH}-{_DAY}-{_YEAR}",
    rf"{_YEAR}\.{_MONTH}\.{_DAY}",
    rf"{_DAY}[- ]{_MONTH_NAME}\.?[- ]{_SHORT_YEAR}",
    rf"{_MONTH_NAME}\.? {_DAY}, ?{_YEAR}",
)
"""Days that are not written as ISO 8601 has them; a column has one of these forms."""
_MARK = "\x00"
"""Stands after each value of a joined column; text that holds one is not read as text."""


def _column(form: str) -> re.Pattern[str]:
    return re.compile(f"(?:(?:{form}){_MARK})++")


_COLUMNS: Final = {kind: _column(form) for kind, form in SURE_FORMS.items()}
_OTHER_DATES: Final = tuple(map(_column, _OTHER_DAYS))
_OTHER_MOMENTS: Final = tuple(
    _column(f"(?:{day})(?:(?:, ?|[T ]){_CLOCK_FORM})?") for day in _OTHER_DAYS
)
_OTHER_DATE: Final = re.compile("|".join(_OTHER_DAYS))
_OTHER_MOMENT: Final = re.compile(f"(?:{'|'.join(_OTHER_DAYS)})(?:, ?|[T ]){_CLOCK_FORM}")
_CLOCK: Final = re.compile(_CLOCK_FORM)

_DECIMAL_COMMA: Final = re.compile(
    r"[+-]?(?:[0-9]{1,3}(?:\.[0-9]{3})+|0|[1-9][0-9]{0,17})(?:,[0-9]+)?"
)
_THOUSANDS: Final = re.compile(r"[+-]?[1-9][0-9]{0,2}(?:,[0-9]{3})+")
_GROUPED: Final = re.compile(
    r"[+-]?(?:0|[1-9][0-9]{0,2}(?:(?P<mark>[,'\u2019\u00a0\u202f])[0-9]{3}(?:(?P=mark)[0-9]{3})*)?"
    r"|[1-9][0-9]{3,17})(?P<fraction>\.[0-9]+)?"
)
_SEVERAL_GROUPS: Final = re.compile(
    r"(?:[,'\u2019\u00a0\u202f][0-9]{3}){2}|[,'\u2019\u00a0\u202f][0-9]{3}\."
)
GROUP_MARKS: Final = ",'\u2019\u00a0\u202f"
"""What may stand between the thousands of a number."""

_WIDENED: Final[dict[frozenset[TypeName], TypeName]] = {
    frozenset({TypeName.INT64, TypeName.DOUBLE}): TypeName.DOUBLE,
    frozenset({TypeName.INT64, TypeName.DECIMAL}): TypeName.DECIMAL,
    frozenset({TypeName.DECIMAL, TypeName.DOUBLE}): TypeName.DOUBLE,
    frozenset({TypeName.INT64, TypeName.DECIMAL, TypeName.DOUBLE}): TypeName.DOUBLE,
    frozenset({TypeName.DATE, TypeName.TIMESTAMP_NTZ}): TypeName.TIMESTAMP_NTZ,
}
_MOMENTS: Final = frozenset({TypeName.DATE, TypeName.TIMESTAMP_NTZ})


class Commas(Enum):
    """What the commas in the values of a column stand for."""

    NO_NUMBERS = "no numbers"
    DECIMAL = "decimal"
    THOUSANDS = "thousands"
    EITHER = "either"


def value_type(text: str) -> TypeName | None:
    """Return the narrowest type that a value fits; None for one that stands for no value.

    A number with leading zeros is text: it is a code, and would not survive as a number. So is one
    that begins like a telephone number.
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
        if _PHONE.fullmatch(text):
            return TypeName.STRING
        return TypeName.INT64 if _SMALLEST <= int(text) <= _LARGEST else TypeName.DECIMAL
    if _NUMBER.fullmatch(text):
        return TypeName.STRING if text.lstrip("+-").isdigit() else TypeName.DOUBLE
    if folded in _NOT_FINITE:
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


def meaning_of_commas(values: Iterable[str]) -> tuple[Commas, TypeName]:
    """Return what the commas in a column of text stand for, and the type of its numbers."""
    is_decimal = is_grouped = True
    decimals = groups = fractions = 0
    for text in set(values):
        stripped = text.strip()
        if value_type(stripped) is None:
            continue
        is_decimal = is_decimal and _DECIMAL_COMMA.fullmatch(stripped) is not None
        match = _GROUPED.fullmatch(stripped)
        if match is None:
            is_grouped = False
            decimals += "," in stripped
        else:
            fractions += match["fraction"] is not None
            groups += bool(_SEVERAL_GROUPS.search(stripped))
        if not (is_decimal or is_grouped):
            return Commas.NO_NUMBERS, TypeName.STRING
    if is_decimal and is_grouped and not (decimals or groups):
        return Commas.EITHER, TypeName.INT64
    if is_grouped and not decimals:
        return Commas.THOUSANDS, TypeName.DOUBLE if fractions else TypeName.INT64
    return (Commas.DECIMAL, TypeName.DOUBLE) if is_decimal else (Commas.NO_NUMBERS, TypeName.STRING)


def _common_type(kind: TypeName, distinct: set[str]) -> TypeName | None:
    """The type of all values if it follows from the type of one; None otherwise."""
    joined = _MARK.join(distinct) + _MARK
    if joined.count(_MARK) != len(distinct):
        return None
    if _COLUMNS[kind].fullmatch(joined):
        return kind
    if kind is TypeName.INT64 and _COLUMNS[TypeName.DOUBLE].fullmatch(joined):
        return TypeName.DOUBLE
    return _other_moments(joined) if kind in _MOMENTS else None


def _other_moments(joined: str) -> TypeName | None:
    """The type of a column of days, or of days with times, that are all written in one form."""
    for date_column, moment_column in zip(_OTHER_DATES, _OTHER_MOMENTS, strict=True):
        if date_column.fullmatch(joined):
            return TypeName.DATE
        if moment_column.fullmatch(joined):
            return TypeName.TIMESTAMP_NTZ
    return None


def _type_of_each(distinct: set[str]) -> TypeName:
    kinds: set[TypeName] = set()
    others: list[str] = []
    for text in distinct:
        kind = value_type(text)
        if kind is TypeName.STRING:
            return TypeName.STRING
        if kind is not None:
            kinds.add(kind)
            if kind in _MOMENTS and not _MOMENT.fullmatch(text.strip()):
                others.append(text.strip())
    if not kinds:
        return TypeName.UNKNOWN
    if others and not _is_one_form(others, distinct):
        return TypeName.STRING
    if len(kinds) == 1:
        return kinds.pop()
    return _WIDENED.get(frozenset(kinds), TypeName.STRING)


def _is_one_form(others: list[str], distinct: set[str]) -> bool:
    """Return whether days are all written in one form; those of ISO 8601 are another one."""
    values = sum(value_type(text) is not None for text in distinct)
    joined = _MARK.join(others) + _MARK
    return len(others) == values and _other_moments(joined) is not None


def _moment_type(text: str) -> TypeName:
    match = _MOMENT.fullmatch(text)
    if match is None:
        return _other_moment_type(text)
    try:
        date.fromisoformat(match[1])
    except ValueError:
        return TypeName.STRING
    if len(text) == _LENGTH_OF_DATE:
        return TypeName.DATE
    return TypeName.TIMESTAMP if match[2] else TypeName.TIMESTAMP_NTZ


def _other_moment_type(text: str) -> TypeName:
    if not (text[0].isdigit() or text[0] in _FIRST_OF_MONTHS):
        return TypeName.STRING
    if _OTHER_DATE.fullmatch(text):
        return TypeName.DATE
    if _OTHER_MOMENT.fullmatch(text):
        return TypeName.TIMESTAMP_NTZ
    return TypeName.TIME if _CLOCK.fullmatch(text) else TypeName.STRING
