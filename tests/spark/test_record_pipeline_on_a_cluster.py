"""Records scanned on a real cluster, one of whose executors dies, and behind Spark Connect."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import fragile_source
from fragile_source import TABLES, UNITS
from lumos.spark.driver import SHORT_LIFE

pytestmark = pytest.mark.spark
MODULES = os.path.dirname(fragile_source.__file__)
WHOLE = {
    "counts": {"units": UNITS, "failed_units": 0, "datasets": UNITS * TABLES},
    "found": [
        f"lumos://fragile/u{unit}/t{table}" for unit in range(UNITS) for table in range(TABLES)
    ],
    "scopes": [f"lumos://fragile/u{unit}" for unit in range(UNITS)],
    "problems": [],
}


def scanned(spark: str, folder: Path, **options: str | int) -> Any:
    """Scan the fragile source in a process of its own and return what it found."""
    code = "import sys; from fragile_source import main; main(*sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", code, spark, json.dumps(options), str(folder)],
        env={**os.environ, "PYTHONPATH": MODULES},
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_an_executor_that_is_killed_neither_loses_nor_doubles_a_row(
    spark_cluster_url: str, tmp_path: Path
) -> None:
    options: dict[str, str | int] = {
        "spark.executor.memory": "512m",
        "spark.cores.max": 2,
        "spark.executor.cores": 1,
        "spark.executor.extraJavaOptions": " ".join(SHORT_LIFE),
        "spark.executorEnv.PYTHONPATH": MODULES,
    }

    found = scanned(spark_cluster_url, tmp_path, **options)

    assert (tmp_path / "killed").exists()
    assert found == WHOLE


def test_the_same_is_found_behind_spark_connect(tmp_path: Path, spark_connect_url: str) -> None:
    assert scanned(spark_connect_url, tmp_path) == WHOLE
