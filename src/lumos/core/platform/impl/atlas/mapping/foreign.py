"""Tables, topics and files that others wrote to Atlas, such as hooks: read, never written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from lumos.core.json_reading import (
    find_object,
    find_text,
    find_texts,
    object_or_empty,
    objects_among,
)
from lumos.core.models import DatasetKind, LumosDataset, Urn
from lumos.core.models.types import Field
from lumos.core.platform.impl.atlas.mapping.own_values import OWN, own_values
from lumos.core.platform.impl.atlas.mapping.typedefs import DATASET
from lumos.core.platform.impl.atlas.mapping.wire import is_live
from lumos.core.platform.type_spelling import type_of_spelling

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json
    from lumos.core.platform.impl.atlas.mapping.datasets import DatasetParts

TABLE_TYPES: Final = (
    "adls_gen2_blob", "adls_gen2_directory", "aws_s3_object", "aws_s3_v2_directory",
    "aws_s3_v2_object", "hbase_table", "hdfs_path", "hive_table", "iceberg_table", "kafka_topic",
    "ozone_key", "rdbms_table", "spark_table", "trino_table",
)  # fmt: skip
"""Types of Atlas' own models that are datasets to Lumos."""
_FILES: Final = frozenset(
    {"adls_gen2_blob", "adls_gen2_directory", "aws_s3_object", "aws_s3_v2_directory",
     "aws_s3_v2_object", "hdfs_path", "ozone_key"}
)  # fmt: skip
_COLUMNS: Final = ("columns", "partitionKeys")
"""The relations whose far ends are columns, in the order of the table."""
_NOT_IN_PLATFORMS: Final = re.compile(r"[^a-z0-9_.-]")
_VIEWS: Final = frozenset({"VIRTUAL_VIEW", "MATERIALIZED_VIEW", "VIEW"})
_WORDS: Final = ("description", "userDescription", "comment")
_ELSEWHERE: Final = frozenset({"name", "owner", "columns", "partitionKeys", "inputs", "outputs"})
_OF_COLUMNS: Final = frozenset({"name", "qualifiedName", "table", "position"})
_SIZES: Final = ("size", "contentLength", "fileSize")
_CHANGED: Final = ("lastModifiedTime", "modifiedTime")
_PLACES: Final = ("path", "url", "storageLocation")


class Column(NamedTuple):
    """A column entity with what it carries."""

    entity: Json
    tags: Sequence[str] = ()
    terms: Sequence[str] = ()


def _platform_of(type_name: str) -> str:
    """Return the platform that the tables of a type belong to."""
    return _NOT_IN_PLATFORMS.sub("_", type_name.rsplit("_", 1)[0].lower())


def foreign_urn(type_name: str, qualified_name: str) -> Urn:
    """Return the URN of a table that others wrote; its path is the qualified name as it is."""
    return Urn.of(_platform_of(type_name), qualified_name)


def foreign_names(urn: Urn, types: Iterable[str]) -> list[tuple[str, str]]:
    """Return the types and the qualified name that a URN may stand for."""
    if len(urn.parts) != 1:
        return []
    return [(name, urn.name) for name in types if _platform_of(name) == urn.platform]


def urn_of(entity: Json, types: Iterable[str]) -> Urn | None:
    """Return the URN of an entity that is a dataset to Lumos."""
    type_name = str(entity.get("typeName"))
    name = str(find_object(entity, "attributes").get("qualifiedName"))
    if type_name == DATASET:
        return Urn(name)
    return foreign_urn(type_name, name) if type_name in types else None


def foreign_columns(entity: Json, referred: Json) -> Iterator[Json]:
    """Yield the columns of a table in their order, those that it is divided by at the end."""
    seen: set[str] = set()
    for relation in _COLUMNS:
        found = [
            full
            for column in objects_among(_related(entity, relation))
            if is_live(column)
            and (full := find_object(referred, str(column.get("guid"))))
            and full.get("status") != "DELETED"
        ]
        for column in sorted(found, key=_position):
            name = str(find_object(column, "attributes").get("name"))
            if name not in seen:
                seen.add(name)
                yield column


