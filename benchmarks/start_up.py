"""CPU seconds of `lumos --help` and of reads of the state database, against a bare interpreter.

Every contender runs in turn, several rounds; the median of each is printed with its ratio to the
floor `python -c pass`, and how reads grow with the number of datasets.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROUNDS = 7
URN = "lumos://s3/many/0"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1_000, 10_000])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for size in options.sizes:
            project = Path(folder) / str(size)
            project.mkdir()
            fill(project, size)
            print(f"\n{size:,} datasets   (load average {os.getloadavg()[0]:.1f})")
            measure(project, options.rounds)


def measure(project: Path, rounds: int) -> None:
    """Run all contenders in turn and print the medians."""
    contenders = {
        "floor: python -c pass": ["-c", "pass"],
        "lumos --help": ["-m", "lumos", "--help"],
        "lumos search": ["-m", "lumos", "search", "many"],
        "lumos show": ["-m", "lumos", "show", URN],
        "lumos history": ["-m", "lumos", "history", URN],
    }
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, arguments in contenders.items():
            seconds[name].append(cpu_seconds([sys.executable, *arguments], project))
    median = {name: statistics.median(values) for name, values in seconds.items()}
    floor, help_ = median["floor: python -c pass"], median["lumos --help"]
    for name, value in median.items():
        reads = not name.startswith(("floor", "lumos --help"))
        above = f"{value - help_:+.3f} s above --help" if reads else ""
        print(f"  {name:<24}{value:7.3f} s CPU {value / floor:6.1f} x floor   {above}")


def cpu_seconds(command: list[str], folder: Path) -> float:
    """Return the user and system time of one run, with all its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)  # finer than the ticks of os.times
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


def fill(project: Path, size: int) -> None:
    """Make a catalog of so many datasets of ten columns."""
    fields = [{"name": f"column_{number}", "type": "STRING"} for number in range(10)]
    document = {
        "lumos_version": "1.0.0",
        "export_timestamp": "2026-01-01T00:00:00Z",
        "source_platform": "benchmark",
        "datasets": [
            {
                "urn": f"lumos://s3/many/{number}",
                "name": f"many_{number}",
                "platform": "s3",
                "schema": {"fields": fields},
            }
            for number in range(size)
        ],
    }
    (project / "many.json").write_text(json.dumps(document))
    command = [sys.executable, "-m", "lumos", "import", "--input", "many.json"]
    subprocess.run(command, cwd=project, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
