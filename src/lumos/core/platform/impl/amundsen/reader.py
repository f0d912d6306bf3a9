"""Reads tables of Amundsen with all that hangs on them, many by one query for each kind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

from sqlalchemy import select

from lumos.core.errors import PlatformAnswerError
from lumos.core.json_reading import object_at
from lumos.core.models import LumosDataset, Urn, with_parts
from lumos.core.platform.fitting import fitting
from lumos.core.platform.impl.amundsen.client.database import Row, Value, rows_of
from lumos.core.platform.impl.amundsen.mapping import tables
from lumos.core.platform.impl.amundsen.mapping.conversion import EXTENSION, dataset_of, merged
from lumos.core.platform.impl.amundsen.mapping.keys import TableKey, key_of, native_key_of
from lumos.core.platform.impl.amundsen.mapping.packed_text import unpacked
from lumos.core.platform.impl.amundsen.mapping.records import AmundsenTable
from lumos.core.platform.unreadable import UNFIT, UnreadableItems

if TYPE_CHECKING:
    from pydantic import JsonValue
    from sqlalchemy import Connection, Table

    from lumos.core.json_reading import Json

OWN_BADGES = "lumos"
"""The category of badges that Lumos makes of a column's tags."""
STASH = "lumos-stash"
URN_NOTE = "lumos-urn"
OWN_SOURCES = "lumos-"
CARRIER = TableKey("lumos", "lumos", "stash", "catalog")
"""The one table that stands for no dataset: it carries what belongs to the catalog as a whole."""

_EXTRA_TABLES = (
    tables.WATERMARK,
    tables.SOURCE,
    tables.TIMESTAMP,
    tables.USAGE,
    tables.FOLLOWER,
    tables.NOTE,
)
_NAMED = ("key", "database", "cluster", "schema_name", "name")
"""What a table cannot be read without."""
_OF_PUBLISHER = ("published_tag", "publisher_last_updated_epoch_ms")
_Grouped = Mapping[str, list[dict[str, Value]]]


class Listed(NamedTuple):
    """A table by its key in Amundsen and its URN."""

    urn: Urn
    key: str
    is_own: bool


def listed(
    connection: Connection,
    *,
    keys: Sequence[str] | None = None,
    unread: UnreadableItems | None = None,
) -> list[Listed]:
    """Return tables in the order of their URNs: all, or those of some keys.

    One without a usable name is noted.
    """
    query = (
        select(
            tables.TABLE.c.rk,
            tables.DATABASE.c.name,
            tables.CLUSTER.c.name,
            tables.SCHEMA.c.name,
            tables.TABLE.c.name,
        )
        .join_from(tables.TABLE, tables.SCHEMA)
        .join(tables.CLUSTER)
        .join(tables.DATABASE)
        .where(tables.TABLE.c.rk != CARRIER.text)
    )
    notes = select(tables.NOTE.c.table_rk, tables.NOTE.c.description).where(
        tables.NOTE.c.description_source == URN_NOTE
    )
    if keys is not None:
        query = query.where(tables.TABLE.c.rk.in_(keys))
        notes = notes.where(tables.NOTE.c.table_rk.in_(keys))
    own = {row[0]: row[1] for row in connection.execute(notes)}

    def place(row: Sequence[str]) -> Listed:
        key, *names = row
        urn = Urn(own[key]) if key in own else TableKey(*names).urn()
        return Listed(urn, key, is_own=key in own)

    noted = UnreadableItems() if unread is None else unread
    rows = [[*row] for row in connection.execute(query)]
    return sorted(noted.each("dataset", rows, place, name=lambda row: str(row[0])))


def located(connection: Connection, urn: Urn) -> Listed | None:
    """Return where a dataset is, or nothing where Amundsen does not hold it."""
    candidates = {key_of(urn).text}
    if native := native_key_of(urn):
        candidates.add(native.text)
    found = listed(connection, keys=sorted(candidates))
    return next((each for each in found if each.urn == urn), None)


def located_together(connection: Connection, urns: Sequence[Urn]) -> list[Listed]:
    """Return where some datasets are, without those that Amundsen does not hold."""
    candidates = {key_of(urn).text for urn in urns}
    candidates |= {native.text for urn in urns if (native := native_key_of(urn))}
    wanted = {*urns}
    found = (each for each in listed(connection, keys=sorted(candidates)) if each.urn in wanted)
    return [*{each.urn: each for each in reversed([*found])}.values()]


