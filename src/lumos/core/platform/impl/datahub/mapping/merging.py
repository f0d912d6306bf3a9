"""Keeps what others say of an entity of DataHub when Lumos writes what it knows of it.

DataHub replaces an aspect as a whole. What turns the aspects that Lumos would write of the entity
as it stands there into those that stand there is carried over to the ones it is to get now.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from lumos.core.errors import InvalidModelError
from lumos.core.json_reading import as_object, as_objects, list_at, object_at
from lumos.core.platform.impl.datahub.mapping.entities import USER_FIELDS, read_entity, wire_entity
from lumos.core.platform.impl.datahub.mapping.residue import residue, restored
from lumos.core.platform.impl.datahub.mapping.stash import without_stash

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json
    from lumos.core.platform.impl.datahub.client import StoredEntity
    from lumos.core.platform.impl.datahub.mapping.entities import Converted
    from lumos.core.platform.interface import EntityKind

_EDITED: Final = "corpUserEditableInfo"
_ENDS: Final = "dataJobInputOutput"
_DATASET: Final = "urn:li:dataset:"


def merged(
    kind: EntityKind, document: Json, *, made: Converted, held: StoredEntity, environment: str
) -> Json:
    """Return the aspects of an entity with all that Lumos does not model as it stands there."""
    both = made.aspects.keys() & held.aspects.keys()
    theirs: Json = {name: without_stash(held.aspects[name]) for name in both}
    ours = _ours(kind, held, environment=environment)
    left = residue({name: ours.get(name, {}) for name in both}, theirs)
    whole = as_object(restored(made.aspects, left), "aspects")
    if isinstance(edited := whole.get(_EDITED), dict):
        whole[_EDITED] = _said(edited, document)
    if isinstance(ends := whole.get(_ENDS), dict):
        whole[_ENDS] = _within(ends, object_at(made.aspects, _ENDS))
    return whole


def _ours(kind: EntityKind, held: StoredEntity, *, environment: str) -> Json:
    """Return what Lumos would write of an entity as it stands there."""
    try:
        read = read_entity(kind, held.urn, held.aspects, environment=environment)
    except InvalidModelError:
        return {}  # nothing of it is known, so all that is not said now is theirs
    if read is None:
        return {}
    made = wire_entity(kind, read.to_json(), environment=environment)
    return {name: without_stash(value) for name, value in made.aspects.items()}


def _said(edited: Json, document: Mapping[str, JsonValue]) -> Json:
    """Bring what people wrote of a user up to what is said now, as it comes first on reading."""
    said = {theirs: document[ours] for ours, theirs in USER_FIELDS.items() if ours in document}
    return {name: said.get(name, value) if value else value for name, value in edited.items()}


def _within(ends: Json, made: Mapping[str, JsonValue]) -> Json:
    """Leave out what others say of inputs and outputs that a job no longer has."""
    whole = dict(ends)
    for name, edges in (
        ("inputDatasets", "inputDatasetEdges"),
        ("outputDatasets", "outputDatasetEdges"),
    ):
        if isinstance(given := whole.get(edges), list):
            kept = list_at(made, name)
            whole[edges] = [
                edge
                for edge in as_objects(given, "given")
                if edge.get("destinationUrn") in kept
                or not str(edge.get("destinationUrn")).startswith(_DATASET)
            ]
    return whole
