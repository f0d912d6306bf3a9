"""How far an interrupted operation came, kept in the database that it writes to."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from lumos.core.store.checksums import ENTITIES
from lumos.core.store.documents import as_moment, checked_key, stored_object, stored_text

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.store.database import StateDatabase
    from lumos.core.store.engine import SqlValue

_KIND = "checkpoint"  # among the entities, but of no kind that a catalog lists
_RUNS = "runs"
"""How many runs there were when the checkpoint was kept, with the one that kept it."""
_PUT = """
INSERT INTO entities (kind, name, document, updated_at, checksum)
VALUES (:kind, :name, :document, :updated_at, :checksum)
ON CONFLICT (kind, name) DO UPDATE SET
    document = excluded.document, updated_at = excluded.updated_at, checksum = excluded.checksum
"""


class CheckpointRepository:
    """Checkpoints, of which one counts only while nothing else was written."""

    def __init__(self, database: StateDatabase) -> None:
        self._database = database

    def load(self, name: str) -> dict[str, JsonValue] | None:
        """Return what was kept last under a name, unless another run has begun since.

        Runs are counted, but for the one that goes on: a clock that was set in between would make
        their times mean nothing. One that is damaged counts as none: the operation begins anew.
        """
        rows = self._database.query(
            "SELECT kind, name, document, checksum FROM entities "
            "WHERE kind = :kind AND name = :name",
            {"kind": _KIND, "name": name},
        )
        if not rows or not ENTITIES.is_whole(rows[0]):
            return None
        kept = stored_object(rows[0].text("document"))
        if kept.pop(_RUNS, None) != self._runs("WHERE COALESCE(state, '') <> 'running'"):
            return None
        return kept

    def save(self, name: str, document: dict[str, JsonValue], *, at: datetime) -> None:
        """Keep how far an operation came, as part of the caller's transaction."""
        row: dict[str, SqlValue] = {
            "kind": _KIND,
            "name": checked_key(name),
            "document": stored_text({**document, _RUNS: self._runs()}),
            "updated_at": as_moment(at),
        }
        self._database.execute(_PUT, {**row, "checksum": ENTITIES.checksum(row)})

    def _runs(self, which: str = "") -> int:
        (row,) = self._database.query(f"SELECT count(*) AS n FROM runs {which}")  # noqa: S608
        return row.integer("n")

    def forget_all(self) -> None:
        """Remove every checkpoint: whatever was interrupted begins anew."""
        self._database.execute("DELETE FROM entities WHERE kind = :kind", {"kind": _KIND})
