"""Columns of Lumos and schema fields of DataHub: types, and paths that spell out their nesting."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from lumos.core.json_reading import (
    as_list,
    as_object,
    object_at,
    objects_at,
    required_text_at,
    texts_at,
)
from lumos.core.models.types import PARAMETERS, FieldType, TypeName
from lumos.core.platform.impl.datahub.mapping.urns import (
    escaped,
    simple_name,
    simple_urn,
    unescaped,
)

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json

VERSION: Final = "[version=2.0]"
_UNION_OF: Final = "com.linkedin.schema."
_NESTED: Final = frozenset({"STRUCT", "ARRAY", "MAP", "UNION"})
_TYPES: Final[Mapping[str, tuple[str, str]]] = {
    "BOOLEAN": ("BooleanType", "boolean"),
    **dict.fromkeys(("INT8", "INT16", "INT32", "UINT8", "UINT16"), ("NumberType", "int")),
    **dict.fromkeys(("INT64", "UINT32", "UINT64"), ("NumberType", "long")),
    "FLOAT": ("NumberType", "float"),
    "DOUBLE": ("NumberType", "double"),
    "DECIMAL": ("NumberType", "bytes"),
    "STRING": ("StringType", "string"),
    "UUID": ("StringType", "string"),
    "JSON": ("StringType", "string"),
    "BINARY": ("BytesType", "bytes"),
    "DATE": ("DateType", "int"),
    **dict.fromkeys(("TIME", "TIMESTAMP", "TIMESTAMP_NTZ", "DURATION"), ("TimeType", "long")),
    "ENUM": ("EnumType", "enum"),
    "STRUCT": ("RecordType", "struct"),
    "ARRAY": ("ArrayType", "array"),
    "MAP": ("MapType", "map"),
    "UNION": ("UnionType", "union"),
    "GEOMETRY": ("StringType", "string"),
    "UNKNOWN": ("NullType", "null"),
}
"""What DataHub knows each type as: the member of its union, and the word within a path."""
_CLASSES: Final[Mapping[str, str]] = {
    "BooleanType": "BOOLEAN",
    "StringType": "STRING",
    "BytesType": "BINARY",
    "FixedType": "BINARY",
    "DateType": "DATE",
    "TimeType": "TIMESTAMP",
    "RecordType": "STRUCT",
}
_NATIVE: Final[Mapping[str, str]] = {
    "bool": "BOOLEAN", "boolean": "BOOLEAN", "bit": "BOOLEAN",
    "tinyint": "INT8", "byte": "INT8", "smallint": "INT16", "short": "INT16", "int2": "INT16",
    "int": "INT32", "integer": "INT32", "int4": "INT32", "serial": "INT32", "mediumint": "INT32",
    "bigint": "INT64", "long": "INT64", "int8": "INT64", "bigserial": "INT64",
    "float": "FLOAT", "real": "FLOAT", "float4": "FLOAT",
    "double": "DOUBLE", "double precision": "DOUBLE", "float8": "DOUBLE",
    "decimal": "DECIMAL", "numeric": "DECIMAL", "number": "DECIMAL",
    "string": "STRING", "text": "STRING", "varchar": "STRING", "char": "STRING",
    "character varying": "STRING", "character": "STRING", "nvarchar": "STRING",
    "binary": "BINARY", "bytes": "BINARY", "varbinary": "BINARY", "bytea": "BINARY",
    "blob": "BINARY", "date": "DATE", "time": "TIME",
    "timestamp": "TIMESTAMP", "timestamptz": "TIMESTAMP", "timestamp with time zone": "TIMESTAMP",
    "datetime": "TIMESTAMP_NTZ", "timestamp_ntz": "TIMESTAMP_NTZ",
    "timestamp without time zone": "TIMESTAMP_NTZ",
    "uuid": "UUID", "json": "JSON", "jsonb": "JSON", "variant": "JSON",
    "geometry": "GEOMETRY", "geography": "GEOMETRY",
    "int16": "INT16", "int32": "INT32", "int64": "INT64",
    "uint8": "UINT8", "uint16": "UINT16", "uint32": "UINT32", "uint64": "UINT64",
    "float32": "FLOAT", "float64": "DOUBLE", "bignumeric": "DECIMAL",
    "varchar2": "STRING", "nvarchar2": "STRING", "clob": "STRING", "nclob": "STRING",
    "raw": "BINARY", "binary_float": "FLOAT", "binary_double": "DOUBLE",
}  # fmt: skip
_OF_FILES: Final[Mapping[str, str]] = {
    "int8": "INT8", "integer": "INT64", "number": "DOUBLE", "halffloat": "FLOAT", "any": "STRING",
    "large_string": "STRING", "large_binary": "BINARY", "utf8": "STRING", "year": "INT32",
    "decimal128": "DECIMAL", "decimal256": "DECIMAL", "date32": "DATE", "date64": "DATE",
}  # fmt: skip
"""Types of Arrow, and those that DataHub infers for text."""
_BY_PLATFORM: Final[Mapping[str, Mapping[str, str]]] = {
    **dict.fromkeys(("s3", "gcs", "abs"), _OF_FILES),
    "clickhouse": {
        "int8": "INT8", "fixedstring": "STRING", "date32": "DATE", "datetime": "TIMESTAMP",
        "datetime64": "TIMESTAMP", "ipv4": "STRING", "ipv6": "STRING", "enum8": "STRING",
        "enum16": "STRING", "decimal32": "DECIMAL", "decimal64": "DECIMAL",
        "decimal128": "DECIMAL", "decimal256": "DECIMAL",
    },
    "oracle": {"long": "STRING", "long raw": "BINARY"},
}  # fmt: skip
"""Types that mean something else on a platform than elsewhere."""
_WRAPPED: Final = re.compile(r"(?:Nullable|LowCardinality)\((.*)\)\Z")
_TYPE_NAMES: Final = TypeName.__members__
_SPELT: Final = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_ ]*?)\s*(?:\(\s*([^()]*)\s*\))?\s*\Z")
_PARAMETERS: Final[Mapping[str, tuple[str, ...]]] = {
    "DECIMAL": ("precision", "scale"),
    "STRING": ("length",),
    "BINARY": ("length",),
}
_FLAT: Final = ""
"""The first step of paths of the first version, whose names may hold dots."""
_UNITS: Final = frozenset({"s", "ms", "us", "ns"})
_PATH_PARTS: Final = re.compile(r"(\[[^\[\]]*\])|\.?([^.\[\]]+)")


class _Row(NamedTuple):
    """A schema field of DataHub, its path taken apart."""

    types: tuple[str, ...]
    """The words of the last step: its containers first."""
    steps: tuple[str, ...]
    """The names from the column down."""
    document: Mapping[str, JsonValue]


def wire_fields(fields: Sequence[JsonValue], *, keys: Iterable[str] = ()) -> list[JsonValue]:
    """Return the schema fields of columns given as `to_json` writes them, parents first."""
    chosen = frozenset(keys)
    rows: list[JsonValue] = []
    for field in fields:
        column = as_object(field, "field")
        path = field_path(column)
        rows.append(_row(column, path, is_key=column["name"] in chosen))
        if path.startswith(VERSION):
            rows.extend(_member_rows(column, path))
    return rows


def field_path(column: Mapping[str, JsonValue]) -> str:
    """Return the path of a top-level column, as `wire_fields` writes it."""
    name = required_text_at(column, "name")
    if column["type"] not in _NESTED and not name.startswith("["):
        return name if name.isidentifier() else escaped(name)  # identifiers hold nothing to escape
    words = ".".join(f"[type={word}]" for word in _words(column))
    return f"{VERSION}.[type=struct].{words}.{_step(name)}"


def column_fields(rows: Sequence[JsonValue], *, platform: str = "") -> list[JsonValue]:
    """Return the columns of schema fields of DataHub."""
    columns: dict[str, JsonValue] = {}
    places: dict[tuple[str, ...], Json] = {}
    for document in rows:
        row = _taken_apart(as_object(document, "document"), places)
        column = _column_of(row, platform)
        parent = places.get(row.steps[:-1])
        if parent is None or not _adopts(parent, column):
            column["name"] = ".".join(row.steps[row.steps[0] == _FLAT :])
            columns.setdefault(str(column["name"]), column)
        places[row.steps] = column
    return [*columns.values()]


def column_of(path: str) -> str:
    """Return the name of the column that a path of DataHub begins with."""
    if not path.startswith(VERSION):
        return unescaped(path)
    names = [name for _, name in _PATH_PARTS.findall(path[len(VERSION) :]) if name]
    return ".".join(map(unescaped, names)) or path


def _member_rows(node: Mapping[str, JsonValue], path: str) -> Iterator[JsonValue]:
    for member in _members(node):
        words = ".".join(f"[type={word}]" for word in _words(member))
        inner = f"{path}.{words}.{_step(str(member['name']))}"
        yield _row(member, inner, is_key=False)
        yield from _member_rows(member, inner)


def _members(node: Mapping[str, JsonValue]) -> list[Json]:
    """Return the named members beneath a type, through lists and the values of maps."""
    match node["type"]:
        case "STRUCT":
            return objects_at(node, "fields")
        case "ARRAY":
            return _members(object_at(node, "items"))
        case "MAP":
            return _members(object_at(node, "value"))
        case _:
            return []


def _words(node: Mapping[str, JsonValue]) -> list[str]:
    name = str(node["type"])
    word = _TYPES[name][1]
    match name:
        case "ARRAY":
            return [word, *_words(object_at(node, "items"))]
        case "MAP":
            return [word, *_words(object_at(node, "value"))]
        case _:
            return [word]


def _row(node: Mapping[str, JsonValue], path: str, *, is_key: bool) -> Json:
    kind = required_text_at(node, "type")
    row: Json = {
        "fieldPath": path,
        "nullable": bool(node.get("nullable", True)),
        "type": {"type": {_CLASS_OF[kind]: _details(node) if kind in _NESTED else {}}},
        "nativeDataType": str(node.get("native_type") or spelt(node)),
        "recursive": False,
        "isPartOfKey": is_key,
    }
    if "description" in node:
        row["description"] = node["description"]
    if node.keys() <= _UNLABELLED:  # as most columns
        return row
    if tags := texts_at(node, "tags"):
        row["globalTags"] = {"tags": [{"tag": simple_urn("tag", tag)} for tag in tags]}
    if terms := texts_at(node, "glossary_terms"):
        row["glossaryTerms"] = wire_terms(terms)
    return row


def wire_terms(terms: Iterable[str]) -> Json:
    """Return the association of glossary terms."""
    return {
        "terms": [{"urn": simple_urn("glossaryTerm", term)} for term in terms],
        "auditStamp": {"time": 0, "actor": "urn:li:corpuser:lumos"},
    }


def _details(node: Mapping[str, JsonValue]) -> Json:
    match node["type"]:
        case "ARRAY":
            return {"nestedType": [_TYPES[str(object_at(node, "items")["type"])][1]]}
        case "MAP":
            value = object_at(node, "value")
            key = object_at(node, "key")
            return {
                "keyType": _TYPES[str(key["type"])][1],
                "valueType": _TYPES[str(value["type"])][1],
            }
        case "UNION":
            branches = objects_at(node, "branches")
            return {"nestedTypes": [_TYPES[str(branch["type"])][1] for branch in branches]}
        case _:
            return {}


def spelt(node: Mapping[str, JsonValue]) -> str:
    """Return the type as people read it, such as `DECIMAL(10,2)`."""
    name = required_text_at(node, "type")
    if name in _PLAIN_TYPES:
        if _PARAMETERS_OF[name].isdisjoint(node):  # as most columns
            return name
        given = [node.get(each) for each in _PARAMETERS_IN_ORDER[name]]
        while given and given[-1] is None:
            given.pop()
        inner = ",".join("*" if value is None else str(value) for value in given)
        return f"{name}({inner})" if inner else name
    known = {name: value for name, value in node.items() if name in FieldType.model_fields}
    return FieldType.model_validate(known).signature()


def come_back(fields: Sequence[JsonValue]) -> bool:
    """Return whether columns are so plain that they are certain to be read as they are written."""
    for field in fields:
        column = as_object(field, "field")
        keys = column.keys()
        plain = keys <= _PLAIN_KEYS and column["type"] in _PLAIN_TYPES
        if not plain or required_text_at(column, "name")[0] == "[":
            return False
        for key in () if keys <= _UNLABELLED else ("tags", "glossary_terms"):
            if any(len(label) > _SHORT for label in texts_at(column, key)):
                return False
    return True


_SHORT: Final = 30
_UNLABELLED: Final = frozenset({"name", "type", "nullable", "description"})
_PLAIN_KEYS: Final = _UNLABELLED | {"tags", "glossary_terms"}
_PLAIN_TYPES: Final = frozenset(_TYPES.keys() - _NESTED - {"ENUM"})
_PARAMETERS_IN_ORDER: Final[Mapping[str, tuple[str, ...]]] = {
    name: tuple(PARAMETERS.get(_TYPE_NAMES[name], ())) for name in _PLAIN_TYPES
}
_PARAMETERS_OF: Final = {name: frozenset(each) for name, each in _PARAMETERS_IN_ORDER.items()}
_CLASS_OF: Final[Mapping[str, str]] = {
    name: f"{_UNION_OF}{known}" for name, (known, _) in _TYPES.items()
}


def read_type(text: str, word: str, *, platform: str = "") -> Json:
    """Return the canonical type of a native type, by its spelling or else by DataHub's class."""
    plain = _unwrapped(text) if platform == "clickhouse" else text
    match = _SPELT.match(plain)
    name = match[1] if match else ""
    given = [each.strip() for each in (match[2] or "").split(",")] if match and match[2] else []
    if name in TypeName.__members__ and name not in {"ENUM", *_NESTED}:
        node: Json = {"type": name, **_parameters(name, given)}
        if spelt(node) == text:
            return node
    there = _BY_PLATFORM.get(platform, {}).get(name.lower())
    known = there or _NATIVE.get(name.lower()) or _CLASSES.get(word, "UNKNOWN")
    if known == "DECIMAL" and platform == "clickhouse" and name.lower() != "decimal":
        given = []  # Decimal64(4) has a scale alone
    return {"type": known, **_parameters(known, given), "native_type": text}


