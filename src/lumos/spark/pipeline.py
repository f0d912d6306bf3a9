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
from lumos.spark.stages.facts import FACTS, ReadFiles, known_facts, read_facts, unknown_files
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

    def run(self, units: Sequence[tuple[str, str]], index: DataFrame) -> FileCounts:
        """Carry out all stages for the units, given as source and unit."""
        self._tell("listing files")
        frame = units_frame(self._spark, units)
        files = list_files(frame, self._functions.list_unit)
        places = self._kept("places", place_files(files, self._functions.place_of), PLACES)
        known = self._kept("known", known_facts(places, index), FACTS)
        unknown = unknown_files(places, known)
        counts = self._counts(places, known)
        self._tell(f"reading {counts.opened:,} of {counts.listed:,} files")
        self._kept("read", read_facts(unknown, self._functions.read_files), FACTS)
        self._tell("merging schemas")
        groups = summarise(places, self.facts())
        self._kept("datasets", build_datasets(groups, self._functions.build_dataset), DATASETS)
        return counts

    def facts(self) -> DataFrame:
        """Return what is known of every file now, read or remembered."""
        return self._read("known", FACTS).unionByName(self._read("read", FACTS))

    def datasets(self) -> Iterator[BuiltDataset]:
        """Yield the datasets one by one in ascending order of URN."""
        frame = self._read("datasets", DATASETS).orderBy("urn")
        for row in frame.toLocalIterator():
            yield BuiltDataset(*row)

    def dataset_keys(self) -> set[tuple[str, str]]:
        """Return every dataset that has files, readable or not, as source and key."""
        keys = self._read("places", PLACES).where("error IS NULL").select("source", "dataset")
        return {(row[0], row[1]) for row in keys.distinct().toLocalIterator()}

    def unlisted(self) -> Iterator[ProblemFile]:
        """Yield what could not be listed."""
        rows = self._read("places", PLACES).where("error IS NOT NULL")
        yield from self._problems(rows, "error")

    def unreadable(self) -> Iterator[ProblemFile]:
        """Yield the files that could not be read."""
        yield from self._problems(self._read("read", FACTS).where("reason IS NOT NULL"), "reason")

    def warnings(self) -> Iterator[ProblemFile]:
        """Yield the files that were read now and are not quite what they should be."""
        yield from self._problems(
            self._read("read", FACTS).where("warnings IS NOT NULL"), "warnings"
        )

    def _problems(self, frame: DataFrame, column: str) -> Iterator[ProblemFile]:
        for row in (
            frame.select("source", "path", column).orderBy("source", "path").toLocalIterator()
        ):
            yield ProblemFile(row[0], bytes(row[1]), row[2])

    def _counts(self, places: DataFrame, known: DataFrame) -> FileCounts:
        listed = places.where("error IS NULL").count()
        unchanged = known.count()
        return FileCounts(listed, opened=listed - unchanged, unchanged=unchanged)

    def _kept(self, name: str, frame: DataFrame, schema: str) -> DataFrame:
        frame.write.mode("overwrite").parquet(str(self._work / name))
        return self._read(name, schema)

    def _read(self, name: str, schema: str) -> DataFrame:
        return self._spark.read.schema(schema).parquet(str(self._work / name))