def referenced_tables(entity: Json, referred: Json) -> list[str]:
    """Return the GUIDs of tables that foreign keys point to and of which Atlas gave no name."""
    found = []
    for each in objects_among(_related(entity, "foreign_keys")):
        key = find_object(referred, str(each.get("guid")))
        target = find_text(_related(key, "references_table"), "guid")
        if target and target not in referred:
            found.append(target)
    return found


def foreign_dataset(
    entity: Json, parts: DatasetParts, *, columns: Sequence[Column], referred: Json
) -> LumosDataset:
    """Return the dataset of a table that others wrote; what Lumos does not model is kept."""
    attributes = find_object(entity, "attributes")
    schema: dict[str, object] = {
        "fields": [_field(column) for column in columns],
        "primary_key": _primary_key(columns),
        "foreign_keys": _foreign_keys(entity, referred),
    }
    type_name, owner = str(entity.get("typeName")), find_text(attributes, "owner")
    name = str(attributes.get("qualifiedName"))
    return LumosDataset.from_json(
        {
            "urn": foreign_urn(type_name, name),
            "name": find_text(attributes, "name") or name,
            "platform": _platform_of(type_name),
            "kind": _kind(type_name, attributes),
            "location": _location(entity, referred),
            "schema": schema,
            "ownership": [{"user": owner}] if owner else [],
            "tags": tuple(parts.tags),
            "governance": {"glossary_terms": tuple(parts.terms)},
            "documentation": {"description": _words(attributes)},
            "statistics": _statistics(attributes),
            "extensions": {OWN: _own(entity, columns, referred=referred)},
        }
    )


def _own(entity: Json, columns: Sequence[Column], *, referred: Json) -> Json:
    """Return all that Atlas has of a table and that has no place in a dataset."""
    attributes = find_object(entity, "attributes")
    own: Json = {
        **own_values(entity),
        "typeName": entity.get("typeName"),
        "guid": entity.get("guid"),
        "attributes": _filled(attributes, _ELSEWHERE),
    }
    kept: Json = {}
    for column in columns:
        values = find_object(column.entity, "attributes")
        rest = {**own_values(column.entity)}
        if more := _filled(values, _OF_COLUMNS):
            rest["attributes"] = more
        if rest:
            kept[str(values.get("name"))] = rest
    if kept:
        own["columns"] = kept
    if parts := _parts_of(entity, referred):
        own["parts"] = parts
    return own


def _parts_of(entity: Json, referred: Json) -> Json:
    """Return what belongs to a table besides columns: how it is stored, its keys and indexes."""
    found: Json = {}
    columns = {
        str(each.get("guid")) for name in _COLUMNS for each in objects_among(_related(entity, name))
    }
    for relation in ("sd", "foreign_keys", "indexes", "ddlQueries"):
        value = _related(entity, relation)
        ends = [value] if isinstance(value, dict) else [*objects_among(value)]
        whole: list[JsonValue] = []
        for end in ends:
            guid = str(end.get("guid"))
            if guid in referred and guid not in columns and is_live(end):
                whole.append(_filled(find_object(referred[guid], "attributes"), ()))
        if whole:
            found[relation] = whole
    return found


def _filled(values: Json, without: Iterable[str]) -> Json:
    left = {*without}
    return {
        key: value
        for key, value in values.items()
        if key not in left and value not in (None, "", [], {})
    }


def _field(column: Column) -> Field:
    attributes = find_object(column.entity, "attributes")
    native = find_text(attributes, "type") or find_text(attributes, "data_type") or ""
    parts = type_of_spelling(native)
    length = attributes.get("length")
    if parts.get("type") == "STRING" and isinstance(length, int) and length > 0:
        parts = {"length": length, **parts}
    nullable = attributes.get("isNullable", attributes.get("nullable"))
    return Field.from_json(
        {
            **parts,
            "name": str(attributes.get("name")),
            "nullable": nullable is not False,
            "description": _words(attributes),
            "default": find_text(attributes, "default_value"),
            "tags": [*column.tags],
            "glossary_terms": [*column.terms],
        }
    )


