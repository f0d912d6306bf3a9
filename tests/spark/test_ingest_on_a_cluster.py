"""An ingestion on a real cluster finds the same, also when an executor dies in the middle of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from command_line import run_in_child
from lakes import write_lake, write_settings, write_table
from lumos.spark.driver import SHORT_LIFE

pytestmark = pytest.mark.spark
EXECUTOR = "CoarseGrainedExecutorBackend"
DATASETS, FILES = 6, 8
LAKE_DATASETS, LAKE_FILES = 3, 4
OPTIONS = {
    "spark.executor.memory": "512m",
    "spark.cores.max": 2,
    "spark.executor.cores": 1,
    "spark.sql.shuffle.partitions": 4,
}


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    write_lake(tmp_path / "lake")
    for number in range(DATASETS):
        for part in range(FILES):
            columns: dict[str, list[Any]] = {
                "id": [part],
                f"column_{number}": ["a"],
                f"amount_{part % 3}": [1.5],
            }
            write_table(tmp_path / "lake" / f"table_{number}" / f"part-{part}.parquet", columns)
    return tmp_path / "lake"


def project_of(tmp_path: Path, name: str, **settings: str) -> Path:
    folder = tmp_path / name
    folder.mkdir()
    write_settings(folder, tmp_path / "lake", **settings)
    return folder


def content(project: Path) -> str:
    newest = max((project / ".lumos" / "snapshots").iterdir())
    found: str = json.loads((newest / "manifest.json").read_text())["content_hash"]
    return found


def processes() -> Iterator[tuple[int, int, str]]:
    """Yield number, parent and command line of every process that can be seen."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_text().replace("\0", " ")
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:  # it has ended
            continue
        yield int(folder.name), parent, command


def working_executors(project: Path) -> set[int]:
    """Return the executors of the run in a project that have a Python at work."""
    seen = list(processes())
    # The name of the project is among their Java options.
    executors = {pid for pid, _, command in seen if EXECUTOR in command and project.name in command}
    return executors & {parent for _, parent, command in seen if "pyspark.daemon" in command}


def test_an_executor_that_is_killed_changes_nothing(
    lake: Path, tmp_path: Path, spark_cluster_url: str
) -> None:
    alone = project_of(tmp_path, "alone")
    mark = f"killed{os.getpid()}"
    java = {"spark.executor.extraJavaOptions": " ".join([*SHORT_LIFE, f"-Dlumos.test={mark}"])}
    options = json.dumps(OPTIONS | java)
    killed = project_of(tmp_path, mark, spark=f'{{master: "{spark_cluster_url}", conf: {options}}}')
    assert run_in_child("ingest", folder=alone).exit_code == 0

    with subprocess.Popen(
        [sys.executable, "-m", "lumos", "ingest", "--json"],
        cwd=killed,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as run:
        while run.poll() is None and not (victims := working_executors(killed)):
            time.sleep(0.02)
        was_running = run.poll() is None
        os.kill(min(victims), signal.SIGKILL)
        printed, said = run.communicate(timeout=400)

    assert was_running
    assert run.returncode == 0, said
    report = json.loads(printed)
    assert report["datasets"]["created"] == DATASETS + LAKE_DATASETS
    assert report["files"]["opened"] == DATASETS * FILES + LAKE_FILES
    assert report["files"]["unreadable"] == 0
    assert content(killed) == content(alone)
