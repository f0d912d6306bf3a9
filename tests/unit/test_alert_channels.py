"""Channels against real servers: what arrives, what is refused, and what stays secret."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from pydantic import JsonValue

from alert_servers import mail_server, webhook_server
from lumos.core.models.alert import Alert
from lumos.core.runtime.settings import settings_from_mapping
from lumos.core.settings.problems import InvalidSettingsError
from lumos.feature.alerting.channels import DeliveryError, deliver
from lumos.feature.alerting.messages import MOST_TOLD, Message, message_of, trial_message
from lumos.feature.alerting.settings import EmailChannel, SlackChannel, WebhookChannel
from ports import closed_port
from raw_server import listening, request_from

NOW = datetime(2026, 11, 15, 9, tzinfo=UTC)
MESSAGE = Message("Lumos: 1 breaking change in orders", "orders 2.0.0", ({"rule": "x"},))
TOKEN = "T00/B00/very-secret-part"
HOSTILE = "<!channel> *b* `x` <http://evil.example|click> \r\nBcc: a@evil.example\u202e <b>hi</b>"


def webhook(url: str, **more: object) -> WebhookChannel:
    return WebhookChannel.model_validate({"name": "hook", "type": "webhook", "url": url, **more})


def slack(url: str) -> SlackChannel:
    return SlackChannel.model_validate({"name": "chat", "type": "slack", "url": url})


def mail(port: int, **more: object) -> EmailChannel:
    given = {
        "name": "mail",
        "type": "email",
        "host": "127.0.0.1",
        "port": port,
        "security": "none",
        "sender": "lumos@example.com",
        "to": ["a@example.com", "b@example.com"],
        "timeout_seconds": 60,
        **more,
    }
    return EmailChannel.model_validate(given)


def hostile_alert() -> Alert:
    return Alert.from_json(
        {
            "id": "1",
            "channel": "chat",
            "created_at": NOW,
            "finding": {
                "fingerprint": "f",
                "dataset": "lumos://s3/x",
                "name": HOSTILE,
                "version": "2.0.0",
                "timestamp": NOW,
                "rule": "field.removed",
                "level": "BREAKING",
                "message": HOSTILE,
                "owners": [HOSTILE],
                "affected": [{"urn": "lumos://s3/y", "name": HOSTILE, "owners": [HOSTILE]}],
                "affected_count": 1,
            },
        }
    )


def test_a_webhook_gets_the_findings_and_the_headers_of_the_settings() -> None:
    with webhook_server() as server:
        address = f"{server.url}/hooks/{TOKEN}?key=a%20b"
        deliver(webhook(address, headers={"Authorization": "Bearer abc"}), MESSAGE)
    (posted,) = server.posted
    assert posted.path == f"/hooks/{TOKEN}?key=a%20b"
    assert posted.headers["Authorization"] == "Bearer abc"
    assert posted.body == {
        "title": MESSAGE.title,
        "message": MESSAGE.text,
        "event": "changes",
        "findings": [{"rule": "x"}],
    }


def test_slack_gets_one_text() -> None:
    with webhook_server() as server:
        deliver(slack(f"{server.url}/services/{TOKEN}"), MESSAGE)
    (posted,) = server.posted
    assert posted.path == f"/services/{TOKEN}"
    assert posted.body == {"text": f"```\n{MESSAGE.title}\n\n{MESSAGE.text}\n```"}


def test_a_mail_goes_to_all_at_once_as_plain_text() -> None:
    with mail_server() as (server, port):
        deliver(mail(port), MESSAGE)
    (arrived,) = server.mails
    assert sorted(server.recipients[0]) == ["a@example.com", "b@example.com"]
    assert arrived["Subject"] == MESSAGE.title
    assert arrived["From"] == "lumos@example.com"
    assert arrived.get_content_type() == "text/plain"
    content = arrived.get_payload(decode=True)
    assert isinstance(content, bytes)
    assert MESSAGE.text in content.decode()


def test_names_of_a_source_are_no_markup_in_slack() -> None:
    with webhook_server() as server:
        deliver(slack(server.url), message_of([hostile_alert()]))
    text = str(server.posted[0].body["text"])
    assert text.startswith("```\n")
    assert text.endswith("\n```")
    inside = text[3:-3]
    assert "`" not in inside
    assert "<" not in inside
    assert ">" not in inside
    assert "\u202e" not in inside
    assert "\r" not in inside


def test_names_of_a_source_add_no_header_and_no_html_to_a_mail() -> None:
    with mail_server() as (server, port):
        deliver(mail(port), message_of([hostile_alert()]))
    (arrived,) = server.mails
    assert arrived["Bcc"] is None
    assert arrived.get_content_type() == "text/plain"
    assert sorted(server.recipients[0]) == ["a@example.com", "b@example.com"]


@pytest.mark.parametrize("status", [400, 404, 500, 503])
def test_a_refusal_tells_the_status(status: int) -> None:
    with webhook_server() as server:
        server.status = status
        with pytest.raises(DeliveryError, match=f"channel hook: it answered {status}"):
            deliver(webhook(server.url), MESSAGE)


def test_an_answer_cannot_send_the_message_elsewhere() -> None:
    with webhook_server() as elsewhere, webhook_server() as server:
        server.status = 307
        server.location = f"{elsewhere.url}/stolen"
        with pytest.raises(DeliveryError, match="it answered 307"):
            deliver(webhook(server.url), MESSAGE)
    assert elsewhere.posted == []


def test_a_server_that_is_not_there_is_told() -> None:
    for channel in (webhook(f"http://127.0.0.1:{closed_port()}"), mail(closed_port())):
        with pytest.raises(DeliveryError, match="could not be reached"):
            deliver(channel, MESSAGE)


def test_a_server_that_is_silent_is_not_waited_for() -> None:
    with webhook_server() as server:
        server.silent = True
        with pytest.raises(DeliveryError, match="did not answer in time"):
            deliver(webhook(server.url, timeout_seconds=0.2), MESSAGE)


def test_a_mail_that_is_refused_is_a_failure() -> None:
    with mail_server() as (server, port):
        server.refusal = "550 no"
        with pytest.raises(DeliveryError):
            deliver(mail(port), MESSAGE)


def test_addresses_and_passwords_are_in_no_log_and_no_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    with webhook_server() as server:
        server.status = 500
        channel = webhook(f"{server.url}/{TOKEN}", headers={"X-Key": "abc-secret"})
        with pytest.raises(DeliveryError) as refused:
            deliver(channel, MESSAGE)
    told = caplog.text + str(refused.value.as_json()) + repr(channel)
    assert TOKEN not in told
    assert "abc-secret" not in told
    assert "127.0.0.1" not in caplog.text


def test_many_findings_are_one_message_that_counts_the_rest() -> None:
    message = message_of([hostile_alert()] * (MOST_TOLD + 5))
    assert "and 5 more" in message.text
    assert len(message.findings) == MOST_TOLD + 5


def test_a_test_message_has_no_findings() -> None:
    with webhook_server() as server:
        deliver(webhook(server.url), trial_message("hook"))
    assert server.posted[0].body["event"] == "test"


@pytest.mark.parametrize(
    "channel",
    [
        {"name": "a", "type": "webhook", "url": "file:///etc/passwd"},
        {"name": "a", "type": "webhook", "url": "gopher://host/x"},
        {"name": "a", "type": "webhook", "url": "https://"},
        {"name": "a", "type": "slack", "url": "https://ho st/x"},
        {"name": "a", "type": "webhook", "url": "https://h/", "headers": {"A: b\r\nC": "x"}},
        {"name": "a", "type": "webhook", "url": "https://h/", "headers": {"A": "x\r\nB: y"}},
        {"name": "a", "type": "mailto", "url": "https://h/"},
        {
            "name": "a",
            "type": "email",
            "host": "h",
            "sender": "a@b.example",
            "to": ["a@b.example, c@d.example"],
        },
        {
            "name": "a",
            "type": "email",
            "host": "h h",
            "sender": "a@b.example",
            "to": ["c@d.example"],
        },
    ],
)
def test_only_known_kinds_of_addresses_are_settings(channel: dict[str, JsonValue]) -> None:
    with pytest.raises(InvalidSettingsError) as refused:
        settings_from_mapping({"alerts": {"channels": [channel]}}, {})
    assert "passwd" not in str(refused.value)


@pytest.mark.parametrize(
    ("alerts", "said"),
    [
        (
            {"channels": [], "routes": [{"channels": ["a"]}]},
            "alerts.routes[0].channels[0] is no channel; known: none",
        ),
        (
            {
                "channels": [{"name": "team-chat", "type": "slack", "url": "https://h/x"}],
                "routes": [{"channels": ["teamchat"]}],
            },
            "alerts.routes[0].channels[0] is no channel; did you mean 'team-chat'?",
        ),
        (
            {"channels": [{"name": "a", "type": "slack", "url": "https://h/x"}] * 2},
            "alerts.channels[1].name is the name of an earlier channel",
        ),
    ],
)
def test_channels_and_routes_must_fit_together(alerts: JsonValue, said: str) -> None:
    settings = settings_from_mapping({"alerts": alerts}, {})
    assert str(settings.refused([*settings.alerts.problems()])) == said


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"


def refusal_by(serve: Callable[[socket.socket], None], **more: object) -> str:
    with listening(serve) as port, pytest.raises(DeliveryError) as raised:
        deliver(webhook(f"http://127.0.0.1:{port}/hooks/{TOKEN}", **more), MESSAGE)
    assert TOKEN not in raised.value.message
    return raised.value.message


def test_an_answer_of_a_webhook_without_end_is_cut_off() -> None:
    def serve(connection: socket.socket) -> None:
        request_from(connection)
        connection.sendall(HEAD + b"\r\n")
        while True:
            connection.sendall(b"x" * 65_536)

    assert "the answer is larger than 1,000,000 bytes" in refusal_by(serve)


@pytest.mark.parametrize("head", [b"", HEAD, HEAD + b"Content-Length: 5000\r\n\r\n"])
def test_a_webhook_that_drips_holds_nobody(head: bytes) -> None:
    ended = threading.Event()

    def serve(connection: socket.socket) -> None:
        request_from(connection)
        connection.sendall(head)
        while not ended.wait(0.02):
            connection.sendall(b"x")

    try:
        told = refusal_by(serve, timeout_seconds=0.2)
    finally:
        ended.set()
    assert "the request took longer than 0.6 s" in told
