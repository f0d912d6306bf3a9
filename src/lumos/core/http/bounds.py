"""Reads the answer of a server that may be broken or hostile, within limits of size and time.

Whatever the server sends, a request ends by its deadline, and no more of the answer is held than
the limits allow, before and after decompression.
"""

from __future__ import annotations

import io
import socket
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPResponse
from typing import TYPE_CHECKING, Final, NamedTuple

from typing_extensions import override

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer
    from urllib3 import BaseHTTPResponse

_HEAD_BYTES: Final = 256 * 1024
_PIECE: Final = 64 * 1024
_SEND_PIECE: Final = 256 * 1024
_RATIO_FLOOR: Final = 1_000_000
"""Unpacked bytes up to which any compression ratio is accepted."""
_WINDOW_BITS: Final = {"gzip": 31, "x-gzip": 31, "deflate": 47}


_BYTES_PER_VALUE: Final = 32
"""How many bytes of an answer one JSON value needs on average; `[[],[],…]` has three."""


class AnswerLimits(NamedTuple):
    """The limits of one request and its answer."""

    response_bytes: int = 128_000_000
    """The size of an answer: as it is received, and again after it is unpacked."""
    compression_ratio: int = 200
    seconds: float = 300.0
    """From the first attempt to connect to the last byte of the answer."""

    @property
    def json_values(self) -> int:
        return max(100_000, self.response_bytes // _BYTES_PER_VALUE)


DEFAULT_LIMITS: Final = AnswerLimits()


class OverLimitError(Exception):
    """An answer exceeds a limit; `setting` names the setting that raises it."""

    def __init__(self, reason: str, *, setting: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.setting = setting


def require_small_answer(content: bytes, limits: AnswerLimits) -> None:
    """Refuse JSON whose values would need many times the memory of its text.

    Raises:
        OverLimitError: it has more values than the limits allow.
    """
    most = limits.json_values
    if len(content) <= 2 * most:
        return
    if sum(map(content.count, (b",", b"[", b"{"))) > most:
        raise OverLimitError(
            f"the answer holds more than {most:,} JSON values", setting="max_response_bytes"
        )


def too_large(limits: AnswerLimits) -> OverLimitError:
    return OverLimitError(
        f"the answer is larger than {limits.response_bytes:,} bytes", setting="max_response_bytes"
    )


class StalledError(Exception):
    """Nothing came, or was taken, for too long."""


class Bounds:
    """How long one request may wait, for each next byte and as a whole; and for how much."""

    def __init__(self, timeout: float, *, seconds: float, limits: AnswerLimits) -> None:
        self.limits = limits
        self._timeout = timeout
        self._seconds = seconds
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Return the seconds that the next wait may take.

        Raises:
            OverLimitError: the time of the request is over.
        """
        left = self._end - time.monotonic()
        if left <= 0:
            raise self._passed()
        return min(left, self._timeout)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Turn a wait that took too long into an error that no HTTP library catches.

        Raises:
            OverLimitError: the time of the request is over.
            StalledError: a single wait was too long.
        """
        try:
            yield
        except TimeoutError as error:
            if time.monotonic() >= self._end:
                raise self._passed() from error
            raise StalledError from error

    def _passed(self) -> OverLimitError:
        return OverLimitError(
            f"the request took longer than {self._seconds:g} s", setting="request_seconds"
        )


def reach(address: tuple[str, int], bounds: Bounds) -> socket.socket:
    """Connect to the first address of a host that answers, trying each within the time left.

    Raises:
        OSError: none can be reached.
        OverLimitError: the time is over.
    """
    failed = OSError("the name has no address")
    for *_, place in socket.getaddrinfo(*address, type=socket.SOCK_STREAM):
        host, port = str(place[0]), int(place[1])
        try:
            found = socket.create_connection((host, port), timeout=bounds.left())
        except OSError as error:
            failed = error
        else:
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return found
    raise failed


def send_all(connection: socket.socket, content: bytes, bounds: Bounds) -> None:
    """Send bytes for as long as the other side takes some of them now and then."""
    rest = memoryview(content)
    with bounds.watched():
        while rest:
            connection.settimeout(bounds.left())
            rest = rest[connection.send(rest[:_SEND_PIECE]) :]


class BoundedResponse(HTTPResponse):
    """An answer that is read only as far as the limits of size and time allow."""

    def __init__(self, connection: socket.socket, bounds: Bounds, *, method: str | None) -> None:
        super().__init__(connection, method=method)
        self.fp.close()
        self._reader = _BoundedReader(connection, bounds)
        self.fp = io.BufferedReader(self._reader)

    @override
    def begin(self) -> None:
        super().begin()
        self._reader.is_head = False  # from now on the limit is that of a whole answer


class _BoundedReader(io.RawIOBase):
    def __init__(self, connection: socket.socket, bounds: Bounds) -> None:
        super().__init__()
        self._connection = connection
        self._file = connection.makefile("rb", buffering=0)  # keeps the socket open until closed
        self._bounds = bounds
        self._received = 0
        self.is_head = True

    @override
    def readable(self) -> bool:
        return True

    @override
    def readinto(self, buffer: WriteableBuffer) -> int:
        with self._bounds.watched():
            self._connection.settimeout(self._bounds.left())
            count = self._file.readinto(buffer) or 0
        self._received += count
        if self.is_head and self._received > _HEAD_BYTES:
            raise OverLimitError(f"its headers are larger than {_HEAD_BYTES:,} bytes")
        if self._received > self._bounds.limits.response_bytes:
            raise too_large(self._bounds.limits)
        return count

    @override
    def close(self) -> None:
        self._file.close()
        super().close()


def read_body(
    response: BaseHTTPResponse, limits: AnswerLimits, *, most_bytes: int | None = None
) -> bytes:
    """Return the body of an answer, unpacked.

    With `most_bytes` it is not unpacked, and what a longer one has beyond that stays unread.

    Raises:
        OverLimitError: it is larger than the limits allow.
        HTTPError, ValueError, zlib.error, EOFError: it is not whole.
    """
    if most_bytes is not None:
        return _beginning(response, most_bytes)
    if (response.length_remaining or 0) > limits.response_bytes:
        raise too_large(limits)
    coding = response.headers.get("Content-Encoding", "").strip().lower()
    received = response.stream(_PIECE, decode_content=False)
    if coding not in _WINDOW_BITS:
        return b"".join(received)
    pieces: list[bytes] = []
    unpack = _Unpacking(_WINDOW_BITS[coding], limits, pieces.append)
    for piece in received:
        unpack.add(piece)
    unpack.finish()
    return b"".join(pieces)


def _beginning(response: BaseHTTPResponse, most_bytes: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    for piece in response.stream(_PIECE, decode_content=False):
        pieces.append(piece)
        size += len(piece)
        if size > most_bytes:
            response.close()
            break
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
