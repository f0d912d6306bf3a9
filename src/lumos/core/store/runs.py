"""The runs of Lumos: which go on, and the reports that the others ended with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from pydantic import JsonValue

from lumos.core.store.checksums import RUNS
from lumos.core.store.documents import (
    CLOCK_SLACK,
    END_OF_TIME,
    as_moment,
    checked_key,
    stored_object,
    stored_text,
)
from lumos.core.store.leases import WRITE_STATE, current_fence
from lumos.core.store.sql_text import storable

if TYPE_CHECKING:
    from lumos.core.store.database import StateDatabase
    from lumos.core.store.engine import Row, SqlValue


class RunState(StrEnum):
    """How far a run came."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    ABORTED = "aborted"
    """The user stopped it."""
    EXPIRED = "expired"
    """Its process ended, or was paused, and its lease with it."""


class StoredRun(NamedTuple):
    """One run as it was saved."""

    id: str
    operation: str
    started_at: datetime
    finished_at: datetime | None
    report: Mapping[str, JsonValue]
    """Empty for a run that goes on, or that could not leave one."""
    state: RunState = RunState.DONE


class RunRepository:
    """Run reports in the state database."""

    def __init__(self, database: StateDatabase) -> None:
        self._database = database

    def save(
        self,
        run_id: str,
        report: Mapping[str, JsonValue],
        *,
        operation: str,
        started_at: datetime,
        finished_at: datetime | None = None,
        state: RunState = RunState.DONE,
        fence: int | None = None,
    ) -> None:
        """Keep a run, in place of an earlier one of the same id.

        Args:
            run_id: the run.
            report: what it did; empty while it goes on.
            operation: what it does.
            started_at: when it began.
            finished_at: when it ended.
            state: how far it came.
            fence: the number of the lease that it writes under.
        """
        row: dict[str, SqlValue] = {
            "id": checked_key(storable(run_id)),
            "operation": storable(operation),
            "started_at": as_moment(started_at),
            "finished_at": as_moment(finished_at) if finished_at else None,
            "document": stored_text(dict(report)),
            "state": state.value,
            "fence": fence,
        }
        self._database.execute(
            "INSERT INTO runs "
            "(id, operation, started_at, finished_at, document, checksum, state, fence) VALUES "
            "(:id, :operation, :started_at, :finished_at, :document, :checksum, :state, :fence) "
            "ON CONFLICT (id) DO UPDATE SET operation = excluded.operation, "
            "started_at = excluded.started_at, finished_at = excluded.finished_at, "
            "document = excluded.document, checksum = excluded.checksum, "
            "state = excluded.state, fence = excluded.fence",
            {**row, "checksum": RUNS.checksum(row)},
        )

    def expire(self, *, before: int) -> None:
        """Mark the runs that go on under leases of lower numbers: these leases have ended."""
        self._database.execute(
            "UPDATE runs SET state = :expired WHERE state = :running AND fence < :before",
            {"expired": RunState.EXPIRED, "running": RunState.RUNNING, "before": before},
        )

    def get(self, run_id: str) -> StoredRun | None:
        """Return one run, if it was saved."""
        rows = self._database.query("SELECT * FROM runs WHERE id = :id", {"id": storable(run_id)})
        return self._stored(rows)[0] if rows else None

    def recent(self, limit: int = 20, *, now: datetime | None = None) -> tuple[StoredRun, ...]:
        """Return the runs that started last, newest first.

        Args:
            limit: how many.
            now: runs that are dated after this come last: their clock was wrong.
        """
        rows = self._database.query(
            "SELECT * FROM runs ORDER BY CASE WHEN started_at > :now THEN 1 ELSE 0 END, "
            "started_at DESC, id DESC LIMIT :limit",
            {"limit": limit, "now": as_moment(now + CLOCK_SLACK) if now else END_OF_TIME},
        )
        return tuple(self._stored(rows))

    def _stored(self, rows: Sequence[Row]) -> list[StoredRun]:
        lease: int | None = None
        if any(row["state"] == RunState.RUNNING for row in rows):
            lease = current_fence(self._database, WRITE_STATE)
        return [_stored(row, lease=lease) for row in rows]


def _state(row: Row, *, lease: int | None) -> RunState:
    """Return how far a run came, given the number of the lease that somebody has."""
    state = RunState(row.optional_text("state") or RunState.DONE)
    if state is RunState.RUNNING and row["fence"] != lease:
        return RunState.EXPIRED
    return state


def _stored(row: Row, *, lease: int | None) -> StoredRun:
    RUNS.require(row)
    finished = row.optional_text("finished_at")
    return StoredRun(
        id=row.text("id"),
        operation=row.text("operation"),
        started_at=datetime.fromisoformat(row.text("started_at")),
        finished_at=datetime.fromisoformat(finished) if finished else None,
        report=stored_object(row.text("document")),
        state=_state(row, lease=lease),
    )