def read_datasets(
    connection: Connection, places: Sequence[Listed], *, unread: UnreadableItems
) -> list[LumosDataset]:
    """Return the datasets of some tables in the order given, without their lineage.

    One that cannot be read is noted.
    """
    keys = [place.key for place in places]
    if not keys:
        return []
    notes = _by(rows_of(connection, tables.NOTE, tables.NOTE.c.table_rk.in_(keys)), "table_rk")
    records = _records(connection, keys, notes)

    def read(key: str) -> LumosDataset:
        return _dataset(records[key](), notes.get(key, ()))

    there = [key for key in keys if key in records]
    return [*unread.each("dataset", there, read, name=str, also=(PlatformAnswerError,))]


def _dataset(document: Mapping[str, object], notes: Sequence[Row]) -> LumosDataset:
    """Return the dataset of a table; a value that fits none is kept in its extension."""
    try:
        return _whole(AmundsenTable.from_json(document), notes)
    except UNFIT:
        return _fitted(cast("dict[str, JsonValue]", document), notes)


def _fitted(document: dict[str, JsonValue], notes: Sequence[Row]) -> LumosDataset:
    certain = {name: document[name] for name in _NAMED}

    def fits(part: dict[str, JsonValue]) -> bool:
        try:
            _whole(AmundsenTable.from_json({**certain, **part}), notes)
        except UNFIT:
            return False
        return True

    rest = {name: value for name, value in document.items() if name not in certain}
    part = fitting(rest, fits)
    dataset = _whole(AmundsenTable.from_json({**certain, **part}), notes)
    odd: JsonValue = {name: value for name, value in rest.items() if part.get(name) != value}
    extensions = object_at(dataset.document, "extensions")
    own = object_at(extensions, EXTENSION)
    return with_parts(dataset, extensions={**extensions, EXTENSION: {**own, "odd": odd}})


def _whole(record: AmundsenTable, notes: Iterable[Row]) -> LumosDataset:
    pieces = [str(note["description"]) for note in notes if note["description_source"] == STASH]
    if not pieces:
        return dataset_of(record)
    return merged(LumosDataset.from_json(unpacked(pieces)), record)


def _records(
    connection: Connection, keys: Sequence[str], notes: _Grouped
) -> dict[str, Callable[[], dict[str, object]]]:
    """Return for each table what makes the JSON of its record."""
    table, schema = tables.TABLE, tables.SCHEMA
    cluster, database = tables.CLUSTER, tables.DATABASE
    query = (
        select(
            table.c.rk,
            table.c.is_view,
            table.c.name,
            schema.c.name.label("schema_name"),
            cluster.c.name.label("cluster"),
            database.c.name.label("database"),
        )
        .join_from(table, schema)
        .join(cluster)
        .join(database)
        .where(table.c.rk.in_(keys))
    )
    parts = _Parts(connection, keys, notes)

    def document(row: Mapping[str, object]) -> dict[str, object]:
        named = {name: row[name] for name in ("name", "schema_name", "cluster", "database")}
        key = str(row["rk"])
        return {**named, "key": key, "is_view": bool(row["is_view"]), **parts.of(key)}

    rows = [dict(row) for row in connection.execute(query).mappings()]
    return {row["rk"]: partial(document, row) for row in rows}


