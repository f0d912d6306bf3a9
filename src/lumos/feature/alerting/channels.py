"""Sends messages: to webhooks by the bounded HTTP client of the catalogs, mail through Apprise.

Only addresses of the settings are written to, and no answer leads elsewhere.
"""

from __future__ import annotations

import logging
import re
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote, urlsplit

import orjson
from typing_extensions import override

from lumos import __version__
from lumos.core.certificates import certificate_problem
from lumos.core.errors import EXIT_UNREADABLE, LumosError, MissingExtraError
from lumos.core.http.bounds import AnswerLimits
from lumos.feature.alerting.messages import Message, in_slack
from lumos.feature.alerting.settings import EmailChannel, SlackChannel, WebhookChannel

if TYPE_CHECKING:
    from pydantic import JsonValue

ChannelSettings = WebhookChannel | SlackChannel | EmailChannel

_STATUS = re.compile(r"error=([0-9]{3})\b")
_ERROR = "Socket Exception"
_AUTHORITY = "SSL_CERT_FILE"
_LOGGERS = ("apprise", "requests", "urllib3")
_SECURITY = {"starttls": "starttls", "tls": "ssl", "none": "insecure"}
_COMMON = {"Accept": "*/*", "User-Agent": f"lumos/{__version__}"}
_PATH_SAFE = "%/?:@!$&'()*+,;=~-._[]|^\\"
_LARGEST_ANSWER = 1_000_000
_WAITS_IN_A_REQUEST = 3  # connecting, sending and receiving
_PORTS = {"starttls": 587, "tls": 465, "none": 25}
_sending = threading.Lock()


class DeliveryError(LumosError):
    """A channel did not take a message."""

    code = "LUM-420"
    exit_code = EXIT_UNREADABLE
    retryable = True


class NotTakenError(Exception):
    """Why a message was not taken, in words for people."""


class _Plugin(Protocol):
    def notify(self, *, body: str, title: str) -> bool: ...


def deliver(channel: ChannelSettings, message: Message) -> None:
    """Send a message through a channel.

    Raises:
        DeliveryError: it was not taken; the reason holds neither address nor secret.
        MissingExtraError: the library that sends is not installed.
    """
    reason = None
    with _sending, _captured_logs() as told:
        try:
            plugin = _plugin(channel, message)
            if not plugin.notify(body=_body(channel, message), title=message.title):
                reason = _reason(told)
        except NotTakenError as error:
            reason = str(error)
    if reason is not None:
        raise DeliveryError(
            f"channel {channel.name}: {reason}",
            hint=f"try it with: lumos alerts test {channel.name}",
        )


def _body(channel: ChannelSettings, message: Message) -> str:
    if isinstance(channel, SlackChannel):
        return in_slack(f"{message.title}\n\n{message.text}")
    return message.text


def _plugin(channel: ChannelSettings, message: Message) -> _Plugin:
    try:
        import apprise  # noqa: F401 - says whether the extra is there
    except ImportError:
        raise MissingExtraError(
            "alerts need packages that are not installed",
            hint="install them with: pip install 'lumos[alerts]'",
        ) from None
    match channel:
        case WebhookChannel():
            headers = {name: value.get_secret_value() for name, value in channel.headers.items()}
            event = "changes" if message.findings else "test"

            def fields(title: str, text: str) -> dict[str, JsonValue]:
                findings: list[JsonValue] = [*message.findings]
                return {"title": title, "message": text, "event": event, "findings": findings}

            return _Posting(channel, headers=headers, fields=fields)
        case SlackChannel():
            return _Posting(channel, headers={}, fields=lambda _, text: {"text": text})
        case EmailChannel():
            return _mail(channel)


