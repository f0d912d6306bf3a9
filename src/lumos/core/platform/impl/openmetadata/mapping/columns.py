"""Columns of OpenMetadata and fields of Lumos, each made from the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from lumos.core.json_reading import as_objects, list_at
from lumos.core.models import Field, FieldType, TypeName
from lumos.core.models.base import canonical_json
from lumos.core.models.types import DEEPEST_TYPE
from lumos.core.platform.impl.openmetadata.mapping.names import (
    decoded,
    entity_name,
    fqn,
    label_name,
    label_path,
    path_of,
)

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json


PII: Final = "PII.Sensitive"
CLASSIFICATION: Final = "Classification"
GLOSSARY: Final = "Glossary"
TAG_LEVELS: Final = 2
COLUMN_KEYS: Final = (
    "name",
    "dataType",
    "dataTypeDisplay",
    "dataLength",
    "precision",
    "scale",
    "arrayDataType",
    "constraint",
    "description",
    "tags",
    "children",
)
_TO: Final[Mapping[TypeName, str]] = {
    TypeName.BOOLEAN: "BOOLEAN",
    TypeName.INT8: "TINYINT",
    TypeName.INT16: "SMALLINT",
    TypeName.INT32: "INT",
    TypeName.INT64: "BIGINT",
    TypeName.FLOAT: "FLOAT",
    TypeName.DOUBLE: "DOUBLE",
    TypeName.DECIMAL: "DECIMAL",
    TypeName.STRING: "STRING",
    TypeName.BINARY: "BYTES",
    TypeName.DATE: "DATE",
    TypeName.TIME: "TIME",
    TypeName.TIMESTAMP: "TIMESTAMPZ",
    TypeName.TIMESTAMP_NTZ: "TIMESTAMP",
    TypeName.DURATION: "INTERVAL",
    TypeName.UUID: "UUID",
    TypeName.JSON: "JSON",
    TypeName.ENUM: "ENUM",
    TypeName.ARRAY: "ARRAY",
    TypeName.MAP: "MAP",
    TypeName.STRUCT: "STRUCT",
    TypeName.UNION: "UNION",
    TypeName.GEOMETRY: "GEOMETRY",
    TypeName.UINT8: "UINT",
    TypeName.UINT16: "UINT",
    TypeName.UINT32: "UINT",
    TypeName.UINT64: "UINT",
}
_FROM: Final[Mapping[str, TypeName]] = {
    **{name: type_ for type_, name in _TO.items() if name != "UINT"},
    "NUMBER": TypeName.DECIMAL,
    "NUMERIC": TypeName.DECIMAL,
    "INTEGER": TypeName.INT32,
    "BYTEINT": TypeName.INT8,
    "LONG": TypeName.INT64,
    "UINT": TypeName.UINT32,
    "CHAR": TypeName.STRING,
    "VARCHAR": TypeName.STRING,
    "TEXT": TypeName.STRING,
    "MEDIUMTEXT": TypeName.STRING,
    "NTEXT": TypeName.STRING,
    "CLOB": TypeName.STRING,
    "BINARY": TypeName.BINARY,
    "VARBINARY": TypeName.BINARY,
    "BLOB": TypeName.BINARY,
    "LONGBLOB": TypeName.BINARY,
    "MEDIUMBLOB": TypeName.BINARY,
    "BYTEA": TypeName.BINARY,
    "DATETIME": TypeName.TIMESTAMP_NTZ,
    "RECORD": TypeName.STRUCT,
    "GEOGRAPHY": TypeName.GEOMETRY,
    "POINT": TypeName.GEOMETRY,
    "POLYGON": TypeName.GEOMETRY,
    "VARIANT": TypeName.JSON,
}
_OTHER: Final = "UNKNOWN"
_LONGEST: Final = 2**31 - 1
_NEED_PARAMETERS: Final = frozenset({TypeName.MAP, TypeName.UNION, TypeName.ENUM})
_MOST_DISPLAYED: Final = 1_000
_POSITION: Final = "ordinalPosition"
_UNMODELLED: Final = ("displayName", "jsonSchema", _POSITION)
_KEPT_ALONE: Final = ("extension",)
"""What is written nowhere: another server may not have declared it, and refuse the table."""
_TYPE_KEYS: Final = ("dataType", "arrayDataType", "dataLength", "precision", "scale")
_NEED_LENGTH: Final = frozenset({"CHAR", "VARCHAR", "BINARY", "VARBINARY"})
_DEEPEST: Final = DEEPEST_TYPE // 2
"""How many columns may lie in each other; each may be a list as well."""
_IS: Final = "is"
_AS: Final = "as"
_BELOW: Final = "below"


def columns_of(fields: Iterable[Field]) -> list[JsonValue]:
    """Return fields as OpenMetadata's columns; names that it refuses are replaced."""
    return [_column(each) for each in fields]


