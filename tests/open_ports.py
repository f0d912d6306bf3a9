"""What the processes of a command listen on, and what anybody on the machine gets from there."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_LISTENS = "0A"
_SECONDS = 3
_GREETINGS = (
    b"",
    b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /environment/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /api/v1/applications HTTP/1.1\r\nHost: localhost\r\n\r\n",
    # py4j: create an object, then list what an object can do
    b"i\njava.lang.String\nsx\ne\n",
    b"r\nu\njava\nrj\ne\n",
    # PySpark's sockets: a secret of the right form that is wrong
    b"\x00\x00\x00\x06wrong!",
    b"wrong!" * 20,
)


def descendants(pid: int) -> set[int]:
    """Return a process and everything that it or its children started and that still runs."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, left = {pid}, [pid]
    while left:
        below = children.get(left.pop(), [])
        found.update(below)
        left += below
    return found


def listening(pids: set[int]) -> set[int]:
    """Return the ports that processes listen on; they are all of the loopback address."""
    sockets = {inode for pid in pids for inode in _sockets(pid)}
    ports = set()
    for table in ("tcp", "tcp6"):
        path = Path("/proc/net") / table
        for line in path.read_text().splitlines()[1:] if path.exists() else []:
            fields = line.split()
            if fields[3] == _LISTENS and fields[9] in sockets:
                ports.add(int(fields[1].rpartition(":")[2], 16))
    return ports


def _sockets(pid: int) -> Iterator[str]:
    with suppress(OSError):
        for handle in os.scandir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                target = os.readlink(handle.path)
                if target.startswith("socket:["):
                    yield target.removeprefix("socket:[").removesuffix("]")


def greeted(port: int) -> Iterator[bytes]:
    """Yield what a port answers to those who know no secret: bytes, a page, py4j, PySpark."""
    for greeting in _GREETINGS:
        answer = b""
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), _SECONDS) as client:
            client.sendall(greeting)
            client.shutdown(socket.SHUT_WR)
            while part := client.recv(65_536):
                answer += part
        yield answer
