"""What Atlas says of a relation in its answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lumos.core.json_reading import Json


def is_live(related: Json) -> bool:
    """Return whether neither a related entity nor the relation to it is deleted."""
    return "DELETED" not in (related.get("entityStatus"), related.get("relationshipStatus"))