def fields_of(columns: JsonValue, *, depth: int = 1) -> list[JsonValue]:
    """Return columns as fields in JSON; what the types cannot say is unknown.

    Of columns of one name, which servers have held after a second ingestion, the first counts.
    """
    return [_field(each, depth=depth) for each in _by_name(columns).values()]


def unread_columns(columns: JsonValue) -> list[JsonValue]:
    """Return as text the columns that no field holds, or not with all of their members."""
    first = _by_name(columns)
    given = columns if isinstance(columns, list) else []
    unread = (
        each
        for each in given
        if isinstance(each, dict)
        and (each is not first.get(str(each.get("name"))) or not _is_whole(each))
    )
    return [canonical_json(each).decode() for each in unread]


def _by_name(columns: JsonValue) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for each in columns if isinstance(columns, list) else []:
        if isinstance(each, dict) and each.get("name"):
            found.setdefault(str(each["name"]), each)
    return found


def _is_whole(column: Json, *, depth: int = 1) -> bool:
    members = column.get("children")
    if not isinstance(members, list) or not members:
        return True
    inner = [each for each in members if isinstance(each, dict)]
    if depth >= _DEEPEST or len(_by_name(members)) < len(inner):
        return False
    return all(_is_whole(each, depth=depth + 1) for each in inner)


def kept_columns(columns: JsonValue) -> Json:
    """Return by name what fields do not say of columns: other names, types without a twin."""
    kept: Json = {}
    for position, column in enumerate(_by_name(columns).values(), 1):
        wire = _column(Field.from_json(_field(column)))
        unmodelled = (*_UNMODELLED, *_KEPT_ALONE)
        parts: Json = {key: column[key] for key in unmodelled if column.get(key)}
        if parts.get(_POSITION) == position:  # as the list says
            del parts[_POSITION]
        parts |= {
            key: {_IS: column.get(key), _AS: wire.get(key)}
            for key in _TYPE_KEYS
            if column.get(key) != wire.get(key)
        }
        if "children" in wire:
            parts[_BELOW] = kept_columns(column.get("children"))
        elif column.get("children"):
            parts["children"] = column["children"]
        said: Json = {key: value for key, value in parts.items() if value}
        if said:
            kept[str(column["name"])] = said
    return kept


def with_kept(columns: list[JsonValue], kept: JsonValue | None) -> list[JsonValue]:
    """Return columns with what was kept of them, as far as it still fits."""
    known = kept if isinstance(kept, dict) else {}
    return [
        _with_parts(column, parts) if isinstance(parts := known.get(name), dict) else column
        for column in as_objects(columns, "columns")
        for name in [str(column["name"])]
    ]


def _with_parts(column: Json, parts: Json) -> Json:
    made: Json = {**column, **{key: parts[key] for key in _UNMODELLED if parts.get(key)}}
    for key in _TYPE_KEYS:
        type_ = parts.get(key)
        if isinstance(type_, dict) and type_.get(_IS) and type_.get(_AS) == column.get(key):
            made[key] = type_[_IS]
    if made["dataType"] in _NEED_LENGTH and not made.get("dataLength"):
        made["dataType"] = column["dataType"]
    if parts.get("children") and made["dataType"] != column["dataType"]:
        made.setdefault("children", parts["children"])
    if made["dataType"] == "STRUCT" and not made.get("children"):
        made["dataType"] = column["dataType"]
    if _BELOW in parts and isinstance(column.get("children"), list):
        made["children"] = with_kept(list_at(column, "children"), parts[_BELOW])
    return made


def labels_of(tags: Iterable[str], terms: Iterable[str]) -> list[JsonValue]:
    """Return tags and terms as the labels that OpenMetadata hangs on things."""
    found: list[JsonValue] = [
        _label(fqn(label_path(tag, most=TAG_LEVELS)), CLASSIFICATION) for tag in tags
    ]
    return [*found, *(_label(fqn(label_path(term)), GLOSSARY) for term in terms)]