def _primary_key(columns: Iterable[Column]) -> list[str]:
    found = (find_object(column.entity, "attributes") for column in columns)
    return [str(each.get("name")) for each in found if each.get("isPrimaryKey") is True]


def _foreign_keys(entity: Json, referred: Json) -> list[dict[str, object]]:
    """Return the keys of which Atlas gave both the columns and the table that they point to."""
    found: list[dict[str, object]] = []
    for each in objects_among(_related(entity, "foreign_keys")):
        key = find_object(referred, str(each.get("guid")))
        mine = _names(_related(key, "key_columns"), referred)
        target = object_or_empty(_related(key, "references_table"))
        theirs = find_object(referred, str(target.get("guid")))
        named = find_text(theirs, "attributes", "qualifiedName") or find_text(
            target, "uniqueAttributes", "qualifiedName"
        )
        if is_live(each) and mine and named:
            urn = foreign_urn(str(target.get("typeName")), named)
            other = _names(_related(key, "references_columns"), referred)
            found.append({"columns": mine, "references": urn, "referenced_columns": other})
    return found


def _names(ends: JsonValue | None, referred: Json) -> list[str]:
    names = []
    for end in objects_among(ends):
        full = find_object(referred, str(end.get("guid")), "attributes")
        names.append(find_text(full, "name") or find_text(end, "displayText"))
    return [name for name in names if name is not None]


def _location(entity: Json, referred: Json) -> dict[str, object] | None:
    attributes = find_object(entity, "attributes")
    stored = object_or_empty(_related(entity, "sd"))
    full = find_object(referred, str(stored.get("guid")), "attributes")
    path = find_text(full, "location") or next(
        (found for name in _PLACES if (found := find_text(attributes, name))), None
    )
    bucket = find_text(attributes, "bucketName")
    keys = [
        str(find_object(referred, str(each.get("guid")), "attributes").get("name"))
        for each in objects_among(_related(entity, "partitionKeys"))
        if is_live(each) and str(each.get("guid")) in referred
    ] or find_texts(attributes, "partitionColumnNames")
    if not (path or bucket or keys):
        return None
    return {"path": path, "bucket": bucket, "partition_keys": keys}


def _statistics(attributes: Json) -> dict[str, object] | None:
    sizes = (attributes.get(name) for name in _SIZES)
    size = next((each for each in sizes if isinstance(each, int) and each > 0), None)
    changed = next((at for name in _CHANGED if (at := _moment(attributes.get(name)))), None)
    parts = attributes.get("partitionCount")
    found: dict[str, object] = {
        "total_size_bytes": size,
        "last_modified": changed,
        "partition_count": parts if isinstance(parts, int) and parts > 0 else None,
    }
    return found if any(value is not None for value in found.values()) else None


def _moment(value: JsonValue | None) -> datetime | None:
    """Return the time of a date of Atlas, in milliseconds; nought stands for none."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < _LAST_MOMENT:
        return None
    return datetime.fromtimestamp(value / 1000, UTC)


_LAST_MOMENT: Final = 253_402_300_800_000


def _related(entity: Json, name: str) -> JsonValue | None:
    """Return the far ends of a relation; older models have them as an attribute."""
    found = find_object(entity, "relationshipAttributes").get(name)
    return found or find_object(entity, "attributes").get(name)


def _kind(type_name: str, attributes: Mapping[str, JsonValue]) -> DatasetKind:
    if type_name == "kafka_topic":
        return DatasetKind.STREAM
    if type_name in _FILES:
        return DatasetKind.FILES
    told = str(attributes.get("tableType") or attributes.get("type") or "").upper()
    return DatasetKind.VIEW if told in _VIEWS else DatasetKind.TABLE


def _words(attributes: Json) -> str | None:
    return next((found for name in _WORDS if (found := find_text(attributes, name))), None)


def _position(column: Json) -> int:
    position = find_object(column, "attributes").get("position")
    return position if isinstance(position, int) else 0
