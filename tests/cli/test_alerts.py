"""`lumos alerts`, and what runs tell: from an import to a server that takes messages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from alert_servers import WebhookServer, webhook_server
from command_line import FEBRUARY, JANUARY, ORDERS, Lumos, checked
from ports import closed_port

TOKEN = "T00/very-secret-path"


@pytest.fixture
def server() -> Iterator[WebhookServer]:
    with webhook_server() as running:
        yield running


def configured(project: Path, url: str, more: str = "") -> None:
    (project / "lumos.yaml").write_text(
        f"alerts:\n  channels:\n    - {{name: team, type: webhook, url: {url}/{TOKEN}}}\n{more}"
    )


def alert_of(lumos: Lumos) -> str | None:
    versions = checked(lumos("history", ORDERS, "--json"), "history")["schema_history"]
    state: str | None = versions[-1].get("breaking_change_alert")
    return state


def test_an_import_that_breaks_something_is_told_once(
    lumos: Lumos, project: Path, server: WebhookServer
) -> None:
    configured(project, server.url)
    lumos("import", JANUARY)
    done = lumos("import", FEBRUARY)
    assert done.exit_code == 0
    assert "alerts sent to team: 2" in done.stderr
    (posted,) = server.posted
    assert posted.body["title"] == "Lumos: 2 breaking changes in orders"
    assert [finding["path"] for finding in posted.body["findings"]] == ["coupon_code", "total"]
    assert alert_of(lumos) == "SENT"
    lumos("import", FEBRUARY)
    assert len(server.posted) == 1
    listed = checked(lumos("alerts", "list", "--json"), "alerts-list")
    assert [alert["state"] for alert in listed["alerts"]] == ["SENT", "SENT"]


def test_a_channel_that_fails_does_not_fail_the_run(
    lumos: Lumos, project: Path, server: WebhookServer
) -> None:
    configured(project, f"http://127.0.0.1:{closed_port()}")
    lumos("import", JANUARY)
    done = lumos("import", FEBRUARY)
    assert done.exit_code == 0
    assert "alerts wait for a retry" in done.stderr
    assert alert_of(lumos) == "PENDING"
    listed = lumos("alerts", "list", ORDERS, "--state", "pending")
    assert listed.stdout.splitlines()[0] == "2 alerts"
    assert "it could not be reached" in listed.stdout
    configured(project, server.url)
    assert checked(lumos("alerts", "send", "--json"), "alerts-send")["sent"] == 0
    assert checked(lumos("alerts", "send", "--all", "--json"), "alerts-send")["sent"] == 2
    assert alert_of(lumos) == "SENT"


def test_sending_ends_with_one_when_a_channel_fails(
    lumos: Lumos, project: Path, server: WebhookServer
) -> None:
    configured(project, server.url)
    server.status = 500
    lumos("import", JANUARY)
    lumos("import", FEBRUARY)
    sent = lumos("alerts", "send", "--all")
    assert sent.exit_code == 1
    assert sent.stdout.splitlines() == [
        "team: 0 sent, 2 failed; channel team: it answered 500",
        "2 waiting, 0 given up",
    ]


def test_a_channel_is_tried_out(lumos: Lumos, project: Path, server: WebhookServer) -> None:
    configured(project, server.url)
    assert checked(lumos("alerts", "test", "team", "--json"), "alerts-test") == {
        "channel": "team",
        "type": "webhook",
    }
    assert server.posted[0].body["event"] == "test"
    server.status = 500
    failed = lumos("alerts", "test", "team")
    assert failed.exit_code == 3
    assert "it answered 500" in failed.error_line
    unknown = lumos("alerts", "test", "teem")
    assert unknown.exit_code == 2
    assert "did you mean team?" in unknown.error_line


def test_the_address_of_a_channel_is_nowhere(
    lumos: Lumos, project: Path, server: WebhookServer
) -> None:
    configured(project, server.url)
    server.status = 500
    lumos("import", JANUARY)
    runs = [
        lumos("import", FEBRUARY),
        lumos("alerts", "list", "--json"),
        lumos("alerts", "send", "--all", "--json"),
        lumos("--debug", "alerts", "test", "team"),
        lumos("doctor"),
    ]
    for run in runs:
        assert TOKEN not in run.stdout + run.stderr
    state = b"".join(path.read_bytes() for path in project.glob(".lumos/**/*") if path.is_file())
    assert TOKEN.encode() not in state


def test_an_exception_of_the_policy_keeps_a_change_quiet_and_says_so(
    lumos: Lumos, project: Path, server: WebhookServer
) -> None:
    exception = (
        "change_policy:\n  exceptions:\n"
        "    - {pattern: public/orders, reason: agreed, expires: 2099-01-31}\n"
    )
    configured(project, server.url, exception)
    lumos("import", JANUARY)
    lumos("import", FEBRUARY)
    assert server.posted == []
    changes = checked(lumos("compare", ORDERS, "--json"), "compare")["changes"]
    assert {change["level"] for change in changes} == {"INFORMATIONAL"}
    assert changes[0]["policy"]["source"] == "change_policy.exceptions[0]"
    assert changes[0]["policy"]["reason"] == "agreed"
    diff = json.loads(lumos("diff", "--source", JANUARY, "--target", FEBRUARY, "--json").stdout)
    assert all(change["level"] != "BREAKING" for change in diff["changes"])


def test_doctor_counts_exceptions_that_expired(lumos: Lumos, project: Path) -> None:
    (project / "lumos.yaml").write_text(
        "change_policy:\n  exceptions:\n    - {pattern: x, reason: y, expires: 2020-01-31}\n"
    )
    assert "expired exceptions of the change policy: 1" in lumos("doctor").stdout


def test_a_wrong_policy_is_told_by_every_command(lumos: Lumos, project: Path) -> None:
    (project / "lumos.yaml").write_text("change_policy:\n  rules: {field.remvoed: breaking}\n")
    refused = lumos("import", JANUARY)
    assert refused.exit_code == 2
    assert "did you mean 'field.removed'?" in refused.error_line


def test_old_snapshots_that_are_versioned_alert_nobody(
    lumos: Lumos, project: Path, server: WebhookServer
) -> None:
    configured(project, server.url)
    for snapshot in (JANUARY, FEBRUARY):
        assert lumos("version", "apply", "--to", snapshot).exit_code == 0
    assert "2.0.0" in lumos("history", ORDERS).stdout
    assert lumos("alerts", "list").stdout.splitlines() == ["0 alerts"]
    assert server.posted == []
    assert alert_of(lumos) is None


def test_old_snapshots_alert_when_that_is_asked_for(
    lumos: Lumos, project: Path, server: WebhookServer
) -> None:
    configured(project, server.url)
    assert lumos("version", "apply", "--from", JANUARY, "--to", FEBRUARY, "--alert").exit_code == 0
    assert len(server.posted) == 1
    assert alert_of(lumos) == "SENT"


@pytest.mark.parametrize(("option", "alert"), [((), "SENT"), (("--no-alert",), None)])
def test_what_the_catalog_holds_now_alerts_unless_that_is_refused(
    lumos: Lumos,
    project: Path,
    server: WebhookServer,
    option: tuple[str, ...],
    alert: str | None,
) -> None:
    configured(project, server.url, "features: {schema_tracking: false}\n")
    lumos("import", FEBRUARY)
    assert lumos("version", "apply", "--from", JANUARY, *option).exit_code == 0
    assert alert_of(lumos) == alert
    assert len(server.posted) == (1 if alert else 0)