def _unwrapped(text: str) -> str:
    while wrapped := _WRAPPED.match(text):
        text = wrapped[1]
    return text


def _parameters(name: str, given: Sequence[str]) -> Json:
    names = _PARAMETERS.get(name, ())
    if names:
        pairs = zip(names, given, strict=False)
        return {key: int(value) for key, value in pairs if value.isascii() and value.isdigit()}
    if name in {"TIME", "TIMESTAMP", "TIMESTAMP_NTZ", "DURATION"} and given and given[0] in _UNITS:
        zone: Json = {"timezone": given[1]} if name == "TIMESTAMP" and given[1:] else {}
        return {"unit": given[0], **zone}
    return {}


def _taken_apart(row: Json, places: Mapping[tuple[str, ...], Json]) -> _Row:
    path = str(row["fieldPath"])
    if not path.startswith(VERSION):
        name = unescaped(path)
        nested = (_FLAT, *name.split("."))
        return _Row((), nested if nested[:-1] in places else (_FLAT, name), row)
    steps: list[str] = []
    words: list[str] = []
    latest: list[str] = []
    for bracket, name in _PATH_PARTS.findall(path[len(VERSION) :]):
        if name:
            steps.append(unescaped(name))
            latest, words = words, []
        elif bracket.startswith("[type="):
            words.append(bracket[6:-1])
    if not steps:
        return _Row((), (_FLAT, path), row)
    if len(steps) == 1 and latest[:1] == ["struct"]:
        latest = latest[1:]
    return _Row(tuple(latest), tuple(steps), row)


