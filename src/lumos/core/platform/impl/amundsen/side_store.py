"""The backend of the side store: descriptions of the one table that is no dataset."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from sqlalchemy import delete, or_

from lumos.core.platform.impl.amundsen.client.database import rows_of
from lumos.core.platform.impl.amundsen.mapping import tables
from lumos.core.platform.impl.amundsen.mapping.packed_text import packed, unpacked
from lumos.core.platform.impl.amundsen.reader import CARRIER, OWN_SOURCES
from lumos.core.platform.impl.amundsen.writer.tables import TableWriter
from lumos.core.platform.side_store import SideStore, StoredDocument

if TYPE_CHECKING:
    from pydantic import JsonValue
    from sqlalchemy import ColumnElement, Connection

    from lumos.core.platform.impl.amundsen.client.database import AmundsenDatabase, Row

_NOTE = tables.NOTE


def side_store(database: AmundsenDatabase, connection: Connection) -> SideStore:
    """Return the side store within one transaction."""
    return SideStore(Notes(database, connection))


class Notes:
    """Documents as descriptions; their names have letters, digits and hyphens only."""

    def __init__(self, database: AmundsenDatabase, connection: Connection) -> None:
        self._database = database
        self._connection = connection

    def stored(
        self, section: str, names: Collection[str] | None = None, *, like: Collection[str] = ()
    ) -> Iterator[StoredDocument]:
        """Yield the documents of a section, or those of names or patterns."""
        scope = (_NOTE.c.table_rk == CARRIER.text) & (
            _NOTE.c.description_source == f"{OWN_SOURCES}{section}"
        )
        if chosen := [*(names or ()), *like]:
            scope &= or_(*(_NOTE.c.rk.like(f"{_place(section, each)}/%") for each in chosen))
        rows = rows_of(self._connection, _NOTE, scope)
        for place, pieces in groupby(rows, key=lambda row: str(row["rk"]).rsplit("/", 1)[0]):
            texts = [str(piece["description"]) for piece in pieces]
            yield StoredDocument(place.rsplit("/", 1)[1], partial(unpacked, texts))

    def write(self, section: str, documents: Mapping[str, JsonValue]) -> None:
        """Keep documents in place of those of the same names."""
        if documents:
            TableWriter(self._database, self._connection).place(CARRIER)
        for name, document in documents.items():
            rows: list[Row] = [
                {
                    "rk": f"{_place(section, name)}/{place:04}",
                    "description_source": f"{OWN_SOURCES}{section}",
                    "description": text,
                    "table_rk": CARRIER.text,
                }
                for place, text in enumerate(packed(document))
            ]
            self._database.bring(self._connection, _NOTE, rows=rows, scope=_of(section, name))

    def delete(
        self, section: str, names: Collection[str] = (), *, like: Collection[str] = ()
    ) -> None:
        """Remove the documents of names or patterns, if they are there."""
        for each in (*names, *like):
            self._connection.execute(delete(_NOTE).where(_of(section, each)))


def _place(section: str, name: str) -> str:
    return f"{CARRIER.text}/{section}/{name}"


def _of(section: str, name: str) -> ColumnElement[bool]:
    return (_NOTE.c.table_rk == CARRIER.text) & _NOTE.c.rk.like(f"{_place(section, name)}/%")
