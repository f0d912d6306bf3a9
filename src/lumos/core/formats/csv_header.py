"""Decides whether the first row of a table holds the names of its columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from lumos.core.formats.csv_values import value_type, widened
from lumos.core.models import TypeName

_LONGEST_NAME = 128
_LENGTH_OF_YEAR = 4
_FEW_ROWS = 3
_FEW_NUMBERS = 2
_NAME_LIKE: Final = re.compile(r"[^\W\d][\w .\-/()%#:$€°&+*?\[\]@]*")
_NEVER_A_NAME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.\-]*://.+|[^@\s]+@[^@\s]+\.[^@\s.]+")
_DIGITS: Final = re.compile(r"[0-9]+")
_UPPER: Final = re.compile(r"[A-Z]+")
_LOWER: Final = re.compile(r"[a-z]+")
_UNTYPED: Final = (TypeName.STRING, TypeName.UNKNOWN)
_FIELDS: Final = re.compile(r"fields:\s*", re.IGNORECASE)


def first_row_is_header(rows: Sequence[Sequence[str]], types_below: Sequence[TypeName]) -> bool:
    """Return whether the first row holds names, by what sets it apart from the rows below."""
    named = [cell.strip() for cell in rows[0]]
    if not any(named) or max(map(len, named)) > _LONGEST_NAME:
        return False
    texts, numbers, doubts = [], [], 0
    for position, cell in enumerate(named):
        kind = value_type(cell)
        below = types_below[position] if position < len(types_below) else TypeName.UNKNOWN
        if kind is TypeName.STRING:
            texts.append(position)
        elif kind is TypeName.INT64 and not cell.startswith(("+", "-")):
            numbers.append(position)
        elif kind is not None and widened(kind, below) is below:
            doubts += 1  # it may be one of the values below it
    if not texts:
        return False
    count = [named[i] for i in numbers]
    apart = [i for i in texts if i < len(types_below) and types_below[i] not in _UNTYPED]
    if apart and not doubts and (len(apart) >= len(numbers) or _are_names(count)):
        return True  # words stand above numbers or dates
    if doubts or not _are_names(count):
        return False
    if not all(_NAME_LIKE.fullmatch(named[i]) for i in texts):
        return False
    return not any(_is_one_of(named[i], _column(rows, i)) for i in texts)


def header_in_comments(comments: Sequence[str], *, delimiter: str, width: int) -> list[str] | None:
    """Return the names that a comment above the rows gives, as VCF and logs of web servers do."""
    for comment in reversed(comments):
        text = comment.lstrip("#").strip()
        fields = _FIELDS.match(text)
        names = text[fields.end() :].split() if fields else text.split(delimiter)
        names = [name.strip() for name in names]
        if len(names) == width > 1 and all(map(_NAME_LIKE.fullmatch, names)):
            return names
    return None


def _are_names(numbers: Sequence[str]) -> bool:
    """Return whether numbers of the first row can be names: years, or a count such as 1, 2, 3."""
    if all(len(number) == _LENGTH_OF_YEAR for number in numbers):
        return True
    steps = {int(later) - int(earlier) for earlier, later in pairwise(numbers)}
    return steps == {1} or (len(numbers) > _FEW_NUMBERS and len(steps) == 1 and steps != {0})


def _column(rows: Sequence[Sequence[str]], position: int) -> set[str]:
    values = {row[position].strip() for row in rows[1:] if position < len(row)}
    values.discard("")
    return values


def _is_one_of(cell: str, values: set[str]) -> bool:
    """Return whether a cell of the first row looks like the values below it, not like a name."""
    if cell in values or _NEVER_A_NAME.fullmatch(cell):
        return True
    shape = _shape(cell)
    if "9" not in shape or len(values) < _FEW_ROWS:
        return False
    return all(_shape(value) == shape for value in values)


def _shape(text: str) -> str:
    """Return what kinds of characters a text is made of: `AB-1001` is `A-9`."""
    return _LOWER.sub("a", _UPPER.sub("A", _DIGITS.sub("9", text)))
