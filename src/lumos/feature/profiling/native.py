"""When Spark's own readers can read a dataset, and how its columns are spelled to them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from lumos.core.models import Field, FieldType, Schema, TimeUnit, TypeName
from lumos.spark.stages.profiling import ColumnKind

if TYPE_CHECKING:
    from lumos.feature.profiling.columns import ProfiledColumn

NATIVE_FORMATS: Final = frozenset({"parquet", "orc"})
MOST_NATIVE_FILES: Final = 10_000
"""Their names pass through the driver."""

_WIDEST_DECIMAL = 38
_PLAIN_PATH: Final = re.compile(r"(?:/(?![_.])[\w=+@~,;%. -]+)+")
"""No folder that Spark takes for hidden, and no character that it takes for a pattern."""
_SIMPLE: Final = {
    TypeName.BOOLEAN: "boolean",
    TypeName.INT8: "tinyint",
    TypeName.INT16: "smallint",
    TypeName.INT32: "int",
    TypeName.INT64: "bigint",
    TypeName.FLOAT: "float",
    TypeName.DOUBLE: "double",
    TypeName.STRING: "string",
    TypeName.BINARY: "binary",
    TypeName.DATE: "date",
}
_MOMENTS: Final = {TypeName.TIMESTAMP: "timestamp", TypeName.TIMESTAMP_NTZ: "timestamp_ntz"}
_WHOLE_MICROSECONDS: Final = (TimeUnit.MILLISECOND, TimeUnit.MICROSECOND)


def are_plain(paths: Iterable[str]) -> bool:
    """Return whether Spark reads every path as it is written."""
    return all(_PLAIN_PATH.fullmatch(path) for path in paths)


def native_schema(schema: Schema) -> str | None:
    """Return the columns as Spark writes them; None where it has not the type of one."""
    return _members(schema.fields, separator=" ")


def native_expressions(columns: Sequence[ProfiledColumn]) -> list[str]:
    """Return the flat columns as expressions over those of `native_schema`."""
    return [_expression(column) for column in columns]


def _expression(column: ProfiledColumn) -> str:
    value = ".".join(map(_quoted, column.steps))
    match column.flat.kind:
        case ColumnKind.PRESENT:
            value = f"CASE WHEN {value} IS NOT NULL THEN true END"
        case ColumnKind.SIZE:
            value = f"CASE WHEN {value} IS NOT NULL THEN CAST(size({value}) AS BIGINT) END"
        case ColumnKind.MOMENT:
            value = f"unix_micros(CAST({value} AS TIMESTAMP))"
        case _:
            value = f"CAST({value} AS {column.flat.type})"
    return f"{value} AS {column.flat.name}"


def _members(fields: Sequence[Field], *, separator: str) -> str | None:
    names = [field.name for field in fields]
    if not names or len({name.casefold() for name in names}) < len(names):
        return None
    spelled = []
    for field in fields:
        type_ = _type(field)
        if type_ is None or "source_name" in field.properties:
            return None
        spelled.append(f"{_quoted(field.name)}{separator}{type_}")
    return ", ".join(spelled)


def _type(field: FieldType) -> str | None:
    match field.type:
        case TypeName.STRUCT:
            inner = _members(field.fields, separator=": ")
            return f"struct<{inner}>" if inner else None
        case TypeName.ARRAY:
            item = _type(field.items) if field.items else None
            return f"array<{item}>" if item else None
        case TypeName.MAP:
            key = _type(field.key) if field.key else None
            value = _type(field.value) if field.value else None
            return f"map<{key}, {value}>" if key and value else None
        case TypeName.DECIMAL:
            precision, scale = field.precision or 0, field.scale or 0
            fits = 0 < precision <= _WIDEST_DECIMAL and 0 <= scale <= precision
            return f"decimal({precision},{scale})" if fits else None
        case TypeName.TIMESTAMP | TypeName.TIMESTAMP_NTZ:
            return _MOMENTS[field.type] if field.unit in _WHOLE_MICROSECONDS else None
        case _:
            return _SIMPLE.get(field.type)


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
