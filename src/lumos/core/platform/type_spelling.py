"""Types that catalogs keep as text, in the spelling of Hive, Presto or a database."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from lumos.core.models.types import DEEPEST_TYPE, TypeName

if TYPE_CHECKING:
    from lumos.core.json_reading import Json

_SCALARS: Mapping[str, TypeName] = {
    **dict.fromkeys(("boolean", "bool"), TypeName.BOOLEAN),
    "tinyint": TypeName.INT8,
    **dict.fromkeys(("smallint", "int2"), TypeName.INT16),
    **dict.fromkeys(("int", "integer", "int4", "mediumint", "serial"), TypeName.INT32),
    **dict.fromkeys(("bigint", "int8", "long", "int64", "bigserial"), TypeName.INT64),
    **dict.fromkeys(("float", "real", "float4"), TypeName.FLOAT),
    **dict.fromkeys(("double", "double precision", "float8", "float64"), TypeName.DOUBLE),
    **dict.fromkeys(("decimal", "numeric", "number"), TypeName.DECIMAL),
    **dict.fromkeys(
        ("string", "varchar", "char", "text", "character varying", "character", "nvarchar"),
        TypeName.STRING,
    ),
    **dict.fromkeys(("binary", "varbinary", "bytea", "bytes", "blob"), TypeName.BINARY),
    "date": TypeName.DATE,
    "time": TypeName.TIME,
    **dict.fromkeys(("timestamp with time zone", "timestamptz"), TypeName.TIMESTAMP),
    **dict.fromkeys(
        ("timestamp", "datetime", "timestamp without time zone", "timestamp_ntz"),
        TypeName.TIMESTAMP_NTZ,
    ),
    "uuid": TypeName.UUID,
    **dict.fromkeys(("json", "jsonb", "variant"), TypeName.JSON),
    **dict.fromkeys(("geometry", "geography"), TypeName.GEOMETRY),
}
_SIZED = re.compile(r"([a-z_0-9 ]+?)\s*\(\s*(\d{1,9})\s*(?:,\s*(\d{1,9})\s*)?\)\Z")
_OPENING, _CLOSING = "<([", ">)]"


def type_of_spelling(native: str) -> Json:
    """Return the canonical type of a spelling; one that is not known, or is cut off, is UNKNOWN."""
    parts = _parts(native.strip(), depth=1)
    known = parts if parts is not None else {"type": TypeName.UNKNOWN}
    return {**known, "native_type": native}


def _parts(text: str, *, depth: int) -> Json | None:
    lower = text.lower()
    if scalar := _SCALARS.get(lower):
        return {"type": scalar}
    if sized := _SIZED.match(lower):
        return _sized(sized[1], sized[2], sized[3])
    if depth >= DEEPEST_TYPE or not text.endswith((">", ")")):
        return None
    head = re.match(r"(array|map|struct|row)\s*[<(]", lower)
    if head is None:
        return None
    members = _split(text[head.end() : -1])
    match head[1]:
        case "array" if len(members) == 1:
            items = _parts(members[0], depth=depth + 1)
            return items and {"type": TypeName.ARRAY, "items": items}
        case "map" if len(members) == 2:  # noqa: PLR2004 - a key and a value
            key, value = (_parts(member, depth=depth + 1) for member in members)
            return key and value and {"type": TypeName.MAP, "key": key, "value": value}
        case "struct" | "row":
            return _struct(members, depth=depth)
        case _:
            return None


def _sized(name: str, first: str, second: str | None) -> Json | None:
    kind = _SCALARS.get(name)
    if kind is TypeName.DECIMAL:
        scale = {} if second is None else {"scale": int(second)}
        return {"type": kind, "precision": int(first), **scale}
    if second is not None or kind is None:
        return None
    return {"type": kind, "length": int(first)} if kind is TypeName.STRING else {"type": kind}


def _struct(members: list[str], *, depth: int) -> Json | None:
    fields: list[Json] = []
    for member in members:
        name, separator, spelling = member.partition(":")
        if not separator or " " in name.strip():
            name, separator, spelling = member.partition(" ")
        inner = _parts(spelling.strip(), depth=depth + 1)
        if inner is None or not name.strip():
            return None
        fields.append({"name": name.strip().strip('"`'), **inner})
    names = {field["name"] for field in fields}
    return {"type": TypeName.STRUCT, "fields": [*fields]} if len(names) == len(fields) else None


def _split(text: str) -> list[str]:
    """Return the parts between commas that no bracket encloses."""
    parts, level, start = [], 0, 0
    for position, character in enumerate(text):
        level += (character in _OPENING) - (character in _CLOSING)
        if character == "," and level == 0:
            parts.append(text[start:position].strip())
            start = position + 1
    return [*parts, text[start:].strip()]
