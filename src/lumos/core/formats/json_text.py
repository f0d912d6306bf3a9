"""Reads the beginning of a JSON file: the records in it and the schema that fits them all."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

from lumos.core.errors import UnreadableItemError
from lumos.core.formats.facts import FileFacts
from lumos.core.formats.json_schema_merge import RecordSchema, big_or_small
from lumos.core.formats.sample import LARGEST_SAMPLE_BYTES, Sample, Text

FORMAT: Final = "json"
MAX_RECORDS: Final = 2_000
"""How many records decide on the schema."""
MAX_BROKEN: Final = 100
"""After so many records that are no JSON, a file is given up."""

_SPACE: Final = re.compile(r"[ \t\r\n\x1e]*")
_NEXT_RECORD: Final = re.compile(r"\n(?=[{\[])")
_DECODER: Final = json.JSONDecoder(
    parse_int=big_or_small, parse_float=lambda _: 0.5, parse_constant=lambda _: 0.5
)


def read_json(text: Text, *, sample: Sample) -> FileFacts | None:
    """Return the facts of a JSON file by its first records, or None where the sample is too short.

    Records are the lines, the items of one array, or values one after the other.

    Raises:
        UnreadableItemError: the file does not begin as JSON does, or is nested too deeply.
    """
    reading = _Reading(text)
    schema = RecordSchema()
    records = 0
    for record in reading.records():
        schema.add(record)
        records += 1
    if records == 0 and not reading.is_empty_array:
        if text.whole or reading.is_broken_at_start:
            raise UnreadableItemError("it is not valid JSON")
        return None
    fields, merged = schema.result()
    return FileFacts(
        format=FORMAT,
        schema=fields,
        rows_estimate=_estimate(records, sample.share * reading.share),
        warnings=(*sample.warnings, *text.warnings, *reading.warnings(records), *merged),
        properties={"encoding": text.encoding, "layout": reading.layout},
    )


def first_record_too_long() -> UnreadableItemError:
    """The reason for a file of which even the largest sample holds no whole record."""
    megabytes = LARGEST_SAMPLE_BYTES // 1024 // 1024
    return UnreadableItemError(
        f"its first record is longer than {megabytes} MB",
        hint="write one record a line, or leave the file out with: exclude",
    )


class _Reading:
    """One walk over the values at the beginning of a text."""

    def __init__(self, text: Text) -> None:
        self._text = text.content
        self._whole = text.whole
        self._position = self._after_space(0)
        self._start = self._position
        self._broken = 0
        self._ended_inside = False
        self._more_follows = False
        self.layout = "values"
        self.is_empty_array = False

    @property
    def share(self) -> float:
        """The part of the text that was walked over."""
        return self._position / max(1, len(self._text))

    @property
    def is_broken_at_start(self) -> bool:
        return self._broken > 1

    def records(self) -> Iterator[object]:
        items = self._items() if self._text.startswith("[", self._position) else self._values()
        for count, record in enumerate(items, start=1):
            yield record
            if count == MAX_RECORDS:
                return

    def warnings(self, records: int) -> list[str]:
        found = []
        if self._broken:
            found.append(f"{self._broken} of {records + self._broken} sampled records are no JSON")
        if self._ended_inside:
            found.append(f"it is cut off or damaged after {records} records")
        if self._more_follows:
            found.append("more follows after its first array, which was not read")
        return found

    def _items(self) -> Iterator[object]:
        """The items of the array that the text is, or else the values one after the other."""
        self.layout = "array"
        self._position = self._after_space(self._position + 1)
        if self._text.startswith("]", self._position):
            self.is_empty_array = self._is_at_end(self._position + 1)
        while not self._text.startswith("]", self._position):
            try:
                record, end = _DECODER.raw_decode(self._text, self._position)
            except ValueError:
                self._ended_inside = self._whole
                return
            except RecursionError:
                raise _nested_too_deeply() from None
            yield record
            self._position = self._after_space(end)
            if self._text.startswith(",", self._position):
                self._position = self._after_space(self._position + 1)
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
                record, end = _DECODER.raw_decode(self._text, self._position)
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
            following_value = self._after_space(end)
            lines += "\n" in self._text[end:following_value]
            self._position = following_value
            self.layout = "lines" if lines else "values"
        if broken_at_end and not self._whole:
            self._broken -= 1  # the sample ended inside it

    def _is_at_end(self, position: int) -> bool:
        return self._after_space(position) == len(self._text)

    def _after_space(self, position: int) -> int:
        match = _SPACE.match(self._text, position)
        return match.end() if match else position


def _nested_too_deeply() -> UnreadableItemError:
    return UnreadableItemError("it is nested too deeply")


def _estimate(records: int, share: float) -> int:
    return round(records / share) if 0 < share < 1 else records
