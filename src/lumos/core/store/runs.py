"""The runs of Lumos and the reports they ended with."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from pydantic import JsonValue

from lumos.core.store.checksums import RUNS
from lumos.core.store.documents import (
    CLOCK_SLACK,
    END_OF_TIME,
    as_moment,
    as_object,
    as_text,
    checked_key,
)
from lumos.core.store.sql_text import storable

if TYPE_CHECKING:
    from lumos.core.store.database import StateDatabase
    from lumos.core.store.engine import Row, SqlValue


class StoredRun(NamedTuple):
    """One run as it was saved."""

    id: str
    operation: str
    started_at: datetime
    finished_at: datetime | None
    report: Mapping[str, JsonValue]


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
    ) -> None:
        """Keep the report of a run, in place of an earlier one of the same id."""
        row: dict[str, SqlValue] = {
            "id": checked_key(storable(run_id)),
            "operation": storable(operation),
            "started_at": as_moment(started_at),
            "finished_at": as_moment(finished_at) if finished_at else None,
            "document": as_text(dict(report)),
        }
        self._database.execute(
            "INSERT INTO runs (id, operation, started_at, finished_at, document, checksum) "
            "VALUES (:id, :operation, :started_at, :finished_at, :document, :checksum) "
            "ON CONFLICT (id) DO UPDATE SET operation = excluded.operation, "
            "started_at = excluded.started_at, finished_at = excluded.finished_at, "
            "document = excluded.document, checksum = excluded.checksum",
            {**row, "checksum": RUNS.checksum(row)},
        )

    def get(self, run_id: str) -> StoredRun | None:
        """Return one run, if it was saved."""
        rows = self._database.query("SELECT * FROM runs WHERE id = :id", {"id": storable(run_id)})
        return _stored(rows[0]) if rows else None

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
        return tuple(_stored(row) for row in rows)


def _stored(row: Row) -> StoredRun:
    RUNS.require(row)
    finished = row.optional_text("finished_at")
    return StoredRun(
        id=row.text("id"),
        operation=row.text("operation"),
        started_at=datetime.fromisoformat(row.text("started_at")),
        finished_at=datetime.fromisoformat(finished) if finished else None,
        report=as_object(row.text("document")),
    )
