"""What the readers of all table formats share: checked values, masked properties, totals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import orjson

from lumos.core.errors import UnreadableItemError
from lumos.core.json_reading import Json, text_at
from lumos.core.models.base import LARGEST_INTEGER
from lumos.core.redaction import MASK, looks_secret, redact

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

_MOST_PROPERTIES: Final = 1_000
_LONGEST_VALUE: Final = 4_096
_LONGEST_TEXT: Final = 64 * 1024


def parsed_object(document: bytes, *, what: str) -> Json:
    """Return a JSON object.

    Raises:
        UnreadableItemError: the text is not JSON, or no object.
    """
    try:
        parsed = orjson.loads(document)
    except ValueError:
        raise UnreadableItemError(f"{what} is damaged: it is not JSON") from None
    if not isinstance(parsed, dict):
        raise UnreadableItemError(f"{what} is damaged: it is no JSON object")
    return parsed


def count_of(value: object) -> int | None:
    """Return a number of things, also where it is written as text; None for anything else."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 20:  # noqa: PLR2004
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_INTEGER:
        return value
    return None


def short_text_at(node: Mapping[str, JsonValue], key: str) -> str | None:
    """Return the text under a key, cut after 64 KiB; None where there is none or it is empty.

    Raises:
        UnexpectedJsonError: it is something else.
    """
    return short_text(text_at(node, key))


def short_text(value: object) -> str | None:
    """Return a text that is not empty, cut after 64 KiB; None for anything else."""
    return value[:_LONGEST_TEXT] if isinstance(value, str) and value else None


def struct_members(struct: Json, *, what: str) -> tuple[list[Json], list[str]]:
    """Return the members of a struct in a table's schema, and their names.

    Raises:
        UnreadableItemError: it has none, or one has no name.
    """
    members, names = [], []
    listed = struct.get("fields")
    for member in listed if isinstance(listed, list) else [None]:
        name = member.get("name") if isinstance(member, dict) else None
        if not isinstance(member, dict) or not isinstance(name, str):
            raise UnreadableItemError(f"{what} is damaged: a struct of the schema has no fields")
        members.append(member)
        names.append(name)
    return members, names


def shown_properties(
    properties: Mapping[str, JsonValue], *, without: frozenset[str] = frozenset()
) -> dict[str, str]:
    """Return what is set on a table, sorted, secrets masked, without what is no setting."""
    shown: dict[str, str] = {}
    for name, value in sorted(properties.items()):
        if isinstance(value, str) and name not in without and len(shown) < _MOST_PROPERTIES:
            shown[name] = MASK if looks_secret(name) else redact(value[:_LONGEST_VALUE])
    return shown


@dataclass
class Totals:
    """Sums over the files of a table, one after the other, without keeping any."""

    files: int = 0
    size_bytes: int = 0
    rows: int = 0
    told_files: int = 0
    """The files that say how many rows they have."""
    told_bytes: int = 0

    def add(self, size: int | None, rows: int | None) -> None:
        """Count one more file."""
        self.files += 1
        self.size_bytes += size or 0
        if rows is not None:
            self.rows += rows
            self.told_files += 1
            self.told_bytes += size or 0

    @property
    def exact(self) -> bool:
        """Every file says how many rows it has, and the sums are numbers that stores can hold."""
        return self.told_files == self.files and self.rows <= LARGEST_INTEGER

    @property
    def row_count(self) -> int | None:
        """The rows; an estimate by size where some files do not say, None where none does."""
        if not self.told_files and self.files:
            return None
        rows = self.rows
        if self.told_files < self.files and self.told_bytes:
            rows = rows * self.size_bytes // self.told_bytes
        return rows if rows <= LARGEST_INTEGER else None

    @property
    def total_bytes(self) -> int | None:
        """The size of all files; None where it is absurd."""
        return self.size_bytes if self.size_bytes <= LARGEST_INTEGER else None
