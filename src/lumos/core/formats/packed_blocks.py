"""Unpacks files made of Snappy or LZ4 blocks: the framing format of Snappy, and Hadoop's own.

Neither has a library among the dependencies; the blocks themselves are unpacked by Arrow.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from lumos.core.formats.sample import ByteSource, read_up_to

if TYPE_CHECKING:
    import pyarrow as pa

SNAPPY_MAGIC: Final = b"\xff\x06\x00\x00sNaPpY"
LARGEST_BLOCK: Final = 16 * 1024 * 1024
"""What one block may hold; writers use 64 or 256 KB."""

_LENGTH: Final = struct.Struct(">I")
_CHECKSUM_BYTES = 4
_PACKED, _PLAIN, _FIRST_SKIPPABLE = 0x00, 0x01, 0x80
_LARGEST_FRAME = 64 * 1024
_SEVEN_BITS, _MORE_BITS = 0x7F, 0x80
_LONGEST_LENGTH = 5
_TWO_LENGTHS = 8


class BlocksError(Exception):
    """The bytes are not what the format allows."""


def is_in_hadoop_blocks(head: bytes, codec: str, *, partly: bool = False) -> bool:
    """Return whether bytes begin as Hadoop writes blocks: two lengths that fit each other.

    Args:
        head: the first bytes of a file.
        codec: how its blocks are packed.
        partly: whether the head may be too short to hold more than the lengths.
    """
    if len(head) < _TWO_LENGTHS:
        return False
    unpacked, packed = (int.from_bytes(head[at : at + 4], "big") for at in (0, 4))
    if not 0 < unpacked <= LARGEST_BLOCK or not 0 < packed <= unpacked + unpacked // 6 + 64:
        return False
    if codec != "snappy" or partly:
        return True
    try:
        return snappy_length(head[_TWO_LENGTHS:]) <= unpacked
    except BlocksError:
        return False


def framed_snappy(source: ByteSource, codec: str) -> Iterator[bytes]:
    """Yield what is in each frame.

    Raises:
        BlocksError: a frame is damaged.
        EOFError: the file ends inside a frame.
    """
    while head := read_up_to(source, 4):
        if len(head) < _CHECKSUM_BYTES:
            raise EOFError
        kind, length = head[0], int.from_bytes(head[1:], "little")
        content = _exactly(source, length)
        if kind == _PACKED:
            packed = content[_CHECKSUM_BYTES:]
            if snappy_length(packed) > _LARGEST_FRAME:
                raise BlocksError
            yield _unpacked(packed, codec, snappy_length(packed))
        elif kind == _PLAIN:
            yield content[_CHECKSUM_BYTES:]
        elif kind < _FIRST_SKIPPABLE:
            raise BlocksError


def hadoop_blocks(source: ByteSource, codec: str) -> Iterator[bytes]:
    """Yield what is in each block that Hadoop wrote.

    Raises:
        BlocksError: a block is damaged.
        EOFError: the file ends inside a block.
    """
    while head := read_up_to(source, _LENGTH.size):
        if len(head) < _LENGTH.size:
            raise EOFError
        (left,) = _LENGTH.unpack(head)
        if left > LARGEST_BLOCK:
            raise BlocksError
        while left > 0:
            (length,) = _LENGTH.unpack(_exactly(source, _LENGTH.size))
            if length > LARGEST_BLOCK:
                raise BlocksError
            packed = _exactly(source, length)
            size = snappy_length(packed) if codec == "snappy" else left
            if not 0 < size <= left:
                raise BlocksError
            yield _unpacked(packed, codec, size)
            left -= size


def snappy_length(packed: bytes) -> int:
    """Return how much a block of Snappy says it holds.

    Raises:
        BlocksError: it does not begin with a length.
    """
    length = 0
    for index, byte in enumerate(packed[:_LONGEST_LENGTH]):
        length |= (byte & _SEVEN_BITS) << (7 * index)
        if byte < _MORE_BITS:
            return length
    raise BlocksError


def _exactly(source: ByteSource, size: int) -> bytes:
    content = read_up_to(source, size)
    if len(content) < size:
        raise EOFError
    return content


def _unpacked(packed: bytes, codec: str, size: int) -> bytes:
    import pyarrow as pa

    unpacker: pa.Codec = pa.Codec("snappy" if codec == "snappy" else "lz4_raw")
    try:
        content: bytes = unpacker.decompress(packed, size, asbytes=True)
    except (OSError, pa.ArrowException):
        raise BlocksError from None
    return content
