"""What a diff of two snapshots costs above reading them, in CPU and in memory.

Run: python benchmarks/diff_snapshots.py [--full] [--sizes N ...] [--rounds N]

Stored snapshots: N datasets with 30 fields each, made from a seed; in the newer one 1 % of them
changed (a type, a flag, a text, a column more or less); at the first size, also a pair of which
another 10 % have new statistics besides, which change no contract. Each way runs in a process of
its own, in turn:
  read    the floor: every part of both read and unpacked, nothing else
  check   the same, every part held against its SHA-256
  lumos   `lumos diff`: checked, merged, what differs judged by all rules and written as JSON
  parse   the JSON of every line of both parsed, then compared by URN and hash
CPU is that of the work, without the start of Python; memory is the peak of the whole process. The
target is 2 x the CPU of `read` at 100,000 datasets, and 150 MB at any size.

Files: two documents of 1,000 datasets, and the CPU of the whole command, its start included, for
files as `lumos export` writes them and for files as others do. The target is 1 s.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import orjson
import zstandard

from lumos.core.changes.policy import ChangePolicy
from lumos.core.models import LumosDataset, SnapshotStatistics
from lumos.core.store.snapshots.manifest import SnapshotHeader
from lumos.core.store.snapshots.snapshot_sections import (
    SectionLine,
    SnapshotContent,
    dataset_section_line,
)
from lumos.core.store.snapshots.snapshot_store import SnapshotStore
from lumos.core.store.snapshots.stored_snapshot import StoredSnapshot
from lumos.entry.cli.diff_text import diff_chunks
from lumos.feature.snapshot.diff import streamed_diff
from lumos.feature.snapshot.source import StoredSource
from lumos.framework_cli import OBJECTS_BETWEEN_COLLECTIONS

AT = datetime(2026, 1, 1, tzinfo=UTC)
SEED = 5
FIELDS = 30
CHANGED_OF, OBSERVED_OF = 100, 10
DISTINCT = 20_000
PARSED_UP_TO = 20_000
WORDS = """
    account active address age agent amount area audit balance batch billing branch brand budget
    campaign cart category channel city claim client code comment company contact contract cost
    country coupon credit currency customer daily date deleted delivery device discount due
    duration email end event expiry failed feature fee file first flag gross group hash height
    history hour image index invoice item job key kind label language last latitude ledger
    level limit line link list load location login longitude margin market member message meter
    method minute model month name net network note number offer order origin owner page parent
    partner payment period phone plan platform point policy position postal price product
    profile promotion provider purchase quantity quarter rank rate ratio reason record refund
    region request result retry revenue role route sale score season segment sender sequence
    service session shipment size source stage start state status step stock store stream street
    subject sum supplier target tax team tenant term test ticket time title token total
    transfer unit update usage user valid value vendor version visit volume week weight year zone
