"""Finds out how delimited text is written, and splits it into rows."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from lumos.core.formats.csv_values import column_type
from lumos.core.models import TypeName

ROWS_FOR_DIALECT: Final = 100
"""How many rows decide on the dialect."""

COMMON_DELIMITERS: Final = (",", "\t", ";", "|", "\x01")
_RARE: Final = ("~", "^", "\x1f", " ")
_LINES_FOR_COUNTING = 32
_CHARACTERS_FOR_DIALECT = 32 * 1024
_OPENED: Final = re.compile(r"(?:^|[,;|\t])'", re.MULTILINE)
_CLOSED: Final = re.compile(r"'(?=\r?$|[,;|\t])", re.MULTILINE)
_UNTYPED: Final = (TypeName.STRING, TypeName.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Dialect:
    """How the rows of a file are written."""

    delimiter: str
    quote: str = '"'
    escape: str | None = None


class RowSource:
    """The rows of a text from a position on, a few at a time; blank lines are none."""

    def __init__(self, text: str, dialect: Dialect, *, start: int = 0) -> None:
        self._text = text[start:] if start else text
        self._dialect = dialect
        self._lines, self._reader = self._opened()
        self._taken = 0
        self.broken = False
        """Whether the parser gave up, as it does when a quoted value has no end."""

    @property
    def characters(self) -> int:
        """How much of the text the rows took so far."""
        return self._lines.tell()

    @property
    def is_at_end(self) -> bool:
        return self.broken or self._lines.tell() >= len(self._text)

    def take(self, wanted: int) -> list[list[str]]:
        """Return the next rows; fewer only at the end."""
        rows: list[list[str]] = []
        while len(rows) < wanted and not self.broken:
            try:
                more = list(islice(self._reader, wanted - len(rows)))
            except csv.Error:
                more = self._rows_before_the_break()
                self.broken = True
            if not more:
                break
            self._taken += len(more)
            rows += filter(None, more)
        return rows

    def _rows_before_the_break(self) -> list[list[str]]:
        """What the failing call had read; the text is split once more to have it."""
        _, reader = self._opened()
        rows: list[list[str]] = []
        try:
            rows.extend(islice(reader, self._taken, None))
        except csv.Error:
            return rows
        return rows

    def _opened(self) -> tuple[io.StringIO, Iterator[list[str]]]:
        lines = io.StringIO(self._text, newline="")
        reader = csv.reader(
            lines,
            delimiter=self._dialect.delimiter,
            quotechar=self._dialect.quote,
            escapechar=self._dialect.escape,
            skipinitialspace=self._dialect.delimiter != " ",
        )
        return lines, reader


def usual_width(rows: Sequence[Sequence[str]]) -> tuple[int, float]:
    """Return the width that most rows have, and how many of them, between 0 and 1."""
    widths = Counter(map(len, rows))
    usual = max(widths, key=lambda width: (widths[width], width), default=0)
    return usual, widths[usual] / max(1, len(rows))


def find_dialect(text: str, *, start: int, rare: bool) -> Dialect:
    """Return the dialect under which the first rows are most alike.

    Args:
        text: the beginning of a file.
        start: where its first row begins.
        rare: whether delimiters that are common in prose, too, may be found.
    """
    head = text[start : start + _CHARACTERS_FOR_DIALECT]
    if '"' not in head and "'" not in head:
        counted = _counted(head)
        if counted is not None:
            return Dialect(counted)
    best = _scored(head, COMMON_DELIMITERS, rare=False)
    if best is None and rare:
        best = _scored(head, _RARE, rare=True)
    return best or Dialect(",", _quote(head, ","))


def _counted(head: str) -> str | None:
    """The one delimiter that each of the first lines holds equally often, in unquoted text."""
    lines = head.split("\n", _LINES_FOR_COUNTING)
    if len(lines) > 1:
        del lines[-1]  # the rest, or nothing
    lines = [line for line in lines if line and line != "\r"]
    found = None
    for delimiter in COMMON_DELIMITERS:
        counts = {line.count(delimiter) for line in lines}
        if len(counts) == 1 and counts != {0}:
            if found is not None:
                return None
            found = delimiter
    return found


def _scored(head: str, delimiters: Iterable[str], *, rare: bool) -> Dialect | None:
    """The dialect that gives the most even rows, then the most typed values, then the widest."""
    best, best_fit = None, (0.0, 0.0, 1)
    escapes = (None, "\\") if '\\"' in head else (None,)
    for delimiter in delimiters:
        if delimiter not in head:
            continue
        for escape in escapes:
            candidate = Dialect(delimiter, _quote(head, delimiter), escape)
            rows = RowSource(head, candidate).take(ROWS_FOR_DIALECT)
            width, share = usual_width(rows)
            if width <= 1 or (rare and not (share == 1 and _is_typed_table(rows))):
                continue
            fit = (round(share, 1), round(_typed_share(rows), 1), width)
            if fit > best_fit:
                best, best_fit = candidate, fit
    return best


def _typed_share(rows: Sequence[Sequence[str]]) -> float:
    kinds = [column_type(column) for column in zip(*rows[1:], strict=False)]
    return sum(kind not in _UNTYPED for kind in kinds) / max(1, len(kinds))


def _is_typed_table(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether rows are a table, not prose or one column of values with the delimiter."""
    if len(rows) == 1 or not _typed_share(rows):
        return False
    return column_type(" ".join(row) for row in rows) is TypeName.STRING


def _quote(head: str, delimiter: str) -> str:
    """A single quote only where every one that opens a value also closes it."""
    if '"' in head or "'" not in head:
        return '"'
    opened, closed = len(_OPENED.findall(head)), len(_CLOSED.findall(head))
    # The head may end inside of a value.
    return "'" if opened > 1 and opened - closed in (0, 1) and delimiter != "'" else '"'
