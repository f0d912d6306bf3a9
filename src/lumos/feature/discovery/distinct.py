"""Counts distinct names about right in little memory.

It keeps the smallest of the hashes seen. What it keeps is a function of the set of names, so
sketches are merged in any order with the same result.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from heapq import heapify, heappush, heappushpop
from typing import Final

KEPT: Final = 4096
"""How many hashes are kept; the count is off by about 1 / sqrt(KEPT), 1.6 %."""
_BITS: Final = 53


class DistinctSketch:
    """The smallest hashes of a set of names."""

    __slots__ = ("_largest_first", "_set")

    def __init__(self, hashes: Iterable[int] = ()) -> None:
        self._set: set[int] = set(hashes)
        self._largest_first: list[int] = [-each for each in self._set]
        heapify(self._largest_first)

    def add(self, name: str) -> None:
        digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        self._add(int.from_bytes(digest, "big") >> (64 - _BITS))

    def merge(self, other: DistinctSketch) -> None:
        for each in other._set:
            self._add(each)

    def hashes(self) -> list[int]:
        """Return what is kept, in order."""
        return sorted(self._set)

    def count(self) -> int:
        """Return about how many distinct names were added; exact while there are few."""
        if len(self._set) < KEPT:
            return len(self._set)
        return round((KEPT - 1) * (1 << _BITS) / (1 - self._largest_first[0]))

    def _add(self, value: int) -> None:
        if value in self._set:
            return
        if len(self._set) < KEPT:
            heappush(self._largest_first, -value)
            self._set.add(value)
        elif value < -self._largest_first[0]:
            self._set.remove(-heappushpop(self._largest_first, -value))
            self._set.add(value)
