"""What a reader returns about one table, in the same form for every table format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, NamedTuple

from pydantic import JsonValue

from lumos.core.errors import InvalidModelError
from lumos.core.models import Schema

IDENTITY: Final = "identity"


class PartitionField(NamedTuple):
    """One part of how a table is partitioned."""

    name: str
    """As the partition is called, such as `ts_day`; for `identity` mostly the column itself."""
    transform: str
    """`identity`, `day`, `bucket[16]`, `truncate[4]` and so on, as Iceberg spells them."""
    source: str
    """The column that it is computed from; a field of a struct as `address.city`."""


@dataclass(frozen=True, slots=True)
class TableFacts:
    """Facts about one table from its log; none of them is a value of its data."""

    format: str
    schema: Schema
    name: str | None = None
    """As the log calls the table; many logs do not."""
    description: str | None = None
    partitioning: tuple[PartitionField, ...] = ()
    keys: tuple[str, ...] = ()
    """The columns that identify a row, in order; nobody may enforce it."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """What was set on the table, with secrets masked; it does not change with its data."""
    version: str | None = None
    """The current state: Delta's version, Iceberg's snapshot id, Hudi's last instant."""
    rows: int | None = None
    rows_exact: bool = False
    """`rows` is the number; otherwise it is an estimate, mostly too high."""
    files: int | None = None
    size_bytes: int | None = None
    """The size of the data files that the current state consists of."""
    last_modified_us: int | None = None
    """When the current state was written, in microseconds since 1970."""
    observations: Mapping[str, JsonValue] = field(default_factory=dict)
    """What more the log says of its present state, such as branches or reader features."""
    warnings: tuple[str, ...] = ()

    def to_json(self) -> dict[str, JsonValue]:
        """Return the facts as a JSON object; what is unset or empty is left out."""
        document: dict[str, JsonValue] = {}
        for name in _PLAIN_PARTS:
            value = getattr(self, name)
            if value is not False and value not in (None, (), {}):
                document[name] = list(value) if isinstance(value, tuple) else value
        if self.partitioning:
            document["partitioning"] = [list(part) for part in self.partitioning]
        return document | {"schema": self.schema.to_json()}

    @classmethod
    def from_json(cls, document: Mapping[str, JsonValue]) -> TableFacts:
        """Return the facts of which `to_json` made this object.

        Raises:
            InvalidModelError: the object does not hold facts of a table.
        """
        parts: dict[str, Any] = dict(document)
        try:
            schema = Schema.from_json(parts.pop("schema"))
            partitioning = tuple(PartitionField(*part) for part in parts.pop("partitioning", ()))
            keys, warnings = (tuple(parts.pop(name, ())) for name in ("keys", "warnings"))
            return cls(
                schema=schema, partitioning=partitioning, keys=keys, warnings=warnings, **parts
            )
        except (KeyError, TypeError):
            raise InvalidModelError("not the facts of a table") from None


_PLAIN_PARTS = tuple(
    part.name for part in fields(TableFacts) if part.name not in ("schema", "partitioning")
)
