"""Documents that belong to the catalog as a whole, kept on the one table that is no dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, TypeVar, cast

from sqlalchemy import delete, or_

from lumos.core.errors import PlatformAnswerError
from lumos.core.platform.impl.amundsen import tables
from lumos.core.platform.impl.amundsen.database import rows_of
from lumos.core.platform.impl.amundsen.packed_text import packed, unpacked
from lumos.core.platform.impl.amundsen.table_reader import CARRIER, OWN_SOURCES
from lumos.core.platform.impl.amundsen.table_writer import TableWriter

if TYPE_CHECKING:
    from pydantic import JsonValue
    from sqlalchemy import ColumnElement, Connection

    from lumos.core.platform.impl.amundsen.database import AmundsenDatabase, Row
    from lumos.core.platform.unreadable import UnreadableItems

R = TypeVar("R")
_NOTE = tables.NOTE


class Shelf:
    """Sections of documents, each document under a name of letters, digits and hyphens."""

    def __init__(self, database: AmundsenDatabase, connection: Connection) -> None:
        self._database = database
        self._connection = connection

    def put(self, section: str, name: str, document: JsonValue) -> None:
        """Keep a document, in place of the one of that name."""
        TableWriter(self._database, self._connection).place(CARRIER)
        rows: list[Row] = [
            {
                "rk": f"{_place(section, name)}/{place:04}",
                "description_source": _source(section),
                "description": text,
                "table_rk": CARRIER.text,
            }
            for place, text in enumerate(packed(document))
        ]
        self._database.bring(self._connection, _NOTE, rows=rows, scope=_of(section, name))

    def remove(self, section: str, name: str) -> None:
        """Take a document away, if it is there."""
        self._connection.execute(delete(_NOTE).where(_of(section, name)))

    def read(
        self,
        section: str,
        act: Callable[[dict[str, JsonValue]], R],
        *patterns: str,
        unread: UnreadableItems,
        kind: str,
    ) -> Iterator[tuple[str, R]]:
        """Yield name and what is read: all of a section, or those whose names are LIKE a pattern.

        A document that was changed by others is noted under a kind.
        """

        def one(found: tuple[str, list[str]]) -> tuple[str, R]:
            name, pieces = found
            return name, act(cast("dict[str, JsonValue]", unpacked(pieces)))

        yield from unread.each(
            kind,
            self._texts(section, *patterns),
            one,
            name=lambda found: f"{section}/{found[0]}",
            also=(PlatformAnswerError,),
        )

    def _texts(self, section: str, *patterns: str) -> Iterator[tuple[str, list[str]]]:
        scope = (_NOTE.c.table_rk == CARRIER.text) & (
            _NOTE.c.description_source == _source(section)
        )
        if patterns:
            scope &= or_(*(_NOTE.c.rk.like(f"{_place(section, each)}/%") for each in patterns))
        rows = rows_of(self._connection, _NOTE, scope)
        for place, pieces in groupby(rows, key=lambda row: str(row["rk"]).rsplit("/", 1)[0]):
            name = place.rsplit("/", 1)[1]
            yield name, [str(piece["description"]) for piece in pieces]


def _place(section: str, name: str) -> str:
    return f"{CARRIER.text}/{section}/{name}"


def _source(section: str) -> str:
    return f"{OWN_SOURCES}{section}"


def _of(section: str, name: str) -> ColumnElement[bool]:
    return (_NOTE.c.table_rk == CARRIER.text) & _NOTE.c.rk.like(f"{_place(section, name)}/%")
