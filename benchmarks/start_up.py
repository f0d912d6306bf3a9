"""CPU seconds of `lumos --help` and of reads of the state database, against a bare interpreter.

Every contender runs in turn, several rounds; the median of each is printed with its ratio to the
floor `python -c pass`, and how reads grow with the number of datasets.

`--against FOLDER` names the `src` of another version of Lumos, such as that of a git worktree. It
makes a state of the same datasets and takes turns with this one; its ratio is printed too.
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
    parser.add_argument("--against", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    sources = [Path(__file__).parent.parent / "src"]
    if options.against:
        sources.append(options.against.resolve())
    with tempfile.TemporaryDirectory() as folder:
        for size in options.sizes:
            versions = [
                Version(source, project=Path(folder) / f"{size}-{number}")
                for number, source in enumerate(sources)
            ]
            for version in versions:
                version.fill(size)
            print(f"\n{size:,} datasets   (load average {os.getloadavg()[0]:.1f})")
            measure(versions, options.rounds)


def measure(versions: list[Version], rounds: int) -> None:
    """Run all contenders of all versions in turn and print the medians, those of this one first."""
    contenders = {
        "floor: python -c pass": ["-c", "pass"],
        "lumos --help": ["-m", "lumos", "--help"],
        "lumos search": ["-m", "lumos", "search", "many"],
        "lumos show": ["-m", "lumos", "show", URN],
        "lumos history": ["-m", "lumos", "history", URN],
    }
    seconds = [{name: list[float]() for name in contenders} for _ in versions]
    for _ in range(rounds):
        for name, arguments in contenders.items():
            for version, times in zip(versions, seconds, strict=True):
                times[name].append(version.cpu_seconds(arguments))
    medians = [
        {name: statistics.median(values) for name, values in times.items()} for times in seconds
    ]
    floor, help_ = medians[0]["floor: python -c pass"], medians[0]["lumos --help"]
    for name, value in medians[0].items():
        reads = not name.startswith(("floor", "lumos --help"))
        above = f"{value - help_:+.3f} s above --help" if reads else ""
        print(f"  {name:<24}{value:7.3f} s CPU {value / floor:6.1f} x floor   {above}")
        for other in medians[1:]:
            ratio = value / other[name]
            print(f"    the other version     {other[name]:7.3f} s CPU   this one: {ratio:.2f} x")


class Version:
    """A version of Lumos with a project of its own."""

    def __init__(self, source: Path, *, project: Path) -> None:
        self._environment = {**os.environ, "PYTHONPATH": str(source)}
        self._project = project

    def cpu_seconds(self, arguments: list[str]) -> float:
        """Return the user and system time of one run, with all its children."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)  # finer than the ticks of os.times
        self._run(arguments)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)

    def fill(self, size: int) -> None:
        """Make a catalog of so many datasets of ten columns."""
        self._project.mkdir()
        with (self._project / "many.json").open("w") as file:
            json.dump(snapshot(size), file)
        self._run(["-m", "lumos", "import", "--input", "many.json"])

    def _run(self, arguments: list[str]) -> None:
        subprocess.run(
            [sys.executable, *arguments],
            cwd=self._project,
            env=self._environment,
            check=True,
            stdout=subprocess.DEVNULL,
        )


def snapshot(size: int) -> dict[str, object]:
    fields = [{"name": f"column_{number}", "type": "STRING"} for number in range(10)]
    return {
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


if __name__ == "__main__":
    main()
