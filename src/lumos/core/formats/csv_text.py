"""Reads the beginning of a CSV file: how it is written, its columns and their likely types."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from itertools import zip_longest
from typing import Final

from lumos.core.errors import UnreadableItemError
from lumos.core.formats.csv_dialect import Dialect, RowSource, find_dialect, usual_width
from lumos.core.formats.csv_forms import KnownForms, Recognised
from lumos.core.formats.csv_header import first_row_is_header, header_in_comments
from lumos.core.formats.csv_values import (
    GROUP_MARKS,
    Commas,
    column_type,
    meaning_of_commas,
    widened,
)
from lumos.core.formats.facts import FileFacts
from lumos.core.formats.known_schemas import KnownSchema, KnownSchemas
from lumos.core.formats.names import unique_names
from lumos.core.formats.sample import SAMPLE_BYTES, Sample, Text
from lumos.core.formats.type_parts import MAX_NODES
from lumos.core.models import Field, Schema, TypeName

FORMAT: Final = "csv"
SHOWING_ROWS: Final = 50
"""A file is like one before where so many rows show that no type is narrower."""

_LINES_BEFORE_HEADER = 20
_LINES_AFTER_ROWS = 5
_ROWS_FOR_WIDTH = 100
_STRUCTURED = 0.9
_FITTING = 0.8
_FEW_CELLS, _PAIR = 3, 2
_TOTAL: Final = re.compile(
    r"(?:grand |sub)?-?totals?\b|sum(?:me)?\b|gesamt|insgesamt|source:|notes?:", re.IGNORECASE
)
_SEPARATOR_LINE: Final = re.compile(r"sep=([^\w\s\"']|\t)\r?\n?", re.IGNORECASE)
_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\n|\r|\Z)")
_UNTYPED: Final = (TypeName.STRING, TypeName.UNKNOWN)
_KNOWN: Final = KnownSchemas()
_FORMS: Final = KnownForms(SHOWING_ROWS)
_DECIMAL_DIGITS = 38

_Row = Sequence[str]


def read_csv(text: Text, *, sample: Sample, further: Sequence[str] = ()) -> FileFacts:
    """Return the facts of a CSV file by its first rows.

    Every column is nullable, because a sample cannot prove that a value is never missing.

    Args:
        text: its beginning.
        sample: the bytes of it.
        further: whole lines from other places of the file, which may widen types.

    Raises:
        UnreadableItemError: there is no whole row in the sample.
    """
    content = _whole_lines(text, sample)
    found = _FORMS.recognise(content, whole=text.whole, further=further)
    if found is not None:
        return _facts_by_form(found, content, text=text, sample=sample)
    return _Reading(content, text, sample, promised=True).facts(further)


def read_csv_table(text: Text, *, sample: Sample, further: Sequence[str] = ()) -> FileFacts | None:
    """Return the facts of text that is a table though its name does not say so, or None."""
    try:
        content = _whole_lines(text, sample)
        found = _FORMS.recognise(content, whole=text.whole, further=further)
        if found is not None:
            return _facts_by_form(found, content, text=text, sample=sample)
        reading = _Reading(content, text, sample, promised=False)
    except UnreadableItemError:
        return None
    return reading.facts(further) if reading.is_table() else None


def _whole_lines(text: Text, sample: Sample) -> str:
    """The text without the line inside which the sample ends."""
    content = text.content
    if text.whole:
        return content
    end = max(content.rfind("\n"), content.rfind("\r")) + 1
    if end:
        return content[:end]
    if len(sample.content) < SAMPLE_BYTES:
        raise UnreadableItemError("it is cut off inside its first line")
    raise UnreadableItemError(f"its first line is longer than {SAMPLE_BYTES // 1024} KB")


def _facts_by_form(found: Recognised, content: str, *, text: Text, sample: Sample) -> FileFacts:
    share = _share(content, text, sample)
    return FileFacts(
        format=FORMAT,
        schema=found.known.schema,
        rows=found.rows if text.whole else None,
        rows_estimate=found.rows if text.whole else _estimated(found.rows, share=share),
        warnings=(*sample.warnings, *text.warnings, *found.known.warnings),
        properties={
            "delimiter": found.dialect.delimiter,
            "quote": found.dialect.quote,
            "encoding": text.encoding,
            "header": "true",
        },
        known=found.known,
    )


def _share(content: str, text: Text, sample: Sample) -> float:
    """The part of the file that the whole lines take."""
    return sample.share * len(content) / max(1, len(text.content))


def _estimated(seen: int, *, share: float) -> int:
    """About how many rows there are, given those in a part of the file."""
    return max(seen, round(seen / share if 0 < share < 1 else seen))


class _Reading:
    """One look at the beginning of a file."""

    def __init__(self, content: str, text: Text, sample: Sample, *, promised: bool) -> None:
        self._content = content
        self._text = text
        self._sample = sample
        self._warnings = [*sample.warnings, *text.warnings]
        given, comments, self._start = self._before_the_rows()
        self._dialect = (
            Dialect(given)
            if given
            else find_dialect(self._content, start=self._start, rare=promised)
        )
        self._source = RowSource(self._content, self._dialect, start=self._start)
        self._extra_lines = 0
        self._rows = self._all_rows()
        self._width, self._share = usual_width(self._rows[:_ROWS_FOR_WIDTH])
        self._commas = Commas.NO_NUMBERS
        self._leave_out_titles()
        self._leave_out_footers()
        self._width = max(self._width, len(self._rows[0]))
        below = self._types(self._rows[1:])
        self._names = self._found_names(comments, below)
        self._body = self._rows if self._first_row_is_data else self._rows[1:]
        self._column_types = self._types(self._body) if self._first_row_is_data else below
        self._trailing = self._leave_out_trailing()

    def is_table(self) -> bool:
        if self._width == 1 or len(self._rows) == 1 or self._source.broken:
            return False
        if self._share < _STRUCTURED:
            return False
        return self._names is not None or any(t not in _UNTYPED for t in self._column_types)

    def facts(self, further: Sequence[str]) -> FileFacts:
        self._look_further(further)
        known = self._schema()
        self._warn_of_ragged_rows()
        if self._is_plain():
            self._learn(known)
        self._warnings += known.warnings
        if self._source.broken:
            self._warnings.append("a quoted value has no end; only the rows before were read")
        rows, estimate = self._count()
        return FileFacts(
            format=FORMAT,
            schema=known.schema,
            rows=rows,
            rows_estimate=estimate,
            warnings=tuple(self._warnings),
            properties={
                "delimiter": self._dialect.delimiter,
                "quote": self._dialect.quote,
                "encoding": self._text.encoding,
                "header": "true" if self._names is not None else "false",
                **({"decimal": ","} if self._commas is Commas.DECIMAL else {}),
                **({"thousands": ","} if self._commas is Commas.THOUSANDS else {}),
                **({"trailing_delimiter": "true"} if self._trailing else {}),
            },
            known=known,
        )

    def _is_plain(self) -> bool:
        """Return whether there is nothing but rows, all alike, below one with the names."""
        unusual = len(self._warnings) > len(self._sample.warnings) + len(self._text.warnings)
        if self._trailing or self._commas is not Commas.NO_NUMBERS:
            return False
        return not (unusual or self._start or self._first_row_is_data or self._source.broken)

    def _learn(self, known: KnownSchema) -> None:
        _FORMS.learn(
            self._content, known, delimiter=self._dialect.delimiter, types=self._column_types
        )

    def _before_the_rows(self) -> tuple[str | None, list[str], int]:
        """The delimiter where the file names it, the comments above, where the rows begin."""
        content = self._content
        given, start = None, 0
        if match := _SEPARATOR_LINE.match(content):
            given, start = match[1], match.end()
        if not content.startswith("#", start):
            return given, [], start
        comments = []
        position = start
        while content.startswith("#", position) and (line := _LINE.match(content, position)):
            comments.append(line[0])
            position = line.end()
        if position >= len(content):
            return given, [], start
        self._warnings.append(f"{_count(len(comments), 'comment line')} before its rows left out")
        return given, comments, position

    def _all_rows(self) -> list[list[str]]:
        rows = self._without_cut_row(self._source.take(sys.maxsize))
        if not rows:
            raise UnreadableItemError("it has no rows")
        if max(map(len, rows)) > MAX_NODES:
            raise UnreadableItemError(
                f"a row of it has more than {MAX_NODES:,} columns",
                hint="leave the file out with: exclude",
            )
        return self._without_comments(rows)

    def _without_cut_row(self, rows: list[list[str]]) -> list[list[str]]:
        ends_anywhere = self._source.broken or (self._source.is_at_end and not self._text.whole)
        return rows[:-1] if ends_anywhere and len(rows) > 1 else rows

    def _without_comments(self, rows: list[list[str]]) -> list[list[str]]:
        comments = sum(row[0].startswith("#") for row in rows)
        if not 0 < comments <= len(rows) // 2 or rows[0][0].startswith("#"):
            return rows
        self._extra_lines += comments
        self._warnings.append(f"{_count(comments, 'comment line')} between its rows left out")
        return [row for row in rows if not row[0].startswith("#")]

    def _leave_out_titles(self) -> None:
        """Leave out lines of prose above the table, also where they are padded with delimiters."""
        rows = self._rows
        titles = 0
        if self._width > 1 and _usually_filled(rows) > 1:
            for row in rows[: min(len(rows) - 1, _LINES_BEFORE_HEADER)]:
                if not self._is_title(row):
                    break
                titles += 1
            titles = titles or self._lines_of_two_cells()
            if any(len(row) > 1 for row in rows[:titles]) and not self._is_header_after(titles):
                titles = 0  # rows without a header may begin with one of few values
        if titles:
            self._extra_lines += titles
            self._rows = rows[titles:]
            self._warnings.append(f"{_count(titles, 'line')} before its columns left out")

    def _is_header_after(self, titles: int) -> bool:
        rows = self._rows[titles:]
        return first_row_is_header(rows, self._types(rows[1:]))

    def _is_title(self, row: _Row) -> bool:
        filled = [cell for cell in row if cell.strip()]
        return len(filled) <= 1 and (len(row) == 1 or not row[-1].strip())

    def _lines_of_two_cells(self) -> int:
        """Count lines such as `Exported by:,Anna,,,` above a first row that is filled."""
        for count, row in enumerate(self._rows[:_LINES_BEFORE_HEADER]):
            filled = sum(map(bool, row))
            if filled >= self._width - 1:
                return count
            is_padded = len(row) < self._width or not any(row[2:])
            if self._width <= _FEW_CELLS or filled > _PAIR or not is_padded:
                return 0
            if column_type(row[:1]) not in _UNTYPED:
                return 0
        return 0

    def _leave_out_footers(self) -> None:
        """Leave out lines of prose, and a total, under the table."""
        if not self._text.whole or self._width == 1 or _usually_filled(self._rows) <= 1:
            return
        lines = 0
        while lines < min(len(self._rows) - 2, _LINES_AFTER_ROWS):
            row = self._rows[-1 - lines]
            is_total = _TOTAL.match(row[0].strip()) and "" in row
            if not (len(row) == 1 or is_total):
                break
            lines += 1
        if lines:
            self._extra_lines += lines
            del self._rows[-lines:]
            self._warnings.append(f"{_count(lines, 'line')} after its rows left out")

    def _leave_out_trailing(self) -> bool:
        """Leave out columns at the end that have neither a name nor a value.

        A delimiter at the end of each row makes one.
        """
        if self._names is None:
            return False
        width = self._width
        while width > 1 and not self._names[width - 1]:
            if self._column_types[width - 1] is not TypeName.UNKNOWN:
                break
            width -= 1
        found = width < self._width
        del self._names[width:], self._column_types[width:]
        if found:
            self._body = [row[:width] if not any(row[width:]) else row for row in self._body]
            self._width = width
        return found

    def _found_names(self, comments: list[str], below: list[TypeName]) -> list[str] | None:
        """The names of the columns, from the first row or a comment above; None without."""
        first = self._rows[0]
        self._first_row_is_data = not first_row_is_header(self._rows, below)
        if self._first_row_is_data:
            return header_in_comments(
                comments, delimiter=self._dialect.delimiter, width=self._width
            )
        names = [" ".join(cell.split()) for cell in first]
        missing = self._width - len(names)
        is_last_filled = below[-1] is not TypeName.UNKNOWN
        if missing == 1 and is_last_filled and self._has_row_names(below):
            return ["", *names]  # the names of rows, over which R writes no name
        return names + [""] * missing

    def _has_row_names(self, below: Sequence[TypeName]) -> bool:
        return below[0] is TypeName.STRING and _are_even(self._rows[1:], self._width)

    def _types(self, rows: Sequence[_Row]) -> list[TypeName]:
        if not rows:
            return [TypeName.UNKNOWN] * self._width
        types = [column_type(column) for column in zip_longest(*rows, fillvalue="")]
        types = [*types, *[TypeName.UNKNOWN] * (self._width - len(types))][: self._width]
        return self._with_commas(types, rows)

    def _look_further(self, further: Sequence[str]) -> None:
        """Widen the types by rows from other places of the file, where they have the same form."""
        for lines in further:
            rows = RowSource(lines, self._dialect).take(sys.maxsize)
            alike = [row for row in rows if len(row) in (self._width, self._width + self._trailing)]
            if len(alike) < _FITTING * len(rows):
                continue  # it may begin inside of a quoted value
            types = self._types([row for row in alike if not row[0].startswith("#")])
            pairs = zip(self._column_types, types, strict=True)
            self._column_types = [widened(old, new) for old, new in pairs]

    def _with_commas(self, types: list[TypeName], rows: Sequence[_Row]) -> list[TypeName]:
        """Make numbers of columns with decimal commas or marked thousands, where they are sure."""
        found: dict[int, tuple[Commas, TypeName]] = {}
        for position, kind in enumerate(types):
            if kind is TypeName.STRING:
                column = {row[position] for row in rows if position < len(row)}
                if any(mark in text for text in column for mark in GROUP_MARKS):
                    found[position] = meaning_of_commas(column)
        meanings = {meaning for meaning, _ in found.values()}
        if Commas.DECIMAL in meanings:
            self._commas = Commas.DECIMAL
        elif Commas.THOUSANDS in meanings or (
            Commas.EITHER in meanings and self._dialect.delimiter == ","
        ):
            self._commas = Commas.THOUSANDS
        if self._commas is Commas.NO_NUMBERS:
            return types
        for position, (meaning, kind) in found.items():
            if meaning is Commas.EITHER:
                decimal = self._commas is Commas.DECIMAL
                types[position] = TypeName.DOUBLE if decimal else TypeName.INT64
            elif meaning is not Commas.NO_NUMBERS:
                types[position] = kind
        return types

    def _schema(self) -> KnownSchema:
        names = None if self._names is None else tuple(self._names)
        types = tuple(self._column_types)
        return _KNOWN.get((names, types), lambda: _built(names, types))

    def _warn_of_ragged_rows(self) -> None:
        ragged = sum(len(row) != self._width for row in self._body)
        if ragged:
            self._warnings.append(
                f"{ragged} of {len(self._body)} sampled rows do not have {self._width} columns"
            )

    def _count(self) -> tuple[int | None, int]:
        """The number of rows, where all were seen, and about how many there are."""
        seen = len(self._body)
        if self._text.whole and self._source.is_at_end and not self._source.broken:
            return seen, seen
        read = self._start + self._source.characters if self._source.broken else None
        share = _share(self._content[:read], self._text, self._sample)
        return None, _estimated(seen, share=share)


def _built(names: tuple[str, ...] | None, types: tuple[TypeName, ...]) -> KnownSchema:
    warnings: list[str] = []
    if names is None:
        sources = unique = [f"column_{i}" for i in range(1, len(types) + 1)]
    else:
        sources = list(names)
        unique, warnings = unique_names(sources)
    fields = tuple(
        Field(
            name=name,
            type=kind,
            native_type="text",
            precision=_DECIMAL_DIGITS if kind is TypeName.DECIMAL else None,
            scale=0 if kind is TypeName.DECIMAL else None,
            properties={} if name == source else {"source_name": source},
        )
        for name, source, kind in zip(unique, sources, types, strict=True)
    )
    return KnownSchema.of(Schema(fields=fields, positional=names is None), tuple(warnings))


def _usually_filled(rows: Sequence[_Row]) -> int:
    """Return how many cells of a row in the middle of the others hold something."""
    filled = sorted(sum(map(bool, row)) for row in rows[:_ROWS_FOR_WIDTH])
    return filled[len(filled) // 2]


def _are_even(rows: Sequence[_Row], width: int) -> bool:
    return all(len(row) == width for row in rows)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
