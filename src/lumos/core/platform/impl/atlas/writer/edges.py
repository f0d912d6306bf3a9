"""Edges written as processes between datasets, and between their columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NamedTuple

from lumos.core.json_reading import find_object, find_objects
from lumos.core.platform.impl.atlas.mapping.things import (
    column_edge_entity,
    column_edge_key,
    edge_entity,
    edge_key,
    edge_of,
)
from lumos.core.platform.impl.atlas.mapping.typedefs import COLUMN_EDGE, DATASET, EDGE
from lumos.core.platform.impl.atlas.mapping.wire import is_live
from lumos.core.platform.impl.atlas.reader.datasets import live_columns

if TYPE_CHECKING:
    from lumos.core.json_reading import Json
    from lumos.core.models import LineageEdge, Urn
    from lumos.core.platform.impl.atlas.client import AtlasClient

_MOST_AT_ONCE = 200
_MOST_NEIGHBOURS = 200
"""With more edges around datasets than this, the wanted ones are asked for by name."""


class End(NamedTuple):
    """A dataset that an edge leads to or from."""

    reference: Json
    columns: Mapping[str, str]
    """The GUIDs of its columns by key."""
    edges_to: tuple[str, ...]
    """The GUIDs of the edges that lead to it."""


class EdgeWriter:
    """Brings the processes of edges to what they should be."""

    def __init__(
        self,
        client: AtlasClient,
        *,
        locked: Callable[[Iterable[Urn]], AbstractContextManager[object]],
    ) -> None:
        self._client = client
        self._locked = locked

    def write(self, edge: LineageEdge) -> None:
        """Create an edge with its columns, or update it; what is so already is left alone."""
        key = edge_key(edge)
        held = self._named([key])
        if key in held and not edge.column_mappings and edge_of(held[key]) == edge:
            return
        self._bring({key: edge}, held, ends=self.ends((edge.upstream_urn, edge.downstream_urn)))

    def write_all(self, edges: Iterable[LineageEdge]) -> None:
        """Create or update edges as `write` does, by few requests for all of them."""
        wanted = {edge_key(edge): edge for edge in edges}
        ends = self.ends(
            urn for edge in wanted.values() for urn in (edge.upstream_urn, edge.downstream_urn)
        )
        known = {guid for edge in wanted.values() for guid in ends[edge.downstream_urn].edges_to}
        if len(known) > _MOST_NEIGHBOURS:
            held = self._named(wanted)
        else:
            held = {_key(entity): entity for entity in self._client.entities(sorted(known))[0]}
        self._bring(wanted, held, ends=ends)

    def ends(self, urns: Iterable[Urn]) -> dict[Urn, End]:
        """Return datasets to refer to; what the catalog lacks gets a place to be filled."""
        names = [*dict.fromkeys(urns)]
        held = self._client.named(DATASET, names)
        made: dict[Urn, str] = {}
        if missing := [urn for urn in names if urn not in held]:
            with self._locked(missing):
                held |= self._client.named(DATASET, missing)
                made = self._placeholders([urn for urn in missing if urn not in held])
        found = {
            urn: End({"guid": guid, "typeName": DATASET}, {}, ()) for urn, guid in made.items()
        }
        return found | {urn: _end(*held[urn]) for urn in names if urn in held}

    def _bring(
        self,
        wanted: Mapping[str, LineageEdge],
        held: Mapping[str, Json],
        *,
        ends: Mapping[Urn, End],
    ) -> None:
        columns = self._held_columns({key: held[key] for key in wanted if key in held})
        written: list[Json] = []
        gone: list[str] = []
        for key, edge in wanted.items():
            upstream, downstream = ends[edge.upstream_urn], ends[edge.downstream_urn]
            drawn = (
                column_edge_entity(edge, each, ends=(upstream.columns, downstream.columns))
                for each in edge.column_mappings
            )
            shown = [entity for entity in drawn if entity is not None]
            names = {_key(entity) for entity in shown}
            before = columns.get(key, {})
            if key in held and names == before.keys() and edge_of(held[key]) == edge:
                continue
            if written and len(written) + len(shown) >= _MOST_AT_ONCE:
                self._client.put(written)
                written = []
            entity = edge_entity(edge, (upstream.reference, downstream.reference))
            written += _numbered(entity, shown, first=len(written) + 1)
            gone += [guid for name, guid in before.items() if name not in names]
        if written:
            self._client.put(written)
        self._client.remove(gone)

    def _named(self, keys: Iterable[str]) -> dict[str, Json]:
        return {key: entity for key, (entity, _) in self._client.named(EDGE, keys).items()}

    def _held_columns(self, edges: Mapping[str, Json]) -> dict[str, dict[str, str]]:
        """Return the GUIDs of the processes between columns by their keys, for each edge."""
        owners = {
            str(each.get("guid")): key
            for key, edge in edges.items()
            for each in find_objects(edge, "relationshipAttributes", "columnEdges")
            if is_live(each)
        }
        found: dict[str, dict[str, str]] = {key: {} for key in edges}
        for entity in self._client.entities(owners)[0]:
            guid = str(entity.get("guid"))
            found[owners[guid]][column_edge_key(entity)] = guid
        return found

    def _placeholders(self, urns: Sequence[Urn]) -> dict[Urn, str]:
        if not urns:
            return {}
        guids = {urn: f"-{number}" for number, urn in enumerate(urns, start=1)}
        entities: list[Json] = [
            {
                "typeName": DATASET,
                "guid": guid,
                "attributes": {"qualifiedName": str(urn), "name": urn.name, "placeholder": True},
            }
            for urn, guid in guids.items()
        ]
        made = self._client.created(entities)
        return {urn: made[guid] for urn, guid in guids.items()}


def _end(entity: Json, referred: Json) -> End:
    related = find_objects(entity, "relationshipAttributes", "outputFromProcesses")
    return End(
        {"guid": str(entity.get("guid")), "typeName": DATASET},
        {_key(column): str(column.get("guid")) for column in live_columns(entity, referred)},
        tuple(
            str(each.get("guid"))
            for each in related
            if is_live(each) and each.get("typeName") == EDGE
        ),
    )


def _key(entity: Json) -> str:
    return str(find_object(entity, "attributes").get("qualifiedName"))


def _numbered(entity: Json, columns: Iterable[Json], *, first: int) -> list[Json]:
    """Return an edge and the processes between its columns, each with a GUID for one request."""
    guid = f"-{first}"
    related: Json = {"edge": {"guid": guid, "typeName": EDGE}}
    numbered: list[Json] = [{**entity, "guid": guid}]
    for number, column in enumerate(columns, start=first + 1):
        named: Json = {"typeName": COLUMN_EDGE, "guid": f"-{number}"}
        numbered.append({**column, **named, "relationshipAttributes": related})
    return numbered
