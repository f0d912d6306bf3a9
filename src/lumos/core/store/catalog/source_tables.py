"""What the state remembers of sources: which file names them, and where their last scan ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from lumos.core.store.catalog.contributions import contributor_of
from lumos.core.store.documents import checked_key
from lumos.core.store.sql_text import as_key, from_key

if TYPE_CHECKING:
    from lumos.core.models import Contributor
    from lumos.core.store.database import StateDatabase


class ConfiguredSources:
    """The sources of each settings file that writes to the state."""

    def __init__(self, database: StateDatabase) -> None:
        self._database = database

    def taken_out(self, settings: str, now: Iterable[Contributor]) -> list[Contributor]:
        """Return those that a settings file named before and no file names any more.

        Args:
            settings: the file, by a name that stays the same.
            now: all that it names now.
        """
        rows = self._database.query("SELECT settings, contributor FROM configured_sources")
        key, named = as_key(settings), set(now)
        mine = {contributor_of(row.text("contributor")) for row in rows if row["settings"] == key}
        others = {contributor_of(row.text("contributor")) for row in rows if row["settings"] != key}
        return sorted(mine - named - others)

    def replace(self, settings: str, now: Iterable[Contributor]) -> None:
        """Keep what a settings file names, as part of the caller's transaction."""
        key = checked_key(as_key(settings))
        self._database.execute(
            "DELETE FROM configured_sources WHERE settings = :settings", {"settings": key}
        )
        self._database.execute_many(
            "INSERT INTO configured_sources (settings, contributor) "
            "VALUES (:settings, :contributor)",
            ({"settings": key, "contributor": as_key(str(each))} for each in sorted(set(now))),
        )


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
