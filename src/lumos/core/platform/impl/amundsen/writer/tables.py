"""Writes a dataset into Amundsen's tables, touching only what differs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from lumos.core.models import DatasetLineage, LumosDataset, with_parts
from lumos.core.platform.impl.amundsen.mapping import tables
from lumos.core.platform.impl.amundsen.mapping.conversion import badge_categories, record_of
from lumos.core.platform.impl.amundsen.mapping.keys import TableKey, fits_key
from lumos.core.platform.impl.amundsen.mapping.packed_text import packed
from lumos.core.platform.impl.amundsen.reader import OWN_BADGES, OWN_SOURCES, STASH, URN_NOTE

if TYPE_CHECKING:
    from sqlalchemy import Connection, Table

    from lumos.core.platform.impl.amundsen.client.database import AmundsenDatabase, Row, Value
    from lumos.core.platform.impl.amundsen.mapping.records import AmundsenTable

_RESTORED = (
    tables.APPLICATION,
    tables.APPLICATION_TABLE,
    tables.WATERMARK,
    tables.SOURCE,
    tables.TIMESTAMP,
    tables.USAGE,
    tables.FOLLOWER,
    tables.NOTE,
    tables.TABLE_LINEAGE,
    tables.STAT,
)
"""What others publish; it is put where it is missing, and never changed or taken away."""
_PLACES = ("table_rk", "column_rk", "rk", "table_source_rk")


class TableWriter:
    """Brings tables in Amundsen to what datasets say."""

    def __init__(self, database: AmundsenDatabase, connection: Connection) -> None:
        self._database = database
        self._connection = connection

    def write(self, dataset: LumosDataset, key: TableKey) -> None:
        """Write a dataset under a key: what Amundsen can show, and the whole beside it."""
        record = record_of(dataset, key)
        self.place(key, is_view=record.is_view)
        self._write_labels(record)
        self._write_columns(record)
        self._write_notes(dataset, record.key)
        self._restore(record)

    def place(self, key: TableKey, *, is_view: bool = False) -> None:
        """Make sure that there is a table of that key, and all that it lies in."""
        missing = self._database.add_missing
        names = {"rk": key.database_key, "name": key.database}
        missing(self._connection, tables.DATABASE, [names])
        cluster = {"rk": key.cluster_key, "name": key.cluster, "database_rk": key.database_key}
        missing(self._connection, tables.CLUSTER, [cluster])
        schema = {"rk": key.schema_key, "name": key.schema, "cluster_rk": key.cluster_key}
        missing(self._connection, tables.SCHEMA, [schema])
        row: Row = {
            "rk": key.text,
            "name": key.table,
            "is_view": is_view,
            "schema_rk": key.schema_key,
        }
        self._bring(tables.TABLE, [row], "rk", of=key.text)

    def add_users(self, names: Iterable[str]) -> None:
        """Make sure that there are users of these names."""
        rows: list[Row] = [{"rk": name, "email": name, "is_active": True} for name in names]
        self._database.add_missing(self._connection, tables.USER, rows)

    def add_tags(self, names: Iterable[str]) -> None:
        """Make sure that there are tags of these names."""
        rows: list[Row] = [{"rk": name, "tag_type": "default"} for name in names]
        self._database.add_missing(self._connection, tables.TAG, rows)

    def _write_labels(self, record: AmundsenTable) -> None:
        key = record.key
        self.add_users(record.owners)
        self.add_tags(record.tags)
        self._add_badges(record.badges, badge_categories(record.extras, "table"))
        self._join(tables.TABLE_OWNER, key, user_rk=record.owners)
        self._join(tables.TABLE_TAG, key, tag_rk=record.tags)
        self._join(tables.TABLE_BADGE, key, badge_rk=record.badges)
        text = _description(f"{key}/_description", record.description, table_rk=key)
        self._bring(tables.TABLE_DESCRIPTION, text, "table_rk", of=key)

    def _write_columns(self, record: AmundsenTable) -> None:
        names = {badge for column in record.columns for badge in column.badges}
        self._add_badges(sorted(names), badge_categories(record.extras, "column"))
        rows: list[Row] = [
            {
                "rk": column.key,
                "name": column.name,
                "type": column.type,
                "sort_order": place,
                "table_rk": record.key,
            }
            for place, column in enumerate(record.columns)
        ]
        self._bring(tables.COLUMN, rows, "table_rk", of=record.key)
        keys = [column.key for column in record.columns]
        texts: list[Row] = []
        badges: list[Row] = []
        for column in record.columns:
            place = f"{column.key}/_description"
            texts += _description(place, column.description, column_rk=column.key)
            badges += ({"column_rk": column.key, "badge_rk": badge} for badge in column.badges)
        for table, wanted in ((tables.COLUMN_DESCRIPTION, texts), (tables.COLUMN_BADGE, badges)):
            scope = table.c.column_rk.in_(keys)
            self._database.bring(self._connection, table, rows=wanted, scope=scope)

    def _write_notes(self, dataset: LumosDataset, key: str) -> None:
        whole = with_parts(dataset, lineage=DatasetLineage()).to_json()
        rows = [_note(key, URN_NOTE, 0, text=dataset.urn)]
        rows += (_note(key, STASH, place, text=text) for place, text in enumerate(packed(whole)))
        note = tables.NOTE
        scope = (note.c.table_rk == key) & note.c.description_source.in_((STASH, URN_NOTE))
        self._database.bring(self._connection, note, rows=rows, scope=scope)

    def _restore(self, record: AmundsenTable) -> None:
        given = record.extras.get("rows")
        if not isinstance(given, Mapping):
            return
        columns = {column.key for column in record.columns}
        for table in _RESTORED:
            found = given.get(table.name)
            rows = [
                row
                for each in (found if isinstance(found, list | tuple) else ())
                if (row := _restorable(table, each, record.key, columns=columns))
            ]
            self.add_users({str(row["user_rk"]) for row in rows if "user_rk" in row})
            self._database.add_missing(self._connection, table, rows)

    def _add_badges(self, names: Iterable[str], categories: Mapping[str, str]) -> None:
        rows: list[Row] = [
            {"rk": name, "category": categories.get(name, OWN_BADGES)[: tables.LONGEST_CATEGORY]}
            for name in names
        ]
        self._database.add_missing(self._connection, tables.BADGE, rows)

    def _join(self, table: Table, key: str, **names: tuple[str, ...]) -> None:
        rows: list[Row] = [
            {"table_rk": key, other: name} for other, given in names.items() for name in given
        ]
        self._bring(table, rows, "table_rk", of=key)

    def _bring(self, table: Table, rows: list[Row], name: str, *, of: str) -> None:
        self._database.bring(self._connection, table, rows=rows, scope=table.c[name] == of)


def _description(key: str, text: str | None, **owner: str) -> list[Row]:
    if text is None:
        return []
    return [{"rk": key, "description_source": "description", "description": text, **owner}]


def _note(key: str, source: str, place: int, *, text: str) -> Row:
    return {
        "rk": f"{key}/_{source}_{place:04}",
        "description_source": source,
        "description": text,
        "table_rk": key,
    }


def _restorable(table: Table, row: object, key: str, *, columns: set[str]) -> Row | None:
    """Return a row that a dataset carries, if it is one of this table and hangs on this key."""
    if not isinstance(row, Mapping) or not {*row} <= {*table.c.keys()}:
        return None
    if any(not isinstance(value, str | int | None) for value in row.values()):
        return None
    if not all(column.name in row for column in table.primary_key.columns):
        return None
    if str(row.get("description_source", "")).startswith(OWN_SOURCES):
        return None
    if table is not tables.APPLICATION:
        place = next((row[name] for name in _PLACES if name in row), None)
        if place != row.get("table_target_rk", place):  # other lineage has its own way
            return None
        if place != key and place not in columns:
            return None
    user = row.get("user_rk", "x")
    fits = isinstance(user, str) and fits_key(user, longest=tables.LONGEST_USER)
    given: dict[str, Value] = {str(name): value for name, value in row.items()}
    return given if fits else None
