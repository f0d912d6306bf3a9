"""Jobs for tests that need a Spark of their own: `spark_jobs.py JOB SETTINGS CACHE`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lumos.core.settings import RawSettings, SparkSettings
from lumos.spark.session import spark_session

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


def squares(session: SparkSession) -> dict[str, object]:
    """Square numbers in Python on every executor, and tell which ones did."""

    def squared(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import time

        import pyarrow as pa

        # Long enough that an executor which is a little late still gets a task.
        time.sleep(1)
        for batch in batches:
            numbers = [int(value) ** 2 for value in batch.column("id").to_numpy()]
            # The parent of a Python worker is the daemon of its executor.
            yield pa.RecordBatch.from_pydict(
                {
                    "square": numbers,
                    "executor": [str(os.getppid())] * len(numbers),
                    "python": [sys.prefix] * len(numbers),
                }
            )

    frame = session.range(0, 1_000, numPartitions=8).mapInArrow(
        squared, "square long, executor string, python string"
    )
    row = frame.selectExpr(
        "sum(square) AS total",
        "sort_array(collect_set(executor)) AS executors",
        "collect_set(python) AS pythons",
    ).first()
    assert row is not None
    return {**row.asDict(), "time_zone": session.conf.get("spark.sql.session.timeZone")}


def levers(session: SparkSession) -> dict[str, object]:
    """Tell with which flags the JVM was started and which archives of classes it has mapped."""
    management = session._jvm.java.lang.management.ManagementFactory  # type: ignore[union-attr]
    pid = session.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
    maps = Path(f"/proc/{pid}/maps").read_text()
    return {
        "arguments": list(management.getRuntimeMXBean().getInputArguments()),
        "mapped": sorted(
            {line.split(maxsplit=5)[-1] for line in maps.splitlines() if ".jsa" in line}
        ),
        "count": session.range(10).count(),
    }


JOBS: dict[str, Callable[[SparkSession], dict[str, object]]] = {
    "levers": levers,
    "squares": squares,
}


def main(job: str, settings: str, cache: str) -> None:
    values = json.loads(settings)
    values["conf"] = RawSettings(values.get("conf", {}))
    before = dict(os.environ)
    with spark_session(
        SparkSettings(**values), environment=os.environ, cache_dir=Path(cache)
    ) as session:
        answer = JOBS[job](session)
    answer["environment_is_restored"] = dict(os.environ) == before
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main(*sys.argv[1:])
