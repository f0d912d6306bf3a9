"""Merges JSON records into one schema, in the order in which fields were first seen.

Only the kinds of values are kept, never a value. Every field is nullable: a sample without a null
proves nothing, and what is nullable must not change with the records that happen to be sampled.
"""

from __future__ import annotations

from typing import Final

from lumos.core.formats.names import unique_names
from lumos.core.formats.type_parts import SchemaSize, TypeParts
from lumos.core.models import Field, FieldType, Schema, TypeName

MAX_MEMBERS: Final = 1_000
"""An object with more names than this is a map: its names are data."""
MAX_COLUMNS: Final = 10_000

_INT64_DIGITS = 18
_DECIMAL_DIGITS = 38
_BIG: Final[int] = 2**63
_HUGE: Final[int] = 10**38
_LOST_NAME = "value"

_SCALARS: Final[dict[frozenset[str], TypeParts]] = {
    frozenset({"boolean"}): {"type": TypeName.BOOLEAN},
    frozenset({"string"}): {"type": TypeName.STRING},
    frozenset({"integer"}): {"type": TypeName.INT64},
    frozenset({"number"}): {"type": TypeName.DOUBLE},
    frozenset({"integer", "number"}): {"type": TypeName.DOUBLE},
}
_BIG_INTEGER: Final[TypeParts] = {
    "type": TypeName.DECIMAL,
    "precision": _DECIMAL_DIGITS,
    "scale": 0,
}


def big_or_small(text: str) -> int:
    """Return a stand-in for an integer that is as wide as the one written, and no value."""
    digits = len(text.lstrip("-"))
    if digits <= _INT64_DIGITS:
        return 0
    if digits > _DECIMAL_DIGITS:
        return _HUGE
    return _BIG if not -_BIG <= int(text) < _BIG else 0


class RecordSchema:
    """The schema of all records added so far."""

    def __init__(self) -> None:
        self._root = _Node()
        self._size = SchemaSize()
        self._warnings: list[str] = []

    def add(self, record: object) -> None:
        """Widen the schema so that it fits one more record.

        Raises:
            UnreadableItemError: the record is nested too deeply or has too many fields.
        """
        self._root.add(record, self._size, path="", depth=0)

    def result(self) -> tuple[Schema, tuple[str, ...]]:
        """Return the schema and what was adapted; records that are no objects are one column."""
        root = self._root
        if not root.kinds:
            return Schema(), ()
        if root.kinds == {"object"} and not root.nulls and len(root.members) <= MAX_COLUMNS:
            return Schema(fields=self._fields(root, path="")), tuple(self._warnings)
        if root.kinds != {"object"}:
            self._warnings.append(f"its records are no objects; they are column '{_LOST_NAME}'")
        column = Field(
            name=_LOST_NAME,
            **self._parts(root, path=_LOST_NAME),
        )
        return Schema(fields=(column,)), tuple(self._warnings)

    def _fields(self, node: _Node, *, path: str) -> tuple[Field, ...]:
        sources = [_storable(name) for name in node.members]
        names, renamed = unique_names(sources, within=path)
        self._warnings.extend(renamed)
        return tuple(
            Field(
                name=name,
                properties={} if name == source else {"source_name": source},
                **self._parts(member, path=f"{path}.{name}" if path else name),
            )
            for name, source, member in zip(names, sources, node.members.values(), strict=True)
        )

    def _parts(self, node: _Node, *, path: str) -> TypeParts:
        native = " | ".join(sorted(node.kinds - {"big integer"})) or "null"
        if not node.kinds:
            return {"type": TypeName.UNKNOWN, "native_type": native}
        if node.kinds == {"object"}:
            return self._object_parts(node, native, path=path)
        if node.kinds == {"array"}:
            items = node.items or _Node()
            item = FieldType(**self._parts(items, path=f"{path}[]"))
            return {"type": TypeName.ARRAY, "native_type": native, "items": item}
        if node.kinds == {"integer", "big integer"}:
            return {**_BIG_INTEGER, "native_type": native}
        scalar = _SCALARS.get(frozenset(node.kinds - {"big integer"}))
        if scalar is None:
            self._warnings.append(f"{path} holds {_listed(native)}; it is JSON here")
            return {"type": TypeName.JSON, "native_type": native}
        return {**scalar, "native_type": native}

    def _object_parts(self, node: _Node, native: str, *, path: str) -> TypeParts:
        if len(node.members) <= MAX_MEMBERS:
            fields = self._fields(node, path=path)
            return {"type": TypeName.STRUCT, "native_type": native, "fields": fields}
        self._warnings.append(
            f"{path} has more than {MAX_MEMBERS:,} names; it is a map from name to value here"
        )
        merged = _Node()
        for member in node.members.values():
            merged.absorb(member)
        key = FieldType(type=TypeName.STRING, nullable=False, native_type="string")
        parts = self._parts(merged, path=f"{path}{{value}}")
        value = FieldType(**parts)
        return {"type": TypeName.MAP, "native_type": native, "key": key, "value": value}


class _Node:
    """What is known of the values in one place."""

    __slots__ = ("items", "kinds", "members", "nulls")

    def __init__(self) -> None:
        self.kinds: set[str] = set()
        self.nulls = 0
        self.members: dict[str, _Node] = {}
        self.items: _Node | None = None

    def add(self, value: object, size: SchemaSize, *, path: str, depth: int) -> None:
        if isinstance(value, dict):
            self.kinds.add("object")
            for name, inner in value.items():
                member = self.members.get(name)
                where = path or name
                if member is None:
                    size.count(where, depth + 1)
                    member = self.members[name] = _Node()
                member.add(inner, size, path=where, depth=depth + 1)
        elif isinstance(value, list):
            self.kinds.add("array")
            if self.items is None:
                size.count(path, depth + 1)
                self.items = _Node()
            for inner in value:
                self.items.add(inner, size, path=path, depth=depth + 1)
        elif value is None:
            self.nulls += 1
        else:
            self.kinds |= _scalar_kinds(value)

    def absorb(self, other: _Node) -> None:
        """Take in all that another place knows."""
        self.kinds |= other.kinds
        self.nulls += other.nulls
        for name, member in other.members.items():
            self.members.setdefault(name, _Node()).absorb(member)
        if other.items is not None:
            self.items = self.items or _Node()
            self.items.absorb(other.items)


def _scalar_kinds(value: object) -> set[str]:
    if isinstance(value, bool):
        return {"boolean"}
    if isinstance(value, str):
        return {"string"}
    if isinstance(value, int):
        if value >= _HUGE:
            return {"number"}
        return {"integer", "big integer"} if value else {"integer"}
    return {"number"}


def _storable(name: str) -> str:
    """Replace halves of characters, which JSON can write and UTF-8 cannot."""
    return name.encode("utf-8", "replace").decode("utf-8")


def _listed(native: str) -> str:
    *some, last = native.split(" | ")
    return f"{', '.join(some)} and {last}"
