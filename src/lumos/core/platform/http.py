"""The one way in which adapters speak HTTP to a catalog.

It asks again what is safe to ask again, for as long as its budget lasts, and turns whatever goes
wrong into one clear line. No line holds a token or a parameter. Of an answer it holds the message
with which the server refuses a request, in short and without secrets (`server_message.py`).
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from types import TracebackType
from typing import TYPE_CHECKING, Final, NamedTuple, Self, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import orjson

from lumos import __version__
from lumos.core.certificates import certificate_problem
from lumos.core.errors import (
    ConfigurationError,
    InvalidModelError,
    MissingExtraError,
    PlatformAnswerError,
    PlatformAuthError,
    PlatformCertificateError,
    PlatformConflictError,
    PlatformError,
    PlatformFailureError,
    PlatformForbiddenError,
    PlatformNotFoundError,
    PlatformUnavailableError,
)
from lumos.core.events import emit, since
from lumos.core.http.bounds import (
    DEFAULT_LIMITS,
    AnswerLimits,
    OverLimitError,
    require_small_answer,
)
from lumos.core.platform.login import TOKEN, Login, server_of
from lumos.core.platform.server_message import server_message
from lumos.core.platform.threads import mapped
from lumos.core.platform.unreadable import answer_to

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.http.connections import Answer, LimitError, Request, TransportError

T = TypeVar("T")
R = TypeVar("R")
JSON: Final = "application/json"
OK: Final = (HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.ACCEPTED, HTTPStatus.NO_CONTENT)
DEFAULT_TIMEOUT: Final = 30.0
_REPEATABLE: Final = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})
_LONGEST_PATH: Final = 120
_SLOW_SECONDS: Final = 5.0
"""From here on a request is logged as slow."""
_PATH_SAFE: Final = "%/?:@!$&'()*+,;=~-._[]|^\\"
_COMMON: Final[Mapping[str, str]] = {
    "Accept": JSON,
    "Accept-Encoding": "gzip, deflate",
    "User-Agent": f"lumos/{__version__}",
}

# The command line reports the last failure; repeats go to the log only.
logging.getLogger("stamina").addHandler(logging.NullHandler())


class RetryPolicy(NamedTuple):
    """How often and how patiently a request is tried again."""

    attempts: int = 6
    """How often one request is sent at most."""
    first_wait: float = 0.2
    longest_wait: float = 10.0
    longest_retry_after: float = 120.0
    """The longest wait a server may ask for; one that asks for more counts as unavailable."""
    budget: int = 1_000
    """How many repeats all requests of a run may need together."""


DEFAULT_RETRIES: Final = RetryPolicy()
_ATTEMPTS_IF_IMPATIENT: Final = 2
_PATIENCE: ContextVar[float | None] = ContextVar("patience", default=None)
_AT_ONCE: ContextVar[bool] = ContextVar("failing at once", default=False)


@contextmanager
def impatient(seconds: float) -> Iterator[None]:
    """Let requests of the block wait so long at most, and be repeated once: somebody watches."""
    token = _PATIENCE.set(seconds)
    try:
        yield
    finally:
        _PATIENCE.reset(token)


@contextmanager
def failing_at_once() -> Iterator[None]:
    """Let a request of the block that the catalog fails at not be repeated."""
    token = _AT_ONCE.set(True)
    try:
        yield
    finally:
        _AT_ONCE.reset(token)


class CatalogHttp:
    """A connection to the HTTP interface of one catalog; it may be used from several threads."""

    def __init__(
        self,
        base_url: str,
        *,
        name: str,
        headers: Mapping[str, str] | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        verify: bool | str = True,
        retries: RetryPolicy = DEFAULT_RETRIES,
        connections: int = 32,
        login: Login = TOKEN,
        limits: AnswerLimits = DEFAULT_LIMITS,
    ) -> None:
        """Get ready; nothing is sent yet.

        Args:
            base_url: where the interface is; paths are appended to it.
            name: what messages call the catalog.
            headers: sent with every request, such as `Authorization`; they are never shown.
            timeout: how many seconds connecting, and each wait for more bytes, may take.
            verify: whether the certificate is checked, or a file of authorities to trust.
            retries: how often to try again.
            connections: how many requests may be under way at a time.
            login: what messages say where the catalog does not take who asks.
            limits: how large an answer may be, and how long one request may take.

        Raises:
            ConfigurationError: the address is none, or the file of authorities cannot be read.
            MissingExtraError: the packages for HTTP are not installed.
        """
        self._name = name
        self._login = login
        self._retries = retries
        self._timeout = timeout
        self._limits = limits
        self._secrets = _secrets_in(headers or {})
        self._left = retries.budget  # threads may overdraw it by one request each
        place = _checked_place(base_url, name)
        self._server = server_of(place)
        try:
            import stamina

            from lumos.core.http import connections as wire
        except ModuleNotFoundError as error:
            raise MissingExtraError(
                f"platform '{name}': the package {error.name} is not installed",
                hint=f"install it with: pip install 'lumos[{name}]'",
            ) from error
        self._wire = wire
        self._stamina = stamina
        self._path = quote(urlsplit(place).path, safe=_PATH_SAFE)
        try:
            self._connections = wire.Connections(
                place,
                headers={**_COMMON, **(headers or {})},
                verify=verify,
                most=connections,
                limits=limits,
            )
        except wire.ProxyError as error:
            raise ConfigurationError(
                f"platform '{name}': the proxy for {self._server} cannot be used: {error}",
                hint="set HTTPS_PROXY to an address with http://, or name the server in NO_PROXY",
            ) from None
        except (OSError, ValueError) as error:
            raise ConfigurationError(
                f"platform '{name}': the connection cannot be made from its settings "
                f"({type(error).__name__})",
                hint="check the token, the headers and the file of certificate authorities",
            ) from None

    def json(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str | int | bool | list[str]] | None = None,
        body: object = None,
        ok: Collection[int] = OK,
        content_type: str = JSON,
        idempotent: bool | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> JsonValue | None:
        """Send one request and return the JSON of its answer, or None where that is empty.

        Args:
            method: such as `GET`.
            path: below the base URL; parts from outside are percent-encoded by the caller.
            params: the query.
            body: sent as JSON; None sends no body.
            ok: the statuses that are no error.
            content_type: of the body.
            idempotent: whether it is safe to send it twice; by default what HTTP says of the
                method. A `POST` that only asks, or creates or updates by a key, is safe.
            headers: sent with this request only.

        Raises:
            PlatformUnavailableError: no answer, or refusal for now, also after trying again.
            PlatformCertificateError: the certificate of the server is not accepted.
            PlatformFailureError: the catalog failed at it, also after trying again.
            PlatformAuthError: the token is not accepted.
            PlatformForbiddenError: the token is accepted and does not allow this.
            PlatformNotFoundError: there is no such address or thing.
            PlatformConflictError: somebody else changed it meanwhile.
            PlatformAnswerError: the answer is a web page, a redirect or a broken document, or
                larger than the limits allow.
            PlatformError: any other refusal.
        """
        sent = {"Content-Type": content_type} if body is not None else {}
        patience = math.inf if (set_to := _PATIENCE.get()) is None else set_to
        request = self._wire.Request(
            method.upper(),
            self._target(path, params),
            None if body is None else _encoded(body),
            {**sent, **headers} if headers else sent,
            min(patience, self._timeout),
            min(patience, self._limits.seconds),
        )
        safe = method.upper() in _REPEATABLE if idempotent is None else idempotent
        call = _Call(path, request, ok, safe)
        try:
            return self._once(call)
        except _AgainError as again:
            return self._again(call, again)

    def pages(
        self,
        method: str,
        path: str,
        *,
        following: Callable[[JsonValue | None], Mapping[str, str | int | bool] | None],
        params: Mapping[str, str | int | bool | list[str]] | None = None,
        body: object = None,
        idempotent: bool | None = None,
    ) -> Iterator[JsonValue]:
        """Yield pages of a list until `following` names no parameters for the next one.

        Raises:
            PlatformAnswerError: the catalog leads back to the page it has just given.
        """
        more: Mapping[str, str | int | bool] | None = {}
        while more is not None:
            page = self.json(
                method,
                path,
                params={**(params or {}), **more},
                body=body,
                idempotent=idempotent,
            )
            if page is None:
                return
            yield page
            with answer_to(self.where(method, path)):
                before, more = more, following(page)
            if more is not None and more == before:
                raise PlatformAnswerError(
                    f"{self.where(method, path)}: the list leads back to the same page",
                    hint="check the version of the catalog",
                )

    def map(self, act: Callable[[T], R], items: Iterable[T], *, workers: int = 8) -> Iterator[R]:
        """Yield what a function makes of each item, in their order, a few at a time at once."""
        return mapped(act, items, workers=workers)

    @property
    def place(self) -> str:
        """For messages: the catalog, and where it is."""
        return f"{self._name} at {self._server}"

    def where(self, method: str, path: str) -> str:
        """Return for messages what was asked of which server."""
        return f"{self._name}: {method} {_shown(path)} at {self._server}"

    def close(self) -> None:
        """Let go of the connections."""
        self._connections.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _target(self, path: str, params: Mapping[str, str | int | bool | list[str]] | None) -> str:
        """Return path and query as they are sent."""
        whole = f"{self._path}{quote(path.lstrip('/'), safe=_PATH_SAFE)}"
        if not params:
            return whole
        query = urlencode({name: _asked(value) for name, value in params.items()}, doseq=True)
        return f"{whole}{'&' if '?' in path else '?'}{query}"

    def _again(self, call: _Call, failed: _AgainError) -> JsonValue | None:
        """Go on with a call that was tried once, which most calls never need."""
        attempts = self._retries.attempts
        if _PATIENCE.get() is not None:
            attempts = min(attempts, _ATTEMPTS_IF_IMPATIENT)
        try:
            for attempt in self._stamina.retry_context(
                on=self._wait_before,
                attempts=attempts,
                timeout=None,
                wait_initial=self._retries.first_wait,
                wait_max=self._retries.longest_wait,
                wait_jitter=self._retries.first_wait,
            ):
                with attempt:
                    try:
                        if attempt.num == 1:
                            raise failed
                        self._left -= 1
                        return self._once(call)
                    except _AgainError as again:
                        if attempt.num < attempts and self._wait_before(again) is not False:
                            wait = attempt.next_wait if again.after is None else again.after
                            self._log_retry(call, again, attempt=attempt.num, wait=wait)
                        raise
        except _AgainError as again:
            raise again.error from again.__cause__
        raise AssertionError("a retry ends by returning or raising")  # pragma: no cover

    def _log_retry(self, call: _Call, again: _AgainError, *, attempt: int, wait: float) -> None:
        method = call.request.method
        emit(
            "http.retried",
            platform=self._name,
            method=method,
            server=self._server,
            reason=again.error.message.removeprefix(f"{self.where(method, call.path)}: "),
            attempt=attempt,
            wait_seconds=round(wait, 3),
        )

    def _log_if_slow(self, call: _Call, seconds: float) -> None:
        if seconds >= _SLOW_SECONDS:
            emit(
                "http.slow",
                platform=self._name,
                method=call.request.method,
                server=self._server,
                path=_shown(call.path),
                seconds=seconds,
            )

    def _once(self, call: _Call) -> JsonValue | None:
        began = time.monotonic()
        try:
            answer = self._connections.send(call.request)
        except self._wire.LimitError as error:
            raise self._over_limit(call, error) from error
        except self._wire.TransportError as error:
            if isinstance(error, self._wire.CertificateError):
                raise self._untrusted(call, error) from error
            failed = self._unreached(call, error)
            if call.repeatable or isinstance(error, self._wire.UnreachedError):
                raise _AgainError(failed) from error
            raise failed from error
        finally:
            self._log_if_slow(call, since(began))
        if answer.status not in call.ok:
            raise self._refused(call, answer)
        return self._content(call, answer)

    def _content(self, call: _Call, answer: Answer) -> JsonValue | None:
        if not answer.content.strip():
            return None
        kind = _kind(answer)
        if kind != JSON and not kind.endswith("+json"):
            what = "a web page" if "html" in kind else "no JSON"
            raise self._odd(call, f"the answer is {what}", "check that the URL is the API's")
        try:
            require_small_answer(answer.content, self._limits)
            content: JsonValue = orjson.loads(answer.content)
        except OverLimitError as error:
            raise self._over_limit(call, self._wire.LimitError(error)) from error
        except orjson.JSONDecodeError:
            broken = self._odd(call, "the answer is broken off or no JSON", "run again")
            raise (_AgainError(broken) if call.repeatable else broken) from None
        return content

    def _refused(self, call: _Call, answer: Answer) -> Exception:
        status = answer.status
        where = self.where(call.request.method, call.path)
        said = server_message(answer.content, _kind(answer), secrets=self._secrets)
        told = f"({status}): {said}" if said else f"({status})"
        if status in _FOR_NOW:
            after = _retry_after(answer)
            asked = "" if after is None else f" and asks to wait {after:,.0f} s"
            busy = PlatformUnavailableError(
                f"{where}: the catalog refused for now ({status}){asked}", hint="run again later"
            )
            again = call.repeatable or status in _NOT_DONE
            return _AgainError(busy, after=after) if again else busy
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            failed = PlatformFailureError(
                f"{where}: the catalog failed at it {told}",
                hint="see the catalog's own log; run again later",
            )
            return _AgainError(failed) if call.repeatable and not _AT_ONCE.get() else failed
        if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
            return self._odd(
                call, f"the catalog leads elsewhere ({status})", "check the URL and the token"
            )
        if status == HTTPStatus.UNAUTHORIZED:
            return PlatformAuthError(
                f"{where}: {self._login.refused} {told}", hint=self._login.hint
            )
        if status == HTTPStatus.FORBIDDEN:
            return PlatformForbiddenError(f"{where}: {self._login.forbidden} {told}", hint=_RIGHT)
        known = _REFUSALS.get(status)
        if known is None:
            return PlatformError(
                f"{where}: the catalog refused it {told}",
                hint="check the catalog's version and its own log",
            )
        kind, reason, hint = known
        return kind(f"{where}: {reason} {told}", hint=hint)

    def _unreached(self, call: _Call, error: TransportError) -> PlatformUnavailableError:
        if isinstance(error, self._wire.UnreachedError):
            reason = "the catalog cannot be reached"
        elif isinstance(error, self._wire.TooSlowError):
            reason = "the catalog did not answer in time"
        else:
            reason = "the connection broke off"
        return PlatformUnavailableError(
            f"{self.where(call.request.method, call.path)}: {reason}",
            hint="check the URL of the platform, the network and that the server runs",
        )

    def _untrusted(self, call: _Call, error: TransportError) -> PlatformCertificateError:
        """Return the error for a certificate; it is as wrong at the next try, so there is none."""
        authority = f"platform_config.{self._name}.verify, or SSL_CERT_FILE"
        reason, hint = certificate_problem(str(error), authority=authority) or (
            "its certificate is not accepted",
            f"check it, or name its authority with {authority}",
        )
        return PlatformCertificateError(
            f"{self.where(call.request.method, call.path)}: {reason}", hint=hint
        )

    def _over_limit(self, call: _Call, error: LimitError) -> PlatformError:
        """Name the limit and its setting; the request is not repeated, as it would end alike."""
        where = self.where(call.request.method, call.path)
        too_slow = error.setting == "request_seconds"
        if too_slow and _PATIENCE.get() is not None:  # the limit is the caller's, not the setting's
            return self._unreached(call, self._wire.TooSlowError(error.reason))
        hint = "check that the URL is the catalog's"
        if error.setting is not None:
            hint += f"; if it is, raise platform_config.{self._name}.{error.setting}"
        kind = PlatformUnavailableError if too_slow else PlatformAnswerError
        return kind(f"{where}: {error.reason}", hint=hint)

    def _odd(self, call: _Call, reason: str, hint: str) -> PlatformAnswerError:
        return PlatformAnswerError(
            f"{self.where(call.request.method, call.path)}: {reason}", hint=hint
        )

    def _wait_before(self, error: Exception) -> bool | float:
        """Return how long to wait before a repeat, or that there is to be none."""
        if not isinstance(error, _AgainError):
            return False
        if error.after is not None and error.after > self._retries.longest_retry_after:
            return False
        if self._left <= 0:
            return False
        return True if error.after is None else error.after


class _Call(NamedTuple):
    """A request, and what is known of it."""

    path: str
    request: Request
    ok: Collection[int]
    repeatable: bool


class _AgainError(Exception):
    """A failure that may not happen again."""

    def __init__(self, error: PlatformError, *, after: float | None = None) -> None:
        super().__init__(error.message)
        self.error = error
        self.after = after


_FOR_NOW = frozenset({
    HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.LOCKED, HTTPStatus.TOO_EARLY,
    HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
})  # fmt: skip
_NOT_DONE = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})
"""Refused before anything was done, so that any request may be sent again."""
_PUBLIC: Final = frozenset({"Basic", "Bearer", JSON})
_RIGHT = "give its user the right to do this in the catalog"
_VERSION = "check the catalog's version"
_REFUSALS: Final[Mapping[int, tuple[type[PlatformError], str, str]]] = {
    404: (PlatformNotFoundError, "there is no such thing", f"check the URL; {_VERSION}"),
    405: (PlatformNotFoundError, "the address takes no such request", f"check the URL; {_VERSION}"),
    409: (PlatformConflictError, "it was changed by somebody else meanwhile", "run again"),
    412: (PlatformConflictError, "it was changed by somebody else meanwhile", "run again"),
    413: (PlatformError, "the request is too large", "make the batches smaller"),
    415: (PlatformError, "the catalog does not take this form of body", _VERSION),
}  # fmt: skip


def _secrets_in(headers: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of headers, and the words of them: a scheme such as Bearer is public."""
    words = {word for value in headers.values() for word in (value, *value.split())}
    return tuple(sorted(words - _PUBLIC, key=len, reverse=True))


