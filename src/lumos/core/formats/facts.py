"""What a reader tells about one file, in the same words for every format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from pydantic import JsonValue

from lumos.core.errors import InvalidModelError
from lumos.core.models import Schema


@dataclass(frozen=True, slots=True)
class FileFacts:
    """Facts about one file; none of them is a value of its data."""

    format: str
    schema: Schema
    rows: int | None = None
    """Exact, where the file says so; None where only a full read could tell."""
    row_groups: int | None = None
    created_by: str | None = None
    """The program that wrote the file, as it calls itself."""
    description: str | None = None
    warnings: tuple[str, ...] = ()
    """What was adapted to fit the canonical model, such as a repeated column name."""
    rows_estimate: int | None = None
    """About how many rows, from the size of those in the sample; equal to `rows` where known."""
    compression: str | None = None
    """How the file, or what is inside, is packed, such as `gzip` or `zstd`; None where unpacked
    or where it may differ from column to column."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """How the file is written, such as the delimiter and encoding of a CSV."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return the facts as a JSON object; what is unset or empty is left out."""
        document: dict[str, JsonValue] = {}
        for name in _PLAIN_PARTS:
            value = getattr(self, name)
            if value not in (None, (), {}):
                document[name] = list(value) if isinstance(value, tuple) else value
        return document | {"schema": self.schema.to_json()}

    @classmethod
    def from_json(cls, document: Mapping[str, JsonValue]) -> FileFacts:
        """Return the facts of which `to_json` made this object.

        Raises:
            InvalidModelError: the object does not hold facts of a file.
        """
        parts: dict[str, Any] = dict(document)
        try:
            schema = Schema.from_json(parts.pop("schema"))
            return cls(schema=schema, warnings=tuple(parts.pop("warnings", ())), **parts)
        except (KeyError, TypeError):
            raise InvalidModelError("not the facts of a file") from None


_PLAIN_PARTS = tuple(part.name for part in fields(FileFacts) if part.name != "schema")
