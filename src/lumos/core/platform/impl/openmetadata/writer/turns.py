"""Threads that write the same dataset take turns; those that write others do not wait."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Condition


class Turns:
    """Names that are in use, each by one thread at a time."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._change = Condition()

    @contextmanager
    def alone_with(self, names: Iterable[str]) -> Iterator[None]:
        """Wait until nobody uses any of some names, and use them all; not to be nested."""
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
