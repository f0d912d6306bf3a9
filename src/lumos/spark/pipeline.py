"""The pipeline over storage: list, compare, read, fold, build, each stage on the executors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from lumos.spark.failures import SparkRunError
from lumos.spark.file_index import IndexTables, parquet_table, rows_in
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

    from pyspark.sql import DataFrame, Row, SparkSession

    from lumos.core.progress import Progress
    from lumos.spark.stages.delta import Scope

    InTables = Callable[[Iterable[tuple[str, bytes, str]]], IsInTable]

SCHEMA_COLUMNS = names_of(SCHEMAS)
_FILES_PER_TASK = 32
_MOST_FILES_PER_TASK = 5_000
"""Bounds what one task holds, and what is lost with it."""
_MOST_CLOSED = 64
"""Where more folders cannot be listed, their whole sources count as such."""


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


class ProblemFile(NamedTuple):
    """A file, or a folder, and what is wrong with it."""

    source: str
    path: bytes
    reason: str
    dataset: str | None = None


class FileRemark(NamedTuple):
    """Something to say about one or more files; one of them is named."""

    source: str
    path: bytes
    files: int
    warnings: str | None
    skipped: str | None


class FormatCount(NamedTuple):
    """The datasets of one format, and what is odd about some of them."""

    format: str
    datasets: int
    warnings: tuple[tuple[str, str], ...]
    """URN and text of each dataset that has any."""


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
        self._files_of: dict[str, int] = {}
        self._unlisted = 0
        self.written: Path | None = None
        """Where the tables for the file index lie; None where nothing is new in them."""

    def run(
        self,
        units: Sequence[tuple[str, str]],
        index: IndexTables | None,
        *,
        full: bool = False,
        scope: Scope | None = None,
    ) -> FileCounts:
        """Carry out all stages for the units, given as source and unit.

        Args:
            units: what to scan.
            index: what earlier runs knew, if anything.
            full: open every file, also one that the index knows as it is.
            scope: the folders that the units are, where they are not the whole of their sources.
        """
        self._sources = sorted({source for source, _ in units})
        before = index or self._now
        self._now = before
        whole: Scope = dict.fromkeys(self._sources, (b"",))
        listed, logs = self._listed(units)
        closed = self._closed(listed, doubt_empty=not full and scope is None)
        unlooked = deltas.unseen(closed)
        if scope is not None:
            unlooked = unlooked | ~deltas.in_scope(scope)
        is_whole = scope is None and not closed
        elsewhere = None if is_whole else before.items.where(unlooked)
        there = self._there(listed, has_logs=logs > 0, elsewhere=elsewhere)
        delta, news = self._compared(there, before, full=full, scope=scope or whole, closed=closed)
        opened = 0
        if news.news:
            read, opened = self._read(delta, files=news.to_read)
            self._now = self._rebuilt(before, delta=delta, read=read)
            self.written = self._work
        return FileCounts(news.same + opened, opened, news.same)

    @property
    def tables(self) -> IndexTables:
        """All that is known after the run, of every source."""
        return self._now

    def found(self) -> Iterator[BuiltDataset]:
        """Yield every dataset of the run in ascending order of URN."""
        for row in _in_order(self._datasets().select(*BuiltDataset._fields), "urn"):
            yield BuiltDataset(*row)

    def differing(self, states: Iterable[tuple[str, str]]) -> Iterator[BuiltDataset | str]:
        """Yield the datasets that a catalog does not know as they are now, by URN.

        One that it knows and that was not found is yielded as its URN alone.

        Args:
            states: URN and hash of what the catalog was last told.
        """
        known = states_frame(self._spark, states)
        for row in _in_order(differing(self._datasets(), known), "urn"):
            found = row["source"] is not None
            yield BuiltDataset(*(row[name] for name in BuiltDataset._fields)) if found else row.urn

    def formats(self) -> list[FormatCount]:
        """Count the datasets of each format, most first."""
        from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

        odd = F.when(F.col("warnings").isNotNull(), F.struct("urn", "warnings"))
        counted = self._datasets().groupBy("format").agg(F.count("*"), F.collect_list(odd))
        found = [
            FormatCount(row[0], row[1], tuple(sorted((each[0], each[1]) for each in row[2])))
            for row in counted.collect()
        ]
        return sorted(found, key=lambda each: (-each.datasets, each.format))

    def sources_with_files(self) -> set[str]:
        """Return the sources in which at least one file was found."""
        return {source for source, files in self._files_of.items() if files}

    def unlisted(self) -> Iterator[ProblemFile]:
        """Yield what could not be listed."""
        if self._unlisted:
            failed = self._kept("listed", LISTED).where("error IS NOT NULL")
            for row in _in_order(failed.select("source", "path", "error"), "source", "path"):
                yield ProblemFile(row[0], bytes(row[1]), row[2])

    def unreadable(self) -> Iterator[ProblemFile]:
        """Yield the files that could not be read."""
        failed = self._items().where("reason IS NOT NULL")
        columns = failed.select("source", "path", "reason", "dataset")
        for row in _in_order(columns, "source", "path"):
            yield ProblemFile(row[0], bytes(row[1]), row[2], row[3])

    def remarks(self) -> Iterator[FileRemark]:
        """Yield what is odd about files, each oddity once however many files have it."""
        from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

        said = self._items().where("warnings IS NOT NULL OR skipped <> ''")
        counted = said.groupBy("source", "warnings", "skipped").agg(
            F.min("path").alias("path"), F.count("*").alias("files")
        )
        for row in _in_order(counted.select(*FileRemark._fields), "source", "path"):
            yield FileRemark(row[0], bytes(row[1]), *row[2:])

    def _datasets(self) -> DataFrame:
        return self._now.datasets.where(self._now.datasets.source.isin(self._sources))

    def _items(self) -> DataFrame:
        return self._now.items.where(self._now.items.source.isin(self._sources))

    def _listed(self, units: Sequence[tuple[str, str]]) -> tuple[DataFrame, int]:
        """List the sources, and count the files of tables' logs."""
        from pyspark.sql import Observation
        from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

        self._progress.stage("listing")
        seen = Observation("listed")
        is_found = F.col("error").isNull()
        files_of = [
            F.count_if(is_found & (F.col("source") == source)).alias(f"files_{number}")
            for number, source in enumerate(self._sources)
        ]
        found = list_files(units_frame(self._spark, units), self._functions.list_unit).observe(
            seen,
            F.count_if(~is_found).alias("unlisted"),
            F.count_if(F.col("kind").isNotNull()).alias("logs"),
            *files_of,
        )
        listed = self._written("listed", found, LISTED)
        counts = seen.get
        self._unlisted = counts["unlisted"]
        self._files_of = {
            source: counts[f"files_{number}"] for number, source in enumerate(self._sources)
        }
        return listed, counts["logs"]

    def _closed(self, listed: DataFrame, *, doubt_empty: bool) -> Scope:
        """Return the folders of each source that could not be listed.

        A source without a single file may be a disk that is not mounted: nothing of it was seen.
        """
        closed: dict[str, tuple[bytes, ...]] = {}
        if doubt_empty:
            closed = {source: (b"",) for source, files in self._files_of.items() if not files}
        if self._unlisted:
            failed = listed.where("error IS NOT NULL").select("source", "path").distinct()
            if self._unlisted > _MOST_CLOSED:
                sources = failed.select("source").distinct().collect()
                return closed | {row.source: (b"",) for row in sources}
            for source, path in failed.collect():
                closed[source] = (*closed.get(source, ()), bytes(path))
        return closed

    def _there(
        self, listed: DataFrame, *, has_logs: bool, elsewhere: DataFrame | None
    ) -> DataFrame:
        """Make one row of each table that was listed; its files are its own affair.

        Args:
            listed: what the listing found.
            has_logs: whether there is any table in it.
            elsewhere: what is known of where nobody looked; there may be tables around the files.
        """
        if not has_logs and elsewhere is None:
            return loose_files(listed, None)
        roots = tables(listed, self._functions.table_formats)
        known = roots.select("source", "path", "kind")
        if elsewhere is not None:
            known = known.unionByName(elsewhere.where("kind IS NOT NULL").select(*known.columns))
        marks = [(row[0], bytes(row[1]), row[2]) for row in known.collect()]
        return roots.unionByName(loose_files(listed, self._functions.in_tables(marks)))

    def _compared(
        self, there: DataFrame, before: IndexTables, *, full: bool, scope: Scope, closed: Scope
    ) -> tuple[DataFrame, _News]:
        """Find what has to be read, and count what need not be."""
        from pyspark.sql import Observation
        from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

        seen = Observation("compared")
        is_same = F.col("status") == deltas.SAME
        is_known = F.col("status").isin(deltas.SAME, deltas.UNSEEN)
        every = deltas.compared(there, before.items, scope=scope, closed=closed, full=full)
        counted = every.observe(
            seen,
            F.count_if(~is_known).alias("news"),
            F.count_if(~is_known & (F.col("status") != deltas.GONE)).alias("to_read"),
            # Housekeeping files are known, too, but belong to no dataset.
            F.count_if(is_same & F.col("old_dataset").isNotNull()).alias("same"),
        )
        delta = self._written("delta", counted.where(~is_known), deltas.DELTA)
        return delta, _News(**seen.get)

    def _read(self, delta: DataFrame, *, files: int) -> tuple[DataFrame, int]:
        from pyspark.sql import Observation
        from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

        self._progress.stage("reading files", total=files)
        tasks = self._tasks(files)
        spread = deltas.to_read(delta).repartition(tasks, "path")
        seen = Observation("read")
        is_opened = (F.col("part") == FILE_PART) & F.col("dataset").isNotNull()
        read = read_items(spread, self._functions.read_items).observe(
            seen, F.count_if(is_opened).alias("opened")
        )
        with task_progress(self._spark, self._progress, items=files, tasks=tasks):
            return self._written("read", read, READ), seen.get["opened"]

    def _rebuilt(self, before: IndexTables, *, delta: DataFrame, read: DataFrame) -> IndexTables:
        """Put the datasets together that have news; all others stay as they were."""
        self._progress.stage("merging schemas", unit="datasets")
        key = ["source", "dataset"]
        known = (
            deltas.kept(before.items, delta)
            .unionByName(read.drop("schema"))
            .unionByName(deltas.carried(before.items, read))
        )
        items = self._written("items", known.coalesce(self._parallel), ITEMS)
        texts = before.schemas.unionByName(read.where("schema IS NOT NULL").select(*SCHEMA_COLUMNS))
        schemas = self._written("schemas", texts.dropDuplicates(["fingerprint"]), SCHEMAS)
        touched = deltas.affected(before.items, delta, read)
        files = items.join(touched, key, "left_semi")
        used = files.select(*key, "fingerprint").distinct().join(schemas, "fingerprint")
        folded = fold_files(files, self._functions.new_fold)
        built = build_datasets(folded, used, self._functions.build_datasets)
        others = before.datasets.join(touched, key, "left_anti")
        datasets = self._written("datasets", others.unionByName(built), DATASETS)
        return IndexTables(items, schemas, datasets)

    @property
    def _parallel(self) -> int:
        return int(self._spark.conf.get("spark.sql.leafNodeDefaultParallelism", "8") or 8)

    def _tasks(self, files: int) -> int:
        few = min(self._parallel, files // _FILES_PER_TASK)
        return max(1, few, files // _MOST_FILES_PER_TASK)

    def _written(self, name: str, frame: DataFrame, schema: str) -> DataFrame:
        """Write a table and make sure that this process sees all of it.

        What executors write to a disk of their own would look like files that are gone.
        """
        from pyspark.sql import Observation
        from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

        seen = Observation(f"written {name}")
        folder = self._work / name
        counted = frame.observe(seen, F.count(F.lit(1)).alias("rows"))
        counted.write.mode("overwrite").parquet(f"file://{folder}")
        if rows_in(folder) != seen.get["rows"]:
            raise SparkRunError(
                f"{self._work.parent} is not the same folder here and on the workers of Spark",
                hint="set state_dir (TMPDIR for a dry run) to a folder that all of them share",
            )
        return self._kept(name, schema)

    def _kept(self, name: str, schema: str) -> DataFrame:
        return parquet_table(self._spark, self._work / name, schema)


class _News(NamedTuple):
    """How a listing differs from what was known."""

    news: int
    to_read: int
    same: int


def _empty(spark: SparkSession) -> IndexTables:
    return IndexTables(
        *(spark.createDataFrame([], schema) for schema in (ITEMS, SCHEMAS, DATASETS))
    )


def _in_order(frame: DataFrame, *columns: str) -> Iterator[Row]:
    """Yield the rows in order, as one task streams them: one job, and bounded memory."""
    yield from frame.coalesce(1).sortWithinPartitions(*columns).toLocalIterator()
