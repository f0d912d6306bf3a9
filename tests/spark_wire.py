"""A client of Spark's own network protocol that knows no secret, and what it can get.

The frames are those of `org.apache.spark.network.protocol`: eight bytes of length, one byte that
names the kind of message, its fields, and a body.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from typing import NamedTuple, Self

_SECONDS = 60
_LONGEST_FRAME = 1 << 30
_CHUNK_REQUEST, _CHUNK, _CHUNK_FAILURE = 0, 1, 2
_RPC_REQUEST, _RPC_ANSWER, _RPC_FAILURE = 3, 4, 5
_STREAM_REQUEST, _STREAM, _STREAM_FAILURE = 6, 7, 8
_OPEN_BLOCKS = 0
_FRAME_HEADER = 8
_MOST_BROADCASTS = 40
# Spark does not look at it; servers of other protocols then see a whole message, and answer.
_END_OF_OTHERS = b"\n" * 500
_JAVA_STRING = b"\xac\xed\x00\x05t\x00\x01x"


class Answer(NamedTuple):
    """What a server sent back; `granted` where it did as it was asked."""

    granted: bool
    content: bytes


REFUSED = Answer(granted=False, content=b"")


class SparkWire:
    """A connection to a port of Spark."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def call(self, receiver: str) -> Answer:
        """Send an object to an endpoint of the driver; granted where it was deserialised."""
        host, port = "127.0.0.1", self._socket.getpeername()[1]
        address = _utf(host) + struct.pack(">i", port)
        body = b"\x00\x01" + address + _utf(receiver) + _JAVA_STRING
        return self._asked(_rpc(body), granted=_RPC_ANSWER)

    def file(self, name: str) -> Answer:
        """Ask for a file that the driver serves, such as `/files/x`."""
        return self._asked(bytes([_STREAM_REQUEST]) + _string(name), granted=_STREAM)

    def block(self, name: str) -> Answer:
        """Ask for a block of the block manager, such as `broadcast_0_piece0`."""
        opening = bytes([_OPEN_BLOCKS]) + _string("app") + _string("1")
        opening += struct.pack(">i", 1) + _string(name) + _END_OF_OTHERS
        opened = self._asked(_rpc(opening), granted=_RPC_ANSWER)
        if not opened.granted:
            return opened
        stream = opened.content[-12:-4]  # a handle ends with its number and how many chunks it has
        return self._asked(bytes([_CHUNK_REQUEST]) + stream + struct.pack(">i", 0), granted=_CHUNK)

    def _asked(self, message: bytes, *, granted: int) -> Answer:
        try:
            self._socket.sendall(struct.pack(">q", len(message) + 8) + message)
            (length,) = struct.unpack(">q", self._read(8))
            if not _FRAME_HEADER < length < _LONGEST_FRAME:
                return REFUSED  # it speaks another protocol
            answer = self._read(length - 8)
            if answer[0] == _STREAM:  # its body comes after the frame
                (size,) = struct.unpack(">q", answer[-8:])
                answer += self._read(size)
        except OSError:
            return REFUSED
        return Answer(answer[0] == granted, answer[1:])

    def _read(self, length: int) -> bytes:
        content = b""
        while len(content) < length:
            part = self._socket.recv(length - len(content))
            if not part:
                raise ConnectionResetError
            content += part
        return content


def blocks(port: int) -> Iterator[Answer]:
    """Ask a port for every block that may hold the code of a task."""
    for number in range(_MOST_BROADCASTS):
        for name in (f"broadcast_{number}_piece0", f"broadcast_{number}"):
            with SparkWire(port) as wire:
                answer = wire.block(name)
            yield answer
            if answer == REFUSED:
                return  # not a port of Spark's, which gives a reason


def _rpc(body: bytes) -> bytes:
    return bytes([_RPC_REQUEST]) + struct.pack(">qi", 7, len(body)) + body


def _string(text: str) -> bytes:
    return struct.pack(">i", len(text)) + text.encode()


def _utf(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()
