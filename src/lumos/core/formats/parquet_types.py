"""The canonical schema of a Parquet file: what Arrow makes of it, and what Arrow leaves out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from lumos.core.formats.arrow_types import canonical_schema
from lumos.core.formats.known_schemas import KnownSchema, leaves_of
from lumos.core.models import Field, FieldType, Schema, TimeUnit, TypeName

if TYPE_CHECKING:
    import pyarrow.parquet as pq

SPARK_SCHEMA_KEY: Final = b"org.apache.spark.sql.parquet.row.metadata"
"""Where Spark keeps its own schema, which alone has comments, intervals and lengths of text."""

_SPARK_NOTES: Final = (
    b'"comment"',
    b'"interval ',
    b'"variant"',
    b'"char(',
    b'"varchar(',
    b"_TYPE_",
)
_CHAR_NOTE: Final = "__CHAR_VARCHAR_TYPE_STRING"
_CHAR: Final = re.compile(r"(?:var)?char\((\d{1,9})\)")
_VARIANT_MARK: Final = "(Variant("
_VARIANT_FIELDS: Final = frozenset({"metadata", "value", "typed_value"})
_INTERVAL_BYTES = 12

_Node = TypeVar("_Node", bound=FieldType)
_Column = Any
"""A leaf of a Parquet schema, as Arrow shows it."""


def new_schema(
    file: pq.ParquetFile,
    entries: Mapping[bytes, bytes],
    *,
    geometries: frozenset[str],
    description: str | None,
) -> KnownSchema:
    """Return the schema of a file with all that is made of it once.

    Args:
        file: the file, open.
        entries: what the file says of itself, by key.
        geometries: the columns that GeoParquet says hold shapes.
        description: what the file says it is.

    Raises:
        UnreadableItemError: the schema is nested too deeply or has too many fields.
    """
    schema, warnings = canonical_schema(file.schema_arrow)
    columns = [file.metadata.schema.column(i) for i in range(file.metadata.num_columns)]
    fields = schema.fields
    if len(columns) == sum(1 for _ in leaves_of(schema)):
        rest = iter(columns)
        fields = _each(fields, lambda leaf: _annotated(leaf, next(rest)))
    fields = _with_spark(fields, _spark_members(entries))
    fields = tuple(_shape(field) if field.name in geometries else field for field in fields)
    starts: list[int] = [0]
    if _VARIANT_MARK in str(file.metadata.schema):
        fields = tuple(_without_variants(field, starts) for field in fields)
    schema = schema.model_copy(update={"fields": fields})
    places = tuple((start, True) for start in starts[:-1])
    return KnownSchema.of(schema, warnings, description=description, places=places)


def _each(
    fields: Sequence[Field], change: Callable[[FieldType], Mapping[str, object]]
) -> tuple[Field, ...]:
    return tuple(_changed(field, change) for field in fields)


def _changed(node: _Node, change: Callable[[FieldType], Mapping[str, object]]) -> _Node:
    """Return the node with each of its leaves changed, from the first to the last."""
    update: dict[str, object] = {}
    if node.type is TypeName.STRUCT:
        update["fields"] = _each(node.fields, change)
    for name in ("items", "key", "value"):
        child = getattr(node, name)
        if child is not None:
            update[name] = _changed(child, change)
    if not update:
        update = dict(change(node))
    return node.model_copy(update=update) if update else node


def _annotated(leaf: FieldType, column: _Column) -> Mapping[str, object]:
    """What a leaf means that Arrow reads as no more than bytes, or as a local time."""
    physical, logical = column.physical_type, column.logical_type.type
    native = leaf.native_type
    if physical == "INT96" and leaf.type is TypeName.TIMESTAMP_NTZ:
        # Arrow reads local times, but Spark, Hive and Impala write instants this way.
        return {"type": TypeName.TIMESTAMP, "native_type": "int96"}
    if logical == "ENUM":
        return {"type": TypeName.STRING, "native_type": f"{native} (enum)"}
    if logical in ("GEOMETRY", "GEOGRAPHY"):
        return {"type": TypeName.GEOMETRY, "native_type": f"{native} ({logical.lower()})"}
    if logical == "BSON":
        return {"native_type": f"{native} (bson)"}
    # parquet-java says of intervals that their meaning is unknown.
    unknown = logical == "UNKNOWN" and physical == "FIXED_LEN_BYTE_ARRAY"
    if logical == "INTERVAL" or (unknown and column.length == _INTERVAL_BYTES):
        native = f"fixed_size_binary[{_INTERVAL_BYTES}] (interval)"
        return {"type": TypeName.DURATION, "length": None, "native_type": native}
    return {}


def _spark_members(entries: Mapping[bytes, bytes]) -> Mapping[str, object]:
    text = entries.get(SPARK_SCHEMA_KEY)
    if text is None or not any(note in text for note in _SPARK_NOTES):
        return {}
    try:
        return _members(json.loads(text))
    except (ValueError, RecursionError):
        return {}  # notes are a courtesy; the schema itself has been read


def _members(spark_type: object) -> dict[str, object]:
    fields = spark_type.get("fields") if isinstance(spark_type, dict) else None
    if not isinstance(fields, list):
        return {}
    return {str(field.get("name")): field for field in fields if isinstance(field, dict)}


def _with_spark(fields: tuple[Field, ...], members: Mapping[str, object]) -> tuple[Field, ...]:
    if not members:
        return fields
    return tuple(_with_spark_field(field, members.get(field.name)) for field in fields)


def _with_spark_field(field: Field, spark_field: object) -> Field:
    if not isinstance(spark_field, dict):
        return field
    metadata = spark_field.get("metadata")
    notes = metadata if isinstance(metadata, dict) else {}
    spark_type = notes.get(_CHAR_NOTE, spark_field.get("type"))
    field = _with_spark_type(field, spark_type)
    comment = notes.get("comment")
    if isinstance(comment, str) and comment.strip() and field.description is None:
        return field.model_copy(update={"description": comment})
    return field


def _with_spark_type(node: _Node, spark_type: object) -> _Node:
    update: dict[str, object] = {}
    if isinstance(spark_type, str):
        update.update(_spark_meaning(node, spark_type))
    elif isinstance(spark_type, dict):
        if node.type is TypeName.STRUCT:
            update["fields"] = _with_spark(node.fields, _members(spark_type))
        for name, key in (("items", "elementType"), ("key", "keyType"), ("value", "valueType")):
            child = getattr(node, name)
            if child is not None and key in spark_type:
                update[name] = _with_spark_type(child, spark_type[key])
    return node.model_copy(update=update) if update else node


def _spark_meaning(node: FieldType, spark_type: str) -> Mapping[str, object]:
    native = f"{node.native_type} ({spark_type})"
    if spark_type.startswith("interval ") and node.type is TypeName.INT64:
        return {"type": TypeName.DURATION, "unit": TimeUnit.MICROSECOND, "native_type": native}
    if spark_type.startswith("interval ") and node.type is TypeName.INT32:
        return {"type": TypeName.DURATION, "native_type": native}
    if (length := _CHAR.fullmatch(spark_type)) and node.type is TypeName.STRING:
        return {"length": int(length[1]), "native_type": native}
    return {}


def _shape(field: Field) -> Field:
    if field.type is not TypeName.BINARY:
        return field
    native = f"{field.native_type} (geometry)"
    update = {"type": TypeName.GEOMETRY, "length": None, "native_type": native}
    return field.model_copy(update=update)


def _without_variants(node: _Node, starts: list[int]) -> _Node:
    """Return the node with each variant, which is kept in several columns, as one of JSON.

    The position of the first column of each leaf is added to `starts`, which ends with that of
    the next column.
    """
    if _is_variant(node):
        starts.append(starts[-1] + _width(node))
        variant = {"type": TypeName.JSON, "fields": (), "native_type": "variant"}
        return node.model_copy(update=variant)
    update: dict[str, object] = {}
    if node.type is TypeName.STRUCT:
        update["fields"] = tuple(_without_variants(field, starts) for field in node.fields)
    for name in ("items", "key", "value"):
        child = getattr(node, name)
        if child is not None:
            update[name] = _without_variants(child, starts)
    if not update:
        starts.append(starts[-1] + 1)
    return node.model_copy(update=update) if update else node


def _is_variant(node: FieldType) -> bool:
    names = {field.name for field in node.fields}
    if not {"metadata", "value"} <= names <= _VARIANT_FIELDS:
        return False
    first = node.fields[0]
    return (first.name, first.type, first.nullable) == ("metadata", TypeName.BINARY, False)


def _width(node: FieldType) -> int:
    return sum(1 for _ in leaves_of(Schema(fields=node.fields)))
