"""What the type mappings of all formats share: the parts of a type, and how large one may be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypedDict

from lumos.core.errors import UnreadableItemError

if TYPE_CHECKING:
    from lumos.core.models import Field, FieldType, TimeUnit, TypeName

MAX_DEPTH: Final = 64
"""As deep as the canonical model allows types to be nested."""
MAX_NODES: Final = 100_000


class TypeParts(TypedDict, total=False):
    """The keywords of a canonical type, before it is a field, an item or a branch."""

    type: TypeName
    native_type: str
    precision: int
    scale: int
    length: int
    unit: TimeUnit
    timezone: str
    symbols: tuple[str, ...]
    fields: tuple[Field, ...]
    items: FieldType
    key: FieldType
    value: FieldType
    branches: tuple[FieldType, ...]


class SchemaSize:
    """Counts the nodes of one schema and refuses a schema without end."""

    def __init__(self) -> None:
        self._nodes = 0

    def count(self, path: str, depth: int) -> None:
        """Count one more node.

        Raises:
            UnreadableItemError: the schema is nested too deeply or has too many fields.
        """
        self._nodes += 1
        if depth > MAX_DEPTH:
            column = path.split(".", 1)[0].split("[", 1)[0] or "the schema"
            raise UnreadableItemError(
                f"its schema is nested deeper than {MAX_DEPTH} levels, in {column}",
                hint="flatten the column, or leave the file out with: exclude",
            )
        if self._nodes > MAX_NODES:
            raise UnreadableItemError(
                f"its schema has more than {MAX_NODES:,} fields",
                hint="leave the file out with: exclude",
            )
