"""The footer of an ORC file: unpacked and taken apart, with no size in it trusted.

Arrow's reader leaves out the lengths of char and varchar, the attributes of types and all
statistics, and reads the file through callbacks; the footer itself is a small protobuf message.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from lumos.core.errors import UnreadableItemError
from lumos.core.formats.protobuf_walk import (
    DamagedMessageError,
    numbers_of,
    values_of,
    varint,
)

if TYPE_CHECKING:
    import pyarrow as pa
    import zstandard

    from lumos.core.formats.tails import Tail

MAGIC: Final = b"ORC"
LARGEST_FOOTER_BYTES: Final = 64 * 1024 * 1024
LARGEST_BLOCK_BYTES: Final = 64 * 1024 * 1024

COMPRESSIONS: Final = ("none", "zlib", "snappy", "lzo", "lz4", "zstd", "brotli")
_BLOCK_HEADER_BYTES = 3
_FULL_LENGTH = 15
_SHORTEST_MATCH = 4
_WRITERS: Final = {1: "C++", 2: "Presto", 3: "Go", 4: "Trino", 5: "CUDF"}
_Values = Mapping[int, Sequence[int | bytes]]
_DAMAGED = "its footer is damaged or not supported"


@dataclass(frozen=True, slots=True)
class Postscript:
    """The very end of an ORC file: how long its footer is, and how it is packed."""

    footer_bytes: int
    compression: str
    block_bytes: int
    length: int


@dataclass(frozen=True, slots=True)
class Footer:
    """What the footer of an ORC file holds; types and statistics are not yet taken apart."""

    rows: int
    stripes: int
    types: tuple[bytes, ...]
    statistics: tuple[bytes, ...]
    writer: int
    software_version: bytes

    @property
    def created_by(self) -> str | None:
        """The program that wrote the file, where it says so."""
        version = self.software_version.decode("utf-8", "replace")
        if not version:
            return None
        name = f"ORC {_WRITERS.get(self.writer, 'Java')}"
        return version if version.startswith("ORC") else f"{name} {version}"


def postscript_of(tail: Tail) -> Postscript:
    """Return the postscript of a file.

    Raises:
        UnreadableItemError: there is none, or what it says does not fit the file.
    """
    length = tail.content[-1] if tail.content else 0
    content = tail.content[-1 - length : -1]
    if len(tail.content) <= length or not content.endswith(MAGIC):
        raise UnreadableItemError("the file is cut off: it has no ORC footer at its end")
    try:
        numbers = numbers_of(content)
    except DamagedMessageError:
        raise UnreadableItemError("its footer is damaged") from None
    footer_bytes, compression, block_bytes = (numbers.get(number, 0) for number in (1, 2, 3))
    if footer_bytes > min(tail.size - length - 1, LARGEST_FOOTER_BYTES):
        raise UnreadableItemError("its footer is damaged: the length it gives does not fit")
    if block_bytes > LARGEST_BLOCK_BYTES:
        raise UnreadableItemError("its footer is damaged: its blocks are too large")
    if compression >= len(COMPRESSIONS):
        raise UnreadableItemError("its footer is packed in a way that is not known")
    return Postscript(footer_bytes, COMPRESSIONS[compression], block_bytes, length + 1)


def footer_of(tail: Tail, postscript: Postscript) -> Footer:
    """Return the footer of a file.

    Raises:
        UnreadableItemError: it is damaged.
    """
    packed = tail.last(postscript.footer_bytes + postscript.length)[: postscript.footer_bytes]
    try:
        content = packed if postscript.compression == "none" else _unpacked(packed, postscript)
        return _taken_apart(content)
    except (DamagedMessageError, zlib.error, IndexError, ValueError, OSError) as error:
        raise UnreadableItemError(_DAMAGED) from error


def _taken_apart(content: bytes) -> Footer:
    found = values_of(content)
    return Footer(
        rows=_number(found, 6),
        stripes=len(found.get(3, ())),
        types=_messages(found, 4),
        statistics=_messages(found, 7),
        writer=_number(found, 9),
        software_version=b"".join(_messages(found, 12)[-1:]),
    )


def _number(found: _Values, number: int) -> int:
    value = found.get(number, [0])[-1]
    if not isinstance(value, int):
        raise DamagedMessageError
    return value


def _messages(found: _Values, number: int) -> tuple[bytes, ...]:
    values = tuple(value for value in found.get(number, ()) if isinstance(value, bytes))
    if len(values) != len(found.get(number, ())):
        raise DamagedMessageError
    return values


def _unpacked(content: bytes, postscript: Postscript) -> bytes:
    blocks, position, total = [], 0, 0
    while position < len(content):
        header = int.from_bytes(content[position : position + _BLOCK_HEADER_BYTES], "little")
        start = position + _BLOCK_HEADER_BYTES
        position = start + (header >> 1)
        if position > len(content):
            raise DamagedMessageError
        block = content[start:position]
        if not header & 1:
            block = _unpacked_block(block, postscript)
        total += len(block)
        if total > LARGEST_FOOTER_BYTES:
            raise DamagedMessageError
        blocks.append(block)
    return b"".join(blocks)


def _unpacked_block(block: bytes, postscript: Postscript) -> bytes:
    most = postscript.block_bytes
    match postscript.compression:
        case "zlib":
            unpacking = zlib.decompressobj(-zlib.MAX_WBITS)
            content = unpacking.decompress(block, most)
            if not unpacking.eof:
                raise DamagedMessageError
            return content
        case "zstd":
            return _zstandard(block, most)
        case "snappy":
            size, _ = varint(block, 0)
            return _arrow("snappy", block, size=size, most=most)
        case "lz4":
            return _arrow("lz4_raw", block, size=_lz4_size(block), most=most)
        case _:
            raise DamagedMessageError


def _zstandard(block: bytes, most: int) -> bytes:
    import zstandard

    try:
        return _zstandard_unpacker().decompress(block, max_output_size=most)
    except zstandard.ZstdError:
        raise DamagedMessageError from None


@cache
def _zstandard_unpacker() -> zstandard.ZstdDecompressor:
    import zstandard

    return zstandard.ZstdDecompressor()


def _arrow(name: str, block: bytes, *, size: int, most: int) -> bytes:
    if size > most:
        raise DamagedMessageError
    return bytes(_arrow_codec(name).decompress(block, decompressed_size=size, asbytes=True))


@cache
def _arrow_codec(name: str) -> pa.Codec:
    import pyarrow as pa

    return pa.Codec(name)


def _lz4_size(block: bytes) -> int:
    """Return how long a block is once unpacked, which LZ4 itself does not say."""
    size = position = 0
    while True:
        token = block[position]
        literals, position = _lz4_length(block, position + 1, token >> 4)
        size += literals
        position += literals
        if position >= len(block):
            return size
        match_length, position = _lz4_length(block, position + 2, token & _FULL_LENGTH)
        size += match_length + _SHORTEST_MATCH


def _lz4_length(block: bytes, position: int, length: int) -> tuple[int, int]:
    if length == _FULL_LENGTH:
        more = 255
        while more == 255:  # noqa: PLR2004 - a byte that says: another one follows
            more = block[position]
            position += 1
            length += more
    return length, position
