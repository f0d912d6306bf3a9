from __future__ import annotations

import socket
import threading

from raw_server import listening


def test_no_connection_is_served_after_the_end() -> None:
    before = set(threading.enumerate())
    is_served = threading.Event()

    def serve(connection: socket.socket) -> None:
        is_served.set()
        while True:  # nothing to send never fails by itself
            connection.sendall(b"")

    with listening(serve) as port, socket.create_connection(("127.0.0.1", port)):
        assert is_served.wait(60)

    assert set(threading.enumerate()) == before