class _Posting:
    """Posts JSON to one address and looks at the status of the answer only."""

    def __init__(
        self,
        channel: WebhookChannel | SlackChannel,
        *,
        headers: Mapping[str, str],
        fields: Callable[[str, str], dict[str, JsonValue]],
    ) -> None:
        self._url = channel.url.get_secret_value()
        self._timeout = channel.timeout_seconds
        self._headers = {"Content-Type": "application/json", **_COMMON, **headers}
        self._fields = fields

    def notify(self, *, body: str, title: str) -> bool:
        """Send a message; an answer that leads elsewhere is not followed.

        Raises:
            NotTakenError: the reason, which holds neither address nor secret.
        """
        from lumos.core.http import connections as wire

        address = urlsplit(self._url)
        target = quote(address.path or "/", safe=_PATH_SAFE)
        query = f"?{quote(address.query, safe=_PATH_SAFE)}" if address.query else ""
        content = orjson.dumps(self._fields(title, body))
        seconds = self._timeout * _WAITS_IN_A_REQUEST
        limits = AnswerLimits(response_bytes=_LARGEST_ANSWER, seconds=seconds)
        try:
            server = wire.Connections(
                self._url, headers=self._headers, verify=True, most=1, limits=limits
            )
            request = wire.Request("POST", f"{target}{query}", content, {}, self._timeout, seconds)
            with closing(server):
                status = server.send(request).status
        except wire.LimitError as error:
            raise NotTakenError(error.reason) from None
        except wire.CertificateError as error:
            raise NotTakenError(_certificate_reason(error)) from None
        except wire.TransportError:
            raise NotTakenError("it could not be reached, or did not answer in time") from None
        except (OSError, ValueError) as error:
            raise NotTakenError(f"it cannot be asked ({type(error).__name__})") from None
        if not HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            raise NotTakenError(f"it answered {status}")
        return True


def _certificate_reason(error: Exception) -> str:
    problem = certificate_problem(str(error), authority=_AUTHORITY)
    return f"{problem.reason}; {problem.hint}" if problem else "its certificate is not accepted"


def _mail(channel: EmailChannel) -> _Plugin:
    with warnings.catch_warnings():
        # Before Python 3.13 its import reaches a module that was already on its way out.
        warnings.simplefilter("ignore", DeprecationWarning)
        from apprise.plugins.email.base import NotifyEmail

    password = channel.password.get_secret_value() if channel.password else None
    make: Callable[..., _Plugin] = NotifyEmail
    return make(
        smtp_host=channel.host,
        host=channel.sender.rpartition("@")[2],
        port=channel.port or _PORTS[channel.security],
        secure_mode=_SECURITY[channel.security],
        # Apprise takes both as parts of an address and decodes them.
        user=quote(channel.user, safe="") if channel.user else None,
        password=quote(password, safe="") if password else None,
        from_addr=channel.sender,
        # One mail for all, so that it is taken or refused for all at once.
        targets=[channel.to[0]],
        cc=list(channel.to[1:]),
        format="text",
        rto=channel.timeout_seconds,
        cto=channel.timeout_seconds,
    )


class _Collector(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.told: list[str] = []

    @override
    def emit(self, record: logging.LogRecord) -> None:
        self.told.append(record.getMessage())


@contextmanager
def _captured_logs() -> Iterator[list[str]]:
    """Keep what the libraries log to this module: it holds addresses, which are secrets."""
    collector = _Collector()
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    before = [(each.level, each.propagate) for each in loggers]
    for each in loggers:
        # What is wrong with a certificate is logged for debugging, for the first one only.
        each.setLevel(logging.DEBUG if each.name == _LOGGERS[0] else logging.WARNING)
        each.propagate = False
        each.addHandler(collector)
    try:
        yield collector.told
    finally:
        for each, (level, propagate) in zip(loggers, before, strict=True):
            each.removeHandler(collector)
            each.setLevel(level)
            each.propagate = propagate


def _reason(told: list[str]) -> str:
    """Say why a message was not taken; of what the library logged only a status gets out."""
    text = "\n".join(told)
    errors = "\n".join(each for each in told if each.startswith(_ERROR))  # others hold the message
    if problem := certificate_problem(errors, authority=_AUTHORITY):
        return f"{problem.reason}; {problem.hint}"
    if status := _STATUS.search(text):
        return f"it answered {status[1]}"
    if "onnection error" in text:
        return "it could not be reached, or did not answer in time"
    return "it did not take the message"