""".split()  # noqa: SIM905 - a list would take two pages
TYPES = (
    *["STRING"] * 8,
    *["INT64"] * 5,
    *["INT32"] * 3,
    *["DOUBLE"] * 2,
    *["BOOLEAN"] * 2,
    *["DATE", "TIMESTAMP", "TIMESTAMP", "BINARY"],
)
Json = dict[str, Any]


def document(number: int, *, edited: bool = False, observed: bool = False) -> Json:
    """Return dataset number so-and-so, always the same; large numbers are renamed copies."""
    original = number % DISTINCT
    name, folder, columns = _content(original)
    fields = _edited([*columns], number // CHANGED_OF) if edited else [*columns]
    rows = (original * 7919 + observed) % 10_000_000
    return {
        "urn": f"lumos://s3/lake/{folder}/{name}_{number:07d}",
        "name": f"{name}_{number:07d}",
        "platform": "s3",
        "format": "PARQUET",
        "schema": {"fields": fields},
        "statistics": {"file_count": 1 + original % 97, "row_count_estimate": rows},
    }


@cache
def _content(number: int) -> tuple[str, str, tuple[Json, ...]]:
    draw = random.Random(f"{SEED}/{number}")  # noqa: S311 - nothing is secret here
    names: dict[str, None] = {}
    while len(names) < FIELDS:
        names["_".join(draw.choices(WORDS, k=draw.choice((1, 2, 2, 3))))] = None
    fields = []
    for name in names:
        field: Json = {"name": name, "type": draw.choice(TYPES), "nullable": draw.random() < 0.8}  # noqa: PLR2004
        if draw.random() < 0.5:  # noqa: PLR2004
            text = " ".join(draw.choices(WORDS, k=draw.randint(3, 9)))
            field["description"] = text.capitalize()
        fields.append(field)
    return "_".join(draw.choices(WORDS, k=2)), draw.choice(WORDS), tuple(fields)


def _edited(fields: list[Json], kind: int) -> list[Json]:
    """Change one column, or make it one more or one less."""
    place = kind % FIELDS
    field = fields[place]
    match kind % 5:
        case 0:
            fields[place] = {**field, "type": "UUID"}
        case 1:
            fields[place] = {**field, "nullable": not field["nullable"]}
        case 2:
            fields[place] = {**field, "description": "Said in other words"}
        case 3:
            fields.append({"name": "a_new_column", "type": "DATE", "nullable": True})
        case _:
            del fields[place]
    return fields


def dataset(number: int, *, edited: bool) -> LumosDataset:
    return LumosDataset.from_json(document(number, edited=edited))


def documents(size: int, *, later: bool, observing: bool = False) -> Iterator[Json]:
    for number in range(size):
        edited = later and number % CHANGED_OF == 0
        observed = later and observing and number % OBSERVED_OF == 1
        yield document(number, edited=edited, observed=observed)


def written(store: SnapshotStore, size: int, *, later: bool, observing: bool = False) -> Path:
    """Store one of the two states and return its folder."""
    at = AT + timedelta(days=int(later))
    lines: Iterator[SectionLine] = map(
        dataset_section_line, documents(size, later=later, observing=observing)
    )
    counts = SnapshotStatistics(datasets=size, fields=size * FIELDS)
    header = SnapshotHeader(lumos_version="0", export_timestamp=at, source_platform="s3")
    content = SnapshotContent(header=header, lines=lines, statistics=lambda: counts)
    return store.root / store.write_content(content, at=at).id


def read(*folders: Path) -> int:
    unpacked = 0
    for stored in map(StoredSnapshot.open, folders):
        for part in stored.manifest.parts:
            content = (stored.folder / part.name).read_bytes()
            unpacker = zstandard.ZstdDecompressor()
            with unpacker.stream_reader(content, read_across_frames=True) as stream:
                unpacked += len(stream.read(part.plain_bytes))
    return unpacked


def check(*folders: Path) -> int:
    return sum(
        len(part.plain())
        for stored in map(StoredSnapshot.open, folders)
        for bucket in range(stored.bucket_count())
        if (part := stored.part(bucket)) is not None
    )


def lumos(old: Path, new: Path) -> int:
    sources = [StoredSource(StoredSnapshot.open(folder)) for folder in (old, new)]
    with (
        streamed_diff(*sources, diff_datasets=ChangePolicy().judge) as found,
        Path(os.devnull).open("wb") as nowhere,
    ):
        for chunk in diff_chunks(found, lambda _change: True):
            nowhere.write(chunk)
        return found.totals.datasets.changed


def parse(old: Path, new: Path) -> int:
    before, after = (
        {item["urn"]: item for item in map(orjson.loads, StoredSnapshot.open(folder).iter_lines())}
        for folder in (old, new)
    )
    return sum(1 for urn in before if before[urn]["contract_hash"] != after[urn]["contract_hash"])


WAYS: dict[str, Callable[[Path, Path], int]] = {
    "read": read,
    "check": check,
    "lumos": lumos,
    "parse": parse,
}


def measured_here(way: str, old: Path, new: Path) -> None:
    """Do the work in this process, set up as the command is, and print what it took."""
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    start = time.process_time()
    answer = WAYS[way](old, new)
    taken = time.process_time() - start
    status = Path("/proc/self/status").read_text()
    peak = int(status.partition("VmHWM:")[2].split()[0]) / 1024
    print(json.dumps({"cpu": taken, "peak": peak, "answer": answer}))


def in_turn(folders: list[Path], ways: list[str], *, rounds: int) -> dict[str, list[Json]]:
    taken: dict[str, list[Json]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way in random.sample(ways, len(ways)):
            command = [sys.executable, __file__, "--measure", way, *map(str, folders)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            taken[way].append(json.loads(done.stdout))
    return taken


def compare_stored(size: int, *, rounds: int, observing: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = SnapshotStore(Path(folder))
        old, new = (
            written(store, size, later=later, observing=observing) for later in (False, True)
        )
        info = StoredSnapshot.open(old).info
        ways = [way for way in WAYS if way != "parse" or size <= PARSED_UP_TO]
        taken = in_turn([old, new], ways, rounds=rounds)
    edited = (size + CHANGED_OF - 1) // CHANGED_OF
    assert {each["answer"] for each in taken["lumos"]} == {edited}, "the diff missed something"
    floor = median(each["cpu"] for each in taken["read"])
    what = "1 % changed" + (", 10 % observed anew" if observing else "")
    packed, plain = info.bytes / 1e6, info.plain_bytes / 1e6
    print(f"\n{size:,} datasets, {what}: {info.parts} parts, {packed:,.0f} MB of {plain:,.0f} each")
    for way, rows in taken.items():
        cpu = median(each["cpu"] for each in rows)
        peak = max(each["peak"] for each in rows)
        print(f"  {way:6} {cpu:8.3f} s CPU  {cpu / floor:6.2f} x read  {peak:6.0f} MB at most")


def compare_files(size: int, *, rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        for name, later in (("old", False), ("new", True)):
            store = SnapshotStore(project / ".lumos" / "snapshots")
            stored = written(store, size, later=later)
            command("export", "--snapshot", stored.name, "--output", f"{name}.json", cwd=project)
            sealed = orjson.loads((project / f"{name}.json").read_bytes())
            plain = {key: value for key, value in sealed.items() if "sha256" not in key}
            (project / f"{name}-other.json").write_bytes(orjson.dumps(plain))
        pairs = {
            "as lumos export writes them": ("old.json", "new.json"),
            "as others do": ("old-other.json", "new-other.json"),
        }
        taken: dict[str, list[float]] = {name: [] for name in pairs}
        starts: list[float] = []
        for _ in range(rounds):
            starts.append(command("--help", cwd=project))
            for name, (old, new) in random.sample(list(pairs.items()), len(pairs)):
                taken[name].append(command("diff", "--source", old, "--target", new, cwd=project))
    print(f"\ntwo files of {size:,} datasets, whole command (lumos --help: {median(starts):.2f} s)")
    for name, seconds in taken.items():
        print(f"  {name:28} {median(seconds):6.2f} s CPU")


def command(*arguments: str, cwd: Path) -> float:
    """Run `lumos` and return the CPU that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = [sys.executable, "-m", "lumos", *arguments]
    subprocess.run(words, cwd=cwd, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", help="datasets in each snapshot")
    parser.add_argument("--full", action="store_true", help="1,000,000 datasets too")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--measure", nargs=3, metavar=("WAY", "OLD", "NEW"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        way, old, new = given.measure
        measured_here(way, Path(old), Path(new))
        return
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    sizes = given.sizes or [20_000, 100_000, *([1_000_000] if given.full else [])]
    for size in sizes:
        compare_stored(size, rounds=given.rounds, observing=False)
    compare_stored(sizes[0], rounds=given.rounds, observing=True)
    compare_files(1_000, rounds=given.rounds)


if __name__ == "__main__":
    main()
