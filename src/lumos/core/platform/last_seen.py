"""What was found of datasets when they were last asked for, so that it can be written against."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

K = TypeVar("K")
T = TypeVar("T")
_MOST = 2_000
"""More than a sync looks up ahead of what it writes."""


class LastSeen(Generic[K, T]):
    """Remembers a bounded number of datasets, also that some were not there."""

    def __init__(self, ask: Callable[[Sequence[K]], Mapping[K, T]]) -> None:
        self._ask = ask
        self._seen: OrderedDict[K, T | None] = OrderedDict()
        self._lock = Lock()

    def look(self, names: Sequence[K]) -> Mapping[K, T]:
        """Ask for datasets, and return and remember those that are there."""
        found = self._ask(names)
        with self._lock:
            for name in names:
                self._seen.pop(name, None)
                self._seen[name] = found.get(name)
            while len(self._seen) > _MOST:
                self._seen.popitem(last=False)
        return found

    def of(self, names: Sequence[K]) -> dict[K, T]:
        """Return those that were there, asking anew only for what is forgotten."""
        with self._lock:
            known = {name: self._seen[name] for name in names if name in self._seen}
        forgotten = [name for name in names if name not in known]
        found = {name: each for name, each in known.items() if each is not None}
        return {**found, **self._ask(forgotten)} if forgotten else found
