"""The outbox of alerts in the state database, on both engines."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from lumos.core.models import AlertState
from lumos.core.models.alert import Alert
from lumos.core.store.alerts import AlertRepository
from lumos.core.store.database import StateDatabase
from state_databases import ENGINES, url_for

NOW = datetime(2026, 11, 15, 9, tzinfo=UTC)
LATER = NOW + timedelta(minutes=15)
URN = "lumos://postgres/shop/orders"


@pytest.fixture(params=ENGINES)
def database(request: pytest.FixtureRequest) -> Iterator[StateDatabase]:
    with StateDatabase.open(url_for(request.param, request)) as opened:
        yield opened


@pytest.fixture
def outbox(database: StateDatabase) -> AlertRepository:
    return AlertRepository(database)


def alert(
    name: str = "a", *, channel: str = "hook", version: str = "2.0.0", level: str = "BREAKING"
) -> Alert:
    return Alert.from_json(
        {
            "id": f"{name}-{channel}-{version}",
            "channel": channel,
            "created_at": NOW,
            "finding": {
                "fingerprint": name,
                "dataset": URN,
                "name": "orders",
                "version": version,
                "timestamp": NOW,
                "rule": "field.removed",
                "level": level,
                "message": "field 'note' was removed",
            },
        }
    )


def claim(outbox: AlertRepository, at: datetime = NOW, *, everything: bool = False) -> list[str]:
    taken = outbox.claim(
        "hook", at=at, until=at + timedelta(minutes=15), limit=10, everything=everything
    )
    return [each.id for each in taken]


def test_an_alert_comes_back_as_it_was_put_in(outbox: AlertRepository) -> None:
    outbox.add([alert()])
    count, (listed,) = outbox.list()
    assert count == 1
    assert listed == alert().model_copy(update={"next_attempt_at": NOW})


def test_an_alert_is_put_in_once(outbox: AlertRepository) -> None:
    outbox.add([alert()])
    outbox.record_sent([alert().id], at=NOW)
    outbox.add([alert()])
    assert outbox.list()[1][0].state is AlertState.SENT


def test_an_alert_is_gone_with_the_transaction_it_was_part_of(
    database: StateDatabase, outbox: AlertRepository
) -> None:
    def fail_after_adding() -> None:
        with database.transaction():
            outbox.add([alert()])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_after_adding()
    assert outbox.list() == (0, ())


def test_two_senders_do_not_get_the_same_alert(outbox: AlertRepository) -> None:
    outbox.add([alert("a"), alert("b")])
    assert claim(outbox) == ["a-hook-2.0.0", "b-hook-2.0.0"]
    assert claim(outbox) == []
    assert outbox.channels(NOW) == ()


def test_what_a_killed_sender_took_is_due_again_later(outbox: AlertRepository) -> None:
    outbox.add([alert()])
    claim(outbox)
    assert claim(outbox, LATER) == [alert().id]


def test_a_sent_alert_is_never_due(outbox: AlertRepository) -> None:
    outbox.add([alert()])
    outbox.record_sent(claim(outbox), at=NOW)
    assert claim(outbox, LATER, everything=True) == []
    assert outbox.list(state=AlertState.SENT)[1][0].sent_at == NOW


def test_a_failed_attempt_waits_and_keeps_its_reason(outbox: AlertRepository) -> None:
    outbox.add([alert()])
    outbox.record_failure(
        claim(outbox), error="it answered 500", next_attempt_at=LATER, given_up=False
    )
    assert claim(outbox) == []
    assert claim(outbox, everything=True) == [alert().id]
    (waiting,) = outbox.list(state=AlertState.PENDING)[1]
    assert (waiting.attempts, waiting.error) == (1, "it answered 500")
    assert claim(outbox, LATER) == [alert().id]


def test_what_was_given_up_is_sent_only_when_asked_for(outbox: AlertRepository) -> None:
    outbox.add([alert()])
    outbox.record_failure(claim(outbox), error="no", next_attempt_at=NOW, given_up=True)
    assert outbox.unsent() == {AlertState.PENDING: 0, AlertState.FAILED: 1}
    assert claim(outbox, LATER) == []
    assert claim(outbox, LATER, everything=True) == [alert().id]


@pytest.mark.parametrize(
    ("sent", "failed", "state"),
    [
        ([], [], AlertState.PENDING),
        (["hook"], [], AlertState.PENDING),
        (["hook", "mail"], [], AlertState.SENT),
        (["hook"], ["mail"], AlertState.FAILED),
    ],
)
def test_a_version_is_told_when_every_channel_took_it(
    outbox: AlertRepository, sent: list[str], failed: list[str], state: AlertState
) -> None:
    outbox.add([alert(), alert(channel="mail"), alert(version="3.0.0", level="NON_BREAKING")])
    outbox.record_sent([alert(channel=channel).id for channel in sent], at=NOW)
    outbox.record_failure(
        [alert(channel=channel).id for channel in failed],
        error="no",
        next_attempt_at=NOW,
        given_up=True,
    )
    assert outbox.states(URN) == {"2.0.0": state}


def test_alerts_are_listed_by_dataset(outbox: AlertRepository) -> None:
    outbox.add([alert()])
    assert outbox.list(urn=URN)[0] == 1
    assert outbox.list(urn="lumos://s3/other") == (0, ())


AHEAD = timedelta(days=365)


def test_an_alert_made_by_a_clock_ahead_is_due_at_once(outbox: AlertRepository) -> None:
    outbox.add([alert().model_copy(update={"created_at": NOW + AHEAD})])

    assert outbox.channels(NOW) == ("hook",)
    assert claim(outbox) == ["a-hook-2.0.0"]


def test_a_claim_or_a_retry_set_by_a_clock_ahead_holds_nothing_for_good(
    outbox: AlertRepository,
) -> None:
    outbox.add([alert()])
    assert claim(outbox, NOW + AHEAD) == ["a-hook-2.0.0"]
    assert outbox.channels(NOW) == ("hook",)
    assert claim(outbox) == ["a-hook-2.0.0"]
    assert claim(outbox) == [], "the claim of the right clock holds"
    outbox.record_failure(["a-hook-2.0.0"], error="x", next_attempt_at=NOW + AHEAD, given_up=False)
    assert claim(outbox) == ["a-hook-2.0.0"]
    outbox.record_failure(["a-hook-2.0.0"], error="x", next_attempt_at=LATER, given_up=False)
    assert claim(outbox) == [], "a wait of the right clock holds"
