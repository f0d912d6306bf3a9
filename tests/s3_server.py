"""A real S3 server process for tests, behind a proxy that counts requests and makes faults."""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from typing_extensions import override

from ports import free_port

ACCESS_KEY = "AKIAIOSFODNN7EXAMPLE"
SECRET_KEY = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
REGION = "eu-central-1"
_START_SECONDS = 300
_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length"}


class Request(NamedTuple):
    """A request as it reached the server."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]

    @property
    def is_listing(self) -> bool:
        return "list-type" in self.query

    @property
    def prefix(self) -> str:
        return self.query.get("prefix", "")


class Answer(NamedTuple):
    """An answer that a fault gives in the server's place."""

    status: int
    code: str = ""
    content: bytes = b""

    def body(self) -> bytes:
        if not self.code:
            return self.content
        return (
            '<?xml version="1.0" encoding="UTF-8"?>'
            f"<Error><Code>{self.code}</Code><Message>hunter2</Message></Error>"
        ).encode()


class Reset(NamedTuple):
    """The connection is cut instead of an answer."""


class Rewritten(NamedTuple):
    """The request goes on to the server with more in its query."""

    query: str


class CutOff(NamedTuple):
    """The answer ends in the middle of its body."""


Outcome = Answer | Reset | CutOff | Rewritten | None
Fault = Callable[[Request], Outcome]


@dataclass
class Times:
    """A fault that happens so many times."""

    left: int
    outcome: Outcome

    def __call__(self, request: Request) -> Outcome:
        if self.left == 0:
            return None
        self.left -= 1
        return self.outcome


@dataclass(frozen=True)
class PageOf:
    """Lets the server list so many keys at a time."""

    keys: int

    def __call__(self, request: Request) -> Outcome:
        return Rewritten(f"max-keys={self.keys}") if request.is_listing else None


@dataclass(frozen=True)
class OddServer:
    """Answers in the server's place as one whose keys are no paths, which moto cannot hold."""

    keys: list[str]
    content: bytes

    def __call__(self, request: Request) -> Outcome:
        if not request.is_listing:
            return Answer(206, content=self.content[:3])
        after = request.query.get("start-after", "")
        items = "".join(
            f"<Contents><Key>{key}</Key><LastModified>2024-01-01T00:00:00.000Z</LastModified>"
            f'<ETag>"x"</ETag><Size>{len(self.content)}</Size></Contents>'
            for key in self.keys
            if key > after
        )
        listing = f"<IsTruncated>false</IsTruncated>{items}"
        return Answer(200, content=f"<ListBucketResult>{listing}</ListBucketResult>".encode())


@dataclass
class S3Server:
    """Where the server is, what it was asked, and how it should fail."""

    url: str
    direct_url: str
    requests: list[Request] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)

    def client(self, service: str = "s3") -> Any:
        """Return a client that goes around the proxy, to prepare a test."""
        import boto3

        return boto3.client(
            service,
            endpoint_url=self.direct_url,
            region_name=REGION,
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=SECRET_KEY,
        )

    def reads(self) -> list[Request]:
        return [each for each in self.requests if not each.is_listing]

    def listings(self) -> list[Request]:
        return [each for each in self.requests if each.is_listing]


class Bucket:
    """A bucket of one test."""

    def __init__(self, server: S3Server, name: str) -> None:
        self.server = server
        self.name = name
        self._client = server.client()
        self._client.create_bucket(
            Bucket=name, CreateBucketConfiguration={"LocationConstraint": REGION}
        )

    def put(self, key: str, body: bytes = b"", *, acl: str = "private") -> None:
        self._client.put_object(Bucket=self.name, Key=key, Body=body, ACL=acl)

    def remove_object(self, key: str) -> None:
        self._client.delete_object(Bucket=self.name, Key=key)

    def put_folder(self, folder: Path, *, acl: str = "private") -> None:
        """Store every file of a local folder under its relative path."""
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                self.put(path.relative_to(folder).as_posix(), path.read_bytes(), acl=acl)

    def remove(self) -> None:
        for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=self.name):
            for each in page.get("Contents", ()):
                self._client.delete_object(Bucket=self.name, Key=each["Key"])
        self._client.delete_bucket(Bucket=self.name)

    def settings(self, **more: Any) -> dict[str, Any]:
        """Return the settings of a source over this bucket."""
        return {
            "bucket": self.name,
            "endpoint_url": self.server.url,
            "region": REGION,
            "access_key_id": ACCESS_KEY,
            "secret_access_key": SECRET_KEY,
            **more,
        }


