"""Events: each is emitted once, and redacted once, for everybody who listens.

The run report and the progress display listen where they are made, the log always. The log is
Python's `logging` with loggers named `lumos.*`; nothing here sets up a handler, which is up to the
program. `event_kinds.py` has the table of all events.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, NamedTuple

from lumos.core.errors import LumosError
from lumos.core.event_kinds import EVENT_KINDS
from lumos.core.redaction import PROCESS_SECRETS, SecretRegistry

EventValue = str | int | float | bool | None

ROOT_LOGGER: Final = "lumos"
LEVELS: Final = {
    "error": logging.ERROR,
    "warning": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
}
_ID_BYTES: Final = 6
_LOGGERS: Final = {
    name: logging.getLogger(f"{ROOT_LOGGER}.{name.partition('.')[0]}") for name in EVENT_KINDS
}
logging.getLogger(ROOT_LOGGER).addHandler(logging.NullHandler())


class Event(NamedTuple):
    """Something that happened; its texts hold no secret."""

    name: str
    fields: Mapping[str, EventValue]
    run: str | None
    """The id of the operation and of those that it called."""
    operation: str | None


Listener = Callable[[Event], None]


@dataclass
class _Phase:
    name: str
    unit: str
    began: float
    done: int | None = None


class Run:
    """One operation that goes on; one that it calls has the same id."""

    def __init__(self, operation: str, *, caller: Run | None) -> None:
        self.id: str = caller.id if caller is not None else os.urandom(_ID_BYTES).hex()
        self.operation = operation
        self.counts: Mapping[str, int] = {}
        """How many items ended in which way, once that is known."""
        self._began = time.monotonic()
        self._phase: _Phase | None = None

    @property
    def seconds(self) -> float:
        """How long it has taken so far."""
        return since(self._began)

    def begin_phase(self, name: str, unit: str) -> None:
        """Begin a phase, which ends the one before."""
        self.end_phase()
        self._phase = _Phase(name, unit, time.monotonic())

    def advance(self, done: int) -> None:
        """Keep how many of the phase are done."""
        if self._phase is not None:
            self._phase.done = done

    def end_phase(self) -> None:
        """Emit how long the phase took, if there is one."""
        if (phase := self._phase) is not None:
            self._phase = None
            counted = {} if phase.done is None else {"done": phase.done}
            emit(
                "phase.finished",
                phase=phase.name,
                seconds=since(phase.began),
                unit=phase.unit,
                **counted,
            )


_RUN: ContextVar[Run | None] = ContextVar("lumos run", default=None)


def emit(name: str, /, **fields: EventValue) -> None:
    """Send an event to the log; almost free where there is none.

    Args:
        name: one of `EVENT_KINDS`.
        **fields: those of its kind; one that is None is left out.
    """
    if is_logged(name):
        _log(_event(name, fields, PROCESS_SECRETS))


def tell(
    listener: Listener,
    name: str,
    /,
    *,
    secrets: SecretRegistry = PROCESS_SECRETS,
    **fields: EventValue,
) -> None:
    """Send an event to a listener, and to the log."""
    event = _event(name, fields, secrets)
    listener(event)
    if is_logged(name):
        _log(event)


def _event(name: str, fields: Mapping[str, EventValue], secrets: SecretRegistry) -> Event:
    clean = {
        key: secrets.redact(value) if isinstance(value, str) else value
        for key, value in fields.items()
    }
    run = _RUN.get()
    return Event(name, clean, run.id if run else None, run.operation if run else None)


def is_logged(name: str) -> bool:
    """Return whether a log takes this kind of event, before anything is gathered for it."""
    level = EVENT_KINDS[name].level
    logger = _LOGGERS[name]
    return level != logging.NOTSET and logger.isEnabledFor(level) and _has_handler(logger)


def current_run() -> Run | None:
    """Return the operation that goes on in this context, if any."""
    return _RUN.get()


def since(began: float) -> float:
    """Return the seconds since a moment of `time.monotonic`, as logs have them."""
    return round(time.monotonic() - began, 3)


@contextmanager
def running(operation: str) -> Iterator[Run]:
    """Let a block, or a function that this decorates, be one operation.

    Its beginning, its end and its duration are events; an operation that it calls has its id.
    """
    caller = _RUN.get()
    if caller is not None:
        caller.end_phase()
    run = Run(operation, caller=caller)
    token = _RUN.set(run)
    try:
        emit("run.started")
        try:
            yield run
        except BaseException as error:
            run.end_phase()
            code = error.code if isinstance(error, LumosError) else None
            reason = error.message if isinstance(error, LumosError) else type(error).__name__
            emit("run.failed", seconds=run.seconds, reason=reason, code=code)
            raise
        run.end_phase()
        emit("run.finished", seconds=run.seconds, **run.counts)
    finally:
        _RUN.reset(token)


def one_line(text: str) -> str:
    """Return text that can neither begin a line of a log nor steer a terminal."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in text
    )


def _has_handler(logger: logging.Logger | None) -> bool:
    """Return whether anybody set up logging."""
    while logger is not None:
        if any(not isinstance(handler, logging.NullHandler) for handler in logger.handlers):
            return True
        logger = logger.parent if logger.propagate else None
    return False


def _log(event: Event) -> None:
    kind, logger = EVENT_KINDS[event.name], _LOGGERS[event.name]
    fields = {
        key: one_line(value) if isinstance(value, str) else value
        for key, value in event.fields.items()
        if value is not None
    }
    record = logger.makeRecord(
        logger.name,
        kind.level,
        "",
        0,
        "%s",
        (kind.text.format_map(fields),),
        None,
        extra={
            "event": event.name,
            "run": event.run,
            "operation": event.operation,
            "fields": fields,
        },
    )
    logger.handle(record)