def label_names(labels: JsonValue, source: str) -> list[str]:
    """Return how Lumos calls the labels of one source."""
    given = labels if isinstance(labels, list) else []
    return [
        label_name(path_of(str(each["tagFQN"])))
        for each in given
        if isinstance(each, dict) and each.get("source") == source and each.get("tagFQN")
    ]


def _label(name: str, source: str) -> Json:
    return {"tagFQN": name, "source": source, "labelType": "Manual", "state": "Confirmed"}


def _column(field: Field) -> Json:
    column = {"name": entity_name(field.name), **_type(field)}
    tags = (*field.tags, PII) if field.pii and PII not in field.tags else field.tags
    parts: Json = {
        "constraint": None if field.nullable else "NOT_NULL",
        "description": field.description or None,
        "tags": labels_of(tags, field.glossary_terms),
    }
    return {**column, **{name: value for name, value in parts.items() if value}}


def _type(node: FieldType) -> Json:
    wire = _TO.get(node.type, _OTHER)
    shown = node.native_type or node.signature().lower()
    column: Json = {"dataType": wire, "dataTypeDisplay": shown[:_MOST_DISPLAYED]}
    match node.type:
        case TypeName.STRING | TypeName.BINARY if node.length and node.length <= _LONGEST:
            text = node.type == TypeName.STRING
            column |= {"dataType": "VARCHAR" if text else "VARBINARY", "dataLength": node.length}
        case TypeName.DECIMAL:
            given = {"precision": node.precision, "scale": node.scale}
            fits = all(value is None or 0 <= value <= _LONGEST for value in given.values())
            column |= {name: value for name, value in given.items() if value is not None and fits}
        case TypeName.STRUCT if not node.fields:
            column["dataType"] = _OTHER  # a struct without children is refused
        case TypeName.STRUCT:
            column["children"] = columns_of(node.fields)
        case TypeName.ARRAY if node.items:
            inner = _type(node.items)
            column["arrayDataType"] = inner["dataType"]
            if children := inner.get("children"):
                column["children"] = children
        case _:
            pass
    return column


def _field(column: Json, *, depth: int = 1) -> Json:
    tags = label_names(column.get("tags"), CLASSIFICATION)
    field: Json = {
        "name": decoded(str(column.get("name"))),
        **_field_type(column, depth=depth),
        "nullable": column.get("constraint") not in {"NOT_NULL", "PRIMARY_KEY"},
        "pii": PII in tags,
        "tags": [tag for tag in tags if tag != PII],
        "glossary_terms": list(label_names(column.get("tags"), GLOSSARY)),
    }
    if column.get("description"):
        field["description"] = column["description"]
    return field


def _field_type(column: Json, *, depth: int = 1) -> Json:
    type_ = _FROM.get(str(column.get("dataType")), TypeName.UNKNOWN)
    told: Json = {"type": type_.value}
    match type_:
        case TypeName.STRING | TypeName.BINARY:
            told["length"] = _size(column.get("dataLength"))
        case TypeName.DECIMAL:
            told["precision"] = _size(column.get("precision"))
            told["scale"] = column.get("scale")
        case TypeName.STRUCT if depth < _DEEPEST:
            told["fields"] = fields_of(column.get("children"), depth=depth + 1)
        case TypeName.STRUCT:
            told["type"] = TypeName.UNKNOWN.value
        case TypeName.ARRAY:
            inner: Json = {"dataType": column.get("arrayDataType")}
            told["items"] = _field_type({**inner, "children": column.get("children")}, depth=depth)
        case _ if type_ in _NEED_PARAMETERS:
            told["type"] = TypeName.UNKNOWN.value  # it does not state of what
        case _:
            pass
    told = {name: value for name, value in told.items() if value is not None}
    shown = column.get("dataTypeDisplay")
    if isinstance(shown, str) and shown != _spelled(told):
        told["native_type"] = shown
    return told


def _size(value: JsonValue | None) -> JsonValue | None:
    """Return a number of characters or digits; some tools say -1 for no limit."""
    return value if isinstance(value, int) and value >= 0 else None


def _spelled(told: Json) -> str:
    """Return how Lumos spells a type; one without others inside is looked up."""
    if "fields" in told or "items" in told:
        return FieldType.from_json(told).signature().lower()
    return _spelled_plainly(tuple(told.items()))


@lru_cache(maxsize=4_096)
def _spelled_plainly(told: tuple[tuple[str, JsonValue], ...]) -> str:
    return FieldType.from_json(dict(told)).signature().lower()
