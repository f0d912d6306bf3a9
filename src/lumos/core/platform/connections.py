"""Connections to the server of one catalog: requests go out as bytes and answers come back whole.

It is the standard library's HTTP/1.1 with as little around it as there can be: a request that
waits 20 ms for its answer should not cost another one of CPU.
"""

from __future__ import annotations

import base64
import os
import re
import select
import sys
import time
import zlib
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from http.cookiejar import CookieJar
from ssl import SSLCertVerificationError
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import Request as CookieRequest
from urllib.request import getproxies, proxy_bypass

from lumos.core.platform.answer_limits import DEFAULT_LIMITS, AnswerLimits, OverLimitError
from lumos.core.platform.limited_reading import Deadline, LimitedSocket, reach, read_body

if TYPE_CHECKING:
    import socket
    import ssl
    from email.message import Message

_KEPT_SECONDS: Final = 5.0
"""How long a connection may be idle: what is between here and the server may forget it."""
_WITH_LENGTH: Final = frozenset({"POST", "PUT", "PATCH"})
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FORBIDDEN: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_AUTHORITIES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")
_MOST_COOKIES: Final = 100


class TransportError(Exception):
    """There is no whole answer."""


class UnreachedError(TransportError):
    """There was no connection, so that nothing was sent."""


class CertificateError(TransportError):
    """The server was reached, and its certificate is not accepted; the text says why."""


class TooSlowError(TransportError):
    """Nothing came for too long."""


class BrokenOffError(TransportError):
    """The connection ended before the answer did, or what came is no HTTP."""


class LimitError(TransportError):
    """The answer exceeds a limit of size or time; `setting` names the setting that raises it."""

    def __init__(self, error: OverLimitError) -> None:
        super().__init__(error.reason)
        self.reason = error.reason
        self.setting = error.setting


class Request(NamedTuple):
    """What is sent."""

    method: str
    target: str
    """Path and query, percent-encoded."""
    body: bytes | None
    headers: Mapping[str, str]
    timeout: float
    """The longest wait for the next bytes."""
    seconds: float = DEFAULT_LIMITS.seconds
    """The longest time for all of it."""


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: Message
    content: bytes


class ProxyError(ValueError):
    """The proxy that the environment names cannot be used; the text says why."""


class _Proxy(NamedTuple):
    host: str
    port: int
    headers: dict[str, str]
    encrypted: bool