class _Parts:
    """What hangs on some tables, each kind read once."""

    def __init__(self, connection: Connection, keys: Sequence[str], notes: _Grouped) -> None:
        self._connection = connection
        self._keys = keys
        self._descriptions = self._rows(tables.TABLE_DESCRIPTION)
        self._tags = self._rows(tables.TABLE_TAG)
        self._badges = self._rows(tables.TABLE_BADGE)
        self._owners = self._rows(tables.TABLE_OWNER)
        self._columns = self._rows(tables.COLUMN)
        self._column_descriptions = self._column_rows(tables.COLUMN_DESCRIPTION)
        self._column_badges = self._column_rows(tables.COLUMN_BADGE)
        self._stats = self._column_rows(tables.STAT)
        self._extras = {
            each.name: notes if each is tables.NOTE else self._rows(each) for each in _EXTRA_TABLES
        }
        pairs = tables.TABLE_LINEAGE.c
        itself = pairs.table_source_rk.in_(keys) & (pairs.table_source_rk == pairs.table_target_rk)
        self._itself = _by(rows_of(connection, tables.TABLE_LINEAGE, itself), "table_source_rk")
        applied = tables.APPLICATION_TABLE
        self._applied = _by(rows_of(connection, applied, applied.c.rk.in_(keys)), "rk")
        names = {str(row["application_rk"]) for rows in self._applied.values() for row in rows}
        applications = tables.APPLICATION
        self._applications = _by(
            rows_of(connection, applications, applications.c.rk.in_(sorted(names))), "rk"
        )
        self._categories = {
            str(row["rk"]): str(row["category"])
            for row in rows_of(connection, tables.BADGE, tables.BADGE.c.rk.is_not(None))
        }

    def of(self, key: str) -> dict[str, object]:
        """Return the parts of one table's record."""
        columns = sorted(self._columns.get(key, ()), key=_column_order)
        usage = self._extras[tables.USAGE.name].get(key, ())
        stamps = self._extras[tables.TIMESTAMP.name].get(key, ())
        return {
            "description": _text(self._descriptions.get(key, ())),
            "tags": [row["tag_rk"] for row in self._tags.get(key, ())],
            "badges": [row["badge_rk"] for row in self._badges.get(key, ())],
            "owners": [row["user_rk"] for row in self._owners.get(key, ())],
            "columns": [self._column(row) for row in columns],
            "last_updated": next((row["last_updated_timestamp"] for row in stamps), None),
            "read_count": sum(int(row["read_count"] or 0) for row in usage) if usage else None,
            "extras": self._extras_of(key, [str(row["rk"]) for row in columns]),
        }

    def _column(self, row: Row) -> dict[str, object]:
        key = str(row["rk"])
        return {
            "key": key,
            "name": row["name"],
            "type": row["type"],
            "description": _text(self._column_descriptions.get(key, ())),
            "badges": [badge["badge_rk"] for badge in self._column_badges.get(key, ())],
        }

    def _extras_of(self, key: str, columns: Sequence[str]) -> dict[str, JsonValue]:
        rows: dict[str, list[JsonValue]] = {
            name: [_without_publisher(row) for row in grouped.get(key, ()) if not _is_own(row)]
            for name, grouped in self._extras.items()
        }
        applied = self._applied.get(key, ())
        for row in applied:
            held = self._applications.get(str(row["application_rk"]), ())
            rows.setdefault(tables.APPLICATION.name, []).extend(map(_without_publisher, held))
        rows[tables.APPLICATION_TABLE.name] = [_without_publisher(row) for row in applied]
        lineage = tables.TABLE_LINEAGE.name
        rows[lineage] = [_without_publisher(row) for row in self._itself.get(key, ())]
        rows[tables.STAT.name] = [
            _without_publisher(row) for column in columns for row in self._stats.get(column, ())
        ]
        badges: dict[str, JsonValue] = {
            "table": self._named(self._badges.get(key, ())),
            "column": self._named(
                row for column in columns for row in self._column_badges.get(column, ())
            ),
        }
        extras: dict[str, JsonValue] = {}
        if kept := {level: names for level, names in badges.items() if names}:
            extras["badges"] = {**kept}
        if filled := {name: found for name, found in rows.items() if found}:
            extras["rows"] = {name: [*found] for name, found in filled.items()}
        return extras

    def _named(self, rows: Iterable[Row]) -> dict[str, JsonValue]:
        names = (str(row["badge_rk"]) for row in rows)
        known = {name: self._categories.get(name, "") for name in names}
        return {name: category for name, category in known.items() if category != OWN_BADGES}

    def _rows(self, table: Table) -> _Grouped:
        rows = rows_of(self._connection, table, table.c.table_rk.in_(self._keys))
        return _by(rows, "table_rk")

    def _column_rows(self, table: Table) -> _Grouped:
        column = tables.COLUMN
        query = (
            select(table)
            .join_from(table, column, table.c.column_rk == column.c.rk)
            .where(column.c.table_rk.in_(self._keys))
            .order_by(*table.primary_key.columns)
        )
        return _by((dict(row) for row in self._connection.execute(query).mappings()), "column_rk")


def _column_order(row: Row) -> tuple[bool, int, str]:
    place = row["sort_order"]
    return not isinstance(place, int), place if isinstance(place, int) else 0, str(row["rk"])


def _by(rows: Iterable[dict[str, Value]], name: str) -> _Grouped:
    grouped: dict[str, list[dict[str, Value]]] = defaultdict(list)
    for row in rows:
        grouped[str(row[name])].append(row)
    return dict(grouped)


def _text(rows: Iterable[Row]) -> str | None:
    return next((str(row["description"]) for row in rows if row["description"]), None)


def _is_own(row: Row) -> bool:
    return str(row.get("description_source", "")).startswith(OWN_SOURCES)


def _without_publisher(row: Row) -> Json:
    return {name: value for name, value in row.items() if name not in _OF_PUBLISHER}
