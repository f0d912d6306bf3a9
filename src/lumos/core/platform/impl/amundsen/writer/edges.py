"""Lineage: bare pairs in Amundsen's own tables, and all else of an edge in the side store."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import delete, or_, select

from lumos.core.json_reading import as_object, flag_at
from lumos.core.models import DatasetLineage, LineageEdge, NeighboursBuilder, Urn
from lumos.core.platform.impl.amundsen.client.database import rows_of
from lumos.core.platform.impl.amundsen.mapping import tables
from lumos.core.platform.impl.amundsen.mapping.keys import column_key, digest
from lumos.core.platform.impl.amundsen.reader import listed, located
from lumos.core.platform.impl.amundsen.side_store import side_store
from lumos.core.platform.unreadable import UnreadableItems

if TYPE_CHECKING:
    from pydantic import JsonValue
    from sqlalchemy import Connection

    from lumos.core.platform.impl.amundsen.client.database import AmundsenDatabase, Row

_SECTION = "edge"
_PAIRS = tables.TABLE_LINEAGE
_COLUMN_PAIRS = tables.COLUMN_LINEAGE


class _Kept(NamedTuple):
    """An edge in the side store, and whether Amundsen showed it when it was written."""

    edge: LineageEdge
    shown: bool


class Edges:
    """The edges of a catalog within one transaction."""

    def __init__(self, database: AmundsenDatabase, connection: Connection) -> None:
        self._database = database
        self._connection = connection
        self._store = side_store(database, connection)

    def put(self, edge: LineageEdge) -> None:
        """Keep an edge, in place of the one with the same ends and job."""
        ends = self._ends(edge)
        if ends:
            self._show(edge, *ends)
        document: dict[str, JsonValue] = {"edge": edge.to_json(), "shown": ends is not None}
        self._store.put(_SECTION, {_name(edge): document})

    def put_missing(self, ends: Iterable[tuple[Urn, Urn]], *, of: Urn) -> None:
        """Keep a plain edge for each pair of ends between which there is none."""
        wanted = [*ends]
        known = {edge.key[:2] for edge in self.of(of)} if wanted else set()
        for upstream, downstream in wanted:
            if (upstream, downstream) not in known:
                self.put(LineageEdge(upstream_urn=upstream, downstream_urn=downstream))

    def remove(self, edge: LineageEdge) -> None:
        """Take away the edge with the same ends and job, if it is there."""
        self._store.remove(_SECTION, _name(edge))
        pattern = f"{digest(edge.upstream_urn)}-{digest(edge.downstream_urn)}-%"
        if any(kept.shown for _, kept in self._kept(pattern)):
            return
        if ends := self._ends(edge):
            self._hide(*ends)

    def remove_all(self, urn: Urn) -> None:
        """Remove all edges of a dataset; Amundsen drops its own with the table."""
        self._store.remove(_SECTION, *(name for name, _ in self._kept(*_patterns(urn))))

    def show_waiting(self, urn: Urn) -> None:
        """Let Amundsen show the edges of a dataset that waited for one of their ends."""
        for _, kept in [*self._kept(*_patterns(urn))]:
            if not kept.shown:
                self.put(kept.edge)

    def of(self, urn: Urn) -> list[LineageEdge]:
        """Return the edges that begin or end at a dataset."""
        place = located(self._connection, urn)
        keys = [place.key] if place else []
        scope = or_(_PAIRS.c.table_source_rk.in_(keys), _PAIRS.c.table_target_rk.in_(keys))
        rows = rows_of(self._connection, _PAIRS, scope) if keys else []
        names = {str(row[end]) for row in rows for end in ("table_source_rk", "table_target_rk")}
        urns = {each.key: each.urn for each in listed(self._connection, keys=sorted(names))}
        return self._joined(self._kept(*_patterns(urn)), rows, urns)

    def all(self, unread: UnreadableItems | None = None) -> list[LineageEdge]:
        """Return all edges in the order of their ends and jobs; what is none is noted.

        A table that is made from itself is no edge; its dataset keeps it.
        """
        rows = rows_of(self._connection, _PAIRS, _PAIRS.c.table_source_rk.is_not(None))
        urns = {each.key: each.urn for each in listed(self._connection)}
        return self._joined(self._kept(unread=unread), rows, urns)

    def _joined(
        self,
        kept: Iterable[tuple[str, _Kept]],
        rows: Iterable[Mapping[str, object]],
        urns: Mapping[str, Urn],
    ) -> list[LineageEdge]:
        """Return kept edges that Amundsen still shows, and those that only Amundsen has."""
        native: dict[tuple[str, str], tuple[str, str]] = {}
        for row in rows:
            source, target = str(row["table_source_rk"]), str(row["table_target_rk"])
            if source in urns and target in urns and source != target:
                native[urns[source], urns[target]] = (source, target)
        edges: dict[tuple[str, str, str], LineageEdge] = {}
        covered = set()
        for _, (edge, shown) in kept:
            ends = edge.key[:2]
            if not shown or ends in native:
                edges[edge.key] = edge
                covered.add(ends)
        alone = {ends: keys for ends, keys in native.items() if ends not in covered}
        columns = self._column_mappings(alone.values())
        for (upstream, downstream), keys in alone.items():
            edge = LineageEdge.from_json(
                {
                    "upstream_urn": upstream,
                    "downstream_urn": downstream,
                    "provenance": "amundsen",
                    "column_mappings": columns.get(keys, ()),
                }
            )
            edges[edge.key] = edge
        return [edges[key] for key in sorted(edges)]

    def _column_mappings(
        self, pairs: Iterable[tuple[str, str]]
    ) -> Mapping[tuple[str, str], list[dict[str, object]]]:
        wanted = {*pairs}
        if not wanted:
            return {}
        source, target = tables.COLUMN.alias("source"), tables.COLUMN.alias("target")
        query = (
            select(source.c.table_rk, source.c.name, target.c.table_rk, target.c.name)
            .join_from(_COLUMN_PAIRS, source, _COLUMN_PAIRS.c.column_source_rk == source.c.rk)
            .join(target, _COLUMN_PAIRS.c.column_target_rk == target.c.rk)
        )
        if len(wanted) == 1:
            ((upstream, downstream),) = wanted
            query = query.where(source.c.table_rk == upstream, target.c.table_rk == downstream)
        found: dict[tuple[str, str], list[dict[str, object]]] = defaultdict(list)
        for from_table, from_column, to_table, to_column in self._connection.execute(query):
            if (from_table, to_table) in wanted and from_column and to_column:
                mapping = {"upstream_column": from_column, "downstream_column": to_column}
                found[from_table, to_table].append(mapping)
        return found

    def _show(self, edge: LineageEdge, source: str, target: str) -> None:
        pair: Row = {"table_source_rk": source, "table_target_rk": target}
        self._database.add_missing(self._connection, _PAIRS, [pair])
        pairs = {
            (column_key(source, each.upstream_column), column_key(target, each.downstream_column))
            for each in edge.column_mappings
        }
        column = tables.COLUMN
        names = sorted({key for ends in pairs for key in ends})
        known = rows_of(self._connection, column, column.c.rk.in_(names)) if names else []
        held = {str(row["rk"]) for row in known}
        rows: list[Row] = [
            {"column_source_rk": start, "column_target_rk": end}
            for start, end in sorted(pairs)
            if start in held and end in held
        ]
        self._database.add_missing(self._connection, _COLUMN_PAIRS, rows)

    def _hide(self, source: str, target: str) -> None:
        self._connection.execute(
            delete(_PAIRS).where(
                _PAIRS.c.table_source_rk == source, _PAIRS.c.table_target_rk == target
            )
        )
        of_source = select(tables.COLUMN.c.rk).where(tables.COLUMN.c.table_rk == source)
        of_target = select(tables.COLUMN.c.rk).where(tables.COLUMN.c.table_rk == target)
        self._connection.execute(
            delete(_COLUMN_PAIRS).where(
                _COLUMN_PAIRS.c.column_source_rk.in_(of_source),
                _COLUMN_PAIRS.c.column_target_rk.in_(of_target),
            )
        )

    def _ends(self, edge: LineageEdge) -> tuple[str, str] | None:
        upstream = located(self._connection, edge.upstream_urn)
        downstream = located(self._connection, edge.downstream_urn)
        return (upstream.key, downstream.key) if upstream and downstream else None

    def _kept(
        self, *patterns: str, unread: UnreadableItems | None = None
    ) -> Iterable[tuple[str, _Kept]]:
        def edge(document: JsonValue) -> _Kept:
            parts = as_object(document, "edge")
            return _Kept(LineageEdge.from_json(parts.get("edge")), shown=flag_at(parts, "shown"))

        noted = UnreadableItems() if unread is None else unread
        found = self._store.read(_SECTION, edge, unread=noted, kind="lineage_edge", like=patterns)
        return found.items()


def lineage_of(urn: Urn, edges: Iterable[LineageEdge]) -> DatasetLineage:
    """Return the neighbours of a dataset by the edges that touch it."""
    return NeighboursBuilder(edges).of(urn)


def _patterns(urn: Urn) -> tuple[str, str]:
    name = digest(urn)
    return f"{name}-%", f"%-{name}-%"


def _name(edge: LineageEdge) -> str:
    return "-".join(digest(part) for part in edge.key)
