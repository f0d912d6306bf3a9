"""Reads what Arrow files, streams and Feather files say of themselves."""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

from lumos.core.errors import UnreadableItemError
from lumos.core.formats.arrow_types import canonical_schema
from lumos.core.formats.facts import FileFacts
from lumos.core.formats.file_names import ARROW
from lumos.core.formats.known_schemas import KnownSchema, KnownSchemas
from lumos.core.formats.sample import read_up_to

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT: Final = ARROW
MAGIC: Final = b"ARROW1"
OLD_MAGIC: Final = b"FEA1"
STREAM_MAGIC: Final = b"\xff\xff\xff\xff"
_DAMAGED = "its Arrow metadata is damaged or cut off"

MOST_MESSAGES: Final = 1_000
"""So many batches are counted at most; the rows of a file with more are estimated."""
LARGEST_OLD_FILE: Final = 16 * 1024 * 1024
"""Feather files of version 1 can only be read whole."""

_HEAD_BYTES = 64 * 1024
_LARGEST_METADATA = 16 * 1024 * 1024
_FILE_START = 8
_MARK_BYTES = 4
_RECORD_BATCH = 3
_HEADER_TYPE, _HEADER, _BODY_LENGTH, _LENGTH = 1, 2, 3, 0
_SCHEMAS = KnownSchemas()