@contextmanager
def running_s3() -> Iterator[S3Server]:
    """Run the S3 server of the moto wheel and the proxy in front of it."""
    port = free_port()
    # Not the console script: the package may be installed without its folder on PATH.
    command = [sys.executable, "-W", "ignore", "-m", "moto.server", "-H", "127.0.0.1"]
    process = subprocess.Popen(
        [*command, "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "MOTO_ALLOW_NONEXISTENT_REGION": "true"},
    )
    try:
        wait_for(port, process)
        with proxied(f"http://127.0.0.1:{port}") as server:
            yield server
    finally:
        process.kill()
        process.wait()


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until a server takes connections."""
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError("the server did not start")


@contextmanager
def proxied(direct_url: str) -> Iterator[S3Server]:
    """Run a proxy that passes everything on, Host header included, unless a fault says not to."""
    server = S3Server(url="", direct_url=direct_url)
    target = urlsplit(direct_url)

    class Proxy(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            parts = urlsplit(self.path)
            query = {
                name: values[0]
                for name, values in parse_qs(parts.query, keep_blank_values=True).items()
            }
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Request(self.command, unquote(parts.path), query, headers)
            server.requests.append(request)
            content = self.rfile.read(int(headers.get("content-length", 0)))
            found = (fault(request) for fault in list(server.faults))
            fault = next((each for each in found if each is not None), None)
            if isinstance(fault, Reset):
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
            elif isinstance(fault, Answer):
                self._answer(fault.status, [], fault.body())
            else:
                if isinstance(fault, Rewritten):
                    self.path += f"&{fault.query}"
                self._forward(content, cut=isinstance(fault, CutOff))

        def _forward(self, content: bytes, *, cut: bool) -> None:
            connection = http.client.HTTPConnection(target.hostname or "", target.port, timeout=300)
            try:
                connection.request(self.command, self.path, content, dict(self.headers.items()))
                answer = connection.getresponse()
                body = answer.read()
                headers = [
                    pair for pair in answer.getheaders() if pair[0].lower() not in _HOP_BY_HOP
                ]
                length = answer.getheader("content-length")
                self._answer(answer.status, headers, body, length=length, cut=cut)
            finally:
                connection.close()

        def _answer(
            self,
            status: int,
            headers: list[tuple[str, str]],
            body: bytes,
            *,
            length: str | None = None,
            cut: bool = False,
        ) -> None:
            self.send_response_only(status)
            for name, value in headers:
                self.send_header(name, value)
            is_head = self.command == "HEAD"
            said = length if is_head and length is not None else str(len(body))
            self.send_header("Content-Length", said)
            self.end_headers()
            if cut:
                self.wfile.write(body[: len(body) // 2])
                self.close_connection = True
            elif not is_head:
                self.wfile.write(body)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _serve  # noqa: N815

        @override
        def log_message(self, format: str, *args: object) -> None:
            return

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        @override
        def handle_error(self, request: object, client_address: object) -> None:
            return  # clients that hang up are part of the tests

    proxy = Server(("127.0.0.1", 0), Proxy)
    thread = threading.Thread(target=proxy.serve_forever, daemon=True)
    thread.start()
    server.url = f"http://127.0.0.1:{proxy.server_port}"
    try:
        yield server
    finally:
        proxy.shutdown()
        proxy.server_close()
        thread.join()
