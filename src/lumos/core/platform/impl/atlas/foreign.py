"""Tables that others wrote to Atlas, such as the hooks of Hive: read, never written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from lumos.core.models import DatasetKind, LineageEdge, LumosDataset, Urn
from lumos.core.models.types import Field
from lumos.core.platform.impl.atlas.datasets import OWN, DatasetParts, own_values
from lumos.core.platform.impl.atlas.typedefs import DATASET
from lumos.core.platform.impl.atlas.wire import Json, mapping, objects, text
from lumos.core.platform.type_spelling import type_parts

if TYPE_CHECKING:
    from pydantic import JsonValue

TABLE_TYPES: Final = ("hive_table", "kafka_topic", "rdbms_table", "spark_table", "trino_table")
_NOT_IN_PLATFORMS: Final = re.compile(r"[^a-z0-9_.-]")
PROVENANCE: Final = "atlas"
_VIEWS: Final = frozenset({"VIRTUAL_VIEW", "MATERIALIZED_VIEW", "VIEW"})
_WORDS: Final = ("description", "userDescription", "comment")
_ELSEWHERE: Final = frozenset({"name", "owner", "columns", "inputs", "outputs"})


def platform_of(type_name: str) -> str:
    """Return the platform that the tables of a type belong to."""
    return _NOT_IN_PLATFORMS.sub("_", type_name.rsplit("_", 1)[0].lower())


def foreign_urn(type_name: str, qualified_name: str) -> Urn:
    """Return the URN of a table that others wrote; its path is the qualified name as it is."""
    return Urn.of(platform_of(type_name), qualified_name)


def foreign_name(urn: Urn, types: Iterable[str]) -> tuple[str, str] | None:
    """Return the type and the qualified name that a URN stands for, if it can stand for one."""
    if len(urn.parts) != 1:
        return None
    found = (name for name in types if platform_of(name) == urn.platform)
    return next(((name, urn.name) for name in found), None)


def foreign_field(column: Json, tags: Iterable[str], *, terms: Iterable[str]) -> Field:
    """Return the field of a column that others wrote."""
    attributes = mapping(column.get("attributes"))
    native = text(attributes.get("type")) or text(attributes.get("data_type")) or ""
    return Field.from_json(
        {
            **type_parts(native),
            "name": str(attributes.get("name")),
            "nullable": attributes.get("isNullable") is not False,
            "description": _words(attributes),
            "default": text(attributes.get("default_value")),
            "tags": [*tags],
            "glossary_terms": [*terms],
        }
    )


def foreign_dataset(entity: Json, parts: DatasetParts, *, keys: Iterable[str]) -> LumosDataset:
    """Return the dataset of a table that others wrote; what Lumos does not model is kept."""
    attributes = mapping(entity.get("attributes"))
    type_name, owner = str(entity.get("typeName")), text(attributes.get("owner"))
    name = str(attributes.get("qualifiedName"))
    rest: Json = {
        key: value
        for key, value in attributes.items()
        if key not in _ELSEWHERE and value not in (None, "", [], {})
    }
    own: Json = {
        **own_values(entity),
        "typeName": type_name,
        "guid": entity.get("guid"),
        "attributes": rest,
    }
    return LumosDataset.from_json(
        {
            "urn": foreign_urn(type_name, name),
            "name": text(attributes.get("name")) or name,
            "platform": platform_of(type_name),
            "kind": _kind(type_name, attributes),
            "schema": {"fields": tuple(parts.fields), "primary_key": tuple(keys)},
            "ownership": [{"user": owner}] if owner else [],
            "tags": tuple(parts.tags),
            "governance": {"glossary_terms": tuple(parts.terms)},
            "documentation": {"description": _words(attributes)},
            "extensions": {OWN: own},
        }
    )


def foreign_keys_of(columns: Iterable[Json]) -> list[str]:
    """Return the names of the columns that are marked as the primary key."""
    found = (mapping(column.get("attributes")) for column in columns)
    return [str(each.get("name")) for each in found if each.get("isPrimaryKey") is True]


def urn_of(entity: Json, types: Iterable[str]) -> Urn | None:
    """Return the URN of an entity that is a dataset to Lumos."""
    type_name = str(entity.get("typeName"))
    name = str(mapping(entity.get("attributes")).get("qualifiedName"))
    if type_name == DATASET:
        return Urn(name)
    return foreign_urn(type_name, name) if type_name in types else None


def end_guids(process: Json, name: str) -> list[str]:
    """Return the GUIDs of the inputs or the outputs of a process."""
    return [str(end.get("guid")) for end in objects(mapping(process.get("attributes")).get(name))]


def foreign_edges(process: Json, urns: Mapping[str, Urn]) -> Iterator[LineageEdge]:
    """Yield an edge from each input to each output of a process that others wrote."""
    name = str(mapping(process.get("attributes")).get("qualifiedName"))
    job = foreign_urn(str(process.get("typeName")), name)
    inputs, outputs = (
        sorted({urns[guid] for guid in end_guids(process, side) if guid in urns})
        for side in ("inputs", "outputs")
    )
    for upstream in inputs:
        for downstream in outputs:
            if upstream != downstream:
                yield LineageEdge(
                    upstream_urn=upstream,
                    downstream_urn=downstream,
                    job_urn=job,
                    provenance=PROVENANCE,
                )


def _kind(type_name: str, attributes: Mapping[str, JsonValue]) -> DatasetKind:
    if type_name == "kafka_topic":
        return DatasetKind.STREAM
    return DatasetKind.VIEW if attributes.get("tableType") in _VIEWS else DatasetKind.TABLE


def _words(attributes: Mapping[str, JsonValue]) -> str | None:
    return next((found for name in _WORDS if (found := text(attributes.get(name)))), None)
