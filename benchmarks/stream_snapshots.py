"""How fast snapshots stream out and in, against gzip and orjson alone, and how that grows.

Run: python benchmarks/stream_snapshots.py [--size N] [--rounds N] [--catalog N] [--large N]

A snapshot of N datasets with 30 fields each. In each round, in random order, over the same content:
  write   floor: the same document by orjson.dumps as a whole, gzip (level 6) to a file
  export  a stored snapshot written as a document, its parts checked, items sorted, sealed
  read    floor: the same document gunzipped and parsed by orjson.loads as a whole
  import  the document read into checked parts, as every import begins
`ratio` is floor / Lumos in CPU time: 1 is as fast as the floor, 0.5 half as fast. The floors hold
the whole document in memory; the peaks are those of a child process that does the one thing.
With --catalog, N datasets are also imported into an empty catalog, and then again. With --large,
only that: N datasets are validated, exported and read once, each in a process of its own.
"""

from __future__ import annotations

import argparse
import gzip
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import orjson

from lumos.core.controllers.import_controller import ImportController
from lumos.core.models import LumosDataset
from lumos.core.runtime.project import Project
from lumos.core.runtime.unit_of_work import UnitOfWork
from lumos.core.store.snapshots.manifest import SnapshotHeader
from lumos.core.store.snapshots.snapshot_sections import SnapshotSections
from lumos.core.store.snapshots.snapshot_store import SnapshotStore
from lumos.feature.snapshot.export import export_document
from lumos.feature.snapshot.source import open_source
from lumos.feature.snapshot.validation import validate

AT = datetime(2026, 1, 1, tzinfo=UTC)
FIELDS = 30
MEGABYTE = 1 << 20


def datasets(size: int) -> Iterator[LumosDataset]:
    for number in range(size):
        fields = [
            {"name": f"column_{place:02d}", "type": "STRING", "description": f"Meaning {place}"}
            for place in range(FIELDS)
        ]
        yield LumosDataset.from_json(
            {
                "urn": f"lumos://s3/lake/zone_{number % 7}/table_{number:07d}",
                "name": f"table_{number:07d}",
                "platform": "s3",
                "format": "PARQUET",
                "schema": {"fields": fields},
                "statistics": {"file_count": number % 97, "row_count_estimate": number},
            }
        )


def filled(folder: Path, size: int) -> SnapshotStore:
    store = SnapshotStore(folder)
    header = SnapshotHeader(lumos_version="0", export_timestamp=AT, source_platform="s3")
    store.write_sections(header, SnapshotSections(datasets=datasets(size)), at=AT)
    return store


def write_floor(document: object, target: Path, *, pretty: bool) -> None:
    option = orjson.OPT_INDENT_2 if pretty else None
    with gzip.open(target, "wb", compresslevel=6) as stream:
        stream.write(orjson.dumps(document, option=option))


def read_floor(packed: Path) -> None:
    with gzip.open(packed) as stream:
        orjson.loads(stream.read())


def export(store: SnapshotStore, target: Path, *, pretty: bool) -> None:
    export_document(open_source("latest", store=store), target, pretty=pretty)


def seconds(act: Callable[[], object]) -> float:
    begin = time.process_time()
    act()
    return time.process_time() - begin


def compare(folder: Path, size: int, *, rounds: int, pretty: bool) -> None:
    store = filled(folder / "snapshots", size)
    document, packed = folder / "document.json", folder / "document.json.gz"
    export(store, document, pretty=pretty)
    content = document.read_bytes()
    parsed = orjson.loads(content)
    with gzip.open(packed, "wb", compresslevel=6) as stream:
        stream.write(content)
    ways: dict[str, Callable[[], object]] = {
        "write": lambda: write_floor(parsed, folder / "floor.gz", pretty=pretty),
        "export": lambda: export(store, folder / "again.json", pretty=pretty),
        "read": lambda: read_floor(packed),
        "import": lambda: open_source(str(document), store=store),
    }
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name in random.sample(list(ways), len(ways)):
            taken[name].append(seconds(ways[name]))
    for floor, way in (("write", "export"), ("read", "import")):
        ratio = median(a / b for a, b in zip(taken[floor], taken[way], strict=True))
        rate = len(content) / MEGABYTE / median(taken[way])
        print(
            f"{size:>8,} datasets  {'pretty' if pretty else 'compact':<8} {way:<7}"
            f"{median(taken[way]) / size * 1e6:7.1f} us each  {rate:6.0f} MB/s  "
            f"{floor} floor {median(taken[floor]) / size * 1e6:6.1f} us  ratio {ratio:.2f}"
        )


def alone(action: str, folder: Path) -> tuple[int, float]:
    """Return the peak memory, in bytes, and the CPU seconds of a process of its own."""
    command = [sys.executable, __file__, "--only", action, "--folder", str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    peak, taken = done.stdout.split()
    return int(peak), float(taken)


def print_peaks(folder: Path, size: int) -> None:
    nothing, _ = alone("nothing", folder)
    for action in ("validate", "export", "import"):
        peak, taken = alone(action, folder)
        print(
            f"{size:>8,} datasets  {action:<8} alone {taken:7.1f} s CPU, "
            f"{(peak - nothing) / MEGABYTE:.0f} MB above the interpreter"
        )


def only(action: str, folder: Path) -> None:
    store = SnapshotStore(folder / "snapshots")
    if action == "validate":
        assert validate("latest", store=store).ok
    elif action == "export":
        export(store, folder / "document.json", pretty=False)
    elif action == "import":
        open_source(str(folder / "document.json"), store=store)
    status = Path("/proc/self/status").read_text(encoding="ascii")
    print(int(status.partition("VmHWM:")[2].split()[0]) * 1024, time.process_time())


def into_a_catalog(folder: Path, size: int) -> None:
    document = folder / "catalog.json"
    export(filled(folder / "catalog-snapshots", size), document, pretty=False)
    with UnitOfWork(Project(given_state_dir=folder / "state", environment={})) as work:
        for times in ("empty", "full"):
            taken = seconds(lambda: ImportController(work).run(str(document)))
            print(f"{size:>8,} datasets  import into {times} catalog  {taken / size * 1e6:,.0f} us")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--size", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--catalog", type=int, default=1_000)
    parser.add_argument("--large", type=int)
    parser.add_argument("--only", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.only:
        only(given.only, given.folder)
        return
    if given.large:
        with tempfile.TemporaryDirectory() as name:
            filled(Path(name) / "snapshots", given.large)
            print_peaks(Path(name), given.large)
        return
    for size in (given.size // 10, given.size):
        for pretty in (True, False):
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                compare(folder, size, rounds=given.rounds, pretty=pretty)
                if not pretty:
                    print_peaks(folder, size)
    if given.catalog:
        with tempfile.TemporaryDirectory() as name:
            into_a_catalog(Path(name), given.catalog)


if __name__ == "__main__":
    main()
