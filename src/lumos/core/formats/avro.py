"""Reads the header of an Avro file, and where its blocks begin: its schema, never a record.

A record may be tiny in the file and endless in memory, so no block is ever decoded. Each block
says how many records it holds.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import BinaryIO, Final

from lumos.core.errors import UnreadableItemError
from lumos.core.formats.avro_types import canonical_avro_schema
from lumos.core.formats.facts import FileFacts
from lumos.core.formats.known_schemas import KnownSchema, KnownSchemas
from lumos.core.formats.type_parts import MAX_DEPTH
from lumos.core.models.base import LARGEST_INTEGER

FORMAT: Final = "avro"
MAGIC: Final = b"Obj\x01"
LARGEST_HEADER_BYTES: Final = 16 * 1024 * 1024
MOST_BLOCKS: Final = 4_096
"""As many blocks as are looked at; the records of a file with more are estimated."""

_FIRST_READ_BYTES = 64 * 1024
_SYNC_BYTES = 16
_LONGEST_NUMBER = 10
_BLOCK_START_BYTES = _SYNC_BYTES + 2 * _LONGEST_NUMBER
_MORE_FOLLOWS = 0x80
_SCHEMAS = KnownSchemas()

__all__ = ["FORMAT", "MAGIC", "canonical_avro_schema", "read_avro"]


def read_avro(
    stream: BinaryIO, *, size: int, whole: bool = True, value_ranges: bool = False
) -> FileFacts:
    """Return the facts of an open Avro file by reading its header and the beginnings of blocks.

    Where moving on in the stream may take a request each time, only the blocks at the beginning
    of the file are looked at, and its records are estimated from them.

    Args:
        stream: the file, open for reading bytes at any position.
        size: its length in bytes.
        whole: whether the stream ends where the file does; else no records are counted.
        value_ranges: taken as by all readers; Avro keeps no ranges.

    Raises:
        UnreadableItemError: the header is damaged or its schema is not valid Avro.
    """
    head, header = _header(stream, size)
    text = header.entries.get(b"avro.schema")
    if text is None:
        raise UnreadableItemError("its header is damaged: it holds no schema")
    known = _SCHEMAS.get(text, lambda: _new_schema(text))
    codec = header.entries.get(b"avro.codec", b"null").decode("ascii", "replace")
    records = _Records()
    if whole:
        records = _counted(stream, head, header, size=size)
    return FileFacts(
        format=FORMAT,
        schema=known.schema,
        rows=records.exact,
        rows_estimate=records.estimate,
        description=known.description,
        warnings=(*known.warnings, *records.warnings),
        compression=None if codec == "null" else codec,
        known=known,
    )


def _new_schema(text: bytes) -> KnownSchema:
    try:
        document = json.loads(text)
    except ValueError:
        raise UnreadableItemError("its header is damaged: its schema is not JSON") from None
    except RecursionError:
        raise UnreadableItemError(f"its schema is nested deeper than {MAX_DEPTH} levels") from None
    schema, description, warnings = canonical_avro_schema(document)
    return KnownSchema.of(schema, warnings, description=description)


@dataclass(frozen=True, slots=True)
class _Header:
    entries: Mapping[bytes, bytes]
    sync: bytes
    end: int


@dataclass(frozen=True, slots=True)
class _Records:
    """How many records a file holds, exactly or about."""

    exact: int | None = None
    estimate: int | None = None
    warnings: tuple[str, ...] = ()


def _header(stream: BinaryIO, size: int) -> tuple[bytes, _Header]:
    """Read the header, in a second, larger read where it does not fit the first."""
    for limit in (_FIRST_READ_BYTES, LARGEST_HEADER_BYTES):
        stream.seek(0)
        head = stream.read(min(limit, size))
        try:
            return head, _parsed(head)
        except IndexError:
            if len(head) >= size:
                raise UnreadableItemError("the file is cut off inside its header") from None
    raise UnreadableItemError("its header is damaged")


def _parsed(head: bytes) -> _Header:
    if not head.startswith(MAGIC):
        raise UnreadableItemError("its header is damaged")
    entries: dict[bytes, bytes] = {}
    position = len(MAGIC)
    while True:
        count, position = _number(head, position)
        if count == 0:
            break
        if count < 0:  # the length of the entries in bytes follows, for those who skip them
            count = -count
            _, position = _number(head, position)
        for _ in range(count):
            name, position = _counted_bytes(head, position)
            entries[name], position = _counted_bytes(head, position)
    end = position + _SYNC_BYTES
    if end > len(head):
        raise IndexError
    return _Header(entries, head[position:end], end)


def _counted_bytes(head: bytes, position: int) -> tuple[bytes, int]:
    length, position = _number(head, position)
    if length < 0 or length > LARGEST_HEADER_BYTES:
        raise UnreadableItemError("its header is damaged")
    end = position + length
    if end > len(head):
        raise IndexError
    return head[position:end], end


def _number(content: bytes, position: int) -> tuple[int, int]:
    """Return the number at a position, and the position after it."""
    number = shift = 0
    while True:
        byte = content[position]
        position += 1
        number |= (byte & ~_MORE_FOLLOWS) << shift
        if byte < _MORE_FOLLOWS:
            return (number >> 1) ^ -(number & 1), position
        shift += 7
        if shift >= 7 * _LONGEST_NUMBER:
            raise UnreadableItemError("its header is damaged")


def _counted(stream: BinaryIO, head: bytes, header: _Header, *, size: int) -> _Records:
    """Go from block to block, by what each says of its length."""
    rows, position = 0, header.end
    free = isinstance(stream, io.BufferedReader | io.FileIO | io.BytesIO)
    for _ in range(MOST_BLOCKS):
        if position == size:
            return _Records(exact=rows, estimate=rows)
        start = position - _SYNC_BYTES
        content = head[start : start + _BLOCK_START_BYTES]
        if len(content) < min(_BLOCK_START_BYTES, size - start):
            if not free:
                break
            stream.seek(start)
            content = stream.read(_BLOCK_START_BYTES)
        if content[:_SYNC_BYTES] != header.sync:
            return _damaged("a block in it does not end where it says", rows)
        try:
            count, place = _number(content, _SYNC_BYTES)
            length, place = _number(content, place)
        except (IndexError, UnreadableItemError):
            return _damaged("a block in it is cut off", rows)
        position = start + place + length + _SYNC_BYTES
        if count < 0 or length < 0 or rows + count > LARGEST_INTEGER:
            return _damaged("a block in it is damaged", rows)
        if position > size:
            return _damaged("it is cut off inside a block", rows)
        rows += count
    return _Records(estimate=_scaled(rows, position - header.end, size - header.end))


def _damaged(what: str, rows: int) -> _Records:
    return _Records(estimate=rows, warnings=(f"{what}; its records are not all counted",))


def _scaled(rows: int, seen: int, whole: int) -> int | None:
    return min(round(rows * whole / seen), LARGEST_INTEGER) if seen else None
