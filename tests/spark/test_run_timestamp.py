"""Ingestion of the partition that a run is about, on the shared session."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from command_line import Lumos, capturing, check_schema
from lakes import write_table
from lumos.entry.sdk import Lumos as Sdk

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCE = {
    "type": "local", "name": "lake", "path": "lake",
    "partitioning_format": "year=%Y/month=%m/day=%d",
}  # fmt: skip
LAST = "2024-01-31T00:00:00Z"


def write_day(lake: Path, dataset: str, day: int, columns: dict[str, list[Any]]) -> Path:
    file = lake / dataset / "year=2024" / "month=01" / f"day={day:02}" / "part-0.parquet"
    write_table(file, columns)
    return file


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    lake = tmp_path / "lake"
    for day in (29, 30):
        write_day(lake, "orders", day, {"id": [1], "total": [9.5]})
        write_day(lake, "clicks", day, {"id": [1]})
    write_table(lake / "countries" / "part-0.parquet", {"code": ["NL"]})
    return lake


@pytest.fixture
def lumos(
    spark: SparkSession,
    tmp_path: Path,
    lake: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Lumos:
    write_sources(tmp_path, SOURCE)
    monkeypatch.chdir(tmp_path)
    return capturing(capfd)


def write_sources(project: Path, *sources: dict[str, Any]) -> None:
    (project / "lumos.yaml").write_text(json.dumps({"sources": sources}))


def ingested(lumos: Lumos, *options: str, exit_code: int = 0) -> Any:
    result = lumos("ingest", *options, "--json")
    assert result.exit_code == exit_code, result.stderr
    check_schema(result.json(), "ingest")
    return result.json()


def states(report: Any) -> dict[str, str]:
    return {each["dataset"].rsplit("/", 1)[1]: each["state"] for each in report["partitions"]}


def test_only_the_partition_is_looked_into_and_a_missing_one_is_named(
    lumos: Lumos, lake: Path
) -> None:
    ingested(lumos)
    write_day(lake, "orders", 31, {"id": [2], "total": [1.5]})
    write_day(lake, "orders", 28, {"id": [0], "other": [1.5]})  # not what this run is about
    (lake / "countries" / "part-0.parquet").unlink()

    report = ingested(lumos, "--run-timestamp", LAST)

    assert report["files"] == {"listed": 1, "opened": 1, "unchanged": 0, "unreadable": 0}
    assert states(report) == {"orders": "on_time", "clicks": "missing"}
    (failed,) = [item for item in report["items"] if item["status"] == "failed"]
    assert failed["item"].endswith("/lake/clicks")
    assert failed["reason"] == (
        "partition year=2024/month=01/day=31 is missing; it was due at 2024-02-01T00:00:00Z; "
        "the newest is year=2024/month=01/day=30"
    )
    assert report["complete"]
    assert report["changes"] == []
    assert report["datasets"]["removed"] == 0
    assert lumos("ingest", "--run-timestamp", LAST, "--strict").exit_code == 1


def test_a_schema_that_differs_in_the_partition_is_a_warning_with_its_class(
    lumos: Lumos, lake: Path
) -> None:
    ingested(lumos)
    write_day(lake, "orders", 31, {"id": ["x"], "coupon": ["y"]})
    write_day(lake, "clicks", 31, {"id": [2]})

    report = ingested(lumos, "--run-timestamp", LAST)

    (orders,) = [each for each in report["partitions"] if each["changes"]]
    assert orders["dataset"].endswith("/lake/orders")
    found = {(change["path"], change["rule"], change["level"]) for change in orders["changes"]}
    assert found == {
        ("id", "type.changed", "BREAKING"),
        ("total", "field.removed", "BREAKING"),
        ("coupon", "field.added.nullable", "NON_BREAKING"),
    }
    removed = "partition year=2024/month=01/day=31: BREAKING field 'total' was removed"
    assert any(removed in warning for warning in report["warnings"])


def test_a_source_that_was_never_ingested_is_listed_once(lumos: Lumos, tmp_path: Path) -> None:
    report = ingested(lumos, "--run-timestamp", "2024-01-30")

    assert report["files"]["opened"] == 5
    assert states(report) == {"orders": "on_time", "clicks": "on_time"}
    assert "not every source was known, so all was listed once" in report["warnings"]
    assert lumos("show", "countries").exit_code == 0


def test_a_partition_after_the_allowed_delay_is_late_and_one_in_the_future_not_due(
    lumos: Lumos, lake: Path, tmp_path: Path
) -> None:
    write_sources(tmp_path, {**SOURCE, "partition_delay": "6h"})
    on_time = datetime(2024, 1, 31, 5, 59, tzinfo=UTC).timestamp()
    late = datetime(2024, 1, 31, 6, 1, tzinfo=UTC).timestamp()
    day = "year=2024/month=01/day=30/part-0.parquet"
    os.utime(lake / "orders" / day, (on_time, on_time))
    os.utime(lake / "clicks" / day, (late, late))
    report = ingested(lumos, "--run-timestamp", "2024-01-30")
    future = ingested(lumos, "--run-timestamp", "2999-01-01", "--strict")

    assert states(report) == {"orders": "on_time", "clicks": "late"}
    assert any("came at 2024-01-31T06:01:00Z" in warning for warning in report["warnings"])
    assert states(future) == {"orders": "not_due", "clicks": "not_due"}
    assert future["counts"]["failed"] == 0


def test_a_dry_run_writes_nothing(lumos: Lumos, lake: Path) -> None:
    ingested(lumos)
    write_day(lake, "orders", 31, {"id": [2], "coupon": ["y"]})

    report = ingested(lumos, "--run-timestamp", LAST, "--dry-run")

    assert report["snapshot"] is None
    assert states(report) == {"orders": "on_time", "clicks": "missing"}
    assert len(lumos("history", "orders", "--json").json()["schema_history"]) == 1


def test_sources_without_a_format_are_left_out_or_refused(lumos: Lumos, tmp_path: Path) -> None:
    plain = {"type": "local", "name": "plain", "path": "plain"}
    (tmp_path / "plain").mkdir()
    write_sources(tmp_path, SOURCE, plain)

    assert set(states(ingested(lumos, "--run-timestamp", "2024-01-30"))) == {"orders", "clicks"}
    refused = lumos("ingest", "--run-timestamp", LAST, "--source", "plain")
    assert refused.exit_code == 2
    assert "source 'plain' has no partitioning_format" in refused.error_line
    write_sources(tmp_path, plain)
    refused = lumos("ingest", "--run-timestamp", LAST)
    assert refused.exit_code == 2
    assert "no source has a partitioning_format" in refused.error_line
    assert lumos("ingest", "--run-timestamp", "tomorrow").exit_code == 2


def test_a_format_that_no_dataset_has_is_refused(lumos: Lumos, tmp_path: Path) -> None:
    ingested(lumos)
    write_sources(tmp_path, {**SOURCE, "partitioning_format": "dt=%Y-%m-%d"})

    refused = lumos("ingest", "--run-timestamp", LAST)

    assert refused.exit_code == 2
    assert "no dataset has partitions of the form dt=%Y-%m-%d" in refused.error_line


def test_the_sdk_takes_a_run_timestamp(lumos: Lumos) -> None:
    with Sdk() as project:
        result = project.ingest(run_timestamp=datetime(2024, 1, 30, tzinfo=UTC))

    assert [each.state for each in result.partitions] == ["on_time", "on_time"]
