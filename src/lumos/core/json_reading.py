"""Checked access to parsed JSON, in place of a `cast` that only silences the type checker.

Use it for JSON that somebody else wrote: a server, a file, an older Lumos. There are two families.

`as_…(value, where)` and `…_at(node, key)` are strict. Null and a missing key count as nothing: an
empty object or list, or None. A value of any other type raises `UnexpectedJsonError`, which names
the place and never the value. Use them wherever "nothing" would be a wrong answer: a list of
columns that cannot be read must not look like a table without columns.

`find_…(node, *keys)`, `…_or_empty`, `…_or_none` and `…_among` are lenient: whatever is of another
type is left out. Use them for what a reader can do without, such as a label in a search result.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lumos.core.errors import UnexpectedJsonError
from lumos.core.strict_json import shown_key

if TYPE_CHECKING:
    from pydantic import JsonValue

Json = dict[str, "JsonValue"]
"""A JSON object."""


def as_object(value: JsonValue, where: str) -> Json:
    """Return a JSON object, an empty one for null.

    Raises:
        UnexpectedJsonError: it is something else.
    """
    if isinstance(value, dict):
        return value
    if value is None:
        return {}
    raise _unexpected(where, "an object")


def as_list(value: JsonValue, where: str) -> list[JsonValue]:
    """Return a JSON list, an empty one for null.

    Raises:
        UnexpectedJsonError: it is something else.
    """
    if isinstance(value, list):
        return value
    if value is None:
        return []
    raise _unexpected(where, "a list")


def as_objects(value: JsonValue, where: str) -> list[Json]:
    """Return a list of JSON objects, an empty one for null.

    Raises:
        UnexpectedJsonError: it is something else, or one of its members is.
    """
    given = as_list(value, where)
    members = [member for member in given if isinstance(member, dict)]
    if len(members) != len(given):
        raise _unexpected(where, "a list of objects")
    return members


def as_texts(value: JsonValue, where: str) -> list[str]:
    """Return a list of texts, an empty one for null.

    Raises:
        UnexpectedJsonError: it is something else, or one of its members is.
    """
    given = as_list(value, where)
    members = [member for member in given if isinstance(member, str)]
    if len(members) != len(given):
        raise _unexpected(where, "a list of texts")
    return members


def as_text(value: JsonValue, where: str) -> str | None:
    """Return a text that is not empty, or None.

    Raises:
        UnexpectedJsonError: it is neither text nor null.
    """
    if value is None or isinstance(value, str):
        return value or None
    raise _unexpected(where, "text")


def as_integer(value: JsonValue, where: str) -> int | None:
    """Return a whole number, or None for null; true and false are no numbers.

    Raises:
        UnexpectedJsonError: it is something else.
    """
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise _unexpected(where, "a whole number")


def object_at(node: Mapping[str, JsonValue], key: str) -> Json:
    """Return the object under a key, an empty one where there is none."""
    return as_object(node.get(key), key)


def list_at(node: Mapping[str, JsonValue], key: str) -> list[JsonValue]:
    """Return the list under a key, an empty one where there is none."""
    return as_list(node.get(key), key)


def objects_at(node: Mapping[str, JsonValue], key: str) -> list[Json]:
    """Return the objects of the list under a key, none where there is no list."""
    return as_objects(node.get(key), key)


def texts_at(node: Mapping[str, JsonValue], key: str) -> list[str]:
    """Return the texts of the list under a key, none where there is no list."""
    return as_texts(node.get(key), key)


def named_texts_at(node: Mapping[str, JsonValue], key: str) -> dict[str, str]:
    """Return the object of texts under a key, an empty one where there is none.

    Raises:
        UnexpectedJsonError: it is something else, or one of its values is.
    """
    given = object_at(node, key)
    texts = {name: value for name, value in given.items() if isinstance(value, str)}
    if len(texts) != len(given):
        raise _unexpected(key, "an object of texts")
    return texts


def text_at(node: Mapping[str, JsonValue], key: str) -> str | None:
    """Return the text under a key, None where there is none or it is empty."""
    return as_text(node.get(key), key)


def integer_at(node: Mapping[str, JsonValue], key: str) -> int | None:
    """Return the whole number under a key, None where there is none."""
    return as_integer(node.get(key), key)


def flag_at(node: Mapping[str, JsonValue], key: str, *, default: bool = False) -> bool:
    """Return true or false under a key.

    Raises:
        UnexpectedJsonError: it is something else.
    """
    value = node.get(key)
    if value is None:
        return default
    if isinstance(value, bool):
        return value
    raise _unexpected(key, "true or false")


def required_text_at(node: Mapping[str, JsonValue], key: str) -> str:
    """Return the text under a key.

    Raises:
        UnexpectedJsonError: it is missing, empty or something else.
    """
    value = node.get(key)
    if isinstance(value, str) and value:
        return value
    raise _unexpected(key, "text")


def required_integer_at(node: Mapping[str, JsonValue], key: str) -> int:
    """Return the whole number under a key.

    Raises:
        UnexpectedJsonError: it is missing or something else.
    """
    value = integer_at(node, key)
    if value is None:
        raise _unexpected(key, "a whole number")
    return value


def object_or_empty(value: object) -> Json:
    """Return a JSON object; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def list_or_empty(value: object) -> list[JsonValue]:
    """Return a JSON list; an empty one for anything else."""
    return value if isinstance(value, list) else []


def objects_among(value: object) -> list[Json]:
    """Return the objects of a JSON list; none for anything else."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def texts_among(value: object) -> list[str]:
    """Return the texts of a JSON list; none for anything else."""
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def text_or_none(value: object) -> str | None:
    """Return a text that is not empty; None for anything else."""
    return value if isinstance(value, str) and value else None


def find_value(node: JsonValue, *keys: str) -> JsonValue:
    """Return the value under a key, and under a key of that, and so on; None if one is missing."""
    for key in keys:
        if not isinstance(node, dict):
            return None
        node = node.get(key)
    return node


def find_object(node: JsonValue, *keys: str) -> Json:
    """Return the object under some keys; an empty one where there is none."""
    return object_or_empty(find_value(node, *keys))


def find_objects(node: JsonValue, *keys: str) -> list[Json]:
    """Return the objects of the list under some keys; none where there is no list."""
    return objects_among(find_value(node, *keys))


def find_text(node: JsonValue, *keys: str) -> str | None:
    """Return the text under some keys; None where there is none or it is empty."""
    return text_or_none(find_value(node, *keys))


def find_texts(node: JsonValue, *keys: str) -> list[str]:
    """Return the texts of the list under some keys; none where there is no list."""
    return texts_among(find_value(node, *keys))


def _unexpected(where: str, expected: str) -> UnexpectedJsonError:
    return UnexpectedJsonError(f"{shown_key(where)} is not {expected}")
