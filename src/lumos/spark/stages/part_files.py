"""Tables that tasks write where their rows are made: what is read never passes through the JVM.

A task writes one file for each kind of rows into a separate folder and returns its name.
Only files that a successful task returned are moved to where they are read: what a task left behind
that failed, or was overtaken by a copy of itself, is never seen.
"""

from __future__ import annotations

import gc
import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from lumos.spark.stages.arrow_rows import batches

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyspark.sql import DataFrame

PARTS: Final = "kind string, name string, counted long"
"""A file that a task wrote."""

_ROWS_PER_GROUP = 16_384
_Row = tuple[object, ...]


class Part(NamedTuple):
    """A file with rows of one kind."""

    kind: str
    name: str
    counted: int
    """How many of its rows the caller counts."""


class OutputRow(NamedTuple):
    """A row for one of the tables."""

    kind: str
    row: _Row
    counts: bool = False


class PartWriter:
    """Writes the rows of one task.

    Args:
        folder: where files are put aside.
        tables: the columns of each kind of rows.
        task: a number that names and orders the files of tasks.
    """

    def __init__(self, folder: Path, tables: Mapping[str, str], *, task: int) -> None:
        self._folder = folder
        self._tables = tables
        self._name = f"part-{task:05}-{uuid.uuid4().hex}.parquet"
        self._waiting: dict[str, list[_Row]] = {kind: [] for kind in tables}
        self._open: dict[str, pq.ParquetWriter] = {}
        self._counted = dict.fromkeys(tables, 0)

    def add(self, kind: str, row: _Row, *, counts: bool = False) -> None:
        """Take one row."""
        waiting = self._waiting[kind]
        waiting.append(row)
        self._counted[kind] += counts
        if len(waiting) >= _ROWS_PER_GROUP:
            self._flush(kind)

    def close(self) -> Iterator[Part]:
        """Write what is left, and return every file."""
        for kind, waiting in self._waiting.items():
            if waiting:
                self._flush(kind)
        for kind, writer in self._open.items():
            writer.close()
            yield Part(kind, self._name, self._counted[kind])

    def _flush(self, kind: str) -> None:
        import pyarrow as pa

        waiting, self._waiting[kind] = self._waiting[kind], []
        table = pa.Table.from_batches(batches(waiting, self._tables[kind]))
        writer = self._open.get(kind)
        if writer is None:
            writer = self._open[kind] = _writer(self._folder / kind / self._name, table.schema)
        writer.write_table(table)


def _writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)  # here; whether there as well shows in the end
    return pq.ParquetWriter(path, schema, compression="snappy")


def written_by_tasks(
    frame: DataFrame,
    rows: Callable[[Iterator[pa.RecordBatch]], Iterable[OutputRow]],
    *,
    tables: Mapping[str, str],
    aside: Path,
) -> DataFrame:
    """Make rows of a frame where it is run, write them there, and return a frame of the files.

    Args:
        frame: the input.
        rows: makes them, in each task.
        tables: the columns of each kind of rows.
        aside: where the files are put.
    """

    def run(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        _spare_what_is_loaded()
        writer = PartWriter(aside, tables, task=_task())
        for kind, row, counts in rows(parts):
            writer.add(kind, row, counts=counts)
        yield from batches(writer.close(), PARTS)

    return frame.mapInArrow(run, PARTS)


@cache
def _spare_what_is_loaded() -> None:
    """Take modules out of garbage collection: PySpark collects after each task of a worker."""
    gc.freeze()


def _task() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    return context.partitionId() if context else 0


def aside_of(folder: Path) -> Path:
    """Return the folder into which tasks write what belongs into another one."""
    return folder.with_name(f"{folder.name}.aside")


def take_over(parts: Sequence[Part], aside: Path, folders: Mapping[str, Path]) -> list[Part]:
    """Move the files that tasks returned to where they are read; return those that are missing."""
    missing = []
    for part in parts:
        try:
            os.rename(aside / part.kind / part.name, folders[part.kind] / part.name)
        except FileNotFoundError:
            missing.append(part)
    return missing
