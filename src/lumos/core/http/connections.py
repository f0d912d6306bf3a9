"""Connections to one server: requests go out and whole answers come back, within limits.

urllib3 keeps the connections and speaks HTTP/1.1, TLS and to proxies. Added here are the limits:
how much of an answer is taken, and by when a request is over, whatever the server does.
"""

from __future__ import annotations

import base64
import os
import re
import sys
import time
import zlib
from collections.abc import Mapping
from contextvars import ContextVar
from http.client import HTTPException
from http.cookiejar import CookieJar
from ssl import SSLCertVerificationError
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import Request as CookieRequest
from urllib.request import getproxies, proxy_bypass

from typing_extensions import override
from urllib3 import (
    HTTPConnectionPool,
    HTTPHeaderDict,
    HTTPSConnectionPool,
    PoolManager,
    ProxyManager,
)
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import EmptyPoolError, HTTPError

from lumos.core.http.bounds import (
    DEFAULT_LIMITS,
    AnswerLimits,
    BoundedResponse,
    Bounds,
    OverLimitError,
    StalledError,
    reach,
    read_body,
    send_all,
)

if TYPE_CHECKING:
    import socket
    import ssl

_KEPT_SECONDS: Final = 5.0
"""How long a connection may be idle: what is between here and the server may forget it."""
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
    most_bytes: int | None = None
    """Of a longer body only the beginning is read, at least that much; no limit where not given."""


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: HTTPHeaderDict
    content: bytes


class ProxyError(ValueError):
    """The proxy that the environment names cannot be used; the text says why."""


_BOUNDS: ContextVar[Bounds] = ContextVar("of the request under way")


class _Bounded(HTTPConnection):
    """A connection that keeps to the bounds of the request under way."""

    _used_at = 0.0

    @override
    def connect(self) -> None:
        try:
            with _BOUNDS.get().watched():
                super().connect()
        except SSLCertVerificationError as error:
            raise CertificateError(str(error)) from error
        except (OSError, HTTPException, HTTPError, StalledError, UnicodeError) as error:
            raise UnreachedError(type(error).__name__) from error

    @override
    def send(self, data: bytes) -> None:  # type: ignore[override]
        if self.is_closed:
            self.connect()
        send_all(self.sock, data, _BOUNDS.get())

    @override
    def _new_conn(self) -> socket.socket:
        return reach((self._dns_host, self.port), _BOUNDS.get())

    @override
    def response_class(  # type: ignore[override]
        self, connection: socket.socket, *, method: str | None = None
    ) -> BoundedResponse:
        self._used_at = time.monotonic()
        return BoundedResponse(connection, _BOUNDS.get(), method=method)

    @property
    @override
    def is_connected(self) -> bool:
        return time.monotonic() - self._used_at < _KEPT_SECONDS and super().is_connected


