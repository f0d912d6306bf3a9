"""What a catalog's server says of a request that it refuses, fit to be shown to people."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Final

import orjson

from lumos.core.redaction import MASK, PROCESS_SECRETS, SHORTEST_EXACT_SECRET

if TYPE_CHECKING:
    from pydantic import JsonValue

LONGEST: Final = 300
_LARGEST_ANSWER: Final = 100_000
_KEYS: Final = ("message", "errorMessage", "error", "exception", "detail", "title", "errors")
"""Where servers write it: OpenMetadata, Atlas, DataHub, then common ones."""
_ECHO: Final = re.compile(r"""\{\s*["\\]|\[\s*\{|\(?\[Source:|\bat \[""")
"""Where a message begins to repeat the request, which may hold values of data."""


def server_message(content: bytes, content_type: str, *, secrets: Collection[str] = ()) -> str:
    """Return the message within an answer in JSON, in one short line; empty where there is none.

    Secrets are masked, and what repeats the request is cut off.

    Args:
        content: the body of the answer.
        content_type: its media type, without parameters.
        secrets: what was sent with the request and must not be shown, such as a token.
    """
    is_json = content_type == "application/json" or content_type.endswith("+json")
    if not is_json or len(content) > _LARGEST_ANSWER:
        return ""
    try:
        found = _text_in(orjson.loads(content))
    except orjson.JSONDecodeError:
        return ""
    line = " ".join("".join(char if char.isprintable() else " " for char in found).split())
    for secret in secrets:
        if len(secret) >= SHORTEST_EXACT_SECRET:
            line = line.replace(secret, MASK)
    line = PROCESS_SECRETS.redact(line)
    if echo := _ECHO.search(line):
        line = f"{line[: echo.start()].rstrip(' :,')}…"
    shown = line if len(line) <= LONGEST else f"{line[:LONGEST].rstrip()}…"
    return shown.rstrip(".") if shown != "…" else ""


def _text_in(answer: JsonValue) -> str:
    match answer:
        case str():
            return answer
        case [first, *_]:
            return _text_in(first)
        case dict():
            return next((text for key in _KEYS if (text := _text_in(answer.get(key)))), "")
    return ""
