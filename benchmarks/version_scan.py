"""What a bulk scan of versions costs, against reading the same snapshot once.

Run: python benchmarks/version_scan.py [--size N] [--rounds N]

N datasets with 30 fields each, in two stored snapshots of which 1 % differ. The first is applied
to an empty history; then, in each round, in random order:
  read       floor: every line of the snapshot, unparsed
  unchanged  the snapshot against a history that holds it
  changed    the other snapshot against it, 1 % of its datasets get a version; nothing is written
`ratio` is Lumos / floor in CPU time. Each memory is that of a child process that does the one
thing.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

from lumos.core.controllers.version_controller import VersionController
from lumos.core.models import LumosDataset
from lumos.core.runtime.project import Project
from lumos.core.runtime.unit_of_work import UnitOfWork
from lumos.core.store.snapshots.manifest import SnapshotHeader
from lumos.core.store.snapshots.snapshot_sections import SnapshotSections
from lumos.core.store.snapshots.snapshot_store import SnapshotStore
from lumos.core.store.state_folder import DATABASE_FILE
from lumos.feature.snapshot.source import open_source, section_lines

AT = datetime(2026, 1, 1, tzinfo=UTC)
FIELDS = 30
MEGABYTE = 1 << 20


def datasets(size: int, *, changed: bool) -> Iterator[LumosDataset]:
    for number in range(size):
        columns = FIELDS + (changed and number % 100 == 0)
        fields = [
            {"name": f"column_{place:02d}", "type": "STRING", "description": f"Meaning {place}"}
            for place in range(columns)
        ]
        yield LumosDataset.from_json(
            {
                "urn": f"lumos://s3/lake/zone_{number % 7}/table_{number:07d}",
                "name": f"table_{number:07d}",
                "platform": "s3",
                "schema": {"fields": fields},
                "statistics": {"row_count_estimate": number},
            }
        )


def stored(folder: Path, size: int) -> list[str]:
    store = SnapshotStore(folder / "snapshots")
    found = []
    for day, changed in enumerate((False, True)):
        at = AT + timedelta(days=day)
        header = SnapshotHeader(lumos_version="0", export_timestamp=at, source_platform="s3")
        sections = SnapshotSections(datasets=datasets(size, changed=changed))
        found.append(store.write_sections(header, sections, at=at).id)
    return found


def read(folder: Path, snapshot: str) -> int:
    source = open_source(snapshot, store=SnapshotStore(folder / "snapshots"))
    return sum(1 for _ in section_lines(source, "datasets"))


def scan(folder: Path, snapshot: str) -> int:
    with UnitOfWork(Project(given_state_dir=folder, environment={})) as work:
        return VersionController(work).compute(target=snapshot).counts.new


def seconds(act: Callable[[], object]) -> float:
    begin = time.process_time()
    act()
    return time.process_time() - begin


def peak_of(action: str, folder: Path, *, snapshot: str) -> int:
    command = [sys.executable, __file__, "--only", action, str(folder), snapshot]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def only(action: str, folder: str, snapshot: str) -> None:
    (read if action == "read" else scan)(Path(folder), snapshot)
    status = Path("/proc/self/status").read_text(encoding="ascii")
    print(int(status.partition("VmHWM:")[2].split()[0]) * 1024)


def compare(folder: Path, size: int, *, rounds: int) -> None:
    first, second = stored(folder, size)
    with UnitOfWork(Project(given_state_dir=folder, environment={})) as work:
        applied = seconds(lambda: VersionController(work).apply(target=first))
        size_of_database = (folder / DATABASE_FILE).stat().st_size
    print(
        f"{size:>8,} datasets  first versions {applied / size * 1e6:6.1f} us each, "
        f"{size_of_database / size:,.0f} bytes each"
    )
    ways: dict[str, Callable[[], object]] = {
        "read": lambda: read(folder, first),
        "unchanged": lambda: scan(folder, first),
        "changed": lambda: scan(folder, second),
    }
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name in random.sample(list(ways), len(ways)):
            taken[name].append(seconds(ways[name]))
    for way, snapshot in (("read", first), ("unchanged", first), ("changed", second)):
        ratio = median(a / b for a, b in zip(taken[way], taken["read"], strict=True))
        peak = peak_of(way, folder, snapshot=snapshot) / MEGABYTE
        each = median(taken[way]) / size * 1e6
        print(
            f"{size:>8,} datasets  {way:<10}{each:6.1f} us each  ratio {ratio:5.2f}  {peak:.0f} MB"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.only:
        only(*arguments.only)
        return
    with tempfile.TemporaryDirectory(prefix="lumos-bench-") as folder:
        compare(Path(folder), arguments.size, rounds=arguments.rounds)


if __name__ == "__main__":
    main()
