"""The sandbox inside Spark's own Python workers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from lumos.core.formats.sandbox import CRASHED, FileItem, Limits, Sandbox

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def extractor(importable: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a stage that reads the files of a partition with a reader that some of them end."""

    def extracted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        sys.path.append(importable)
        with Sandbox(reader="hostile_reader:read", limits=Limits(seconds=6)) as sandbox:
            for batch in batches:
                items = [FileItem(str(path), 1) for path in batch.column("path").to_pylist()]
                found = list(sandbox.read_files(items))
                names = [Path(item.path).name for item, _ in found]
                outcomes = [str(getattr(answer, "message", "read")) for _, answer in found]
                yield pa.RecordBatch.from_pydict({"name": names, "outcome": outcomes})

    return extracted


def test_one_row_comes_back_for_every_file_whatever_files_do(
    spark: SparkSession, tmp_path: Path
) -> None:
    names = [*[f"good-{i}.csv" for i in range(60)], "abort.csv", "segfault.csv", "hang.csv"]
    for name in names:
        (tmp_path / name).write_bytes(b"id,name\n1,a\n")
    files = spark.createDataFrame([(str(tmp_path / name),) for name in names], "path string")
    rows = files.mapInArrow(
        extractor(str(Path(__file__).parents[1])), "name string, outcome string"
    ).collect()
    found = {row["name"]: row["outcome"] for row in rows}
    assert len(rows) == len(names)
    assert {name: found.pop(name) for name in ("abort.csv", "segfault.csv", "hang.csv")} == {
        "abort.csv": f"{CRASHED} (SIGABRT)",
        "segfault.csv": f"{CRASHED} (SIGSEGV)",
        "hang.csv": "reading it took longer than 6 s",
    }
    assert set(found.values()) == {"read"}
