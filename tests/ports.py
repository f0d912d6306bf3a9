"""Ports of this machine, for tests."""

from __future__ import annotations

import random
import socket
from pathlib import Path

_HOST = "127.0.0.1"
_FIRST = 10_000
_LAST = 32_767
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_chance = random.SystemRandom()
_held: list[socket.socket] = []


def free_port() -> int:
    """Return a port at which a server may soon be started.

    It is none of those that the system gives to connections, one of which could take it before the
    server does.
    """
    last = _last()
    for _ in range(100):
        port = _chance.randint(_FIRST, last) if last > _FIRST else 0
        with socket.socket() as probe:
            try:
                probe.bind((_HOST, port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise RuntimeError("no port is free")


def closed_port() -> int:
    """Return a port at which nobody listens, nor will for as long as this process lives."""
    holder = socket.socket()
    holder.bind((_HOST, 0))
    _held.append(holder)
    return int(holder.getsockname()[1])


def _last() -> int:
    """Return the last port below those that the system gives away."""
    try:
        return min(_LAST, int(_RANGE.read_text().split()[0]) - 1)
    except OSError:
        return _LAST