def _asked(value: str | int | bool | list[str]) -> str | int | list[str]:
    return str(value).lower() if isinstance(value, bool) else value


def _encoded(body: object) -> bytes:
    try:
        return orjson.dumps(body)
    except TypeError as error:
        raise InvalidModelError(f"not expressible as JSON: {error}") from None


def _shown(path: str) -> str:
    """Return a path for messages: without a query, and not without end."""
    plain = f"/{path.partition('?')[0].lstrip('/')}"
    return plain if len(plain) <= _LONGEST_PATH else f"{plain[:_LONGEST_PATH]}…"


def _kind(answer: Answer) -> str:
    header: str = answer.headers.get("Content-Type", JSON)
    return header.partition(";")[0].strip().lower()


def _retry_after(answer: Answer) -> float | None:
    """Return the seconds that a server asks to wait, given as such or as a date."""
    given = str(answer.headers.get("Retry-After", "")).strip()
    with suppress(ValueError, OverflowError):
        seconds = float(given)
        return max(0.0, seconds) if math.isfinite(seconds) else None
    with suppress(ValueError, TypeError, OverflowError):
        moment = parsedate_to_datetime(given)
        zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return max(0.0, (zoned - datetime.now(UTC)).total_seconds())
    return None


def _checked_place(base_url: str, name: str) -> str:
    """Return a base URL that paths can be appended to."""
    try:
        parts = urlsplit(base_url)
        whole = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        whole = None
    if not whole:
        raise ConfigurationError(
            f"platform '{name}': its URL is not of the form http(s)://HOST[:PORT][/PATH]",
            hint=f"set the URL of platform_config.{name}",
        )
    return f"{base_url.rstrip('/')}/"
