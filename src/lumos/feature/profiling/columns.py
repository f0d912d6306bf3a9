"""The flat columns of a schema: where each lies, and which figures it gets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from lumos.core.models import Field, FieldType, Schema, TypeName
from lumos.spark.stages.profiling import ColumnKind, FlatColumn

TEXT_FORMATS: Final = frozenset({"csv", "json", "avro"})
"""Formats whose values come as text: what does not fit the type of its column is counted."""

_WIDEST_DECIMAL = 38
_SIMPLE: Final[dict[TypeName, tuple[ColumnKind, str, str | None]]] = {
    TypeName.BOOLEAN: (ColumnKind.BOOLEAN, "boolean", "BOOLEAN"),
    TypeName.UINT64: (ColumnKind.DECIMAL, "decimal(20,0)", "DECIMAL(20,0)"),
    TypeName.FLOAT: (ColumnKind.FLOAT, "double", "DOUBLE"),
    TypeName.DOUBLE: (ColumnKind.FLOAT, "double", "DOUBLE"),
    TypeName.STRING: (ColumnKind.TEXT, "string", None),
    TypeName.ENUM: (ColumnKind.TEXT, "string", None),
    TypeName.JSON: (ColumnKind.TEXT, "string", None),
    TypeName.UUID: (ColumnKind.IDENTIFIER, "binary", None),
    TypeName.BINARY: (ColumnKind.BINARY, "binary", None),
    TypeName.DATE: (ColumnKind.DATE, "date", "DATE"),
    TypeName.TIME: (ColumnKind.TIME, "bigint", "TIMESTAMP_NTZ"),
    TypeName.TIMESTAMP: (ColumnKind.MOMENT, "bigint", "TIMESTAMP"),
    TypeName.TIMESTAMP_NTZ: (ColumnKind.MOMENT, "bigint", "TIMESTAMP_NTZ"),
    TypeName.ARRAY: (ColumnKind.SIZE, "bigint", None),
    TypeName.MAP: (ColumnKind.SIZE, "bigint", None),
}
_INTEGERS: Final = frozenset(
    {
        TypeName.INT8,
        TypeName.INT16,
        TypeName.INT32,
        TypeName.INT64,
        TypeName.UINT8,
        TypeName.UINT16,
        TypeName.UINT32,
    }
)


class ProfiledColumn(NamedTuple):
    """A column, or a member of a struct, and its flat counterpart."""

    path: str
    steps: tuple[str, ...]
    """The names that lead to it in the files, as they call it."""
    field: Field
    flat: FlatColumn

    @property
    def has_zone(self) -> bool:
        """Whether its times are points in time and not readings of a clock."""
        return self.field.type is TypeName.TIMESTAMP


def profiled_columns(
    schema: Schema, *, format: str, values: bool = True
) -> tuple[ProfiledColumn, ...]:
    """Return every column to profile, each struct before its members.

    Args:
        schema: the schema of the dataset.
        format: the format of its files.
        values: whether figures may be values of the data; never of text, nor of columns that
            people marked as personal.
    """
    found = _walk(schema.fields, (), is_personal=False)
    return tuple(
        ProfiledColumn(
            ".".join(field.name for field in trail),
            tuple(_name_in_files(field) for field in trail),
            trail[-1],
            _flat(f"c{number}", trail[-1], as_text=format in TEXT_FORMATS)._replace(
                values=values and not is_personal
            ),
        )
        for number, (trail, is_personal) in enumerate(found)
    )


def _walk(
    fields: Sequence[Field], above: tuple[Field, ...], *, is_personal: bool
) -> Iterator[tuple[tuple[Field, ...], bool]]:
    for field in fields:
        trail = (*above, field)
        personal = is_personal or field.pii
        yield trail, personal
        if field.type is TypeName.STRUCT:
            yield from _walk(field.fields, trail, is_personal=personal)


def _flat(name: str, field: FieldType, *, as_text: bool) -> FlatColumn:
    kind, type_, text_as = _flat_type(field)
    if as_text and kind is ColumnKind.IDENTIFIER:
        type_ = "string"
    return FlatColumn(name, kind, type_, text_as if as_text else None)


def _flat_type(field: FieldType) -> tuple[ColumnKind, str, str | None]:
    if field.type in _INTEGERS:
        return ColumnKind.INTEGER, "bigint", "BIGINT"
    if field.type is TypeName.DECIMAL:
        precision, scale = field.precision or 0, field.scale or 0
        if 0 < precision <= _WIDEST_DECIMAL and 0 <= scale <= precision:
            return (
                ColumnKind.DECIMAL,
                f"decimal({precision},{scale})",
                f"DECIMAL({precision},{scale})",
            )
        return ColumnKind.FLOAT, "double", "DOUBLE"
    return _SIMPLE.get(field.type, (ColumnKind.PRESENT, "boolean", None))


def _name_in_files(field: Field) -> str:
    given = field.properties.get("source_name")
    return given if isinstance(given, str) else field.name
