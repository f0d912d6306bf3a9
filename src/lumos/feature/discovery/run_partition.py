"""The partition that a run is about: where it lies, when it is due, and whether it came.

A format is written as `strftime` has it: `year=%Y/month=%m/day=%d`. Times are taken as they are
given; a caller that wants another time zone converts them first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, NamedTuple

from lumos.core.errors import ConfigurationError

_DIRECTIVE = re.compile(r"%(-?.|$)")
_SPELLED: Final = {
    "%Y": "{0.year:04}", "%m": "{0.month:02}", "%d": "{0.day:02}", "%H": "{0.hour:02}",
    "%M": "{0.minute:02}", "%S": "{0.second:02}", "%-m": "{0.month}", "%-d": "{0.day}",
    "%-H": "{0.hour}", "%-M": "{0.minute}", "%-S": "{0.second}",
}  # fmt: skip
_LARGEST_MONTH: Final = 12


class PartitionStep(StrEnum):
    """How long the time of one partition is."""

    YEAR = "year"
    MONTH = "month"
    DAY = "day"
    HOUR = "hour"
    MINUTE = "minute"
    SECOND = "second"


_FINEST_FIRST: Final = (
    ("S", PartitionStep.SECOND), ("M", PartitionStep.MINUTE), ("H", PartitionStep.HOUR),
    ("d", PartitionStep.DAY), ("m", PartitionStep.MONTH), ("Y", PartitionStep.YEAR),
)  # fmt: skip
_LENGTHS: Final = {
    PartitionStep.DAY: timedelta(days=1),
    PartitionStep.HOUR: timedelta(hours=1),
    PartitionStep.MINUTE: timedelta(minutes=1),
    PartitionStep.SECOND: timedelta(seconds=1),
}


class Arrival(StrEnum):
    """Whether a partition came."""

    ON_TIME = "on_time"
    LATE = "late"
    MISSING = "missing"
    NOT_DUE = "not_due"


class PartitionArrival(NamedTuple):
    """One partition that a run expects."""

    partition: str
    """Its folders, with a slash at the end."""
    arrival: Arrival
    due: datetime
    written: datetime | None = None
    """When its first file was written."""

    @property
    def message(self) -> str:
        """The state as people read it."""
        name, due = self.partition.rstrip("/"), _spelled(self.due)
        match self.arrival:
            case Arrival.MISSING:
                return f"partition {name} is missing; it was due at {due}"
            case Arrival.LATE if self.written is not None:
                return f"partition {name} came at {_spelled(self.written)}; it was due at {due}"
            case Arrival.NOT_DUE:
                return f"partition {name} is due at {due}"
            case _:
                return f"partition {name} is there"


def partition_prefix(format: str, timestamp: datetime) -> str:
    """Return the folders of the partition that holds a time, with a slash at the end.

    Raises:
        ConfigurationError: the format is invalid; the message says where.
    """
    directives = _checked(format)
    for directive in directives:
        format = format.replace(directive, _SPELLED[directive].format(timestamp))
    return format.replace("%%", "%").strip("/") + "/"


def partition_step(format: str) -> PartitionStep:
    """Return the time between two partitions.

    Raises:
        ConfigurationError: the format is invalid; the message says where.
    """
    letters = {directive[-1] for directive in _checked(format)}
    return next(step for letter, step in _FINEST_FIRST if letter in letters)


def late_or_missing(
    found: Mapping[str, datetime],
    format: str,
    *,
    timestamp: datetime,
    now: datetime,
    grace: timedelta = timedelta(0),
    count: int = 1,
) -> tuple[PartitionArrival, ...]:
    """Return whether the partition of a time, and those before it, arrived.

    A partition is due when its time is over and the grace has passed.

    Args:
        found: when the first file of each partition was written, by `partition_prefix`.
        format: how partitions are called.
        timestamp: the time that the run is about.
        now: the present, in the time zone of `timestamp` if that has one.
        grace: how long after its end a partition may come.
        count: how many partitions to look at, the one of the time and those before it.

    Returns:
        The partitions, the latest first.

    Raises:
        ConfigurationError: the format is invalid; the message says where.
    """
    step = partition_step(format)
    start = _start(timestamp, step)
    arrivals = []
    for _ in range(count):
        prefix = partition_prefix(format, start)
        due = _next(start, step) + grace
        arrivals.append(_arrival(prefix, found.get(prefix), due=due, now=now))
        start = _start(start - timedelta(microseconds=1), step)
    return tuple(arrivals)


def _arrival(
    prefix: str, written: datetime | None, *, due: datetime, now: datetime
) -> PartitionArrival:
    if written is None:
        state = Arrival.MISSING if now >= due else Arrival.NOT_DUE
    else:
        state = Arrival.LATE if written > due else Arrival.ON_TIME
    return PartitionArrival(prefix, state, due, written)


def _checked(format: str) -> list[str]:
    """Return the directives of a format, the longer ones first."""
    found = set()
    for match in _DIRECTIVE.finditer(format):
        if match[0] == "%%":
            continue
        if match[0] not in _SPELLED:
            raise ConfigurationError(
                f"partitioning_format '{format}', character {match.start() + 1}: "
                "not a part of a date that is known",
                hint="known are %Y, %m, %d, %H, %M, %S, and %-m etc. without leading zeros",
            )
        found.add(match[0])
    if "%Y" not in found:
        raise ConfigurationError(
            f"partitioning_format '{format}': there is no year in it",
            hint="a format looks like year=%Y/month=%m/day=%d",
        )
    return sorted(found, key=len, reverse=True)


def _start(time: datetime, step: PartitionStep) -> datetime:
    steps = list(PartitionStep)
    first = {"month": 1, "day": 1, "hour": 0, "minute": 0, "second": 0}
    kept = {each.value for each in steps[: steps.index(step) + 1]}
    parts = {name: value for name, value in first.items() if name not in kept}
    return time.replace(microsecond=0, **parts)  # type: ignore[arg-type]


def _next(start: datetime, step: PartitionStep) -> datetime:
    if step is PartitionStep.YEAR:
        return start.replace(year=start.year + 1)
    if step is PartitionStep.MONTH:
        years, month = divmod(start.month, _LARGEST_MONTH)
        return start.replace(year=start.year + years, month=month + 1)
    return start + _LENGTHS[step]


def _spelled(time: datetime) -> str:
    return time.isoformat(timespec="seconds").replace("+00:00", "Z")
