"""What a scan of a mixed lake costs against bare readers: stages, whole runs, memory, start.

Run: python benchmarks/scan_lake.py [--sizes N ...] [--large] [--rounds N] [--lakes FOLDER]

The floor (`bare_readers.py`) opens every file in two processes and builds nothing. After one run
that warms the session up, each round does in turn: the floor, a first run of Lumos with an empty
state, a second run with nothing changed. Stages are timed by what the run tells its progress; the
files and rows that both sides found are compared. Then whole commands, each in a process of its
own, against stock PySpark from nothing to the answer of a first Python job. CPU is that of all
processes, the JVM and its Python workers included; memory is that of the driver's Python process.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

import pyarrow.dataset as pads
from typing_extensions import override

from engine_start import STOCK, once
from lake import SIZES, make_lake
from lumos.core.controllers.ingestion_controller import IngestionController
from lumos.core.progress import Progress
from lumos.core.runtime.project import Project as LumosProject
from lumos.core.runtime.unit_of_work import UnitOfWork
from lumos.spark.class_archive import trainer_command
from lumos.spark.engine_record import FOLDER_VARIABLE
from lumos.spark.java import find_java
from lumos.spark.session import spark_session
from lumos.spark.settings import SparkSettings
from lumos.spark.warm_session import WarmSession
from process_times import ProcessTimes

if TYPE_CHECKING:
    from lumos.core.controllers.results import IngestResult

BARE_READERS = Path(__file__).with_name("bare_readers.py")
READING = "reading files"
EXACT = ("parquet", "avro", "orc")
"""The formats whose rows are counted by everybody, not estimated."""
LARGE = 100_000
_LOOK_SECONDS = 0.05


class Spent(NamedTuple):
    """Seconds of the clock and of the processors."""

    wall: float
    cpu: float


class Stages(Progress):
    """Notes when each stage of a run began."""

    def __init__(self, times: ProcessTimes) -> None:
        self._times = times
        self._began: list[tuple[str, float, float]] = []
        self.stage("starting")

    @override
    def stage(self, name: str, *, total: int | None = None, unit: str = "files") -> None:
        self._began.append((name, time.perf_counter(), self._times.seconds()))

    @override
    def advance(self, done: int) -> None:
        pass

    @override
    def note(self, text: str) -> None:
        pass

    def spent(self) -> dict[str, Spent]:
        """End the last stage and return what each of them took."""
        self.stage("end")
        return {
            name: Spent(later[1] - wall, later[2] - cpu)
            for (name, wall, cpu), later in zip(self._began, self._began[1:], strict=False)
        }


class Floor(NamedTuple):
    """What bare readers took and found."""

    listing: float
    reading: float
    cpu: float
    files: dict[str, int]
    rows: dict[str, int]
    schemas: int

    @property
    def wall(self) -> float:
        return self.listing + self.reading


class Round(NamedTuple):
    """One round of all contenders."""

    floor: Floor
    first: dict[str, Spent]
    second: dict[str, Spent]
    opened_again: int


class Project:
    """A lake and a state of its own."""

    def __init__(self, folder: Path, lake: Path, *, session: WarmSession) -> None:
        self._state = folder / "state"
        self._session = session
        folder.mkdir()
        self.config = written_config(folder, lake)

    def ingest(self, stages: Stages) -> IngestResult:
        """Run the ingestion of the command line on the session that is there."""
        project = LumosProject(
            config=self.config, given_state_dir=self._state, environment=os.environ
        )
        with UnitOfWork(project, open_session=self._session) as work:
            return IngestionController(work).ingest(progress=stages)

    def rows(self) -> dict[str, int]:
        """Return the rows of the formats that count them, as the file index has them."""
        index = self._state / "file_index"
        items = index / (index / "CURRENT").read_text() / "items"
        table = pads.dataset(items, exclude_invalid_files=False, format="parquet").to_table(
            columns=["format", "rows"]
        )
        counted = table.group_by("format").aggregate([("rows", "sum")]).to_pylist()
        return {each["format"]: each["rows_sum"] for each in counted if each["format"] in EXACT}


def written_config(folder: Path, lake: Path) -> Path:
    """Write the settings of a project with one source."""
    config = folder / "lumos.yaml"
    config.write_text(f"sources: [{{type: local, name: lake, path: {lake}}}]\n", encoding="utf-8")
    return config


def floor_of(lake: Path) -> Floor:
    """Let bare readers read a lake."""
    command = [sys.executable, str(BARE_READERS), str(lake)]
    done = subprocess.run(command, check=True, capture_output=True)
    return Floor(**json.loads(done.stdout))


def one_round(folder: Path, lake: Path, *, session: WarmSession, times: ProcessTimes) -> Round:
    """Run floor, first and second run, and compare what they found."""
    floor = floor_of(lake)
    project = Project(folder, lake, session=session)
    first = Stages(times)
    result = project.ingest(first)
    first_spent = first.spent()
    second = Stages(times)
    again = project.ingest(second)
    second_spent = second.spent()
    files = sum(floor.files.values())
    assert result.files.opened == files, f"{result.files.opened} of {files} files opened"
    expected = {kind: floor.rows[kind] for kind in EXACT}
    assert project.rows() == expected, f"rows: {project.rows()}, floor: {expected}"
    done = Round(floor, first_spent, second_spent, again.files.opened)
    tell_round(folder.name, done)
    return done


def tell_round(name: str, done: Round) -> None:
    """Print one round, so that a run that is broken off has told something."""
    spent = {"extract": done.first[READING], "first": whole(done.first)}
    spent["second"] = whole(done.second)
    told = [f"{what} {each.wall:.2f} s {each.cpu:.2f} s CPU" for what, each in spent.items()]
    floor = f"floor {done.floor.wall:.2f} s {done.floor.cpu:.2f} s CPU"
    print(f"    {name}: {floor}, {', '.join(told)}, load {os.getloadavg()[0]:.1f}", flush=True)


def whole(stages: dict[str, Spent]) -> Spent:
    """Add the stages of a run up; the session was there before it began."""
    return Spent(*(sum(each) for each in zip(*stages.values(), strict=True)))


def middle(spent: list[Spent]) -> Spent:
    """Return the medians."""
    return Spent(*(median(each) for each in zip(*spent, strict=True)))


def report(files: int, rounds: list[Round]) -> float:
    """Print the medians of one size and return how many files a second a first run does."""
    reading = median(each.floor.reading for each in rounds)
    wall = median(each.floor.wall for each in rounds)
    cpu = median(each.floor.cpu for each in rounds)
    print(f"\n{files:,} files, {len(rounds)} rounds, load average {os.getloadavg()[0]:.1f}")
    print(f"  {'floor':<34}{wall:8.2f} s {cpu:8.2f} s CPU   reading alone {reading:.2f} s")

    def line(name: str, spent: Spent, against: float) -> None:
        ratio = f"{spent.wall / against:6.2f} x wall {spent.cpu / cpu:6.2f} x CPU of floor"
        print(f"  {name:<34}{spent.wall:8.2f} s {spent.cpu:8.2f} s CPU {ratio}")

    line("extract stage, warm", middle([each.first[READING] for each in rounds]), reading)
    first = middle([whole(each.first) for each in rounds])
    line("whole work, listing to snapshot", first, wall)
    for name in rounds[0].first:
        line(f"    {name}", middle([each.first[name] for each in rounds]), wall)
    second = middle([whole(each.second) for each in rounds])
    line("second run, nothing changed", second, wall)
    for name in rounds[0].second:
        line(f"    {name}", middle([each.second[name] for each in rounds]), wall)
    pairs = [f"{each.first[READING].wall / each.floor.reading:.2f}" for each in rounds]
    print(f"  extract / floor, each round: {', '.join(pairs)}")
    opened = {each.opened_again for each in rounds}
    print(f"  first / second: {first.wall / second.wall:.1f} x, files opened again: {opened}")
    sys.stdout.flush()
    return files / first.wall


def cold(contenders: dict[str, Callable[[], float]], rounds: int, times: ProcessTimes) -> None:
    """Run whole commands in turn and print medians; each returns the peak of its memory."""
    taken: dict[str, list[tuple[Spent, float]]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, act in contenders.items():
            wall, cpu = time.perf_counter(), times.seconds()
            peak = act()
            spent = Spent(time.perf_counter() - wall, times.seconds() - cpu)
            taken[name].append((spent, peak))
    stock = middle([spent for spent, _ in taken[STOCK]])
    print(f"\nwhole commands, {rounds} rounds, load average {os.getloadavg()[0]:.1f}")
    for name, each in taken.items():
        spent, peak = middle([found for found, _ in each]), max(found for _, found in each)
        memory = f"   driver's Python process at most {peak:.0f} MB" if peak else ""
        print(
            f"  {name:<34}{spent.wall:8.2f} s {spent.cpu:8.2f} s CPU"
            f" {spent.wall / stock.wall:6.2f} x stock{memory}"
        )
    sys.stdout.flush()


def command(folder: Path, lake: Path, *, cache: Path) -> Callable[[], float]:
    """Return what runs `lumos ingest` as if for the first time."""

    def run() -> float:
        with tempfile.TemporaryDirectory(dir=folder) as project:
            written_config(Path(project), lake)
            variables = {FOLDER_VARIABLE: str(folder / "none"), "XDG_CACHE_HOME": str(cache)}
            started = subprocess.Popen(
                [sys.executable, "-m", "lumos", "ingest"],
                cwd=project,
                env={**os.environ, **variables},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            peak = 0.0
            while started.poll() is None:
                peak = max(peak, peak_megabytes(started.pid))
                time.sleep(_LOOK_SECONDS)
            # Some files are broken, which the exit code tells.
            assert started.returncode in {0, 1, 3, 4}, f"lumos ingest ended {started.returncode}"
            assert list(Path(project).rglob("manifest*")), "no snapshot was stored"
            return peak

    return run


def peak_megabytes(pid: int) -> float:
    """Return the largest memory a process ever had, by itself; 0 when it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    found = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")]
    return int(found[0]) / 1024 if found else 0.0


