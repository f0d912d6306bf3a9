"""What words a name or a sentence is found by; the same on every database engine."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache

LONGEST_WORD = 64
_ASCII_RUN = re.compile(r"[A-Za-z0-9_]+")
_PIECE = re.compile(r"[^_]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD_CATEGORIES = frozenset("LNM")
_FIRST_ACCENT, _LAST_ACCENT = "\u0300", "\u036f"


@lru_cache(maxsize=4096)
def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a text in lower case, without accents.

    `customer_id` and `customerId` give `customer`, `id` and `customerid`, so that each of the
    ways in which people type such a name finds it.
    """
    words: list[str] = []
    for run in _runs(text):
        pieces = [part for piece in _PIECE.findall(run) for part in _HUMP.split(piece)]
        folded = [piece.casefold() for piece in pieces]
        words += [word[:LONGEST_WORD] for word in folded]
        if len(folded) > 1:
            words.append("".join(folded)[:LONGEST_WORD])
    return tuple(words)


def query_words(text: str) -> tuple[str, ...]:
    """Return the words that all have to be found; each stands for all words it begins."""
    words: dict[str, None] = {}
    for run in _runs(text):
        for piece in _PIECE.findall(run):
            # Somebody who types `customerId` may know the column as `customer_id`; somebody who
            # types `iPhone` means one word. Both are found by the joined form.
            words[piece.casefold()[:LONGEST_WORD]] = None
    return tuple(words)


def distinct_words(texts: Iterable[str | None]) -> list[str]:
    """Return the words of all the texts, each once."""
    return list(dict.fromkeys(word for text in texts if text for word in words_of(text)))


def name_key(text: str) -> str:
    """Return what two spellings of the same name have in common."""
    return "".join(query_words(text))[:LONGEST_WORD]


def _runs(text: str) -> Iterator[str]:
    """Yield the longest runs of letters, digits, marks, symbols and `_`."""
    if text.isascii():
        yield from _ASCII_RUN.findall(text)
        return
    plain = unicodedata.normalize("NFKD", text.encode("utf-8", "replace").decode())
    plain = "".join(char for char in plain if not _FIRST_ACCENT <= char <= _LAST_ACCENT)
    plain = unicodedata.normalize("NFKC", plain)
    yield from "".join(char if _is_word(char) else " " for char in plain).split()


def _is_word(char: str) -> bool:
    category = unicodedata.category(char)
    return char == "_" or category[0] in _WORD_CATEGORIES or category == "So"
