"""Comparisons that several detectors share: sets of names, and bags of JSON values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from lumos.core.changes.finding import Finding
from lumos.core.changes.text import quoted
from lumos.core.models.base import canonical_json

if TYPE_CHECKING:
    from pydantic import JsonValue

T = TypeVar("T")

SENSITIVE_WORDS = frozenset(
    {
        "confidential",
        "gdpr",
        "hipaa",
        "pci",
        "personal",
        "phi",
        "pii",
        "restricted",
        "secret",
        "sensitive",
    }
)
"""Words in a tag that say that data must be protected."""

_DENIALS = frozenset({"no", "non", "not"})
_WORDS = re.compile(r"[\W_]+")


def name_findings(
    old: Iterable[str], new: Iterable[str], *, rule: str, path: str = ""
) -> Iterator[Finding]:
    """Yield `<rule>.added` and `<rule>.removed` for names that only one side has."""
    before, after = set(old), set(new)
    for name in before - after:
        yield Finding(f"{_kind(rule, name)}.removed", path, old=name, subject=quoted(name))
    for name in after - before:
        yield Finding(f"{_kind(rule, name)}.added", path, new=name, subject=quoted(name))


def is_sensitive(tag: str) -> bool:
    """Return whether a tag names data that must be protected, such as `pii.email` or `GDPR`."""
    words = {word for word in _WORDS.split(tag.casefold()) if word}
    return not words.isdisjoint(SENSITIVE_WORDS) and words.isdisjoint(_DENIALS)


def _kind(rule: str, name: str) -> str:
    return "tag.sensitive" if rule == "tag" and is_sensitive(name) else rule


def same_json(old: JsonValue, new: JsonValue) -> bool:
    """Compare as JSON does: `1`, `1.0` and `true` are equal in Python and differ here."""
    return canonical_json(old) == canonical_json(new)


def only_in_one(
    old: Sequence[tuple[bytes, T]], new: Sequence[tuple[bytes, T]]
) -> tuple[list[T], list[T]]:
    """Return what is left of two bags, in the order of their keys, once equals are paired off."""
    if not old and not new:
        return [], []
    return _minus(old, new), _minus(new, old)


def _minus(items: Sequence[tuple[bytes, T]], others: Sequence[tuple[bytes, T]]) -> list[T]:
    paired = Counter(key for key, _ in others)
    left = []
    for key, item in sorted(items, key=lambda pair: pair[0]):
        if paired[key]:
            paired[key] -= 1
        else:
            left.append(item)
    return left
