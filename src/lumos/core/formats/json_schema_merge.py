"""Merges JSON records into one schema, in the order in which fields were first seen.

Only the kinds of values are kept, never a value. Every field is nullable: a sample without a null
proves nothing, and what is nullable must not change with the records that happen to be sampled.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from itertools import chain
from typing import Any, Final

from lumos.core.formats.known_schemas import KnownSchema, KnownSchemas
from lumos.core.formats.names import unique_names
from lumos.core.formats.type_parts import SchemaSize, TypeParts
from lumos.core.models import Field, FieldType, Schema, TypeName

MAX_MEMBERS: Final = 1_000
"""An object with more names than this is a map: its names are data."""
MAX_COLUMNS: Final = 10_000

_MANY_NAMES = 100
_SOME_NAMES = 10
_SELDOM = 0.2
_MOSTLY = 0.8
_FEW_FORMS = 0.05
_INT64_DIGITS = 18
_DECIMAL_DIGITS = 38
_BIG: Final[int] = 2**63
_HUGE: Final[int] = 10**38
_LOST_NAME = "value"
_DATA_NAME: Final = re.compile(
    r"[0-9]+|[0-9]{4}-[0-9]{2}(?:-[0-9]{2}.*)?|[0-9A-Fa-f]{8}-[0-9A-Fa-f-]{27}|[0-9a-f]{16,}"
)
_DIGITS: Final = re.compile(r"[0-9]+")

# What a place holds is a sum of these.
_BOOLEAN, _STRING, _INTEGER, _NUMBER, _OBJECT, _ARRAY, _BIG_INTEGER = (1 << i for i in range(7))
_KIND_OF: Final[dict[type, int]] = {
    type(None): 0,
    bool: _BOOLEAN,
    str: _STRING,
    int: _INTEGER,
    float: _NUMBER,
    dict: _OBJECT,
    list: _ARRAY,
}
_SPELLED: Final = {
    _ARRAY: "array",
    _BOOLEAN: "boolean",
    _INTEGER: "integer",
    _NUMBER: "number",
    _OBJECT: "object",
    _STRING: "string",
}
_SCALARS: Final[dict[int, TypeParts]] = {
    _BOOLEAN: {"type": TypeName.BOOLEAN},
    _STRING: {"type": TypeName.STRING},
    _INTEGER: {"type": TypeName.INT64},
    _NUMBER: {"type": TypeName.DOUBLE},
    _INTEGER | _NUMBER: {"type": TypeName.DOUBLE},
    _INTEGER | _NUMBER | _BIG_INTEGER: {"type": TypeName.DOUBLE},
    _INTEGER | _BIG_INTEGER: {
        "type": TypeName.DECIMAL,
        "precision": _DECIMAL_DIGITS,
        "scale": 0,
    },
}
_NULL: Final = type(None)
_NUMERIC: Final = frozenset({int, float, bool, _NULL})
_KNOWN: Final = KnownSchemas()


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
        self._counts = _SchemaCounts()

    def add_all(self, records: Sequence[object]) -> bool:
        """Widen the schema so that it fits more records, and return whether they changed it.

        Raises:
            UnreadableItemError: a record is nested too deeply or has too many fields.
        """
        before = self._counts.news
        self._root.add_all(records, self._counts, path="", depth=0)
        return self._counts.news != before

    @property
    def is_uneven(self) -> bool:
        """Whether objects in one place had different names."""
        return self._counts.differences

    @property
    def has_unknown(self) -> bool:
        """Whether a place held nothing so far."""
        return self._counts.unknown > 0

    @property
    def has_huge_numbers(self) -> bool:
        """Whether a number may be an integer that was read as another number, with a loss."""
        return self._counts.huge

    def result(self) -> KnownSchema:
        """Return the schema and what was adapted; records that are no objects are one column."""
        return _KNOWN.get(self._root.key(is_root=True), lambda: _Result(self._root).schema())


class _SchemaCounts:
    """Counts the types that the fields of records have."""

    def __init__(self) -> None:
        self._size = SchemaSize()
        self.news = 0
        self.unknown = 0
        """In how many places nothing was found so far."""
        self.differences = False
        """Whether objects in one place had different names."""
        self.huge = False
        """Whether a number was so large that it may have been an integer."""

    def new_node(self, path: str, depth: int) -> _Node:
        self._size.count(path, depth)
        self.news += 1
        self.unknown += 1
        return _Node()


class _Node:
    """What is known of the values in one place."""

    __slots__ = ("items", "kinds", "members", "names", "nulls", "objects")

    def __init__(self) -> None:
        self.kinds = 0
        self.nulls = False
        self.members: dict[str, _Node] = {}
        self.items: _Node | None = None
        self.objects = 0
        self.names = 0
        """How many names all its objects had together."""

    def add_all(
        self, values: Sequence[object], told: _SchemaCounts, *, path: str, depth: int
    ) -> None:
        types = set(map(type, values))
        if _NULL in types:
            self.nulls = True
        kinds = self.kinds
        for kind in types:
            kinds |= _KIND_OF[kind]
        if kinds & (_INTEGER | _NUMBER) and (int in types or float in types):
            kinds |= _kinds_of_large(values, types, told)
        if kinds != self.kinds:
            told.unknown -= not self.kinds and depth > 0
            self.kinds = kinds
            told.news += 1
        if dict in types:
            objects = [value for value in values if type(value) is dict]
            self._add_objects(objects, told, path=path, depth=depth + 1)
        if list in types:
            if self.items is None:
                self.items = told.new_node(path, depth + 1)
            items = list(chain.from_iterable(value for value in values if type(value) is list))
            if items:
                self.items.add_all(items, told, path=path, depth=depth + 1)

    def _add_objects(
        self, objects: Sequence[dict[str, object]], told: _SchemaCounts, *, path: str, depth: int
    ) -> None:
        self.objects += len(objects)
        forms = list(map(tuple, objects))
        if forms.count(forms[0]) == len(forms):
            self._add_alike(forms[0], objects, told, path=path, depth=depth)
            return
        told.differences = True
        alike: dict[tuple[str, ...], list[dict[str, object]]] = {}
        for names, record in zip(forms, objects, strict=True):
            alike.setdefault(names, []).append(record)
        for names, records in alike.items():
            self._add_alike(names, records, told, path=path, depth=depth)

    def _add_alike(
        self,
        names: tuple[str, ...],
        records: Sequence[dict[str, object]],
        told: _SchemaCounts,
        *,
        path: str,
        depth: int,
    ) -> None:
        """Add objects that have the same names in the same order, name by name."""
        self.names += len(names) * len(records)
        columns = zip(*map(dict.values, records), strict=True)
        for name, column in zip(names, columns, strict=True):
            member = self.members.get(name)
            where = path or name
            if member is None:
                member = self.members[name] = told.new_node(where, depth)
            member.add_all(column, told, path=where, depth=depth)

    def absorb(self, other: _Node) -> None:
        """Take in all that another place knows."""
        self.kinds |= other.kinds
        self.nulls |= other.nulls
        self.objects += other.objects
        self.names += other.names
        for name, member in other.members.items():
            self.members.setdefault(name, _Node()).absorb(member)
        if other.items is not None:
            self.items = self.items or _Node()
            self.items.absorb(other.items)

    def merged_members(self) -> _Node:
        """Return what is known of all members together."""
        merged = _Node()
        for member in self.members.values():
            merged.absorb(member)
        return merged

    def key(self, *, is_root: bool = False) -> Hashable:
        """Return a key that differs from those of places with another schema."""
        own = (self.kinds, is_root and self.nulls, self.items and self.items.key())
        if self.has_data_for_names(is_root=is_root):
            return (*own, self.merged_members().key())
        members = tuple(
            member.key() if member.kinds & (_OBJECT | _ARRAY) else member.kinds
            for member in self.members.values()
        )
        return (*own, tuple(self.members), members)

    def has_data_for_names(self, *, is_root: bool = False) -> bool:
        """Return whether the names of its objects are data, so that it is a map and no struct."""
        count = len(self.members)
        if count > (MAX_COLUMNS if is_root else MAX_MEMBERS):
            return True
        if count < _SOME_NAMES:
            return False
        if sum(map(bool, map(_DATA_NAME.fullmatch, self.members))) >= count * _MOSTLY:
            return self._has_like_members()
        if count < _MANY_NAMES:
            return False
        if self.names < _SELDOM * count * self.objects:
            return self._has_like_members()
        forms = {_DIGITS.sub("9", name) for name in self.members}
        alone = self.objects == 1 and not is_root
        return alone and len(forms) <= count * _FEW_FORMS and self._has_like_members()

    def _has_like_members(self) -> bool:
        kinds = 0
        for member in self.members.values():
            kinds |= member.kinds
        return kinds in (_OBJECT, _ARRAY) or kinds in _SCALARS


class _Result:
    """One walk over what is known, which makes the schema of it."""

    def __init__(self, root: _Node) -> None:
        self._root = root
        self._warnings: list[str] = []

    def schema(self) -> KnownSchema:
        root = self._root
        if not root.kinds:
            return KnownSchema.of(Schema())
        is_map = root.has_data_for_names(is_root=True)
        if root.kinds == _OBJECT and not root.nulls and not is_map:
            fields = self._fields(root, path="")
            return KnownSchema.of(Schema(fields=fields), tuple(self._warnings))
        if root.kinds != _OBJECT:
            self._warnings.append(f"its records are no objects; they are column '{_LOST_NAME}'")
        column = Field(name=_LOST_NAME, **self._parts(root, path=_LOST_NAME, is_root=True))
        return KnownSchema.of(Schema(fields=(column,)), tuple(self._warnings))

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

    def _parts(self, node: _Node, *, path: str, is_root: bool = False) -> TypeParts:
        native = " | ".join(name for kind, name in _SPELLED.items() if node.kinds & kind) or "null"
        if not node.kinds:
            return {"type": TypeName.UNKNOWN, "native_type": native}
        if node.kinds == _OBJECT:
            return self._object_parts(node, native, path=path, is_root=is_root)
        if node.kinds == _ARRAY:
            items = node.items or _Node()
            item = FieldType(**self._parts(items, path=f"{path}[]"))
            return {"type": TypeName.ARRAY, "native_type": native, "items": item}
        scalar = _SCALARS.get(node.kinds)
        if scalar is None:
            self._warnings.append(f"{path} holds {_listed(native)}; it is JSON here")
            return {"type": TypeName.JSON, "native_type": native}
        return {**scalar, "native_type": native}

    def _object_parts(self, node: _Node, native: str, *, path: str, is_root: bool) -> TypeParts:
        if not node.has_data_for_names(is_root=is_root):
            fields = self._fields(node, path=path)
            return {"type": TypeName.STRUCT, "native_type": native, "fields": fields}
        self._warnings.append(f"the names in {path} are data; it is a map from name to value here")
        key = FieldType(type=TypeName.STRING, nullable=False, native_type="string")
        parts = self._parts(node.merged_members(), path=f"{path}{{value}}")
        value = FieldType(**parts)
        return {"type": TypeName.MAP, "native_type": native, "key": key, "value": value}


def _kinds_of_large(values: Sequence[object], types: set[type], told: _SchemaCounts) -> int:
    """What integers are that do not fit 64 bits; also notes numbers that may have been such."""
    if types <= _NUMERIC:
        numbers: Any = values
        largest = max(filter(None, numbers), default=0)  # which leaves out nothing that is large
        smallest = min(filter(None, numbers), default=0) if float in types else 0
        if smallest > -_BIG and largest < _BIG:
            return 0
    found = [value for value in values if type(value) in (int, float)]
    told.huge |= any(type(number) is float and abs(number) >= _BIG for number in found)
    integers = [number for number in found if type(number) is int and number >= _BIG]
    huge = _NUMBER if any(number >= _HUGE for number in integers) else 0
    return huge | (_BIG_INTEGER if any(number < _HUGE for number in integers) else 0)


def _storable(name: str) -> str:
    """Replace halves of characters, which JSON can write and UTF-8 cannot."""
    return name.encode("utf-8", "replace").decode("utf-8")


def _listed(native: str) -> str:
    *some, last = native.split(" | ")
    return f"{', '.join(some)} and {last}"
