"""The pipeline over storage: list, compare, read, fold, build, each stage on the executors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from lumos.spark.file_index import IndexTables
from lumos.spark.stages import delta as deltas
from lumos.spark.stages.arrow_rows import names_of
from lumos.spark.stages.compare import differing, states_frame
from lumos.spark.stages.datasets import BuildDatasets, NewFold, build_datasets, fold_files
from lumos.spark.stages.files import (
    IsInTable,
    ListUnit,
    list_files,
    loose_files,
    tables,
    units_frame,
)
from lumos.spark.stages.reading import ReadItems, read_items
from lumos.spark.stages.rows import (
    DATASETS,
    FILE_PART,
    ITEMS,
    LISTED,
    READ,
    SCHEMAS,
    BuiltDataset,
)
from lumos.spark.task_progress import task_progress

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from lumos.core.progress import Progress

    InTables = Callable[[Iterable[tuple[str, bytes, str]]], IsInTable]

SCHEMA_COLUMNS = names_of(SCHEMAS)
_FILES_PER_TASK = 32
_MOST_FILES_PER_TASK = 5_000
"""Bounds what one task holds, and what is lost with it."""


class PipelineFunctions(Protocol):
    """What the stages do, written without Spark; all of it travels to the executors."""

    @property
    def list_unit(self) -> ListUnit: ...
    @property
    def table_formats(self) -> Sequence[str]: ...
    @property
    def in_tables(self) -> InTables: ...
    @property
    def read_items(self) -> ReadItems: ...
    @property
    def new_fold(self) -> NewFold: ...
    @property
    def build_datasets(self) -> BuildDatasets: ...


class FileCounts(NamedTuple):
    """What happened to the files of a run."""

    listed: int = 0
    opened: int = 0
    unchanged: int = 0
    unreadable: int = 0


class ProblemFile(NamedTuple):
    """A file, or a folder, and what is wrong with it."""

    source: str
    path: bytes
    reason: str


class FileRemark(NamedTuple):
    """Something to say about one or more files; one of them is named."""

    source: str
    path: bytes
    files: int
    text: str


class Pipeline:
    """One run over the files of some sources.

    What a stage leaves behind lies in `work` as Parquet, so that no stage runs twice and nothing
    that grows with the number of files passes through the driver.
    """

    def __init__(
        self, spark: SparkSession, functions: PipelineFunctions, *, work: Path, progress: Progress
    ) -> None:
        self._spark = spark
        self._functions = functions
        self._work = work.absolute()
        self._progress = progress
        self._sources: list[str] = []
        self._now = _empty(spark)
        self.has_news = False
        """Whether any file came, changed or went, so that the index has to be written."""

    @property
    def tables(self) -> IndexTables:
        """What is known now of every file and dataset, of all sources."""
        return self._now

    def run(
        self, units: Sequence[tuple[str, str]], index: IndexTables | None, *, full: bool = False
    ) -> FileCounts:
        """Carry out all stages for the units, given as source and unit.

        Args:
            units: what to scan.
            index: what earlier runs knew, if anything.
            full: open every file, also one that the index knows as it is.
        """
        self._sources = sorted({source for source, _ in units})
        before = index or self._now
        there = self._there(units)
        delta, same = self._compared(there, before, full=full)
        self._now = before
        read = self._read(delta) if self.has_news else None
        if read is not None:
            self._now = self._rebuilt(before, delta=delta, read=read)
        return self._counts(same, read)

    def datasets(self) -> DataFrame:
        """Return the datasets of the sources that were scanned."""
        return self._now.datasets.where(self._now.datasets.source.isin(self._sources))

    def found(self) -> Iterator[BuiltDataset]:
        """Yield every dataset of the run in ascending order of URN."""
        yield from _built(self.datasets())

    def differing(self, states: Iterable[tuple[str, str]]) -> Iterator[BuiltDataset]:
        """Yield the datasets that a catalog does not know as they are now, by URN.

        Args:
            states: URN and hash of what the catalog was last told.
        """
        yield from _built(differing(self.datasets(), states_frame(self._spark, states)))

    def found_by_format(self) -> dict[str, int]:
        """Count the datasets of each format, most first."""
        counted = self.datasets().groupBy("format").count().collect()
        return {row[0]: row[1] for row in sorted(counted, key=lambda row: (-row[1], row[0]))}

    def missing(self, states: Iterable[tuple[str, str]]) -> list[str]:
        """Return the URNs of the states that belong to no dataset of this run."""
        known = states_frame(self._spark, states)
        return sorted(row[0] for row in known.join(self.datasets(), "urn", "left_anti").collect())

    def unreadable_datasets(self) -> set[tuple[str, str]]:
        """Return the datasets, as source and key, that have files nobody could read."""
        failed = self._items().where("reason IS NOT NULL AND dataset IS NOT NULL")
        return {(row[0], row[1]) for row in failed.select("source", "dataset").distinct().collect()}

    def sources_with_files(self) -> set[str]:
        """Return the sources in which at least one file was found."""
        return {row[0] for row in self._items().select("source").distinct().collect()}

    def unlisted(self) -> Iterator[ProblemFile]:
        """Yield what could not be listed."""
        yield from _problems(self._kept("listed", LISTED).where("error IS NOT NULL"), "error")

    def unreadable(self) -> Iterator[ProblemFile]:
        """Yield the files that could not be read."""
        yield from _problems(self._items().where("reason IS NOT NULL"), "reason")

    def warnings(self) -> Iterator[FileRemark]:
        """Yield what is odd about files, each oddity once however many files have it."""
        yield from _remarks(self._items(), "warnings")

    def skipped(self) -> Iterator[FileRemark]:
        """Yield what was left out on purpose, each reason once however many files have it."""
        yield from _remarks(self._items(), "skipped")

    def drift(self) -> Iterator[tuple[str, str]]:
        """Yield URN and warnings of the datasets that have any."""
        odd = self.datasets().where("warnings IS NOT NULL").select("urn", "warnings")
        for row in odd.orderBy("urn").toLocalIterator():
            yield row[0], row[1]

    def _items(self) -> DataFrame:
        return self._now.items.where(self._now.items.source.isin(self._sources))

    def _there(self, units: Sequence[tuple[str, str]]) -> DataFrame:
        """List the sources; what belongs to tables becomes one row per table."""
        from pyspark.sql import Observation
        from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

        self._progress.stage("listing")
        seen = Observation("listed")
        logs = F.count_if(F.col("kind").isNotNull()).alias("logs")
        found = list_files(units_frame(self._spark, units), self._functions.list_unit)
        listed = self._written("listed", found.observe(seen, logs), LISTED)
        if not seen.get["logs"]:
            return loose_files(listed, None)
        roots = tables(listed, self._functions.table_formats)
        found_roots = roots.select("source", "path", "kind").collect()
        marks = [(row[0], bytes(row[1]), row[2]) for row in found_roots]
        return roots.unionByName(loose_files(listed, self._functions.in_tables(marks)))

    def _compared(
        self, there: DataFrame, before: IndexTables, *, full: bool
    ) -> tuple[DataFrame, int]:
        """Find what has to be read; return it with the number of files that need not be."""
        from pyspark.sql import Observation
        from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

        seen = Observation("compared")
        is_same = F.col("status") == deltas.SAME
        every = deltas.compared(there, before.items, sources=self._sources, full=full)
        counted = every.observe(
            seen,
            F.count_if(~is_same).alias("news"),
            # Housekeeping files are known, too, but belong to no dataset.
            F.count_if(is_same & F.col("old_dataset").isNotNull()).alias("same"),
        )
        news = counted.where(~is_same)
        delta = self._written("delta", news, deltas.DELTA)
        counts = seen.get
        self.has_news = counts["news"] > 0
        return delta, counts["same"]

    def _read(self, delta: DataFrame) -> DataFrame:
        files = deltas.to_read(delta)
        count = files.count()
        self._progress.stage("reading files", total=count)
        tasks = self._tasks(count)
        spread = files.repartition(tasks, "path")
        with task_progress(self._spark, self._progress, items=count, tasks=tasks):
            return self._written("read", read_items(spread, self._functions.read_items), READ)

    def _rebuilt(self, before: IndexTables, *, delta: DataFrame, read: DataFrame) -> IndexTables:
        """Put the datasets together that have news; all others stay as they were."""
        self._progress.stage("merging schemas", unit="datasets")
        key = ["source", "dataset"]
        touched = deltas.affected(delta, read)
        items = (
            deltas.kept(before.items, delta)
            .unionByName(read.drop("schema"))
            .unionByName(deltas.carried(before.items, read))
        )
        schemas = before.schemas.unionByName(
            read.where("schema IS NOT NULL").select(*SCHEMA_COLUMNS)
        ).dropDuplicates(["source", "dataset", "fingerprint"])
        folded = fold_files(items.join(touched, key, "left_semi"), self._functions.new_fold)
        texts = schemas.join(touched, key, "left_semi")
        built = build_datasets(folded, texts, self._functions.build_datasets)
        others = before.datasets.join(touched, key, "left_anti")
        datasets = self._written("datasets", others.unionByName(built), DATASETS)
        return IndexTables(items, schemas, datasets)

    def _counts(self, same: int, read: DataFrame | None) -> FileCounts:
        from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

        items = self._items().where(f"part = {FILE_PART}")
        unreadable = items.where("reason IS NOT NULL").count()
        opened = 0
        if read is not None:
            files = read.where(f"part = {FILE_PART} AND dataset IS NOT NULL")
            opened = files.agg(F.count("*")).collect()[0][0]
        return FileCounts(same + opened, opened, same, unreadable)

    def _tasks(self, files: int) -> int:
        parallel = int(self._spark.conf.get("spark.sql.leafNodeDefaultParallelism", "8") or 8)
        few = min(parallel, files // _FILES_PER_TASK)
        return max(1, few, files // _MOST_FILES_PER_TASK)

    def _written(self, name: str, frame: DataFrame, schema: str) -> DataFrame:
        frame.write.mode("overwrite").parquet(str(self._work / name))
        return self._kept(name, schema)

    def _kept(self, name: str, schema: str) -> DataFrame:
        return self._spark.read.schema(schema).parquet(str(self._work / name))


def _empty(spark: SparkSession) -> IndexTables:
    return IndexTables(
        *(spark.createDataFrame([], schema) for schema in (ITEMS, SCHEMAS, DATASETS))
    )


def _built(frame: DataFrame) -> Iterator[BuiltDataset]:
    columns = frame.select(*BuiltDataset._fields)
    for row in columns.orderBy("urn").toLocalIterator():
        yield BuiltDataset(*row)


def _problems(frame: DataFrame, column: str) -> Iterator[ProblemFile]:
    rows = frame.select("source", "path", column).orderBy("source", "path")
    for row in rows.toLocalIterator():
        yield ProblemFile(row[0], bytes(row[1]), row[2])


def _remarks(items: DataFrame, column: str) -> Iterator[FileRemark]:
    from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

    said = items.where(f"{column} IS NOT NULL").groupBy("source", column)
    counted = said.agg(F.min("path").alias("path"), F.count("*").alias("files"))
    for row in counted.orderBy("source", "path").toLocalIterator():
        yield FileRemark(row["source"], bytes(row["path"]), row["files"], row[column])
