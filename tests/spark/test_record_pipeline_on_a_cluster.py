"""Records scanned on a real cluster, one of whose executors dies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import fragile_source
from fragile_source import TABLES, UNITS
from lumos.spark.driver import SHORT_LIFE


def test_an_executor_that_is_killed_neither_loses_nor_doubles_a_row(
    spark_cluster_url: str, tmp_path: Path
) -> None:
    tests = os.path.dirname(fragile_source.__file__)
    options = {
        "spark.executor.memory": "512m",
        "spark.cores.max": 2,
        "spark.executor.cores": 1,
        "spark.executor.extraJavaOptions": " ".join(SHORT_LIFE),
        "spark.executorEnv.PYTHONPATH": tests,
    }
    code = "import sys; from fragile_source import main; main(*sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", code, spark_cluster_url, json.dumps(options), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": tests},
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )

    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert (tmp_path / "killed").exists()
    assert answer == {
        "counts": {"units": UNITS, "failed_units": 0, "datasets": UNITS * TABLES},
        "found": [
            f"lumos://fragile/u{unit}/t{table}" for unit in range(UNITS) for table in range(TABLES)
        ],
        "scopes": [f"lumos://fragile/u{unit}" for unit in range(UNITS)],
        "problems": [],
    }
