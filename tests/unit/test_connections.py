"""Connections to a server on loopback: kept, encrypted, through a proxy, and given up."""

from __future__ import annotations

import gzip
import select
import socket
import ssl
import threading
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from lumos.core.errors import (
    ConfigurationError,
    PlatformCertificateError,
    PlatformError,
    PlatformUnavailableError,
)
from lumos.core.platform.http import CatalogHttp, RetryPolicy
from raw_server import listening, request_from
from scripted_server import Reply, ScriptedServer, scripted_server

ONCE = RetryPolicy(attempts=1)
PATIENT = 300.0
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


@pytest.fixture(autouse=True)
def _plain_and_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lumos.core.http.connections._KEPT_SECONDS", 3600.0)
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with scripted_server() as running:
        yield running


def client(url: str, *, verify: bool | str = True) -> CatalogHttp:
    return CatalogHttp(url, name="cat", timeout=PATIENT, retries=ONCE, verify=verify)


def test_one_connection_serves_many_requests() -> None:
    opened: list[int] = []

    def serve(connection: socket.socket) -> None:
        opened.append(1)
        while request_from(connection):
            connection.sendall(ANSWER)

    with listening(serve) as port, client(f"http://127.0.0.1:{port}") as http:
        assert [http.json("PUT", "/x", body={"n": n}) for n in range(20)] == [{}] * 20
    assert len(opened) == 1


def test_a_connection_that_the_server_closed_while_idle_is_replaced() -> None:
    closed = threading.Semaphore(0)

    def serve(connection: socket.socket) -> None:
        request_from(connection)
        connection.sendall(ANSWER)
        connection.close()
        closed.release()

    with listening(serve) as port, client(f"http://127.0.0.1:{port}") as http:
        for _ in range(5):
            assert http.json("POST", "/x", body={}) == {}
            assert closed.acquire(timeout=PATIENT)


def test_a_connection_that_was_idle_for_long_is_not_used_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("lumos.core.http.connections._KEPT_SECONDS", 0.0)
    opened: list[int] = []

    def serve(connection: socket.socket) -> None:
        opened.append(1)
        while request_from(connection):
            connection.sendall(ANSWER)

    with listening(serve) as port, client(f"http://127.0.0.1:{port}") as http:
        assert [http.json("GET", "/x") for _ in range(3)] == [{}] * 3
    assert len(opened) == 3


