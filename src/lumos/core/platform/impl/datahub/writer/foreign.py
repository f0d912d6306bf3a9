"""What DataHub holds beside datasets and Lumos does not model, kept as it is found.

It travels in the extension `datahub` of a snapshot: for each entity, what turns the aspects that
Lumos would write of it into those that were found. Secrets, roles and what the server works out by
itself stay where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final, TypeGuard

from lumos.core.errors import InvalidUrnError, PlatformError, PlatformForbiddenError
from lumos.core.json_reading import as_object, object_at
from lumos.core.models.base import canonical_json
from lumos.core.platform.impl.datahub.client import StoredEntity, Write
from lumos.core.platform.impl.datahub.mapping.added_by_server import asserted_entity
from lumos.core.platform.impl.datahub.mapping.entities import FORMS, read_entity, wire_entity
from lumos.core.platform.impl.datahub.mapping.lineage import ASPECT, read_edges, with_edges
from lumos.core.platform.impl.datahub.mapping.residue import residue, restored
from lumos.core.platform.impl.datahub.mapping.stash import KEY, without_stash
from lumos.core.platform.impl.datahub.mapping.structured import (
    DEFINITION,
    MADE_BY_LUMOS,
    read_structured,
)
from lumos.core.platform.impl.datahub.mapping.structured import KIND as STRUCTURED
from lumos.core.platform.impl.datahub.side_store import put_residue, residues
from lumos.core.platform.unreadable import UNFIT

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.errors import LumosError
    from lumos.core.json_reading import Json
    from lumos.core.platform.impl.datahub.client import DataHubClient
    from lumos.core.platform.impl.datahub.writer.definitions import Definitions
    from lumos.core.platform.interface import EntityKind
    from lumos.core.platform.side_store import SideStore

NAME: Final = "datahub"
"""The extension that says it."""
_ENTITIES: Final = "entities"
_ASSERTION: Final = "assertion"
_RUN: Final = "assertionRunEvent"
_OWN_ACTOR: Final = "urn:li:corpuser:lumos"
_LEFT: Final = frozenset({
    "assertionRunSummary", "browsePaths", "browsePathsV2", "corpUserCredentials",
    "datahubIngestionCheckpoint", "datahubIngestionRunSummary", "incidentsSummary",
    "roleMembership", "testResults",
})  # fmt: skip
"""Aspects that the server makes by itself, that are secret or that say who may do what."""
_MODELLED: Final[Mapping[str, EntityKind]] = {form.kind: kind for kind, form in FORMS.items()}
_OWN_ASPECTS: Final[Mapping[str, frozenset[str]]] = {
    "container": frozenset(
        {"containerProperties", "subTypes", "dataPlatformInstance", "container", "status"}
    ),
    "assertion": frozenset({"assertionInfo"}),
    "dataFlow": frozenset({"dataFlowInfo"}),
    "glossaryNode": frozenset({"glossaryNodeInfo"}),
    "ownershipType": frozenset({"ownershipTypeInfo"}),
    STRUCTURED: frozenset({DEFINITION}),
}
"""What Lumos writes of entities that stand beside others."""
_MISSING: Final[Mapping[str, Json]] = {ASPECT: {"upstreams": []}, "status": {"removed": False}}
"""What is meant where nothing is said."""
_DEFINING: Final = (STRUCTURED, "ownershipType")
KINDS: Final = (*_DEFINING, "glossaryNode", *_MODELLED, "dataFlow",
                "container", "assertion")  # fmt: skip


class ForeignEntities:
    """Reads and writes what Lumos does not model of a DataHub server."""

    def __init__(
        self,
        client: DataHubClient,
        environment: str,
        *,
        definitions: Definitions,
        store: SideStore,
    ) -> None:
        self._client = client
        self._environment = environment
        self._definitions = definitions
        self._store = store

    def read(self) -> JsonValue:
        """Return everything that Lumos would not write by itself; None where that is nothing."""
        found: Json = {}
        waiting: set[str] = set()
        for kind in KINDS:
            if not self._client.knows_kind(kind):
                continue
            for held in self._client.scroll(kind):
                left = self._left_of(kind, held)
                if left:
                    found[held.urn] = left
                elif kind == STRUCTURED and _is_own(kind, held):
                    waiting.add(held.urn)
        if waiting:
            kept = residues(self._store, STRUCTURED)
            found.update({urn: kept[urn] for urn in waiting & kept.keys()})
        for held in self._client.scroll("dataset", aspects=("datasetKey", ASPECT)):
            left = self._left_of_lineage(held)
            if left:
                found[held.urn] = {ASPECT: left}
        return {_ENTITIES: dict(sorted(found.items()))} if found else None

    def define(self, document: Mapping[str, JsonValue]) -> None:
        """Write what datasets refer to, before Lumos has to guess what it is."""
        self._write_kinds(document, _DEFINING)

    def write(self, document: Mapping[str, JsonValue]) -> None:
        """Bring what others said of entities back to them; what was changed since is left alone."""
        self._write_kinds(document, (*KINDS, "dataset"))

    def _write_kinds(self, document: Mapping[str, JsonValue], order: Sequence[str]) -> None:
        given = object_at(document, _ENTITIES)
        entities = {urn: left for urn, left in given.items() if isinstance(left, dict)}
        kinds = {urn: (urn.split(":") * 3)[2] for urn in entities}
        known = [urn for urn in entities if kinds[urn] in order]
        known.sort(key=lambda urn: (order.index(kinds[urn]), urn))
        refused: list[tuple[Write, LumosError]] = []
        for kind, urns in groupby(known, kinds.__getitem__):
            if self._client.knows_kind(kind):
                refused += self._write(kind, {urn: entities[urn] for urn in urns})
        if refused:
            write, error = refused[0]
            forbidden = isinstance(error, PlatformForbiddenError)
            raise (PlatformForbiddenError if forbidden else PlatformError)(
                f"datahub: {len(refused):,} of {len(known):,} entities were refused, the others "
                f"are written; {write.urn}: {error.message}",
                hint=error.hint,
            )

    def _write(self, kind: str, entities: Mapping[str, Json]) -> list[tuple[Write, LumosError]]:
        writes: list[Write] = []
        for page in self._client.pages(kind, [*entities]):
            for held in page:
                now = _in_order(held.aspects)
                if kind in _TOLD_BY and kind != _ASSERTION and _is_own(kind, held):
                    now = {n: v for n, v in now.items() if n not in _OWN_ASPECTS[kind]}
                left = entities[held.urn]
                for name in left.keys() & _MISSING.keys():
                    if isinstance(left[name], dict):  # a change, and not the whole of it
                        now.setdefault(name, _MISSING[name])
                whole = as_object(restored(now, left), "aspects")
                if kind == STRUCTURED and self._waits(held, whole, left):
                    continue
                changed = {
                    name: value
                    for name, value in whole.items()
                    if now.get(name) != value and self._client.knows(kind, name)
                }
                if assigned := read_structured(changed.get("structuredProperties")):
                    self._definitions.learn([{"properties": assigned}])
                run = {_RUN: changed.pop(_RUN)} if _RUN in changed else {}
                writes.append(Write(kind, held.urn, changed, versions=held.versions))
                writes.append(Write(kind, held.urn, run, headers={}))
        given = [write for write in writes if write.aspects]
        refused = self._client.write_each(given) if given else []
        if kind == STRUCTURED:
            self._definitions.forget()
        return refused

    def _waits(self, held: StoredEntity, whole: Json, left: Json) -> bool:
        """Keep a definition beside the guess that cannot become it, until somebody deletes that."""
        waits = _is_own(STRUCTURED, held) and self._definitions.refuses(held, whole.get(DEFINITION))
        if waits:
            put_residue(self._store, STRUCTURED, held.urn, left=left)
        return waits

    def _left_of(self, kind: str, held: StoredEntity) -> JsonValue:
        theirs: Json = {
            name: without_stash(value)
            for name, value in held.aspects.items()
            if name not in _LEFT and not name.endswith("Key")
        }
        if isinstance(run := theirs.get(_RUN), dict) and run.get("messageId") == KEY:
            del theirs[_RUN]
        ours = self._ours(kind, held)
        for name, value in ours.items():  # properties that are not there are as good as none
            found = theirs.get(name)
            if isinstance(value, dict) and isinstance(found, dict) and "customProperties" in value:
                theirs[name] = {"customProperties": {}, **found}
        return residue({name: ours[name] for name in ours.keys() & theirs.keys()}, theirs)

    def _ours(self, kind: str, held: StoredEntity) -> Json:
        """Return what Lumos would write of an entity of which nothing else is known."""
        aspects = held.aspects
        if kind not in _MODELLED:
            own = _OWN_ASPECTS[kind] if _is_own(kind, held) else frozenset[str]()
            ours = {name: without_stash(aspects[name]) for name in own if name in aspects}
            return {**ours, "status": {"removed": False}} if kind == _ASSERTION else ours
        name = _MODELLED[kind]
        try:
            read = read_entity(name, held.urn, aspects, environment=self._environment)
        except UNFIT:  # all of it is kept as it is, and the listing names it
            return {}
        if read is None:
            return {}
        made = wire_entity(name, read.to_json(), environment=self._environment)
        ours = {aspect: without_stash(value) for aspect, value in made.aspects.items()}
        return {**ours, "status": {"removed": False}}

    def _left_of_lineage(self, held: StoredEntity) -> JsonValue:
        found = held.aspects.get(ASPECT)
        if not isinstance(found, dict):
            return None
        try:
            edges = read_edges(held.urn, found, environment=self._environment)
        except InvalidUrnError:
            edges = []
        ours: Json = {"upstreams": []}
        for upstream in dict.fromkeys(edge.upstream_urn for edge in edges):
            same = [edge for edge in edges if edge.upstream_urn == upstream]
            ours = with_edges(
                ours, same[0].downstream_urn, same, upstream=upstream,
                environment=self._environment,
            )  # fmt: skip
        return residue(_in_order({ASPECT: ours})[ASPECT], _in_order({ASPECT: found})[ASPECT])


def is_foreign(value: JsonValue) -> TypeGuard[Json]:
    """Return whether an extension was read from a DataHub."""
    return isinstance(value, dict) and isinstance(value.get(_ENTITIES), dict) and len(value) == 1


def _is_own(kind: str, held: StoredEntity) -> bool:
    """Return whether Lumos writes an entity by itself, because something refers to it."""
    return _TOLD_BY[kind](held.aspects)


def _of_container(aspects: Mapping[str, JsonValue]) -> bool:
    return KEY in object_at(_part(aspects, "containerProperties"), "customProperties")


def _of_owner_type(aspects: Mapping[str, JsonValue]) -> bool:
    created = _part(aspects, "ownershipTypeInfo").get("created")
    return isinstance(created, dict) and created.get("actor") in {_OWN_ACTOR, _SYSTEM_ACTOR}


def _of_node(aspects: Mapping[str, JsonValue]) -> bool:
    info = _part(aspects, "glossaryNodeInfo")
    return info.keys() <= {"name", "definition", "customProperties"} and not info.get("definition")


def _of_flow(aspects: Mapping[str, JsonValue]) -> bool:
    info = _part(aspects, "dataFlowInfo")
    return info.keys() <= {"name", "customProperties"} and not info.get("customProperties")


def _of_definition(aspects: Mapping[str, JsonValue]) -> bool:
    return _part(aspects, DEFINITION).get("description") == MADE_BY_LUMOS


_SYSTEM_ACTOR: Final = "urn:li:corpuser:__datahub_system"


def _of_assertion(aspects: Mapping[str, JsonValue]) -> bool:
    return asserted_entity(_part(aspects, "assertionInfo")).startswith("urn:li:dataset:")


_TOLD_BY: Final[Mapping[str, Callable[[Mapping[str, JsonValue]], bool]]] = {
    "assertion": _of_assertion,
    "container": _of_container,
    "ownershipType": _of_owner_type,
    "glossaryNode": _of_node,
    "dataFlow": _of_flow,
    STRUCTURED: _of_definition,
}


def _part(aspects: Mapping[str, JsonValue], name: str) -> Json:
    value = aspects.get(name)
    return value if isinstance(value, dict) else {}


def _in_order(aspects: Mapping[str, JsonValue]) -> Json:
    """Return aspects with lineage, whose order says nothing, in one that is always the same."""
    whole = dict(aspects)
    lineage = whole.get(ASPECT)
    if isinstance(lineage, dict):
        whole[ASPECT] = {
            name: sorted(value, key=canonical_json) if isinstance(value, list) else value
            for name, value in lineage.items()
            if value or name == "upstreams"
        }
    return whole
