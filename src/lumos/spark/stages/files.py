"""From sources to files: list them on executors, and make one row of each table's log."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from lumos.spark.stages.arrow_rows import batches, names_of, rows
from lumos.spark.stages.rows import LISTED, ListedFile

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

UNITS = "source string, unit binary"

ListUnit = Callable[[str, str], Iterable[ListedFile]]
IsInTable = Callable[[str, bytes], bool]


def units_frame(spark: SparkSession, units: Iterable[tuple[str, str]]) -> DataFrame:
    """Return the units of all sources, one row each, spread over the executors."""
    encoded = [(source, bytearray(os.fsencode(unit))) for source, unit in units]
    return spark.createDataFrame(encoded, UNITS)


def list_files(units: DataFrame, list_unit: ListUnit) -> DataFrame:
    """List every unit where it is run; what cannot be listed is a row with its error."""

    def run(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part in parts:
            for source, unit in rows(part, names_of(UNITS)):
                folder = os.fsdecode(bytes(unit))  # type: ignore[call-overload]
                yield from batches(list_unit(str(source), folder), LISTED)

    return units.mapInArrow(run, LISTED)


def tables(listed: DataFrame, formats: Sequence[str]) -> DataFrame:
    """Return one row per table, with the size and newest time of its log in place of a file's.

    A table that several formats describe is the foremost of `formats`.
    """
    from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

    ranked = F.array(*map(F.lit, formats))
    anchored = F.when(F.col("anchor"), F.array_position(ranked, F.col("kind")))
    # The number of log files stands for a listing's ETag: a log only ever grows or is rewritten.
    number = F.concat(F.count("*").cast("string"), F.lit("/"), F.coalesce(F.max("etag"), F.lit("")))
    summed = (
        listed.where("kind IS NOT NULL")
        .groupBy("source", "path")
        .agg(
            F.sum("size").alias("size"),
            F.max("mtime_us").alias("mtime_us"),
            number.alias("etag"),
            F.min(anchored).alias("rank"),
        )
        .where("rank IS NOT NULL")
    )
    kind = F.element_at(ranked, F.col("rank").cast("int")).alias("kind")
    return summed.select("source", "path", "size", "mtime_us", "etag", kind)


def loose_files(listed: DataFrame, is_in_table: IsInTable | None) -> DataFrame:
    """Return the files that belong to no table."""
    columns = ["source", "path", "size", "mtime_us", "etag", "kind"]
    files = listed.where("error IS NULL AND kind IS NULL").select(*columns)
    if is_in_table is None:
        return files

    def run(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for part in parts:
            loose = [
                not is_in_table(str(source), bytes(path))  # type: ignore[call-overload]
                for source, path in rows(part, ("source", "path"))
            ]
            yield part.filter(pa.array(loose, pa.bool_()))

    return files.mapInArrow(run, files.schema)
