"""Flat columns out of records, as JSON and Avro have them: every value as text."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from functools import partial
from itertools import filterfalse, islice
from typing import TYPE_CHECKING, BinaryIO, Final
from uuid import UUID

import orjson

from lumos.core.errors import UnreadableItemError
from lumos.spark.stages.profiling import ColumnKind, arrow_type

if TYPE_CHECKING:
    import pyarrow as pa

    from lumos.feature.profiling.columns import ProfiledColumn

LARGEST_DOCUMENT_BYTES: Final = 256 * 1024 * 1024
"""A JSON file of one array or document is read as a whole, up to this size."""

_BATCH_RECORDS = 4_096
_VALUE = "value"
"""The column of records that are no objects."""


class JsonRecords:
    """The records of an open JSON file; lines that are no JSON are counted and passed over."""

    def __init__(self, stream: BinaryIO, *, layout: str, encoding: str) -> None:
        self._stream = stream
        self._layout = layout
        self._encoding = "utf-8-sig" if encoding == "utf-8" else encoding
        self.broken = 0

    def __iter__(self) -> Iterator[object]:
        if self._layout == "lines":
            yield from self._lines()
        elif self._layout == "array":
            yield from _items(self._whole())
        else:
            yield from _values(self._whole())

    def _lines(self) -> Iterator[object]:
        lines = io.TextIOWrapper(self._stream, encoding=self._encoding, newline="\n")
        try:
            read = iter(partial(lines.readline, LARGEST_DOCUMENT_BYTES), "")
            for line in filterfalse(str.isspace, read):
                if len(line) == LARGEST_DOCUMENT_BYTES:
                    raise UnreadableItemError(
                        f"it has a line of {LARGEST_DOCUMENT_BYTES >> 20} MB or more"
                    )
                try:
                    yield orjson.loads(line)
                except orjson.JSONDecodeError:
                    self.broken += 1
        finally:
            lines.detach()  # the caller that opened the stream closes it

    def _whole(self) -> str:
        content = self._stream.read(LARGEST_DOCUMENT_BYTES + 1)
        if len(content) > LARGEST_DOCUMENT_BYTES:
            raise UnreadableItemError(
                f"it is one JSON document of more than {LARGEST_DOCUMENT_BYTES >> 20} MB",
                hint="write one record a line",
            )
        return content.decode(self._encoding).removeprefix("\ufeff")


def avro_records(stream: BinaryIO) -> Iterator[object]:
    """Yield the records of an open Avro file."""
    import fastavro

    yield from fastavro.reader(stream)


def record_batches(
    records: Iterable[object], columns: Sequence[ProfiledColumn]
) -> Iterator[pa.RecordBatch]:
    """Yield the flat columns of records, some thousand at a time."""
    import pyarrow as pa

    names = [column.flat.name for column in columns]
    iterator = iter(records)
    while chunk := list(islice(iterator, _BATCH_RECORDS)):
        rows = [record if isinstance(record, dict) else {_VALUE: record} for record in chunk]
        arrays = [pa.array(_values_of(rows, column), arrow_type(column.flat)) for column in columns]
        yield pa.RecordBatch.from_arrays(arrays, names=names)


def value_text(value: object) -> str | None:
    """Return a value as text that Spark reads back as the same value."""
    match value:
        case None | str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case Decimal():
            return f"{value:f}"
        case datetime():
            return value.isoformat(" ")
        case date() | time():
            return value.isoformat()
        case UUID():
            return str(value)
        case bytes():
            return value.hex()
        case _:
            return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()


def _values_of(
    rows: Sequence[Mapping[str, object]], column: ProfiledColumn
) -> list[str | bytes | int | None]:
    found = (_at(row, column.steps) for row in rows)
    match column.flat.kind:
        case ColumnKind.SIZE:
            return [len(each) if isinstance(each, (list, dict)) else None for each in found]
        case ColumnKind.PRESENT:
            return [None if each is None else True for each in found]
        case ColumnKind.BINARY:
            return [each if each is None else _bytes_of(each) for each in found]
        case _:
            return [value_text(each) for each in found]


def _at(row: Mapping[str, object], steps: tuple[str, ...]) -> object:
    value: object = row
    for step in steps:
        if not isinstance(value, dict):
            return None
        value = value.get(step)
    return value


def _bytes_of(value: object) -> bytes:
    return value if isinstance(value, bytes) else (value_text(value) or "").encode()


def _items(text: str) -> Iterator[object]:
    document = _parsed(text)
    yield from document if isinstance(document, list) else [document]


def _values(text: str) -> Iterator[object]:
    """Yield values that stand one after the other."""
    decoder = json.JSONDecoder()
    place = 0
    while place < len(text):
        if text[place] in " \t\r\n\x1e,":
            place += 1
            continue
        try:
            value, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            raise UnreadableItemError("it is no JSON from some place on") from None
        yield value


def _parsed(text: str) -> object:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        raise UnreadableItemError("it is no JSON document, or a damaged one") from None
