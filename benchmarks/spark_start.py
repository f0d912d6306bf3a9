"""Seconds from nothing to the answer of a first Python job on Spark, with the levers and without.

Both start in turn, several rounds, each in a process of its own; the medians are printed with
their ratio. Without: the JVM as Spark starts it. With: the class archive, C1 alone and the serial
collector. Neither has a UI or Hive. The archive is made before, and its time is printed too.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lumos.core.settings import SparkSettings
from lumos.spark.class_archive import trainer_command
from lumos.spark.java import find_java
from lumos.spark.session import embedded_session, spark_session

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

ROUNDS = 3
WITH, WITHOUT = "with the levers", "without"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--once", choices=[WITH, WITHOUT], help=argparse.SUPPRESS)
    parser.add_argument("--cache", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.once:
        run_once(options.once, options.cache)
        return
    with tempfile.TemporaryDirectory() as folder:
        compare(Path(folder), options.rounds)


def compare(cache: Path, rounds: int) -> None:
    """Run both in turn and print the medians."""
    runtime = find_java(os.environ)
    began = time.perf_counter()
    subprocess.run(trainer_command(runtime, cache_dir=cache), check=True)
    (archive,) = (cache / "spark").glob("*.jsa")
    print(
        f"Java {runtime.version}, load average {os.getloadavg()[0]:.1f}; archive of"
        f" {archive.stat().st_size / 1e6:.0f} MB made in {time.perf_counter() - began:.1f} s"
    )
    seconds: dict[str, list[float]] = {WITHOUT: [], WITH: []}
    for _ in range(rounds):
        for name, values in seconds.items():
            command = [sys.executable, __file__, "--once", name, "--cache", str(cache)]
            began = time.perf_counter()
            subprocess.run(command, check=True)
            values.append(time.perf_counter() - began)
    median = {name: statistics.median(values) for name, values in seconds.items()}
    for name, value in median.items():
        spread = f"{min(seconds[name]):.1f}-{max(seconds[name]):.1f}"
        print(f"  {name:<16}{value:6.1f} s ({spread})   {median[WITHOUT] / value:.2f} x faster")


def run_once(name: str, cache: Path) -> None:
    """Start Spark in this process, run a Python function on it and stop."""
    settings = SparkSettings(master="local[2]")
    if name == WITH:
        with spark_session(settings, environment=os.environ, cache_dir=cache) as session:
            work(session)
    else:
        with embedded_session(
            settings, runtime=find_java(os.environ), java_options=(), environment=os.environ
        ) as session:
            work(session)


def work(session: SparkSession) -> None:
    """Run the smallest job that has Python, a shuffle and an answer."""
    frame = session.range(0, 1_000, numPartitions=8).mapInArrow(as_it_is, "id long")
    assert frame.selectExpr("sum(id) AS total").first() == (499_500,)


def as_it_is(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pass all batches on."""
    yield from batches


if __name__ == "__main__":
    main()
