"""The same session on a real standalone cluster and behind a real Spark Connect server.

Each job runs in a process of its own: a process has room for one Spark only, and the other tests
share one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lumos.spark.driver import SHORT_LIFE
from spark_cluster import running_connect_server
from spark_jobs import run_job

CACHE = Path.home() / ".cache" / "lumos"


@pytest.fixture(scope="module")
def spark_connect_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_connect_server(tmp_path_factory.mktemp("connect")) as url:
        yield url


def test_a_python_function_runs_on_both_workers_of_a_cluster(spark_cluster_url: str) -> None:
    conf = {
        "spark.cores.max": 2,
        "spark.executor.cores": 1,
        "spark.executor.extraJavaOptions": " ".join(SHORT_LIFE),
        "spark.executor.memory": "512m",
        # The first task waits until both workers are there.
        "spark.scheduler.minRegisteredResourcesRatio": 1.0,
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "600s",
    }

    answer = run_job("squares", cache=CACHE, master=spark_cluster_url, conf=conf)

    assert answer["total"] == sum(number**2 for number in range(1_000))
    assert answer["pythons"] == [sys.prefix]
    assert isinstance(answer["executors"], list)
    assert len(answer["executors"]) == 2


def test_the_same_function_runs_behind_spark_connect(spark_connect_url: str) -> None:
    answer = run_job("squares", cache=CACHE, remote=spark_connect_url)

    assert answer["total"] == sum(number**2 for number in range(1_000))
    assert answer["time_zone"] == "UTC"
    assert answer["environment_is_restored"] is True
