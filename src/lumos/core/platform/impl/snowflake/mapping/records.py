"""What Lumos reads of a table or view of Snowflake, and can write of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from lumos.core.models import Urn

if TYPE_CHECKING:
    from pydantic import JsonValue

PLATFORM = "snowflake"
_PARTS_OF_TABLE = 3


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
