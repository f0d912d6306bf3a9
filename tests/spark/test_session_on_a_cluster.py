"""The same session on a real standalone cluster and behind a real Spark Connect server.

Each job runs in a process of its own: a process has room for one Spark only, and the other tests
share one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_cluster import cluster_environment, running_connect_server

JOB = Path(__file__).parent.parent / "spark_jobs.py"


@pytest.fixture(scope="module")
def spark_connect_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_connect_server(tmp_path_factory.mktemp("connect")) as url:
        yield url


def run_job(tmp_path: Path, **settings: object) -> dict[str, object]:
    environment = cluster_environment() | {"LUMOS_SPARK_ARCHIVE": "existing"}
    process = subprocess.run(
        [sys.executable, JOB, "squares", json.dumps(settings), tmp_path / "cache"],
        check=False,
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
    )
    assert process.returncode == 0, process.stderr
    assert process.stderr == ""
    answer: dict[str, object] = json.loads(process.stdout)
    return answer


def test_a_python_function_runs_on_both_workers_of_a_cluster(
    spark_cluster_url: str, tmp_path: Path
) -> None:
    conf = {"spark.executor.memory": "512m", "spark.executor.cores": 1}

    answer = run_job(tmp_path, master=spark_cluster_url, conf=conf)

    assert answer["total"] == sum(number**2 for number in range(1_000))
    assert answer["pythons"] == [sys.prefix]
    assert isinstance(answer["executors"], list)
    assert len(answer["executors"]) == 2
    assert str(os.getpid()) not in answer["executors"]


def test_the_same_function_runs_behind_spark_connect(
    spark_connect_url: str, tmp_path: Path
) -> None:
    answer = run_job(tmp_path, remote=spark_connect_url)

    assert answer["total"] == sum(number**2 for number in range(1_000))
    assert answer["time_zone"] == "UTC"
    assert answer["environment_is_restored"] is True