class Connections:
    """Keeps connections to one server; it may be used from several threads."""

    def __init__(
        self,
        base_url: str,
        *,
        headers: Mapping[str, str],
        verify: bool | str,
        most: int,
        limits: AnswerLimits = DEFAULT_LIMITS,
    ) -> None:
        """Get ready; nothing is sent yet.

        Args:
            base_url: whose server is spoken to; a user and a password in it are sent as such.
            headers: sent with every request.
            verify: whether the certificate is checked, or a file of authorities to trust.
            most: how many requests may be under way at a time.
            limits: how much of an answer is taken.

        Raises:
            OSError: the file of authorities cannot be read.
            ProxyError: the proxy of the environment cannot be used.
            ValueError: a header cannot be used.
        """
        place = urlsplit(base_url)
        self._host = place.hostname or ""
        self._encrypted = place.scheme == "https"
        self._port = place.port or (443 if self._encrypted else 80)
        self._authority = place.netloc.rpartition("@")[2].encode("idna").decode("ascii")
        self._proxy = _proxy_for(place.scheme, self._authority)
        if self._proxy is not None and self._proxy.encrypted and self._encrypted:
            raise ProxyError("it is itself spoken to by TLS, which https through it cannot be")
        checked = self._encrypted or isinstance(verify, str)  # a wrong file is told at once
        self._trust = _trusted(verify) if checked else None
        common = {"Host": self._authority, **_credentials(place), **headers}
        if self._proxy is not None and not self._encrypted:
            common |= self._proxy.headers
        self._origin = f"{place.scheme}://{self._authority}"
        self._common = _lines(common)
        self._limits = limits
        self._free = BoundedSemaphore(most)
        self._idle: list[tuple[HTTPConnection, float]] = []
        self._cookies = CookieJar()
        self._has_cookies = False
        self._closed = False

    def send(self, request: Request) -> Answer:
        """Send one request and return its whole answer.

        Raises:
            UnreachedError: nothing was sent.
            CertificateError: the certificate of the server is not accepted.
            TooSlowError: nothing came for too long.
            LimitError: the answer is too large, or took too long as a whole.
            BrokenOffError: the answer is not whole.
        """
        sent = self._bytes_of(request)
        if not self._free.acquire(timeout=request.timeout):
            raise UnreachedError("all connections are in use")
        deadline = Deadline(request.seconds)
        try:
            connection = self._usable(request.timeout, deadline)
            try:
                wire = self._limited(connection, deadline, request.timeout)
                answer, again = _exchanged(wire, sent, request.method, limits=self._limits)
            except BaseException:
                connection.close()
                raise
            if again and not self._closed:
                self._idle.append((connection, time.monotonic()))
            else:
                connection.close()
        except OverLimitError as error:
            raise LimitError(error) from error
        except TimeoutError as error:
            if deadline.is_over():
                raise LimitError(deadline.passed()) from error
            raise TooSlowError(type(error).__name__) from error
        except (OSError, HTTPException, zlib.error, EOFError, ValueError) as error:
            raise BrokenOffError(type(error).__name__) from error
        finally:
            self._free.release()
        if "Set-Cookie" in answer.headers:
            self._remember(request.target, answer)
        return answer

    def close(self) -> None:
        """Let go of the connections; those in use are closed when their answer is there."""
        self._closed = True
        while self._idle:
            self._idle.pop()[0].close()

    def _bytes_of(self, request: Request) -> bytes:
        method, target, body, headers, *_ = request
        if self._has_cookies:
            headers = {**headers, **self._cookie_header(target)}
        if body is not None or method in _WITH_LENGTH:
            headers = {**headers, "Content-Length": str(len(body or b""))}
        where = f"{self._origin}{target}" if self._proxy and not self._encrypted else target
        first = f"{method} {where} HTTP/1.1\r\n".encode("ascii")
        return b"".join((first, self._common, _lines(headers), b"\r\n", body or b""))

    def _limited(
        self, connection: HTTPConnection, deadline: Deadline, timeout: float
    ) -> LimitedSocket:
        return LimitedSocket(connection.sock, deadline, timeout=timeout, limits=self._limits)

    def _usable(self, timeout: float, deadline: Deadline) -> HTTPConnection:
        while self._idle:
            try:
                connection, since = self._idle.pop()
            except IndexError:  # another thread took the last one
                break
            if time.monotonic() - since < _KEPT_SECONDS and _is_quiet(connection):
                return connection
            connection.close()
        return self._opened(timeout, deadline)

    def _opened(self, timeout: float, deadline: Deadline) -> HTTPConnection:
        host, port = self._host, self._port
        if self._proxy is not None:
            host, port = self._proxy.host, self._proxy.port
        connection: HTTPConnection
        if self._encrypted:
            connection = HTTPSConnection(host, port, timeout=timeout, context=self._trust)
        elif self._proxy is not None and self._proxy.encrypted:
            connection = HTTPSConnection(host, port, timeout=timeout, context=_trusted(True))
        else:
            connection = HTTPConnection(host, port, timeout=timeout)
        if self._proxy is not None and self._encrypted:
            connection.set_tunnel(self._host, self._port, headers=self._proxy.headers)
        self._limit_connecting(connection, timeout, deadline)
        try:
            connection.connect()
        except SSLCertVerificationError as error:
            connection.close()
            raise CertificateError(str(error)) from error
        except (OSError, HTTPException, UnicodeError) as error:
            connection.close()
            if deadline.is_over():
                raise deadline.passed() from error
            raise UnreachedError(type(error).__name__) from error
        return connection

    def _limit_connecting(
        self, connection: HTTPConnection, timeout: float, deadline: Deadline
    ) -> None:
        """Keep to the deadline with the search for an address and the answer of a proxy, too."""

        def connected(address: tuple[str, int], *_: object) -> socket.socket:
            return reach(address, deadline, timeout=timeout)

        def proxy_answer(wire: socket.socket, **options: str) -> HTTPResponse:
            limited = LimitedSocket(wire, deadline, timeout=timeout, limits=self._limits)
            return HTTPResponse(limited, **options)  # type: ignore[arg-type]

        vars(connection).update(_create_connection=connected, response_class=proxy_answer)

    def _cookie_header(self, target: str) -> dict[str, str]:
        asked = CookieRequest(f"{self._origin}{target}")  # noqa: S310 (nothing is opened by it)
        self._cookies.add_cookie_header(asked)
        given = asked.get_header("Cookie")
        return {"Cookie": given} if given else {}

    def _remember(self, target: str, answer: Answer) -> None:
        asked = CookieRequest(f"{self._origin}{target}")  # noqa: S310 (nothing is opened by it)
        self._cookies.extract_cookies(_Told(answer.headers), asked)  # type: ignore[arg-type]
        if len(self._cookies) > _MOST_COOKIES:  # a server that sets more makes requests grow
            self._cookies.clear()
        self._has_cookies = len(self._cookies) > 0


