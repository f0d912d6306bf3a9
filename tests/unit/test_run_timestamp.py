"""What a run timestamp means."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumos.core.controllers.run_timestamp_controller import parsed_timestamp
from lumos.core.errors import ConfigurationError, UsageError
from lumos.feature.discovery.run_partition import partition_prefix
from lumos.feature.ingestion.partition_check import path_pattern

FORMATS = (
    "year=%Y/month=%m/day=%d", "dt=%Y-%m-%d", "%Y/%-m/%-d/%H", "%Y%m%dT%H%M%S", "100%%/(%Y)+",
)  # fmt: skip


def test_a_time_without_a_zone_is_utc() -> None:
    assert parsed_timestamp("2024-01-31") == datetime(2024, 1, 31, tzinfo=UTC)
    assert parsed_timestamp("2024-01-31T05:00:00Z") == datetime(2024, 1, 31, 5, tzinfo=UTC)
    assert parsed_timestamp(datetime(2024, 1, 31)) == datetime(2024, 1, 31, tzinfo=UTC)
    zone = timezone(timedelta(hours=5))
    assert parsed_timestamp("2024-01-31T00:00:00+05:00").tzinfo == zone


@pytest.mark.parametrize("text", ["", "yesterday", "2024-13-01", "31.01.2024"])
def test_another_text_is_no_time(text: str) -> None:
    with pytest.raises(UsageError, match="no ISO 8601 time"):
        parsed_timestamp(text)


@given(st.sampled_from(FORMATS), st.datetimes(min_value=datetime(1000, 1, 1)))
def test_the_partition_of_every_time_is_found_in_a_path(format_: str, time: datetime) -> None:
    partition = partition_prefix(format_, time)

    inside = re.match(path_pattern(format_), f"raw/orders/{partition}part-0.parquet")
    at_top = re.match(path_pattern(format_), f"{partition}part-0.parquet")

    assert inside is not None
    assert at_top is not None
    assert inside.groups() == ("raw/orders", partition.rstrip("/"))
    assert at_top.groups() == (None, partition.rstrip("/"))


def test_other_paths_have_no_partition() -> None:
    for path in ("orders/part-0.parquet", "year=2024/month=1/day=31/x", "xyear=2024/month=01/y"):
        assert re.match(path_pattern(FORMATS[0]), path) is None


def test_an_invalid_format_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="character 4"):
        path_pattern("%Y/%B")
