"""How canonical models become text in a column, and text becomes models again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

import orjson

from lumos.core.errors import InvalidModelError, StateError
from lumos.core.models.base import CanonicalModel, canonical_json
from lumos.core.models.urn import LONGEST_URN

if TYPE_CHECKING:
    from lumos.core.json_reading import Json

M = TypeVar("M", bound=CanonicalModel)
LONGEST_KEY = LONGEST_URN
CLOCK_SLACK = timedelta(minutes=5)
"""So far the clocks of machines that share a state may differ."""
END_OF_TIME = "9999"
"""Sorts after every time that `as_moment` returns."""


def stored_text(document: object) -> str:
    """Return a document as the text that is stored: canonical JSON.

    Raises:
        InvalidModelError: the document holds something that JSON cannot.
    """
    try:
        return canonical_json(document).decode()
    except orjson.JSONEncodeError as error:
        raise InvalidModelError(f"cannot be written as JSON: {error}") from None


def stored_object(text: str | bytes) -> Json:
    """Read stored text as the JSON object it was made from.

    Raises:
        StateError: the text is damaged.
    """
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError:
        document = None
    if not isinstance(document, dict):
        raise StateError("a stored document is damaged", hint="import the latest snapshot anew")
    return document


def as_model(kind: type[M], text: str) -> M:
    """Read stored text as the model it was made from."""
    return kind.from_json(stored_object(text))


def as_moment(at: datetime) -> str:
    """Return a time as text that sorts by time."""
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def checked_key(name: str) -> str:
    """Return a name that is used as a key, unless it is longer than an index can hold.

    Raises:
        InvalidModelError: the name is too long.
    """
    if len(name.encode("utf-8", "replace")) > LONGEST_KEY:
        raise InvalidModelError(
            f"a name of more than {LONGEST_KEY:,} bytes cannot be stored; it begins {name[:80]!r}"
        )
    return name
