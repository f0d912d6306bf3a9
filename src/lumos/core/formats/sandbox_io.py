"""How files are reached from inside the sandbox: opened here, or asked of the parent process.

The one that asks for a file in a storage has credentials and a network; the one that parses it has
neither. It gets the bytes that are likely needed with the file, and asks for others by a pipe.
"""

from __future__ import annotations

import errno
import io
import json
import mmap
import os
import stat
import struct
from bisect import insort
from collections.abc import Iterable, Sequence
from typing import BinaryIO, Final, Protocol

import orjson
from typing_extensions import Buffer, override

from lumos.core.errors import NotTabularError, UnreadableItemError
from lumos.core.formats.confined import is_inside, require_inside
from lumos.core.formats.tables.access import TableEntry

FRAME: Final = struct.Struct("<cI")
"""What stands before each answer, question and reply: its kind and its length."""
UP, FACTS, ERROR, ASK = b"U", b"+", b"-", b"?"
AHEAD_BYTES: Final = 256 * 1024
"""How much is asked for at least, so that a reader that goes on in small steps asks seldom."""

_CHUNK_BYTES = 64 * 1024
_HELD_SECONDS = 0.02
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
_FOR_GOOD: Final = (errno.ELOOP, errno.EISDIR, errno.ENXIO)
"""What stays as it is until the file itself changes; permissions, for one, do not."""


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


class ReadingProgress:
    """Shared memory in which a child notes its task, for the parent that finds it dead or late."""

    _NOTE: Final = struct.Struct("<qd")

    def __init__(self, descriptor: int) -> None:
        self._page = mmap.mmap(descriptor, mmap.PAGESIZE)

    def begin(self, number: int, at: float) -> None:
        """Note that the file of this number is begun."""
        self._NOTE.pack_into(self._page, 0, number, at)

    def current(self) -> tuple[int, float]:
        """Return the number of the file and when it was begun."""
        number, at = self._NOTE.unpack_from(self._page)
        return number, at

    def close(self) -> None:
        self._page.close()


