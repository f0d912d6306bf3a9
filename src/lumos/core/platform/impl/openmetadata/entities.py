"""Datasets, people, vocabulary and jobs as OpenMetadata's entities, and back.

`wire` parts are in the form in which the server gives entities out, references included. What
comes back is canonical JSON; what it lacks is the business of the stash.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from lumos.core.models import DatasetKind, Job, LumosDataset, Urn
from lumos.core.platform.impl.openmetadata.columns import (
    CLASSIFICATION,
    GLOSSARY,
    columns_of,
    fields_of,
    label_names,
    labels_of,
)
from lumos.core.platform.impl.openmetadata.names import (
    FILLER,
    Place,
    entity_name,
    fqn,
    path_of,
    urn_of,
)
from lumos.core.platform.impl.openmetadata.quality import TESTS, told_quality

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.models import ForeignKey
    from lumos.core.platform.stash import Json

NAME: Final = "openmetadata"
FOREIGN_KEY: Final = "FOREIGN_KEY"
UNKNOWN_URN: Final = Urn.of(NAME, "unnamed")
_KINDS: Final[Mapping[DatasetKind, str]] = {
    DatasetKind.TABLE: "Regular",
    DatasetKind.VIEW: "View",
    DatasetKind.STREAM: "Stream",
    DatasetKind.FILES: "External",
}
_KIND_OF: Final[Mapping[str, DatasetKind]] = {
    **{wire: kind for kind, wire in _KINDS.items()},
    "SecureView": DatasetKind.VIEW,
    "MaterializedView": DatasetKind.VIEW,
    "Partitioned": DatasetKind.TABLE,
    "Foreign": DatasetKind.TABLE,
    "Transient": DatasetKind.TABLE,
    "Dynamic": DatasetKind.TABLE,
    "Local": DatasetKind.TABLE,
    "Iceberg": DatasetKind.TABLE,
}
_FORMATS: Final = frozenset({"csv", "json", "tsv", "parquet", "avro", "zip", "gz", "zstd"})
_VERBATIM: Final = {
    "table": ("sourceUrl", "schemaDefinition", "retentionPeriod", "locationPath"),
    "container": ("sourceUrl", "fullPath"),
}
"""What Lumos does not model, by type of entity: read, kept and written back as it is."""


def wire_dataset(dataset: LumosDataset, place: Place) -> Json:
    """Return what the entity of a dataset says natively, without references to other entities."""
    columns = columns_of(dataset.schema.fields)
    wire: Json = {
        "displayName": dataset.name if dataset.name != place.path[-1] else None,
        "description": dataset.documentation.description or None,
        "tags": labels_of(dataset.tags, dataset.governance.glossary_terms),
        **_verbatim(dataset, place),
    }
    if place.type == "table":
        kind = dataset.kind
        wire["tableType"] = _KINDS.get(kind) if kind else None
        wire["columns"] = columns
        wire["tableConstraints"] = _constraints(dataset)
    else:
        wire["dataModel"] = _data_model(dataset, columns)
        known = dataset.format in _FORMATS
        wire["fileFormats"] = [dataset.format] if known else []
        wire["prefix"] = dataset.location.prefix if dataset.location else None
    return {name: value for name, value in wire.items() if value or name == "columns"}


def told_dataset(entity: Mapping[str, JsonValue], type_: str) -> LumosDataset:
    """Return the dataset as its entity alone tells it, without stash and lineage."""
    name = str(entity.get("fullyQualifiedName") or entity["name"])
    path = path_of(name)
    urn = urn_of(type_, name) or UNKNOWN_URN
    tags = entity.get("tags")
    told: Json = {
        "urn": urn,
        "name": entity.get("displayName") or entity["name"],
        "platform": path[0],
        "tags": list(label_names(tags, CLASSIFICATION)),
        "governance": {
            "glossary_terms": list(label_names(tags, GLOSSARY)),
            "domains": [".".join(path_of(each)) for each in _names(entity.get("domains"))],
        },
        "documentation": {"description": entity.get("description") or None},
        "ownership": _owners(entity.get("owners")),
    }
    verbatim = {key: entity[key] for key in _VERBATIM[type_] if isinstance(entity.get(key), str)}
    if verbatim:
        told["extensions"] = {NAME: verbatim}
    told |= told_quality(entity.get(TESTS))
    told |= _told_table(entity, path) if type_ == "table" else _told_container(entity)
    return LumosDataset.from_json(told)


def wire_job(job: Job) -> Json:
    """Return what the pipeline of a job says natively."""
    task: Json = {"name": entity_name(job.job_id or job.name), "displayName": job.name}
    wire: Json = {"displayName": job.name, "description": job.description or None}
    return {**{name: value for name, value in wire.items() if value}, "tasks": [task]}


def told_job(entity: Mapping[str, JsonValue]) -> Job:
    """Return the job as its pipeline alone tells it."""
    service, *path = path_of(str(entity["fullyQualifiedName"]))
    name = str(entity.get("displayName") or entity["name"])
    parts = [part for each in path for part in each.split("/")]
    urn = Urn.of(service, *parts) if all(parts) else UNKNOWN_URN
    return Job.from_json({"urn": urn, "name": name, "description": entity.get("description")})


def _verbatim(dataset: LumosDataset, place: Place) -> Json:
    kept = dataset.extensions.get(NAME)
    given = kept if isinstance(kept, Mapping) else {}
    writable = [key for key in _VERBATIM[place.type] if key != "fullPath"]
    return {key: value for key in writable if isinstance(value := given.get(key), str)}


def foreign_key(key: ForeignKey, *, table: Mapping[str, JsonValue]) -> Json | None:
    """Return a foreign key as a constraint, if the table that it leads to has those columns."""
    columns = [entity_name(name) for name in key.columns]
    referred = [entity_name(name) for name in key.referenced_columns]
    there = {str(each["name"]) for each in _objects(table.get("columns"))}
    if len(columns) != len(referred) or not there.issuperset(referred):
        return None
    above = path_of(str(table["fullyQualifiedName"]))
    return {
        "constraintType": FOREIGN_KEY,
        "columns": [*columns],
        "referredColumns": [fqn((*above, name)) for name in referred],
    }


def _constraints(dataset: LumosDataset) -> list[JsonValue]:
    names = {field.name for field in dataset.schema.fields}
    keys = [("PRIMARY_KEY", dataset.schema.primary_key)]
    keys += [("UNIQUE", key) for key in dataset.schema.unique_keys]
    return [
        {"constraintType": kind, "columns": [entity_name(column) for column in columns]}
        for kind, columns in keys
        if columns and names.issuperset(columns)
    ]


def _data_model(dataset: LumosDataset, columns: list[JsonValue]) -> Json | None:
    keys = dataset.location.partition_keys if dataset.location else ()
    return {"isPartitioned": bool(keys), "columns": columns} if columns else None


def _told_table(entity: Mapping[str, JsonValue], path: tuple[str, ...]) -> Json:
    _, database, schema, *_ = (*path, FILLER, FILLER)
    keys = _objects(entity.get("tableConstraints"))
    primary = [each for each in keys if each.get("constraintType") == "PRIMARY_KEY"]
    told_schema: Json = {
        "fields": fields_of(entity.get("columns")),
        "foreign_keys": [told for each in keys if (told := _told_foreign_key(each)) is not None],
        "primary_key": primary[0].get("columns") if primary else [],
        "unique_keys": [
            each.get("columns") for each in keys if each.get("constraintType") == "UNIQUE"
        ],
    }
    return {
        "kind": _KIND_OF.get(str(entity.get("tableType"))),
        "database": None if database == FILLER else database,
        "namespace": None if schema == FILLER else schema,
        "schema": told_schema,
    }


def _told_foreign_key(constraint: Json) -> Json | None:
    referred = constraint.get("referredColumns")
    if constraint.get("constraintType") != FOREIGN_KEY or not isinstance(referred, list):
        return None
    paths = [path_of(str(each)) for each in referred]
    tables = {path[:-1] for path in paths}
    if len(tables) != 1 or not constraint.get("columns"):
        return None
    table = fqn(tables.pop())
    return {
        "columns": constraint["columns"],
        "references": urn_of("table", table) or table,
        "referenced_columns": [path[-1] for path in paths],
    }


def _told_container(entity: Mapping[str, JsonValue]) -> Json:
    model = entity.get("dataModel")
    columns = model.get("columns") if isinstance(model, dict) else None
    formats = entity.get("fileFormats")
    told: Json = {"kind": DatasetKind.FILES, "schema": {"fields": fields_of(columns)}}
    if isinstance(formats, list) and len(formats) == 1:
        told["format"] = formats[0]
    if entity.get("prefix"):
        told["location"] = {"prefix": entity["prefix"]}
    return told


def _owners(owners: JsonValue | None) -> list[JsonValue]:
    kinds = {"user": "user", "team": "group"}
    return [
        {kinds[str(each["type"])]: each["name"]}
        for each in _objects(owners)
        if each.get("type") in kinds and each.get("name")
    ]


def _names(references: JsonValue | None) -> list[str]:
    return [str(each.get("fullyQualifiedName") or each["name"]) for each in _objects(references)]


def _objects(values: JsonValue | None) -> list[Json]:
    return [each for each in values if isinstance(each, dict)] if isinstance(values, list) else []
