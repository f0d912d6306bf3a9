"""What can go wrong between Lumos and a server, done to its requests on purpose.

Each fault hits one request in so many, chosen by what the request says and not by when it is sent,
and hits it once: what happens does not depend on threads, on clocks or on the speed of a machine.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import Final, NamedTuple

import pytest
from urllib3 import HTTPHeaderDict

from lumos.core.http.connections import (
    Answer,
    BrokenOffError,
    Connections,
    Request,
    TooSlowError,
    UnreachedError,
)

Send = Callable[[Request], Answer]
PAGE: Final = b"<html><head><title>Bad Gateway</title></head><body>nginx</body></html>"
MOST: Final = 60
"""How many requests are hit: some faults end a run, and each run has to be begun again."""
_IDENTITY: Final = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}")
"""What a server gives out at random."""
_QUESTIONS: Final = ("/batchGet", "/scroll", "/search/basic")


class Fault(NamedTuple):
    """One way to fail."""

    happen: Callable[[Send, Request], Answer]
    one_in: int = 3
    """Of how many requests one is hit."""
    writes_only: bool = False
    only: str | None = None
    """The one method that is hit, where it is one."""


def _refusal(
    status: int,
    *,
    html: bool = False,
    headers: Mapping[str, str] | None = None,
    done: bool = False,
) -> Callable[[Send, Request], Answer]:
    def happen(send: Send, request: Request) -> Answer:
        if done:
            send(request)
        kind = "text/html" if html else "application/json"
        body = PAGE if html else b'{"message": "said so"}'
        return Answer(status, HTTPHeaderDict({"Content-Type": kind, **(headers or {})}), body)

    return happen


def _broken(error: Exception, *, done: bool) -> Callable[[Send, Request], Answer]:
    def happen(send: Send, request: Request) -> Answer:
        if done:
            send(request)
        raise error

    return happen


def _no_json(send: Send, request: Request) -> Answer:
    whole = send(request)
    return Answer(whole.status, HTTPHeaderDict({"Content-Type": JSON}), whole.content[:-1] or b"{")


JSON: Final = "application/json"
FAULTS: Final[Mapping[str, Fault]] = {
    "429 with Retry-After": Fault(_refusal(429, headers={"Retry-After": "7"})),
    "500": Fault(_refusal(500)),
    "502 with a web page, though done": Fault(_refusal(502, html=True, done=True), 7),
    "503 with a date": Fault(
        _refusal(503, headers={"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"})
    ),
    "504 with a web page": Fault(_refusal(504, html=True), 7),
    "no answer in time": Fault(_broken(TooSlowError("slow"), done=False), 7),
    "no answer in time, though done": Fault(_broken(TooSlowError("slow"), done=True), 7),
    "no connection": Fault(_broken(UnreachedError("refused"), done=False)),
    "reset": Fault(_broken(BrokenOffError("reset by peer"), done=False), 7),
    "reset, though done": Fault(_broken(BrokenOffError("reset by peer"), done=True), 7),
    "half-closed": Fault(_broken(BrokenOffError("disconnected"), done=False), 7),
    "an answer that breaks off": Fault(_broken(BrokenOffError("half an answer"), done=True), 7),
    "an answer that is no JSON": Fault(_no_json, 7),
    "an expired token": Fault(_refusal(401), 23),
    "somebody else was quicker (409)": Fault(_refusal(409), 7, writes_only=True),
    "somebody else was quicker (412)": Fault(_refusal(412), 7, writes_only=True),
}


class Wire:
    """Hits requests with a fault, each that is chosen once."""

    def __init__(self, fault: Fault) -> None:
        self._fault = fault
        self._hit: set[int] = set()
        self._lock = Lock()

    @property
    def hits(self) -> int:
        return len(self._hit)

    def handle(self, send: Send, request: Request) -> Answer:
        if self._chosen(request):
            return self._fault.happen(send, request)
        return send(request)

    def _chosen(self, request: Request) -> bool:
        path = request.target.partition("?")[0]
        asks = request.method == "GET" or path.endswith(_QUESTIONS)
        if (self._fault.writes_only and asks) or self._fault.only not in {None, request.method}:
            return False
        said = b" ".join((f"{request.method} {request.target}".encode(), request.body or b""))
        mark = zlib.crc32(_IDENTITY.sub(b"*", said))
        with self._lock:
            spared = len(self._hit) >= MOST or (self._hit and mark % self._fault.one_in)
            if mark in self._hit or spared:
                return False
            self._hit.add(mark)
            return True


@contextmanager
def faulty_wire(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    """Let requests of this process fail for the length of a block; nobody waits meanwhile."""
    wire = Wire(fault)
    send = Connections.send

    def handle(connections: Connections, request: Request) -> Answer:
        return wire.handle(lambda sent: send(connections, sent), request)

    with monkeypatch.context() as patch:
        patch.setattr(Connections, "send", handle)
        patch.setattr("time.sleep", lambda _: None)
        yield wire
