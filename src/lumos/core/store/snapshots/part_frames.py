"""Frames of a part: stretches of lines that are packed one by one, so that equal ones are skipped.

A part is a sequence of zstd frames with a seek table behind them, as the seekable format of zstd
has it: any zstd unpacks it as one stream. Where a frame ends follows from the lines near its end
alone, so two parts that differ in some lines still have all other frames in common, byte for byte.
A part of one frame has no table.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import zstandard

_LEVEL = 3
_LEAST_BYTES = 48 * 1024
_MOST_BYTES = 16 * _LEAST_BYTES
_ENDS_OF = 8  # one line of so many may end a frame
_LARGEST_WINDOW = 8 * 1024 * 1024  # of memory for each frame; Lumos writes 2 MB at most
_KEY_BYTES = 96  # of a dataset, its URN: another state of it ends a frame as the old one did
_HEADER = struct.Struct("<II")
_ENTRY = struct.Struct("<II")
_FOOTER = struct.Struct("<IBI")
_SKIPPED, _SEEKABLE = 0x184D2A5E, 0x8F92EAB1


class Frame(NamedTuple):
    """A packed stretch of lines, and how long it is unpacked."""

    packed: bytes
    plain_bytes: int


def packed_lines(lines: Iterable[bytes]) -> bytes:
    """Pack lines into frames; the same lines always give the same bytes."""
    compressor = zstandard.ZstdCompressor(level=_LEVEL, write_content_size=True)
    frames = [Frame(compressor.compress(plain), len(plain)) for plain in _stretches(lines)]
    packed = b"".join(frame.packed for frame in frames)
    return packed if len(frames) == 1 else packed + _table(frames)


def frames_of(content: bytes, plain_bytes: int) -> list[Frame]:
    """Return the frames of a part that unpacks to so many bytes.

    Raises:
        ValueError: its table does not fit the content.
    """
    sizes = _sizes(content)
    if sizes is None:
        return [Frame(content, plain_bytes)]
    frames, start = [], 0
    for packed, plain in sizes:
        frames.append(Frame(content[start : start + packed], plain))
        start += packed
    if start + _table_bytes(len(sizes)) != len(content):
        raise ValueError("the table of the part does not fit it")
    if sum(plain for _, plain in sizes) != plain_bytes:
        raise ValueError("the part unpacks to another size")
    return frames


def unpacked_frames(frames: list[Frame]) -> bytes:
    """Return the plain text of frames, one after the other.

    Raises:
        ValueError: they do not unpack to what they say.
    """
    size = sum(frame.plain_bytes for frame in frames)
    content = b"".join(frame.packed for frame in frames)
    try:
        unpacker = zstandard.ZstdDecompressor(max_window_size=_LARGEST_WINDOW)
        # One byte more than there may be: a frame that holds more than it says is found out.
        with unpacker.stream_reader(content, read_across_frames=True) as reader:
            plain = reader.read(size + 1)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from None
    if len(plain) != size:
        raise ValueError("the part unpacks to another size")
    return plain


def differing_frames(old: list[Frame], new: list[Frame]) -> tuple[list[Frame], list[Frame]]:
    """Leave out the frames that both sides have."""
    common = {*old} & {*new}
    left, right = ([each for each in side if each not in common] for side in (old, new))
    return left, right


def _stretches(lines: Iterable[bytes]) -> Iterator[bytes]:
    held: list[bytes] = []
    size = 0
    for line in lines:
        held.append(line)
        size += len(line) + 1
        may_end = size >= _LEAST_BYTES and zlib.crc32(_key(line)) % _ENDS_OF == 0
        if may_end or size >= _MOST_BYTES:
            yield b"\n".join(held) + b"\n"
            held, size = [], 0
    if held:
        yield b"\n".join(held) + b"\n"


def _key(line: bytes) -> bytes:
    return line[:_KEY_BYTES].partition(b'","')[0]


def _table(frames: list[Frame]) -> bytes:
    entries = b"".join(_ENTRY.pack(len(frame.packed), frame.plain_bytes) for frame in frames)
    content = entries + _FOOTER.pack(len(frames), 0, _SEEKABLE)
    return _HEADER.pack(_SKIPPED, len(content)) + content


def _table_bytes(frames: int) -> int:
    return _HEADER.size + frames * _ENTRY.size + _FOOTER.size


def _sizes(content: bytes) -> list[tuple[int, int]] | None:
    """Read the table behind the frames; None where there is none."""
    if len(content) < _table_bytes(0):
        return None
    count, _, magic = _FOOTER.unpack_from(content, len(content) - _FOOTER.size)
    start = len(content) - _table_bytes(count)
    if magic != _SEEKABLE or start < 0:
        return None
    if _HEADER.unpack_from(content, start) != (_SKIPPED, len(content) - start - _HEADER.size):
        return None
    first = start + _HEADER.size
    return [_ENTRY.unpack_from(content, first + place * _ENTRY.size) for place in range(count)]
