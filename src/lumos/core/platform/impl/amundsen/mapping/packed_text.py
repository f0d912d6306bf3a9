"""JSON documents as text that any text column of Amundsen keeps unharmed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lumos.core.errors import InvalidModelError, PlatformAnswerError
from lumos.core.platform import stash

if TYPE_CHECKING:
    from pydantic import JsonValue

_LONGEST_PIECE = 60_000  # a TEXT of MySQL holds 65,535 bytes


def packed(document: JsonValue) -> tuple[str, ...]:
    """Return a document in pieces of ASCII text, each short enough for one row."""
    text = stash.packed(document)
    if not text.isascii():
        text = stash.packed(document, plain_bytes=0)
    starts = range(0, len(text), _LONGEST_PIECE)
    return tuple(text[start : start + _LONGEST_PIECE] for start in starts)


def unpacked(pieces: Iterable[str]) -> JsonValue:
    """Return the document of its pieces in order.

    Raises:
        PlatformAnswerError: a piece is missing or was changed.
    """
    try:
        return stash.unpacked("".join(pieces))
    except InvalidModelError:
        raise PlatformAnswerError(
            "what Lumos keeps in Amundsen was changed or is incomplete",
            hint="restore the programmatic descriptions whose source begins with lumos-",
        ) from None
