"""Real servers that take alerts: one for HTTP, one for mail, both on this machine."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple

from aiosmtpd.controller import Controller
from typing_extensions import override

from ports import free_port

if TYPE_CHECKING:
    from aiosmtpd.smtp import SMTP, Envelope, Session


class Posted(NamedTuple):
    """One request as it arrived."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class WebhookServer:
    """Takes what is posted and answers as told; `silent` lets callers wait until it is closed."""

    def __init__(self) -> None:
        self.posted: list[Posted] = []
        self.status = 200
        self.location: str | None = None
        self.silent = False
        self.arrived = threading.Event()
        self.closing = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self.closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _handler_of(state: WebhookServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            body = json.loads(self.rfile.read(length))
            state.posted.append(Posted(self.path, dict(self.headers), body))
            state.arrived.set()
            if state.silent:
                state.closing.wait(600)
                return
            self.send_response(state.status)
            if state.location:
                self.send_header("Location", state.location)
            self.send_header("Content-Length", "0")
            self.end_headers()

        @override
        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


@contextmanager
def webhook_server() -> Iterator[WebhookServer]:
    """Run an HTTP server for the block."""
    server = WebhookServer()
    try:
        yield server
    finally:
        server.close()


class MailServer:
    """Takes mails, or refuses them with an answer such as `550 no`."""

    def __init__(self) -> None:
        self.mails: list[Message] = []
        self.recipients: list[list[str]] = []
        self.refusal: str | None = None

    async def handle_DATA(  # noqa: N802 - the name is aiosmtpd's
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        if self.refusal:
            return self.refusal
        content = envelope.content
        assert isinstance(content, bytes)
        self.mails.append(message_from_bytes(content))
        self.recipients.append([*envelope.rcpt_tos])
        return "250 taken"


@contextmanager
def mail_server() -> Iterator[tuple[MailServer, int]]:
    """Run a mail server for the block, and tell its port."""
    handler, port = MailServer(), free_port()
    controller = Controller(handler, hostname="127.0.0.1", port=port, ready_timeout=300)
    controller.start()
    try:
        yield handler, port
    finally:
        controller.stop()
