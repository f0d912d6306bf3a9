"""Names as Atlas takes them, and the way back."""

from __future__ import annotations

import re
from hashlib import sha256
from urllib.parse import quote

TAG_PREFIX = "lumos_tag_"
TERM_PREFIX = "lumos_term_"
BUILT_IN_TYPES = frozenset({
    "boolean", "byte", "short", "int", "long", "float", "double",
    "biginteger", "bigdecimal", "string", "date", "objectid",
})  # fmt: skip
"""Types of values: no list of types names them, and no classification may have their names."""
LONGEST_TEXT = 30_000
"""Bytes of text in an attribute; the index of Atlas takes no word of more than 32,766."""
_CLASSIFICATION = re.compile(r"[A-Za-z][A-Za-z0-9_ .]*\Z")
_LONGEST_NAME = 200
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff]")
_NOT_IN_TERMS = re.compile(r"[.@\x00-\x1f]")


def shown_text(value: str) -> str:
    """Return text that the index of Atlas takes: no control characters, not too long."""
    clean = _CONTROL.sub("\ufffd", value)
    if len(clean) * 4 <= LONGEST_TEXT:
        return clean
    return clean.encode()[:LONGEST_TEXT].decode(errors="ignore")


def classification_name(tag: str, *, taken: frozenset[str] = frozenset()) -> str:
    """Return the type name of a tag: its own where Atlas takes it and no other type has it."""
    plain = (
        _CLASSIFICATION.match(tag) is not None
        and tag == tag.strip()
        and len(tag) <= _LONGEST_NAME
        and not tag.startswith("lumos_")
        and tag not in taken
    )
    return tag if plain else f"{TAG_PREFIX}{_digest(tag)}"


def term_name(term: str) -> str:
    """Return the name of a glossary term: its own where Atlas takes it."""
    plain = (
        _NOT_IN_TERMS.search(term) is None
        and term == term.strip()
        and len(term) <= _LONGEST_NAME
        and not term.startswith(TERM_PREFIX)
    )
    return term if plain else f"{TERM_PREFIX}{_digest(term)}"


def column_key(urn: str, name: str) -> str:
    """Return the qualified name of a column."""
    return f"{urn}#{quote(name, safe='')}"


def entity_key(kind: str, *parts: str) -> str:
    """Return the qualified name of something that is no dataset."""
    return f"lumos:{kind}:{'|'.join(quote(part, safe='/:') for part in parts)}"


def _digest(name: str) -> str:
    return sha256(name.encode()).hexdigest()[:20]
