"""Sends messages through Apprise: only to addresses of the settings, only over these plugins."""

from __future__ import annotations

import logging
import re
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote, urlsplit

from typing_extensions import override

from lumos.core.certificates import certificate_problem
from lumos.core.errors import EXIT_UNREADABLE, LumosError, MissingExtraError
from lumos.core.settings import EmailChannel, SlackChannel, WebhookChannel
from lumos.feature.alerting.messages import Message, in_slack

if TYPE_CHECKING:
    from pydantic import JsonValue

ChannelSettings = WebhookChannel | SlackChannel | EmailChannel

_STATUS = re.compile(r"error=([0-9]{3})\b")
_ERROR = "Socket Exception"
_LOGGERS = ("apprise", "requests", "urllib3")
_SECURITY = {"starttls": "starttls", "tls": "ssl", "none": "insecure"}
# Apprise drops a field of its own that is named with nothing, and renames one named with a text.
_WITHOUT_ITS_OWN: Mapping[str, JsonValue] = {"version": "", "attachments": "", "type": ""}
_PORTS = {"starttls": 587, "tls": 465, "none": 25}
_sending = threading.Lock()


class DeliveryError(LumosError):
    """A channel did not take a message."""

    code = "LUM-420"
    exit_code = EXIT_UNREADABLE
    retryable = True


class _Plugin(Protocol):
    def notify(self, *, body: str, title: str) -> bool: ...


def deliver(channel: ChannelSettings, message: Message) -> None:
    """Send a message through a channel.

    Raises:
        DeliveryError: it was not taken; the reason holds neither address nor secret.
        MissingExtraError: the library that sends is not installed.
    """
    with _sending, _captured_logs() as told:
        taken = _plugin(channel, message).notify(body=_body(channel, message), title=message.title)
    if not taken:
        is_mail = isinstance(channel, EmailChannel)
        authority = "SSL_CERT_FILE" if is_mail else "REQUESTS_CA_BUNDLE"
        raise DeliveryError(
            f"channel {channel.name}: {_reason(told, authority=authority)}",
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
            extras: dict[str, JsonValue] = {
                "event": "changes" if message.findings else "test",
                "findings": list(message.findings),
            }
            return _posting(channel, headers=headers, payload={**_WITHOUT_ITS_OWN, **extras})
        case SlackChannel():
            renamed: dict[str, JsonValue] = {"title": "", "message": "text"}
            return _posting(channel, headers={}, payload={**_WITHOUT_ITS_OWN, **renamed})
        case EmailChannel():
            return _mail(channel)


def _posting(
    channel: WebhookChannel | SlackChannel,
    *,
    headers: Mapping[str, str],
    payload: Mapping[str, JsonValue],
) -> _Plugin:
    from apprise.plugins.custom_json import NotifyJSON

    address = urlsplit(channel.url.get_secret_value())
    host = address.hostname or ""
    make: Callable[..., _Plugin] = NotifyJSON
    return make(
        secure=address.scheme == "https",
        host=f"[{host}]" if ":" in host else host,
        port=address.port,
        user=address.username,
        password=address.password,
        fullpath=(address.path or "/") + (f"?{address.query}" if address.query else ""),
        headers=dict(headers),
        payload=dict(payload),
        format="text",
        # The settings name the host; an answer may not send the message elsewhere.
        redirect=False,
        rto=channel.timeout_seconds,
        cto=channel.timeout_seconds,
    )


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
        # What is wrong with a certificate is told to those who debug, by the first one alone.
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


def _reason(told: list[str], *, authority: str) -> str:
    """Say why a message was not taken; of what the library logged only a status gets out."""
    text = "\n".join(told)
    errors = "\n".join(each for each in told if each.startswith(_ERROR))  # others hold the message
    if problem := certificate_problem(errors, authority=authority):
        return f"{problem.reason}; {problem.hint}"
    if status := _STATUS.search(text):
        return f"it answered {status[1]}"
    if "onnection error" in text:
        return "it could not be reached, or did not answer in time"
    return "it did not take the message"
