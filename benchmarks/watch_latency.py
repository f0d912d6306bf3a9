"""Seconds from a write to the new version in the catalog, while `lumos watch` runs.

A lake of some files is watched by a process of its own. Then a file with one more column is
written, and the catalog is asked until it tells the new version: that is the latency, waiting for
quiet included. The same for S3: a server process of the moto wheel notifies a queue. The median is
printed with its ratio to a whole `lumos ingest` of the same lake, which a schedule would run.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from lumos.entry.sdk import Lumos

if TYPE_CHECKING:
    from pydantic import JsonValue

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

FILES, PER_DATASET, ROUNDS = 1_000, 10, 5
ALLOWED_SECONDS = 300.0
Put = Callable[[str, Path], None]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    print(f"{options.files:,} files, load average {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lake = make_lake(folder / "lake", options.files)
        whole = ingest_seconds(folder / "ingest", lake)
        print(f"  lumos ingest, nothing changed        {whole:6.1f} s")
        local: JsonValue = {"type": "local", "name": "lake", "path": str(lake)}
        watched = latencies(folder / "local", local, put_into(lake), rounds=options.rounds)
        told("local folder, file events", watched, whole)
        with s3(lake) as (source, put):
            watched = latencies(folder / "s3", source, put, rounds=options.rounds)
        told("S3, notifications in a queue", watched, whole)


def told(what: str, seconds: list[float], whole: float) -> None:
    """Print the median and what it is compared with."""
    median = statistics.median(seconds)
    spread = f"{min(seconds):.1f}-{max(seconds):.1f}"
    print(
        f"  {what:<34}{median:6.1f} s ({spread})   {median / whole:.2f} of lumos ingest,"
        f" {median / ALLOWED_SECONDS:.3f} of the 5 minutes allowed"
    )


def latencies(project: Path, source: JsonValue, put: Put, *, rounds: int) -> list[float]:
    """Return, for each round, the seconds from a write to the version in the catalog."""
    settings(project, source)
    watch = subprocess.Popen(
        [sys.executable, "-m", "lumos", "watch", "--json"],
        cwd=project,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert watch.stdout is not None
        first = json.loads(watch.stdout.readline())
        assert first["error"] is None, first["error"]
        return [latency(project, put, number) for number in range(rounds)]
    finally:
        watch.terminate()
        watch.communicate()


def latency(project: Path, put: Put, number: int) -> float:
    """Write a file with a new column and wait until the catalog knows it."""
    file = project / "new.parquet"
    column = f"{project.name}_{number}"
    pq.write_table(pa.table({"id": [1], column: ["x"]}), file)
    began = time.perf_counter()
    put(f"table_0000/part-{100 + number}-{project.name}.parquet", file)
    with Lumos(project / "lumos.yaml", state_dir=project / ".lumos") as lumos:
        while True:
            fields = lumos.dataset("table_0000").schema.fields
            if column in {field.name for field in fields}:
                return time.perf_counter() - began
            time.sleep(0.05)


def ingest_seconds(project: Path, lake: Path) -> float:
    """Return the seconds of a whole `lumos ingest`, Java and all, after a first one."""
    settings(project, {"type": "local", "name": "lake", "path": str(lake)})
    command = [sys.executable, "-m", "lumos", "ingest", "--json"]
    subprocess.run(command, cwd=project, check=True, stdout=subprocess.DEVNULL)
    began = time.perf_counter()
    subprocess.run(command, cwd=project, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def settings(project: Path, source: JsonValue) -> None:
    """Write the settings of a project; an engine that runs here is not used."""
    project.mkdir()
    document = {"sources": [source], "spark": {"engine": "never"}}
    (project / "lumos.yaml").write_text(json.dumps(document), encoding="utf-8")


def make_lake(lake: Path, files: int) -> Path:
    """Write a lake of small tables."""
    for number in range(files):
        file = lake / f"table_{number // PER_DATASET:04}" / f"part-{number % PER_DATASET}.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"id": [1, 2, 3]}), file)
    return lake


def put_into(lake: Path) -> Put:
    """Return what moves a whole file into the lake, as careful writers do."""

    def put(name: str, file: Path) -> None:
        hidden = lake / f".{uuid.uuid4().hex}"
        shutil.copyfile(file, hidden)
        hidden.rename(lake / name)

    return put


@contextmanager
def s3(lake: Path) -> Iterator[tuple[JsonValue, Put]]:
    """Run a server with the lake in a bucket that notifies a queue."""
    from s3_server import Bucket, running_s3
    from sqs_queue import Queue

    with running_s3() as server:
        bucket, queue = Bucket(server, "lake"), Queue(server)
        bucket.put_folder(lake)
        queue.get_notified_by(bucket)
        source: JsonValue = {
            "type": "s3",
            "name": "lake",
            **bucket.settings(),
            "events": {"queue_url": queue.url},
        }
        yield source, lambda name, file: bucket.put(name, file.read_bytes())


if __name__ == "__main__":
    main()
