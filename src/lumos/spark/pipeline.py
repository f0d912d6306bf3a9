"""The pipeline over storage: list, place, prune, read, merge, each stage on the executors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lumos.spark.stages.datasets import (
    DATASETS,
    BuildDataset,
    BuiltDataset,
    build_datasets,
    summarise,
)
from lumos.spark.stages.facts import (
    FACTS,
    ReadFiles,
    known_facts,
    last_good_facts,
    read_facts,
    unknown_files,
)
from lumos.spark.stages.files import (
    PLACES,
    ListUnit,
    PlaceOf,
    list_files,
    place_files,
    units_frame,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Tell = Callable[[str], None]
_FILES_PER_TASK = 32


class PipelineFunctions(NamedTuple):
    """What the stages do, written without Spark."""

    list_unit: ListUnit
    place_of: PlaceOf
    read_files: ReadFiles
    build_dataset: BuildDataset


class FileCounts(NamedTuple):
    """What happened to the files of a run."""

    listed: int
    opened: int
    unchanged: int


class ProblemFile(NamedTuple):
    """A file, or a folder, and what is wrong with it."""

    source: str
    path: bytes
    reason: str


class FileWarning(NamedTuple):
    """Something odd about one or more files; one of them is named."""

    source: str
    path: bytes
    files: int
    texts: str


class Pipeline:
    """One run over the files of some sources.

    What a stage leaves behind lies in `work` as Parquet, so that no stage runs twice and nothing
    that grows with the number of files passes through the driver.
    """

    def __init__(
        self, spark: SparkSession, functions: PipelineFunctions, *, work: Path, tell: Tell
    ) -> None:
        self._spark = spark
        self._functions = functions
        self._work = work.absolute()
        self._tell = tell

    def run(
        self, units: Sequence[tuple[str, str]], index: DataFrame, *, full: bool = False
    ) -> FileCounts:
        """Carry out all stages for the units, given as source and unit.

        Args:
            units: what to scan.
            index: what earlier runs read.
            full: open every file, also one that the index knows as it is.
        """
        self._tell("listing files")
        frame = units_frame(self._spark, units)
        files = list_files(frame, self._functions.list_unit)
        places = self._kept("places", place_files(files, self._functions.place_of), PLACES)
        unchanged = known_facts(places, index.limit(0) if full else index)
        known = self._kept("known", unchanged, FACTS)
        unknown = unknown_files(places, known)
        counts = self._counts(places, known)
        self._tell(f"reading {counts.opened:,} of {counts.listed:,} files")
        spread = unknown.repartition(self._tasks(counts.opened), "path")
        read = self._kept("read", read_facts(spread, self._functions.read_files), FACTS)
        failed = read.where("reason IS NOT NULL")
        self._kept("carried", last_good_facts(index, failed), FACTS)
        self._tell("merging schemas")
        groups = summarise(places, self.facts())
        self._kept("datasets", build_datasets(groups, self._functions.build_dataset), DATASETS)
        return counts

    def facts(self) -> DataFrame:
        """Return what is known of every file: read now, unchanged, or the last that was good."""
        read = self._read("read", FACTS).where("reason IS NULL")
        known = self._read("known", FACTS).unionByName(self._read("carried", FACTS))
        return known.unionByName(read)

    def datasets(self) -> Iterator[BuiltDataset]:
        """Yield the datasets one by one in ascending order of URN."""
        frame = self._read("datasets", DATASETS).orderBy("urn")
        for row in frame.toLocalIterator():
            yield BuiltDataset(*row)

    def unreadable_datasets(self) -> set[tuple[str, str]]:
        """Return the datasets, as source and key, that have files nobody could read."""
        failed = self._read("read", FACTS).where("reason IS NOT NULL").select("source", "path")
        places = self._read("places", PLACES).where("error IS NULL")
        keys = places.join(failed, ["source", "path"]).select("source", "dataset")
        return {(row[0], row[1]) for row in keys.distinct().toLocalIterator()}

    def sources_with_files(self) -> set[str]:
        """Return the sources in which at least one file was found."""
        sources = self._read("places", PLACES).where("error IS NULL").select("source")
        return {row[0] for row in sources.distinct().toLocalIterator()}

    def unlisted(self) -> Iterator[ProblemFile]:
        """Yield what could not be listed."""
        rows = self._read("places", PLACES).where("error IS NOT NULL")
        yield from self._problems(rows, "error")

    def unreadable(self) -> Iterator[ProblemFile]:
        """Yield the files that could not be read."""
        yield from self._problems(self._read("read", FACTS).where("reason IS NOT NULL"), "reason")

    def warnings(self) -> Iterator[FileWarning]:
        """Yield what is odd about files, each oddity once however many files have it."""
        from pyspark.sql import functions as F  # noqa: N812 - its common name

        odd = self.facts().where("warnings IS NOT NULL").groupBy("source", "warnings")
        counted = odd.agg(F.min("path").alias("path"), F.count("*").alias("files"))
        for row in counted.orderBy("source", "path").toLocalIterator():
            yield FileWarning(row["source"], bytes(row["path"]), row["files"], row["warnings"])

    def _problems(self, frame: DataFrame, column: str) -> Iterator[ProblemFile]:
        for row in (
            frame.select("source", "path", column).orderBy("source", "path").toLocalIterator()
        ):
            yield ProblemFile(row[0], bytes(row[1]), row[2])

    def _counts(self, places: DataFrame, known: DataFrame) -> FileCounts:
        listed = places.where("error IS NULL").count()
        unchanged = known.count()
        return FileCounts(listed, opened=listed - unchanged, unchanged=unchanged)

    def _tasks(self, files: int) -> int:
        parallel = int(self._spark.conf.get("spark.sql.leafNodeDefaultParallelism", "8") or 8)
        return max(1, min(parallel, files // _FILES_PER_TASK))

    def _kept(self, name: str, frame: DataFrame, schema: str) -> DataFrame:
        frame.write.mode("overwrite").parquet(str(self._work / name))
        return self._read(name, schema)

    def _read(self, name: str, schema: str) -> DataFrame:
        return self._spark.read.schema(schema).parquet(str(self._work / name))
