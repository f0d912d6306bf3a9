"""No server can exhaust a client: neither its memory nor its time, whatever it answers."""

from __future__ import annotations

import gzip
import socket
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from pydantic import JsonValue

from lumos.core.errors import PlatformAnswerError, PlatformError, PlatformUnavailableError
from lumos.core.http.bounds import AnswerLimits
from lumos.core.platform.factory import PlatformFactory
from lumos.core.platform.http import CatalogHttp, RetryPolicy, impatient
from raw_server import listening, request_from
from scripted_server import Reply, ScriptedServer, scripted_server

TESTS = Path(__file__).parents[1]
MEGABYTE = 1 << 20
LIMITS = AnswerLimits(response_bytes=100_000, compression_ratio=200, seconds=60)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
Serve = Callable[[socket.socket], None]


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with scripted_server() as running:
        yield running


def client(url: str, *, limits: AnswerLimits = LIMITS, attempts: int = 3) -> CatalogHttp:
    retries = RetryPolicy(attempts=attempts, first_wait=0.0, longest_wait=0.0)
    return CatalogHttp(url, name="cat", timeout=60, retries=retries, limits=limits)


@contextmanager
def asked(serve: Serve, *, limits: AnswerLimits = LIMITS) -> Iterator[CatalogHttp]:
    def one(connection: socket.socket) -> None:
        request_from(connection)
        serve(connection)

    with listening(one) as port, client(f"http://127.0.0.1:{port}", limits=limits) as http:
        yield http


def refusal(serve: Serve, *, limits: AnswerLimits = LIMITS) -> PlatformError:
    with asked(serve, limits=limits) as http, pytest.raises(PlatformError) as raised:
        http.json("GET", "/x")
    return raised.value


def endlessly(head: bytes, more: bytes) -> Serve:
    def serve(connection: socket.socket) -> None:
        connection.sendall(head)
        while True:
            connection.sendall(more)

    return serve


@pytest.mark.parametrize(
    "serve",
    [
        endlessly(HEAD + b"\r\n", b" " * 65_536),
        endlessly(CHUNKED, b"1000\r\n" + b" " * 4096 + b"\r\n"),
        endlessly(CHUNKED, b"1;" + b"x" * 60_000 + b"\r\n \r\n"),
        endlessly(CHUNKED + b"0\r\n", b"X-Trailer: " + b"x" * 60_000 + b"\r\n"),
        endlessly(CHUNKED + b"ffffffffffffffff\r\n", b" " * 65_536),
        endlessly(CHUNKED + b"-1\r\n", b" " * 65_536),
        endlessly(HEAD + b"Content-Length: 99999999999999\r\n\r\n", b" " * 65_536),
    ],
    ids=["to-the-end", "chunks", "chunk-extensions", "trailers", "one-chunk", "negative", "length"],
)
def test_an_endless_answer_is_cut_off_at_the_limit(serve: Serve) -> None:
    error = refusal(serve)
    assert isinstance(error, PlatformAnswerError)
    assert error.message.endswith("the answer is larger than 100,000 bytes")
    assert "http://127.0.0.1:" in error.message
    assert "platform_config.cat.max_response_bytes" in str(error.hint)


@pytest.mark.parametrize(
    "serve",
    [
        endlessly(HEAD, b"X-Header: " + b"x" * 60_000 + b"\r\n"),
        endlessly(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 2000),
    ],
    ids=["headers", "interim-answers"],
)
def test_endless_headers_are_cut_off(serve: Serve) -> None:
    error = refusal(serve, limits=AnswerLimits())
    assert "its headers are larger than 262,144 bytes" in error.message


def test_more_headers_than_http_allows_for_are_refused() -> None:
    error = refusal(lambda wire: wire.sendall(HEAD + b"X-A: b\r\n" * 200 + b"\r\n"))
    assert isinstance(error, PlatformUnavailableError)


def test_a_stated_length_over_the_limit_is_refused_before_anything_is_read() -> None:
    error = refusal(lambda wire: wire.sendall(HEAD + b"Content-Length: 100001\r\n\r\n"))
    assert "larger than 100,000 bytes" in error.message


def test_an_answer_shorter_than_it_states_has_broken_off() -> None:
    error = refusal(lambda wire: wire.sendall(HEAD + b"Content-Length: 10\r\n\r\n{}"))
    assert "the connection broke off" in error.message


