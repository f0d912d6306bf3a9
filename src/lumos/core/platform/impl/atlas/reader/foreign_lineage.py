"""Lineage that others wrote to Atlas: processes between datasets, and between their columns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from lumos.core.errors import InvalidUrnError
from lumos.core.json_reading import find_object, find_text, objects_among
from lumos.core.models import ColumnMapping, LineageEdge, Urn
from lumos.core.platform.impl.atlas.mapping.foreign import foreign_urn, urn_of
from lumos.core.platform.impl.atlas.mapping.typedefs import EDGE

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.errors import PlatformForbiddenError
    from lumos.core.json_reading import Json
    from lumos.core.platform.impl.atlas.client import AtlasClient
    from lumos.core.platform.unreadable import UnreadableItems

PROVENANCE: Final = "atlas"
_SIDES: Final = ("inputs", "outputs")
_OWNERS: Final = ("table", "dataset")
"""What columns call the table that they belong to."""


class _End(NamedTuple):
    """What a process begins or ends at: a dataset, or a column of one."""

    urn: Urn
    column: str | None = None


class ForeignLineage:
    """Makes edges of processes that Lumos did not write."""

    def __init__(self, client: AtlasClient, *, table_types: tuple[str, ...]) -> None:
        self._client = client
        self._table_types = table_types

    def to_themselves(self, processes: Sequence[Json]) -> dict[str, list[JsonValue]]:
        """Return the processes from a dataset to itself, which are no edges, by its URN."""
        given = [each for each in processes if _may_be_to_itself(each)]
        ends = self._ends({guid for each in given for guid in _guids(each)}, {}) if given else {}
        found: dict[str, list[JsonValue]] = defaultdict(list)
        for process in given:
            sides = (
                {ends[guid] for guid in _guids(process, side) if guid in ends} for side in _SIDES
            )
            for end in sorted(set.intersection(*sides)):
                if end.column is None:
                    kept = _without_ends(process)
                    found[end.urn].append({"typeName": process.get("typeName"), "attributes": kept})
        return found

    def edges(self, processes: Iterable[Json], unread: UnreadableItems) -> list[LineageEdge]:
        """Return an edge from each input to each output, with the columns that are known.

        A process that cannot be read is noted. One from a dataset to itself is no edge.
        """
        named = unread.each(
            "lineage_edge", processes, _named, name=lambda each: str(each.get("guid"))
        )
        given = [*named]
        hidden: dict[str, PlatformForbiddenError] = {}
        ends = self._ends({guid for each in given for guid in _guids(each)}, hidden)
        for process in given:
            for guid in hidden.keys() & {*_guids(process)}:
                unread.add("lineage_edge", str(process.get("guid")), error=hidden[guid])
        edges: dict[tuple[str, str, str], LineageEdge] = {}
        columns: dict[tuple[str, str, str], set[ColumnMapping]] = defaultdict(set)
        jobs = {str(each.get("guid")): _own_name(each) for each in given}
        for process in given:
            job = jobs.get(_query(process), _own_name(process))
            for upstream, downstream in _pairs(process, ends):
                edge = _edge(upstream.urn, downstream.urn, job)
                if upstream.column is None and downstream.column is None:
                    edges[edge.key] = edge
                elif upstream.column and downstream.column:
                    columns[edge.key].add(_mapping(upstream, downstream, process))
        return [*_joined(edges, columns)]

    def _ends(self, guids: set[str], hidden: dict[str, PlatformForbiddenError]) -> dict[str, _End]:
        """Return the datasets and columns behind GUIDs; what may not be read goes into `hidden`."""
        found, _ = self._client.entities(sorted(guids), forbidden=hidden.__setitem__)
        ends: dict[str, _End] = {}
        columns: dict[str, tuple[str, str]] = {}
        for entity in found:
            guid, urn = str(entity.get("guid")), self._urn(entity)
            name = find_text(entity, "attributes", "name")
            owner = _owner(entity)
            if urn is not None:
                ends[guid] = _End(urn)
            elif owner and name:
                columns[guid] = (owner, name)
        tables = {owner for owner, _ in columns.values()}
        unknown = sorted(tables - ends.keys())
        owners, _ = self._client.entities(unknown) if unknown else ([], {})
        for entity in owners:
            if (urn := self._urn(entity)) is not None:
                ends[str(entity.get("guid"))] = _End(urn)
        for guid, (owner, name) in columns.items():
            if owner in ends:
                ends[guid] = _End(ends[owner].urn, name)
        return ends

    def _urn(self, entity: Json) -> Urn | None:
        try:
            return urn_of(entity, self._table_types)
        except InvalidUrnError:
            return None


def _guids(process: Json, *sides: str) -> Iterator[str]:
    for side in sides or _SIDES:
        yield from (guid for end in _side(process, side) if (guid := find_text(end, "guid")))


def _may_be_to_itself(process: Json) -> bool:
    inputs, outputs = ({*_guids(process, side)} for side in _SIDES)
    return process.get("typeName") != EDGE and not inputs.isdisjoint(outputs)


def _named(process: Json) -> Json:
    """Return a process that has a name."""
    _own_name(process)
    return process


def _without_ends(process: Json) -> Json:
    given = find_object(process, "attributes")
    return {
        name: value
        for name, value in given.items()
        if name not in _SIDES and value not in (None, "", [], {})
    }


def _side(process: Json, side: str) -> Iterator[Json]:
    attributes = find_object(process, "attributes")
    related = find_object(process, "relationshipAttributes")
    yield from objects_among(attributes.get(side) or related.get(side))


def _pairs(process: Json, ends: Mapping[str, _End]) -> Iterator[tuple[_End, _End]]:
    inputs, outputs = (
        [ends[guid] for end in _side(process, side) if (guid := str(end.get("guid"))) in ends]
        for side in ("inputs", "outputs")
    )
    for upstream in inputs:
        for downstream in outputs:
            if upstream.urn != downstream.urn:
                yield upstream, downstream


def _own_name(process: Json) -> Urn:
    name = str(find_object(process, "attributes").get("qualifiedName"))
    return foreign_urn(str(process.get("typeName")), name)


def _query(process: Json) -> str:
    """Return the GUID of the process that one between columns is part of."""
    for part in ("relationshipAttributes", "attributes"):
        if guid := find_text(process, part, "query", "guid"):
            return guid
    return ""


def _edge(upstream: Urn, downstream: Urn, job: Urn) -> LineageEdge:
    return LineageEdge(
        upstream_urn=upstream, downstream_urn=downstream, job_urn=job, provenance=PROVENANCE
    )


def _mapping(upstream: _End, downstream: _End, process: Json) -> ColumnMapping:
    return ColumnMapping(
        upstream_column=str(upstream.column),
        downstream_column=str(downstream.column),
        transformation=find_text(process, "attributes", "expression"),
    )


def _joined(
    edges: Mapping[tuple[str, str, str], LineageEdge],
    columns: Mapping[tuple[str, str, str], set[ColumnMapping]],
) -> Iterator[LineageEdge]:
    """Yield edges with their columns; columns of no known edge make a separate one."""
    of_ends = {key[:2]: key for key in sorted(edges, reverse=True)}
    found: dict[tuple[str, str, str], LineageEdge] = dict(edges)
    mappings: dict[tuple[str, str, str], set[ColumnMapping]] = defaultdict(set)
    for key, given in columns.items():
        place = key if key in edges else of_ends.get(key[:2], key)
        if place not in found:
            found[place] = _edge(Urn(place[0]), Urn(place[1]), Urn(place[2]))
        mappings[place] |= given
    for key, edge in found.items():
        told = tuple(mappings.get(key, ()))
        yield LineageEdge.model_validate({**dict(edge), "column_mappings": told})


def _owner(entity: Json) -> str | None:
    """Return the GUID of the table that a column belongs to."""
    for part in ("relationshipAttributes", "attributes"):
        for name in _OWNERS:
            if guid := find_text(entity, part, name, "guid"):
                return guid
    return None
