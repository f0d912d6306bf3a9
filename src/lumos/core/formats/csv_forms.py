"""Recognises CSV files that are written like others before, by one pattern for all of their rows.

The files of a dataset have one header, and values of the same types below it. To see that a file
is like the last one takes a third of the time that it takes to find its columns and types anew.
Whatever is not quite like it is left to the reader that finds out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lumos.core.formats.csv_dialect import COMMON_DELIMITERS, Dialect
from lumos.core.formats.csv_values import SURE_FORMS, value_type
from lumos.core.models import TypeName

if TYPE_CHECKING:
    from lumos.core.formats.known_schemas import KnownSchema

_QUOTES: Final = ('"', "'")
_MOST_COLUMNS = 200
_MOST_HEADERS = 2_000
_FORMS_OF_A_HEADER = 3
_FILES_BEFORE_A_PATTERN = 2
_NO_TEXT = re.escape("".join((*COMMON_DELIMITERS, *_QUOTES)))
_TEXT: Final = rf"[^{_NO_TEXT}\r\n]*+"
_EMPTY: Final = ""


@dataclass(frozen=True, slots=True)
class Recognised:
    """A file that is written like another one."""

    dialect: Dialect
    known: KnownSchema
    rows: int
    """How many of its rows were looked at."""


@dataclass(slots=True)
class _Form:
    """One way to write rows under a header."""

    header: str
    delimiter: str
    types: tuple[TypeName, ...]
    known: KnownSchema
    files: int = 1
    pattern: re.Pattern[str] | None = None


class KnownForms:
    """The forms of the files that a process read, by the line with their header."""

    def __init__(self, showing: int) -> None:
        """Recognise files of which so many of the first rows show each type."""
        self._showing = showing
        self._forms: dict[str, list[_Form]] = {}

    def __len__(self) -> int:
        """Return how many headers are known."""
        return len(self._forms)

    def recognise(
        self, content: str, *, whole: bool, further: Sequence[str] = ()
    ) -> Recognised | None:
        """Return what is known of a file with such content; None where it has to be read.

        Args:
            content: lines from its beginning, of which the last one may lack its end.
            whole: whether the file holds nothing more.
            further: whole lines from other places of the file.
        """
        header = content[: content.find("\n")]
        forms = self._forms.get(header)
        if forms is None or any(quote in content for quote in _QUOTES):
            return None
        if content[-1] != "\n":
            content += "\r\n" if header.endswith("\r") else "\n"
        rows = content.count("\n") - 1
        wanted = rows if whole else rows - 1  # the last one may be cut off
        for form in forms:
            if self._has_form(form, content, rows=wanted, further=further):
                if form is not forms[0]:
                    forms.remove(form)
                    forms.insert(0, form)
                return Recognised(Dialect(form.delimiter), form.known, wanted)
        return None

    def learn(
        self, content: str, known: KnownSchema, *, delimiter: str, types: Sequence[TypeName]
    ) -> None:
        """Remember a file that has a header over even rows without quotes, comments and such."""
        header = content[: content.find("\n")]
        if not _is_plain(header, content, delimiter=delimiter, types=types):
            return
        forms = self._forms.setdefault(header, [])
        form = next((one for one in forms if one.types == tuple(types)), None)
        if form is None:
            if len(self._forms) > _MOST_HEADERS:
                self._forms = {header: forms}
            del forms[_FORMS_OF_A_HEADER - 1 :]
            forms.insert(0, _Form(header, delimiter, tuple(types), known))
            return
        form.files += 1
        if form.pattern is None and form.files >= _FILES_BEFORE_A_PATTERN:
            form.pattern = self._pattern(form)

    def _has_form(self, form: _Form, content: str, *, rows: int, further: Sequence[str]) -> bool:
        start = len(form.header) + 1
        match = form.pattern and form.pattern.match(content, start)
        if not match or rows <= 0 or content.count("\n", start, match.end()) < rows:
            return False
        if form.pattern is None or not all(map(form.pattern.fullmatch, further)):
            return False
        showing = min(rows, self._showing)
        return _are_shown(form, content[start : match.end()].split("\n", showing)[:showing])

    def _pattern(self, form: _Form) -> re.Pattern[str]:
        row = re.escape(form.delimiter).join(map(_value_pattern, form.types))
        end = r"\r\n" if form.header.endswith("\r") else r"\n"
        return re.compile(f"(?:(?!#){row}{end})*+")


def _value_pattern(kind: TypeName) -> str:
    if kind is TypeName.STRING:
        return _TEXT
    if kind is TypeName.UNKNOWN:
        return _EMPTY
    form = SURE_FORMS[kind]
    if kind is TypeName.TIMESTAMP_NTZ:
        form = f"{form}|{SURE_FORMS[TypeName.DATE]}"
    return f"(?:{form})?+"


def _are_shown(form: _Form, rows: Sequence[str]) -> bool:
    """Return whether each column has a value in the first rows that shows its type."""
    missing = [
        (place, kind) for place, kind in enumerate(form.types) if kind is not TypeName.UNKNOWN
    ]
    for row in rows:
        cells = row.rstrip("\r").split(form.delimiter)
        missing = [(place, kind) for place, kind in missing if not _shows(cells[place], kind)]
        if not missing:
            return True
    return False


def _shows(cell: str, kind: TypeName) -> bool:
    if not cell:
        return False
    if kind in (TypeName.STRING, TypeName.DOUBLE, TypeName.DECIMAL, TypeName.TIMESTAMP_NTZ):
        return value_type(cell) is kind
    return True


def _is_plain(header: str, content: str, *, delimiter: str, types: Sequence[TypeName]) -> bool:
    """Return whether the header alone, with these types below, is all a reader would find."""
    cells = header.rstrip("\r").split(delimiter)
    if delimiter not in COMMON_DELIMITERS or not 1 < len(types) == len(cells) <= _MOST_COLUMNS:
        return False
    others = (*_QUOTES, *(other for other in COMMON_DELIMITERS if other != delimiter))
    if any(quote in content for quote in _QUOTES) or any(other in header for other in others):
        return False
    untyped = (TypeName.STRING, TypeName.UNKNOWN)
    return any(
        kind not in untyped and value_type(cell) is TypeName.STRING
        for cell, kind in zip(cells, types, strict=True)
    )