@pytest.mark.parametrize("size", [b"zz", b"-5", b"", b"0x"])
def test_a_chunk_size_that_is_no_size_has_broken_off(size: bytes) -> None:
    error = refusal(lambda wire: wire.sendall(CHUNKED + size + b"\r\n{}\r\n0\r\n\r\n"))
    assert "the connection broke off" in error.message


@pytest.mark.parametrize(("coding", "window"), [("gzip", 31), ("deflate", 15)])
def test_an_answer_is_unpacked_only_up_to_the_limit(
    server: ScriptedServer, coding: str, window: int
) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, window)
    bomb = packer.compress(b'{"a": "' + b"x" * 200_000 + b'"}') + packer.flush()
    server.answer(Reply(body=bomb, headers={"Content-Encoding": coding}))
    with client(server.url) as http, pytest.raises(PlatformAnswerError) as raised:
        http.json("GET", "/x")
    assert "the answer is larger than 100,000 bytes" in raised.value.message
    assert len(server.seen) == 1, "it was asked for again"


def test_an_answer_that_unpacks_to_many_times_its_size_is_refused(server: ScriptedServer) -> None:
    bomb = gzip.compress(b'{"a": "' + b"x" * 5_000_000 + b'"}')
    server.answer(Reply(body=bomb, headers={"Content-Encoding": "gzip"}))
    with (
        client(server.url, limits=AnswerLimits()) as http,
        pytest.raises(PlatformAnswerError) as raised,
    ):
        http.json("GET", "/x")
    assert "unpacks to more than 200 times its size" in raised.value.message
    assert "platform_config.cat.max_compression_ratio" in str(raised.value.hint)
    with client(server.url, limits=AnswerLimits(compression_ratio=2000)) as http:
        assert http.json("GET", "/x") == {"a": "x" * 5_000_000}


@pytest.mark.parametrize("value", [b"[]", b"{}", b"0", b"[[[]]]"])
def test_an_answer_of_tiny_json_values_is_refused_before_they_are_built(
    server: ScriptedServer, value: bytes
) -> None:
    server.answer(Reply(body=b"[" + b",".join([value] * 300_000) + b"]"))
    with (
        client(server.url, limits=AnswerLimits(response_bytes=3_000_000)) as http,
        pytest.raises(PlatformAnswerError, match="more than 100,000 JSON values"),
    ):
        http.json("GET", "/x")


def test_json_nested_without_end_is_one_error(server: ScriptedServer) -> None:
    server.answer(Reply(body=b"[" * 50_000 + b"]" * 50_000))
    with client(server.url, attempts=1) as http, pytest.raises(PlatformAnswerError):
        http.json("GET", "/x")


def test_a_number_of_many_digits_takes_no_time(server: ScriptedServer) -> None:
    server.answer(Reply(body=b'{"a": ' + b"9" * 90_000 + b"}"))
    with client(server.url, attempts=1) as http, pytest.raises(PlatformAnswerError):
        http.json("GET", "/x")


def test_of_a_key_that_a_server_sends_twice_the_last_counts(server: ScriptedServer) -> None:
    server.answer(Reply(body=b'{"a": 1, "a": 2}'))
    with client(server.url) as http:
        assert http.json("GET", "/x") == {"a": 2}


def dripping(head: bytes, ended: threading.Event) -> Serve:
    """Send a byte now and then, sooner than any timeout of one wait."""

    def serve(connection: socket.socket) -> None:
        connection.sendall(head)
        while not ended.wait(0.02):
            connection.sendall(b"1")

    return serve


@pytest.mark.parametrize(
    "head",
    [b"", HEAD, HEAD + b"Content-Length: 5000\r\n\r\n", CHUNKED, CHUNKED + b"fff\r\n"],
    ids=["status", "header", "body", "chunk-size", "chunk"],
)
def test_a_server_that_drips_is_left_when_the_time_of_a_request_is_over(head: bytes) -> None:
    ended = threading.Event()
    try:
        error = refusal(dripping(head, ended), limits=LIMITS._replace(seconds=0.3))
    finally:
        ended.set()
    assert isinstance(error, PlatformUnavailableError)
    assert error.message.endswith("the request took longer than 0.3 s")
    assert "platform_config.cat.request_seconds" in str(error.hint)


