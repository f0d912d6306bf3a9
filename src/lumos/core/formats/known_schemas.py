"""Schemas that were read before: most files of a lake have one that another file had.

Building, checking and writing the schema of a file takes longer than reading its footer, so it
happens once for each form a schema takes in the files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Final

from lumos.core.models import FieldType, Schema, TypeName
from lumos.core.models.base import canonical_json

MOST_BYTES: Final = 32 * 1024 * 1024
"""As much JSON of schemas as one cache keeps."""
_PATH_MARKS: Final = frozenset(".[]{}<>`")


@dataclass(frozen=True, slots=True)
class KnownSchema:
    """A schema with what is made of it once."""

    schema: Schema
    json: bytes
    """Its canonical JSON."""
    fingerprint: str
    """The SHA-256 of its canonical JSON, in hexadecimal."""
    leaves: tuple[tuple[str, FieldType], ...]
    """What holds values, with its path, in the order in which files keep them."""
    warnings: tuple[str, ...] = ()
    description: str | None = None
    places: tuple[tuple[int, bool], ...] = ()
    """Where a file keeps the leaves, where that is not simply one after the other."""

    @classmethod
    def of(
        cls,
        schema: Schema,
        warnings: tuple[str, ...] = (),
        *,
        description: str | None = None,
        places: tuple[tuple[int, bool], ...] = (),
    ) -> KnownSchema:
        """Return the schema with all that is made of it."""
        written = canonical_json(schema.to_json())
        return cls(
            schema=schema,
            json=written,
            fingerprint=hashlib.sha256(written).hexdigest(),
            leaves=tuple(leaves_of(schema)),
            warnings=warnings,
            description=description,
            places=places,
        )


class KnownSchemas:
    """The schemas of one format, by a cheap key from its files."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._known: dict[Hashable, KnownSchema] = {}
        self._most_bytes = most_bytes
        self._bytes = 0

    def get(self, key: Hashable, build: Callable[[], KnownSchema]) -> KnownSchema:
        """Return the schema known by this key, which is built where it is not known yet."""
        known = self._known.get(key)
        if known is None:
            known = build()
            self._bytes += len(known.json)
            if self._bytes > self._most_bytes:
                self._known.clear()
                self._bytes = len(known.json)
            self._known[key] = known
        return known


def leaves_of(schema: Schema) -> Iterator[tuple[str, FieldType]]:
    """Yield everything of a schema that holds values itself, with its path, depth first."""
    for field in schema.fields:
        yield from _leaves(field, _quoted(field.name))


def _leaves(node: FieldType, path: str) -> Iterator[tuple[str, FieldType]]:
    inner = [
        *((member, f"{path}.{_quoted(member.name)}") for member in node.fields),
        (node.items, f"{path}[]"),
        (node.key, f"{path}{{key}}"),
        (node.value, f"{path}{{value}}"),
        *((branch, f"{path}<{index}>") for index, branch in enumerate(node.branches)),
    ]
    children = [(child, where) for child, where in inner if child is not None]
    if not children and node.type is not TypeName.STRUCT:
        yield path, node
    for child, where in children:
        yield from _leaves(child, where)


def _quoted(name: str) -> str:
    """Spell a name as paths of changes do; one that could be read as a path is put in `` ` ``."""
    if name.strip() == name and _PATH_MARKS.isdisjoint(name):
        return name
    return "`" + name.replace("`", "``") + "`"