class _BoundedTls(_Bounded, HTTPSConnection):
    pass


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Bounded


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _BoundedTls

    @override
    def _validate_conn(self, conn: HTTPConnection) -> None:  # type: ignore[override]
        """Connect, without urllib3's warning where the settings ask for no check."""
        if conn.is_closed:
            conn.connect()


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
        authority = place.netloc.rpartition("@")[2].encode("idna").decode("ascii")
        encrypted = place.scheme == "https"
        checked = encrypted or isinstance(verify, str)  # a wrong file is reported at once
        trust = _trusted(verify) if checked else None
        self._origin = f"{place.scheme}://{authority}"
        self._common = _checked({"Host": authority, **_credentials(place), **headers})
        self._limits = limits
        self._cookies = CookieJar()
        self._has_cookies = False
        proxy = _proxy_for(place.scheme, authority)
        self._is_forwarded = proxy is not None and not encrypted
        if proxy is None:
            pools = PoolManager(maxsize=most, block=True, ssl_context=trust)
        else:
            pools = ProxyManager(
                proxy.geturl(),
                maxsize=most,
                block=True,
                ssl_context=trust if encrypted else None,
                proxy_ssl_context=_trusted(True) if proxy.scheme == "https" else None,
                proxy_headers={"Proxy-Authorization": _basic(proxy)} if _has_user(proxy) else None,
            )
        pools.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}
        host = place.hostname or ""
        name = f"[{host}]" if ":" in host else host.encode("idna").decode("ascii")
        self._pool = pools.connection_from_host(name, place.port, place.scheme)

    def send(self, request: Request) -> Answer:
        """Send one request and return its whole answer.

        Raises:
            UnreachedError: nothing was sent.
            CertificateError: the certificate of the server is not accepted.
            TooSlowError: nothing came for too long.
            LimitError: the answer is too large, or took too long as a whole.
            BrokenOffError: the answer is not whole.
        """
        bounds = Bounds(request.timeout, seconds=request.seconds, limits=self._limits)
        token = _BOUNDS.set(bounds)
        try:
            answer = self._exchanged(request)
        except OverLimitError as error:
            raise LimitError(error) from error
        except StalledError as error:
            raise TooSlowError("nothing came") from error
        except EmptyPoolError as error:
            raise UnreachedError("all connections are in use") from error
        except (HTTPError, OSError, zlib.error, EOFError, ValueError) as error:
            raise BrokenOffError(type(error).__name__) from error
        finally:
            _BOUNDS.reset(token)
        if "Set-Cookie" in answer.headers:
            self._remember(request.target, answer)
        return answer

    def close(self) -> None:
        """Let go of the connections; those in use are closed when their answer is there."""
        self._pool.close()

    def _exchanged(self, request: Request) -> Answer:
        method, target, body, headers, timeout, _, most = request
        cookies = self._cookie_header(target) if self._has_cookies else {}
        response = self._pool.urlopen(
            method,
            f"{self._origin}{target}" if self._is_forwarded else target,
            body=body,
            headers={**self._common, **headers, **cookies},
            retries=False,
            redirect=False,
            assert_same_host=False,
            timeout=timeout,
            pool_timeout=timeout,  # type: ignore[arg-type] # a queue takes fractions too
            preload_content=False,
        )
        try:
            content = read_body(response, self._limits, most_bytes=most)
        except BaseException:
            response.close()
            raise
        finally:
            response.release_conn()
        return Answer(response.status, response.headers, content)

    def _cookie_header(self, target: str) -> dict[str, str]:
        asked = CookieRequest(f"{self._origin}{target}")  # noqa: S310 (nothing is opened by it)
        self._cookies.add_cookie_header(asked)
        given = asked.get_header("Cookie")
        return {"Cookie": given} if given else {}

    def _remember(self, target: str, answer: Answer) -> None:
        asked = CookieRequest(f"{self._origin}{target}")  # noqa: S310 (nothing is opened by it)
        self._cookies.extract_cookies(_CookieHeaders(answer.headers), asked)  # type: ignore[arg-type]
        if len(self._cookies) > _MOST_COOKIES:  # a server that sets more makes requests grow
            self._cookies.clear()
        self._has_cookies = len(self._cookies) > 0


class _CookieHeaders(NamedTuple):
    """What a jar of cookies asks of an answer."""

    headers: HTTPHeaderDict

    def info(self) -> HTTPHeaderDict:
        return self.headers


def _checked(headers: Mapping[str, str]) -> Mapping[str, str]:
    for name, value in headers.items():
        wrong = not _HEADER_NAME.fullmatch(name) or _FORBIDDEN.search(value)
        if wrong or not value.isascii():
            raise ValueError("a header with characters that headers may not have")
    return headers


def _credentials(place: SplitResult) -> dict[str, str]:
    return {"Authorization": _basic(place)} if _has_user(place) else {}


def _has_user(place: SplitResult) -> bool:
    return bool(place.username or place.password)


def _basic(place: SplitResult) -> str:
    both = f"{unquote(place.username or '')}:{unquote(place.password or '')}"
    return f"Basic {base64.b64encode(both.encode()).decode()}"


def _proxy_for(scheme: str, authority: str) -> SplitResult | None:
    """Return the proxy that the environment names for a server."""
    named = getproxies()
    address = named.get(scheme) or named.get("all")
    if not address or proxy_bypass(authority):
        return None
    place = urlsplit(address if "://" in address else f"http://{address}")
    if place.scheme not in {"http", "https"} or not place.hostname:
        raise ProxyError("it is none of HTTP")
    if place.scheme == scheme == "https":
        raise ProxyError("it is itself spoken to by TLS, which https through it cannot be")
    return place


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
