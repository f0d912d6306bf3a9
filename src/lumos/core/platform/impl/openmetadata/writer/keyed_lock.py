"""A lock for each name: threads that write the same dataset wait for each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Condition


class KeyedLock:
    """Locks by name; one thread at a time holds a name."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._change = Condition()

    @contextmanager
    def hold(self, names: Iterable[str]) -> Iterator[None]:
        """Hold the locks of all names; not to be nested."""
        wanted = {*names}
        with self._change:
            self._change.wait_for(lambda: self._taken.isdisjoint(wanted))
            self._taken |= wanted
        try:
            yield
        finally:
            with self._change:
                self._taken -= wanted
                self._change.notify_all()
