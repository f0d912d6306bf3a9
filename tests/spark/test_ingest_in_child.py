"""Ingestions in processes of their own: without permission, killed.

What comes before and after them runs in this process, on the shared session.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from command_line import Lumos, Result, capturing, run_in_child
from lakes import write_lake, write_settings, write_table
from privileges import obeying_permissions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    write_settings(folder, write_lake(tmp_path / "lake"))
    return folder


@pytest.fixture
def lumos(
    spark: SparkSession,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Lumos:
    monkeypatch.chdir(project)
    return capturing(capfd)


def report_of(result: Result) -> Any:
    assert result.exit_code == 0, result.stderr
    return result.json()


def content(project: Path) -> str:
    newest = max((project / ".lumos" / "snapshots").iterdir())
    found: str = json.loads((newest / "manifest.json").read_text())["content_hash"]
    return found


def test_a_folder_that_cannot_be_listed_is_no_removed_dataset(
    lumos: Lumos, project: Path, tmp_path: Path
) -> None:
    report_of(lumos("ingest", "--json"))
    closed = tmp_path / "lake" / "customers"
    closed.chmod(0)
    try:
        result = run_in_child("ingest", "--json", folder=project, before=obeying_permissions)
    finally:
        closed.chmod(0o755)

    report = report_of(result)
    assert report["complete"] is False
    assert report["datasets"]["removed"] == 0
    assert str(closed) in {item["item"] for item in report["items"]}
    assert lumos("show", "customers").exit_code == 0


def test_a_killed_ingest_is_completed_by_the_next(
    lumos: Lumos, project: Path, tmp_path: Path
) -> None:
    report_of(lumos("ingest", "--json"))
    before = content(project)
    write_table(tmp_path / "lake" / "refunds" / "part-0.parquet", {"id": [1]})
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    for _ in range(2):
        with subprocess.Popen(
            [sys.executable, "-m", "lumos", "ingest"],
            cwd=project,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as child:
            time.sleep(chance.uniform(2.0, 12.0))
            child.send_signal(signal.SIGKILL)
        assert lumos("snapshot", "verify").exit_code == 0, seed
        assert lumos("search", "orders").exit_code == 0, seed

    report = report_of(lumos("ingest", "--json"))

    assert report["datasets"]["found"] == 4, seed
    assert content(project) != before
    assert not list((project / ".lumos").glob("work-*"))
    names = {hit["name"] for hit in lumos("search", "--json").json()["hits"]}
    assert names == {"orders", "customers", "campaigns", "refunds"}, seed
