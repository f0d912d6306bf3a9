"""The types that Lumos defines in Atlas on first use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lumos.core.json_reading import find_objects, find_text, find_texts, objects_among, texts_among

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json

DATASET = "lumos_dataset"
COLUMN = "lumos_column"
EDGE = "lumos_edge"
JOB = "lumos_job"
USER = "lumos_user"
GROUP = "lumos_group"
DOMAIN = "lumos_domain"
IDENTITY = "lumos_identity"
EXTENSION = "lumos_extension"
COLUMN_EDGE = "lumos_column_edge"
EDGE_COLUMNS = "lumos_edge_columns"
_COLUMNS = "lumos_dataset_columns"
STASH = "lumosStash"
TYPE_VERSION = "1.1"
"""Raised whenever a definition below changes; servers that have an older one get the new one."""

_TEXT, _TEXTS, _TEXT_MAP = "string", "array<string>", "map<string,string>"
_NO_INDEX = frozenset({STASH, "transformation"})

_ATTRIBUTES: dict[str, tuple[str, dict[str, str]]] = {
    DATASET: (
        "DataSet",
        {
            "platform": _TEXT, "kind": _TEXT, "environment": _TEXT, "database": _TEXT,
            "namespace": _TEXT, "format": _TEXT, "location": _TEXT, "owners": _TEXTS,
            "domains": _TEXTS, "businessContext": _TEXT, "sla": _TEXT, "properties": _TEXT_MAP,
            "lumosVersion": _TEXT, "rowCount": "long", "qualityScore": "double",
            "placeholder": "boolean", STASH: _TEXT,
        },
    ),
    COLUMN: (
        "DataSet",
        {
            "dataType": _TEXT, "nativeType": _TEXT, "isNullable": "boolean",
            "isPrimaryKey": "boolean", "isPersonal": "boolean", "defaultValue": _TEXT,
            "position": "int", STASH: _TEXT,
        },
    ),
    EDGE: (
        "Process",
        {
            "upstreamUrn": _TEXT, "downstreamUrn": _TEXT, "jobUrn": _TEXT, "lineageType": _TEXT,
            "confidence": "double", "columnMappings": _TEXTS, STASH: _TEXT,
        },
    ),
    COLUMN_EDGE: ("Process", {"transformation": _TEXT}),
    JOB: ("Process", {"orchestrator": _TEXT, STASH: _TEXT}),
    USER: ("Asset", {"email": _TEXT, STASH: _TEXT}),
    GROUP: ("Asset", {"members": _TEXTS, STASH: _TEXT}),
    DOMAIN: ("Asset", {"parent": _TEXT, STASH: _TEXT}),
    IDENTITY: ("Referenceable", {"urn": _TEXT, "catalog": _TEXT, "externalId": _TEXT}),
    EXTENSION: ("Referenceable", {"label": _TEXT, STASH: _TEXT}),
}  # fmt: skip

ENTITY_TYPES = (*_ATTRIBUTES,)
TYPE_NAMES = (*ENTITY_TYPES, _COLUMNS, EDGE_COLUMNS)


def is_older(definition: Json) -> bool:
    """Return whether the definition that a server has of one of these types is older than this."""
    version = find_text(definition, "typeVersion") or ""
    told = [int(part) for part in version.split(".") if part.isdecimal()]
    return told < [int(part) for part in TYPE_VERSION.split(".")]


def attributes_of(type_name: str) -> tuple[str, ...]:
    """Return the attributes that a type adds to those of its parent."""
    return tuple(_ATTRIBUTES[type_name][1])


def definitions(names: frozenset[str]) -> Json:
    """Return the definitions of some of the types."""
    entities: list[JsonValue] = [_entity_definition(name) for name in _ATTRIBUTES if name in names]
    return {
        "entityDefs": entities,
        "relationshipDefs": [
            _owning(name, *ends) for name, ends in _OWNING.items() if name in names
        ],
        "classificationDefs": [],
        "enumDefs": [],
        "structDefs": [],
        "businessMetadataDefs": [],
    }


def grown(held: Json, wanted: Json) -> Json:
    """Return a definition with what the one that is held has beyond it."""
    known = {each["name"] for each in objects_among(wanted["attributeDefs"])}
    theirs = [each for each in find_objects(held, "attributeDefs") if each.get("name") not in known]
    return {
        **held,
        **wanted,
        "attributeDefs": [*objects_among(wanted["attributeDefs"]), *theirs],
        "superTypes": [
            *dict.fromkeys([*texts_among(wanted["superTypes"]), *find_texts(held, "superTypes")])
        ],
    }


def _entity_definition(name: str) -> Json:
    parent, attributes = _ATTRIBUTES[name]
    return {
        "name": name,
        "superTypes": [parent],
        "serviceType": "lumos",
        "typeVersion": TYPE_VERSION,
        "description": "Written by Lumos.",
        "attributeDefs": [_attribute(attribute, kind) for attribute, kind in attributes.items()],
    }


def _attribute(name: str, kind: str) -> Json:
    many = kind.startswith("array")
    return {
        "name": name,
        "typeName": kind,
        "isOptional": True,
        "cardinality": "LIST" if many else "SINGLE",
        "valuesMinCount": 0,
        "valuesMaxCount": 2_147_483_647 if many else 1,
        "isUnique": False,
        # A stash may be longer than the index of Atlas takes.
        "isIndexable": name not in _NO_INDEX,
    }


def _owning(name: str, owner: tuple[str, str], owned: tuple[str, str]) -> Json:
    """Return a relation by which what is owned goes with its owner."""
    return {
        "name": name,
        "serviceType": "lumos",
        "typeVersion": "1.0",
        "relationshipCategory": "COMPOSITION",
        "propagateTags": "NONE",
        "endDef1": {
            "type": owner[0], "name": owner[1], "isContainer": True, "cardinality": "SET",
            "isLegacyAttribute": False,
        },
        "endDef2": {
            "type": owned[0], "name": owned[1], "isContainer": False, "cardinality": "SINGLE",
            "isLegacyAttribute": False,
        },
    }  # fmt: skip


_OWNING: Mapping[str, tuple[tuple[str, str], tuple[str, str]]] = {
    _COLUMNS: ((DATASET, "columns"), (COLUMN, "dataset")),
    EDGE_COLUMNS: ((EDGE, "columnEdges"), (COLUMN_EDGE, "edge")),
}
