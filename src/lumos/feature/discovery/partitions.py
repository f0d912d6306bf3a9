"""What the partitions of a dataset say: their order, their time, and where one of them lies.

A partition is known by its values, in the order of the keys of its layout. Those that stand for a
time are put in order by that time, all others by number or by text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, NamedTuple, Self

import orjson
from pydantic import JsonValue

_Values = Sequence[str | None]
Moment = tuple[int, ...]
"""Year, month, week, day, hour, minute and second, as far as they are known; empty for no time."""
Natural = tuple[int, int, str]
SortKey = tuple[Moment, tuple[Natural, ...]]

NO_VALUE: Final[Natural] = (0, 0, "")
EPOCH: Final = "epoch"
_LONGEST_NUMBER = 18
_PLACES = {"yyyy": 0, "mm": 1, "Qq": 1, "Www": 2, "dd": 3, "hh": 4, "mi": 5, "ss": 6}
_DIGITS = {"yyyy": r"\d{4}", "Qq": r"Q[1-4]", "Www": r"W\d{2}"}
_TOKEN = re.compile("yyyy|mm|Qq|Www|dd|hh|mi|ss")
_SLOT = re.compile(r"\{([^{}/]*)\}")
_SECONDS_DIGITS = 10


class PartitionOrder(NamedTuple):
    """How the partitions of one layout are ordered."""

    forms: tuple[re.Pattern[str] | None, ...]
    """How the value of each key spells a time; None where it is no time."""
    tokens: tuple[tuple[str, ...], ...]

    def key(self, values: _Values) -> SortKey:
        """Return what a partition is sorted by: first its time, then its values."""
        return self.moment(values), tuple([natural(value) for value in values])

    def moment(self, values: _Values) -> Moment:
        """Return the time that a partition stands for; empty where it has none."""
        moment = [0, 0, 0, 0, 0, 0, 0]
        known = False
        for form, tokens, value in zip(self.forms, self.tokens, values, strict=False):
            if form is not None and value is not None:
                for place, number in _time_in(value, form, tokens=tokens):
                    moment[place] = number
                    known = True
        return tuple(moment) if known else ()


@lru_cache(maxsize=16_384)
def _time_in(
    value: str, form: re.Pattern[str], *, tokens: tuple[str, ...]
) -> tuple[tuple[int, int], ...]:
    match = form.fullmatch(value)
    if match is None:
        return ()
    if tokens == (EPOCH,):
        return _epoch_time(value)
    return tuple(
        (_PLACES[token], _number(token, text))
        for token, text in zip(tokens, match.groups(), strict=True)
    )


@lru_cache(maxsize=1024)
def partition_order(template: str | None, keys: int) -> PartitionOrder:
    """Return the order of partitions with a template such as `dt={yyyy-mm-dd}/country={country}`.

    Args:
        template: of a place.
        keys: how many keys it has; with another number of slots, no times are read.
    """
    slots = _SLOT.findall(template or "")
    if len(slots) != keys:
        return PartitionOrder((None,) * keys, ((),) * keys)
    forms = [_form(slot) for slot in slots]
    return PartitionOrder(tuple(form for form, _ in forms), tuple(tokens for _, tokens in forms))


@lru_cache(maxsize=1024)
def order_of(layout: str) -> PartitionOrder:
    """Return the order of the partitions of a layout, given as JSON."""
    document = orjson.loads(layout)
    return partition_order(document.get("partitioning"), len(document["partition_keys"]))


class RankedPartition(NamedTuple):
    """A partition and what it is sorted by."""

    order: SortKey
    values: str
    """Its values as JSON."""
    layout: str

    @property
    def shown(self) -> str:
        """The folders of the partition."""
        template = orjson.loads(self.layout).get("partitioning")
        return shown_partition(template, orjson.loads(self.values))

    def as_json(self) -> list[JsonValue]:
        return [self.values, self.layout]

    @classmethod
    def from_json(cls, document: list[str]) -> Self:
        values, layout = document
        return cls(order_of(layout).key(orjson.loads(values)), values, layout)


@lru_cache(maxsize=16_384)
def natural(value: str | None) -> Natural:
    """Return what one value is sorted by: nothing first, then numbers, then text."""
    if value is None:
        return NO_VALUE
    if value.isdecimal() and value.isascii() and len(value) <= _LONGEST_NUMBER:
        return 1, int(value), value
    return 2, 0, value


def shown_partition(template: str | None, values: _Values) -> str:
    """Return the folders of a partition: its template with its values, `null` for none."""
    rest = iter(values)

    def filled(match: re.Match[str]) -> str:
        return next(rest, match[0]) or "null"

    if template is None or len(_SLOT.findall(template)) != len(values):
        return "/".join(value or "null" for value in values)
    return _SLOT.sub(filled, template)


def form_pattern(form: str) -> str | None:
    """Return the expression that fits what a form spells; None for text that is no form."""
    found = _form(form)[0]
    return None if found is None else re.sub(r"\((?!\?)", "(?:", found.pattern)


@lru_cache(maxsize=1024)
def _form(slot: str) -> tuple[re.Pattern[str] | None, tuple[str, ...]]:
    if slot == EPOCH:
        return re.compile(r"\d{10}(?:\d{3}){0,3}", re.ASCII), (EPOCH,)
    tokens = tuple(_TOKEN.findall(slot))
    if not tokens or re.search(r"[^-_.:TZ ]", _TOKEN.sub("", slot)):
        return None, ()
    alone = len(tokens) == 1
    spelled = []
    last = 0
    for match in _TOKEN.finditer(slot):
        digits = _DIGITS.get(match[0], r"\d{1,2}" if alone else r"\d{2}")
        spelled.append(f"{re.escape(slot[last : match.start()])}({digits})")
        last = match.end()
    pattern = "".join(spelled) + re.escape(slot[last:])
    return re.compile(pattern, re.ASCII), tokens


def _number(part: str, text: str) -> int:
    if part == "Qq":
        return int(text[1:]) * 3 - 2
    return int(text[1:] if part == "Www" else text)


def _epoch_time(value: str) -> tuple[tuple[int, int], ...]:
    time = datetime.fromtimestamp(int(value[:_SECONDS_DIGITS]), UTC)
    numbers = (time.year, time.month, 0, time.day, time.hour, time.minute, time.second)
    return tuple(enumerate(numbers))
