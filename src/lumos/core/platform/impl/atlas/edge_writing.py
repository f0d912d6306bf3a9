"""Edges written as processes between datasets, and between their columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NamedTuple

from lumos.core.platform.impl.atlas.reading import live_columns
from lumos.core.platform.impl.atlas.things import (
    column_edge_entity,
    column_edge_key,
    edge_entity,
    edge_key,
    edge_of,
)
from lumos.core.platform.impl.atlas.typedefs import COLUMN_EDGE, DATASET, EDGE
from lumos.core.platform.impl.atlas.wire import Json, is_live, mapping, objects

if TYPE_CHECKING:
    from lumos.core.models import LineageEdge, Urn
    from lumos.core.platform.impl.atlas.client import AtlasClient

_EDGE = "-1"


class End(NamedTuple):
    """A dataset that an edge leads to or from, and the GUIDs of its columns by key."""

    reference: Json
    columns: dict[str, str]


class EdgeWriter:
    """Brings the processes of an edge to what they should be."""

    def __init__(
        self, client: AtlasClient, *, lock_of: Callable[[Urn], AbstractContextManager[object]]
    ) -> None:
        self._client = client
        self._lock_of = lock_of

    def write(self, edge: LineageEdge) -> None:
        """Create an edge with its columns, or update it; what is so already is left alone."""
        held = self._client.entity(EDGE, edge_key(edge))
        same = held is not None and edge_of(held[0]) == edge
        if same and not edge.column_mappings:
            return
        ends = self.ends((edge.upstream_urn, edge.downstream_urn))
        upstream, downstream = ends[edge.upstream_urn], ends[edge.downstream_urn]
        columns = [
            column_edge_entity(edge, each, ends=(upstream.columns, downstream.columns))
            for each in edge.column_mappings
        ]
        shown = [entity for entity in columns if entity is not None]
        before = self._held_columns(held[0]) if held else {}
        wanted = {column_edge_key(entity) for entity in shown}
        if same and wanted == before.keys():
            return
        entity = edge_entity(edge, (upstream.reference, downstream.reference))
        self._client.put([{**entity, "guid": _EDGE}, *_numbered(shown)])
        self._client.remove([guid for key, guid in before.items() if key not in wanted])

    def ends(self, urns: Iterable[Urn]) -> dict[Urn, End]:
        """Return datasets to refer to; what the catalog lacks gets a place to be filled."""
        found: dict[Urn, End] = {}
        for urn in urns:
            with self._lock_of(urn):
                held = self._client.entity(DATASET, urn)
                guid = str(held[0].get("guid")) if held else self._placeholder(urn)
            columns = {
                str(mapping(column.get("attributes")).get("qualifiedName")): str(column.get("guid"))
                for column in (live_columns(*held) if held else ())
            }
            found[urn] = End({"guid": guid, "typeName": DATASET}, columns)
        return found

    def _held_columns(self, edge: Json) -> dict[str, str]:
        related = objects(mapping(edge.get("relationshipAttributes")).get("columnEdges"))
        entities, _ = self._client.entities(
            [str(each.get("guid")) for each in related if is_live(each)]
        )
        return {column_edge_key(each): str(each.get("guid")) for each in entities}

    def _placeholder(self, urn: Urn) -> str:
        attributes: Json = {"qualifiedName": str(urn), "name": urn.name, "placeholder": True}
        entity: Json = {"typeName": DATASET, "guid": "-1", "attributes": attributes}
        return self._client.put([entity])["-1"]


def _numbered(columns: Iterable[Json]) -> list[Json]:
    owner: Json = {"guid": _EDGE, "typeName": EDGE}
    return [
        {
            **column,
            "typeName": COLUMN_EDGE,
            "guid": f"-{number}",
            "relationshipAttributes": {"edge": owner},
        }
        for number, column in enumerate(columns, start=2)
    ]
