"""How files are reached from inside the sandbox: opened here, or asked of the parent process.

The one that asks for a file in a storage has credentials and a network; the one that parses it has
neither. It gets the bytes that are likely needed with the file, and asks for others by a pipe.
"""

from __future__ import annotations

import errno
import io
import json
import os
import stat
import struct
from bisect import insort
from collections.abc import Iterable, Sequence
from typing import BinaryIO, Final, Protocol

import orjson
from typing_extensions import Buffer, override

from lumos.core.errors import NotTabularError, UnreadableItemError
from lumos.core.formats.tables.access import TableEntry

FRAME: Final = struct.Struct("<cI")
"""What stands before each answer, question and reply: its kind and its length."""
UP, FACTS, ERROR, ASK = b"U", b"+", b"-", b"?"
AHEAD_BYTES: Final = 256 * 1024
"""How much is asked for at least, so that a reader that goes on in small steps asks seldom."""

_KINDS: Final = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
)
_REASONS: Final = {
    errno.EACCES: "there is no permission to read it",
    errno.EPERM: "there is no permission to read it",
    errno.ENOENT: "it is gone since it was listed",
    errno.ENOTDIR: "it is gone since it was listed",
    errno.ESTALE: "it is gone since it was listed",
    errno.ELOOP: "its links lead in a circle",
    errno.EISDIR: "it is not a regular file: it is a folder",
    errno.ENXIO: "it is not a regular file",
}
_WORTH_ANOTHER_TRY: Final = (errno.EIO, errno.EMFILE, errno.ENFILE, errno.ESTALE, errno.ETIMEDOUT)


def packed(error: UnreadableItemError) -> bytes:
    """Return an error as it goes through a pipe."""
    kind = error.kind if isinstance(error, NotTabularError) else None
    return orjson.dumps([error.message, error.hint, error.retryable, kind])


def unpacked(content: bytes) -> UnreadableItemError:
    """Return the error that `packed` was given."""
    message, hint, retryable, kind = orjson.loads(content)
    if kind is not None:
        return NotTabularError(kind)
    return UnreadableItemError(message, hint=hint, retryable=retryable)


def write_frame(outgoing: BinaryIO, kind: bytes, payload: bytes) -> None:
    """Write all of a frame to a pipe without a buffer."""
    rest = memoryview(FRAME.pack(kind, len(payload)) + payload)
    while rest:
        rest = rest[outgoing.write(rest) :]


def opened(path: str | bytes) -> BinaryIO:
    """Open a regular file for reading; nothing else is waited for.

    Raises:
        UnreadableItemError: it is no regular file.
        OSError: it cannot be opened.
    """
    # Without O_NONBLOCK, opening a named pipe waits for somebody to write to it.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    stream = os.fdopen(os.open(path, flags), "rb")
    mode = os.fstat(stream.fileno()).st_mode
    if not stat.S_ISREG(mode):
        stream.close()
        kind = next((name for is_kind, name in _KINDS if is_kind(mode)), "a device")
        raise UnreadableItemError(f"it is not a regular file: it is {kind}")
    return stream


def unreadable(error: OSError) -> UnreadableItemError:
    """Return why the system would not read a file."""
    reason = _REASONS.get(error.errno or 0, f"it cannot be read: {error.strerror}")
    return UnreadableItemError(reason, retryable=error.errno in _WORTH_ANOTHER_TRY)


class Parent(Protocol):
    """Answers what this process cannot find out itself."""

    def read(self, path: str | None, start: int, length: int | None) -> bytes:
        """Return bytes of a file, of the current one where no path is given."""

    def list(self, folder: str) -> Iterable[TableEntry]:
        """Return the files directly in a folder."""


class PipeParent:
    """Asks the parent process by a pipe and waits for the reply."""

    def __init__(self, questions: BinaryIO, replies: BinaryIO) -> None:
        self._questions = questions
        self._replies = replies

    def read(self, path: str | None, start: int, length: int | None) -> bytes:
        return self._asked(["read", path, start, length])

    def list(self, folder: str) -> Iterable[TableEntry]:
        return [TableEntry(*entry) for entry in json.loads(self._asked(["list", folder]))]

    def _asked(self, question: Sequence[str | int | None]) -> bytes:
        write_frame(self._questions, ASK, json.dumps(question).encode())
        kind, length = FRAME.unpack(self._received(FRAME.size))
        content = self._received(length)
        if kind == ERROR:
            raise unpacked(content)
        return content

    def _received(self, size: int) -> bytes:
        content = self._replies.read(size)
        if len(content) < size:
            raise EOFError
        return content


class SparseFile(io.RawIOBase):
    """A file of which some ranges are at hand; the others are asked for when they are read."""

    def __init__(self, size: int, parent: Parent) -> None:
        super().__init__()
        self._size = size
        self._parent = parent
        self._position = 0
        self._ranges: list[tuple[int, bytes]] = []

    def add(self, start: int, content: bytes) -> None:
        """Put bytes at hand."""
        insort(self._ranges, (start, content), key=lambda each: each[0])

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
    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = max(0, base + offset)
        return self._position

    @override
    def read(self, size: int | None = -1, /) -> bytes:
        wanted = self._size if size is None or size < 0 else size
        content = self._between(self._position, min(self._size, self._position + wanted))
        self._position += len(content)
        return content

    @override
    def readall(self) -> bytes:
        return self.read()

    @override
    def readinto(self, buffer: Buffer, /) -> int:
        view = memoryview(buffer).cast("B")
        content = self.read(len(view))
        view[: len(content)] = content
        return len(content)

    def _between(self, start: int, end: int) -> bytes:
        parts: list[bytes] = []
        while start < end:
            part = self._at_hand(start, end) or self._asked(start, end)
            if not part:
                break  # it is shorter than when it was listed
            parts.append(part)
            start += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _at_hand(self, start: int, end: int) -> bytes:
        for begin, content in self._ranges:
            if begin <= start < begin + len(content):
                return content[start - begin : end - begin]
        return b""

    def _asked(self, start: int, end: int) -> bytes:
        following = [begin for begin, _ in self._ranges if begin > start]
        until = min([self._size, *following])
        length = min(max(end - start, AHEAD_BYTES), until - start)
        content = self._parent.read(None, start, length)
        if content:
            self.add(start, content)
        return content[: end - start]


class FolderAccess:
    """Reaches the files of a table in a local folder."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def list(self, folder: str) -> Iterable[TableEntry]:
        try:
            with os.scandir(os.path.join(self._folder, folder)) as entries:
                found = [(each.name, each.stat()) for each in entries if each.is_file()]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise unreadable(error) from error
        return [TableEntry(name, it.st_size, it.st_mtime_ns // 1000) for name, it in found]

    def read(self, path: str, *, start: int = 0, length: int | None = None) -> bytes:
        try:
            with opened(os.path.join(self._folder, path)) as stream:
                stream.seek(start)
                return stream.read(-1 if length is None else length)
        except OSError as error:
            raise unreadable(error) from error


class ParentAccess:
    """Reaches the files of a table through the parent process."""

    def __init__(self, parent: Parent) -> None:
        self._parent = parent

    def list(self, folder: str) -> Iterable[TableEntry]:
        return self._parent.list(folder)

    def read(self, path: str, *, start: int = 0, length: int | None = None) -> bytes:
        return self._parent.read(path, start, length)
