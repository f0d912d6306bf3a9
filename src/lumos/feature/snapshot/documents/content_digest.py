"""The SHA-256 of what a one-document snapshot says, however its JSON is laid out.

Indentation, line ends, the order of keys, escapes in strings and the spelling of numbers (`1.0` or
`1`) do not count, so a document that a JSON tool rewrote still has its digest. Everything else
does: the head, each item and the order of items in a list.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import orjson

from lumos.core.models.base import canonical_json
from lumos.core.models.snapshot import CHECKSUMS
from lumos.core.store.snapshots.part_format import SECTIONS

if TYPE_CHECKING:
    from pydantic import JsonValue

_WHOLE_NUMBER = re.compile(rb"(?:\.0|e\d+)[,}\]]")
"""Ends every whole number that is spelt as a float; some texts match it too."""
_SMALLEST: Final = -(1 << 63)
_BEYOND_LARGEST: Final = 1 << 64


class ContentDigest:
    """Takes the items of a document, section by section, in the order of each section."""

    def __init__(self) -> None:
        self._sections = {section: hashlib.sha256() for section in SECTIONS}
        self._present: set[str] = set()

    def open(self, section: str) -> None:
        """Note that the document has a section, which may be empty."""
        self._present.add(section)

    def add(self, section: str, item: bytes) -> None:
        """Add the canonical JSON of an item; of a map an object of one key, sorted by it."""
        self._present.add(section)
        text = spelt_alike(item)
        self._sections[section].update(b"%d:" % len(text))
        self._sections[section].update(text)

    def result(self, head: Mapping[str, JsonValue]) -> str:
        """Return the digest of the items and of all other keys of the document."""
        rest = {
            name: value
            for name, value in head.items()
            if name not in CHECKSUMS and name not in self._present
        }
        sections = {name: self._sections[name].hexdigest() for name in sorted(self._present)}
        whole = spelt_alike(canonical_json(rest)) + canonical_json(sections)
        return hashlib.sha256(whole).hexdigest()


def spelt_alike(text: bytes) -> bytes:
    """Return canonical JSON in which whole numbers have no fraction and no exponent."""
    if not _WHOLE_NUMBER.search(text) and not text.endswith(b".0"):
        return text
    return canonical_json(_with_integers(orjson.loads(text)))


def _with_integers(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {name: _with_integers(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_with_integers(each) for each in value]
    if (
        isinstance(value, float)
        and value.is_integer()
        and _SMALLEST <= value < _BEYOND_LARGEST  # what orjson reads as an integer
    ):
        return int(value)
    return value
