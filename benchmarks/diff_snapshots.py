"""How much a diff of two stored snapshots costs above reading them, and how it grows.

Run: python benchmarks/diff_snapshots.py [--size N] [--rounds N]

Two snapshots of N datasets with 30 fields each, 1 % of them changed. In each round, in random
order, three ways over the same files:
  floor  read both: every part read, checked against its SHA-256, unpacked and split into lines
  lines  both merged, equal lines skipped unparsed, the JSON of those that differ parsed
  merge  the diff as Lumos does it: the same, with models built and compared for what differs
  parse  the JSON of every line of both parsed, then compared by URN and hash
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from statistics import median

import orjson

from lumos.core.models import Bump, Change, ChangeLevel, ChangeScope, LumosDataset
from lumos.core.store.manifest import SnapshotHeader
from lumos.core.store.part_format import merge_parts
from lumos.core.store.snapshot_sections import SnapshotSections
from lumos.core.store.snapshot_store import SnapshotStore
from lumos.feature.snapshot.diff import diff_snapshots
from lumos.feature.snapshot.pairs import aligned_buckets
from lumos.feature.snapshot.source import StoredSource

AT = datetime(2026, 1, 1, tzinfo=UTC)
FIELDS = 30
CHANGED_OF = 100


def dataset(number: int, *, edited: bool) -> LumosDataset:
    fields = [
        {"name": f"column_{place:02d}", "type": "STRING", "description": f"Meaning {place}"}
        for place in range(FIELDS)
    ]
    if edited:
        fields[number % FIELDS]["type"] = "INT64"
    return LumosDataset.from_json(
        {
            "urn": f"lumos://s3/lake/zone_{number % 7}/table_{number:07d}",
            "name": f"table_{number:07d}",
            "platform": "s3",
            "format": "PARQUET",
            "schema": {"fields": fields},
            "statistics": {"file_count": number % 97, "row_count_estimate": number},
        }
    )


def written(store: SnapshotStore, size: int, *, later: bool) -> StoredSource:
    stream = (dataset(number, edited=later and number % CHANGED_OF == 0) for number in range(size))
    at = AT + timedelta(days=int(later))
    header = SnapshotHeader(lumos_version="0", export_timestamp=at, source_platform="s3")
    info = store.write_sections(header, SnapshotSections(datasets=stream), at=at)
    return StoredSource(store.open(info.id))


def lines_of(source: StoredSource) -> Iterator[bytes]:
    return source.stored.iter_lines()


def read_both(old: StoredSource, new: StoredSource) -> int:
    count = sum(1 for source in (old, new) for _ in lines_of(source))
    return count // 2 // CHANGED_OF


def merge(old: StoredSource, new: StoredSource) -> int:
    return len(diff_snapshots(old, new, diff_datasets=one_change).changed)


def merge_lines(old: StoredSource, new: StoredSource) -> int:
    return sum(
        orjson.loads(before)["urn"] == orjson.loads(after)["urn"]
        for pair in aligned_buckets(old, new, section="datasets")
        for lines in pair.lines()
        for before, after in merge_parts(*lines)
        if before is not None and after is not None
    )


def parse_everything(old: StoredSource, new: StoredSource) -> int:
    before = {item["urn"]: item for item in map(orjson.loads, lines_of(old))}
    after = {item["urn"]: item for item in map(orjson.loads, lines_of(new))}
    return sum(1 for urn in before if before[urn]["contract_hash"] != after[urn]["contract_hash"])


def one_change(old: LumosDataset | None, new: LumosDataset | None) -> tuple[Change, ...]:
    """Stand in for the rules, which cost the same in every way of comparing."""
    known = new or old
    assert known is not None
    return (
        Change(
            dataset=known.urn,
            path="",
            rule="changed",
            level=ChangeLevel.INFORMATIONAL,
            scope=ChangeScope.DATASET,
            bump=Bump.NONE,
            message="changed",
        ),
    )


WAYS: dict[str, Callable[[StoredSource, StoredSource], int]] = {
    "floor": read_both,
    "lines": merge_lines,
    "merge": merge,
    "parse": parse_everything,
}


def measure(
    old: StoredSource, new: StoredSource, *, rounds: int, expected: int
) -> dict[str, tuple[float, float]]:
    """Return the median CPU and wall seconds of each way."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in WAYS}
    for _ in range(rounds):
        for name in random.sample(list(WAYS), len(WAYS)):
            cpu, wall = time.process_time(), time.perf_counter()
            found = WAYS[name](old, new)
            taken[name].append((time.process_time() - cpu, time.perf_counter() - wall))
            assert found == expected, f"{name} found {found} changes instead of {expected}"
    return {
        name: (median(cpu for cpu, _ in times), median(wall for _, wall in times))
        for name, times in taken.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", type=int, default=20_000, help="datasets in each snapshot")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    sizes = [max(CHANGED_OF, arguments.size // 4), max(CHANGED_OF, arguments.size // 2)]
    merge_cpu: list[tuple[int, float]] = []
    print("datasets  parts  plain MB  way    CPU s   wall s  CPU x floor  wall x floor")
    for size in [*sizes, arguments.size]:
        with tempfile.TemporaryDirectory() as folder:
            store = SnapshotStore(Path(folder))
            old, new = (written(store, size, later=later) for later in (False, True))
            expected = (size + CHANGED_OF - 1) // CHANGED_OF
            taken = measure(old, new, rounds=arguments.rounds, expected=expected)
        info = old.stored.info
        floor = taken["floor"]
        for name, (cpu, wall) in taken.items():
            print(
                f"{size:8,}  {info.parts:5}  {info.plain_bytes / 1e6:8.1f}  {name:5} "
                f"{cpu:7.3f}  {wall:7.3f}  {cpu / floor[0]:11.2f}  {wall / floor[1]:12.2f}"
            )
        merge_cpu.append((size, taken["merge"][0]))
    for (small, before), (large, after) in pairwise(merge_cpu):
        growth = f"x{large / small:.2f}, merge CPU x{after / before:.2f}"
        print(f"growth {small:,} -> {large:,} datasets: {growth}")


if __name__ == "__main__":
    main()