class Requests:
    """The requests to a child, from a pipe."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._content = b""
        self._at = 0

    @property
    def is_empty(self) -> bool:
        """Whether the next request would have to be waited for."""
        return self._at >= len(self._content)

    def line(self) -> bytes:
        """Return the next line, empty at the end."""
        parts = []
        while True:
            end = self._content.find(b"\n", self._at) + 1
            if end:
                parts.append(self._content[self._at : end])
                self._at = end
                return b"".join(parts)
            parts.append(self._content[self._at :])
            if not self._more():
                return b""

    def read(self, length: int) -> bytes:
        """Return so many bytes.

        Raises:
            EOFError: the pipe ends before.
        """
        parts = []
        while length > 0:
            part = self._content[self._at : self._at + length]
            self._at += len(part)
            length -= len(part)
            parts.append(part)
            if length > 0 and not self._more():
                raise EOFError
        return b"".join(parts)

    def _more(self) -> bool:
        self._content, self._at = os.read(self._descriptor, _CHUNK_BYTES), 0
        return bool(self._content)


class Answers:
    """The answers of a child, into a pipe; several go at once, because each wakes the parent."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._held: list[bytes] = []
        self._size = 0
        self._since = 0.0

    def add(self, kind: bytes, payload: bytes, *, now: float) -> None:
        """Hold an answer back, unless enough are held."""
        if not self._held:
            self._since = now
        self._held += (FRAME.pack(kind, len(payload)), payload)
        self._size += len(payload)
        if self._size > _CHUNK_BYTES or now - self._since > _HELD_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write what is held."""
        rest = memoryview(b"".join(self._held))
        self._held, self._size = [], 0
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]


def opened(path: str, *, inside: str | None = None) -> tuple[BinaryIO, int]:
    """Open a regular file for reading and return its size; other kinds of file are refused.

    Args:
        path: whatever leads to the file.
        inside: the real folder that the file must lie in; None where it may lie anywhere.

    Raises:
        UnreadableItemError: it is no regular file, or lies elsewhere.
        OSError: it cannot be opened.
    """
    # Without O_NONBLOCK, opening a named pipe waits for somebody to write to it.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    stream = os.fdopen(os.open(path, flags), "rb", buffering=0)  # readers read in large pieces
    try:
        if inside is not None:
            require_inside(stream.fileno(), path, folder=inside)
        return stream, _size_of(stream)
    except BaseException:
        stream.close()
        raise


def _size_of(stream: BinaryIO) -> int:
    status = os.fstat(stream.fileno())
    if not stat.S_ISREG(status.st_mode):
        kind = next((name for is_kind, name in _KINDS if is_kind(status.st_mode)), "a device")
        raise UnreadableItemError(f"it is not a regular file: it is {kind}")
    return status.st_size


def refuse_outside(path: str) -> None:
    """Check that a path, as a table's log gives it, stays below the root of its source.

    Raises:
        UnreadableItemError: it is absolute, or goes up.
    """
    if path.startswith("/") or ".." in path.split("/"):
        raise UnreadableItemError("its log names a file outside of the source")


def unreadable(error: OSError) -> UnreadableItemError:
    """Return why the system would not read a file."""
    reason = _REASONS.get(error.errno or 0, f"it cannot be read: {error.strerror}")
    return UnreadableItemError(reason, retryable=error.errno not in _FOR_GOOD)


class Parent(Protocol):
    """Answers what this process cannot find out itself."""

    def read(self, path: str | None, start: int, length: int | None) -> bytes:
        """Return bytes of a file, of the current one where no path is given."""

    def list(self, folder: str) -> Iterable[TableEntry]:
        """Return the files directly in a folder."""


class PipeParent:
    """Asks the parent process by a pipe and waits for the reply."""

    def __init__(self, questions: Answers, replies: Requests) -> None:
        self._questions = questions
        self._replies = replies

    def read(self, path: str | None, start: int, length: int | None) -> bytes:
        return self._asked(["read", path, start, length])

    def list(self, folder: str) -> Iterable[TableEntry]:
        return [TableEntry(*entry) for entry in json.loads(self._asked(["list", folder]))]

    def _asked(self, question: Sequence[str | int | None]) -> bytes:
        self._questions.add(ASK, json.dumps(question).encode(), now=0.0)
        self._questions.flush()
        kind, length = FRAME.unpack(self._replies.read(FRAME.size))
        content = self._replies.read(length)
        if kind == ERROR:
            raise unpacked(content)
        return content


class SparseFile(io.RawIOBase):
    """A file of which some ranges are at hand; the others are asked for when they are read."""

    is_remote = True
    """Whether reading somewhere else costs a request."""

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
    """Reaches the files of a table in a local folder.

    Args:
        folder: the root of the source.
        is_confined: whether files that symlinks place outside of the folder are refused.
    """

    def __init__(self, folder: str, *, is_confined: bool = False) -> None:
        self._folder = folder
        self._inside = os.path.realpath(folder) if is_confined else None

    def list(self, folder: str) -> Iterable[TableEntry]:
        refuse_outside(folder)
        whole = os.path.join(self._folder, folder)
        try:
            descriptor = os.open(whole, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                if self._inside is not None:
                    require_inside(descriptor, whole, folder=self._inside)
                with os.scandir(descriptor) as entries:
                    found = [
                        (each.name, each.stat())
                        for each in entries
                        if each.is_file() and self._may_follow(each, whole)
                    ]
            finally:
                os.close(descriptor)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise unreadable(error) from error
        return [TableEntry(name, it.st_size, it.st_mtime_ns // 1000) for name, it in found]

    def _may_follow(self, entry: os.DirEntry[str], folder: str) -> bool:
        if self._inside is None or not entry.is_symlink():
            return True
        return is_inside(os.path.realpath(os.path.join(folder, entry.name)), self._inside)

    def read(self, path: str, *, start: int = 0, length: int | None = None) -> bytes:
        refuse_outside(path)
        try:
            stream, _ = opened(os.path.join(self._folder, path), inside=self._inside)
            with stream:
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
