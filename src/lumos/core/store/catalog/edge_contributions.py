"""Who says that an edge of lineage is there.

An edge that nobody is recorded for was written by hand, by an import or by an earlier Lumos: it
stays until it is removed by hand. One that sources say is there as long as any of them says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from lumos.core.models import Contributor, ContributorKind, EdgeBasis, LineageEdge, Urn
from lumos.core.models.base import sha256_of
from lumos.core.models.dataset_contributions import EARLIER
from lumos.core.store.catalog.contributions import contributor_of
from lumos.core.store.checksums import EDGE_CONTRIBUTIONS
from lumos.core.store.documents import as_model, as_moment, checked_key, stored_text
from lumos.core.store.sql_text import as_key

if TYPE_CHECKING:
    from datetime import datetime

    from lumos.core.store.catalog.catalog_tables import CatalogTables
    from lumos.core.store.database import StateDatabase
    from lumos.core.store.engine import Row, SqlValue

_PUT = """
INSERT INTO edge_contributions
    (edge_key, contributor, upstream_urn, downstream_urn, document, at, checksum)
VALUES (:edge_key, :contributor, :upstream_urn, :downstream_urn, :document, :at, :checksum)
ON CONFLICT (edge_key, contributor) DO UPDATE SET
    upstream_urn = excluded.upstream_urn, downstream_urn = excluded.downstream_urn,
    document = excluded.document, at = excluded.at, checksum = excluded.checksum
"""
_SELECT = EDGE_CONTRIBUTIONS.select("upstream_urn", "downstream_urn")
_ORDER: Final = (
    ContributorKind.PEOPLE,
    ContributorKind.DECLARED,
    ContributorKind.SOURCE,
    ContributorKind.INFERRED,
    ContributorKind.ASSISTANT,
)


class EdgeContributions:
    """Reads and writes what contributors say of edges, and keeps the edges up to date with it."""

    def __init__(self, database: StateDatabase, tables: CatalogTables) -> None:
        self._database = database
        self._tables = tables

    def replace(
        self,
        contributor: Contributor,
        edges: Iterable[LineageEdge],
        *,
        is_gone: Callable[[Urn], bool],
        at: datetime,
        note: Callable[[Urn], None] = lambda _: None,
    ) -> None:
        """Store all edges that a contributor says.

        Args:
            contributor: who says them.
            edges: all of them.
            is_gone: returns for a downstream end whether an edge that is no longer stated is gone.
            at: the time.
            note: is called with a downstream end before an edge to it may change.
        """
        before = self._said_by(contributor)
        said: set[str] = set()
        for edge in edges:
            key = sha256_of(edge.key)
            said.add(key)
            text = stored_text(edge.to_json())
            if key in before and before[key].text("document") == text:
                continue
            note(edge.downstream_urn)
            self._keep_unclaimed(key, at=at)
            self._put(edge, key, contributor, at=at)
            self._fold(key, at=at)
        for key in before.keys() - said:
            urn = Urn(before[key].text("downstream_urn"))
            if is_gone(urn):
                note(urn)
                self._database.execute(
                    "DELETE FROM edge_contributions "
                    "WHERE edge_key = :key AND contributor = :contributor",
                    {"key": key, "contributor": as_key(str(contributor))},
                )
                self._fold(key, at=at, was=before[key])

    def _said_by(self, contributor: Contributor) -> dict[str, Row]:
        rows = self._database.query(
            f"{_SELECT} WHERE contributor = :contributor",
            {"contributor": as_key(str(contributor))},
        )
        return {row.text("edge_key"): row for row in rows if EDGE_CONTRIBUTIONS.is_whole(row)}

    def _keep_unclaimed(self, key: str, *, at: datetime) -> None:
        """Record an edge that was there before as said by somebody, so that it stays."""
        if self._rows(key):
            return
        for known in self._tables.edges.with_key(key):
            self._put(known, key, EARLIER, at=at)

    def _put(self, edge: LineageEdge, key: str, contributor: Contributor, *, at: datetime) -> None:
        row: dict[str, SqlValue] = {
            "edge_key": key,
            "contributor": as_key(str(contributor)),
            "upstream_urn": checked_key(edge.upstream_urn),
            "downstream_urn": checked_key(edge.downstream_urn),
            "document": stored_text(edge.to_json()),
            "at": as_moment(at),
        }
        row["checksum"] = EDGE_CONTRIBUTIONS.checksum(row)
        self._database.execute(_PUT, row)

    def _fold(self, key: str, *, at: datetime, was: Row | None = None) -> None:
        """Bring an edge up to date with what is said of it."""
        rows = [row for row in self._rows(key) if EDGE_CONTRIBUTIONS.is_whole(row)]
        if rows:
            self._tables.put_edge(min(map(_said, rows), key=_weight)[1], at=at)
        elif was is not None:
            self._tables.remove_edge(as_model(LineageEdge, was.text("document")))

    def _rows(self, key: str) -> list[Row]:
        return self._database.query(f"{_SELECT} WHERE edge_key = :key", {"key": key})


def _said(row: Row) -> tuple[Contributor, LineageEdge]:
    return (
        contributor_of(row.text("contributor")),
        as_model(LineageEdge, row.text("document")),
    )


def _weight(said: tuple[Contributor, LineageEdge]) -> tuple[bool, int, str]:
    """Order statements of one edge: what is only inferred counts last."""
    contributor, edge = said
    is_inferred = edge.basis is EdgeBasis.INFERRED
    return is_inferred, _ORDER.index(contributor.kind), contributor.name
