"""What a reader returns about one file, in the same form for every format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import orjson
from pydantic import JsonValue

from lumos.core.errors import InvalidModelError
from lumos.core.formats.known_schemas import KnownSchema
from lumos.core.models import ColumnStatistics, Schema
from lumos.core.models.base import canonical_json


@dataclass(frozen=True, slots=True)
class FileFacts:
    """Facts about one file; none of them is a value of its data, unless ranges were asked for."""

    format: str
    schema: Schema
    rows: int | None = None
    """Exact, where the file states it; None where only a full read could count them."""
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
    columns: Mapping[str, ColumnStatistics] = field(default_factory=dict)
    """Statistics of the footer for each column with values, by path: `a`, `a.b`, `a[].b`."""
    name: str | None = None
    """What a part of a file is called, such as the sheet of a workbook; None for a whole file."""
    members: tuple[FileFacts, ...] = ()
    """The parts of a file that holds several datasets; the facts of the file are of the first."""
    known: KnownSchema | None = field(default=None, compare=False, repr=False)
    """The schema as it was written before, so that it need not be written again."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return the facts as a JSON object; what is unset or empty is left out."""
        document = self._plain_parts() | {"schema": self.schema.to_json()}
        if self.columns:
            document["columns"] = {
                path: statistics.to_json() for path, statistics in self.columns.items()
            }
        if self.members:
            document["members"] = [member.to_json() for member in self.members]
        return document

    def to_document(self) -> bytes:
        """Return the canonical JSON of the facts with the `fingerprint` of their schema.

        The fingerprint is the SHA-256 of the schema's own canonical JSON. A member has its own.
        """
        return canonical_json(self._document())

    def known_schema(self) -> KnownSchema:
        """Return the schema with its canonical JSON and fingerprint."""
        known = self.known
        return known if known and known.schema is self.schema else KnownSchema.of(self.schema)

    def columns_json(self) -> dict[str, tuple[object, ...]]:
        """Return the statistics of columns as `to_json` writes them, without a list for each."""
        return {
            path: statistics[:4] if statistics.minimum is None else statistics[:]
            for path, statistics in self.columns.items()
        }

    def _document(self) -> dict[str, object]:
        known = self.known_schema()
        document: dict[str, object] = {
            **self._plain_parts(),
            "schema": orjson.Fragment(known.json),
            "fingerprint": known.fingerprint,
        }
        if self.columns:
            document["columns"] = self.columns_json()
        if self.members:
            document["members"] = [member._document() for member in self.members]
        return document

    def _plain_parts(self) -> dict[str, JsonValue]:
        document: dict[str, JsonValue] = {}
        for name in _PLAIN_PARTS:
            value = getattr(self, name)
            if value not in (None, (), {}):
                document[name] = list(value) if isinstance(value, tuple) else value
        return document

    @classmethod
    def from_json(cls, document: Mapping[str, JsonValue]) -> FileFacts:
        """Return the facts of which `to_json` or `to_document` made this object.

        Raises:
            InvalidModelError: the object does not hold facts of a file.
        """
        parts: dict[str, Any] = dict(document)
        parts.pop("fingerprint", None)
        try:
            schema = Schema.from_json(parts.pop("schema"))
            columns = {
                path: ColumnStatistics.from_json(statistics)
                for path, statistics in parts.pop("columns", {}).items()
            }
            warnings = tuple(parts.pop("warnings", ()))
            members = tuple(map(cls.from_json, parts.pop("members", ())))
            return cls(schema=schema, warnings=warnings, columns=columns, members=members, **parts)
        except (AttributeError, KeyError, TypeError):
            raise InvalidModelError("not the facts of a file") from None


_PLAIN_PARTS = tuple(
    part.name
    for part in fields(FileFacts)
    if part.name not in ("schema", "columns", "members", "known")
)
