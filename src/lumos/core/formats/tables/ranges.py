"""Reads files of a log through the access that was handed in, in bounded pieces."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from typing_extensions import Buffer, override

from lumos.core.errors import UnreadableItemError

if TYPE_CHECKING:
    from lumos.core.formats.tables.access import TableAccess

LARGEST_DOCUMENT_BYTES: Final = 64 * 1024 * 1024
"""As much as one JSON document, or one line of a log, may hold."""
_PIECE_BYTES: Final = 8 * 1024 * 1024
_WHOLE_BYTES: Final = 4 * 1024 * 1024
_GZIP = b"\x1f\x8b"
_GZIP_WINDOW = zlib.MAX_WBITS | 16


def joined(*parts: str) -> str:
    """Return the path of these parts; an empty part is the source's root."""
    return "/".join(part for part in parts if part)


def read_log_document(access: TableAccess, path: str, *, what: str) -> bytes:
    """Return a whole small file, unpacked where it is gzipped.

    Raises:
        UnreadableItemError: it cannot be read, or is too large to be what it is said to be.
    """
    document = access.read(path, start=0, length=LARGEST_DOCUMENT_BYTES + 1)
    if document.startswith(_GZIP):
        document = _unpacked(document, what)
    if len(document) > LARGEST_DOCUMENT_BYTES:
        raise _too_large(what)
    return document


def read_lines(access: TableAccess, path: str, *, what: str) -> Iterator[bytes]:
    """Yield the lines of a file of any size that are not blank.

    Raises:
        UnreadableItemError: it cannot be read, or a line is longer than any log writes.
    """
    rest, start = b"", 0
    while piece := access.read(path, start=start, length=_PIECE_BYTES):
        start += len(piece)
        *lines, rest = (rest + piece).split(b"\n")
        yield from (line for line in lines if line.strip())
        if len(rest) > LARGEST_DOCUMENT_BYTES:
            raise _too_large(what)
        if len(piece) < _PIECE_BYTES:
            break
    if rest.strip():
        yield rest


def open_ranges(access: TableAccess, path: str, *, size: int) -> io.BufferedIOBase | io.RawIOBase:
    """Open a file to be read here and there; a small one is fetched in one piece."""
    if size <= _WHOLE_BYTES:
        return io.BytesIO(access.read(path, start=0, length=size))
    return _RangeFile(access, path, size=size)


class _RangeFile(io.RawIOBase):
    """A file of which each read is one range."""

    def __init__(self, access: TableAccess, path: str, *, size: int) -> None:
        self._access, self._path, self._size = access, path, size
        self._position = 0

    @override
    def readable(self) -> bool:
        return True

    @override
    def seekable(self) -> bool:
        return True

    @override
    def tell(self) -> int:
        return self._position

    @override
    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, base + offset)
        return self._position

    @override
    def readinto(self, buffer: Buffer) -> int:
        target = memoryview(buffer).cast("B")
        wanted = max(0, min(len(target), self._size - self._position))
        if not wanted:
            return 0
        piece = self._access.read(self._path, start=self._position, length=wanted)
        target[: len(piece)] = piece
        self._position += len(piece)
        return len(piece)


def _unpacked(document: bytes, what: str) -> bytes:
    unpacker = zlib.decompressobj(_GZIP_WINDOW)
    try:
        content = unpacker.decompress(document, LARGEST_DOCUMENT_BYTES + 1)
    except zlib.error:
        raise UnreadableItemError(f"{what} is damaged: it cannot be unpacked") from None
    if not unpacker.eof and len(content) <= LARGEST_DOCUMENT_BYTES:
        raise UnreadableItemError(f"{what} is damaged: it is cut off")
    return content


def _too_large(what: str) -> UnreadableItemError:
    return UnreadableItemError(
        f"{what} is larger than {LARGEST_DOCUMENT_BYTES // 2**20} MiB",
        hint="let its engine expire old snapshots, or leave the table out with: exclude",
    )
