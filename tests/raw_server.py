"""A TCP server on loopback that speaks to each connection through a function of the test."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LENGTH = b"content-length:"


@contextmanager
def listening(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """Let each connection be served by a function, and give the port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ended = threading.Event()

        def accept() -> None:
            while not ended.is_set():
                if not select.select([listener], [], [], 0.02)[0]:
                    continue
                accepted = listener.accept()[0]
                threading.Thread(target=one, args=(accepted,), daemon=True).start()

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
