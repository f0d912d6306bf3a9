"""From units to records: sources that are no storage of files, scanned on executors.

A source is never scanned by more threads than it allows, over the whole run: the driver deals its
units out to as many slots as that, all units of a slot are scanned by the same task, and a task
uses as many threads for a source as it has slots of it. There are no more tasks than cores, and a
task scans all of its sources at the same time, so that no source waits for one that hangs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from lumos.core.models import Urn
from lumos.core.models.base import canonical_json
from lumos.spark.stages.arrow_rows import arrow_array, rows
from lumos.spark.stages.part_files import OutputRow, written_by_tasks
from lumos.spark.stages.rows import (
    DATASET,
    FOUND,
    PROBLEM_KINDS,
    PROBLEMS,
    RECORDS,
    UNITS_TO_SCAN,
    BuiltDataset,
    ScannedRow,
    UnitToScan,
)

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

RECORD, PROBLEM = "record", "problem"
TABLES = {DATASET: FOUND, RECORD: RECORDS, PROBLEM: PROBLEMS}
_TASK = "task"
ScanUnits = Callable[[Iterable[UnitToScan]], Iterator[ScannedRow]]


def units_frame(spark: SparkSession, units: Sequence[UnitToScan], *, tasks: int) -> DataFrame:
    """Return the units, dealt out to tasks by their slots."""
    import pyarrow as pa

    slots = {slot: number for number, slot in enumerate(sorted({unit[:2] for unit in units}))}
    table = pa.table(
        {
            "source": arrow_array([unit.source for unit in units], pa.string()),
            "slot": arrow_array([unit.slot for unit in units], pa.int64()),
            "number": arrow_array([unit.number for unit in units], pa.int64()),
            "content": arrow_array([unit.content for unit in units], pa.binary()),
            _TASK: arrow_array([slots[unit[:2]] % tasks for unit in units], pa.int64()),
        }
    )
    frame = spark.createDataFrame(table, f"{UNITS_TO_SCAN}, {_TASK} long")
    return frame.repartitionById(tasks, frame[_TASK].cast("int"))


def scan_records(units: DataFrame, scan_units: ScanUnits, *, aside: Path) -> DataFrame:
    """Scan the units where this runs, and return the files with what was found.

    What a task counts of datasets are all of them, and of problems those that are errors.
    """

    def found(parts: Iterator[pa.RecordBatch]) -> Iterator[OutputRow]:
        for row in scan_units(list(_units(parts))):
            yield _output_rows(row)

    return written_by_tasks(units, found, tables=TABLES, aside=aside)


def _units(parts: Iterator[pa.RecordBatch]) -> Iterator[UnitToScan]:
    for part in parts:
        for row in rows(part, UnitToScan._fields):
            yield UnitToScan(*row)  # type: ignore[arg-type]


def _output_rows(row: ScannedRow) -> OutputRow:
    if row.kind == DATASET:
        return OutputRow(DATASET, (*_built(row), row.unit), counts=True)
    if row.kind in PROBLEM_KINDS:
        return OutputRow(PROBLEM, problem_row(row), counts=row.code is not None)
    return OutputRow(RECORD, (*row[:5], row.hash, row.document))


def problem_row(row: ScannedRow) -> tuple[object, ...]:
    """Return the columns of a problem."""
    return (*row[:5], row.reason, row.code, row.hint, row.retryable, row.document)


def _built(row: ScannedRow) -> BuiltDataset:
    urn = Urn.canonical(row.key)
    return BuiltDataset(
        row.source,
        canonical_json(urn.parts).decode(),
        row.key,
        row.hash or "",
        urn.platform,
        row.document or "",
        None,
    )


def ranked_by_unit(datasets: DataFrame) -> DataFrame:
    """Add `rank`: 1 for the dataset that counts, the one of the first unit that found it."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

    first = Window.partitionBy("source", "urn").orderBy("unit")
    return datasets.withColumn("rank", F.row_number().over(first))
