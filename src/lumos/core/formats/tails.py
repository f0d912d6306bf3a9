"""The end of a file: where Parquet and ORC keep what they say of themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import BinaryIO, Final

from lumos.core.errors import UnreadableItemError

TAIL_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Tail:
    """The last bytes of a file, in one read; a second one only where they are not enough."""

    content: bytes
    size: int
    """How long the whole file is."""
    _stream: BinaryIO

    @classmethod
    def of(cls, stream: BinaryIO, *, size: int) -> Tail:
        """Return the end of an open file.

        Raises:
            UnreadableItemError: the file is shorter than it was.
            OSError: it cannot be read.
        """
        length = min(size, TAIL_BYTES)
        return cls(_exactly(stream, size - length, length), size, stream)

    def last(self, length: int) -> bytes:
        """Return exactly so many of the last bytes."""
        if length <= len(self.content):
            return self.content[len(self.content) - length :]
        return _exactly(self._stream, self.size - length, length)

    def head(self, length: int) -> bytes:
        """Return at most so many of the first bytes."""
        if len(self.content) == self.size:
            return self.content[:length]
        self._stream.seek(0)
        return self._stream.read(length)


def _exactly(stream: BinaryIO, start: int, length: int) -> bytes:
    stream.seek(start)
    content = stream.read(length)
    while content and len(content) < length:  # a file without a buffer may give less at once
        more = stream.read(length - len(content))
        if not more:
            break
        content += more
    if len(content) != length:
        raise UnreadableItemError("the file changed while it was read", retryable=True)
    return content
