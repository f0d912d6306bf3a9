"""The canonical type of every Arrow type.

An encoding is no type: a dictionary, a run-end encoded or a view column has the type of its
values, so the same table written by another program compares as equal. `native_type` keeps what
the source said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from lumos.core.formats.names import unique_names
from lumos.core.formats.type_parts import SchemaSize, TypeParts
from lumos.core.models import Field, FieldType, Schema, TimeUnit, TypeName

if TYPE_CHECKING:
    import pyarrow as pa

_Arrow = Any
"""A type or field of Arrow, whose attributes depend on what it is."""

_DESCRIPTION_KEYS = (b"description", b"comment", b"doc")
_FIELD_ID = b"PARQUET:field_id"
_LONGEST_ID = 10
_EXTENSION_NAME = b"ARROW:extension:name"

_PLAIN: dict[str, TypeName] = {
    "NA": TypeName.UNKNOWN,
    "BOOL": TypeName.BOOLEAN,
    "INT8": TypeName.INT8,
    "INT16": TypeName.INT16,
    "INT32": TypeName.INT32,
    "INT64": TypeName.INT64,
    "UINT8": TypeName.UINT8,
    "UINT16": TypeName.UINT16,
    "UINT32": TypeName.UINT32,
    "UINT64": TypeName.UINT64,
    "HALF_FLOAT": TypeName.FLOAT,
    "FLOAT": TypeName.FLOAT,
    "DOUBLE": TypeName.DOUBLE,
    "DECIMAL32": TypeName.DECIMAL,
    "DECIMAL64": TypeName.DECIMAL,
    "DECIMAL128": TypeName.DECIMAL,
    "DECIMAL256": TypeName.DECIMAL,
    "STRING": TypeName.STRING,
    "LARGE_STRING": TypeName.STRING,
    "STRING_VIEW": TypeName.STRING,
    "BINARY": TypeName.BINARY,
    "LARGE_BINARY": TypeName.BINARY,
    "BINARY_VIEW": TypeName.BINARY,
    "FIXED_SIZE_BINARY": TypeName.BINARY,
    "DATE32": TypeName.DATE,
    "DATE64": TypeName.DATE,
    "TIME32": TypeName.TIME,
    "TIME64": TypeName.TIME,
    "TIMESTAMP": TypeName.TIMESTAMP,
    "DURATION": TypeName.DURATION,
    "INTERVAL_MONTHS": TypeName.DURATION,
    "INTERVAL_DAY_TIME": TypeName.DURATION,
    "INTERVAL_MONTH_DAY_NANO": TypeName.DURATION,
}
_LISTS = ("LIST", "LARGE_LIST", "LIST_VIEW", "LARGE_LIST_VIEW", "FIXED_SIZE_LIST")
_ENCODINGS = ("DICTIONARY", "RUN_END_ENCODED")
_UNIONS = ("SPARSE_UNION", "DENSE_UNION")
_EXTENSIONS: dict[str, TypeName] = {
    "arrow.uuid": TypeName.UUID,
    "arrow.json": TypeName.JSON,
    "arrow.bool8": TypeName.BOOLEAN,
    "arrow.parquet.variant": TypeName.JSON,
    "parquet.variant": TypeName.JSON,
}
_GEOMETRY_PREFIX = "geoarrow."


def canonical_schema(schema: pa.Schema) -> tuple[Schema, tuple[str, ...]]:
    """Return the canonical schema of an Arrow schema, and what had to be adapted.

    Raises:
        UnreadableItemError: the schema is nested too deeply or has too many fields.
    """
    mapping = _Mapping()
    fields = mapping.fields([schema.field(i) for i in range(len(schema))], path="", depth=1)
    return Schema(fields=fields), tuple(mapping.warnings)


def canonical_type(arrow_type: pa.DataType, *, nullable: bool = True) -> FieldType:
    """Return the canonical type of one Arrow type."""
    return FieldType(nullable=nullable, **_Mapping().parts(arrow_type, path="", depth=1))


class _Mapping:
    """One walk over a schema: collects warnings and counts what it has seen."""

    def __init__(self) -> None:
        self.warnings: list[str] = []
        self._size = SchemaSize()
        self._nested: dict[str, Callable[..., TypeParts]] = {
            **dict.fromkeys(_LISTS, self._list_parts),
            **dict.fromkeys(_UNIONS, self._union_parts),
            **dict.fromkeys(_ENCODINGS, self._encoded_parts),
            "STRUCT": self._struct_parts,
            "MAP": self._map_parts,
            "EXTENSION": self._extension_parts,
        }

    def fields(self, members: Sequence[_Arrow], *, path: str, depth: int) -> tuple[Field, ...]:
        names, renamed = unique_names([member.name for member in members], within=path)
        self.warnings.extend(renamed)
        return tuple(
            self._field(member, name, path=path, depth=depth)
            for member, name in zip(members, names, strict=True)
        )

    def parts(self, arrow_type: _Arrow, *, path: str, depth: int) -> TypeParts:
        self._size.count(path, depth)
        kind = _kinds().get(arrow_type.id, "")
        if kind in _PLAIN:
            return _plain_parts(arrow_type, kind)
        nested = self._nested.get(kind)
        if nested is None:  # a type that Arrow has learned since; its name is all there is to say
            return {"type": TypeName.UNKNOWN, "native_type": str(arrow_type)}
        return nested(arrow_type, kind, path=path, depth=depth + 1)

    def _struct_parts(self, arrow_type: _Arrow, kind: str, *, path: str, depth: int) -> TypeParts:
        members = [arrow_type.field(i) for i in range(arrow_type.num_fields)]
        fields = self.fields(members, path=path, depth=depth)
        return {"type": TypeName.STRUCT, "native_type": kind.lower(), "fields": fields}

    def _map_parts(self, arrow_type: _Arrow, kind: str, *, path: str, depth: int) -> TypeParts:
        key = self._item(arrow_type.key_field, path=f"{path}{{key}}", depth=depth)
        value = self._item(arrow_type.item_field, path=f"{path}{{value}}", depth=depth)
        return {"type": TypeName.MAP, "native_type": kind.lower(), "key": key, "value": value}

    def _encoded_parts(self, arrow_type: _Arrow, kind: str, *, path: str, depth: int) -> TypeParts:
        parts = self.parts(arrow_type.value_type, path=path, depth=depth)
        return {**parts, "native_type": str(arrow_type)}

    def _list_parts(self, arrow_type: _Arrow, kind: str, *, path: str, depth: int) -> TypeParts:
        size = f"[{arrow_type.list_size}]" if kind == "FIXED_SIZE_LIST" else ""
        items = self._item(arrow_type.value_field, path=f"{path}[]", depth=depth)
        return {"type": TypeName.ARRAY, "native_type": kind.lower() + size, "items": items}

    def _union_parts(self, arrow_type: _Arrow, kind: str, *, path: str, depth: int) -> TypeParts:
        members = [arrow_type.field(i) for i in range(arrow_type.num_fields)]
        if not members:
            return {"type": TypeName.UNKNOWN, "native_type": str(arrow_type)}
        branches = tuple(
            self._item(member, path=f"{path}<{index}>", depth=depth)
            for index, member in enumerate(members)
        )
        return {"type": TypeName.UNION, "native_type": kind.lower(), "branches": branches}

    def _extension_parts(
        self, arrow_type: _Arrow, kind: str, *, path: str, depth: int
    ) -> TypeParts:
        parts = self.parts(arrow_type.storage_type, path=path, depth=depth)
        return _extended({**parts, "native_type": str(arrow_type)}, arrow_type.extension_name)

    def _field(self, member: _Arrow, name: str, *, path: str, depth: int) -> Field:
        where = f"{path}.{name}" if path else name
        return Field(
            name=name,
            nullable=member.nullable,
            description=_description(member),
            properties=_properties(member, name),
            **self._member_parts(member, path=where, depth=depth),
        )

    def _item(self, member: _Arrow, *, path: str, depth: int) -> FieldType:
        return FieldType(
            nullable=member.nullable,
            description=_description(member),
            **self._member_parts(member, path=path, depth=depth),
        )

    def _member_parts(self, member: _Arrow, *, path: str, depth: int) -> TypeParts:
        parts = self.parts(member.type, path=path, depth=depth)
        unregistered = (member.metadata or {}).get(_EXTENSION_NAME)
        if unregistered is None:
            return parts
        return _extended(parts, unregistered.decode("utf-8", "replace"))


@cache
def _kinds() -> dict[int, str]:
    """The name of each Arrow type id, of the Arrow that is installed."""
    import pyarrow as pa

    prefix = "Type_"
    kinds = {
        int(getattr(pa.lib, name)): name.removeprefix(prefix)
        for name in dir(pa.lib)
        if name.startswith(prefix)
    }
    kinds.setdefault(pa.uuid().id, "EXTENSION")
    return kinds


def _plain_parts(arrow_type: _Arrow, kind: str) -> TypeParts:
    parts: TypeParts = {"type": _PLAIN[kind], "native_type": str(arrow_type)}
    match parts["type"]:
        case TypeName.DECIMAL:
            parts |= {"precision": arrow_type.precision, "scale": arrow_type.scale}
        case TypeName.BINARY if kind == "FIXED_SIZE_BINARY":
            parts["length"] = arrow_type.byte_width
        case TypeName.TIMESTAMP:
            parts["unit"] = TimeUnit(arrow_type.unit)
            if arrow_type.tz is None:
                parts["type"] = TypeName.TIMESTAMP_NTZ
            else:
                parts["timezone"] = arrow_type.tz
        case TypeName.TIME | TypeName.DURATION if not kind.startswith("INTERVAL"):
            parts["unit"] = TimeUnit(arrow_type.unit)
    return parts


def _extended(parts: TypeParts, extension: str) -> TypeParts:
    """Let a known extension decide the type; an unknown one keeps the type of its storage."""
    known = _EXTENSIONS.get(extension)
    if extension.startswith(_GEOMETRY_PREFIX):
        known = TypeName.GEOMETRY
    native = parts["native_type"]
    if extension not in native:
        native = f"extension<{extension}>"
    if known is None:
        return {**parts, "native_type": native}
    return {"type": known, "native_type": native}


def _properties(member: _Arrow, name: str) -> dict[str, JsonValue]:
    properties: dict[str, JsonValue] = {} if name == member.name else {"source_name": member.name}
    field_id = (member.metadata or {}).get(_FIELD_ID, b"")
    if field_id.isdigit() and len(field_id) <= _LONGEST_ID:
        properties["field_id"] = int(field_id)
    return properties


def _description(member: _Arrow) -> str | None:
    metadata = member.metadata or {}
    texts = (metadata.get(key, b"").decode("utf-8", "replace") for key in _DESCRIPTION_KEYS)
    return next((text for text in texts if text.strip()), None)
