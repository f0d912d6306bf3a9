"""The canonical type of every ORC type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from pydantic import JsonValue

from lumos.core.errors import UnreadableItemError
from lumos.core.formats.names import unique_names
from lumos.core.formats.protobuf_walk import DamagedMessageError, packed, parts_of
from lumos.core.formats.type_parts import SchemaSize, TypeParts
from lumos.core.models import Field, FieldType, Schema, TimeUnit, TypeName

_SPARK_TYPE: Final = "spark.sql.catalyst.type"
_ICEBERG_ID: Final = "iceberg.id"
_DESCRIPTION_KEYS: Final = ("description", "comment", "doc")
_NANOS: Final = TimeUnit.NANOSECOND


class _Kind(IntEnum):
    """The types of ORC that have parts."""

    LIST = 10
    MAP = 11
    STRUCT = 12
    UNION = 13
    DECIMAL = 14
    VARCHAR = 16
    CHAR = 17


_PLAIN: Final[dict[int, TypeParts]] = {
    0: {"type": TypeName.BOOLEAN, "native_type": "boolean"},
    1: {"type": TypeName.INT8, "native_type": "tinyint"},
    2: {"type": TypeName.INT16, "native_type": "smallint"},
    3: {"type": TypeName.INT32, "native_type": "int"},
    4: {"type": TypeName.INT64, "native_type": "bigint"},
    5: {"type": TypeName.FLOAT, "native_type": "float"},
    6: {"type": TypeName.DOUBLE, "native_type": "double"},
    7: {"type": TypeName.STRING, "native_type": "string"},
    8: {"type": TypeName.BINARY, "native_type": "binary"},
    9: {"type": TypeName.TIMESTAMP_NTZ, "unit": _NANOS, "native_type": "timestamp"},
    15: {"type": TypeName.DATE, "native_type": "date"},
    18: {
        "type": TypeName.TIMESTAMP,
        "unit": _NANOS,
        "timezone": "UTC",
        "native_type": "timestamp with local time zone",
    },
    19: {"type": TypeName.GEOMETRY, "native_type": "geometry"},
    20: {"type": TypeName.GEOMETRY, "native_type": "geography"},
}
_SPARK_TYPES: Final[dict[str, TypeParts]] = {
    "timestamp": {"type": TypeName.TIMESTAMP, "unit": _NANOS, "timezone": "UTC"},
    "timestamp_ntz": {"type": TypeName.TIMESTAMP_NTZ, "unit": _NANOS},
}
"""What Spark means by an ORC type that it uses for several Spark types."""
_ICEBERG_TYPES: Final[dict[tuple[str, str], TypeParts]] = {
    ("iceberg.long-type", "TIME"): {"type": TypeName.TIME, "unit": TimeUnit.MICROSECOND},
    ("iceberg.binary-type", "UUID"): {"type": TypeName.UUID},
    ("iceberg.binary-type", "FIXED"): {"type": TypeName.BINARY},
}


@dataclass(slots=True)
class _Type:
    """One entry of the list of types: a node of the tree, with its children by their places."""

    kind: int = 0
    children: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    length: int | None = None
    precision: int | None = None
    scale: int = 0
    attributes: dict[str, str] = field(default_factory=dict)


def canonical_orc_schema(
    types: Sequence[bytes],
) -> tuple[Schema, tuple[str, ...], tuple[tuple[int, bool], ...]]:
    """Return the canonical schema of the types in a footer, warnings, and where its leaves are.

    Of each leaf, the place in the list of types is given, and whether it is outside of all lists,
    maps and unions. A file whose rows are no structs has one column, named `value`.

    Raises:
        UnreadableItemError: the types are damaged, nested too deeply or too many.
    """
    try:
        mapping = _Mapping([_parsed(content) for content in types])
    except (DamagedMessageError, UnicodeDecodeError):
        raise _damaged("a type in it cannot be read") from None
    fields = mapping.root_fields()
    return Schema(fields=fields), tuple(mapping.warnings), tuple(mapping.leaves)


def _parsed(content: bytes) -> _Type:
    parsed = _Type()
    for number, value in parts_of(content):
        match number, value:
            case 1, int():
                parsed.kind = value
            case 2, _:
                parsed.children.extend(packed(value))
            case 3, bytes():
                parsed.names.append(value.decode())
            case 4, int():
                parsed.length = value
            case 5, int():
                parsed.precision = value
            case 6, int():
                parsed.scale = value
            case 7, bytes():
                pair = dict(parts_of(value))
                parsed.attributes[_text(pair.get(1))] = _text(pair.get(2))
    return parsed


def _text(value: int | bytes | None) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""


class _Mapping:
    """One walk over the types of a file."""

    def __init__(self, types: Sequence[_Type]) -> None:
        self.warnings: list[str] = []
        self.leaves: list[tuple[int, bool]] = []
        self._types = types
        self._size = SchemaSize()

    def root_fields(self) -> tuple[Field, ...]:
        if not self._types:
            raise _damaged("it holds no types")
        if self._types[0].kind == _Kind.STRUCT:
            return self._fields(0, path="", depth=0, single=True)
        parts, nullable = self._parts(0, path="value", depth=1, single=True)
        return (Field(name="value", nullable=nullable, **parts),)

    def _fields(self, place: int, *, path: str, depth: int, single: bool) -> tuple[Field, ...]:
        struct = self._types[place]
        if len(struct.names) != len(struct.children):
            raise _damaged("a struct has more names than members, or fewer")
        names, renamed = unique_names(struct.names, within=path)
        self.warnings.extend(renamed)
        return tuple(
            self._field(place, child, name=name, path=path, depth=depth + 1, single=single)
            for child, name in zip(range(len(names)), names, strict=True)
        )

    def _field(
        self, parent: int, position: int, *, name: str, path: str, depth: int, single: bool
    ) -> Field:
        where = f"{path}.{name}" if path else name
        child = self._child(parent, position)
        parts, nullable = self._parts(child, path=where, depth=depth, single=single)
        given = self._types[parent].names[position]
        attributes = self._types[child].attributes
        properties: dict[str, JsonValue] = {} if name == given else {"source_name": given}
        if attributes.get(_ICEBERG_ID, "").isdecimal():
            properties["field_id"] = int(attributes[_ICEBERG_ID])
        return Field(
            name=name,
            nullable=nullable,
            description=_description(attributes),
            properties=properties,
            **parts,
        )

    def _item(self, parent: int, position: int, *, path: str, depth: int) -> FieldType:
        child = self._child(parent, position)
        parts, nullable = self._parts(child, path=path, depth=depth + 1, single=False)
        description = _description(self._types[child].attributes)
        return FieldType(nullable=nullable, description=description, **parts)

    def _child(self, parent: int, position: int) -> int:
        """Return the place of a child, which must come later, so that no type holds itself."""
        children = self._types[parent].children
        child = children[position] if position < len(children) else -1
        if not parent < child < len(self._types):
            raise _damaged("a type in it has no place in the tree of types")
        return child

    def _parts(self, place: int, *, path: str, depth: int, single: bool) -> tuple[TypeParts, bool]:
        self._size.count(path, depth)
        node = self._types[place]
        parts = self._nested_parts(place, path=path, depth=depth, single=single)
        if parts is None:
            self.leaves.append((place, single))
            parts = _attributed(_leaf_parts(node), node.attributes)
        return parts, node.attributes.get("iceberg.required") != "true"

    def _nested_parts(self, place: int, *, path: str, depth: int, single: bool) -> TypeParts | None:
        match self._types[place].kind:
            case _Kind.STRUCT:
                fields = self._fields(place, path=path, depth=depth, single=single)
                return {"type": TypeName.STRUCT, "native_type": "struct", "fields": fields}
            case _Kind.LIST:
                items = self._item(place, 0, path=f"{path}[]", depth=depth)
                return {"type": TypeName.ARRAY, "native_type": "array", "items": items}
            case _Kind.MAP:
                key = self._item(place, 0, path=f"{path}{{key}}", depth=depth)
                value = self._item(place, 1, path=f"{path}{{value}}", depth=depth)
                key = key.model_copy(update={"nullable": False})
                return {"type": TypeName.MAP, "native_type": "map", "key": key, "value": value}
            case _Kind.UNION if self._types[place].children:
                branches = tuple(
                    self._item(place, index, path=f"{path}<{index}>", depth=depth)
                    for index in range(len(self._types[place].children))
                )
                return {"type": TypeName.UNION, "native_type": "uniontype", "branches": branches}
            case _:
                return None


def _leaf_parts(node: _Type) -> TypeParts:
    plain = _PLAIN.get(node.kind)
    if plain is not None:
        return plain
    match node.kind:
        case _Kind.DECIMAL:
            if not node.precision:  # written before Hive let people choose
                return {"type": TypeName.DECIMAL, "native_type": "decimal"}
            return {
                "type": TypeName.DECIMAL,
                "native_type": f"decimal({node.precision},{node.scale})",
                "precision": node.precision,
                "scale": node.scale,
            }
        case _Kind.VARCHAR | _Kind.CHAR:
            name = "varchar" if node.kind == _Kind.VARCHAR else "char"
            if node.length is None:
                return {"type": TypeName.STRING, "native_type": name}
            native = f"{name}({node.length})"
            return {"type": TypeName.STRING, "native_type": native, "length": node.length}
        case _:
            return {"type": TypeName.UNKNOWN, "native_type": f"type {node.kind}"}


def _attributed(parts: TypeParts, attributes: Mapping[str, str]) -> TypeParts:
    """Return what the writer's own notes say a type means."""
    if not attributes:
        return parts
    noted: TypeParts | None = None
    if parts["type"] in (TypeName.TIMESTAMP, TypeName.TIMESTAMP_NTZ):
        noted = _SPARK_TYPES.get(attributes.get(_SPARK_TYPE, ""))
    elif attributes.get(_SPARK_TYPE) == "timestamp_ntz":
        noted = {"type": TypeName.TIMESTAMP_NTZ, "unit": TimeUnit.MICROSECOND}
    elif attributes.get(_SPARK_TYPE, "").startswith("interval"):
        noted = _interval(parts)
    for (name, value), meant in _ICEBERG_TYPES.items():
        if attributes.get(name) == value:
            noted = meant
            length = attributes.get("iceberg.length", "")
            if meant["type"] is TypeName.BINARY and length.isdecimal():
                noted = {**meant, "length": int(length)}
    if noted is None:
        return parts
    meaning = attributes.get(_SPARK_TYPE) or noted["type"].value.lower()
    native = parts["native_type"]
    return {**noted, "native_type": native if meaning == native else f"{native} ({meaning})"}


def _interval(parts: TypeParts) -> TypeParts:
    if parts["type"] is TypeName.INT64:
        return {"type": TypeName.DURATION, "unit": TimeUnit.MICROSECOND}
    return {"type": TypeName.DURATION}


def _description(attributes: Mapping[str, str]) -> str | None:
    texts = (attributes.get(key, "") for key in _DESCRIPTION_KEYS)
    return next((text for text in texts if text.strip()), None)


def _damaged(what: str) -> UnreadableItemError:
    return UnreadableItemError(f"its footer is damaged: {what}")