def read_arrow(stream: BinaryIO, *, size: int, whole: bool = True) -> FileFacts:
    """Return the facts of an open Arrow file, Arrow stream or Feather file.

    The rows are counted from batch to batch, whose data is skipped; where moving on in the stream
    may take a request each time, they are estimated from the beginning.

    Args:
        stream: the file, open for reading bytes at any position.
        size: its length in bytes.
        whole: whether the stream ends where the file does; else no rows are counted.

    Raises:
        UnreadableItemError: the file is damaged; the reason holds no data.
    """
    import pyarrow as pa

    stream.seek(0)
    head = read_up_to(stream, _HEAD_BYTES)
    try:
        if head.startswith(OLD_MAGIC):
            return _facts_of_old_file(stream, size)
        return _facts_of_messages(_Messages(stream, head, size), head, whole=whole)
    except (pa.ArrowException, OSError, ValueError, TypeError, OverflowError, KeyError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise UnreadableItemError(_DAMAGED) from error


def _facts_of_messages(messages: _Messages, head: bytes, *, whole: bool) -> FileFacts:
    import pyarrow as pa

    is_file = head.startswith(MAGIC)
    first = messages.next(_FILE_START if is_file else 0)
    if first is None:
        raise UnreadableItemError(_DAMAGED)
    schema = pa.ipc.read_schema(pa.py_buffer(first.encapsulated))
    rows = messages.counted(first) if whole else _Rows(None, None, None)
    if is_file and whole and not rows.warnings and not messages.has_end():
        rows = rows._replace(warnings=("it is cut off: its footer has no end",))
    return _facts(schema, rows, layout="file" if is_file else "stream")


class _Message(NamedTuple):
    """One message of a stream, without its body."""

    encapsulated: bytes
    """Its metadata, with what stands before it."""
    rows: int
    """How many rows it holds, where it is a batch."""
    is_batch: bool
    end: int
    """Where the next one begins."""


class _Rows(NamedTuple):
    exact: int | None
    estimate: int | None
    batches: int | None
    warnings: tuple[str, ...] = ()


class _Messages:
    """The messages of which a file consists, which say how long they are."""

    def __init__(self, stream: BinaryIO, head: bytes, size: int) -> None:
        self._stream = stream
        self._head = head
        self._size = size
        self._is_free = isinstance(stream, io.BufferedReader | io.FileIO | io.BytesIO)

    def has_end(self) -> bool:
        """Return whether the file ends as one does; of one far away that is not asked."""
        if not self._is_free:
            return True
        self._stream.seek(max(0, self._size - len(MAGIC)))
        return self._stream.read(len(MAGIC)) == MAGIC

    def next(self, position: int) -> _Message | None:
        """Return the message at a position, or None for the mark of the end.

        Raises:
            UnreadableItemError: it is damaged or cut off.
            LookupError: it is not at hand.
        """
        prefix = self._at(position, _MARK_BYTES * 2)
        marked = prefix.startswith(STREAM_MAGIC)
        length = int.from_bytes(prefix[_MARK_BYTES:] if marked else prefix[:_MARK_BYTES], "little")
        if length == 0:
            return None
        start = _MARK_BYTES * (2 if marked else 1)
        if length > _LARGEST_METADATA:
            raise UnreadableItemError(_DAMAGED)
        encapsulated = self._at(position, start + length)
        message = _Table.root(encapsulated[start:])
        body = message.integer(_BODY_LENGTH, 8)
        is_batch = message.integer(_HEADER_TYPE, 1) == _RECORD_BATCH
        rows = message.table(_HEADER).integer(_LENGTH, 8) if is_batch else 0
        end = position + start + length + body
        if body < 0 or rows < 0 or end > self._size:
            raise UnreadableItemError(_DAMAGED)
        return _Message(encapsulated, rows, is_batch, end)

    def counted(self, first: _Message) -> _Rows:
        """Count the rows of all batches after the first message, as far as they are at hand."""
        rows = batches = 0
        position = first.end
        try:
            for _ in range(MOST_MESSAGES):
                if position == self._size:  # a stream may end without its mark
                    return _Rows(rows, rows, batches)
                message = self.next(position)
                if message is None:
                    return _Rows(rows, rows, batches)
                rows += message.rows
                batches += message.is_batch
                position = message.end
        except UnreadableItemError:
            warning = "it is damaged or cut off after its schema; its rows are not all counted"
            return _Rows(None, rows, None, (warning,))
        except LookupError:
            pass  # from here on, each batch would be a separate request
        share = (position - first.end) / max(1, self._size - first.end)
        return _Rows(None, round(rows / share) if share else None, None)

    def _at(self, position: int, length: int) -> bytes:
        end = position + length
        content = self._head[position:end]
        if len(content) == length:
            return content
        if end > self._size:
            raise UnreadableItemError(_DAMAGED)
        if not self._is_free and position > 0:
            raise LookupError
        self._stream.seek(position)
        content = read_up_to(self._stream, length)
        if len(content) < length:
            raise UnreadableItemError("the file changed while it was read", retryable=True)
        return content


class _Table:
    """A table of a flat buffer, whose fields are found by their number."""

    def __init__(self, content: bytes, position: int) -> None:
        self._content = content
        self._position = position
        self._fields = position - self._number(position, 4)
        self._fields_end = self._number(self._fields, 2)

    @classmethod
    def root(cls, content: bytes) -> _Table:
        """Return the outermost table."""
        return cls(content, int.from_bytes(content[:4], "little"))

    def integer(self, field: int, width: int) -> int:
        """Return a number; 0 where the table does not have the field."""
        offset = self._offset(field)
        return self._number(self._position + offset, width) if offset else 0

    def table(self, field: int) -> _Table:
        """Return a table inside this one."""
        at = self._position + self._offset(field)
        return _Table(self._content, at + self._number(at, 4))

    def _offset(self, field: int) -> int:
        entry = 4 + 2 * field
        return self._number(self._fields + entry, 2) if entry < self._fields_end else 0

    def _number(self, at: int, width: int) -> int:
        part = self._content[at : at + width]
        if at < 0 or len(part) < width:
            raise UnreadableItemError(_DAMAGED)
        return int.from_bytes(part, "little", signed=True)


def _facts_of_old_file(stream: BinaryIO, size: int) -> FileFacts:
    from pyarrow import feather

    stream.seek(0)
    if size > LARGEST_OLD_FILE:
        raise UnreadableItemError(
            "it is a Feather file of version 1, which can only be read whole",
            hint="write it anew as version 2, which is the Arrow format",
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = feather.read_table(stream, use_threads=False, memory_map=False)
    rows = _Rows(table.num_rows, table.num_rows, None)
    return _facts(table.schema, rows, layout="feather 1")


def _facts(schema: pa.Schema, rows: _Rows, *, layout: str) -> FileFacts:
    serialized = schema.serialize().to_pybytes()
    known = _SCHEMAS.get(serialized, lambda: KnownSchema.of(*canonical_schema(schema)))
    return FileFacts(
        format=FORMAT,
        schema=known.schema,
        rows=rows.exact,
        rows_estimate=rows.estimate,
        row_groups=rows.batches,
        warnings=(*known.warnings, *rows.warnings),
        properties={"layout": layout},
        known=known,
    )