def test_an_answer_that_ends_the_connection_is_read_to_its_end() -> None:
    def serve(connection: socket.socket) -> None:
        request_from(connection)
        connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n[1, 2")
        connection.sendall(b", 3]")

    with listening(serve) as port, client(f"http://127.0.0.1:{port}") as http:
        assert http.json("GET", "/x") == [1, 2, 3]
        assert http.json("GET", "/x") == [1, 2, 3]


def test_an_answer_in_chunks_is_put_together() -> None:
    head = (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )

    def serve(connection: socket.socket) -> None:
        while request_from(connection):
            connection.sendall(head + b"3\r\n[1,\r\n2\r\n2]\r\n0\r\n\r\n")

    with listening(serve) as port, client(f"http://127.0.0.1:{port}") as http:
        assert [http.json("GET", "/x") for _ in range(3)] == [[1, 2]] * 3


def test_a_request_that_is_refused_before_it_was_read_is_told_by_its_refusal() -> None:
    refusal = b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

    def serve(connection: socket.socket) -> None:
        connection.recv(1000)
        connection.sendall(refusal)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(1 << 20):
            pass

    with (
        listening(serve) as port,
        client(f"http://127.0.0.1:{port}") as http,
        pytest.raises(PlatformError, match="the request is too large"),
    ):
        http.json("PUT", "/x", body=["x" * 8_000_000])


@pytest.mark.parametrize("answer", [b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 abc\r\n\r\n", b""])
def test_what_is_no_http_is_told(answer: bytes) -> None:
    def serve(connection: socket.socket) -> None:
        request_from(connection)
        connection.sendall(answer)

    with (
        listening(serve) as port,
        client(f"http://127.0.0.1:{port}") as http,
        pytest.raises(PlatformUnavailableError, match="the connection broke off"),
    ):
        http.json("GET", "/x")


@pytest.mark.parametrize(
    ("coding", "packed"),
    [("gzip", gzip.compress), ("deflate", zlib.compress)],
    ids=["gzip", "deflate"],
)
def test_a_compressed_answer_is_unpacked(
    server: ScriptedServer, coding: str, packed: Callable[[bytes], bytes]
) -> None:
    whole = packed(b'{"a": 1}')
    headers = {"Content-Encoding": coding}
    server.answer(Reply(body=whole, headers=headers), Reply(body=whole[:-3], headers=headers))
    with client(server.url) as http:
        assert http.json("GET", "/x") == {"a": 1}
        with pytest.raises(PlatformUnavailableError, match="broke off"):
            http.json("GET", "/x")
    assert coding in server.seen[0].headers["Accept-Encoding"]


def test_a_session_that_the_server_begins_is_kept(server: ScriptedServer) -> None:
    server.answer(Reply(headers={"Set-Cookie": "SESSION=one; Path=/api; HttpOnly"}), Reply())
    with client(f"{server.url}/api") as http:
        http.json("GET", "/x")
        http.json("GET", "/y")
    assert [seen.headers.get("Cookie") for seen in server.seen] == [None, "SESSION=one"]


def test_a_user_in_the_url_is_sent_as_one(server: ScriptedServer) -> None:
    url = server.url.replace("//", "//ada:p%40ss@")
    with client(url) as http:
        http.json("GET", "/x")
    (seen,) = server.seen
    assert seen.headers["Authorization"] == f"Basic {b64encode(b'ada:p@ss').decode()}"
    assert "ada" not in seen.headers["Host"]


def test_what_urls_may_not_hold_is_encoded(server: ScriptedServer) -> None:
    with client(server.url) as http:
        http.json("GET", "/a b/ä%2Fc", params={"q": ["x y", "ü&"], "n": 1})
    assert server.seen[0].path == "/a%20b/%C3%A4%2Fc?q=x+y&q=%C3%BC%26&n=1"


def test_a_body_that_is_empty_has_a_length(server: ScriptedServer) -> None:
    with client(server.url) as http:
        http.json("POST", "/x")
        http.json("GET", "/x")
    assert [seen.headers.get("Content-Length") for seen in server.seen] == ["0", None]


@pytest.mark.parametrize("token", ["a\r\nX-Other: b", "a\nb", "tökén\u2713"])
def test_a_token_that_no_header_can_hold_is_told_by_the_settings(token: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot be made") as raised:
        CatalogHttp("http://h", name="cat", headers={"Authorization": f"Bearer {token}"})
    assert token not in str(raised.value)


def test_a_proxy_is_asked_for_the_whole_address(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", server.url.replace("//", "//me:secret@"))
    with client("http://catalog.example:8080/api") as http:
        assert http.json("GET", "/v1/x", params={"n": 1}) == {}
    (seen,) = server.seen
    assert seen.path == "http://catalog.example:8080/api/v1/x?n=1"
    assert seen.headers["Host"] == "catalog.example:8080"
    assert seen.headers["Proxy-Authorization"] == f"Basic {b64encode(b'me:secret').decode()}"


def test_a_server_that_is_excepted_is_not_asked_through_a_proxy(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "example.com,127.0.0.1")
    with client(server.url) as http:
        assert http.json("GET", "/x") == {}


@pytest.mark.parametrize(
    ("proxy", "url", "why"),
    [
        ("socks5://me:hunter2@h:1", "http://c", "none of HTTP"),
        ("https://me:hunter2@h:1", "https://c", "itself spoken to by TLS"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_told(
    monkeypatch: pytest.MonkeyPatch, proxy: str, url: str, why: str
) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    with pytest.raises(ConfigurationError) as raised:
        client(url)
    assert f"the proxy for {url} cannot be used: it is {why}" in raised.value.message
    assert "NO_PROXY" in str(raised.value.hint)
    assert "hunter2" not in f"{raised.value} {raised.value.hint}"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with a certificate for `localhost`, signed by itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    path.write_bytes(made.public_bytes(serialization.Encoding.PEM) + secret)
    return path


@pytest.fixture
def encrypted(certificate: Path) -> Iterator[int]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def serve(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as inside:
            while request_from(inside):
                inside.sendall(ANSWER)

    with listening(serve) as port:
        yield port


def test_a_certificate_is_checked_by_the_authorities_that_are_named(
    encrypted: int, certificate: Path
) -> None:
    url = f"https://localhost:{encrypted}"
    with client(url, verify=str(certificate)) as http:
        assert [http.json("PUT", "/x", body=[n]) for n in range(3)] == [{}] * 3
    with client(url, verify=False) as http:
        assert http.json("GET", "/x") == {}
    with client(url) as http, pytest.raises(PlatformCertificateError, match="is not trusted"):
        http.json("GET", "/x")


def test_a_certificate_for_another_name_is_not_accepted(encrypted: int, certificate: Path) -> None:
    with (
        client(f"https://127.0.0.1:{encrypted}", verify=str(certificate)) as http,
        pytest.raises(PlatformCertificateError, match="is for another name"),
    ):
        http.json("GET", "/x")


def test_an_encrypted_server_is_reached_through_a_tunnel(
    encrypted: int, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bytes] = []

    def tunnel(connection: socket.socket) -> None:
        asked.append(request_from(connection))
        with socket.create_connection(("127.0.0.1", encrypted)) as other:
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            while ready := select.select([connection, other], [], [])[0]:
                for end in ready:
                    data = end.recv(65536)
                    if not data:
                        return
                    (other if end is connection else connection).sendall(data)

    with listening(tunnel) as port:
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:secret@127.0.0.1:{port}")
        with client("https://localhost:7443", verify=str(certificate)) as http:
            assert [http.json("PUT", "/x", body=[n]) for n in range(3)] == [{}] * 3
    (head,) = asked
    assert head.startswith(b"CONNECT localhost:7443 ")
    assert b"Proxy-Authorization: Basic " in head


def test_no_more_connections_are_opened_than_allowed() -> None:
    lock, together, most = threading.Lock(), 0, 0

    def serve(connection: socket.socket) -> None:
        nonlocal together, most
        while request_from(connection):
            with lock:
                together += 1
                most = max(most, together)
            with lock:
                together -= 1
            connection.sendall(ANSWER)

    with (
        listening(serve) as port,
        CatalogHttp(
            f"http://127.0.0.1:{port}",
            name="cat",
            timeout=PATIENT,
            retries=ONCE,
            connections=2,
        ) as http,
    ):
        answers = http.map(lambda n: http.json("PUT", "/x", body=n), range(60), workers=8)
        assert [*answers] == [{}] * 60
    assert most <= 2
