"""Typed access to parsed JSON: a missing key is fine, a value of another type is not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lumos.core.errors import UnreadableItemError
from lumos.core.strict_json import shown_key

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json


def as_object(value: JsonValue, what: str) -> Json:
    """Return a JSON object, an empty one for null.

    Raises:
        UnreadableItemError: it is something else.
    """
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _odd(what, "an object")
    return value


def object_at(node: Json, key: str) -> Json:
    return as_object(node.get(key), key)


def list_at(node: Json, key: str) -> list[JsonValue]:
    value = node.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise _odd(key, "a list")
    return value


def text_at(node: Json, key: str) -> str | None:
    """Return a text that is not empty, or None."""
    value = node.get(key)
    if value is None:
        return None
    if not isinstance(value, str):
        raise _odd(key, "text")
    return value or None


def texts_at(node: Json, key: str) -> list[str]:
    """Return a list of texts; dbt takes a single one in place of a list."""
    value = node.get(key)
    texts: Sequence[JsonValue] = [value] if isinstance(value, str) else list_at(node, key)
    for text in texts:
        if not isinstance(text, str):
            raise _odd(key, "a list of texts")
    return [text for text in texts if isinstance(text, str) and text]


def flag_at(node: Json, key: str, *, default: bool) -> bool:
    value = node.get(key)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise _odd(key, "true or false")
    return value


def shown(name: str) -> str:
    """Return a name for reports; code points that are no characters are spelled out."""
    return name.encode("utf-8", "backslashreplace").decode()


def _odd(key: str, expected: str) -> UnreadableItemError:
    return UnreadableItemError(
        f"{shown(shown_key(key))} is not {expected}",
        hint="write the artifact again with: dbt docs generate",
    )
