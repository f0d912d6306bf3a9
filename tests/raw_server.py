"""A TCP server on loopback that speaks to each connection through a function of the test."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

LENGTH = b"content-length:"
_END_SECONDS = 120


@contextmanager
def listening(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """Let each connection be served by a function, and give the port.

    At the end connections are cut and their threads waited for: one that went on serving would
    slow down every test after this one.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ended = threading.Event()
        connections: list[tuple[socket.socket, threading.Thread]] = []

        def accept() -> None:
            while not ended.is_set():
                if not select.select([listener], [], [], 0.02)[0]:
                    continue
                accepted = listener.accept()[0]
                server = threading.Thread(target=one, args=(accepted,), daemon=True)
                connections.append((accepted, server))
                server.start()

        def one(accepted: socket.socket) -> None:
            with accepted:
                try:
                    serve(accepted)
                except OSError:
                    return

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            ended.set()
            thread.join()
            for connection, server in connections:
                with suppress(OSError):  # it may be closed already
                    connection.shutdown(socket.SHUT_RDWR)
                server.join(_END_SECONDS)
                assert not server.is_alive(), "a connection is served although it was cut"


def request_from(connection: socket.socket) -> bytes:
    """Return the head of a request whose body was read as well; nothing at the end."""
    got = b""
    while b"\r\n\r\n" not in got:
        more = connection.recv(65536)
        if not more:
            return b""
        got += more
    head, _, body = got.partition(b"\r\n\r\n")
    told = head.lower().partition(LENGTH)[2].partition(b"\r")[0].strip()
    while len(body) < int(told or 0):
        body += connection.recv(65536)
    return head
