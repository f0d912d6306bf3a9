"""From a version to a message: who is told, once, also when a channel fails or a sender dies."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import JsonValue

from alert_servers import WebhookServer, webhook_server
from lumos.core.changes import ChangePolicy, PolicyException
from lumos.core.errors import LumosError
from lumos.core.models import AlertState, Group, LumosDataset, with_parts
from lumos.core.platform.batch import Batch
from lumos.core.platform.factory import PlatformFactory
from lumos.core.store.alerts import AlertRepository
from lumos.core.store.catalog.downstream import Downstream
from lumos.core.store.database import StateDatabase
from lumos.core.store.history import NewEntry
from lumos.feature.alerting.outbox_history import AlertingHistory
from lumos.feature.alerting.planning import AlertPlanner
from lumos.feature.alerting.sending import AlertSender, wait_after
from lumos.feature.alerting.settings import AlertSettings
from lumos.feature.versioning.publishing import Publisher
from lumos.feature.versioning.version_service import VersionManager
from state_databases import ENGINES, url_for

NOW = datetime(2026, 11, 15, 9, tzinfo=UTC)
RAW = "lumos://s3/lake/raw"
CLEAN = "lumos://s3/lake/clean"
REPORT = "lumos://s3/lake/report"
JOB = "lumos://airflow/daily/clean"


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture(params=ENGINES)
def database(request: pytest.FixtureRequest) -> Iterator[StateDatabase]:
    with StateDatabase.open(url_for(request.param, request)) as opened:
        yield opened


@pytest.fixture
def server() -> Iterator[WebhookServer]:
    with webhook_server() as running:
        yield running


def dataset(urn: str, *columns: str, owner: dict[str, str] | None = None) -> LumosDataset:
    return LumosDataset.from_json(
        {
            "urn": urn,
            "name": urn.rpartition("/")[2],
            "platform": "s3",
            "schema": {"fields": [{"name": name, "type": "STRING"} for name in columns]},
            "ownership": [owner] if owner else [],
        }
    )


class Project:
    """A catalog with versions and alerts, put together as the application does it."""

    def __init__(self, database: StateDatabase, alerts: dict[str, JsonValue]) -> None:
        self.settings = AlertSettings.model_validate(alerts)
        self.database = database
        self.outbox = AlertRepository(database)
        self.clock = Clock()
        self.platform = PlatformFactory.embedded_over(database)
        self.use_policy(ChangePolicy())

    def use_policy(self, policy: ChangePolicy) -> None:
        planner = AlertPlanner(self.settings, Downstream(self.database))
        self.history = AlertingHistory(self.database, planner)
        self.versions = VersionManager(self.history, policy=policy)
        self.publisher = Publisher(
            self.platform,
            self.versions,
            database=self.database,
            clock=self.clock,
            author="ann",
        )

    def publish(self, *datasets: LumosDataset) -> None:
        for each in datasets:
            self.publisher.publish(each)

    def link(self, upstream: str, downstream: str) -> None:
        self.platform.emit_lineage(upstream, downstream)

    def alerts(self) -> list[tuple[str, str, AlertState]]:
        return [(alert.channel, alert.finding.rule, alert.state) for alert in self.outbox.list()[1]]

    def sender(self) -> AlertSender:
        return AlertSender(
            self.outbox,
            {channel.name: channel for channel in self.settings.channels},
            max_attempts=self.settings.max_attempts,
            clock=self.clock,
        )


def hook(name: str, url: str = "http://127.0.0.1:9") -> dict[str, JsonValue]:
    return {"name": name, "type": "webhook", "url": url}


def test_a_breaking_change_is_told_with_the_version_that_made_it(database: StateDatabase) -> None:
    project = Project(database, {"channels": [hook("a"), hook("b")]})
    project.publish(dataset(RAW, "id", "note", owner={"user": "ann"}))
    assert project.alerts() == []
    project.publish(dataset(RAW, "id", owner={"user": "ann"}))
    assert project.alerts() == [
        ("a", "field.removed", AlertState.PENDING),
        ("b", "field.removed", AlertState.PENDING),
    ]
    finding = project.outbox.list()[1][0].finding
    assert (finding.version, finding.previous_version) == ("2.0.0", "1.0.0")
    assert finding.owners == ("ann",)


def test_repeating_a_run_tells_nothing_twice(database: StateDatabase) -> None:
    project = Project(database, {"channels": [hook("a")]})
    project.publish(dataset(RAW, "id", "note"), dataset(RAW, "id"), dataset(RAW, "id"))
    assert len(project.alerts()) == 1


def test_a_milder_change_is_told_where_a_route_asks_for_it(database: StateDatabase) -> None:
    project = Project(
        database,
        {
            "channels": [hook("all"), hook("worst")],
            "routes": [
                {"channels": ["all"], "level": "non_breaking"},
                {"channels": ["worst"]},
            ],
        },
    )
    project.publish(dataset(RAW, "id"), dataset(RAW, "id", "note"))
    assert [channel for channel, *_ in project.alerts()] == ["all", "all"]
    assert project.outbox.states(RAW) == {}


def test_what_the_policy_ignores_is_told_to_nobody(database: StateDatabase) -> None:
    project = Project(
        database,
        {"channels": [hook("a")], "routes": [{"channels": ["a"], "level": "informational"}]},
    )
    project.publish(dataset(RAW, "id", "note"))
    before = len(project.alerts())
    exception = PolicyException(pattern="*", reason="moved")
    project.use_policy(ChangePolicy(exceptions=(exception,)))
    project.publish(dataset(RAW, "id"))
    assert len(project.alerts()) == before


def test_a_removed_dataset_is_told(database: StateDatabase) -> None:
    project = Project(database, {"channels": [hook("a")]})
    raw = dataset(RAW, "id")
    project.publish(raw, dataset(CLEAN, "id", owner={"group": "bi"}))
    project.link(RAW, CLEAN)
    project.versions.retire(raw, at=project.clock(), author="ann")
    project.platform.delete(raw.urn)
    (alert,) = project.outbox.list()[1]
    assert alert.finding.rule == "dataset.removed"
    assert [each.urn for each in alert.finding.affected] == [CLEAN]


def test_a_breaking_version_that_was_declared_is_told(database: StateDatabase) -> None:
    project = Project(database, {"channels": [hook("a")]})
    project.publish(dataset(RAW, "id"))
    project.versions.increment_version(RAW, "BREAKING_SCHEMA_CHANGE", at=NOW)
    assert [rule for _, rule, _ in project.alerts()] == ["version.declared"]


def test_versions_that_are_added_in_bulk_are_told(database: StateDatabase) -> None:
    project = Project(database, {"channels": [hook("a")]})
    project.publish(dataset(RAW, "id", "note"))
    narrower = dataset(RAW, "id")
    current = project.history.versions(RAW)[-1]
    version = current.model_copy(update={"version": "2.0.0", "previous_version": "1.0.0"})
    changes = ChangePolicy().judge(dataset(RAW, "id", "note"), narrower, at=NOW)
    project.history.append_many([NewEntry(RAW, 2, version, narrower, changes)])
    assert project.alerts() == [("a", "field.removed", AlertState.PENDING)]
    assert project.history.versions(RAW)[-1].breaking_change_alert is AlertState.PENDING


def test_owners_of_all_downstream_datasets_are_told(database: StateDatabase) -> None:
    project = Project(
        database,
        {
            "channels": [hook("bi"), hook("ml"), hook("others")],
            "routes": [
                {"channels": ["bi"], "owners": ["bi-team"]},
                {"channels": ["ml"], "owners": ["ml-team"]},
                {"channels": ["others"], "owners": ["nobody-here"]},
            ],
        },
    )
    project.publish(
        dataset(RAW, "id", "note"),
        dataset(CLEAN, "id", owner={"user": "bob"}),
        dataset(REPORT, "id", owner={"group": "bi-team"}),
    )
    project.platform.apply(Batch(entities=[Group(name="ml-team", members=("bob",))]))
    project.link(RAW, JOB)
    project.link(JOB, CLEAN)
    project.link(CLEAN, REPORT)
    project.link(REPORT, RAW)
    project.publish(dataset(RAW, "id"))
    told = {channel for channel, rule, _ in project.alerts() if rule == "field.removed"}
    assert told == {"bi", "ml"}
    (alert, *_) = project.outbox.list()[1]
    assert [each.urn for each in alert.finding.affected] == [CLEAN, REPORT]


def test_lineage_is_followed_so_many_steps(database: StateDatabase) -> None:
    project = Project(database, {"channels": [hook("a")], "downstream_depth": 1})
    project.publish(dataset(RAW, "id", "note"), dataset(CLEAN, "id"), dataset(REPORT, "id"))
    project.link(RAW, CLEAN)
    project.link(CLEAN, REPORT)
    project.publish(dataset(RAW, "id"))
    (alert, *_) = project.outbox.list()[1]
    assert [each.urn for each in alert.finding.affected] == [CLEAN]


def test_a_pattern_chooses_datasets(database: StateDatabase) -> None:
    project = Project(
        database,
        {
            "channels": [hook("a"), hook("b")],
            "routes": [
                {"channels": ["a"], "pattern": "lumos://s3/*"},
                {"channels": ["b"], "pattern": "lumos://postgres/*"},
            ],
        },
    )
    project.publish(dataset(RAW, "id", "note"), dataset(RAW, "id"))
    assert [channel for channel, *_ in project.alerts()] == ["a"]


def broken(project: Project) -> None:
    project.publish(dataset(RAW, "id", "note", "more"), dataset(RAW, "id"))


def test_all_that_waits_for_a_channel_is_one_message_sent_once(
    database: StateDatabase, server: WebhookServer
) -> None:
    project = Project(database, {"channels": [hook("a", server.url)]})
    broken(project)
    (outcome,) = project.sender().send_due()
    assert (outcome.sent, outcome.failed) == (2, 0)
    assert project.sender().send_due() == ()
    (posted,) = server.posted
    assert [finding["path"] for finding in posted.body["findings"]] == ["more", "note"]
    assert project.outbox.states(RAW) == {"2.0.0": AlertState.SENT}


def test_a_channel_that_fails_is_tried_again_later_and_later(
    database: StateDatabase, server: WebhookServer
) -> None:
    project = Project(database, {"channels": [hook("a", server.url)]})
    broken(project)
    server.status = 500
    (outcome,) = project.sender().send_due()
    assert outcome.error == "channel a: it answered 500"
    assert project.outbox.states(RAW) == {"2.0.0": AlertState.PENDING}
    assert project.sender().send_due() == ()
    project.clock.now += wait_after(1)
    project.sender().send_due()
    project.clock.now += wait_after(1)
    assert project.sender().send_due() == ()
    server.status = 200
    project.clock.now += wait_after(2)
    assert [outcome.sent for outcome in project.sender().send_due()] == [2]
    assert project.outbox.list()[1][0].attempts == 3


def test_a_channel_that_always_fails_is_given_up_and_can_be_asked_for(
    database: StateDatabase, server: WebhookServer
) -> None:
    project = Project(database, {"channels": [hook("a", server.url)], "max_attempts": 2})
    broken(project)
    server.status = 404
    for _ in range(3):
        project.sender().send_due()
        project.clock.now += timedelta(days=1)
    assert len(server.posted) == 2
    assert project.outbox.states(RAW) == {"2.0.0": AlertState.FAILED}
    server.status = 200
    assert [outcome.sent for outcome in project.sender().send_due(everything=True)] == [2]


def test_one_channel_that_fails_does_not_hold_up_another(
    database: StateDatabase, server: WebhookServer
) -> None:
    project = Project(database, {"channels": [hook("a"), hook("b", server.url)]})
    broken(project)
    outcomes = project.sender().send_due()
    assert [(outcome.channel, outcome.sent) for outcome in outcomes] == [("a", 0), ("b", 2)]


def test_a_channel_that_left_the_settings_is_given_up(database: StateDatabase) -> None:
    project = Project(database, {"channels": [hook("a")]})
    broken(project)
    project.settings = AlertSettings()
    (outcome,) = project.sender().send_due()
    assert outcome.error == "the settings have no such channel"
    assert project.outbox.unsent()[AlertState.FAILED] == 2


def test_a_sender_killed_before_it_recorded_sends_once_more_and_loses_nothing(
    database: StateDatabase, server: WebhookServer
) -> None:
    project = Project(database, {"channels": [hook("a", server.url)]})
    broken(project)

    class KilledError(BaseException):
        """What a signal does to a process, as far as the outbox can see."""

    def die(*_: object, **__: object) -> None:
        raise KilledError

    sender = project.sender()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(project.outbox, "record_sent", die)
        with pytest.raises(KilledError):
            sender.send_due()
    assert project.sender().send_due() == ()
    project.clock.now += timedelta(minutes=15)
    assert [outcome.sent for outcome in project.sender().send_due()] == [2]
    assert len(server.posted) == 2


def test_a_sender_that_is_killed_for_real_loses_nothing(tmp_path: Path) -> None:
    with webhook_server() as server:
        settings = {"alerts": {"channels": [hook("a", server.url)]}}
        (tmp_path / "lumos.yaml").write_text(json.dumps(settings))
        with StateDatabase.open(tmp_path / ".lumos" / "lumos.db") as database:
            project = Project(database, {"channels": [hook("a", server.url)]})
            project.clock.now = datetime.now(UTC)
            broken(project)
        server.silent = True
        arguments = [sys.executable, "-m", "lumos", "alerts", "send"]
        with subprocess.Popen(arguments, cwd=tmp_path) as sender:
            assert server.arrived.wait(600)
            sender.kill()
        server.silent = False
        with StateDatabase.open(tmp_path / ".lumos" / "lumos.db") as database:
            project = Project(database, {"channels": [hook("a", server.url)]})
            assert project.outbox.states(RAW) == {"2.0.0": AlertState.PENDING}
            project.clock.now = datetime.now(UTC) + timedelta(minutes=15)
            assert [outcome.sent for outcome in project.sender().send_due()] == [2]
        assert len(server.posted) == 2


def test_alerts_are_undone_with_the_version_that_failed(database: StateDatabase) -> None:
    project = Project(database, {"channels": [hook("a")]})
    project.publish(dataset(RAW, "id", "note"))
    with pytest.MonkeyPatch.context() as patch:

        def fail(*_: object) -> None:
            raise LumosError("no")

        patch.setattr(project.platform, "apply", fail)
        with pytest.raises(LumosError):
            project.publish(with_parts(dataset(RAW, "id"), version=None))
    assert project.alerts() == []
    assert [version.version for version in project.history.versions(RAW)] == ["1.0.0"]


def test_the_wait_doubles_to_six_hours() -> None:
    assert wait_after(1) == timedelta(minutes=1)
    assert wait_after(4) == timedelta(minutes=8)
    assert wait_after(100) == timedelta(hours=6)
