"""The same session on a real standalone cluster and behind a real Spark Connect server.

Each job runs in a process of its own: a process has room for one Spark only, and the other tests
share one.
"""

from __future__ import annotations

import sys
from pathlib import Path

from lumos.spark.driver import SHORT_LIFE
from spark_jobs import run_job

CACHE = Path.home() / ".cache" / "lumos"


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