def _column_of(row: _Row, platform: str) -> Json:
    document = row.document
    union = object_at(object_at(document, "type"), "type")
    word = next(iter(union), "").removeprefix(_UNION_OF)
    native = str(document.get("nativeDataType") or "")
    nested = {"ArrayType": "array", "MapType": "map", "RecordType": "struct"}.get(word)
    words = row.types or ((nested,) if nested else ())
    column: Json = {"name": row.steps[-1], **_type_of(words, native, word, platform=platform)}
    column["nullable"] = bool(document.get("nullable", False))
    if document.get("description") is not None:
        column["description"] = document["description"]
    if tags := tag_names(document.get("globalTags")):
        column["tags"] = [*sorted(set(tags))]
    if terms := term_names(document.get("glossaryTerms")):
        column["glossary_terms"] = [*sorted(set(terms))]
    return column


def _type_of(words: Sequence[str], native: str, word: str, *, platform: str = "") -> Json:
    match words:
        case ["array", *inner]:
            return {"type": "ARRAY", "items": _inner(inner)}
        case ["map", *inner]:
            return {
                "type": "MAP",
                "key": {"type": "STRING", "nullable": True},
                "value": _inner(inner),
            }
        case ["struct", *_]:
            return {"type": "STRUCT"}
        case ["union", *_]:
            return {"type": "UNKNOWN", "native_type": native}
        case _:
            return read_type(native, word, platform=platform)


