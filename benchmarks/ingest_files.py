"""A first and a second `lumos ingest` of many small files, against bare readers of the same files.

The floor opens every file with the library for its format, in two processes, and builds nothing.
Each size is a lake of its own; floor and contenders run in turn. Whole commands are measured, so
the start of Spark is part of them: the ratio falls as the lake grows.
"""

from __future__ import annotations

import argparse
import csv
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

FILES_PER_DATASET = 10


class Cost(NamedTuple):
    """What a run took."""

    wall: float
    cpu: float


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, nargs="+", default=[500, 2_000, 8_000])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    for files in options.files:
        with tempfile.TemporaryDirectory() as folder:
            lake = Path(folder) / "lake"
            make_lake(lake, files)
            print(f"\n{files:,} files   (load average {os.getloadavg()[0]:.1f})")
            measure(lake, Path(folder), rounds=options.rounds)


def measure(lake: Path, folder: Path, *, rounds: int) -> None:
    """Run floor, first and second ingest in turn and print medians and ratios."""
    costs: dict[str, list[Cost]] = {"floor": [], "first ingest": [], "second ingest": []}
    for number in range(rounds):
        project = folder / f"project-{number}"
        project.mkdir()
        source = f"sources:\n  - {{type: local, name: lake, path: {lake}}}\n"
        (project / "lumos.yaml").write_text(source)
        costs["floor"].append(cost_of(lambda: read_all(lake)))
        costs["first ingest"].append(cost_of(lambda at=project: ingest(at)))
        costs["second ingest"].append(cost_of(lambda at=project: ingest(at)))
    floor = median(costs["floor"])
    for name, measured in costs.items():
        cost = median(measured)
        print(
            f"  {name:<14}{cost.wall:7.2f} s wall {cost.cpu:7.2f} s CPU"
            f"   {cost.wall / floor.wall:6.1f} x wall {cost.cpu / floor.cpu:6.1f} x CPU of floor"
        )


def cost_of(act: Callable[[], None]) -> Cost:
    """Return wall and processor seconds of an act with all its child processes."""
    before, started = os.times(), time.perf_counter()
    act()
    wall, after = time.perf_counter() - started, os.times()
    used = [after[index] - before[index] for index in range(4)]
    return Cost(wall, sum(used))


def median(costs: list[Cost]) -> Cost:
    """Return the medians of both."""
    return Cost(*(statistics.median(values) for values in zip(*costs, strict=True)))


def ingest(project: Path) -> None:
    """Run the command as a user does."""
    command = [sys.executable, "-m", "lumos", "ingest"]
    subprocess.run(command, cwd=project, check=True, stdout=subprocess.DEVNULL)


def read_all(lake: Path) -> None:
    """Open every file in two processes."""
    paths = [str(path) for path in lake.rglob("*") if path.is_file()]
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        columns = sum(pool.imap_unordered(read_one, paths, chunksize=64))
    assert columns > 0


def read_one(path: str) -> int:
    """Return the number of columns of one file, by its header or footer alone."""
    if path.endswith(".parquet"):
        import pyarrow.parquet as pq

        return len(pq.read_schema(path))
    with open(path, encoding="utf-8") as stream:
        line = stream.readline()
    return len(next(csv.reader([line]))) if path.endswith(".csv") else len(json.loads(line))


def make_lake(lake: Path, files: int) -> None:
    """Write datasets of ten files each: three in five Parquet, one CSV, one JSON lines."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({f"column_{number}": list(range(50)) for number in range(20)})
    record = {f"column_{number}": number for number in range(20)}
    for number in range(files):
        dataset, part = divmod(number, FILES_PER_DATASET)
        folder = lake / f"dataset_{dataset:05}"
        folder.mkdir(parents=True, exist_ok=True)
        match dataset % 5:
            case 0:
                rows = [",".join(record), *[",".join(map(str, record.values()))] * 50]
                (folder / f"part-{part:05}.csv").write_text("\n".join(rows))
            case 1:
                lines = [json.dumps(record)] * 50
                (folder / f"part-{part:05}.jsonl").write_text("\n".join(lines))
            case _:
                pq.write_table(table, folder / f"part-{part:05}.parquet")


if __name__ == "__main__":
    main()
