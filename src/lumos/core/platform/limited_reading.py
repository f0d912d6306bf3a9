"""Reads the answer of a server that may be broken or hostile, within limits of size and time.

Whatever the server sends, a request ends by its deadline, and no more of the answer is held than
the limits allow, before and after decompression.
"""

from __future__ import annotations

import io
import socket
import time
import zlib
from http.client import HTTPResponse, IncompleteRead
from typing import TYPE_CHECKING, Final

from typing_extensions import override

from lumos.core.platform.answer_limits import AnswerLimits, OverLimitError, too_large

if TYPE_CHECKING:
    from collections.abc import Callable

    from _typeshed import WriteableBuffer

_HEAD_BYTES: Final = 256 * 1024
_PIECE: Final = 64 * 1024
_SEND_PIECE: Final = 256 * 1024
_RATIO_FLOOR: Final = 1_000_000
"""Unpacked bytes up to which any compression ratio is accepted."""
_WINDOW_BITS: Final = {"gzip": 31, "x-gzip": 31, "deflate": 47}


class Deadline:
    """The moment by which a request has to be over."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end = time.monotonic() + seconds

    def left(self, at_most: float) -> float:
        """Return the seconds that one wait may take.

        Raises:
            OverLimitError: the time is over.
        """
        left = self._end - time.monotonic()
        if left <= 0:
            raise self.passed()
        return min(left, at_most)

    def is_over(self) -> bool:
        return time.monotonic() >= self._end

    def passed(self) -> OverLimitError:
        return OverLimitError(
            f"the request took longer than {self._seconds:g} s", setting="request_seconds"
        )


class LimitedSocket:
    """A connected socket whose reads and writes end by a deadline; `HTTPResponse` reads from it."""

    def __init__(
        self, connection: socket.socket, deadline: Deadline, *, timeout: float, limits: AnswerLimits
    ) -> None:
        self._reader = _LimitedReader(connection, deadline, timeout=timeout, limits=limits)
        self._connection = connection
        self._deadline = deadline
        self._timeout = timeout

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(self._reader)

    def send_all(self, content: bytes) -> None:
        rest = memoryview(content)
        while rest:
            self._connection.settimeout(self._deadline.left(self._timeout))
            rest = rest[self._connection.send(rest[:_SEND_PIECE]) :]

    def expect_body(self) -> None:
        """Apply the limit of a whole answer from now on, not that of its headers."""
        self._reader.is_head = False


class _LimitedReader(io.RawIOBase):
    def __init__(
        self, connection: socket.socket, deadline: Deadline, *, timeout: float, limits: AnswerLimits
    ) -> None:
        super().__init__()
        self._connection = connection
        self._deadline = deadline
        self._timeout = timeout
        self._limits = limits
        self._received = 0
        self.is_head = True

    @override
    def readable(self) -> bool:
        return True

    @override
    def readinto(self, buffer: WriteableBuffer) -> int:
        self._connection.settimeout(self._deadline.left(self._timeout))
        count = self._connection.recv_into(buffer)
        self._received += count
        if self.is_head and self._received > _HEAD_BYTES:
            raise OverLimitError(f"its headers are larger than {_HEAD_BYTES:,} bytes")
        if self._received > self._limits.response_bytes:
            raise too_large(self._limits)
        return count


def reach(address: tuple[str, int], deadline: Deadline, *, timeout: float) -> socket.socket:
    """Connect to the first address of a host that answers, trying each within the deadline.

    Raises:
        OSError: none can be reached.
        OverLimitError: the time is over.
    """
    found = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)
    failed = OSError("the name has no address")
    for *_, place in found:
        host, port = str(place[0]), int(place[1])
        try:
            return socket.create_connection((host, port), timeout=deadline.left(timeout))
        except OSError as error:
            failed = error
    raise failed


def read_body(response: HTTPResponse, limits: AnswerLimits) -> bytes:
    """Return the body of an answer, unpacked.

    Raises:
        OverLimitError: it is larger than the limits allow.
        OSError, HTTPException, ValueError, zlib.error, EOFError: it is not whole.
    """
    if response.length is not None and response.length > limits.response_bytes:
        raise too_large(limits)
    coding = str(response.headers.get("Content-Encoding", "")).strip().lower()
    pieces: list[bytes] = []
    if coding in _WINDOW_BITS:
        unpack = _Unpacking(_WINDOW_BITS[coding], limits, pieces.append)
        while piece := response.read(_PIECE):
            unpack.add(piece)
        unpack.finish()
    else:
        while piece := response.read(_PIECE):
            pieces.append(piece)
    if response.length:
        raise IncompleteRead(b"", response.length)
    return b"".join(pieces)


class _Unpacking:
    """Unpacks a stream piece by piece, never more than a piece ahead of the limits."""

    def __init__(
        self, window_bits: int, limits: AnswerLimits, take: Callable[[bytes], None]
    ) -> None:
        self._unpacker = zlib.decompressobj(window_bits)
        self._limits = limits
        self._take = take
        self._packed = self._plain = 0

    def add(self, packed: bytes) -> None:
        self._packed += len(packed)
        while packed and not self._unpacker.eof:
            plain = self._unpacker.decompress(packed, _PIECE * 4)
            packed = self._unpacker.unconsumed_tail
            self._count(plain)

    def finish(self) -> None:
        if not self._packed:
            return
        while not self._unpacker.eof and (plain := self._unpacker.decompress(b"", _PIECE * 4)):
            self._count(plain)
        if not self._unpacker.eof:
            raise EOFError

    def _count(self, plain: bytes) -> None:
        self._plain += len(plain)
        if self._plain > self._limits.response_bytes:
            raise too_large(self._limits)
        ratio = self._limits.compression_ratio
        if self._plain > _RATIO_FLOOR and self._plain > self._packed * ratio:
            raise OverLimitError(
                f"the answer unpacks to more than {ratio:,} times its size",
                setting="max_compression_ratio",
            )
        self._take(plain)
