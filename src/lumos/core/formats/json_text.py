"""Reads the beginning of a JSON file: the records in it and the schema that fits them all."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final, TypeVar

import orjson

from lumos.core.errors import UnreadableItemError
from lumos.core.formats.facts import FileFacts
from lumos.core.formats.json_schema_merge import RecordSchema, big_or_small
from lumos.core.formats.sample import LARGEST_SAMPLE_BYTES, Sample, Text

FORMAT: Final = "json"
MAX_RECORDS: Final = 2_000
"""The most records that are read for the schema, where further ones still change it."""
FIRST_RECORDS: Final = 10
"""How many of the first records are always looked at."""
SPREAD_RECORDS: Final = 30
"""How many more are, from all over the sample; they settle a schema in which they all agree."""
MAX_BROKEN: Final = 100
"""After so many records that are no JSON, a file is given up."""

_BATCH_RECORDS = 50
_MOST_CUTS = 4
_SPACE: Final = re.compile(r"[ \t\r\n\x1e]*")
_TRAILING_COMMA: Final = "a comma stands before the end of its array, which is no JSON"
_NEXT_RECORD: Final = re.compile(r"\n(?=[{\[])")

_Source = TypeVar("_Source")


def read_json(text: Text, *, sample: Sample) -> FileFacts | None:
    """Return the facts of a JSON file by its first records, or None where the sample is too short.

    Records are the lines, the items of one array, or values one after the other.

    Raises:
        UnreadableItemError: the file does not begin as JSON does, or is nested too deeply.
    """
    reading: _Fast | _Careful = _Fast(text)
    try:
        schema, records = _merged(reading)
    except _NotSimpleError:
        reading = _Careful(text)
        schema, records = _merged(reading)
    if records == 0 and not reading.is_empty_array:
        if text.whole or reading.is_broken_at_start:
            raise UnreadableItemError("it is not valid JSON")
        return None
    known = schema.result()
    share = sample.share * reading.share
    return FileFacts(
        format=FORMAT,
        schema=known.schema,
        rows=reading.rows if reading.saw_all(records) else None,
        rows_estimate=round(reading.rows / share) if 0 < share < 1 else reading.rows,
        warnings=(*sample.warnings, *text.warnings, *reading.warnings(records), *known.warnings),
        properties={"encoding": text.encoding, "layout": reading.layout},
        known=known,
    )


def damage_at_end(end: bytes, facts: FileFacts) -> Iterator[str]:
    """Yield what is wrong with the last bytes of a file; of those that are not UTF-8 nothing."""
    if facts.properties["encoding"] != "utf-8":
        return
    is_array = facts.properties["layout"] == "array"
    text = end.decode("utf-8", "replace").rstrip(" \t\r\n\x1e\x00")
    if not text.endswith("]" if is_array else ("}", "]")):
        yield "its end is cut off or damaged"
    elif is_array and text[:-1].rstrip().endswith(","):
        yield _TRAILING_COMMA


def first_record_too_long() -> UnreadableItemError:
    """The reason for a file of which even the largest sample holds no whole record."""
    megabytes = LARGEST_SAMPLE_BYTES // 1024 // 1024
    return UnreadableItemError(
        f"its first record is longer than {megabytes} MB",
        hint="write one record a line, or leave the file out with: exclude",
    )


def _merged(reading: _Fast | _Careful) -> tuple[RecordSchema, int]:
    """The schema of records up to the last one that changed it, and their number."""
    schema = RecordSchema()
    count = 0
    for batch in reading.batches():
        may_settle = count > 0
        count += len(batch)
        told_something = schema.add_all(batch)
        if isinstance(reading, _Careful):
            continue
        if schema.has_huge_numbers:
            raise _NotSimpleError
        if not schema.has_unknown and not (told_something if may_settle else schema.is_uneven):
            break
    return schema, count


class _NotSimpleError(Exception):
    """The text is not of a layout that is read the fast way, or not without loss."""


class _Fast:
    """A walk over lines that hold one record each, or over one value that is all of the text.

    It reads numbers of any size as 64 bits, which the caller that merges them has to notice.
    """

    is_broken_at_start = False

    def __init__(self, text: Text) -> None:
        self._text = text.content
        self._whole = text.whole
        self.layout = "values"
        self.is_empty_array = False
        self.rows = 0
        """How many records the walked part of the text holds, looked at or not."""
        self.share = 1.0
        """The part of the text that was walked over."""

    def saw_all(self, records: int) -> bool:
        return self._whole and records == self.rows

    def warnings(self, records: int) -> list[str]:
        return []

    def batches(self) -> Iterator[list[object]]:
        """Yield the first records, some of the others, and then all of the others.

        Raises:
            _NotSimpleError: the text has to be walked over with care.
        """
        start = _after_space(self._text, 0)
        try:
            if self._text.startswith("[", start):
                items = self._array()
                yield from _few_then_all(items, _same)
            elif self._text.startswith("{", start):
                yield from self._lines(start)
            else:
                raise _NotSimpleError
        except orjson.JSONDecodeError:
            raise _NotSimpleError from None

    def _array(self) -> list[object]:
        """The items of the array that the text is, as far as it goes."""
        self.layout = "array"
        end = len(self._text)
        items: list[object]
        if self._whole:
            items = orjson.loads(self._text)
            self.is_empty_array = not items
        else:
            items, end = self._items_of_cut_array()
        self.share = end / len(self._text)
        self.rows = len(items)
        return items

    def _items_of_cut_array(self) -> tuple[list[object], int]:
        end = len(self._text)
        for _ in range(_MOST_CUTS):
            end = self._text.rfind("}", 0, end)
            if end < 0:
                break
            try:
                return orjson.loads(f"{self._text[: end + 1]}]"), end + 1
            except orjson.JSONDecodeError:
                continue
        raise _NotSimpleError

    def _lines(self, start: int) -> Iterator[list[object]]:
        lines = self._text.split("\n")
        last = lines.pop()
        if self._whole:
            lines.append(last)
        lines = list(filter(None, lines))
        if not lines or not _is_record(lines[0]):
            if not self._whole:
                raise _NotSimpleError
            self.rows = 1
            yield [orjson.loads(self._text)]
            return
        if not _are_records(lines):
            raise _NotSimpleError
        self.layout = "lines" if "\n" in self._text else "values"
        self.rows = len(lines)
        self.share = 1.0 if self._whole else 1 - len(last) / len(self._text)
        yield from _few_then_all(lines, orjson.loads)


class _Careful:
    """A walk over values of any layout, whatever stands between them."""

    def __init__(self, text: Text) -> None:
        self._text = text.content
        self._whole = text.whole
        self._position = _after_space(self._text, 0)
        self._broken = 0
        self._ended_inside = False
        self._more_follows = False
        self._ends_with_comma = False
        self._several_on_lines = False
        self._has_no_number = False
        self._decoder = json.JSONDecoder(
            parse_int=big_or_small, parse_float=lambda _: 0.5, parse_constant=self._no_number
        )
        self.layout = "values"
        self.is_empty_array = False
        self.rows = 0

    @property
    def share(self) -> float:
        """The part of the text that was walked over."""
        return self._position / max(1, len(self._text))

    def saw_all(self, records: int) -> bool:
        damaged = self._ended_inside or self._more_follows or self._broken
        return self._whole and not damaged and self._position >= len(self._text) - 1

    @property
    def is_broken_at_start(self) -> bool:
        return self._broken > 1

    def batches(self) -> Iterator[list[object]]:
        """Yield the records; all of the sample is walked over, as damage in it is counted."""
        items = self._items() if self._text.startswith("[", self._position) else self._values()
        while self.rows < MAX_RECORDS and (batch := list(islice(items, _BATCH_RECORDS))):
            self.rows += len(batch)
            yield batch

    def warnings(self, records: int) -> list[str]:
        found = []
        if self._broken:
            found.append(f"{self._broken} of {records + self._broken} sampled records are no JSON")
        if self._ended_inside:
            found.append(f"it is cut off or damaged after {records} records")
        if self._more_follows:
            found.append("more follows after its first array, which was not read")
        if self._ends_with_comma:
            found.append(_TRAILING_COMMA)
        if self._several_on_lines or (self.layout == "values" and records > 1):
            found.append("its values follow one another, neither in an array nor one a line")
        if self._has_no_number:
            found.append("it holds NaN or Infinity, which are no JSON")
        return found

    def _no_number(self, _constant: str) -> float:
        self._has_no_number = True
        return 0.5

    def _items(self) -> Iterator[object]:
        """The items of the array that the text is, or else the values one after the other."""
        self.layout = "array"
        self._position = _after_space(self._text, self._position + 1)
        if self._text.startswith("]", self._position):
            self.is_empty_array = self._is_at_end(self._position + 1)
        while not self._text.startswith("]", self._position):
            try:
                record, end = self._decoder.raw_decode(self._text, self._position)
            except ValueError:
                self._ended_inside = self._whole
                return
            except RecursionError:
                raise _nested_too_deeply() from None
            yield record
            self._position = _after_space(self._text, end)
            if self._text.startswith(",", self._position):
                self._position = _after_space(self._text, self._position + 1)
                self._ends_with_comma = self._text.startswith("]", self._position)
            elif not self._text.startswith("]", self._position):
                self._ended_inside = self._whole
                return
        if not self._is_at_end(self._position + 1):
            self._more_follows = True

    def _values(self) -> Iterator[object]:
        broken_at_end = 0
        lines = 0
        while self._position < len(self._text) and self._broken < MAX_BROKEN:
            try:
                record, end = self._decoder.raw_decode(self._text, self._position)
            except ValueError:
                following = _NEXT_RECORD.search(self._text, self._position)
                self._broken += 1
                broken_at_end += 1
                if following is None:
                    break
                self._position = following.end()
                continue
            except RecursionError:
                raise _nested_too_deeply() from None
            yield record
            broken_at_end = 0
            following_value = _after_space(self._text, end)
            lines += "\n" in self._text[end:following_value]
            has_lines = "\n" in self._text[self._position : end]
            self._several_on_lines = self._several_on_lines or (has_lines and lines > 1)
            self._position = following_value
            self.layout = "lines" if lines else "values"
        if broken_at_end and not self._whole:
            self._broken -= 1  # the sample ended inside it

    def _is_at_end(self, position: int) -> bool:
        return _after_space(self._text, position) == len(self._text)


def _few_then_all(
    source: Sequence[_Source], read: Callable[[_Source], object]
) -> Iterator[list[object]]:
    """Yield the first records with some spread over the others, then the others in order."""
    rest = source[FIRST_RECORDS:MAX_RECORDS]
    step = -(-len(rest) // SPREAD_RECORDS) or 1
    yield [*map(read, source[:FIRST_RECORDS]), *map(read, rest[step - 1 :: step])]
    if step == 1:
        return
    others = [one for number, one in enumerate(rest, start=1) if number % step]
    for first in range(0, len(others), _BATCH_RECORDS):
        yield list(map(read, others[first : first + _BATCH_RECORDS]))


def _same(value: object) -> object:
    return value


def _are_records(lines: Sequence[str]) -> bool:
    """Return whether each line, but for space, may be one object; one that is cut off is none."""
    if all(line[0] == "{" and line[-1] == "}" for line in lines):
        return True
    stripped = [text for line in lines if (text := line.strip(" \t\r\x1e"))]
    return all(text[0] == "{" and text[-1] == "}" for text in stripped)


def _is_record(line: str) -> bool:
    try:
        return isinstance(orjson.loads(line), dict)
    except orjson.JSONDecodeError:
        return False


def _after_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _nested_too_deeply() -> UnreadableItemError:
    return UnreadableItemError("it is nested too deeply")