def test_a_server_that_does_not_read_is_left_when_the_time_is_over() -> None:
    ended = threading.Event()

    def serve(connection: socket.socket) -> None:
        while not ended.wait(0.02):
            connection.recv(1)

    body = {"a": "x" * 20_000_000}
    limits = LIMITS._replace(seconds=0.5)
    with listening(serve) as port, client(f"http://127.0.0.1:{port}", limits=limits) as http:
        try:
            with pytest.raises(PlatformUnavailableError, match=r"took longer than 0\.5 s"):
                http.json("POST", "/x", body=body)
        finally:
            ended.set()


def test_a_server_that_begins_no_tls_is_left_when_the_time_is_over() -> None:
    ended = threading.Event()
    limits = LIMITS._replace(seconds=0.3)

    def serve(_: socket.socket) -> None:
        ended.wait()

    with (
        listening(serve) as port,
        client(f"https://127.0.0.1:{port}", limits=limits) as http,
    ):
        try:
            with pytest.raises(PlatformUnavailableError, match=r"took longer than 0\.3 s"):
                http.json("GET", "/x")
        finally:
            ended.set()


def test_a_proxy_that_drips_is_left_when_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()
    drip = dripping(b"HTTP/1.1 200 OK\r\n", ended)

    def serve(connection: socket.socket) -> None:
        request_from(connection)
        drip(connection)

    with listening(serve) as port:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
        try:
            with (
                client("https://catalog.example", limits=LIMITS._replace(seconds=0.3)) as http,
                pytest.raises(PlatformUnavailableError, match=r"took longer than 0\.3 s"),
            ):
                http.json("GET", "/x")
        finally:
            ended.set()


def test_who_waits_for_an_answer_waits_no_longer_than_asked_for() -> None:
    ended = threading.Event()
    with asked(dripping(CHUNKED, ended)) as http:
        try:
            with (
                impatient(0.3),
                pytest.raises(PlatformUnavailableError, match="did not answer in time"),
            ):
                http.json("GET", "/x")
        finally:
            ended.set()


def test_cookies_do_not_pile_up() -> None:
    requests: list[bytes] = []

    def serve(connection: socket.socket) -> None:
        while head := request_from(connection):
            requests.append(head)
            names = range(50 * len(requests), 50 * len(requests) + 50)
            cookies = b"".join(b"Set-Cookie: name%d=value\r\n" % number for number in names)
            connection.sendall(HEAD + cookies + b"Content-Length: 2\r\n\r\n{}")

    with listening(serve) as port, client(f"http://127.0.0.1:{port}") as http:
        for _ in range(8):
            http.json("GET", "/x")
    assert max(head.count(b"=value") for head in requests) == 100


PLATFORMS: Mapping[str, Callable[[str], dict[str, JsonValue]]] = {
    "datahub": lambda url: {"gms_server": url},
    "openmetadata": lambda url: {"server": url},
    "atlas": lambda url: {"url": url, "attempts": 1},
    "amundsen": lambda url: {"neo4j_url": url},
}


@pytest.mark.parametrize("name", PLATFORMS)
def test_each_catalog_has_settings_for_the_limits(name: str, server: ScriptedServer) -> None:
    server.answer(Reply(body=b'{"a": "' + b"x" * 3_000 + b'"}'))
    settings = {**PLATFORMS[name](server.url), "max_response_bytes": 2_000}
    platform = PlatformFactory.handler(name).from_config(settings)
    try:
        with pytest.raises(PlatformAnswerError, match="larger than 2,000 bytes") as raised:
            platform.reached()
    finally:
        platform.close()
    assert f"platform_config.{name}.max_response_bytes" in str(raised.value.hint)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_a_compressed_bomb_takes_no_more_memory_than_the_limit(tmp_path: Path) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    head = packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(bytes(MEGABYTE)) + packer.flush(zlib.Z_FULL_FLUSH)
    bomb = head + block * 2048
    with scripted_server() as server:
        server.answer(Reply(body=bomb, headers={"Content-Encoding": "gzip"}))
        script = str(TESTS / "hostile_memory.py")
        command = [sys.executable, script, "answer", server.url]
        done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path)
    peak, told = done.stdout.split(" ", 1)
    assert "unpacks to more than" in told
    assert int(peak) < 200 * MEGABYTE
