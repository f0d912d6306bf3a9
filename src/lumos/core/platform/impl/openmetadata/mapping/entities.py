"""Datasets, people, vocabulary and jobs as OpenMetadata's entities, and back.

`wire` parts are in the form in which the server gives entities out, references included. What
comes back is canonical JSON; what it lacks is the business of the stash.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from lumos.core.json_reading import object_at
from lumos.core.models import DatasetKind, Job, LumosDataset, Urn, with_parts
from lumos.core.platform.fitting import fitting
from lumos.core.platform.impl.openmetadata.mapping.changes import is_stash
from lumos.core.platform.impl.openmetadata.mapping.columns import (
    CLASSIFICATION,
    GLOSSARY,
    columns_of,
    fields_of,
    kept_columns,
    label_names,
    labels_of,
    unread_columns,
    with_kept,
)
from lumos.core.platform.impl.openmetadata.mapping.names import (
    FILLER,
    VERBATIM,
    Place,
    decoded,
    entity_name,
    fqn,
    job_urn,
    path_of,
    urn_of,
)
from lumos.core.platform.impl.openmetadata.mapping.quality import TESTS, told_quality
from lumos.core.platform.impl.openmetadata.mapping.services import service_type
from lumos.core.platform.unreadable import UNFIT

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json
    from lumos.core.models import ForeignKey

NAME: Final = "openmetadata"
FOREIGN_KEY: Final = "FOREIGN_KEY"
_MODELLED: Final = frozenset({"PRIMARY_KEY", "UNIQUE", FOREIGN_KEY})
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
_FORMATS: Final = frozenset({"csv", "json", "tsv", "parquet", "avro", "zip", "gz", "zstd", "MF4"})
UNMODELLED: Final = {
    "table": ("sourceUrl", "schemaDefinition", "retentionPeriod", "locationPath", "fileFormat",
              "tablePartition", "dataModel", "lifeCycle"),
    "container": ("sourceUrl", "fullPath", "numberOfObjects", "size", "lifeCycle"),
}  # fmt: skip
"""What Lumos does not model, by type of entity: read, kept and written back as it is."""
_KEPT_ALONE: Final = ("certification", "tableProfilerConfig")
"""What is read and kept, and written nowhere: it leads to what another server may not have."""
_CONSTRAINTS: Final = "tableConstraints"
_PRODUCTS: Final = "dataProducts"
NOT_WRITTEN: Final = (*_KEPT_ALONE, _PRODUCTS)
_OF_PIPELINES: Final = (
    "tasks", "sourceUrl", "scheduleInterval", "concurrency", "pipelineLocation", "startDate",
)  # fmt: skip
_NAMED: Final = ("id", "name", "fullyQualifiedName", "serviceType")
"""What an entity cannot be read without."""
_ODD: Final = "odd"
"""Where the extension keeps what fits no dataset."""
_COLUMNS: Final = "columns"
_UNREAD: Final = "unreadColumns"
_PARTITIONED: Final = "isPartitioned"
SERVICE_TYPE: Final = "serviceType"
_SERVICE_OF: Final = {"table": "databaseService", "container": "storageService"}
_TABLE_TYPE: Final = "tableType"
_FILE_FORMATS: Final = "fileFormats"


def wire_dataset(dataset: LumosDataset, place: Place) -> Json:
    """Return what the entity of a dataset says natively, without references to other entities."""
    kept = kept_of(dataset)
    columns = with_kept(columns_of(dataset.schema.fields), kept.get(_COLUMNS))
    wire: Json = {
        "displayName": dataset.name if dataset.name != place.path[-1] else None,
        "description": dataset.documentation.description or None,
        "tags": labels_of(dataset.tags, dataset.governance.glossary_terms),
        **{key: kept[key] for key in UNMODELLED[place.type] if kept.get(key)},
    }
    if place.type == "table":
        kind = dataset.kind
        wire[_TABLE_TYPE] = _KINDS.get(kind) if kind else None
        if kept.get(_TABLE_TYPE) and _KIND_OF.get(str(kept[_TABLE_TYPE])) == kind:
            wire[_TABLE_TYPE] = kept[_TABLE_TYPE]
        wire["columns"] = columns
        wire[_CONSTRAINTS] = [*_constraints(dataset), *other_constraints(kept, dataset)]
    else:
        partitioned = bool(kept.get(_PARTITIONED))
        wire["dataModel"] = _data_model(dataset, columns, partitioned=partitioned)
        known = dataset.format in _FORMATS
        wire[_FILE_FORMATS] = [dataset.format] if known else kept.get(_FILE_FORMATS)
        wire["prefix"] = dataset.location.prefix if dataset.location else None
    return {name: value for name, value in wire.items() if value or name == "columns"}


def told_dataset(
    entity: Mapping[str, JsonValue], type_: str, *, foreign: bool = False
) -> LumosDataset:
    """Return the dataset of an entity alone, without stash and lineage.

    A value that fits no dataset is kept in its extension.

    Args:
        entity: a table or a container.
        type_: which of them.
        foreign: whether others wrote it; what Lumos does not model of columns is kept then.
    """
    try:
        return _told_dataset(entity, type_, foreign=foreign)
    except UNFIT:
        return _fitted_dataset(entity, type_, foreign=foreign)


def _fitted_dataset(entity: Mapping[str, JsonValue], type_: str, *, foreign: bool) -> LumosDataset:
    certain: Json = {key: entity[key] for key in _NAMED if key in entity}

    def fits(part: Json) -> bool:
        try:
            _told_dataset({**certain, **part}, type_, foreign=foreign)
        except UNFIT:
            return False
        return True

    rest: Json = {key: value for key, value in entity.items() if key not in certain}
    part = fitting(rest, fits)
    told = _told_dataset({**certain, **part}, type_, foreign=foreign)
    odd: Json = {key: value for key, value in rest.items() if part.get(key) != value}
    extension: JsonValue = {**kept_of(told), _ODD: odd}
    return with_parts(told, extensions={**told.extensions, NAME: extension})


def _told_dataset(entity: Mapping[str, JsonValue], type_: str, *, foreign: bool) -> LumosDataset:
    name = str(entity.get("fullyQualifiedName") or entity["name"])
    path = path_of(name)
    urn = urn_of(type_, name) or UNKNOWN_URN
    tags = entity.get("tags")
    told: Json = {
        "urn": urn,
        "name": entity.get("displayName") or decoded(str(entity["name"])),
        "platform": _platform(urn, entity, service=path[0]),
        "tags": list(label_names(tags, CLASSIFICATION)),
        "governance": {
            "glossary_terms": list(label_names(tags, GLOSSARY)),
            "domains": [
                ".".join(map(decoded, path_of(each))) for each in _names(entity.get("domains"))
            ],
        },
        "documentation": {"description": entity.get("description") or None},
        "ownership": _owners(entity.get("owners")),
    }
    if properties := other_properties(entity):
        told["properties"] = properties
    service = service_type(_SERVICE_OF[type_], (str(told["platform"]), path[0]))
    verbatim = _verbatim(entity, type_, foreign=foreign, service=service)
    if verbatim:
        told["extensions"] = {NAME: verbatim}
    told |= told_quality(entity.get(TESTS))
    told |= _told_table(entity, path) if type_ == "table" else _told_container(entity)
    return LumosDataset.from_json(told)


def other_properties(entity: Mapping[str, JsonValue]) -> Json:
    """Return the custom properties of an entity, without the one that is the stash."""
    given = entity.get("extension")
    known = given if isinstance(given, dict) else {}
    return {name: value for name, value in known.items() if not is_stash(name)}


def custom_properties(dataset: LumosDataset, declared: Mapping[str, str]) -> Json:
    """Return the properties of a dataset that fit custom properties which somebody declared."""
    given = object_at(dataset.document, "properties")
    return {
        name: value
        for name, value in given.items()
        if not is_stash(name) and _fits(value, declared.get(name))
    }


def _fits(value: JsonValue, kind: str | None) -> bool:
    if isinstance(value, bool):
        return False
    if isinstance(value, str):
        return bool(value) and kind in {"string", "markdown", "sqlQuery"}
    numbers = {"number", "integer", "timestamp"} if isinstance(value, int) else {"number"}
    return isinstance(value, int | float) and kind in numbers


def _platform(urn: Urn, entity: Mapping[str, JsonValue], *, service: str) -> str:
    if urn.platform == VERBATIM and isinstance(entity.get("serviceType"), str):
        return str(entity["serviceType"]).lower()
    return service


def wire_job(job: Job, *, name: str) -> Json:
    """Return what the pipeline of a job says natively.

    Args:
        job: what it stands for.
        name: the name of the pipeline.
    """
    task: Json = {"name": entity_name(job.job_id or job.name), "displayName": job.name}
    given = kept_of_job(job)
    wire: Json = {
        "displayName": job.name if job.name != name else None,
        "description": job.description or None,
        "tasks": [task],
        **{key: given[key] for key in _OF_PIPELINES if given.get(key)},
    }
    return {name: value for name, value in wire.items() if value}


def kept_of_job(job: Job) -> Json:
    """Return what of OpenMetadata a job carries along, in plain JSON."""
    kept = object_at(job.to_json(), "properties").get(NAME)
    return kept if isinstance(kept, dict) else {}


def told_job(entity: Mapping[str, JsonValue], *, foreign: bool = False) -> Job:
    """Return the job of a pipeline alone; what Lumos does not model is a property."""
    name = str(entity.get("displayName") or entity["name"])
    urn = job_urn(str(entity["fullyQualifiedName"])) or UNKNOWN_URN
    told: Json = {"urn": urn, "name": name, "description": entity.get("description")}
    parts = (*_OF_PIPELINES, SERVICE_TYPE) if foreign else ()
    kept: Json = {key: entity[key] for key in parts if entity.get(key)}
    if isinstance(tasks := kept.get("tasks"), list):
        kept["tasks"] = [_without_name(task) for task in tasks]
    return Job.from_json({**told, "properties": {NAME: kept}} if kept else told)


def _without_name(task: JsonValue) -> JsonValue:
    """Return a task without the name that the server gave it."""
    given = task if isinstance(task, dict) else {}
    return {key: value for key, value in given.items() if key != "fullyQualifiedName"}


def other_constraints(
    entity: Mapping[str, JsonValue], dataset: LumosDataset | None = None
) -> list[JsonValue]:
    """Return the constraints that Lumos does not model; of a dataset, those of its columns."""
    names = {entity_name(field.name) for field in dataset.schema.fields} if dataset else None
    found: list[JsonValue] = []
    for each in _objects(entity.get(_CONSTRAINTS)):
        columns = each.get("columns")
        given = columns if isinstance(columns, list) else []
        if each.get("constraintType") not in _MODELLED and (
            names is None or names.issuperset(map(str, given))
        ):
            found.append(each)
    return found


def _verbatim(entity: Mapping[str, JsonValue], type_: str, *, foreign: bool, service: str) -> Json:
    """Return what Lumos does not model of an entity, and types and formats without a twin.

    Args:
        entity: the table or container.
        type_: which of both it is.
        foreign: whether others wrote it.
        service: the type that Lumos would give to the service of the dataset.
    """
    found: Json = {key: entity[key] for key in UNMODELLED[type_] if entity.get(key)}
    if entity.get(_TABLE_TYPE) not in {None, *_KINDS.values()}:
        found[_TABLE_TYPE] = entity[_TABLE_TYPE]
    formats = entity.get(_FILE_FORMATS)
    if isinstance(formats, list) and len(formats) > 1:
        found[_FILE_FORMATS] = formats
    found |= {key: entity[key] for key in _KEPT_ALONE if entity.get(key)}
    found[_PRODUCTS] = [*_names(entity.get(_PRODUCTS))]
    found[_CONSTRAINTS] = other_constraints(entity)
    model = entity.get("dataModel") if type_ == "container" else entity
    if foreign and isinstance(model, Mapping):
        found |= {
            _COLUMNS: kept_columns(model.get("columns")),
            _UNREAD: unread_columns(model.get("columns")),
            _PARTITIONED: model.get(_PARTITIONED),
        }
    if foreign and entity.get(SERVICE_TYPE) != service:
        found[SERVICE_TYPE] = entity.get(SERVICE_TYPE)
    return {key: value for key, value in found.items() if value}


def kept_of(dataset: LumosDataset) -> Json:
    """Return what of OpenMetadata a dataset carries along, in plain JSON."""
    if NAME not in dataset.extensions:
        return {}
    kept = object_at(dataset.document, "extensions")[NAME]
    return kept if isinstance(kept, dict) else {}


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


def _data_model(
    dataset: LumosDataset, columns: list[JsonValue], *, partitioned: bool
) -> Json | None:
    keys = dataset.location.partition_keys if dataset.location else ()
    return {_PARTITIONED: bool(keys) or partitioned, "columns": columns} if columns else None


def _told_table(entity: Mapping[str, JsonValue], path: tuple[str, ...]) -> Json:
    _, database, schema, *_ = (*path, FILLER, FILLER)
    keys = [each for each in _objects(entity.get(_CONSTRAINTS)) if each.get("columns")]
    primary = [each for each in keys if each.get("constraintType") == "PRIMARY_KEY"]
    columns = _objects(entity.get("columns"))
    told_schema: Json = {
        "fields": fields_of(entity.get("columns")),
        "foreign_keys": [told for each in keys if (told := _told_foreign_key(each)) is not None],
        "primary_key": _columns_of(primary[0]) if primary else _marked(columns, "PRIMARY_KEY"),
        "unique_keys": [
            *(_columns_of(each) for each in keys if each.get("constraintType") == "UNIQUE"),
            *([name] for name in _marked(columns, "UNIQUE")),
        ],
    }
    return {
        "kind": _KIND_OF.get(str(entity.get("tableType"))),
        "database": None if database == FILLER else database,
        "namespace": None if schema == FILLER else decoded(schema),
        "schema": told_schema,
    }


def _marked(columns: list[Json], constraint: str) -> list[JsonValue]:
    """Return the columns that say of themselves what others say as a constraint of the table."""
    return [
        decoded(str(column["name"])) for column in columns if column.get("constraint") == constraint
    ]


def _columns_of(constraint: Json) -> JsonValue:
    """Return the columns of a constraint by their own names; anything but a list as it is."""
    columns = constraint.get("columns")
    if not isinstance(columns, list):
        return columns
    return [decoded(each) if isinstance(each, str) else each for each in columns]


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
        "columns": _columns_of(constraint),
        "references": urn_of("table", table) or table,
        "referenced_columns": [decoded(path[-1]) for path in paths],
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
        {kinds[str(each["type"])]: decoded(str(each["name"]))}
        for each in _objects(owners)
        if each.get("type") in kinds and each.get("name")
    ]


def _names(references: JsonValue | None) -> list[str]:
    return [str(each.get("fullyQualifiedName") or each["name"]) for each in _objects(references)]


def _objects(values: JsonValue | None) -> list[Json]:
    return [each for each in values if isinstance(each, dict)] if isinstance(values, list) else []
