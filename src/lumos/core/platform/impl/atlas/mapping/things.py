"""Users, groups, domains, jobs and edges as entities, each with its own stash."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

from lumos.core.errors import InvalidModelError
from lumos.core.json_reading import find_object, find_text, text_or_none
from lumos.core.models import Domain, Group, Job, LineageEdge, User
from lumos.core.platform.impl.atlas.mapping.columns import shown
from lumos.core.platform.impl.atlas.mapping.names import column_key, entity_key, shown_text
from lumos.core.platform.impl.atlas.mapping.typedefs import (
    COLUMN,
    COLUMN_EDGE,
    DOMAIN,
    EDGE,
    GROUP,
    JOB,
    STASH,
    USER,
)
from lumos.core.platform.stash import packed, residue, restored, unpacked

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json
    from lumos.core.models import ColumnMapping
    from lumos.core.models.base import CanonicalModel
    from lumos.core.platform.interface import EntityKind

Thing = User | Group | Domain | Job
ThingT = TypeVar("ThingT", bound="CanonicalModel")
THINGS: Mapping[EntityKind, tuple[str, type[Thing]]] = {
    "user": (USER, User),
    "group": (GROUP, Group),
    "domain": (DOMAIN, Domain),
    "job": (JOB, Job),
}
_SHOWN = {"title": "description", "description": "description"}


def thing_entity(thing: Thing) -> Json:
    """Return the entity of a user, group, domain or job."""
    kind = next(name for name, model in THINGS.values() if isinstance(thing, model))
    key = thing.urn if isinstance(thing, Job) else _name_of(thing)
    attributes: Json = {
        "qualifiedName": str(key) if isinstance(thing, Job) else entity_key(kind, key),
        "name": shown_text(_name_of(thing)),
        "description": shown(getattr(thing, "description", None) or getattr(thing, "title", None)),
        **_own_attributes(thing),
        STASH: _stash_of(thing),
    }
    return {"typeName": kind, "attributes": attributes}


def thing_of(entity: Json, model: type[ThingT]) -> ThingT:
    """Return the user, group, domain or job of an entity, with a description edited by hand.

    Raises:
        InvalidModelError: its stash was changed by hand.
    """
    attributes = find_object(entity, "attributes")
    stash = find_text(attributes, STASH)
    if stash is None:
        raise InvalidModelError("an entity of Lumos has no stash")
    native = _native(attributes.get("description"), model)
    return model.from_json(restored(native, unpacked(stash)))


def edge_key(edge: LineageEdge) -> str:
    """Return the qualified name of an edge."""
    return entity_key("edge", *edge.key)


def edge_entity(edge: LineageEdge, ends: tuple[Json, Json]) -> Json:
    """Return the process that stands for an edge."""
    upstream, downstream = ends
    mappings: list[JsonValue] = [
        shown_text(f"{each.upstream_column} -> {each.downstream_column}")
        for each in edge.column_mappings
    ]
    attributes: Json = {
        "qualifiedName": edge_key(edge),
        "name": shown_text(edge.job_urn or f"{edge.upstream_urn} -> {edge.downstream_urn}"),
        "inputs": [upstream],
        "outputs": [downstream],
        "upstreamUrn": str(edge.upstream_urn),
        "downstreamUrn": str(edge.downstream_urn),
        "jobUrn": str(edge.job_urn) if edge.job_urn else None,
        "lineageType": edge.lineage_type.value,
        "confidence": edge.confidence,
        "columnMappings": mappings or None,
        STASH: _stash_of(edge),
    }
    return {"typeName": EDGE, "attributes": attributes}


def column_edge_key(entity: Json) -> str:
    """Return the qualified name of the process between two columns."""
    return str(find_object(entity, "attributes").get("qualifiedName"))


def column_edge_entity(
    edge: LineageEdge, columns: ColumnMapping, *, ends: tuple[Mapping[str, str], Mapping[str, str]]
) -> Json | None:
    """Return the process between two columns; nothing where one of them is not there."""
    names = columns.upstream_column, columns.downstream_column
    urns = edge.upstream_urn, edge.downstream_urn
    guids = [
        held.get(column_key(urn, name)) for held, urn, name in zip(ends, urns, names, strict=True)
    ]
    if None in guids:
        return None
    references: list[Json] = [{"guid": guid, "typeName": COLUMN} for guid in guids]
    attributes: Json = {
        "qualifiedName": entity_key("column-edge", *edge.key, *names),
        "name": shown_text(" -> ".join(names)),
        "inputs": [references[0]],
        "outputs": [references[1]],
        "transformation": shown(columns.transformation),
    }
    return {"typeName": COLUMN_EDGE, "attributes": attributes}


def edge_of(entity: Json) -> LineageEdge:
    """Return the edge of a process."""
    return thing_of(entity, LineageEdge)


def _stash_of(thing: CanonicalModel) -> str:
    document = thing.to_json()
    described = next((document[name] for name in _SHOWN if name in document), None)
    native = _native(shown(described) if isinstance(described, str) else None, type(thing))
    return packed(residue(native, document) or {})


def _native(description: JsonValue | None, model: type[CanonicalModel]) -> Json:
    """Return what people may edit of a thing, by the name it has in the model."""
    name = next((name for name in _SHOWN if name in model.model_fields), None)
    return {name: description} if name is not None and text_or_none(description) else {}


def _own_attributes(thing: Thing) -> Json:
    match thing:
        case User():
            return {"email": shown(thing.email)}
        case Group():
            return {"members": [shown_text(name) for name in thing.members] or None}
        case Domain():
            return {"parent": shown(thing.parent)}
        case Job():
            return {"orchestrator": shown(thing.orchestrator)}


def _name_of(thing: Thing) -> str:
    return thing.username if isinstance(thing, User) else thing.name
