"""From sources to files: list them, and give each its place in a dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, cast

from lumos.spark.stages.arrow_rows import batches, rows

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

UNITS = "source string, unit string"
FILES = "source string, path binary, size long, mtime_us long, error string"
PLACES = f"{FILES}, dataset string, layout string, partition string"


class ListedFile(NamedTuple):
    """A file of a source, or a part of it that could not be listed."""

    source: str
    path: bytes
    size: int | None
    mtime_us: int | None
    error: str | None = None


class Place(NamedTuple):
    """Where a file belongs, all as text: its dataset, and the partition that it lies in."""

    dataset: str
    layout: str
    partition: str


ListUnit = Callable[[str, str], Iterable[ListedFile]]
PlaceOf = Callable[[bytes], Place | None]


def units_frame(spark: SparkSession, units: Iterable[tuple[str, str]]) -> DataFrame:
    """Return the units of all sources, one row each, spread over the executors."""
    return spark.createDataFrame(list(units), UNITS)


def list_files(units: DataFrame, list_unit: ListUnit) -> DataFrame:
    """List every unit where it is run; what cannot be listed is a row with its error."""

    def run(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part in parts:
            for source, unit in rows(part, "source", "unit"):
                yield from batches(list_unit(str(source), str(unit)), FILES)

    return units.mapInArrow(run, FILES)


def place_files(files: DataFrame, place_of: PlaceOf) -> DataFrame:
    """Give each file its dataset and partition; housekeeping files are left out."""

    def placed(part: pa.RecordBatch) -> Iterator[tuple[object, ...]]:
        for row in rows(part, "source", "path", "size", "mtime_us", "error"):
            _, path, _, _, error = row
            if error is not None:
                yield (*row, *[None] * len(Place._fields))
            elif place := place_of(cast("bytes", path)):
                yield (*row, *place)

    def run(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part in parts:
            yield from batches(placed(part), PLACES)

    return files.mapInArrow(run, PLACES)
