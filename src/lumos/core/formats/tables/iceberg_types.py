"""The canonical type of every type in the schema of an Iceberg table."""

from __future__ import annotations

import re
from typing import Final

from pydantic import JsonValue

from lumos.core.errors import UnreadableItemError
from lumos.core.formats.names import unique_names
from lumos.core.formats.tables.parts import count_of, short_text, short_text_at, struct_members
from lumos.core.formats.type_parts import SchemaSize, TypeParts
from lumos.core.json_reading import Json, object_or_empty
from lumos.core.models import Field, FieldType, Schema, TimeUnit, TypeName

_MICROS, _NANOS = TimeUnit.MICROSECOND, TimeUnit.NANOSECOND
_PLAIN: Final[dict[str, TypeParts]] = {
    "unknown": {"type": TypeName.UNKNOWN},
    "boolean": {"type": TypeName.BOOLEAN},
    "int": {"type": TypeName.INT32},
    "long": {"type": TypeName.INT64},
    "float": {"type": TypeName.FLOAT},
    "double": {"type": TypeName.DOUBLE},
    "date": {"type": TypeName.DATE},
    "time": {"type": TypeName.TIME, "unit": _MICROS},
    "timestamp": {"type": TypeName.TIMESTAMP_NTZ, "unit": _MICROS},
    "timestamptz": {"type": TypeName.TIMESTAMP, "unit": _MICROS, "timezone": "UTC"},
    "timestamp_ns": {"type": TypeName.TIMESTAMP_NTZ, "unit": _NANOS},
    "timestamptz_ns": {"type": TypeName.TIMESTAMP, "unit": _NANOS, "timezone": "UTC"},
    "string": {"type": TypeName.STRING},
    "uuid": {"type": TypeName.UUID},
    "binary": {"type": TypeName.BINARY},
    "variant": {"type": TypeName.JSON},
}
_DECIMAL = re.compile(r"decimal\(\s*(\d{1,9})\s*,\s*(-?\d{1,9})\s*\)")
_FIXED = re.compile(r"fixed\[\s*(\d{1,18})\s*\]")
_GEOMETRY = re.compile(r"(?:geometry|geography)(?:\(.*\))?")


class IcebergSchema:
    """One walk over the schema of an Iceberg table."""

    def __init__(self, document: Json) -> None:
        """Read a parsed schema.

        Raises:
            UnreadableItemError: it is not the schema of a table, or without end.
        """
        self.warnings: list[str] = []
        self.names: dict[int, str] = {}
        """The dotted name of each field, at any depth, by its id."""
        self._size = SchemaSize()
        fields = self._fields(document, path="", depth=1)
        self.schema = Schema(fields=fields)

    def _fields(self, struct: Json, *, path: str, depth: int) -> tuple[Field, ...]:
        members, given = struct_members(struct, what="its metadata")
        names, renamed = unique_names(given, within=path)
        self.warnings.extend(renamed)
        return tuple(
            self._field(member, name, path=path, depth=depth)
            for member, name in zip(members, names, strict=True)
        )

    def _field(self, member: Json, name: str, *, path: str, depth: int) -> Field:
        where = f"{path}.{name}" if path else name
        properties: dict[str, JsonValue] = {}
        if (field_id := count_of(member.get("id"))) is not None:
            properties["field_id"] = field_id
            self.names[field_id] = where
        return Field(
            name=name,
            nullable=member.get("required") is not True,
            description=short_text_at(member, "doc"),
            default=_default_of(member),
            properties=properties,
            **self._parts(member.get("type"), path=where, depth=depth),
        )

    def _parts(self, native: object, *, path: str, depth: int) -> TypeParts:
        self._size.count(path, depth)
        if isinstance(native, str):
            return _plain_parts(native)
        node = object_or_empty(native)
        match node.get("type"):
            case "struct":
                fields = self._fields(node, path=path, depth=depth + 1)
                return {"type": TypeName.STRUCT, "native_type": "struct", "fields": fields}
            case "list":
                items = self._item(node, "element", path=path, depth=depth)
                return {"type": TypeName.ARRAY, "native_type": "list", "items": items}
            case "map":
                key = self._item(node, "key", path=path, depth=depth)
                value = self._item(node, "value", path=path, depth=depth)
                return {"type": TypeName.MAP, "native_type": "map", "key": key, "value": value}
        raise UnreadableItemError("its metadata is damaged: a column of the schema has no type")

    def _item(self, node: Json, name: str, *, path: str, depth: int) -> FieldType:
        where = f"{path}.{name}"
        if (field_id := count_of(node.get(f"{name}-id"))) is not None:
            self.names[field_id] = where
        nullable = name != "key" and node.get(f"{name}-required") is not True
        return FieldType(
            nullable=nullable, **self._parts(node.get(name), path=where, depth=depth + 1)
        )


def _plain_parts(native: str) -> TypeParts:
    if parts := _PLAIN.get(native):
        return {**parts, "native_type": native}
    if match := _DECIMAL.fullmatch(native):
        precision, scale = int(match[1]), int(match[2])
        return {
            "type": TypeName.DECIMAL,
            "native_type": native,
            "precision": precision,
            "scale": scale,
        }
    if match := _FIXED.fullmatch(native):
        return {"type": TypeName.BINARY, "native_type": native, "length": int(match[1])}
    if _GEOMETRY.fullmatch(native):
        return {"type": TypeName.GEOMETRY, "native_type": native}
    return {"type": TypeName.UNKNOWN, "native_type": native}


def _default_of(member: Json) -> str | None:
    """Return the default that writers use; it is part of the schema and no value of a row."""
    value = member.get("write-default")
    if value is None or isinstance(value, (dict, list)):
        return None
    return str(value).lower() if isinstance(value, bool) else short_text(str(value))
