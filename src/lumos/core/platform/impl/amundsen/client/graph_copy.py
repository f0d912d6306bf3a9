"""Amundsen's graph, copied into the tables that Amundsen would keep it in on MySQL.

So there is one way to read Amundsen. The copy lies in a temporary file until the adapter is closed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple

import sqlalchemy
from sqlalchemy import Boolean, Integer, Table, insert, update
from typing_extensions import override

from lumos.core.json_reading import list_at
from lumos.core.platform.impl.amundsen.client.database import AmundsenDatabase
from lumos.core.platform.impl.amundsen.client.neo4j_graph import Neo4jGraph, Related, Relation
from lumos.core.platform.impl.amundsen.mapping import tables

if TYPE_CHECKING:
    from pydantic import JsonValue
    from sqlalchemy import Connection, Engine

    from lumos.core.json_reading import Json

_PUBLISHED: Final = ("published_tag", "publisher_last_updated_epoch_ms")
_ROWS_AT_ONCE: Final = 1_000
_NODES: Final[Mapping[str, Table]] = {
    "Database": tables.DATABASE,
    "User": tables.USER,
    "Tag": tables.TAG,
    "Badge": tables.BADGE,
    "Application": tables.APPLICATION,
}


class _Owned(NamedTuple):
    """A table whose rows are nodes, and the column that names the node they hang on."""

    table: Table
    owner: str


class _Joined(NamedTuple):
    """A table whose rows are relations, and the columns that name the two ends."""

    table: Table
    start: str
    end: str


_OWNED: Final[Mapping[Relation, _Owned]] = {
    Relation("Database", "CLUSTER", "Cluster"): _Owned(tables.CLUSTER, "database_rk"),
    Relation("Cluster", "SCHEMA", "Schema"): _Owned(tables.SCHEMA, "cluster_rk"),
    Relation("Schema", "TABLE", "Table"): _Owned(tables.TABLE, "schema_rk"),
    Relation("Table", "COLUMN", "Column"): _Owned(tables.COLUMN, "table_rk"),
    Relation("Table", "DESCRIPTION", "Description"): _Owned(tables.TABLE_DESCRIPTION, "table_rk"),
    Relation("Table", "DESCRIPTION", "Programmatic_Description"): _Owned(tables.NOTE, "table_rk"),
    Relation("Column", "DESCRIPTION", "Description"): _Owned(
        tables.COLUMN_DESCRIPTION, "column_rk"
    ),
    Relation("Column", "STAT", "Stat"): _Owned(tables.STAT, "column_rk"),
    Relation("Table", "SOURCE", "Source"): _Owned(tables.SOURCE, "table_rk"),
    Relation("Table", "LAST_UPDATED_AT", "Timestamp"): _Owned(tables.TIMESTAMP, "table_rk"),
    Relation("Table", "WATERMARK", "Watermark"): _Owned(tables.WATERMARK, "table_rk"),
}
_APPLICATIONS: Final = Relation("Table", "DERIVED_FROM", "Application")
_JOINED: Final[Mapping[Relation, _Joined]] = {
    Relation("Table", "TAGGED_BY", "Tag"): _Joined(tables.TABLE_TAG, "table_rk", "tag_rk"),
    Relation("Table", "HAS_BADGE", "Badge"): _Joined(tables.TABLE_BADGE, "table_rk", "badge_rk"),
    Relation("Column", "HAS_BADGE", "Badge"): _Joined(tables.COLUMN_BADGE, "column_rk", "badge_rk"),
    Relation("Table", "OWNER", "User"): _Joined(tables.TABLE_OWNER, "table_rk", "user_rk"),
    Relation("Table", "FOLLOWED_BY", "User"): _Joined(tables.FOLLOWER, "table_rk", "user_rk"),
    Relation("Table", "READ_BY", "User"): _Joined(tables.USAGE, "table_rk", "user_rk"),
    _APPLICATIONS: _Joined(tables.APPLICATION_TABLE, "rk", "application_rk"),
    Relation("Table", "HAS_DOWNSTREAM", "Table"): _Joined(
        tables.TABLE_LINEAGE, "table_source_rk", "table_target_rk"
    ),
    Relation("Column", "HAS_DOWNSTREAM", "Column"): _Joined(
        tables.COLUMN_LINEAGE, "column_source_rk", "column_target_rk"
    ),
}
_MANAGER: Final = Relation("User", "MANAGE_BY", "User")
_SCHEMA_TEXT: Final = Relation("Schema", "DESCRIPTION", "Description")
_KINDS: Final = frozenset(
    {
        *(relation.kind for relation in (*_OWNED, *_JOINED, _MANAGER)),
        "CLUSTER_OF", "SCHEMA_OF", "TABLE_OF", "COLUMN_OF", "DESCRIPTION_OF", "STAT_OF",
        "SOURCE_OF", "LAST_UPDATED_TIME_OF", "BELONG_TO_TABLE", "TAG", "BADGE_FOR", "OWNER_OF",
        "FOLLOW", "READ", "GENERATES", "HAS_UPSTREAM", "MANAGE",
    }
)  # fmt: skip
"""Relations that are read above, and the same ones in the other direction."""
_KNOWN: Final = frozenset(
    {*_NODES, *(relation.end for relation in _OWNED), *(relation.start for relation in _OWNED)}
)


_PARTS: Final = sorted(
    {(relation.kind, relation.end) for relation in _OWNED if relation.start in {"Table", "Column"}}
    - {("COLUMN", "Column")}
)
"""What may hang on anything, such as a text on a dashboard."""
_NAMES: Final[Mapping[str, Mapping[str, str]]] = {tables.COLUMN.name: {"type": "col_type"}}
"""Columns that a property of another name fills."""


class GraphCopy(AmundsenDatabase):
    """The database that Amundsen would have, filled from its graph when it is first asked."""

    def __init__(self, graph: Neo4jGraph, *, clock: Callable[[], datetime]) -> None:
        self._graph = graph
        self._folder = TemporaryDirectory(prefix="lumos-amundsen-")
        self._fill = Lock()
        self._filled = False
        self.rest: Json = {}
        super().__init__(_empty_copy(Path(self._folder.name)), clock=clock)

    @override
    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        with self._fill:
            if not self._filled and not self._closed:
                with super().transaction() as connection:
                    self.rest = _filled(connection, self._graph)
                self._filled = True
        with super().transaction() as connection:
            yield connection

    def forget(self) -> None:
        """Read the graph anew when next asked."""
        with self._fill:
            if self._filled:
                self._engine.dispose()
                self._engine = _empty_copy(Path(self._folder.name))
                self._filled = False

    @override
    def close(self) -> None:
        super().close()
        self._graph.close()
        self._folder.cleanup()


def _empty_copy(folder: Path) -> Engine:
    path = folder / "copy.db"
    path.unlink(missing_ok=True)
    engine = sqlalchemy.create_engine(f"sqlite:///{path}", hide_parameters=True)
    tables.METADATA.create_all(engine)
    return engine


def _filled(connection: Connection, graph: Neo4jGraph) -> Json:
    """Fill the tables, and return what has no place in them."""
    properties: dict[str, JsonValue] = {}
    for label, table in _NODES.items():
        found = (_row(table, key, told) for key, told in graph.nodes(label))
        _insert(connection, table, _noting(found, properties, label))
    for relation, (table, owner) in _OWNED.items():
        rows = (_owned_row(table, owner, each) for each in graph.relations(relation))
        _insert(connection, table, _noting(rows, properties, relation.end))
    for relation, place in _JOINED.items():
        rows = (_joined_row(place, each) for each in graph.relations(relation))
        _insert(connection, place.table, _noting(rows, {}, ""))
    others = _other_applications(connection, graph)
    for each in graph.relations(_MANAGER):
        chosen = update(tables.USER).where(tables.USER.c.rk == each.start)
        connection.execute(chosen.values(manager_rk=each.end))
    rest = _rest(graph)
    if properties:
        rest["properties"] = properties
    if others:
        rest["applications"] = others
    return rest


def _other_applications(connection: Connection, graph: Neo4jGraph) -> list[JsonValue]:
    """Return which applications a table has besides the one that has a place."""
    place = tables.APPLICATION_TABLE
    held = {(row.rk, row.application_rk) for row in connection.execute(place.select())}
    return [
        {"table": each.start, "application": each.end}
        for each in graph.relations(_APPLICATIONS)
        if (each.start, each.end) not in held
    ]


def _rest(graph: Neo4jGraph) -> Json:
    """Return nodes of other kinds, such as dashboards, with their relations, as they are."""
    nodes: Json = {}
    relations: list[JsonValue] = []
    for label in graph.labels():
        if label in _KNOWN:
            continue
        if found := [{**told, "key": key} for key, told in graph.nodes(label)]:
            nodes[label] = [*found]
            for name, parts in _parts_of(label, graph):
                nodes[name] = [*list_at(nodes, name), *parts]
            relations += (each for each in graph.outgoing(label) if each["type"] in _KINDS)
    for kind in graph.relation_kinds():
        if kind not in _KINDS:
            relations += graph.of_kind(kind)
    rest: Json = {"nodes": nodes} if nodes else {}
    if relations:
        rest["relations"] = relations
    schemas: list[JsonValue] = [
        {
            "rk": each.end,
            "description_source": each.end_properties.get("description_source") or "description",
            "description": each.end_properties.get("description"),
            "schema_rk": each.start,
        }
        for each in graph.relations(_SCHEMA_TEXT)
    ]
    if schemas:
        rest["schema_description"] = schemas
    return rest


def _parts_of(label: str, graph: Neo4jGraph) -> Iterator[tuple[str, list[JsonValue]]]:
    """Yield by their kind the nodes that hang on those of another one, such as texts."""
    for kind, end in _PARTS:
        related = graph.relations(Relation(label, kind, end))
        if found := {each.end: {**each.end_properties, "key": each.end} for each in related}:
            yield end, [*found.values()]


class _Row(NamedTuple):
    """A row, and what of a node has no column in it."""

    key: str
    values: dict[str, object]
    more: Json


def _row(table: Table, key: str, told: Json) -> _Row:
    names = {column.name: column.name for column in table.columns}
    names |= _NAMES.get(table.name, {})
    values = {
        column.name: _fitting(
            column.type, told.get(names[column.name]), nullable=bool(column.nullable)
        )
        for column in table.columns
    }
    known = {*names.values(), "key", *_PUBLISHED}
    if "rk" in values:
        values["rk"] = key
    if "is_active" in values and told.get("is_active") is None:
        values["is_active"] = None
    more = {name: value for name, value in told.items() if name not in known}
    return _Row(key, values, more)


def _owned_row(table: Table, owner: str, each: Related) -> _Row:
    row = _row(table, each.end, each.end_properties)
    row.values[owner] = each.start
    if "timestamp" in row.values and not row.values["last_updated_timestamp"]:
        row.values["last_updated_timestamp"] = row.values["timestamp"]
    if "description_source" in row.values and not row.values["description_source"]:
        row.values["description_source"] = "description"
    return row


def _joined_row(place: _Joined, each: Related) -> _Row:
    row = _row(place.table, each.start, each.properties)
    row.values[place.start] = each.start
    row.values[place.end] = each.end
    return row


def _fitting(kind: object, value: JsonValue, *, nullable: bool) -> object:
    """Return a value as a column takes it; what must be there and is not is empty."""
    if isinstance(kind, Boolean):
        return None if value is None and nullable else str(value).lower() == "true"
    if isinstance(kind, Integer):
        text = str(value)
        return int(text) if text.lstrip("-").isdecimal() else (None if nullable else 0)
    if value is None:
        return None if nullable else ""
    return value if isinstance(value, str) else str(value)


def _noting(rows: Iterable[_Row], properties: Json, label: str) -> Iterator[dict[str, object]]:
    """Yield the values of rows, noting what has no column."""
    for row in rows:
        if row.more and label:
            of_label = properties.setdefault(label, {})
            if isinstance(of_label, dict):
                of_label[row.key] = row.more
        yield row.values


def _insert(connection: Connection, table: Table, rows: Iterable[dict[str, object]]) -> None:
    rest = iter(rows)
    while some := [*islice(rest, _ROWS_AT_ONCE)]:
        connection.execute(insert(table).prefix_with("OR IGNORE"), some)
