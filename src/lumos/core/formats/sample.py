"""The beginning of a file, as bytes and as text, never more of it than a limit."""

from __future__ import annotations

import codecs
from dataclasses import dataclass, field, replace
from typing import BinaryIO, Final, Protocol

from typing_extensions import override

FIRST_BYTES: Final = 64 * 1024
"""How much of a file is read before anything is known about it."""
SAMPLE_BYTES: Final = 256 * 1024
"""How much of a text file is read where less is not enough."""
LARGEST_SAMPLE_BYTES: Final = 4 * 1024 * 1024
"""How much is looked at where one record alone is larger than a sample."""

END_BYTES: Final = 1024
"""How much of the end of a JSON file is looked at."""

_FIRST_PRINTABLE = 0x20
_MOSTLY = 0.3
_BYTES_FOR_CONTROLS = 8 * 1024
_ZERO = b"\x00"
_BOMS: Final = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before that of UTF-16, with which it begins
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SPACES: Final = b"\t\n\v\f\r"
_DELIMITING: Final = b"\x01\x1e\x1f"
"""Control characters that some tools put between values or records."""
_COLOURING: Final = b"\x1b"
_TEXT_BYTES: Final = bytes(range(_FIRST_PRINTABLE, 256)) + _SPACES + _DELIMITING + _COLOURING
_TEXT_CONTROLS: Final = frozenset((_SPACES + _DELIMITING + _COLOURING).decode("ascii"))
_CONTROL_BYTES: Final = bytes(set(range(_FIRST_PRINTABLE)) - set(_TEXT_BYTES))
_FEW_CONTROLS = 0.02
_LEFT_OUT = "{:,} NUL or control characters in it left out"
_BYTE_ENCODINGS: Final = ("utf-8", "cp1252", "latin-1")
"""Those in which a line end is one byte."""
_WINDOWS_BYTES: Final = bytes(range(0x80, 0xA0))


class ByteSource(Protocol):
    """What can be read from its start, a part at a time."""

    def read(self, size: int = -1, /) -> bytes: ...


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
    is_guess: bool = False
    """Whether only a pattern in its bytes says that it is text at all."""


