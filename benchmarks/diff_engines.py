"""From which size on Spark is faster than one process for diff, validate and export.

Run: python benchmarks/diff_engines.py [--sizes N ...] [--rounds N] [--share OF]

For each size, two stored snapshots of N datasets with 30 fields each, one of OF datasets changed.
In each round, in random order, both engines do each operation on the same files through the same
controller as the command line. The time of Spark includes starting and stopping it, as a command
pays it; `warm` is what is left without that, taken from an operation on a snapshot of no datasets.
CPU includes all processes that were started, the JVM and its Python workers. Answers are compared.
The last columns say from how many datasets on Spark is faster on two and on eight idle cores, if
its tasks share their work evenly: start / (CPU of local - warm CPU of Spark / cores). What
the first tasks cost once, such as importing the models, is part of it: larger sizes say more.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

from diff_snapshots import dataset
from lumos.bootstrap import Application
from lumos.core.store.manifest import SnapshotHeader
from lumos.core.store.snapshot_sections import SnapshotSections
from lumos.core.store.snapshot_store import SnapshotStore
from lumos.feature.snapshot.engine_choice import Engine
from lumos.feature.snapshot.selection import ExportedPart

_SET_CHILD_SUBREAPER = 36
_LOOK_SECONDS = 0.2
AT = datetime(2026, 1, 1, tzinfo=UTC)


class Spent(NamedTuple):
    """Seconds of the clock and of the processors."""

    wall: float
    cpu: float


def written(store: SnapshotStore, size: int, *, share: int, later: bool) -> str:
    stream = (dataset(number, edited=later and number % share == 0) for number in range(size))
    at = AT + timedelta(days=int(later))
    header = SnapshotHeader(lumos_version="0", export_timestamp=at, source_platform="s3")
    return store.write_sections(header, SnapshotSections(datasets=stream), at=at).id


class ProcessTimes:
    """Adds up the CPU of this process and of all that it starts, by looking at them all the time.

    What the system tells of children that ended leaves out the Python workers of Spark.
    """

    def __init__(self) -> None:
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # orphans stay descendants
        self._seen: dict[tuple[int, int], float] = {}
        threading.Thread(target=self._look_forever, daemon=True).start()

    def seconds(self) -> float:
        """Return the seconds so far."""
        self._look()
        return time.process_time() + sum([*self._seen.values()])

    def _look_forever(self) -> None:
        while True:
            self._look()
            time.sleep(_LOOK_SECONDS)

    def _look(self) -> None:
        found = dict(filter(None, map(_process, os.listdir("/proc"))))
        ours = {os.getpid()}
        for pid, process in sorted(found.items(), key=lambda item: item[1].started):
            if process.parent in ours and pid not in ours:
                ours.add(pid)
                key = (pid, process.started)
                self._seen[key] = max(self._seen.get(key, 0.0), process.cpu)


class Process(NamedTuple):
    """A running process."""

    parent: int
    started: int
    cpu: float


def _process(name: str) -> tuple[int, Process] | None:
    if not name.isdigit():
        return None
    try:
        fields = Path("/proc", name, "stat").read_text().rpartition(") ")[2].split()
    except OSError:  # it ended
        return None
    ticks = int(fields[11]) + int(fields[12])
    cpu = ticks / os.sysconf("SC_CLK_TCK")
    return int(name), Process(int(fields[1]), int(fields[19]), cpu)


def timed(act: Callable[[], str], times: ProcessTimes) -> tuple[Spent, str]:
    wall, cpu = time.perf_counter(), times.seconds()
    answer = act()
    return Spent(time.perf_counter() - wall, times.seconds() - cpu), answer


class Project:
    """Two snapshots in a store, and what can be done with them."""

    def __init__(self, folder: Path, size: int, *, share: int) -> None:
        self._folder = folder
        store = SnapshotStore(folder / "snapshots")
        self.old, self.new = (
            written(store, size, share=share, later=later) for later in (False, True)
        )
        self.plain_bytes = store.open(self.new).info.plain_bytes
        self.parts = store.open(self.new).info.parts

    def operations(self) -> dict[str, Callable[[Engine], str]]:
        return {"diff": self.diff, "validate": self.validate, "export": self.export}

    def diff(self, engine: Engine) -> str:
        with self._application() as application:
            return str(application.diffs.diff(self.old, self.new, engine=engine).as_json())

    def validate(self, engine: Engine) -> str:
        with self._application() as application:
            return str(application.snapshots.validate(self.new, engine=engine).as_json())

    def export(self, engine: Engine) -> str:
        output = self._folder / "out.json"
        with self._application() as application:
            application.snapshots.export(output, ExportedPart(snapshot=self.new), engine=engine)
        with output.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()

    def _application(self) -> Application:
        return Application(state_dir=self._folder, environment=os.environ)


def measured(
    project: Project, rounds: int, *, names: Iterable[str], times: ProcessTimes
) -> dict[tuple[str, str], Spent]:
    """Return the median of each operation and engine; the answers of both must be equal."""
    taken: dict[tuple[str, str], list[Spent]] = {}
    operations = {name: project.operations()[name] for name in names}
    for _ in range(rounds):
        for name, act in operations.items():
            answers = set()
            for engine in random.sample([Engine.LOCAL, Engine.SPARK], 2):
                spent, answer = timed(partial(act, engine), times)
                taken.setdefault((name, engine.value), []).append(spent)
                answers.add(answer)
            assert len(answers) == 1, f"{name}: the engines disagree"
    return {
        key: Spent(median(each.wall for each in spent), median(each.cpu for each in spent))
        for key, spent in taken.items()
    }


def _even(size: int, start: float, *, local: float, warm: float) -> str:
    """Say for how many datasets the start of Spark is won back, if ever."""
    gained = (local - warm) / max(size, 1)
    return f"{start / gained:,.0f}" if gained > 0 else "never"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 8_000])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--share", type=int, default=100, help="one of so many datasets changed")
    parser.add_argument("--operations", nargs="+", default=["diff", "validate", "export"])
    given = parser.parse_args()
    times = ProcessTimes()
    with tempfile.TemporaryDirectory() as folder:
        empty = Project(Path(folder), 0, share=given.share)
        start = measured(empty, 1, names=["validate"], times=times)["validate", "spark"]
    print(f"Spark started and stopped without work: {start.wall:.1f} s, {start.cpu:.1f} s CPU")
    print(
        "datasets   plain MB  parts  operation  local s   CPU s  spark/local  warm/local"
        "  CPU spark/local  warm  even at 2 cores  at 8"
    )
    for size in given.sizes:
        with tempfile.TemporaryDirectory() as folder:
            project = Project(Path(folder), size, share=given.share)
            taken = measured(project, given.rounds, names=given.operations, times=times)
        for name in given.operations:
            local, spark = taken[name, "local"], taken[name, "spark"]
            warm = Spent(max(0.0, spark.wall - start.wall), max(0.0, spark.cpu - start.cpu))
            even = (_even(size, start.wall, local=local.cpu, warm=warm.cpu / n) for n in (2, 8))
            print(
                f"{size:8,}  {project.plain_bytes / 1e6:9.1f}  {project.parts:5}  {name:9}"
                f"  {local.wall:7.2f} {local.cpu:7.2f}  {spark.wall / local.wall:11.2f}"
                f"  {warm.wall / local.wall:10.2f}  {spark.cpu / local.cpu:15.2f}"
                f"  {warm.cpu / local.cpu:4.2f}  {next(even):>15}  {next(even)}"
            )
        sys.stdout.flush()


if __name__ == "__main__":
    main()
