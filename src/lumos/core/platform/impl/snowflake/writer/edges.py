"""Lineage, which is kept in the side store as a whole: tables of Snowflake have no place for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from lumos.core.models import DatasetLineage, LineageEdge, NeighboursBuilder, Urn
from lumos.core.platform.impl.snowflake.side_store import digest
from lumos.core.platform.unreadable import UnreadableItems

if TYPE_CHECKING:
    from lumos.core.models import LumosDataset
    from lumos.core.platform.side_store import SideStore

_SECTION = "edge"
_MOST_AT_ONCE = 200


class Edges:
    """The edges of the catalog."""

    def __init__(self, store: SideStore) -> None:
        self._store = store

    def put(self, edges: Iterable[LineageEdge]) -> None:
        """Keep edges, each in place of the one with the same ends and job."""
        self._store.put(_SECTION, {_name(edge): edge.to_json() for edge in edges})

    def put_listed(self, datasets: Iterable[LumosDataset]) -> None:
        """Keep a plain edge to each neighbour that datasets list, where there is none yet."""
        wanted = dict.fromkeys(ends for one in datasets for ends in one.lineage.ends(one.urn))
        if not wanted:
            return
        known = {edge.key[:2] for edge in self.of([end for ends in wanted for end in ends[:1]])}
        self.put(
            LineageEdge(upstream_urn=upstream, downstream_urn=downstream)
            for upstream, downstream in wanted
            if (upstream, downstream) not in known
        )

    def remove(self, edge: LineageEdge) -> None:
        """Take away the edge with the same ends and job, if it is there."""
        self._store.remove(_SECTION, _name(edge))

    def remove_all(self, urn: Urn) -> None:
        """Take away all edges of a dataset."""
        self._store.remove(_SECTION, like=_patterns(urn))

    def of(self, urns: Sequence[Urn]) -> list[LineageEdge]:
        """Return the edges that begin or end at some datasets."""
        names = sorted({*urns})
        found: dict[str, LineageEdge] = {}
        for start in range(0, len(names), _MOST_AT_ONCE):
            chunk = names[start : start + _MOST_AT_ONCE]
            patterns = [pattern for urn in chunk for pattern in _patterns(urn)]
            found |= self._read(UnreadableItems(), patterns)  # listing the edges shows others
        return _ordered(found.values())

    def all(self, unread: UnreadableItems) -> list[LineageEdge]:
        """Return all edges in the order of their ends and jobs; what is none is noted."""
        return _ordered(self._read(unread).values())

    def _read(
        self, unread: UnreadableItems, patterns: Sequence[str] = ()
    ) -> dict[str, LineageEdge]:
        return self._store.read(
            _SECTION, LineageEdge.from_json, unread=unread, kind="lineage_edge", like=patterns
        )


def lineages(edges: Iterable[LineageEdge]) -> Mapping[Urn, DatasetLineage]:
    """Return the neighbours of each dataset that edges touch."""
    neighbours = NeighboursBuilder(edges)
    return {Urn(urn): neighbours.of(urn) for urn in neighbours.datasets()}


def _ordered(edges: Iterable[LineageEdge]) -> list[LineageEdge]:
    return sorted(edges, key=lambda edge: edge.key)


def _patterns(urn: Urn) -> tuple[str, str]:
    name = digest(urn)
    return f"{name}-%", f"%-{name}-%"


def _name(edge: LineageEdge) -> str:
    return "-".join(digest(part) for part in edge.key)
