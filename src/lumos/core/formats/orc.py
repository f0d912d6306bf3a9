"""Reads the tail of an ORC file: schema and counts, never a row or a column statistic."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, BinaryIO, Final, cast

from lumos.core.errors import UnreadableItemError
from lumos.core.formats.arrow_types import canonical_schema
from lumos.core.formats.facts import FileFacts

if TYPE_CHECKING:
    import io

    import pyarrow.orc as pyarrow_orc

    from lumos.core.formats.tails import Tail

FORMAT: Final = "orc"
MAGIC: Final = b"ORC"
LARGEST_FOOTER_BYTES: Final = 64 * 1024 * 1024
LARGEST_BLOCK_BYTES: Final = 64 * 1024 * 1024

_LONGEST_POSTSCRIPT = 255
_FOOTER_LENGTH, _BLOCK_SIZE = 1, 3
_LONGEST_VARINT = 70
_MORE_FOLLOWS = 0x80


class _Wire(IntEnum):
    """How protobuf writes a value."""

    VARINT = 0
    EIGHT_BYTES = 1
    COUNTED = 2
    FOUR_BYTES = 5


def is_end(tail: bytes) -> bool:
    """Tell whether a file ends as ORC does: a postscript, and its length."""
    return tail[-1 - len(MAGIC) : -1] == MAGIC


def read_orc(
    stream: BinaryIO, *, size: int, tail: Tail | None = None, value_ranges: bool = False
) -> FileFacts:
    """Return the facts of an open ORC file by reading its tail.

    Raises:
        UnreadableItemError: the file is not readable ORC; the reason holds no data.
    """
    import pyarrow as pa
    import pyarrow.orc as pyarrow_orc

    _check_postscript(stream, size)
    stream.seek(0)
    try:
        return _facts(pyarrow_orc.ORCFile(pa.PythonFile(cast("io.IOBase", stream), mode="r")))
    except (pa.ArrowException, OSError, ValueError, TypeError, OverflowError, KeyError) as error:
        reason = f"its footer is damaged or not supported ({type(error).__name__})"
        raise UnreadableItemError(reason) from error


def _facts(file: pyarrow_orc.ORCFile) -> FileFacts:
    schema, warnings = canonical_schema(file.schema)
    rows = file.nrows
    if rows < 0:
        raise UnreadableItemError("its footer is damaged: it counts less than no rows")
    compression = str(file.compression).lower()
    return FileFacts(
        format=FORMAT,
        schema=schema,
        rows=rows,
        rows_estimate=rows,
        row_groups=file.nstripes,
        created_by=file.software_version or None,
        warnings=warnings,
        compression=None if compression in ("none", "uncompressed") else compression,
    )


def _check_postscript(stream: BinaryIO, size: int) -> None:
    """Refuse sizes that do not fit the file, before a library makes room for them."""
    stream.seek(max(0, size - _LONGEST_POSTSCRIPT - 1))
    tail = stream.read(_LONGEST_POSTSCRIPT + 1)
    length = tail[-1] if tail else 0
    postscript = tail[-1 - length : -1]
    if len(tail) <= length or not postscript.endswith(MAGIC):
        raise UnreadableItemError("the file is cut off: it has no ORC footer at its end")
    numbers = _numbers(postscript)
    if numbers.get(_FOOTER_LENGTH, 0) > min(size, LARGEST_FOOTER_BYTES):
        raise UnreadableItemError("its footer is damaged: the length it gives does not fit")
    if numbers.get(_BLOCK_SIZE, 0) > LARGEST_BLOCK_BYTES:
        raise UnreadableItemError("its footer is damaged: its blocks are too large")


def _numbers(message: bytes) -> dict[int, int]:
    """The plain numbers of a protobuf message, by their tags."""
    numbers: dict[int, int] = {}
    position = 0
    try:
        while position < len(message):
            key, position = _varint(message, position)
            match key & 7:
                case _Wire.VARINT:
                    numbers[key >> 3], position = _varint(message, position)
                case _Wire.COUNTED:
                    counted, position = _varint(message, position)
                    position += counted
                case _Wire.EIGHT_BYTES:
                    position += 8
                case _Wire.FOUR_BYTES:
                    position += 4
                case _:
                    break
    except (IndexError, OverflowError):
        raise UnreadableItemError("its footer is damaged") from None
    return numbers


def _varint(message: bytes, position: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = message[position]
        position += 1
        number |= (byte & ~_MORE_FOLLOWS) << shift
        if byte < _MORE_FOLLOWS:
            return number, position
        shift += 7
        if shift > _LONGEST_VARINT:
            raise OverflowError