class Beginning:
    """The first bytes of a file, read once and in one piece; more of it is read where needed."""

    def __init__(self, stream: BinaryIO, *, size: int) -> None:
        self._stream = stream
        self._size = size
        stream.seek(0)
        self.content = read_up_to(stream, FIRST_BYTES)

    def up_to(self, limit: int) -> bytes:
        """Return at most so many of the first bytes."""
        missing = limit - len(self.content)
        if missing > 0 and len(self.content) < self._size:
            self._stream.seek(len(self.content))
            self.content += read_up_to(self._stream, missing)
        return self.content[:limit]

    def sample(self, limit: int) -> Sample:
        """Return the first bytes as a sample of a file that is not packed."""
        content = self.up_to(limit)
        return Sample(content, len(content) >= self._size, min(1.0, len(content) / self._size))

    def lines_elsewhere(self, text: Text, *, bytes_each: int) -> list[str]:
        """Return whole lines from the middle and from the end of a file that is not packed.

        Args:
            text: the beginning of the file, which says how it is encoded.
            bytes_each: how much is read in each place.
        """
        if text.encoding not in _BYTE_ENCODINGS:
            return []
        parts = []
        for start in (self._size // 2, self._size - bytes_each):
            self._stream.seek(max(start, len(self.content)))
            lines = read_up_to(self._stream, bytes_each)
            first, last = lines.find(b"\n") + 1, lines.rfind(b"\n") + 1
            if first < last:
                parts.append(_plain(lines[first:last]).decode(text.encoding, "replace"))
        return parts

    def end(self) -> bytes:
        """Return the last bytes of the file."""
        start = max(0, self._size - END_BYTES)
        if len(self.content) >= self._size:
            return self.content[start:]
        self._stream.seek(start)
        return read_up_to(self._stream, self._size - start)

    def from_start(self) -> ByteSource:
        """Return the whole file as something to read from its start."""
        return _Replayed(self.content, self._stream)


def _plain(content: bytes) -> bytes:
    return content.translate(None, _CONTROL_BYTES)


class _Replayed(ByteSource):
    """Bytes that were read already, and then the rest of their stream."""

    def __init__(self, content: bytes, stream: BinaryIO) -> None:
        self._content = content
        self._stream = stream
        self._position = 0

    @override
    def read(self, size: int = -1, /) -> bytes:
        if self._position < len(self._content):
            end = len(self._content) if size < 0 else self._position + size
            part = self._content[self._position : end]
            self._position += len(part)
            return part
        self._stream.seek(self._position)
        part = self._stream.read(size)
        self._position += len(part)
        return part


def read_up_to(stream: ByteSource, limit: int) -> bytes:
    """Read like `read(limit)`, also from a stream that returns less at a time."""
    content = stream.read(limit)
    if not content or len(content) == limit:
        return content
    parts = [content]
    limit -= len(content)
    while limit > 0 and (part := stream.read(limit)):
        parts.append(part)
        limit -= len(part)
    return b"".join(parts)


def sample_text(sample: Sample, *, promised: bool = False) -> Text | None:
    """Return a sample as text, or None where it is not text.

    Unicode is found by its mark or its validity; anything else is taken for Windows-1252 or
    Latin-1, in which every byte is a character, so that names of columns outside ASCII may come
    out wrong.

    Args:
        sample: the beginning of a file.
        promised: its name says that it is text, so that a few control bytes are left out.
    """
    content = sample.content
    for bom, encoding in _BOMS:
        if content.startswith(bom):
            marked = content[len(bom) :]
            return _decoded(marked, encoding, whole=sample.whole, lenient=promised)
    if _ZERO in content or content[:_BYTES_FOR_CONTROLS].translate(None, _TEXT_BYTES):
        wide = _wide_without_mark(content)
        text = _decoded(content, wide, whole=sample.whole) if wide else None
        if text is None and promised:
            return _without_controls(sample)
        return replace(text, is_guess=True) if text else None
    unicode = _utf8(content, whole=sample.whole)
    if unicode is not None:
        return Text(unicode, sample.whole, "utf-8")
    encoding, name = "latin-1", "Latin-1"
    if content.translate(None, _WINDOWS_BYTES) != content:
        encoding, name = "cp1252", "Windows-1252"
    warning = f"it is not valid UTF-8; it was read as {name}"
    try:
        return Text(content.decode(encoding), sample.whole, encoding, (warning,))
    except UnicodeDecodeError:
        return None


def _without_controls(sample: Sample) -> Text | None:
    """Return text with a few NUL or control bytes among it, without them."""
    content = _plain(sample.content)
    if len(sample.content) - len(content) > _FEW_CONTROLS * len(sample.content) + 1:
        return None
    text = sample_text(replace(sample, content=content))
    if text is None:
        return None
    warning = _LEFT_OUT.format(len(sample.content) - len(content))
    return replace(text, warnings=(*text.warnings, warning))


def _utf8(content: bytes, *, whole: bool) -> str | None:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        if whole or error.reason != "unexpected end of data":
            return None
        return content[: error.start].decode("utf-8")  # the sample ends inside a character


def _decoded(content: bytes, encoding: str, *, whole: bool, lenient: bool = False) -> Text | None:
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        text = decoder.decode(content, final=whole)
    except UnicodeDecodeError:
        return None
    controls = {c for c in set(text) - _TEXT_CONTROLS if ord(c) < _FIRST_PRINTABLE}
    if not controls:
        return Text(text, whole, encoding)
    plain = text.translate(dict.fromkeys(map(ord, controls)))
    left_out = len(text) - len(plain)
    if not lenient or left_out > _FEW_CONTROLS * len(text) + 1:
        return None
    return Text(plain, whole, encoding, (_LEFT_OUT.format(left_out),))


def _wide_without_mark(content: bytes) -> str | None:
    """Guess by the zero bytes that Western text has in the same places of each character."""
    zeros = [content[place::4].count(_ZERO) * 4 / len(content) for place in range(4)]
    is_zero = [share > _MOSTLY for share in zeros]
    has_none = [share == 0 for share in zeros]
    if all(is_zero[1:]) and has_none[0]:
        return "utf-32-le"
    if all(is_zero[:3]) and has_none[3]:
        return "utf-32-be"
    if is_zero[1] and is_zero[3] and has_none[0] and has_none[2]:
        return "utf-16-le"
    if is_zero[0] and is_zero[2] and has_none[1] and has_none[3]:
        return "utf-16-be"
    return None
