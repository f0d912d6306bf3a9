"""Calls of a source handler in threads: with a time limit, and with retries where they may help."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from lumos.core.errors import LumosError, SourceError
from lumos.feature.ingestion.handlers.base_ingestion_handler import RecordSourceSettings

if TYPE_CHECKING:
    from lumos.feature.ingestion.handlers.base_ingestion_handler import SourceSettings

_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 30.0
_GRACE_SECONDS = 10.0
"""How long to wait for a slot of a source when the scans in all of them were given up."""
_DEFAULTS = RecordSourceSettings(type="any", name="any")
HANGS_HINT = "raise timeout_seconds of the source if it is only slow"
T = TypeVar("T")


class ScanLimits(NamedTuple):
    """How a source wants to be scanned."""

    concurrency: int = _DEFAULTS.concurrency
    timeout_seconds: float = _DEFAULTS.timeout_seconds
    retries: int = _DEFAULTS.retries
    first_pause_seconds: float = _FIRST_PAUSE_SECONDS
    """How long to wait before the first retry; twice as long before each further one."""

    @classmethod
    def of(cls, settings: SourceSettings) -> ScanLimits:
        """Return what the settings of a source say, or the defaults where they have no limits."""
        if not isinstance(settings, RecordSourceSettings):
            return cls()
        return cls(settings.concurrency, settings.timeout_seconds, settings.retries)

    def pause(self, attempt: int) -> float:
        """Return how many seconds to wait after an attempt; the first is 0."""
        return min(self.first_pause_seconds * (1 << attempt), _LONGEST_PAUSE_SECONDS)


@dataclass
class Attempt(Generic[T]):
    """What one attempt gave; with an error, it is what was there before that."""

    result: T
    error: LumosError | None = None


class Retry(NamedTuple):
    """A failed attempt that was followed by another one."""

    attempt: int
    """From 1."""
    wait_seconds: float
    error: LumosError


class Call(Generic[T]):
    """A function in a daemon thread: tried again where that may help, given up when it hangs.

    Args:
        attempt: is called once for each attempt, with the event that says to stop.
        limits: how long an attempt may take, and how many there may be.
        what: what failed, for an error that `attempt` lets out.
        when_over: is called by the thread in the end.
    """

    def __init__(
        self,
        attempt: Callable[[threading.Event], Attempt[T]],
        limits: ScanLimits,
        *,
        what: str,
        when_over: Callable[[], None] = lambda: None,
    ) -> None:
        self._attempt = attempt
        self.limits = limits
        self._what = what
        self._when_over = when_over
        self._is_given_up = threading.Event()
        self.is_over = threading.Event()
        self.deadline = math.inf
        """When the attempt under way counts as hanging, by the monotonic clock.

        Once it is given up, how long it is worth to wait for its thread to stop.
        """
        self.outcome: Attempt[T] | None = None
        """Whatever the last attempt gave; None where it let an error out."""
        self.retries: list[Retry] = []
        self._let_out = ""
        self._began: float | None = None
        self._ended: float | None = None

    def start(self) -> None:
        self._began = time.monotonic()
        self.deadline = self._began + self.limits.timeout_seconds
        threading.Thread(target=self._run, name="lumos-scan", daemon=True).start()

    def give_up(self) -> None:
        """Let the thread stop as soon as it looks, which may be soon if it is only slow."""
        self.deadline = time.monotonic() + min(self.limits.timeout_seconds, _GRACE_SECONDS)
        self._is_given_up.set()

    @property
    def seconds(self) -> float:
        """How long it took with all attempts and pauses, or has taken so far."""
        if self._began is None:
            return 0.0
        return round((self._ended or time.monotonic()) - self._began, 3)

    @property
    def is_given_up(self) -> bool:
        return self._is_given_up.is_set()

    @property
    def is_overdue(self) -> bool:
        return not self.is_over.is_set() and time.monotonic() >= self.deadline

    @property
    def is_lost(self) -> bool:
        """Whether it was given up, and its thread did not stop soon after."""
        return self.is_given_up and self.is_overdue

    def unexpected(self) -> SourceError:
        """Return the error of a call that ended without an outcome."""
        return SourceError(
            f"{self._what}: {self._let_out}", hint="check disk space and memory of the workers"
        )

    def _run(self) -> None:
        try:
            self.outcome = self._tried()
        except BaseException as error:  # noqa: BLE001 - also sys.exit; the waiting thread must know
            self._let_out = type(error).__name__
        finally:
            self._ended = time.monotonic()
            self.is_over.set()
            self._when_over()

    def _tried(self) -> Attempt[T]:
        number = 0
        while True:
            outcome = self._attempt(self._is_given_up)
            error = outcome.error
            if error is None or not error.retryable or number >= self.limits.retries:
                return outcome
            pause = self.limits.pause(number)
            self.retries.append(Retry(number + 1, pause, error))
            self.deadline = time.monotonic() + pause + self.limits.timeout_seconds
            if self._is_given_up.wait(pause):
                return outcome
            number += 1


def hanging(what: str, limits: ScanLimits) -> SourceError:
    message = f"{what} within {limits.timeout_seconds:g} s"
    return SourceError(message, hint=HANGS_HINT, retryable=True)
