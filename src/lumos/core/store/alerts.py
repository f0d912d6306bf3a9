"""The outbox of alerts: each is written together with the version that it is about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from lumos.core.models import AlertState, ChangeLevel
from lumos.core.models.alert import Alert, AlertFinding
from lumos.core.store.checksums import ALERTS
from lumos.core.store.documents import END_OF_TIME, as_model, as_moment, checked_key, stored_text
from lumos.core.store.sql_text import storable

if TYPE_CHECKING:
    from lumos.core.errors import DamagedDocumentError
    from lumos.core.store.database import StateDatabase
    from lumos.core.store.engine import Row, SqlValue

_WORST_FIRST = (AlertState.FAILED, AlertState.PENDING, AlertState.SENT)
_LONGEST_DELAY = timedelta(days=1)
"""Longer than any claim and any wait for a retry; a later time is that of a clock gone wrong."""
_UNSENT = (AlertState.PENDING, AlertState.FAILED)


class AlertRepository:
    """Alerts in the state database, by finding and channel."""

    def __init__(self, database: StateDatabase) -> None:
        self._database = database

    def add(self, alerts: Iterable[Alert]) -> None:
        """Keep alerts to be sent, as part of the caller's transaction; known ones stay as is."""
        rows: list[dict[str, SqlValue]] = [
            {
                "id": alert.id,
                "channel": checked_key(storable(alert.channel)),
                "urn": alert.finding.dataset,
                "version": alert.finding.version,
                "position": position,
                "level": alert.finding.level.value,
                "state": AlertState.PENDING.value,
                "created_at": as_moment(alert.created_at),
                "document": stored_text(alert.finding.to_json()),
            }
            for position, alert in enumerate(alerts)
        ]
        self._database.execute_many(
            "INSERT INTO alerts (id, channel, urn, version, position, level, state, attempts, "
            "created_at, next_attempt_at, document, checksum) VALUES (:id, :channel, :urn, "
            ":version, :position, :level, :state, 0, :created_at, :created_at, :document, "
            ":checksum) ON CONFLICT (id) DO NOTHING",
            ({**row, "checksum": ALERTS.checksum(row)} for row in rows),
        )

    def channels(self, at: datetime, *, everything: bool = False) -> tuple[str, ...]:
        """Return the channels for which something is due; with `everything`, unsent."""
        rows = self._database.query(
            "SELECT DISTINCT channel FROM alerts WHERE state IN ('PENDING', :also) "
            "AND (next_attempt_at <= :due OR next_attempt_at > :implausible) "
            "AND (claimed_until IS NULL OR claimed_until <= :at OR claimed_until > :implausible) "
            "ORDER BY channel",
            _due(at, everything),
        )
        return tuple(row.text("channel") for row in rows)

    def claim(
        self, channel: str, *, at: datetime, until: datetime, limit: int, everything: bool = False
    ) -> tuple[Alert, ...]:
        """Take the next alerts of a channel for oneself, oldest first.

        No other sender gets them before `until`: if this one is killed, they are due again.
        A damaged one is given up with that as its error.
        """
        taken = []
        with self._database.transaction():
            rows = self._database.query(
                "SELECT * FROM alerts WHERE channel = :channel AND state IN ('PENDING', :also) "
                "AND (next_attempt_at <= :due OR next_attempt_at > :implausible) AND "
                "(claimed_until IS NULL OR claimed_until <= :at OR claimed_until > :implausible) "
                "ORDER BY created_at, urn, version, position LIMIT :limit",
                {**_due(at, everything), "channel": storable(channel), "limit": limit},
            )
            for row in rows:
                if not ALERTS.is_whole(row):
                    self._give_up(row.text("id"), ALERTS.error(row))
                    continue
                mine = self._database.execute(
                    "UPDATE alerts SET claimed_until = :until WHERE id = :id "
                    "AND state <> 'SENT' AND (claimed_until IS NULL OR claimed_until <= :at "
                    "OR claimed_until > :implausible)",
                    {
                        "id": row.text("id"),
                        "until": as_moment(until),
                        "at": as_moment(at),
                        "implausible": as_moment(at + _LONGEST_DELAY),
                    },
                )
                if mine:
                    taken.append(_alert(row))
        return tuple(taken)

    def record_sent(self, ids: Sequence[str], *, at: datetime) -> None:
        """Keep that alerts reached their channel."""
        self._database.execute_many(
            "UPDATE alerts SET state = 'SENT', attempts = attempts + 1, sent_at = :at, "
            "claimed_until = NULL, error = NULL WHERE id = :id",
            ({"id": each, "at": as_moment(at)} for each in ids),
        )

    def record_failure(
        self, ids: Sequence[str], *, error: str, next_attempt_at: datetime, given_up: bool
    ) -> None:
        """Keep that an attempt failed, why, and when the next one is due if there is one."""
        state = AlertState.FAILED if given_up else AlertState.PENDING
        self._database.execute_many(
            "UPDATE alerts SET state = :state, attempts = attempts + 1, error = :error, "
            "next_attempt_at = :next, claimed_until = NULL WHERE id = :id AND state <> 'SENT'",
            (
                {
                    "id": each,
                    "state": state.value,
                    "error": storable(error),
                    "next": as_moment(next_attempt_at),
                }
                for each in ids
            ),
        )

    def _give_up(self, alert: str, error: DamagedDocumentError) -> None:
        self._database.execute(
            "UPDATE alerts SET state = :state, error = :error, claimed_until = NULL WHERE id = :id",
            {"id": alert, "state": AlertState.FAILED.value, "error": error.message},
        )

    def list(
        self, *, state: AlertState | None = None, urn: str | None = None, limit: int = 100
    ) -> tuple[int, tuple[Alert, ...]]:
        """Count alerts, and return the newest first."""
        given: dict[str, SqlValue] = {"state": state.value if state else "", "urn": urn or ""}
        (count,) = self._database.query(
            "SELECT count(*) AS n FROM alerts "
            "WHERE (:state = '' OR state = :state) AND (:urn = '' OR urn = :urn)",
            given,
        )
        rows = self._database.query(
            "SELECT * FROM alerts WHERE (:state = '' OR state = :state) "
            "AND (:urn = '' OR urn = :urn) "
            "ORDER BY created_at DESC, urn, version, position, channel LIMIT :limit",
            {**given, "limit": limit},
        )
        whole = (row for row in rows if ALERTS.is_whole(row))
        return count.integer("n"), tuple(_alert(row) for row in whole)

    def unsent(self) -> dict[AlertState, int]:
        """Count the alerts that wait, and those that were given up."""
        rows = self._database.query(
            "SELECT state, count(*) AS n FROM alerts WHERE state <> 'SENT' GROUP BY state"
        )
        counts = {AlertState(row.text("state")): row.integer("n") for row in rows}
        return {state: counts.get(state, 0) for state in _UNSENT}

    def states(self, urn: str) -> dict[str, AlertState]:
        """Return whether the alerts on breaking changes were sent, by version of a dataset."""
        rows = self._database.query(
            "SELECT version, state FROM alerts WHERE urn = :urn AND level = :level "
            "GROUP BY version, state",
            {"urn": urn, "level": ChangeLevel.BREAKING.value},
        )
        found: dict[str, set[AlertState]] = {}
        for row in rows:
            found.setdefault(row.text("version"), set()).add(AlertState(row.text("state")))
        return {
            version: next(state for state in _WORST_FIRST if state in states)
            for version, states in found.items()
        }


def _due(at: datetime, everything: bool) -> dict[str, SqlValue]:
    """Return what decides whether an alert is due; with `everything`, all that is unsent."""
    now = as_moment(at)
    return {
        "at": now,
        "implausible": as_moment(at + _LONGEST_DELAY),
        "due": END_OF_TIME if everything else now,
        "also": (AlertState.FAILED if everything else AlertState.PENDING).value,
    }


def _alert(row: Row) -> Alert:
    waits = row.text("state") == AlertState.PENDING
    return Alert.from_json(
        {
            "id": row.text("id"),
            "channel": row.text("channel"),
            "state": row.text("state"),
            "attempts": row.integer("attempts"),
            "created_at": row.text("created_at"),
            "next_attempt_at": row.text("next_attempt_at") if waits else None,
            "sent_at": row.optional_text("sent_at"),
            "error": row.optional_text("error"),
            "finding": as_model(AlertFinding, row.text("document")),
        }
    )
