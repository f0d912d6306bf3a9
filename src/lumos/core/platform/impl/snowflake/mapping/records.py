"""What Lumos reads of a table or view of Snowflake, and can write of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from lumos.core.models import Urn
from lumos.core.models.types import TypeName

if TYPE_CHECKING:
    from pydantic import JsonValue

PLATFORM = "snowflake"
DYNAMIC_TABLE: Final = "DYNAMIC TABLE"
ICEBERG_TABLE: Final = "ICEBERG TABLE"
MATERIALIZED_VIEW: Final = "MATERIALIZED VIEW"
_NAMED_IN_STATEMENTS: Final = frozenset(
    {DYNAMIC_TABLE, ICEBERG_TABLE, MATERIALIZED_VIEW, "EXTERNAL TABLE", "EVENT TABLE"}
)
"""What a statement has to call by its own kind; for all others it is a table or a view."""
_PARTS_OF_TABLE = 3
_TYPES: Final[Mapping[str, TypeName]] = {
    "NUMBER": TypeName.DECIMAL,
    "DECFLOAT": TypeName.UNKNOWN,
    "FLOAT": TypeName.DOUBLE,
    "TEXT": TypeName.STRING,
    "BINARY": TypeName.BINARY,
    "BOOLEAN": TypeName.BOOLEAN,
    "DATE": TypeName.DATE,
    "TIME": TypeName.TIME,
    "TIMESTAMP_NTZ": TypeName.TIMESTAMP_NTZ,
    "TIMESTAMP_LTZ": TypeName.TIMESTAMP,
    "TIMESTAMP_TZ": TypeName.TIMESTAMP,
    "VARIANT": TypeName.JSON,
    "OBJECT": TypeName.JSON,
    "GEOGRAPHY": TypeName.GEOMETRY,
    "GEOMETRY": TypeName.GEOMETRY,
}
_UNBOUNDED: Final = {"TEXT": 16_777_216, "BINARY": 8_388_608}
"""The lengths that a column has to which nobody gave one, or more than that."""
_OF_ANYTHING: Final = {"type": TypeName.JSON}


class TagUse(NamedTuple):
    """A tag with the value that it has on a table or a column."""

    database: str
    schema: str
    name: str
    value: str


class ColumnRecord(NamedTuple):
    """A column; no comment is an empty one."""

    name: str
    type_parts: Mapping[str, object]
    nullable: bool
    default: str | None
    comment: str
    tags: tuple[TagUse, ...] = ()


class TableKey(NamedTuple):
    """The three names of a table."""

    database: str
    schema: str
    table: str

    @property
    def urn(self) -> Urn:
        return Urn.of(PLATFORM, *self)

    @classmethod
    def of(cls, urn: Urn) -> TableKey | None:
        """Return the table that a URN names, if it can name one."""
        if urn.platform != PLATFORM or len(urn.parts) != _PARTS_OF_TABLE:
            return None
        return cls(*urn.parts)


class TableRecord(NamedTuple):
    """A table or view; no comment is an empty one."""

    key: TableKey
    table_type: str
    owner: str | None
    comment: str
    row_count: int | None
    size_bytes: int | None
    altered: datetime | None
    extras: Mapping[str, JsonValue]
    columns: tuple[ColumnRecord, ...] = ()
    tags: tuple[TagUse, ...] = ()

    @property
    def is_view(self) -> bool:
        return "VIEW" in self.table_type

    @property
    def kind(self) -> str:
        """What a statement that changes it calls it."""
        if self.table_type in _NAMED_IN_STATEMENTS:
            return self.table_type
        return "VIEW" if self.is_view else "TABLE"


def snowflake_type(
    data_type: str, *, precision: int | None, scale: int | None, length: int | None
) -> dict[str, object]:
    """Return the parts of a field that state its type; one that is not known is UNKNOWN."""
    name = data_type.upper()
    if name == "ARRAY":
        return {"type": TypeName.ARRAY, "items": _OF_ANYTHING, "native_type": name}
    parts: dict[str, object] = {"type": _TYPES.get(name, TypeName.UNKNOWN), "native_type": name}
    if name == "NUMBER" and precision is not None:
        parts |= {"precision": precision, "scale": scale or 0}
        parts["native_type"] = f"NUMBER({precision},{scale or 0})"
    elif name in ("TEXT", "BINARY") and length is not None:
        parts["native_type"] = f"{name}({length})"
        if length < _UNBOUNDED[name]:
            parts["length"] = length
    return parts
