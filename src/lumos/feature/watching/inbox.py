"""Where events are gathered until it is quiet, however many threads bring them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from lumos.feature.watching.folders import WHOLE_FOLDER

MOST_REMEMBERED: Final = 4096
"""So many folders of a source are remembered; beyond that, all of it is looked into."""

MOST_WAITING: Final = 1_000
"""With so many acknowledgements open, nothing more is fetched that wants one."""

Acknowledge = Callable[[], None]
"""Acknowledges events to their sender."""


@dataclass
class Gathered:
    """What happened since the last look."""

    folders: dict[str, set[bytes]] = field(default_factory=dict)
    """The folders to look into, by source."""
    events: int = 0
    acknowledgements: list[Acknowledge] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """What people should know: messages that cannot be understood, queues that do not answer."""

    def add(self, folders: Mapping[str, Iterable[bytes]]) -> None:
        """Add folders; of a source with too many, all is to be looked into."""
        for source, more in folders.items():
            known = self.folders.setdefault(source, set())
            known.update(more)
            if len(known) > MOST_REMEMBERED:
                self.folders[source] = {WHOLE_FOLDER}

    @property
    def is_empty(self) -> bool:
        return not (self.folders or self.acknowledgements or self.problems)


class Inbox:
    """Gathers events; they are due when it is quiet, or after the longest time allowed."""

    def __init__(
        self, *, quiet: float, longest: float, now: Callable[[], float] = time.monotonic
    ) -> None:
        """Make an empty one.

        Args:
            quiet: seconds without a further event after which a look is worth it.
            longest: seconds after the first event after which it is not put off any more.
            now: seconds of a clock that never goes back.
        """
        self._quiet = quiet
        self._longest = longest
        self._now = now
        self._changed = threading.Condition()
        self._gathered = Gathered()
        self._first: float | None = None
        self._last = 0.0
        self._not_before = 0.0

    def put(
        self,
        folders: Mapping[str, Iterable[bytes]],
        *,
        events: int,
        acknowledge: Acknowledge | None = None,
    ) -> None:
        """Take note of events; with no folders, they only want to be acknowledged."""
        with self._changed:
            self._gathered.add(folders)
            self._gathered.events += events
            if acknowledge is not None:
                self._gathered.acknowledgements.append(acknowledge)
            self._last = self._now()
            self._first = self._last if self._first is None else self._first
            self._changed.notify_all()

    def report(self, problem: str) -> None:
        """Take note of something that people should know at the next look."""
        with self._changed:
            self._gathered.problems.append(problem)
            self._changed.notify_all()

    def put_back(self, gathered: Gathered, *, pause: float) -> None:
        """Take back what could not be dealt with; it is due again after a pause."""
        with self._changed:
            gathered.add(self._gathered.folders)
            gathered.events += self._gathered.events
            gathered.acknowledgements += self._gathered.acknowledgements
            gathered.problems = self._gathered.problems  # those of the last look were reported
            self._gathered = gathered
            now = self._now()
            self._not_before = now + pause
            self._first = now if self._first is None else self._first
            self._last = max(self._last, self._first)

    def take(self) -> Gathered | None:
        """Return what is due and begin anew; None where nothing is."""
        with self._changed:
            due = self._due_in()
            if due is None or due > 0:
                return None
            return self._taken()

    def take_all(self) -> Gathered | None:
        """Return whatever is there, without waiting for quiet; None where nothing is."""
        with self._changed:
            return None if self._gathered.is_empty else self._taken()

    @property
    def is_full(self) -> bool:
        """Whether enough is waiting to be dealt with."""
        return len(self._gathered.acknowledgements) >= MOST_WAITING

    def wait(self, seconds: float) -> None:
        """Sleep until something happens, but not longer than this."""
        with self._changed:
            self._changed.wait(seconds)

    def _due_in(self) -> float | None:
        if self._gathered.problems:
            return 0.0
        if self._first is None:
            return None
        due = min(self._last + self._quiet, self._first + self._longest)
        return max(due, self._not_before) - self._now()

    def _taken(self) -> Gathered:
        gathered, self._gathered = self._gathered, Gathered()
        self._first = None
        self._not_before = 0.0
        return gathered
