"""Reads the system catalog of a database, row by row."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from typing_extensions import override

from lumos.core.errors import SourceError
from lumos.feature.ingestion.handlers.postgres import queries
from lumos.feature.ingestion.handlers.postgres.connection import server_of_settings
from lumos.feature.ingestion.handlers.postgres.types import TypeCatalog

if TYPE_CHECKING:
    import psycopg

    from lumos.feature.ingestion.handlers.postgres.datasets import Row
    from lumos.feature.ingestion.handlers.postgres.settings import PostgresSettings

_LOCK_NOT_AVAILABLE: Final = "55P03"
_DAMAGED: Final = ("XX", "22")
"""Classes of errors that one table or view causes: an internal error, a value that is wrong."""
_MOST_DAMAGED: Final = 100
"""After so many of them the server is taken as broken."""
_MOST_LOCK_WAITS: Final = 20
"""How often a scan waits for locks; where tables change that often, another time is better."""


class CatalogReader:
    """Reads schemas, types, tables and views within one transaction."""

    def __init__(self, connection: psycopg.Connection[Any], settings: PostgresSettings) -> None:
        self._connection = connection
        self._settings = settings
        self._locked: list[int] = []
        self._lock_waits = 0
        self._damaged = 0
        _read_text_as_bytes(connection)

    def schemas(self) -> list[int]:
        """Return the numbers of the schemas to read.

        Raises:
            SourceError: no schema has a name that the settings ask for.
        """
        found = {
            _decoded(name): number
            for number, name in self._connection.execute(queries.SCHEMAS).fetchall()
        }
        if missing := self._settings.unmatched(tuple(found)):
            raise SourceError(
                f"{server_of_settings(self._settings)} has no schema that fits '{missing[0]}'",
                hint="check schemas of the source; a schema that is gone is taken out there",
            )
        return [number for name, number in found.items() if self._settings.reads_schema(name)]

    def types(self) -> TypeCatalog:
        """Return all types that columns can have."""
        catalog = TypeCatalog()
        with self._connection.cursor() as cursor:
            for (document,) in cursor.stream(queries.TYPES):
                catalog.add(json.loads(_decoded(document)))
        return catalog

    def relations(self, schemas: list[int]) -> Iterator[Row]:
        """Yield all tables, then all views, each in the order of their numbers.

        Tables come from one query that the server answers while it reads. A row is marked
        `is_locked` where another session keeps all others from looking at the table, and
        `is_broken` where the server fails to describe it.
        """
        yield from self._read(queries.TABLES, queries.TABLE_KINDS, schemas=schemas, at_once=None)
        yield from self._read(
            queries.VIEWS, queries.VIEW_KINDS, schemas=schemas, at_once=queries.VIEWS_AT_ONCE
        )

    def _read(
        self, query: str, kinds: tuple[str, ...], *, schemas: list[int], at_once: int | None
    ) -> Iterator[Row]:
        import psycopg

        place = {"kinds": list(kinds), "schemas": schemas, "after": 0, "most": at_once}
        self._connection.execute("SAVEPOINT lumos")
        while True:
            count = 0
            try:
                for number, row in self._streamed(query, place):
                    place["after"] = number
                    count += 1
                    if not row.get("is_gone"):
                        yield row
            except psycopg.Error as error:
                if not self._may_go_on_after(error):
                    raise
                self._connection.execute("ROLLBACK TO SAVEPOINT lumos")
                if self._is_about_new_locks(error):
                    continue
                # Rows come in order, so the query failed at the one after the last.
                mark = "is_locked" if error.sqlstate == _LOCK_NOT_AVAILABLE else "is_broken"
                failed_at = list(self._streamed(queries.NEXT, place))
                if not failed_at:
                    raise
                for number, row in failed_at:
                    place["after"] = number
                    yield {**row, mark: True}
            else:
                # Views leave locks behind on the tables that they read.
                self._connection.execute("ROLLBACK TO SAVEPOINT lumos")
                if at_once is None or count < at_once:
                    return

    def _streamed(self, query: str, place: dict[str, Any]) -> Iterator[tuple[int, Row]]:
        with self._connection.cursor() as cursor:
            for number, document in cursor.stream(query, {**place, "locked": self._locked}):
                yield number, json.loads(_decoded(document))

    def _may_go_on_after(self, error: psycopg.Error) -> bool:
        state = error.sqlstate or ""
        if state.startswith(_DAMAGED):
            self._damaged += 1
            return self._damaged <= _MOST_DAMAGED
        self._lock_waits += state == _LOCK_NOT_AVAILABLE
        return state == _LOCK_NOT_AVAILABLE and self._lock_waits <= _MOST_LOCK_WAITS

    def _is_about_new_locks(self, error: psycopg.Error) -> bool:
        """Return whether other sessions hold locks that the next try will keep away from."""
        if error.sqlstate != _LOCK_NOT_AVAILABLE:
            return False
        known = set(self._locked)
        found = {number for (number,) in self._connection.execute(queries.LOCKED).fetchall()}
        self._locked = sorted(known | found)
        return not found <= known


def _read_text_as_bytes(connection: psycopg.Connection[Any]) -> None:
    """Let text of the server come undecoded: a database of SQL_ASCII may hold any bytes."""
    from psycopg.adapt import Loader

    class RawText(Loader):
        @override
        def load(self, data: bytes | bytearray | memoryview) -> bytes:
            return bytes(data)

    connection.adapters.register_loader("text", RawText)


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")
