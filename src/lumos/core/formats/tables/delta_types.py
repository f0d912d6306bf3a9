"""The canonical type of every type in the schema of a Delta table."""

from __future__ import annotations

import re
from typing import Final

from lumos.core.errors import UnreadableItemError
from lumos.core.formats.names import unique_names
from lumos.core.formats.tables.parts import count_of, short_text, struct_members
from lumos.core.formats.type_parts import SchemaSize, TypeParts
from lumos.core.json_reading import Json, object_at, object_or_empty
from lumos.core.models import Field, FieldType, Schema, TimeUnit, TypeName

_MICROS = TimeUnit.MICROSECOND
_PLAIN: Final[dict[str, TypeParts]] = {
    "boolean": {"type": TypeName.BOOLEAN},
    "byte": {"type": TypeName.INT8},
    "short": {"type": TypeName.INT16},
    "integer": {"type": TypeName.INT32},
    "long": {"type": TypeName.INT64},
    "float": {"type": TypeName.FLOAT},
    "double": {"type": TypeName.DOUBLE},
    "decimal": {"type": TypeName.DECIMAL, "precision": 10, "scale": 0},
    "string": {"type": TypeName.STRING},
    "binary": {"type": TypeName.BINARY},
    "date": {"type": TypeName.DATE},
    "timestamp": {"type": TypeName.TIMESTAMP, "unit": _MICROS, "timezone": "UTC"},
    "timestamp_ntz": {"type": TypeName.TIMESTAMP_NTZ, "unit": _MICROS},
    "variant": {"type": TypeName.JSON},
}
_WITH_NUMBERS = re.compile(r"(decimal|char|varchar|time)\(\s*(\d{1,9})\s*(?:,\s*(-?\d{1,9})\s*)?\)")
_LOGICAL_TEXT = "__CHAR_VARCHAR_TYPE_STRING"
_FIELD_ID = "delta.columnMapping.id"
_PHYSICAL_NAME = "delta.columnMapping.physicalName"
_KEPT: Final = {
    "delta.generationExpression": "generation_expression",
    "delta.invariants": "invariants",
    "delta.identity.start": "identity_start",
    "delta.identity.step": "identity_step",
}
"""What is said of a column beside its type; the high-water mark of an identity is data."""


class DeltaSchema:
    """One walk over the schema of a Delta table."""

    def __init__(self, document: Json) -> None:
        """Read a parsed schema.

        Raises:
            UnreadableItemError: it is not the schema of a table, or without end.
        """
        self.warnings: list[str] = []
        self.logical_names: dict[str, str] = {}
        """The name of each top-level column by the name that it has in the data files."""
        self._size = SchemaSize()
        if document.get("type") != "struct":
            raise UnreadableItemError("its log is damaged: the schema is no struct")
        self.schema = Schema(fields=self._fields(document, path="", depth=1))

    def _fields(self, struct: Json, *, path: str, depth: int) -> tuple[Field, ...]:
        members, given = struct_members(struct, what="its log")
        names, renamed = unique_names(given, within=path)
        self.warnings.extend(renamed)
        return tuple(
            self._field(member, name, path=path, depth=depth)
            for member, name in zip(members, names, strict=True)
        )

    def _field(self, member: Json, name: str, *, path: str, depth: int) -> Field:
        metadata = object_at(member, "metadata")
        if not path and (physical := short_text(metadata.get(_PHYSICAL_NAME))):
            self.logical_names[physical] = name
        where = f"{path}.{name}" if path else name
        native = member.get("type")
        if native == "string" and (text := short_text(metadata.get(_LOGICAL_TEXT))):
            native = text
        return Field(
            name=name,
            nullable=member.get("nullable") is not False,
            description=short_text(metadata.get("comment")),
            default=short_text(metadata.get("CURRENT_DEFAULT")),
            properties=_properties_of(metadata),
            **self._parts(native, path=where, depth=depth),
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
            case "array":
                items = self._item(
                    node, "elementType", nullable="containsNull", path=path, depth=depth
                )
                return {"type": TypeName.ARRAY, "native_type": "array", "items": items}
            case "map":
                key = self._item(node, "keyType", nullable="", path=path, depth=depth)
                value = self._item(
                    node, "valueType", nullable="valueContainsNull", path=path, depth=depth
                )
                return {"type": TypeName.MAP, "native_type": "map", "key": key, "value": value}
            case "udt" if "sqlType" in node:
                return self._parts(node["sqlType"], path=path, depth=depth + 1)
        raise UnreadableItemError("its log is damaged: a column of the schema has no type")

    def _item(self, node: Json, name: str, *, nullable: str, path: str, depth: int) -> FieldType:
        parts = self._parts(node.get(name), path=f"{path}[]", depth=depth + 1)
        return FieldType(nullable=bool(nullable) and node.get(nullable) is not False, **parts)


def _plain_parts(native: str) -> TypeParts:
    if parts := _PLAIN.get(native.partition(" collate ")[0]):
        return {**parts, "native_type": native}
    if match := _WITH_NUMBERS.fullmatch(native):
        kind, first, second = match[1], int(match[2]), int(match[3] or 0)
        if kind == "decimal":
            parts = {"type": TypeName.DECIMAL, "precision": first, "scale": second}
        elif kind == "time":
            parts = {"type": TypeName.TIME, "unit": _MICROS}
        else:
            parts = {"type": TypeName.STRING, "length": first}
        return {**parts, "native_type": native}
    if native.startswith(("geometry", "geography")):
        return {"type": TypeName.GEOMETRY, "native_type": native}
    if native.startswith("interval"):
        return {"type": TypeName.DURATION, "native_type": native}
    return {"type": TypeName.UNKNOWN, "native_type": native}


def _properties_of(metadata: Json) -> dict[str, str | int]:
    properties: dict[str, str | int] = {}
    if (field_id := count_of(metadata.get(_FIELD_ID))) is not None:
        properties["field_id"] = field_id
    for name, shown in _KEPT.items():
        value = metadata.get(name)
        if isinstance(value, (str, int)) and not isinstance(value, bool):
            properties[shown] = value
    return properties
