"""The canonical type of every Avro type."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from pydantic import JsonValue

from lumos.core.errors import UnreadableItemError
from lumos.core.formats.names import unique_names
from lumos.core.formats.type_parts import SchemaSize, TypeParts
from lumos.core.models import Field, FieldType, Schema, TimeUnit, TypeName
from lumos.core.models.base import LARGEST_INTEGER

_PRIMITIVES: Final[dict[str, TypeName]] = {
    "null": TypeName.UNKNOWN,
    "boolean": TypeName.BOOLEAN,
    "int": TypeName.INT32,
    "long": TypeName.INT64,
    "float": TypeName.FLOAT,
    "double": TypeName.DOUBLE,
    "bytes": TypeName.BINARY,
    "string": TypeName.STRING,
}
_MILLIS, _MICROS, _NANOS = TimeUnit.MILLISECOND, TimeUnit.MICROSECOND, TimeUnit.NANOSECOND
_UTC = "UTC"
_LOGICAL: Final[dict[tuple[str, str], TypeParts]] = {
    ("int", "date"): {"type": TypeName.DATE},
    ("int", "time-millis"): {"type": TypeName.TIME, "unit": _MILLIS},
    ("long", "time-micros"): {"type": TypeName.TIME, "unit": _MICROS},
    ("long", "timestamp-millis"): {"type": TypeName.TIMESTAMP, "unit": _MILLIS, "timezone": _UTC},
    ("long", "timestamp-micros"): {"type": TypeName.TIMESTAMP, "unit": _MICROS, "timezone": _UTC},
    ("long", "timestamp-nanos"): {"type": TypeName.TIMESTAMP, "unit": _NANOS, "timezone": _UTC},
    ("long", "local-timestamp-millis"): {"type": TypeName.TIMESTAMP_NTZ, "unit": _MILLIS},
    ("long", "local-timestamp-micros"): {"type": TypeName.TIMESTAMP_NTZ, "unit": _MICROS},
    ("long", "local-timestamp-nanos"): {"type": TypeName.TIMESTAMP_NTZ, "unit": _NANOS},
    ("string", "uuid"): {"type": TypeName.UUID},
    ("fixed", "uuid"): {"type": TypeName.UUID},
    ("fixed", "duration"): {"type": TypeName.DURATION},
    ("bytes", "big-decimal"): {"type": TypeName.DECIMAL},
}
_LONGEST_DEFAULT: Final = 10_000
_SIZES: Final = {"uuid": 16, "duration": 12}
"""How long a fixed type must be for its logical type to hold."""


def canonical_avro_schema(document: object) -> tuple[Schema, str | None, tuple[str, ...]]:
    """Return the canonical schema of a parsed Avro schema, its description and warnings.

    A file whose records are no Avro records has one column, named `value`.

    Raises:
        UnreadableItemError: the schema is not valid Avro, nested too deeply or too large.
    """
    mapping = _Mapping()
    if isinstance(document, dict) and document.get("type") in ("record", "error"):
        parts = mapping.parts(document, path="", namespace="", depth=0)
        schema = Schema(fields=parts.get("fields", ()))
        return schema, _doc(document), tuple(mapping.warnings)
    kind, nullable = mapping.type_of(document, path="value", namespace="", depth=1)
    schema = Schema(fields=(Field(name="value", nullable=nullable, **kind),))
    return schema, None, tuple(mapping.warnings)


class _Mapping:
    """One walk over a schema: resolves names, collects warnings, counts what it has seen."""

    def __init__(self) -> None:
        self.warnings: list[str] = []
        self._size = SchemaSize()
        self._named: dict[str, tuple[Mapping[str, object], str]] = {}
        self._open: list[str] = []

    def type_of(
        self, node: object, *, path: str, namespace: str, depth: int
    ) -> tuple[TypeParts, bool]:
        """Return the parts of a type and whether it may be null."""
        if not isinstance(node, list):
            parts = self.parts(node, path=path, namespace=namespace, depth=depth)
            return parts, parts["native_type"] == "null"
        branches = [branch for branch in node if branch not in ("null", {"type": "null"})]
        nullable = len(branches) < len(node)
        if not branches:  # a union of nothing has no value at all, not even null
            return {"type": TypeName.UNKNOWN, "native_type": "null" if node else "[]"}, nullable
        if len(branches) == 1:
            parts = self.parts(branches[0], path=path, namespace=namespace, depth=depth)
            return parts, nullable
        self._size.count(path, depth)
        members = tuple(
            self._item(branch, path=f"{path}<{index}>", namespace=namespace, depth=depth + 1)
            for index, branch in enumerate(branches)
        )
        return {"type": TypeName.UNION, "native_type": "union", "branches": members}, nullable

    def parts(self, node: object, *, path: str, namespace: str, depth: int) -> TypeParts:
        self._size.count(path, depth)
        if isinstance(node, str):
            return self._referenced(node, path=path, namespace=namespace, depth=depth)
        if not isinstance(node, dict):
            raise _invalid("a type is neither a name nor an object", path)
        kind = node.get("type")
        if isinstance(kind, dict):
            return self.parts(kind, path=path, namespace=namespace, depth=depth + 1)
        if not isinstance(kind, str):
            raise _invalid("a type has no name", path)
        match kind:
            case "record" | "error" | "enum" | "fixed":
                return self._named_parts(node, kind, path=path, namespace=namespace, depth=depth)
            case "array":
                items = self._item(
                    node.get("items"), path=f"{path}[]", namespace=namespace, depth=depth + 1
                )
                return {"type": TypeName.ARRAY, "native_type": "array", "items": items}
            case "map":
                return self._map_parts(node, path=path, namespace=namespace, depth=depth)
            case _ if kind in _PRIMITIVES:
                return _logical_parts(node, kind)
            case _:
                return self._referenced(kind, path=path, namespace=namespace, depth=depth)

    def _map_parts(
        self, node: Mapping[str, object], *, path: str, namespace: str, depth: int
    ) -> TypeParts:
        key = FieldType(type=TypeName.STRING, nullable=False, native_type="string")
        value = self._item(
            node.get("values"), path=f"{path}{{value}}", namespace=namespace, depth=depth + 1
        )
        return {"type": TypeName.MAP, "native_type": "map", "key": key, "value": value}

    def _referenced(self, name: str, *, path: str, namespace: str, depth: int) -> TypeParts:
        if name in _PRIMITIVES:
            return {"type": _PRIMITIVES[name], "native_type": name}
        full = _full_name(name, namespace)
        known = self._named.get(full) or self._named.get(name)
        if known is None:
            raise _invalid("it uses a type that it does not define", path)
        definition, inside = known
        kind = str(definition["type"])
        return self._definition_parts(
            definition, kind, full=full, path=path, inside=inside, depth=depth
        )

    def _named_parts(
        self, node: Mapping[str, object], kind: str, *, path: str, namespace: str, depth: int
    ) -> TypeParts:
        name = node.get("name")
        if not isinstance(name, str):
            raise _invalid(f"{kind} has no name", path)
        given = node.get("namespace")
        inside = given if isinstance(given, str) else namespace
        full = _full_name(name, inside) if name else ""  # as polars writes, against the rules
        if full:
            inside = full.rpartition(".")[0]
            self._named[full] = (node, inside)
        return self._definition_parts(node, kind, full=full, path=path, inside=inside, depth=depth)

    def _definition_parts(
        self,
        node: Mapping[str, object],
        kind: str,
        *,
        full: str,
        path: str,
        inside: str,
        depth: int,
    ) -> TypeParts:
        if kind == "enum":
            return _enum_parts(node, full or kind, path)
        if kind == "fixed":
            return _fixed_parts(node, full or kind, path)
        if full and full in self._open:
            self.warnings.append(
                f"{path} holds its own type {full} again; it is not followed further"
            )
            return {"type": TypeName.UNKNOWN, "native_type": full}
        self._open.append(full)
        fields = self._fields(node.get("fields"), path=path, namespace=inside, depth=depth)
        self._open.pop()
        return {"type": TypeName.STRUCT, "native_type": full or kind, "fields": fields}

    def _fields(
        self, members: object, *, path: str, namespace: str, depth: int
    ) -> tuple[Field, ...]:
        if not isinstance(members, list):
            raise _invalid("a record has no list of fields", path)
        if not all(isinstance(member, dict) for member in members):
            raise _invalid("a field is not an object", path)
        names = [member.get("name") for member in members]
        if not all(isinstance(name, str) for name in names):
            raise _invalid("a field has no name", path)
        unique, renamed = unique_names(names, within=path)
        self.warnings.extend(renamed)
        return tuple(
            self._field(member, name, path=path, namespace=namespace, depth=depth + 1)
            for member, name in zip(members, unique, strict=True)
        )

    def _field(
        self, member: Mapping[str, object], name: str, *, path: str, namespace: str, depth: int
    ) -> Field:
        where = f"{path}.{name}" if path else name
        parts, nullable = self.type_of(
            member.get("type"), path=where, namespace=namespace, depth=depth
        )
        properties: dict[str, JsonValue] = {}
        if name != member["name"]:
            properties["source_name"] = str(member["name"])
        field_id = member.get("field-id")  # as Iceberg writes
        if isinstance(field_id, int) and 0 <= field_id <= LARGEST_INTEGER:
            properties["field_id"] = int(field_id)
        if (symbol := self._enum_default(parts)) is not None:
            properties["enum_default"] = symbol
        if aliases := _aliases(member):
            properties["aliases"] = aliases
        return Field(
            name=name,
            nullable=nullable,
            description=_doc(member),
            default=_default(member),
            properties=properties,
            **parts,
        )

    def _enum_default(self, parts: TypeParts) -> str | None:
        """Return the symbol that a reader takes for those that its own enum does not have."""
        if parts["type"] is not TypeName.ENUM:
            return None
        definition, _ = self._named.get(str(parts["native_type"]), ({}, ""))
        symbol = definition.get("default")
        return symbol if isinstance(symbol, str) and symbol in parts["symbols"] else None

    def _item(self, node: object, *, path: str, namespace: str, depth: int) -> FieldType:
        parts, nullable = self.type_of(node, path=path, namespace=namespace, depth=depth)
        return FieldType(nullable=nullable, **parts)


def _logical_parts(node: Mapping[str, object], kind: str) -> TypeParts:
    """The parts of a type with its logical type; one that does not fit is ignored, as Avro says."""
    plain: TypeParts = {"type": _PRIMITIVES.get(kind, TypeName.BINARY), "native_type": kind}
    logical = node.get("logicalType")
    if not isinstance(logical, str):
        return plain
    native = f"{kind} ({logical})"
    if logical == "decimal" and kind in ("bytes", "fixed"):
        precision, scale = node.get("precision"), node.get("scale", 0)
        if isinstance(precision, int) and isinstance(scale, int) and precision >= max(scale, 1):
            return {
                "type": TypeName.DECIMAL,
                "native_type": native,
                "precision": precision,
                "scale": scale,
            }
        return plain
    known = _LOGICAL.get((kind, logical))
    if kind == "fixed" and node.get("size") != _SIZES.get(logical):
        return plain
    if known is None:
        return {**plain, "native_type": native}
    if logical.startswith("timestamp") and node.get("adjust-to-utc") is False:  # as Iceberg writes
        return {"type": TypeName.TIMESTAMP_NTZ, "unit": known["unit"], "native_type": native}
    return {**known, "native_type": native}


def _enum_parts(node: Mapping[str, object], full: str, path: str) -> TypeParts:
    symbols = node.get("symbols")
    if not isinstance(symbols, list) or not all(isinstance(symbol, str) for symbol in symbols):
        raise _invalid("an enum has no symbols", path)
    if not symbols:
        return {"type": TypeName.STRING, "native_type": full}
    return {"type": TypeName.ENUM, "native_type": full, "symbols": tuple(symbols)}


def _fixed_parts(node: Mapping[str, object], full: str, path: str) -> TypeParts:
    length = node.get("size")
    if not isinstance(length, int) or isinstance(length, bool) or length < 0:
        raise _invalid("a fixed type has no size", path)
    parts = _logical_parts(node, "fixed")
    if parts["type"] is not TypeName.BINARY:
        return {**parts, "native_type": f"{full} {parts['native_type']}"}
    return {"type": TypeName.BINARY, "native_type": full, "length": length}


def _full_name(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _default(member: Mapping[str, object]) -> str | None:
    """Return the value that readers take where none was written, as the schema spells it."""
    if "default" not in member:
        return None
    try:
        text = json.dumps(member["default"], ensure_ascii=False, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return "…"  # that there is one decides whether old data can be read
    # JSON can hold halves of characters, and text cannot.
    return text[:_LONGEST_DEFAULT].encode("utf-8", "replace").decode()


def _aliases(member: Mapping[str, object]) -> list[JsonValue]:
    """Return the earlier names by which a reader of this schema finds the field in old data."""
    names = member.get("aliases")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def _doc(node: Mapping[str, object]) -> str | None:
    text = node.get("doc")
    return text if isinstance(text, str) and text.strip() else None


def _invalid(what: str, path: str) -> UnreadableItemError:
    place = f", in {path}" if path else ""
    return UnreadableItemError(f"its schema is not valid Avro: {what}{place}")
