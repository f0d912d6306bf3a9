"""A proxy before a PostgreSQL server that notes every statement that a client sends."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from urllib.parse import urlsplit, urlunsplit

_CONTROL = ("BEGIN", "SAVEPOINT", "ROLLBACK", "COMMIT")


@dataclass
class Wire:
    """What went over the wire."""

    url: str
    statements: list[str] = field(default_factory=list)

    def queries(self) -> list[str]:
        """Return what was asked, without what only begins and ends transactions."""
        return [text for text in self.statements if not text.lstrip().startswith(_CONTROL)]


@contextmanager
def wire_to(url: str, *, connections: int | None = None) -> Iterator[Wire]:
    """Yield the address of a proxy to a server, which lives as long as the block.

    After so many connections nobody listens there any more.
    """
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    target = (parts.hostname, parts.port)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        netloc = f"{parts.netloc.rpartition('@')[0]}@127.0.0.1:{port}"
        wire = Wire(
            urlunsplit(parts._replace(netloc=netloc, query="sslmode=disable&gssencmode=disable"))
        )
        threading.Thread(
            target=_accept, args=(listener, target, wire, connections), daemon=True
        ).start()
        yield wire
        with suppress(OSError):  # it may be closed
            listener.shutdown(socket.SHUT_RDWR)


def _accept(
    listener: socket.socket, target: tuple[str, int], wire: Wire, connections: int | None
) -> None:
    with suppress(OSError), listener:
        for _ in count() if connections is None else range(connections):
            client, _ = listener.accept()
            server = socket.create_connection(target)
            threading.Thread(target=_requests, args=(client, server, wire), daemon=True).start()
            threading.Thread(target=_answers, args=(server, client), daemon=True).start()


def _requests(client: socket.socket, server: socket.socket, wire: Wire) -> None:
    with suppress(OSError, EOFError), client, server:
        header = _exactly(client, 4)  # the first message has no kind
        server.sendall(header + _exactly(client, struct.unpack("!I", header)[0] - 4))
        while True:
            header = _exactly(client, 5)
            body = _exactly(client, struct.unpack("!I", header[1:])[0] - 4)
            if header[:1] == b"Q":
                wire.statements.append(body.rstrip(b"\0").decode())
            if header[:1] == b"P":
                wire.statements.append(body.split(b"\0")[1].decode())
            server.sendall(header + body)


def _answers(server: socket.socket, client: socket.socket) -> None:
    with suppress(OSError):
        while data := server.recv(65536):
            client.sendall(data)
    with suppress(OSError):
        client.shutdown(socket.SHUT_RDWR)


def _exactly(source: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = source.recv(size - len(data))
        if not more:
            raise EOFError
        data += more
    return data
