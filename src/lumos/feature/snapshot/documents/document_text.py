"""Reads a one-document snapshot piece by piece, of any author and layout."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import orjson

from lumos.core.errors import InvalidModelError
from lumos.core.store.snapshots.part_format import SECTIONS
from lumos.core.store.snapshots.snapshot_sections import MAP_SECTIONS
from lumos.core.strict_json import (
    LARGEST_ITEM_BYTES,
    MOST_ITEM_VALUES,
    DuplicateKeyError,
    require_all_keys,
)

if TYPE_CHECKING:
    from pydantic import JsonValue

_BLOCK = 1 << 20
_SPACE = re.compile(r"[ \t\n\r]*")
_NEAR_END = 16
_UNTERMINATED = "Unterminated string"


class Piece(NamedTuple):
    """A value of the document: an item of a section, or all that stands under a key."""

    key: str
    value: JsonValue
    line: bytes | None = None
    """Of an item, its JSON on one line."""


class DocumentText:
    """The text of a JSON document, of which no more than one value and a block are held."""

    def __init__(self, stream: BinaryIO, where: str) -> None:
        self._stream = stream
        self._where = where
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._text = ""
        self._place = 0
        self._ended = False
        self._whole = False
        self._lines_before = 0
        self._head_size = 0
        self._length = 0
        self._line = b""
        self._scan = json.JSONDecoder().raw_decode

    @property
    def is_json(self) -> bool:
        """Whether all of it was read, and is JSON."""
        return self._whole

    def pieces(self) -> Iterator[Piece]:
        """Yield all that the document holds, in its own order; nothing where it is no object.

        Items of sections come one by one, entries of maps as objects of one key. A section that
        is neither a list nor, for the maps, an object comes whole.

        Raises:
            InvalidModelError: the document is not JSON.
        """
        if self._peek() != "{":
            self._value()
            self._end()
            return
        for key in self._distinct_keys():
            opening = self._peek()
            if key in MAP_SECTIONS and opening == "{":
                for name in self._keys():
                    value = self._value()
                    yield Piece(key, {name: value}, raw_line({name: value}))
            elif key in SECTIONS and key not in MAP_SECTIONS and opening == "[":
                yield Piece(key, [])
                for _ in self._members("[", "]"):
                    yield Piece(key, self._value(), self._line)
            else:
                value = self._value()
                self._count_head(len(key) + self._length)
                yield Piece(key, value)
        self._end()

    def _distinct_keys(self) -> Iterator[str]:
        seen: set[str] = set()
        for key in self._keys():
            if key in seen:
                raise self._refused(str(DuplicateKeyError(key)))
            seen.add(key)
            yield key

    def _count_head(self, size: int) -> None:
        """Refuse a document that says endlessly much beside its items, all of which is held."""
        self._head_size += size
        if self._head_size > LARGEST_ITEM_BYTES:
            raise self._refused(f"more than {LARGEST_ITEM_BYTES:,} characters are no items")

    def _keys(self) -> Iterator[str]:
        for _ in self._members("{", "}"):
            if self._peek() != '"':
                raise self._not_json()
            key = str(self._value())
            self._expect(":")
            yield key

    def _members(self, opening: str, closing: str) -> Iterator[None]:
        """Yield before each member of a list or object."""
        self._expect(opening)
        if self._peek() == closing:
            self._place += 1
            return
        while True:
            yield
            if self._peek() == closing:
                self._place += 1
                return
            self._expect(",")

    def _value(self) -> JsonValue:
        self._peek()
        while True:
            try:
                _, end = self._scan(self._text, self._place)
            except json.JSONDecodeError as error:
                near_end = error.pos + _NEAR_END >= len(self._text)
                if (near_end or error.msg.startswith(_UNTERMINATED)) and self._fill():
                    continue
                raise self._not_json(error.pos) from None
            except (RecursionError, ValueError):
                raise self._not_json() from None
            if end + _NEAR_END < len(self._text) or not self._fill():  # else a number may go on
                break
        self._length = end - self._place
        self._refuse_long(self._length)
        text = self._text[self._place : end]
        try:
            value: JsonValue = orjson.loads(text)
            self._line = raw_line(value)
            require_all_keys(text, self._line)
        except DuplicateKeyError as error:
            raise self._refused(str(error)) from None
        except (ValueError, UnicodeEncodeError):  # what Python reads and JSON does not allow
            raise self._not_json() from None
        self._place = end
        return value

    def _peek(self) -> str:
        """Pass over space and return the next character, or nothing at the end."""
        while True:
            found = _SPACE.match(self._text, self._place)
            self._place = found.end() if found else self._place
            if self._place < len(self._text):
                return self._text[self._place]
            if not self._fill():
                return ""

    def _expect(self, character: str) -> None:
        if self._peek() != character:
            raise self._not_json()
        self._place += 1

    def _end(self) -> None:
        if self._peek():
            raise self._not_json()
        self._whole = True

    def _fill(self) -> bool:
        """Read on, twice as much each time, and let go of what was passed."""
        if self._ended:
            return False
        rest = self._text[self._place :]
        self._refuse_long(len(rest))
        if len(rest) > MOST_ITEM_VALUES and sum(map(rest.count, ",[{")) > MOST_ITEM_VALUES:
            raise self._refused(f"a value holds more than {MOST_ITEM_VALUES:,} values")
        block = self._stream.read(max(_BLOCK, len(rest)))
        self._lines_before += self._text.count("\n", 0, self._place)
        self._ended = not block
        try:
            self._text = rest + self._decoder.decode(block, final=self._ended)
        except UnicodeDecodeError:
            raise InvalidModelError(f"{self._where} is not JSON: it is no UTF-8") from None
        self._place = 0
        return True

    def _refuse_long(self, length: int) -> None:
        if length > LARGEST_ITEM_BYTES:
            raise self._refused(f"a value is longer than {LARGEST_ITEM_BYTES:,} characters")

    def _refused(self, reason: str) -> InvalidModelError:
        line = self._lines_before + self._text.count("\n", 0, self._place) + 1
        return InvalidModelError(
            f"{self._where} is no snapshot: in what begins at line {line}, {reason}",
            hint="a snapshot is what lumos export --output FILE writes",
        )

    def _not_json(self, place: int | None = None) -> InvalidModelError:
        at = self._place if place is None else place
        line = self._lines_before + self._text.count("\n", 0, at) + 1
        column = at - self._text.rfind("\n", 0, at)
        return InvalidModelError(
            f"{self._where} is not JSON: line {line}, column {column}",
            hint="a snapshot is what lumos export --output FILE writes",
        )


def raw_line(item: JsonValue) -> bytes:
    """Write an item unchanged, with its order of keys: problems are reported in that order."""
    try:
        return orjson.dumps(item)
    except TypeError:  # nested deeper than orjson writes, though not than it reads
        return json.dumps(item, separators=(",", ":")).encode()
