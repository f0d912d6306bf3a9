from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lumos.core.errors import ConfigurationError
from lumos.feature.discovery.run_partition import (
    Arrival,
    PartitionStep,
    late_or_missing,
    partition_prefix,
    partition_step,
)

BY_DAY = "year=%Y/month=%m/day=%d"
NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("format_", "prefix", "step"),
    [
        (BY_DAY, "year=2024/month=03/day=01/", PartitionStep.DAY),
        ("dt=%Y-%m-%d", "dt=2024-03-01/", PartitionStep.DAY),
        ("/%Y/%m/", "2024/03/", PartitionStep.MONTH),
        ("%Y", "2024/", PartitionStep.YEAR),
        ("%Y/%-m/%-d/%H", "2024/3/1/12/", PartitionStep.HOUR),
        ("%Y%m%dT%H%M", "20240301T1200/", PartitionStep.MINUTE),
        ("100%%/%Y%m%d%H%M%S", "100%/20240301120000/", PartitionStep.SECOND),
    ],
)
def test_a_time_has_one_partition(format_: str, prefix: str, step: PartitionStep) -> None:
    assert partition_prefix(format_, NOON) == prefix
    assert partition_step(format_) is step


@pytest.mark.parametrize(
    ("format_", "problem"),
    [
        ("", "partitioning_format '': there is no year in it"),
        ("month=%m", "partitioning_format 'month=%m': there is no year in it"),
        (
            "%Y/%B",
            "partitioning_format '%Y/%B', character 4: not a part of a date that is known",
        ),
        ("%Y/%", "partitioning_format '%Y/%', character 4: not a part of a date that is known"),
    ],
)
def test_an_invalid_format_is_named_with_the_place_of_the_mistake(
    format_: str, problem: str
) -> None:
    with pytest.raises(ConfigurationError) as error:
        partition_prefix(format_, NOON)
    assert error.value.message == problem


def states(
    found: dict[str, datetime], *, now: datetime, count: int = 1, grace: timedelta = DAY * 0
) -> list[tuple[str, Arrival]]:
    arrivals = late_or_missing(
        found, "dt=%Y-%m-%d", timestamp=NOON, now=now, grace=grace, count=count
    )
    return [(each.partition, each.arrival) for each in arrivals]


def test_a_partition_is_missing_only_when_its_time_and_the_grace_are_over() -> None:
    assert states({}, now=NOON) == [("dt=2024-03-01/", Arrival.NOT_DUE)]
    assert states({}, now=NOON + DAY) == [("dt=2024-03-01/", Arrival.MISSING)]
    assert states({}, now=NOON + DAY, grace=DAY) == [("dt=2024-03-01/", Arrival.NOT_DUE)]


def test_a_partition_is_late_when_its_first_file_came_after_it_was_due() -> None:
    found = {"dt=2024-03-01/": NOON, "dt=2024-02-29/": NOON + DAY}
    assert states(found, now=NOON + 2 * DAY, count=3) == [
        ("dt=2024-03-01/", Arrival.ON_TIME),
        ("dt=2024-02-29/", Arrival.LATE),
        ("dt=2024-02-28/", Arrival.MISSING),
    ]


def test_months_and_years_end_where_the_calendar_says() -> None:
    time = datetime(2024, 1, 31, 5)
    (december,) = late_or_missing({}, "%Y/%m", timestamp=datetime(2023, 12, 9), now=time)
    assert december.due == datetime(2024, 1, 1)
    january, before = late_or_missing({}, "%Y/%m", timestamp=time, now=time, count=2)
    assert (january.due, before.partition) == (datetime(2024, 2, 1), "2023/12/")
    (year,) = late_or_missing({}, "%Y", timestamp=time, now=time)
    assert year.due == datetime(2025, 1, 1)


def test_each_state_is_told_in_one_sentence() -> None:
    found = {"dt=2024-03-01/": NOON, "dt=2024-02-29/": NOON + DAY}
    told = late_or_missing(found, "dt=%Y-%m-%d", timestamp=NOON, now=NOON + DAY, count=3)
    (waiting,) = late_or_missing({}, "dt=%Y-%m-%d", timestamp=NOON, now=NOON)
    assert [each.message for each in (*told, waiting)] == [
        "partition dt=2024-03-01 is there",
        "partition dt=2024-02-29 came at 2024-03-02T12:00:00Z; it was due at 2024-03-01T00:00:00Z",
        "partition dt=2024-02-28 is missing; it was due at 2024-02-29T00:00:00Z",
        "partition dt=2024-03-01 is due at 2024-03-02T00:00:00Z",
    ]