class _Told(NamedTuple):
    """What a jar of cookies asks of an answer."""

    headers: Message

    def info(self) -> Message:
        return self.headers


def _exchanged(
    wire: LimitedSocket, sent: bytes, method: str, *, limits: AnswerLimits
) -> tuple[Answer, bool]:
    """Return an answer, and whether the connection may be used again."""
    try:
        wire.send_all(sent)
        refused = None
    except (BrokenPipeError, ConnectionResetError) as error:
        refused = error  # a server may refuse a request before it has read all of it
    response = HTTPResponse(wire, method=method)  # type: ignore[arg-type]
    try:
        response.begin()
        wire.expect_body()
        content = read_body(response, limits)
    except (OSError, HTTPException):
        if refused is not None:
            raise refused from None
        raise
    finally:
        response.close()
    answer = Answer(response.status, response.headers, content)
    return answer, refused is None and not response.will_close


def _is_quiet(connection: HTTPConnection) -> bool:
    """Tell whether nothing came on an idle connection, not even its end."""
    poll = select.poll()
    poll.register(connection.sock, select.POLLIN)
    return not poll.poll(0)


def _lines(headers: Mapping[str, str]) -> bytes:
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or _FORBIDDEN.search(value):
            raise ValueError("a header with characters that headers may not have")
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode("ascii")


def _credentials(place: SplitResult) -> dict[str, str]:
    if not place.username and not place.password:
        return {}
    return {"Authorization": _basic(place)}


def _basic(place: SplitResult) -> str:
    both = f"{unquote(place.username or '')}:{unquote(place.password or '')}"
    return f"Basic {base64.b64encode(both.encode()).decode()}"


def _proxy_for(scheme: str, authority: str) -> _Proxy | None:
    """Return the proxy that the environment names for a server."""
    named = getproxies()
    address = named.get(scheme) or named.get("all")
    if not address or proxy_bypass(authority):
        return None
    place = urlsplit(address if "://" in address else f"http://{address}")
    if place.scheme not in {"http", "https"} or not place.hostname:
        raise ProxyError("it is none of HTTP")
    encrypted = place.scheme == "https"
    given = _basic(place) if place.username or place.password else None
    headers = {} if given is None else {"Proxy-Authorization": given}
    return _Proxy(place.hostname, place.port or (443 if encrypted else 80), headers, encrypted)


def _trusted(verify: bool | str) -> ssl.SSLContext:
    import ssl

    if isinstance(verify, str):
        return ssl.create_default_context(cafile=verify)
    if not verify:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    paths = ssl.get_default_verify_paths()
    chosen = sys.platform == "linux" or any(os.environ.get(name) for name in _AUTHORITIES)
    if chosen and (paths.cafile or paths.capath):
        return ssl.create_default_context()
    import truststore

    return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
