"""Where the last complete scan of a source ended, for the next one to plan by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lumos.core.store.documents import checked_key
from lumos.core.store.sql_text import as_key, from_key

if TYPE_CHECKING:
    from lumos.core.store.database import StateDatabase


class ScanMarks:
    """The marks of each source."""

    def __init__(self, database: StateDatabase) -> None:
        self._database = database

    def of(self, source: str) -> dict[str, str]:
        """Return the marks that the last complete scan of a source left."""
        rows = self._database.query(
            "SELECT mark, value FROM scan_marks WHERE source = :source", {"source": as_key(source)}
        )
        return {from_key(row.text("mark")): from_key(row.text("value")) for row in rows}

    def replace(self, source: str, marks: Mapping[str, str]) -> None:
        """Keep the marks of a complete scan, as part of the caller's transaction."""
        name = checked_key(as_key(source))
        self._database.execute("DELETE FROM scan_marks WHERE source = :source", {"source": name})
        self._database.execute_many(
            "INSERT INTO scan_marks (source, mark, value) VALUES (:source, :mark, :value)",
            (
                {"source": name, "mark": checked_key(as_key(mark)), "value": as_key(value)}
                for mark, value in marks.items()
            ),
        )
