"""Reads the beginning of a CSV file: how it is written, its columns and their likely types."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import Final

from lumos.core.errors import UnreadableItemError
from lumos.core.formats.csv_dialect import Dialect, RowSource, find_dialect, usual_width
from lumos.core.formats.csv_forms import KnownForms, Plan, Recognised
from lumos.core.formats.csv_header import first_row_is_header, header_in_comments
from lumos.core.formats.csv_values import column_type, has_decimal_commas, widened
from lumos.core.formats.facts import FileFacts
from lumos.core.formats.known_schemas import KnownSchema, KnownSchemas
from lumos.core.formats.names import unique_names
from lumos.core.formats.sample import SAMPLE_BYTES, Sample, Text
from lumos.core.formats.type_parts import MAX_NODES
from lumos.core.models import Field, Schema, TypeName

FORMAT: Final = "csv"
MAX_ROWS: Final = 1_000
"""How many rows decide on the types where they go on telling something new."""
BATCH_ROWS: Final = 50
"""The types are settled when so many more rows change none of them."""

_LINES_BEFORE_HEADER = 20
_STRUCTURED = 0.9
_SEPARATOR_LINE: Final = re.compile(r"sep=([^\w\s\"']|\t)\r?\n?", re.IGNORECASE)
_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\n|\r|\Z)")
_UNTYPED: Final = (TypeName.STRING, TypeName.UNKNOWN)
_KNOWN: Final = KnownSchemas()
_FORMS: Final = KnownForms(Plan(rows=2 * BATCH_ROWS, showing=BATCH_ROWS))

_Row = Sequence[str]


def read_csv(text: Text, *, sample: Sample) -> FileFacts:
    """Return the facts of a CSV file by its first rows.

    Every column is nullable, because a sample cannot prove that a value is never missing.

    Raises:
        UnreadableItemError: there is no whole row in the sample.
    """
    content = _whole_lines(text, sample)
    found = _FORMS.recognise(content, whole=text.whole)
    if found is not None:
        return _facts_by_form(found, content, text=text, sample=sample)
    return _Reading(content, text, sample, promised=True).facts()


def read_table(text: Text, *, sample: Sample) -> FileFacts | None:
    """Return the facts of text that is a table without being told so by its name, or None."""
    try:
        content = _whole_lines(text, sample)
        found = _FORMS.recognise(content, whole=text.whole)
        if found is not None:
            return _facts_by_form(found, content, text=text, sample=sample)
        reading = _Reading(content, text, sample, promised=False)
    except UnreadableItemError:
        return None
    return reading.facts() if reading.is_table() else None


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
    seen = found.rows
    lines = content.count("\n")
    rows = seen if text.whole and lines + (content[-1] != "\n") == seen + 1 else None
    return FileFacts(
        format=FORMAT,
        schema=found.known.schema,
        rows=rows,
        rows_estimate=rows
        if rows is not None
        else _estimated(seen, lines / (seen + 1), share=_share(content, text, sample)),
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


def _estimated(seen: int, sample_to_seen: float, *, share: float) -> int:
    """About how many rows there are, given those seen and how many times as much the sample has."""
    in_sample = seen * sample_to_seen
    return max(seen, round(in_sample / share if 0 < share < 1 else in_sample))


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
        self._rows = self._first_rows()
        self._width, self._share = usual_width(self._rows)
        self._leave_out_titles()
        self._width = max(self._width, len(self._rows[0]))
        below = self._types(self._rows[1:])
        self._names = self._found_names(comments, below)
        self._body = self._rows if self._first_row_is_data else self._rows[1:]
        self._column_types = self._types(self._body) if self._first_row_is_data else below

    def is_table(self) -> bool:
        if self._width == 1 or len(self._rows) == 1 or self._source.broken:
            return False
        if self._share < _STRUCTURED:
            return False
        return self._names is not None or any(t not in _UNTYPED for t in self._column_types)

    def facts(self) -> FileFacts:
        self._look_further()
        decimal = self._decimal_commas()
        known = self._schema()
        self._warn_of_ragged_rows()
        if not decimal and self._is_plain():
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
                **({"decimal": ","} if decimal else {}),
            },
            known=known,
        )

    def _is_plain(self) -> bool:
        """Tell whether there is nothing but rows, all alike, below one with the names."""
        unusual = len(self._warnings) > len(self._sample.warnings) + len(self._text.warnings)
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

    def _first_rows(self) -> list[list[str]]:
        rows = self._without_cut_row(self._source.take(2 * BATCH_ROWS + 1))
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
        """Leave out lines of prose above the table."""
        titles = 0
        while self._width > 1 and titles < min(len(self._rows) - 1, _LINES_BEFORE_HEADER):
            if len(self._rows[titles]) > 1:
                break
            titles += 1
        if titles:
            self._extra_lines += titles
            self._rows = self._rows[titles:]
            self._warnings.append(f"{_count(titles, 'line')} before its columns left out")

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
        if missing == 1 and below[0] is TypeName.STRING and _are_even(self._rows[1:], self._width):
            return ["", *names]  # the names of rows, over which R writes no name
        return names + [""] * missing

    def _types(self, rows: Sequence[_Row]) -> list[TypeName]:
        if not rows:
            return [TypeName.UNKNOWN] * self._width
        types = [column_type(column) for column in zip_longest(*rows, fillvalue="")]
        return [*types, *[TypeName.UNKNOWN] * (self._width - len(types))][: self._width]

    def _look_further(self) -> None:
        """Take more rows for as long as they tell something new about the types."""
        if self._source.is_at_end:
            return
        types = self._column_types
        settled = self._types(self._body[:BATCH_ROWS]) == types
        while not settled and len(self._body) < MAX_ROWS and not self._source.is_at_end:
            more = self._without_cut_row(self._source.take(2 * BATCH_ROWS))
            more = [row for row in more if not row[0].startswith("#")]
            types = [widened(old, new) for old, new in zip(types, self._types(more), strict=True)]
            settled = types == self._column_types
            self._column_types = types
            self._body = [*self._body, *more]

    def _decimal_commas(self) -> bool:
        """Make numbers of the columns that hold decimal commas, where it is sure that they do."""
        if self._dialect.delimiter == ",":
            return False
        found = {}
        for position, kind in enumerate(self._column_types):
            if kind is TypeName.STRING:
                column = {row[position] for row in self._body if position < len(row)}
                if any("," in text for text in column):
                    found[position] = has_decimal_commas(column)
        if not any(found.values()):
            return False
        for position, decimal in found.items():
            if decimal is not False:
                self._column_types[position] = TypeName.DOUBLE
        return True

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
        end = "\n" if "\n" in self._content else "\r"
        lines = self._content.count(end, self._start)
        lines_read = self._content.count(end, self._start, self._start + self._source.characters)
        share = _share(self._content, self._text, self._sample)
        return None, _estimated(seen, max(1, lines) / max(1, lines_read), share=share)


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
            properties={} if name == source else {"source_name": source},
        )
        for name, source, kind in zip(unique, sources, types, strict=True)
    )
    return KnownSchema.of(Schema(fields=fields, positional=names is None), tuple(warnings))


def _are_even(rows: Sequence[_Row], width: int) -> bool:
    return all(len(row) == width for row in rows)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
