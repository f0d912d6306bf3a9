"""Reading JSON that a server sent, of which no shape is certain."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import JsonValue

    from lumos.core.json_reading import Json


def mapping(value: JsonValue | None) -> Json:
    """Return an object, or an empty one where the value is none."""
    return value if isinstance(value, dict) else {}


def objects(value: JsonValue | None) -> Iterator[Json]:
    """Yield the objects of a list; whatever else the value is, there are none."""
    if isinstance(value, list):
        yield from (item for item in value if isinstance(item, dict))


def text(value: JsonValue | None) -> str | None:
    """Return text that is not empty."""
    return value if isinstance(value, str) and value else None


def texts(value: JsonValue | None) -> list[str]:
    """Return the texts of a list."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def is_live(related: Json) -> bool:
    """Tell whether neither a related entity nor the relation to it is deleted."""
    states = (text(related.get("entityStatus")), text(related.get("relationshipStatus")))
    return "DELETED" not in states
