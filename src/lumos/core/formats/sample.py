"""The beginning of a file, plain or unpacked, never more of it than a limit."""

from __future__ import annotations

import codecs
import zlib
from dataclasses import dataclass, field
from typing import BinaryIO, Final

from lumos.core.errors import UnreadableItemError

SAMPLE_BYTES: Final = 256 * 1024
"""How much of a text file is looked at."""
LARGEST_SAMPLE_BYTES: Final = 4 * 1024 * 1024
"""How much is looked at where one record alone is larger than a sample."""
PACKED_BYTES: Final = 8 * 1024 * 1024
"""How much of a packed file is read at most, however little comes out of it."""

GZIP_MAGIC: Final = b"\x1f\x8b"
_CHUNK_BYTES = 64 * 1024
_ANY_GZIP = 31
_FIRST_PRINTABLE = 0x20
_MOSTLY = 0.3
_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True, slots=True)
class Sample:
    """The first bytes of a file, after unpacking."""

    content: bytes
    whole: bool
    """Whether the file holds nothing more."""
    share: float
    """The part of the file, as it is stored, that this took; between 0 and 1."""
    warnings: tuple[str, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Text:
    """The first characters of a file."""

    content: str
    whole: bool
    encoding: str
    warnings: tuple[str, ...] = ()


def plain_sample(stream: BinaryIO, *, size: int, limit: int = SAMPLE_BYTES) -> Sample:
    """Return the first bytes of a file that is not packed."""
    stream.seek(0)
    content = _read_up_to(stream, limit)
    return Sample(content, len(content) >= size, min(1.0, len(content) / size))


def gzip_sample(stream: BinaryIO, *, size: int, limit: int = SAMPLE_BYTES) -> Sample:
    """Return the first bytes inside a gzip file, of one member or many.

    Raises:
        UnreadableItemError: it is damaged before anything came out of it.
    """
    stream.seek(0)
    unpacker = zlib.decompressobj(_ANY_GZIP)
    unpacked = bytearray()
    packed = b""
    taken = 0
    while len(unpacked) < limit and taken < PACKED_BYTES:
        if not packed:
            packed = stream.read(_CHUNK_BYTES)
            taken += len(packed)
        if not packed:
            break
        if unpacker.eof:
            if not packed.startswith(GZIP_MAGIC[: len(packed)]):
                packed, taken = b"", size  # padding, which other readers ignore as well
                break
            unpacker = zlib.decompressobj(_ANY_GZIP)
        try:
            unpacked += unpacker.decompress(packed, limit - len(unpacked))
        except zlib.error:
            return _damaged(bytes(unpacked), "damaged", size=size, taken=taken)
        packed = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
    if len(unpacked) < limit and taken < PACKED_BYTES and not unpacker.eof:
        return _damaged(bytes(unpacked), "cut off", size=size, taken=taken)
    whole = unpacker.eof and taken >= size and not packed
    left = len(packed)
    return Sample(bytes(unpacked), whole, min(1.0, max(1, taken - left) / size))


def text_of(sample: Sample) -> Text | None:
    """Return a sample as text, or None where it is not text.

    Unicode is found by its mark or its validity; anything else is taken for Latin-1, in which
    every byte is a character, so that names of columns outside ASCII may come out wrong.
    """
    content = sample.content
    for bom, encoding in _BOMS:
        if content.startswith(bom):
            return _decoded(content[len(bom) :], encoding, whole=sample.whole)
    encoding = _utf16_without_mark(content) or "utf-8"
    text = _decoded(content, encoding, whole=sample.whole)
    if text is None and encoding == "utf-8" and not _has_control_bytes(content):
        warning = "it is not valid UTF-8; it was read as Latin-1"
        return Text(content.decode("latin-1"), sample.whole, "latin-1", (warning,))
    return text


def _read_up_to(stream: BinaryIO, limit: int) -> bytes:
    """Read like `read(limit)`, also from a stream that returns less at a time."""
    parts = []
    while limit > 0 and (part := stream.read(limit)):
        parts.append(part)
        limit -= len(part)
    return b"".join(parts)


def _damaged(unpacked: bytes, how: str, *, size: int, taken: int) -> Sample:
    if not unpacked:
        raise UnreadableItemError(f"its gzip data is {how}")
    warning = f"its gzip data is {how}; only what comes before was read"
    return Sample(unpacked, False, min(1.0, taken / size), (warning,))


def _decoded(content: bytes, encoding: str, *, whole: bool) -> Text | None:
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        text = decoder.decode(content, final=whole)
    except UnicodeDecodeError:
        return None
    if any(ord(character) < _FIRST_PRINTABLE for character in set(text) - {*"\t\r\n\f\v"}):
        return None
    return Text(text, whole, encoding)


def _utf16_without_mark(content: bytes) -> str | None:
    """Guess by the zero bytes that Western text has in every second place."""
    half = len(content) // 2
    if half == 0 or b"\x00" not in content:
        return None
    even, odd = content[::2].count(0) / half, content[1::2].count(0) / half
    if odd > _MOSTLY and even == 0:
        return "utf-16-le"
    return "utf-16-be" if even > _MOSTLY and odd == 0 else None


def _has_control_bytes(content: bytes) -> bool:
    return any(byte < _FIRST_PRINTABLE for byte in set(content) - {*b"\t\r\n\f\v"})
