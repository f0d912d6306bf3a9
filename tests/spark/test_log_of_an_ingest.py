"""What a person can read from the log of an ingest: what was slow, skipped, failed, and why."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from command_line import Lumos, capturing, check_schema
from lakes import write_lake, write_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def lumos(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Lumos:
    write_settings(tmp_path, write_lake(tmp_path / "lake"))
    monkeypatch.chdir(tmp_path)
    return capturing(capfd)


def logged(lumos: Lumos, *options: str) -> list[dict[str, Any]]:
    Path("log").unlink(missing_ok=True)
    done = lumos("--log-file", "log", "--log-format", "json", "-vv", "ingest", *options)
    assert done.exit_code == 0, done.stderr
    found = [json.loads(line) for line in Path("log").read_text("utf-8").splitlines()]
    for each in found:
        check_schema(each, "log-event")
    return found


def of(found: list[dict[str, Any]], event: str) -> list[dict[str, Any]]:
    return [each for each in found if each["event"] == event]


def test_a_log_answers_what_was_slow_skipped_and_read_again(lumos: Lumos) -> None:
    lake = Path("lake")
    (lake / "broken\n.parquet").write_bytes(b"PAR1 cut")
    os.symlink("/etc", lake / "elsewhere")

    first = logged(lumos)

    (failed,) = of(first, "item.failed")
    assert "cut off" in failed["reason"]
    assert failed["item"].endswith("broken\\n.parquet")
    assert (failed["code"], failed["retryable"]) == ("LUM-221", False)
    (skipped,) = of(first, "item.skipped")
    assert skipped["item"].endswith("elsewhere")
    (finished,) = [each for each in of(first, "run.finished") if each["operation"] == "ingest"]
    phases = {each["phase"]: each["seconds"] for each in of(first, "phase.finished")}
    assert {"listing", "reading files", "merging schemas", "publishing"} <= phases.keys()
    assert 0 < sum(phases.values()) <= finished["seconds"]
    assert (finished["skipped"], finished["failed"]) == (1, 1)
    (compared,) = of(first, "files.compared")
    assert "no file index" in compared["reason"]
    (listed,) = of(first, "source.listed")
    assert listed["files"] == compared["opened"]
    assert listed["seconds"] > 0
    (read,) = of(first, "source.read")
    assert (read["source"], read["files"], read["failed"]) == (
        listed["source"],
        compared["opened"],
        1,
    )
    assert read["bytes"] == sum(file.stat().st_size for file in lake.rglob("*") if file.is_file())
    assert read["seconds"] > 0
    assert of(first, "spark.started")[0]["how"] == "running session"
    assert len({each["run"] for each in first if "run" in each}) == 1

    changed = sorted(lake.rglob("*.parquet"))[-1]
    os.utime(changed, (1, 1))
    second = logged(lumos)

    assert [each["status"] for each in of(second, "file.reread")] == ["changed"]
    assert of(second, "files.compared")[0]["opened"] == 1

    third = logged(lumos)
    assert of(third, "files.compared")[0]["opened"] == 0
    assert of(third, "source.listed")[0]["units_unchanged"] == 1
    assert not of(third, "spark.started")
