"""Seconds from nothing to the answer of a first Python job on Spark: stock, with levers, by engine.

All three run in turn, several rounds, each in a process of its own; the medians are printed with
their ratio to stock PySpark. Stock: `SparkSession.builder.getOrCreate()` as PySpark comes. With
the levers: as Lumos starts Spark, with the class archive, C1 alone, the serial collector and no UI.
Engine: `lumos engine start` was run before. What is made once, the archive and the engine, is
printed apart. Then the same for a whole `lumos ingest` of a lake of a few files.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from lumos.spark.class_archive import trainer_command
from lumos.spark.engine import start_engine, stop_engine
from lumos.spark.engine_record import FOLDER_VARIABLE, EngineFolder
from lumos.spark.java import find_java, spark_environment
from lumos.spark.session import spark_session
from lumos.spark.settings import SparkSettings

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

ROUNDS = 3
IDLE_MINUTES = 60
STOCK, LEVERS, ENGINE = "stock PySpark", "with the levers", "by the engine"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--once", choices=[STOCK, LEVERS, ENGINE], help=argparse.SUPPRESS)
    parser.add_argument("--cache", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.once:
        run_once(options.once, options.cache)
        return
    with tempfile.TemporaryDirectory() as folder:
        compare(Path(folder), options.rounds)


def compare(folder: Path, rounds: int) -> None:
    """Make what is made once, run all in turn and print the medians."""
    cache, engine = folder / "cache", EngineFolder(folder / "engine")
    runtime = find_java(os.environ)
    began = time.perf_counter()
    subprocess.run(trainer_command(runtime, cache_dir=cache), check=True)
    print(
        f"Java {runtime.version}, load average {os.getloadavg()[0]:.1f}; the archive was made in"
        f" {time.perf_counter() - began:.1f} s"
    )
    began = time.perf_counter()
    start_engine(
        SparkSettings(), engine, environment=os.environ, cache_dir=cache, idle_minutes=IDLE_MINUTES
    )
    print(f"the engine was started, and warm, in {time.perf_counter() - began:.1f} s")
    with_engine = {FOLDER_VARIABLE: str(engine.folder)}
    without = {FOLDER_VARIABLE: str(folder / "none")}
    try:
        print("from nothing to the answer of a first Python job:")
        first = {
            name: once(name, cache, with_engine if name == ENGINE else without)
            for name in (STOCK, LEVERS, ENGINE)
        }
        measure(first, rounds, against=STOCK)
        print("a whole lumos ingest of four files:")
        make_project(folder)
        whole = {LEVERS: ingest(folder, without), ENGINE: ingest(folder, with_engine)}
        measure(whole, rounds, against=LEVERS)
    finally:
        stop_engine(engine)


def measure(contenders: Mapping[str, Callable[[], None]], rounds: int, *, against: str) -> None:
    """Run the contenders in turn and print medians and ratios."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, contender in contenders.items():
            began = time.perf_counter()
            contender()
            seconds[name].append(time.perf_counter() - began)
    median = {name: statistics.median(values) for name, values in seconds.items()}
    for name, value in median.items():
        spread = f"{min(seconds[name]):.1f}-{max(seconds[name]):.1f}"
        print(f"  {name:<16}{value:6.1f} s ({spread})   {value / median[against]:.2f} of {against}")


def once(name: str, cache: Path, variables: Mapping[str, str]) -> Callable[[], None]:
    """Return what starts one contender in a process of its own."""
    command = [sys.executable, __file__, "--once", name, "--cache", str(cache)]
    return lambda: run(command, variables)


def ingest(folder: Path, variables: Mapping[str, str]) -> Callable[[], None]:
    """Return what ingests the lake in the folder as if for the first time."""
    command = [sys.executable, "-m", "lumos", "--config", str(folder / "lumos.yaml")]
    options = ["--state-dir", str(folder / "state"), "ingest", "--full"]
    cache = {"XDG_CACHE_HOME": str(folder / "home")}
    return lambda: run([*command, *options], {**variables, **cache})


def run(command: list[str], variables: Mapping[str, str]) -> None:
    """Run a command to its end."""
    environment = {**os.environ, **variables}
    done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)


def make_project(folder: Path) -> None:
    """Write a lake of four small tables and settings for it, with the archive in the cache."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for name in ("orders", "customers", "payments", "refunds"):
        (folder / "lake" / name).mkdir(parents=True)
        pq.write_table(pa.table({"id": [1, 2, 3]}), folder / "lake" / name / "part-0.parquet")
    (folder / "home").mkdir()
    (folder / "home" / "lumos").symlink_to(folder / "cache")
    source = f"sources: [{{type: local, name: lake, path: {folder / 'lake'}}}]\n"
    (folder / "lumos.yaml").write_text(source, encoding="utf-8")


def run_once(name: str, cache: Path) -> None:
    """Start Spark in this process, run a Python function on it and stop."""
    if name == STOCK:
        os.environ.update(spark_environment(find_java(os.environ)))
        from pyspark.sql import SparkSession

        session = SparkSession.builder.getOrCreate()
        work(session)
        session.stop()
        return
    with spark_session(SparkSettings(), environment=os.environ, cache_dir=cache) as session:
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