@contextmanager
def warm_session(cache: Path) -> Iterator[WarmSession]:
    """Yield one session for many runs, as Lumos opens it."""
    settings = SparkSettings()
    with WarmSession(
        lambda _: spark_session(settings, environment=os.environ, cache_dir=cache / "lumos")
    ) as session:
        yield session


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", choices=SIZES, default=[2_000, 20_000])
    parser.add_argument("--large", action="store_true", help=f"{LARGE:,} files, too, one round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--large-rounds", type=int, default=1)
    parser.add_argument("--no-cold", action="store_true", help="leave whole commands out")
    parser.add_argument("--lakes", type=Path, help="keep lakes here, or use those that are here")
    given = parser.parse_args()
    sizes = [*given.sizes, *([LARGE] if given.large else [])]
    times = ProcessTimes()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lakes = {size: lake_of(size, given.lakes or folder) for size in sizes}
        cache = folder / "cache"
        trainer = trainer_command(find_java(os.environ), cache_dir=cache / "lumos")
        subprocess.run(trainer, check=True, capture_output=True)
        speeds = {}
        with warm_session(cache) as session:
            one_round(folder / "warm-up", lakes[sizes[0]], session=session, times=times)
            for size in sizes:
                rounds = [
                    one_round(folder / f"{size}-{n}", lakes[size], session=session, times=times)
                    for n in range(given.large_rounds if size == LARGE else given.rounds)
                ]
                speeds[size] = report(size, rounds)
        base = speeds.get(20_000, speeds[sizes[0]])
        for size, speed in speeds.items():
            print(f"{size:,} files: {speed:,.0f} files/s, {speed / base:.2f} of the usual")
        if given.no_cold:
            return
        stock = once(STOCK, cache / "lumos", {FOLDER_VARIABLE: str(folder / "none")})
        contenders = {STOCK: lambda: stock() or 0.0}
        small = {size: lake for size, lake in lakes.items() if size != LARGE}
        for size, lake in small.items():
            contenders[f"lumos ingest of {size:,} files"] = command(folder, lake, cache=cache)
        cold(contenders, given.rounds, times)
        if given.large:
            one = {f"lumos ingest of {LARGE:,} files": command(folder, lakes[LARGE], cache=cache)}
            cold({STOCK: contenders[STOCK], **one}, given.large_rounds, times)


def lake_of(size: int, folder: Path) -> Path:
    """Return the lake of a size, made where there is none yet."""
    lake = folder / f"lake-{size}"
    if not lake.exists():
        began = time.perf_counter()
        make_lake(lake, SIZES[size])
        print(f"{size:,} files written in {time.perf_counter() - began:.0f} s", flush=True)
    return lake


if __name__ == "__main__":
    main()
