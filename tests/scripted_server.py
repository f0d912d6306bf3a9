"""An HTTP server on loopback that answers what a test tells it to, real sockets and all."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from typing_extensions import override


@dataclass(frozen=True)
class Reply:
    """What is answered to one request."""

    status: int = 200
    body: bytes = b"{}"
    content_type: str | None = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    promised: int | None = None
    """The length that is told, where it is not that of the body."""
    silent: bool = False
    """Nothing is answered until the client gives up."""
    hang_up: bool = False
    """The connection is reset without an answer."""


@dataclass(frozen=True)
class Seen:
    """One request as the server got it."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class ScriptedServer:
    """Gives out replies in order, the last one for ever."""

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self._server = server
        self._lock = threading.Lock()
        self.replies: list[Reply] = [Reply()]
        self.seen: list[Seen] = []
        self.busiest = 0
        self.closing = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def answer(self, *replies: Reply) -> None:
        self.replies = list(replies)

    def next_reply(self, request: Seen) -> Reply:
        with self._lock:
            self.seen.append(request)
            return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    script: ScriptedServer

    def _serve(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        seen = Seen(self.command, self.path, dict(self.headers), self.rfile.read(length))
        reply = self.script.next_reply(seen)
        if reply.silent:
            self.script.closing.wait(600)
            self.close_connection = True
            return
        if reply.hang_up:
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.close_connection = True
            return
        self.send_response(reply.status)
        if reply.content_type is not None:
            self.send_header("Content-Type", reply.content_type)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        promised = len(reply.body) if reply.promised is None else reply.promised
        self.send_header("Content-Length", str(promised))
        self.end_headers()
        self.wfile.write(reply.body)
        self.close_connection = promised != len(reply.body)

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = _serve  # noqa: N815

    @override
    def log_message(self, format: str, *args: Any) -> None:
        return


@contextmanager
def scripted_server() -> Iterator[ScriptedServer]:
    """Start a server for the length of a block."""
    handler = type("Handler", (_Handler,), {})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        server.block_on_close = False
        script = ScriptedServer(server)
        handler.script = script  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield script
        finally:
            script.closing.set()
            server.shutdown()
            thread.join()
