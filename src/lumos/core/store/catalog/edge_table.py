"""The table of lineage edges, from which the neighbours of datasets are derived."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from lumos.core.models import DatasetLineage, EdgeBasis, LineageEdge, NeighboursBuilder, Urn
from lumos.core.models.base import sha256_of
from lumos.core.store.checksums import EDGES, pass_over, rows_with_whole_keys, whole_rows
from lumos.core.store.documents import as_model, as_moment, checked_key, stored_text

if TYPE_CHECKING:
    from lumos.core.store.checksums import NoteDamage
    from lumos.core.store.database import StateDatabase
    from lumos.core.store.engine import Parameters, Row, SqlValue

_PUT_EDGE = """
INSERT INTO lineage_edges
    (edge_key, upstream_urn, downstream_urn, document, updated_at, checksum)
VALUES (:edge_key, :upstream_urn, :downstream_urn, :document, :updated_at, :checksum)
ON CONFLICT (edge_key) DO UPDATE SET
    upstream_urn = excluded.upstream_urn, downstream_urn = excluded.downstream_urn,
    document = excluded.document, updated_at = excluded.updated_at, checksum = excluded.checksum
WHERE lineage_edges.document <> excluded.document OR lineage_edges.checksum <> excluded.checksum
    OR lineage_edges.upstream_urn <> excluded.upstream_urn
    OR lineage_edges.downstream_urn <> excluded.downstream_urn
"""
_INFERRED = f'%"basis":"{EdgeBasis.INFERRED}"%'
"""What the document of an inferred edge has; inside a text the quotes would be escaped."""


class EdgePosition(NamedTuple):
    """Where a page of edges ended."""

    upstream: str = ""
    key: str = ""


class EdgeTable:
    """Reads and writes edges; the hashes of datasets are left to `CatalogTables`."""

    def __init__(self, database: StateDatabase) -> None:
        self._database = database

    def put(self, edge: LineageEdge, *, at: datetime) -> bool:
        """Insert or update an edge, and return whether anything changed."""
        for urn in edge.key:
            checked_key(urn)
        row: dict[str, SqlValue] = {
            "edge_key": sha256_of(edge.key),
            "upstream_urn": edge.upstream_urn,
            "downstream_urn": edge.downstream_urn,
            "document": stored_text(edge.to_json()),
            "updated_at": as_moment(at),
        }
        row["checksum"] = EDGES.checksum(row)
        return bool(self._database.execute(_PUT_EDGE, row))

    def connects(self, upstream: Urn, downstream: Urn) -> bool:
        """Return whether any edge leads from one dataset to the other."""
        return bool(
            self._database.query(
                "SELECT 1 AS found FROM lineage_edges "
                "WHERE upstream_urn = :upstream AND downstream_urn = :downstream LIMIT 1",
                {"upstream": upstream, "downstream": downstream},
            )
        )

    def remove(self, edge: LineageEdge) -> bool:
        """Delete an edge and who says that it is there; return whether there was one."""
        key = {"edge_key": sha256_of(edge.key)}
        self._database.execute("DELETE FROM edge_contributions WHERE edge_key = :edge_key", key)
        return bool(
            self._database.execute("DELETE FROM lineage_edges WHERE edge_key = :edge_key", key)
        )

    def with_key(self, key: str) -> list[LineageEdge]:
        """Return the edge of a key, if there is one and it is what was written."""
        rows = self._database.query(
            "SELECT upstream_urn, downstream_urn, edge_key, document, checksum FROM lineage_edges "
            "WHERE edge_key = :key",
            {"key": key},
        )
        return [
            as_model(LineageEdge, row.text("document"))
            for row in whole_rows(rows, EDGES, pass_over)
        ]

    def after(
        self, position: EdgePosition, *, limit: int, damaged: NoteDamage
    ) -> tuple[list[LineageEdge], EdgePosition | None]:
        """Return the next edges in ascending order of upstream URN, and where they end if any do.

        `damaged` is called with the error of each damaged row.
        """
        rows = self._database.query(
            "SELECT upstream_urn, downstream_urn, edge_key, document, checksum FROM lineage_edges "
            "WHERE (upstream_urn, edge_key) > (:upstream, :key) "
            "ORDER BY upstream_urn, edge_key LIMIT :limit",
            {"upstream": position.upstream, "key": position.key, "limit": limit},
        )
        edges = [
            as_model(LineageEdge, row.text("document")) for row in whole_rows(rows, EDGES, damaged)
        ]
        if not rows:
            return edges, None
        return edges, EdgePosition(rows[-1].text("upstream_urn"), rows[-1].text("edge_key"))

    def lineage(self, urns: Sequence[str]) -> Mapping[str, DatasetLineage]:
        """Return the neighbours of datasets that are given in ascending order."""
        if not urns:
            return {}
        ends = {"first": urns[0], "last": urns[-1]}
        neighbours = NeighboursBuilder()
        for end in ("downstream_urn", "upstream_urn"):
            for row in self._edges_where(f"{end} BETWEEN :first AND :last", ends):
                neighbours.add(
                    Urn.canonical(row.text("upstream_urn")),
                    Urn.canonical(row.text("downstream_urn")),
                    is_inferred=bool(row.integer("is_inferred")),
                )
        return {urn: neighbours.of(urn) for urn in urns}

    def _edges_where(self, condition: str, params: Parameters) -> list[Row]:
        """Return edges by their ends; one whose ends are damaged leads nowhere.

        The listing of the edges reports it.
        """
        rows = self._database.query(
            "SELECT edge_key, upstream_urn, downstream_urn, checksum, "  # noqa: S608
            f"CASE WHEN document LIKE '{_INFERRED}' THEN 1 ELSE 0 END AS is_inferred "
            f"FROM lineage_edges WHERE {condition}",
            params,
        )
        return rows_with_whole_keys(rows, EDGES)
