"""Canonical types and the fields that carry them, nested to any depth."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field as ModelField
from pydantic import model_validator
from pydantic_core import PydanticCustomError
from typing_extensions import override

from lumos.core.models.base import (
    LARGEST_INTEGER,
    CanonicalModel,
    Name,
    NameSet,
    Properties,
)
from lumos.core.models.constraints import Check
from lumos.core.models.frozen import FrozenDict
from lumos.core.models.governance import Deprecation


class TypeName(StrEnum):
    """The canonical types."""

    BOOLEAN = "BOOLEAN"
    INT8 = "INT8"
    INT16 = "INT16"
    INT32 = "INT32"
    INT64 = "INT64"
    UINT8 = "UINT8"
    UINT16 = "UINT16"
    UINT32 = "UINT32"
    UINT64 = "UINT64"
    FLOAT = "FLOAT"
    DOUBLE = "DOUBLE"
    DECIMAL = "DECIMAL"
    STRING = "STRING"
    BINARY = "BINARY"
    DATE = "DATE"
    TIME = "TIME"
    TIMESTAMP = "TIMESTAMP"
    TIMESTAMP_NTZ = "TIMESTAMP_NTZ"
    DURATION = "DURATION"
    UUID = "UUID"
    JSON = "JSON"
    ENUM = "ENUM"
    ARRAY = "ARRAY"
    MAP = "MAP"
    STRUCT = "STRUCT"
    UNION = "UNION"
    GEOMETRY = "GEOMETRY"
    UNKNOWN = "UNKNOWN"

    @classmethod
    @override
    def _missing_(cls, value: object) -> TypeName | None:
        """Read a type name written in any case."""
        return cls.__members__.get(value.upper()) if isinstance(value, str) else None


class TimeUnit(StrEnum):
    """The resolution of a time type."""

    SECOND = "s"
    MILLISECOND = "ms"
    MICROSECOND = "us"
    NANOSECOND = "ns"


PARAMETERS: dict[TypeName, tuple[str, ...]] = {
    TypeName.DECIMAL: ("precision", "scale"),
    TypeName.STRING: ("length",),
    TypeName.BINARY: ("length",),
    TypeName.TIME: ("unit",),
    TypeName.TIMESTAMP: ("unit", "timezone"),
    TypeName.TIMESTAMP_NTZ: ("unit",),
    TypeName.DURATION: ("unit",),
    TypeName.ENUM: ("symbols",),
    TypeName.STRUCT: ("fields",),
    TypeName.ARRAY: ("items",),
    TypeName.MAP: ("key", "value"),
    TypeName.UNION: ("branches",),
}
"""The parameters each type takes; a type that is not listed takes none."""

DEEPEST_TYPE = 64
"""How deep types may be nested in each other."""

_ALL_PARAMETERS = frozenset(name for names in PARAMETERS.values() for name in names)
_REQUIRED: dict[TypeName, tuple[str, ...]] = {
    TypeName.ARRAY: ("items",),
    TypeName.MAP: ("key", "value"),
    TypeName.UNION: ("branches",),
    TypeName.ENUM: ("symbols",),
}
_IN_NEED = tuple(_REQUIRED)
_WITH_TYPES_INSIDE = frozenset({TypeName.STRUCT, TypeName.ARRAY, TypeName.MAP, TypeName.UNION})


class FieldType(CanonicalModel):
    """A type with its parameters: what an array's items, a map's values or a union branch is."""

    type: TypeName
    nullable: bool = ModelField(
        # Text that validates to True but does not equal it: the flag is written out even where
        # defaults are left out, as every document that people read shows it.
        default="true",
        validate_default=True,
        json_schema_extra={"default": True},
    )
    description: str | None = None
    native_type: str | None = ModelField(
        default=None, description="The type as the source spells it; never part of a comparison."
    )
    precision: Annotated[int, ModelField(ge=0, le=LARGEST_INTEGER)] | None = None
    scale: Annotated[int, ModelField(ge=-LARGEST_INTEGER, le=LARGEST_INTEGER)] | None = None
    length: Annotated[int, ModelField(ge=0, le=LARGEST_INTEGER)] | None = None
    unit: TimeUnit | None = None
    timezone: str | None = None
    symbols: tuple[str, ...] = ()
    fields: tuple[Field, ...] = ()
    items: FieldType | None = None
    key: FieldType | None = None
    value: FieldType | None = None
    branches: tuple[FieldType, ...] = ()

    @model_validator(mode="after")
    def _parameters_fit_the_type(self) -> Self:
        given = _ALL_PARAMETERS & self.__pydantic_fields_set__
        if not given and self.type not in _IN_NEED:  # as most columns
            return self
        for name in sorted(given.difference(PARAMETERS.get(self.type, ()))):
            if getattr(self, name) not in (None, ()):
                raise PydanticCustomError(
                    "type_parameter",
                    "{type} takes no {name}",
                    {"type": self.type.value, "name": name},
                )
        for name in _REQUIRED.get(self.type, ()):
            if getattr(self, name) in (None, ()):
                raise PydanticCustomError(
                    "type_parameter", "{type} needs {name}", {"type": self.type.value, "name": name}
                )
        if self.fields:
            _refuse_duplicates(self.fields)
        return self

    def signature(self) -> str:
        """Return the type as people read it, such as `DECIMAL(10,2)` or `ARRAY<STRING>`."""
        match self.type:
            case TypeName.STRUCT:
                inner = ", ".join(f"{field.name}: {field.signature()}" for field in self.fields)
                return f"STRUCT<{inner}>"
            case TypeName.ARRAY if self.items:
                return f"ARRAY<{self.items.signature()}>"
            case TypeName.MAP if self.key and self.value:
                return f"MAP<{self.key.signature()}, {self.value.signature()}>"
            case TypeName.UNION:
                return f"UNION<{', '.join(branch.signature() for branch in self.branches)}>"
            case TypeName.ENUM:
                return f"ENUM({', '.join(self.symbols)})"
            case _:
                given = [getattr(self, name) for name in PARAMETERS.get(self.type, ())]
                while given and given[-1] is None:
                    given.pop()
                inner = ",".join("*" if value is None else str(value) for value in given)
                return f"{self.type.value}({inner})" if inner else self.type.value


class _Named(CanonicalModel):
    name: Name


class Field(FieldType, _Named):  # in this order the name is written first
    """A named column, or a named member of a struct."""

    pii: bool = False
    tags: NameSet = ()
    glossary_terms: NameSet = ()
    default: str | None = ModelField(
        default=None, description="The default as the source writes it, such as `now()` or `0`."
    )
    properties: Properties = ModelField(default_factory=FrozenDict)
    deprecation: Deprecation | None = None


def _refuse_duplicates(fields: tuple[Field, ...]) -> None:
    seen: set[str] = set()
    for field in fields:
        if field.name in seen:
            raise PydanticCustomError(
                "duplicate_field",
                "two fields of one struct are named alike: {name}",
                {"name": field.name},
            )
        seen.add(field.name)


def _refuse_depth(node: FieldType, depth: int = 1) -> None:
    """Refuse a type nested deeper than JSON of it could be written."""
    if depth > DEEPEST_TYPE:
        raise PydanticCustomError(
            "too_deep", "a type is nested more than {levels} levels deep", {"levels": DEEPEST_TYPE}
        )
    match node.type:
        case TypeName.STRUCT | TypeName.UNION:
            inner: tuple[FieldType | None, ...] = (*node.fields, *node.branches)
        case TypeName.ARRAY | TypeName.MAP:
            inner = (node.items, node.key, node.value)
        case _:
            return
    for child in inner:
        if child is not None:
            _refuse_depth(child, depth + 1)


class ForeignKey(CanonicalModel):
    """Columns that point to the key of another dataset."""

    columns: tuple[Name, ...] = ModelField(min_length=1)
    references: str = ModelField(description="The URN, or the name, of the dataset pointed to.")
    referenced_columns: tuple[Name, ...] = ()


class Schema(CanonicalModel):
    """The columns and keys of a dataset."""

    fields: tuple[Field, ...] = ()
    primary_key: tuple[Name, ...] = ()
    unique_keys: tuple[tuple[Name, ...], ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    checks: tuple[Check, ...] = ()
    positional: bool = ModelField(
        default=False,
        description="True where columns are found by position, as in a CSV without a header.",
    )

    @model_validator(mode="after")
    def _names_are_unique(self) -> Self:
        _refuse_duplicates(self.fields)
        return self

    @model_validator(mode="after")
    def _types_have_an_end(self) -> Self:
        for field in self.fields:
            if field.type in _WITH_TYPES_INSIDE:
                _refuse_depth(field)
        return self
