"""The pipeline over records: scan units of sources that are no storage, on the executors."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from lumos.core.run_report import FOUND_TWICE
from lumos.spark.failures import reason_of
from lumos.spark.file_index import IndexTables, parquet_table
from lumos.spark.findings import FoundTables
from lumos.spark.stages.part_files import Part, PartWriter, aside_of, take_over
from lumos.spark.stages.records import (
    PROBLEM,
    RECORD,
    TABLES,
    ScanUnits,
    problem_row,
    ranked_by_unit,
    scan_records,
    units_frame,
)
from lumos.spark.stages.rows import (
    DATASET,
    EDGE,
    FOUND,
    MARK,
    OBSERVATION,
    SCOPE,
    SKIPPED,
    UNIT_DONE,
    UNIT_FAILED,
    UNLISTED_PART,
    ScannedRow,
    UnitLog,
    UnitToScan,
)
from lumos.spark.task_progress import task_progress
from lumos.spark.work_tables import WorkTables, interpreting, tasks_at_once

if TYPE_CHECKING:
    from pathlib import Path

    from lumos.core.progress import Progress
    from lumos.spark.file_index import Session

_FOLDERS = {DATASET: "datasets", RECORD: "records", PROBLEM: "problems"}
_BY_DRIVER = 99_999


Unscanned = Callable[[Iterable[UnitToScan], str], Iterator[ScannedRow]]
"""Gives the rows of units that could not be scanned, for a reason."""


class ScanFunctions(Protocol):
    """What the stage does, written without Spark; it travels to the executors."""

    @property
    def scan_units(self) -> ScanUnits: ...
    @property
    def unscanned(self) -> Unscanned: ...


class RecordCounts(NamedTuple):
    """What a run over records found."""

    units: int = 0
    failed_units: int = 0
    datasets: int = 0


class FoundRecord(NamedTuple):
    """What a source says beside datasets."""

    source: str
    key: str
    urn: str | None
    hash: str
    document: str


class FoundProblem(NamedTuple):
    """What went wrong in a source, or was left out, or should be known."""

    source: str
    unit: int
    kind: str
    """`unreadable`, `unlisted`, `skipped`, `warning` or `unit_failed`."""
    item: str
    urn: str | None
    reason: str
    code: str | None
    hint: str | None
    retryable: bool


class ScannedUnit(NamedTuple):
    """A unit that is over, done or failed."""

    source: str
    number: int
    label: str
    log: UnitLog


class FoundScope(NamedTuple):
    """A part of the URN space that a source has listed in full."""

    source: str
    urn_prefix: str


class RecordPipeline(FoundTables):
    """One run over the units of sources that yield records.

    What tasks find lies in `work` as Parquet, written by themselves, and is read from there:
    only names of files pass through Spark.
    """

    def __init__(
        self, session: Session, functions: ScanFunctions, *, work: Path, progress: Progress
    ) -> None:
        super().__init__(interpreting(session))
        self._work = work.absolute()
        self._functions = functions
        self._progress = progress
        self._tables = WorkTables(self._work)

    def run(self, units: Sequence[UnitToScan]) -> RecordCounts:
        """Scan the units; without any, Spark is not needed.

        Raises:
            SparkRunError: executors do not write where this process reads.
        """
        self._sources = sorted({unit.source for unit in units})
        self._progress.stage("scanning sources", total=len(units), unit="units")
        folders = {kind: self._work / name for kind, name in _FOLDERS.items()}
        for folder in folders.values():
            folder.mkdir(parents=True, exist_ok=True)
        self._now = IndexTables(self._session, self._work)
        if not units:
            return RecordCounts()
        found = sum(part.counted for part in self._scanned(units, folders) if part.kind == DATASET)
        doubles = self._without_doubles() if found else 0
        failed = sum(1 for _ in self._of_kind("problems", UNIT_FAILED, ("key",)))
        return RecordCounts(len(units), failed, found - doubles)

    def problems(self) -> Iterator[FoundProblem]:
        """Yield all problems, by source and unit."""
        columns = ("source", "unit", "kind", "key", "urn", "reason", "code", "hint", "retryable")
        found = [FoundProblem(*row) for row in self._rows("problems", columns)]  # type: ignore[arg-type]
        yield from sorted(found, key=lambda each: (*each[:4], each.reason))

    def records(self, kind: str) -> Iterator[FoundRecord]:
        """Yield the records of one kind, such as `edge`, `job` or `user`, in any order.

        Units of a source may say the same thing twice.
        """
        for row in self._of_kind("records", kind, FoundRecord._fields):
            yield FoundRecord(*row)  # type: ignore[arg-type]

    def edges(self) -> Iterator[FoundRecord]:
        """Yield the lineage edges; their key is a JSON list of both ends and the job."""
        return self.records(EDGE)

    def observations(self) -> Iterator[FoundRecord]:
        """Yield the observations; each has the URN of its dataset."""
        return self.records(OBSERVATION)

    def scopes(self) -> Iterator[FoundScope]:
        """Yield what was listed in full, by source."""
        found = {FoundScope(*row) for row in self._of_kind("records", SCOPE, ("source", "key"))}  # type: ignore[arg-type]
        yield from sorted(found)

    def marks(self) -> Mapping[str, Mapping[str, str]]:
        """Return the marks of each source that was scanned in full, for its next plan.

        Where several units set a mark, the last one in the order of the plan counts.
        """
        marks: dict[str, dict[str, str]] = {source: {} for source in self.complete_sources()}
        columns = ("source", "unit", "key", "document")
        rows: list[tuple[str, int, str, str]] = list(self._of_kind("records", MARK, columns))  # type: ignore[arg-type]
        for source, _, key, value in sorted(rows):
            if source in marks:
                marks[source][key] = value
        return marks

    def units(self) -> Iterator[ScannedUnit]:
        """Yield what each unit leaves for the log, by source and in the order of the plan."""
        columns = ("source", "unit", "key", "document")
        found = [
            ScannedUnit(source, number, label, UnitLog.from_json(log))  # type: ignore[arg-type]
            for table, kind in (("records", UNIT_DONE), ("problems", UNIT_FAILED))
            for source, number, label, log in self._of_kind(table, kind, columns)
        ]
        yield from sorted(found, key=lambda each: each[:2])

    def complete_sources(self) -> set[str]:
        """Return the sources of which no unit failed and no part could not be listed."""
        done = {str(row[0]) for row in self._of_kind("records", UNIT_DONE, ("source",))}
        for kind in (UNIT_FAILED, UNLISTED_PART):
            done -= {str(row[0]) for row in self._of_kind("problems", kind, ("source",))}
        return done

    def _scanned(self, units: Sequence[UnitToScan], folders: Mapping[str, Path]) -> list[Part]:
        """Scan in one job; if it fails, each source in its own, and report those that fail."""
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]
        from pyspark.errors import PySparkException

        try:
            return self._job(units, folders)
        except (Py4JError, PySparkException) as error:  # such as a driver that ends its process
            by_source = _by_source(units)
            if len(by_source) == 1:
                self._report(self._functions.unscanned(units, reason_of(error)))
                return []
        return [part for each in by_source.values() for part in self._scanned(each, folders)]

    def _job(self, units: Sequence[UnitToScan], folders: Mapping[str, Path]) -> list[Part]:
        spark, aside = self._session(), aside_of(self._work / RECORD)
        tasks = min(tasks_at_once(spark), len({unit[:2] for unit in units}))
        frame = units_frame(spark, units, tasks=tasks)
        told = scan_records(frame, self._functions.scan_units, aside=aside)
        with task_progress(spark, self._progress, items=len(units), tasks=tasks):
            return self._tables.taken_over(told, aside, folders)

    def _of_kind(
        self, table: str, kind: str, columns: Sequence[str]
    ) -> Iterator[tuple[object, ...]]:
        import pyarrow.dataset as pads

        return self._rows(table, columns, pads.field("kind") == kind)

    def _without_doubles(self) -> int:
        """Keep a dataset of the first unit that found it; return how many others there were."""
        if not self._has_doubles():
            return 0
        folder = self._work / _FOLDERS[DATASET]
        datasets = parquet_table(self._session(), folder, FOUND)
        ranked = ranked_by_unit(datasets)
        again = ranked.where("rank > 1").select("source", "unit", "urn").collect()
        once = self._tables.written("once", ranked.where("rank = 1").drop("rank"))
        shutil.rmtree(folder)
        os.rename(once, folder)
        self._report(
            ScannedRow(SKIPPED, source, unit, urn, urn=urn, reason=FOUND_TWICE)
            for source, unit, urn in again
        )
        return len(again)

    def _has_doubles(self) -> bool:
        import pyarrow.dataset as pads

        parts = sorted(map(str, (self._work / _FOLDERS[DATASET]).glob("*.parquet")))
        table = pads.dataset(parts, format="parquet").to_table(columns=["source", "urn"])
        distinct: int = table.group_by(["source", "urn"]).aggregate([]).num_rows
        rows: int = table.num_rows
        return distinct < rows

    def _report(self, problems: Iterable[ScannedRow]) -> None:
        """Add problems that no task could see."""
        folder = self._work / _FOLDERS[PROBLEM]
        aside = aside_of(folder)
        writer = PartWriter(aside, TABLES, task=_BY_DRIVER)
        for row in problems:
            writer.add(PROBLEM, problem_row(row))
        take_over(list(writer.close()), aside, {PROBLEM: folder})


def _by_source(units: Iterable[UnitToScan]) -> dict[str, list[UnitToScan]]:
    found: dict[str, list[UnitToScan]] = {}
    for unit in units:
        found.setdefault(unit.source, []).append(unit)
    return found