def _inner(words: Sequence[str]) -> Json:
    node = _type_of(words, "", "") if words else {"type": "UNKNOWN"}
    if words and words[0] not in {"array", "map", "struct", "union"}:
        node = {"type": _NATIVE.get(words[0], "UNKNOWN")}
    return {**{key: value for key, value in node.items() if key != "native_type"}, "nullable": True}


def _adopts(parent: Json, column: Json) -> bool:
    """Put a member into the struct that is nearest beneath a column, if there is one."""
    node = parent
    while node["type"] in {"ARRAY", "MAP"}:
        node = as_object(node["items" if node["type"] == "ARRAY" else "value"], "value")
    if node["type"] != "STRUCT":
        return False
    members = as_list(node.setdefault("fields", []), "fields")
    if all(as_object(member, "member")["name"] != column["name"] for member in members):
        members.append(column)
    return True


def tag_names(association: JsonValue) -> list[str]:
    """Return the tags that an association of DataHub names."""
    tags = association.get("tags") if isinstance(association, dict) else None
    return [simple_name(str(as_object(each, "each")["tag"])) for each in as_list(tags, "tags")]


def term_names(association: JsonValue) -> list[str]:
    """Return the glossary terms that an association of DataHub names."""
    terms = association.get("terms") if isinstance(association, dict) else None
    return [simple_name(str(as_object(each, "each")["urn"])) for each in as_list(terms, "terms")]


def _step(name: str) -> str:
    """Return a name as one step of a path: without what ends a step."""
    return escaped(name).replace(".", "%2E").replace("[", "%5B").replace("]", "%5D")
