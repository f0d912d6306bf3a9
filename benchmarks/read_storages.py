"""What the sandbox costs over plain reading, and how many requests an object of S3 takes.

The sandbox reads every file in a process apart; the floor is the same reader in this process. The
requests are counted by the server, for Lumos and for pyarrow's own S3 client.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from lumos.core.formats.reader import preload, read_document
from lumos.core.formats.sandbox import close_shared_sandboxes
from lumos.core.storage.local import LocalSource
from lumos.core.storage.port import ListedObject
from lumos.core.storage.reading import ReadItem, read_items
from lumos.core.storage.s3 import S3Source

FILES = 4_000
ROUNDS = 3
PASSES = 3
OBJECTS = 40


def main() -> None:
    """Print both comparisons."""
    with tempfile.TemporaryDirectory() as folder:
        write_lake(Path(folder))
        compare_sandbox(folder)
    compare_requests()


def write_lake(folder: Path) -> None:
    """Write small files of three formats."""
    table = pa.table({f"column_{number}": [number] * 100 for number in range(20)})
    for number in range(FILES):
        path = folder / f"{number}"
        if number % 3 == 0:
            pq.write_table(table, path.with_suffix(".parquet"))
        elif number % 3 == 1:
            path.with_suffix(".csv").write_text("a,b,c\n" + "1,text,2.5\n" * 400, "utf-8")
        else:
            path.with_suffix(".jsonl").write_text('{"a": 1, "b": "text"}\n' * 400, "utf-8")


def compare_sandbox(folder: str) -> None:
    """Print the ratio of both ways, in processor time of all processes and in time."""
    storage = LocalSource(name="lake", path=folder).open()
    items = [
        ReadItem(each.path, each.size)
        for each in storage.list("")
        if isinstance(each, ListedObject)
    ]
    preload()

    def plain() -> None:
        for item in items:
            path = os.path.join(folder, os.fsdecode(item.path))
            with open(path, "rb") as stream:
                read_document(stream, size=item.size, name=path)

    def sandboxed(passes: int) -> None:
        for _ in range(passes):
            assert all(isinstance(answer, bytes) for answer in read_items(items, storage))

    ratios = []
    for _ in range(ROUNDS):
        base = cost(plain)
        first = cost(lambda: sandboxed(1))  # with what starting takes, which is paid once
        boxed = cost(lambda: sandboxed(1 + PASSES))
        ratios.append([(boxed[part] - first[part]) / PASSES / base[part] for part in (0, 1)])
    for part, name in enumerate(("processor time", "time")):
        values = sorted(ratio[part] for ratio in ratios)
        print(
            f"sandbox / plain reading, {FILES} files, {name}: {values[len(values) // 2]:.2f} "
            f"({values[0]:.2f} to {values[-1]:.2f}; wanted: below 1.10)"
        )


def cost(work: Callable[[], None]) -> tuple[float, float]:
    """Return the processor time of this process and its children, and the time that passed."""
    close_shared_sandboxes()
    begin, began = processor_seconds(), time.monotonic()
    work()
    passed = time.monotonic() - began
    close_shared_sandboxes()
    return processor_seconds() - begin, passed


def processor_seconds() -> float:
    """Return what this process and all children that ended have used."""
    uses = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(use.ru_utime + use.ru_stime for use in uses)


def compare_requests() -> None:
    """Print the requests for each object, by the count of the server."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
    from s3_server import ACCESS_KEY, REGION, SECRET_KEY, Bucket, running_s3

    table = pa.table({"id": range(40_000), "text": [f"{number:x}" * 8 for number in range(40_000)]})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    content = sink.getvalue().to_pybytes()
    with running_s3() as server:
        bucket = Bucket(server, "lake")
        for number in range(OBJECTS):
            bucket.put(f"t/{number}.parquet", content)
        server.requests.clear()
        storage = S3Source(name="lake", **bucket.settings()).open()
        listed = [each for unit in storage.units(1) for each in storage.list(unit)]
        items = [
            ReadItem(each.path, each.size) for each in listed if isinstance(each, ListedObject)
        ]
        assert all(isinstance(answer, bytes) for answer in read_items(items, storage))
        ours = len(server.reads()) / OBJECTS
        print(f"requests for each object: {ours:.2f}, and {len(server.listings())} for the listing")
        server.requests.clear()
        peer = pafs.S3FileSystem(
            access_key=ACCESS_KEY,
            secret_key=SECRET_KEY,
            region=REGION,
            endpoint_override=server.url.removeprefix("http://"),
            scheme="http",
        )
        for item in items:
            pq.read_metadata(f"lake/{item.path.decode()}", filesystem=peer)
        theirs = len(server.requests) / OBJECTS
        print(f"with pyarrow's client: {theirs:.2f}; ratio {ours / theirs:.2f}")


if __name__ == "__main__":
    main()
