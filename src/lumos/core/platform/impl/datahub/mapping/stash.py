"""Where DataHub keeps the one text of what it has no place for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lumos.core.errors import InvalidModelError
from lumos.core.platform.stash import STASH_KEY, packed
from lumos.core.platform.stash import unpacked as _unpacked

if TYPE_CHECKING:
    from pydantic import JsonValue

__all__ = ["KEY", "packed", "unpacked", "without_stash"]

KEY: Final = STASH_KEY


def unpacked(text: JsonValue) -> JsonValue:
    """Return the document of a text, or None where it is none that Lumos wrote."""
    if not isinstance(text, str):
        return None
    try:
        return _unpacked(text)
    except InvalidModelError:
        return None


def without_stash(aspect: JsonValue) -> JsonValue:
    """Return an aspect without the text that Lumos keeps in its properties."""
    custom = aspect.get("customProperties") if isinstance(aspect, dict) else None
    if not isinstance(aspect, dict) or not isinstance(custom, dict) or KEY not in custom:
        return aspect
    return {**aspect, "customProperties": {name: custom[name] for name in custom if name != KEY}}
