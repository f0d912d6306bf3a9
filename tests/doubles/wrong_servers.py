"""Servers that are not what somebody takes them for: another product or version, a closed door.

They speak real HTTP, or as much of MySQL's protocol as it takes to be refused by it.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

from pydantic import JsonValue
from typing_extensions import override

HTML = b"<html><body>Welcome</body></html>"
ACCESS_DENIED = (1045, "28000")
NO_SUCH_COLUMN = (1054, "42S22")
NO_SUCH_TABLE = (1146, "42S02")
_GREETING = (
    b"\x0a8.0.36\x00" + struct.pack("<I", 7) + b"abcdefgh\x00"
    + struct.pack("<H", 0x8208) + b"\x2d" + struct.pack("<H", 2) + struct.pack("<H", 0x0008)
    + b"\x15" + bytes(10) + b"ijklmnopqrst\x00" + b"mysql_native_password\x00"
)  # fmt: skip
_DONE = b"\x00\x00\x00\x02\x00\x00\x00"
_QUIT, _QUERY = 0x01, 0x03


class Answers(NamedTuple):
    """What a web server says: to some paths JSON, to all others the same."""

    status: int = 404
    known: Mapping[str, JsonValue] | None = None
    page: bool = False


@contextmanager
def web_server(answers: Answers) -> Iterator[str]:
    """Run a web server on a free port of the loopback, and give its URL."""
    handler = type("Handler", (_WebHandler,), {"answers": answers})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _WebHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    answers: Answers

    def _serve(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        known = (self.answers.known or {}).get(self.path.partition("?")[0])
        status = self.answers.status if known is None else 200
        kind = "text/html" if self.answers.page else "application/json"
        content = HTML if self.answers.page else json.dumps(known or {"message": "no"}).encode()
        with suppress(ConnectionError):
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Stay silent."""


@contextmanager
def mysql_refusing(error: tuple[int, str]) -> Iterator[int]:
    """Run a server that greets as MySQL does and refuses a login or every query; give its port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=_accept, args=(listening, error), daemon=True)
        thread.start()
        try:
            yield int(listening.getsockname()[1])
        finally:
            with suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)
            thread.join()


def _accept(listening: socket.socket, error: tuple[int, str]) -> None:
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            return
        with connection, suppress(OSError, EOFError):
            connection.settimeout(300)
            _refuse(connection, error)


def _refuse(connection: socket.socket, error: tuple[int, str]) -> None:
    number, state = error
    refusal = b"\xff" + struct.pack("<H", number) + b"#" + state.encode() + b"no"
    _send(connection, _GREETING, 0)
    _received(connection)
    _send(connection, refusal if error == ACCESS_DENIED else _DONE, 2)
    while error != ACCESS_DENIED:
        command = _received(connection)
        if command[:1] == bytes([_QUIT]):
            return
        harmless = command[0] != _QUERY or command[1:4].upper() == b"SET"
        _send(connection, _DONE if harmless else refusal, 1)


def _send(connection: socket.socket, payload: bytes, sequence: int) -> None:
    connection.sendall(struct.pack("<I", len(payload))[:3] + bytes([sequence]) + payload)


def _received(connection: socket.socket) -> bytes:
    head = _exactly(connection, 4)
    return _exactly(connection, int.from_bytes(head[:3], "little"))


def _exactly(connection: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        if not (more := connection.recv(count - len(found))):
            raise EOFError
        found += more
    return found
