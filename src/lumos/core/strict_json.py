"""JSON from outside: no key twice in one object, and not more values than memory is meant for.

orjson takes the last of two equal keys without a word. That text has none is known at once where
writing the parsed value gives the same bytes, or as many colons: each key has one, and a colon in
a string stays one unless it is spelt by an escape. Only other text is parsed again by the standard
library, which shows every key.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final, TypeVar

import orjson

LARGEST_ITEM_BYTES: Final = 32 * 1024 * 1024
"""The longest JSON text of one item of a snapshot, such as a dataset."""
MOST_ITEM_VALUES: Final = 2_000_000
"""How many JSON values one item may have; each takes some hundred bytes of memory."""
_LONGEST_KEY_SHOWN: Final = 60
V = TypeVar("V")


class DuplicateKeyError(ValueError):
    """A JSON object has one key twice."""

    def __init__(self, key: str) -> None:
        super().__init__(f"the key {shown_key(key)} is there twice in one object")
        self.key = key


def shown_key(key: str) -> str:
    """Return a key for messages: quoted, escaped, and not longer than a line."""
    short = key if len(key) <= _LONGEST_KEY_SHOWN else f"{key[:_LONGEST_KEY_SHOWN]}…"
    return json.dumps(short)


def unique_pairs(pairs: list[tuple[str, V]]) -> dict[str, V]:
    """Return the object of some pairs: an `object_pairs_hook` that takes no key twice.

    Raises:
        DuplicateKeyError: a key is there twice.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        raise DuplicateKeyError(_repeated(key for key, _ in pairs))
    return found


def parsed_unique(text: bytes) -> object:
    """Parse JSON in which no object has a key twice.

    Raises:
        DuplicateKeyError: an object has.
        ValueError: it is not JSON, or has more values than one item may have.
    """
    require_few_values(text)
    value: object = orjson.loads(text)
    require_unique(text, value)
    return value


def require_unique(text: bytes, value: object) -> None:
    """Check that `text`, of which `value` was parsed, has no key twice in one object.

    Raises:
        DuplicateKeyError: it has.
    """
    try:
        written = orjson.dumps(value)
    except TypeError:  # nested deeper than orjson writes
        written = b""
    if written != text:
        require_all_keys(text, written)


def require_all_keys(text: bytes | str, written: bytes) -> None:
    """Check the same for JSON that was written from the parsed value, in any order of keys.

    Raises:
        DuplicateKeyError: `text` has a key twice in one object.
    """
    if _colons(text) == written.count(b":"):
        return
    try:
        json.loads(text, object_pairs_hook=unique_pairs)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def require_few_values(text: bytes, *, most: int = MOST_ITEM_VALUES) -> None:
    """Refuse text of so many tiny values that they would take many times its size.

    Raises:
        ValueError: it has more than `most`.
    """
    if len(text) > most and sum(map(text.count, (b",", b"[", b"{"))) > most:
        raise ValueError(f"it has more than {most:,} values")


def _colons(text: bytes | str) -> int | None:
    """Count the colons, or return None where some may be spelt by an escape."""
    if isinstance(text, str):
        return None if "\\" in text and "\\u" in text else text.count(":")
    return None if b"\\" in text and b"\\u" in text else text.count(b":")


def _repeated(keys: Iterable[str]) -> str:
    seen: set[str] = set()
    for key in keys:
        if key in seen:
            return key
        seen.add(key)
    return ""
