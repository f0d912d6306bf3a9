"""A second `lumos ingest` of local files of which none changed, against listing them bare.

Run: python benchmarks/scan_again.py [--files N ...] [--rounds N]

The floor is a process that walks the folder with `os.scandir` and asks for the size and time of
every file. Both are whole processes, started in turn. A lake of one file shows what a run costs
before it looks at any file; the last column leaves this out.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

from lake import LakeSize, make_lake

FILES_EACH = 200
BARE = """
import os, sys
waiting = [sys.argv[1]]
while waiting:
    with os.scandir(waiting.pop()) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
            else:
                entry.stat(follow_symlinks=False)
"""


class Spent(NamedTuple):
    """Seconds of one process and its children."""

    wall: float
    cpu: float


def spent_by(command: list[str], *, folder: Path) -> Spent:
    """Run a command and return what it cost."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    # An ingestion that names broken files ends with a code of its own.
    subprocess.run(command, cwd=folder, check=False, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return Spent(time.perf_counter() - start, cpu)


def middle(spent: list[Spent]) -> Spent:
    """Return the medians."""
    return Spent(*(median(each) for each in zip(*spent, strict=True)))


def measured(files: int, *, folder: Path, rounds: int) -> tuple[Spent, Spent]:
    """Return what the floor and a second run cost on a lake of so many files."""
    lake = folder / "lake"
    each = min(files, FILES_EACH)
    make_lake(lake, LakeSize(datasets=max(1, files // each), files_each=each))
    (folder / "lumos.yaml").write_text(f"sources: [{{type: local, name: lake, path: {lake}}}]\n")
    ingest = [sys.executable, "-m", "lumos", "ingest"]
    floors: list[Spent] = []
    seconds: list[Spent] = []
    subprocess.run(ingest, cwd=folder, check=False, capture_output=True)
    for _ in range(rounds):
        floors.append(spent_by([sys.executable, "-c", BARE, str(lake)], folder=folder))
        seconds.append(spent_by(ingest, folder=folder))
    return middle(floors), middle(seconds)


def main() -> None:
    """Print one line for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, nargs="+", default=[1, 10_000, 100_000])
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    nothing: Spent | None = None
    print(f"load average {os.getloadavg()[0]:.1f}")
    for files in given.files:
        with tempfile.TemporaryDirectory() as folder:
            floor, second = measured(files, folder=Path(folder), rounds=given.rounds)
        nothing = nothing or Spent(second.wall - floor.wall, second.cpu - floor.cpu)
        more = (second.cpu - nothing.cpu) / floor.cpu
        print(
            f"{files:>8,} files: listed bare {floor.wall:.2f} s {floor.cpu:.2f} s CPU, second run"
            f" {second.wall:.2f} s {second.cpu:.2f} s CPU = {second.wall / floor.wall:.1f} x wall,"
            f" {second.cpu / floor.cpu:.1f} x CPU; without start-up {more:.2f} x CPU",
            flush=True,
        )


if __name__ == "__main__":
    main()
