"""Checks on data: what is asserted (contract) and what was found (observation)."""

from __future__ import annotations

import re
from datetime import date as calendar_date
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from lumos.core.models.base import CanonicalModel, Name, Percent, Properties, UtcDatetime, as_utc
from lumos.core.models.frozen import FrozenDict

_DURATION = re.compile(r"(\d+(?:\.\d+)?)[\s_]*(s|sec|m|min|h|d|seconds?|minutes?|hours?|days?)\Z")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def _duration_as_written(value: object) -> object:
    """Read `45_minutes`, `30min` and `2h` as durations; leave all else to the type."""
    match = _DURATION.match(value.strip()) if isinstance(value, str) else None
    if match is None:
        return value
    try:
        return timedelta(**{_UNITS[match[2][0]]: float(match[1])})
    except OverflowError:
        return value  # refused as text that is no duration


def _instants_in_utc(value: datetime | timedelta) -> datetime | timedelta:
    return as_utc(value) if isinstance(value, datetime) else value


Freshness = Annotated[
    datetime | timedelta, BeforeValidator(_duration_as_written), AfterValidator(_instants_in_utc)
]
"""When data was last new, or how old it is."""


class AssertionStatus(StrEnum):
    """The outcome of a check."""

    PASSED = "PASSED"
    FAILED = "FAILED"
    WARNING = "WARNING"
    ERROR = "ERROR"
    SKIPPED = "SKIPPED"


class Severity(StrEnum):
    """How bad it is when an assertion does not hold."""

    ERROR = "ERROR"
    WARNING = "WARNING"


class DQAssertion(CanonicalModel):
    """The definition of a check on a dataset or on one of its columns."""

    name: Name
    kind: str | None = Field(default=None, description="not_null, unique, accepted_values, sql, …")
    column: str | None = None
    expression: str | None = None
    parameters: Properties = Field(default_factory=FrozenDict)
    severity: Severity = Severity.ERROR
    validator: str | None = Field(default=None, description="The tool that runs it.")
    description: str | None = None


class AssertionResult(CanonicalModel):
    """How a check came out the last time it ran."""

    name: Name
    status: AssertionStatus
    details: str | None = None
    timestamp: UtcDatetime | None = None


class QualityDimensions(CanonicalModel):
    """Quality by the usual dimensions, in percent."""

    completeness: Percent | None = None
    accuracy: Percent | None = None
    uniqueness: Percent | None = None
    validity: Percent | None = None
    consistency: Percent | None = None
    freshness: Freshness | None = None


class QualityScore(CanonicalModel):
    """The score of one day."""

    date: calendar_date
    score: Percent


class QualitySla(CanonicalModel):
    """What was promised of quality, and whether the promise is kept."""

    target: Percent
    current: Percent | None = None
    status: str | None = None


class DatasetQuality(CanonicalModel):
    """The observed quality of a dataset."""

    score: Percent | None = Field(default=None, validation_alias="overall_score")
    freshness: Freshness | None = None
    completeness: Percent | None = None
    last_validated: UtcDatetime | None = None
    validator: str | None = None
    dimensions: QualityDimensions | None = None
    checks: tuple[AssertionResult, ...] = ()
    trend: tuple[QualityScore, ...] = ()
    sla: QualitySla | None = None
