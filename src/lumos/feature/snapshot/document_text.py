"""Reading any one-document snapshot piece by piece, whoever wrote it and however it is set."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import orjson

from lumos.core.errors import InvalidModelError
from lumos.core.store.part_format import SECTIONS
from lumos.core.store.snapshot_sections import MAP_SECTIONS

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
    is_item: bool


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
        for key in self._keys():
            opening = self._peek()
            if key in MAP_SECTIONS and opening == "{":
                for name in self._keys():
                    yield Piece(key, {name: self._value()}, True)
            elif key in SECTIONS and key not in MAP_SECTIONS and opening == "[":
                yield Piece(key, [], False)
                for _ in self._members("[", "]"):
                    yield Piece(key, self._value(), True)
            else:
                yield Piece(key, self._value(), False)
        self._end()

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
        try:
            value: JsonValue = orjson.loads(self._text[self._place : end])
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
        block = self._stream.read(max(_BLOCK, len(rest)))
        self._lines_before += self._text.count("\n", 0, self._place)
        self._ended = not block
        try:
            self._text = rest + self._decoder.decode(block, final=self._ended)
        except UnicodeDecodeError:
            raise InvalidModelError(f"{self._where} is not JSON: it is no UTF-8") from None
        self._place = 0
        return True

    def _not_json(self, place: int | None = None) -> InvalidModelError:
        at = self._place if place is None else place
        line = self._lines_before + self._text.count("\n", 0, at) + 1
        column = at - self._text.rfind("\n", 0, at)
        return InvalidModelError(
            f"{self._where} is not JSON: line {line}, column {column}",
            hint="a snapshot is what lumos export --output FILE writes",
        )
