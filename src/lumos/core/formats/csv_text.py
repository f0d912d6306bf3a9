"""Reads the beginning of a CSV file: how it is written, its columns and their likely types."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from lumos.core.errors import UnreadableItemError
from lumos.core.formats.csv_values import column_type, value_type
from lumos.core.formats.facts import FileFacts
from lumos.core.formats.names import unique_names
from lumos.core.formats.sample import SAMPLE_BYTES, Sample, Text
from lumos.core.formats.type_parts import MAX_NODES
from lumos.core.models import Field, Schema, TypeName

FORMAT: Final = "csv"
MAX_ROWS: Final = 1_000
"""How many rows decide on the types."""

_DELIMITERS: Final = (",", "\t", ";", "|")
_ROWS_FOR_DIALECT = 100
_LINES_BEFORE_HEADER = 20
_STRUCTURED = 0.9
_LONGEST_NAME = 128
_LENGTH_OF_YEAR = 4
_NAME_LIKE: Final = re.compile(r"[^\W\d][\w .\-/()%#:$€°&+*?\[\]@]*")
_SEPARATOR_LINE: Final = re.compile(r"sep=([,;|\t])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Dialect:
    delimiter: str
    quote: str = '"'
    escape: str | None = None


@dataclass(frozen=True, slots=True)
class _Rows:
    rows: tuple[tuple[str, ...], ...]
    characters: int
    """How much of the text they took."""
    broken: bool = False
    """Whether the parser gave up, as it does when a quoted value has no end."""

    @property
    def usual_width(self) -> int:
        widths = Counter(len(row) for row in self.rows)
        return max(widths, key=lambda width: (widths[width], width), default=0)

    @property
    def share_of_usual_width(self) -> float:
        usual = self.usual_width
        return sum(len(row) == usual for row in self.rows) / max(1, len(self.rows))


def read_csv(text: Text, *, sample: Sample) -> FileFacts:
    """Return the facts of a CSV file by its first rows.

    Every column is nullable, because a sample cannot prove that a value is never missing.

    Raises:
        UnreadableItemError: there is no whole row in the sample.
    """
    return _Reading(text, sample).facts()


def has_columns(text: Text, *, sample: Sample) -> bool:
    """Tell whether text is a table without being told so by its name."""
    try:
        reading = _Reading(text, sample)
    except UnreadableItemError:
        return False
    return reading.is_table()


class _Reading:
    """One look at the beginning of a file."""

    def __init__(self, text: Text, sample: Sample) -> None:
        self._text = text
        self._sample = sample
        self._warnings = [*sample.warnings, *text.warnings]
        lines, given = self._table_lines()
        self._lines = lines
        self._dialect = _dialect(lines, given)
        self._parsed = _parse(lines, self._dialect, MAX_ROWS)
        rows = self._without_cut_row()
        if not rows:
            raise UnreadableItemError("it has no rows")
        if max(map(len, rows)) > MAX_NODES:
            raise UnreadableItemError(
                f"a row of it has more than {MAX_NODES:,} columns",
                hint="leave the file out with: exclude",
            )
        self._rows = self._without_title(rows)
        self._width = max(self._parsed.usual_width, len(self._rows[0]))
        self._types_below = self._types(self._rows[1:])
        self._has_header = self._finds_header()

    def is_table(self) -> bool:
        if self._width == 1 or len(self._rows) == 1 or self._parsed.broken:
            return False
        if self._parsed.share_of_usual_width < _STRUCTURED:
            return False
        kinds = set(self._types(self._rows))
        return self._has_header or bool(kinds - {TypeName.STRING, TypeName.UNKNOWN})

    def facts(self) -> FileFacts:
        body = self._rows[1:] if self._has_header else self._rows
        types = self._types_below if self._has_header else self._types(body)
        self._warn_of_ragged_rows(body)
        names, source_names = self._names()
        if self._parsed.broken:
            self._warnings.append("a quoted value has no end; only the rows before were read")
        fields = tuple(
            Field(
                name=name,
                type=kind,
                native_type="text",
                properties={} if name == source else {"source_name": source},
            )
            for name, source, kind in zip(names, source_names, types, strict=True)
        )
        return FileFacts(
            format=FORMAT,
            schema=Schema(fields=fields, positional=not self._has_header),
            rows_estimate=self._rows_estimate(len(body)),
            warnings=tuple(self._warnings),
            properties={
                "delimiter": self._dialect.delimiter,
                "quote": self._dialect.quote,
                "encoding": self._text.encoding,
                "header": "true" if self._has_header else "false",
            },
        )

    def _table_lines(self) -> tuple[list[str], str | None]:
        """The lines from the first row on, and the delimiter where the file names it."""
        lines = list(io.StringIO(self._text.content, newline=""))
        if not self._text.whole and len(lines) > 1:
            del lines[-1]  # the sample ends anywhere inside it
        elif not self._text.whole:
            if len(self._sample.content) < SAMPLE_BYTES:
                raise UnreadableItemError("it is cut off inside its first line")
            raise UnreadableItemError(f"its first line is longer than {SAMPLE_BYTES // 1024} KB")
        given = None
        if lines and (match := _SEPARATOR_LINE.fullmatch(lines[0].rstrip("\r\n"))):
            given = match[1]
            del lines[0]
        comments = 0
        while comments < len(lines) and lines[comments].startswith("#"):
            comments += 1
        if 0 < comments < len(lines):
            del lines[:comments]
            self._warnings.append(f"{_count(comments, 'comment line')} before its rows left out")
        return lines, given

    def _without_cut_row(self) -> tuple[tuple[str, ...], ...]:
        rows = self._parsed.rows
        took_all = len(rows) < MAX_ROWS
        ends_anywhere = self._parsed.broken or (took_all and not self._text.whole)
        return rows[:-1] if ends_anywhere and len(rows) > 1 else rows

    def _without_title(self, rows: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
        """Leave out lines of prose above the table."""
        usual = self._parsed.usual_width
        titles = 0
        while usual > 1 and titles < min(len(rows) - 1, _LINES_BEFORE_HEADER):
            if len(rows[titles]) > 1:
                break
            titles += 1
        if titles:
            self._warnings.append(f"{_count(titles, 'line')} before its columns left out")
        return rows[titles:]

    def _finds_header(self) -> bool:
        """Tell whether the first row holds names, by what sets it apart from the rows below."""
        first, body = self._rows[0], self._rows[1:]
        named = [cell.strip() for cell in first]
        if not any(named) or any(len(cell) > _LONGEST_NAME for cell in named):
            return False
        types = self._types_below
        kinds = [value_type(cell) for cell in named]
        if any(_speaks_against(cell, kind) for cell, kind in zip(named, kinds, strict=True)):
            return False
        texts = [i for i, kind in enumerate(kinds) if kind is TypeName.STRING]
        if not texts:
            return False
        if any(types[i] not in (TypeName.STRING, TypeName.UNKNOWN) for i in texts):
            return True
        if not all(_NAME_LIKE.fullmatch(named[i]) for i in texts):
            return False
        return not any(i < len(row) and row[i].strip() == named[i] for i in texts for row in body)

    def _names(self) -> tuple[list[str], list[str]]:
        if not self._has_header:
            names = [f"column_{i}" for i in range(1, self._width + 1)]
            return names, names
        sources = [_one_line(cell) for cell in self._rows[0]]
        sources += [""] * (self._width - len(sources))
        names, renamed = unique_names(sources)
        self._warnings.extend(renamed)
        return names, sources

    def _types(self, rows: Sequence[tuple[str, ...]]) -> list[TypeName]:
        return [column_type(row[i] for row in rows if i < len(row)) for i in range(self._width)]

    def _warn_of_ragged_rows(self, body: Sequence[tuple[str, ...]]) -> None:
        ragged = sum(len(row) != self._width for row in body)
        if ragged:
            self._warnings.append(
                f"{ragged} of {len(body)} sampled rows do not have {self._width} columns"
            )

    def _rows_estimate(self, rows: int) -> int:
        total = max(1, sum(map(len, self._lines)))
        share = self._sample.share * self._parsed.characters / total
        return round(rows / share) if 0 < share < 1 else rows


def _speaks_against(cell: str, kind: TypeName | None) -> bool:
    """Tell whether a cell of the first row can be no name; a year can, as in a pivoted table."""
    if kind is None or kind is TypeName.STRING:
        return False
    return not (kind is TypeName.INT64 and len(cell) == _LENGTH_OF_YEAR)


def _dialect(lines: Sequence[str], given: str | None) -> _Dialect:
    """Choose the dialect under which the first rows are most alike; ties go to the wider."""
    head = "".join(lines[: _ROWS_FOR_DIALECT * 2])
    quote = "'" if '"' not in head and _is_single_quoted(head) else '"'
    escapes = (None, "\\") if '\\"' in head else (None,)
    candidates = [
        _Dialect(delimiter, quote, escape)
        for delimiter in ((given,) if given else _DELIMITERS)
        for escape in escapes
        if delimiter in head
    ]
    best, best_fit = _Dialect(given or ",", quote), (0.0, 1)
    for candidate in candidates:
        parsed = _parse(lines, candidate, _ROWS_FOR_DIALECT)
        if parsed.usual_width > 1:
            fit = (round(parsed.share_of_usual_width, 1), parsed.usual_width)
            best, best_fit = (candidate, fit) if fit > best_fit else (best, best_fit)
    return best


def _is_single_quoted(head: str) -> bool:
    opened = len(re.findall(r"(?:^|[,;|\t])'", head, re.MULTILINE))
    closed = len(re.findall(r"'(?:$|[,;|\t])", head, re.MULTILINE))
    return opened > 1 and opened == closed


def _parse(lines: Sequence[str], dialect: _Dialect, limit: int) -> _Rows:
    counted = _Counted(lines)
    reader = csv.reader(
        iter(counted),
        delimiter=dialect.delimiter,
        quotechar=dialect.quote,
        escapechar=dialect.escape,
        skipinitialspace=True,
    )
    rows: list[tuple[str, ...]] = []
    try:
        for row in reader:
            if row:
                rows.append(tuple(row))
            if len(rows) == limit:
                break
    except csv.Error:
        return _Rows(tuple(rows), counted.characters, broken=True)
    return _Rows(tuple(rows), counted.characters)


class _Counted:
    """Lines that know how many characters of them were taken."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self.characters = 0

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self.characters += len(line)
            yield line


def _one_line(cell: str) -> str:
    return " ".join(cell.split())


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
