"""From sources to files: list them on executors, and make one row of each table's log."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from time import perf_counter
from typing import TYPE_CHECKING

from lumos.spark.stages.arrow_rows import arrow_array, batches, names_of, rows
from lumos.spark.stages.rows import (
    FILES,
    LINKS,
    LISTED,
    LOGS,
    OUTSIDE_LINK,
    ROW,
    UNITS,
    UNLISTED,
    ListedFile,
    ListedUnit,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

TO_LIST = "source string, unit binary, known string"
LISTED_ROWS = f"{LISTED}, {ROW} string"
_MOST_HELD = 200_000
_DIGEST_BYTES = 16
_DIGESTS = 1 << 8 * _DIGEST_BYTES

ListUnit = Callable[[str, str], Iterable[ListedFile]]
IsInTable = Callable[[str, bytes], bool]


def units_frame(spark: SparkSession, units: Iterable[tuple[str, bytes, str | None]]) -> DataFrame:
    """Return the units of all sources, with what is known of them, spread over the executors."""
    import pyarrow as pa

    columns = list(zip(*units, strict=True)) or [(), (), ()]
    table = pa.table(
        {
            "source": pa.array(columns[0], pa.string()),
            "unit": pa.array(columns[1], pa.binary()),
            "known": pa.array(columns[2], pa.string()),
        }
    )
    return spark.createDataFrame(table, TO_LIST)


def list_files(units: DataFrame, list_unit: ListUnit) -> DataFrame:
    """List every unit where it is run; what cannot be listed is a row with its error.

    An unchanged unit yields that fact and the logs of its tables, and nothing else.
    """

    def run(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part in parts:
            for source, unit, known in rows(part, names_of(TO_LIST)):
                listing = UnitListing(str(source), bytes(unit), known)  # type: ignore[call-overload]
                yield from batches(listing.rows(list_unit), LISTED_ROWS)

    return units.mapInArrow(run, LISTED_ROWS)


class UnitListing:
    """The rows of one unit."""

    def __init__(self, source: str, unit: bytes, known: object) -> None:
        self._source = source
        self._unit = unit
        self._known = known
        self._is_compared = known is not None
        self._sum: int | None = 0
        """Of what identifies each file: the same in whatever order they are met."""
        self._files = 0

    def rows(self, list_unit: ListUnit) -> Iterator[tuple[object, ...]]:
        """Yield what is there, and at last the unit itself."""
        began = perf_counter()
        held: list[tuple[object, ...]] = []
        for found in list_unit(self._source, os.fsdecode(self._unit)):
            row = self._row(found)
            if not self._is_compared or row[-1] != FILES:
                yield row
                continue
            held.append(row)
            if len(held) > _MOST_HELD:  # the memory of a task is bounded: nothing is compared
                self._is_compared = False
                yield from held
                held = []
        digest = None if self._sum is None else f"{self._sum % _DIGESTS:032x}"
        is_same = self._is_compared and digest is not None and digest == self._known
        if not is_same:
            yield from held
        took = round((perf_counter() - began) * 1_000_000)
        unit = ListedUnit(self._source, self._unit, self._files, digest, is_same, took)
        yield _row_of_unit(unit)

    def _row(self, found: ListedFile) -> tuple[object, ...]:
        if found.error is not None:
            self._sum = None
            self._is_compared = False
            return (*found, self._unit, None, UNLISTED)
        is_link = found.kind == OUTSIDE_LINK
        self._files += not is_link
        _, path, size, mtime_us, etag, *_ = found
        if self._sum is not None:
            text = b"%b\0%d\0%d\0%a" % (path, size or 0, mtime_us or 0, etag)
            if is_link:
                text += b"\0link"
            self._sum += int.from_bytes(blake2b(text, digest_size=_DIGEST_BYTES).digest(), "little")
        if is_link:
            return (*found, self._unit, None, LINKS)
        if found.kind is not None:
            return (*found, self._unit, None, LOGS)
        return (*found, self._unit, self._files, FILES)


def _row_of_unit(unit: ListedUnit) -> tuple[object, ...]:
    found = ListedFile(
        unit.source,
        b"",
        size=unit.files,
        mtime_us=unit.listing_us,
        etag=unit.digest,
        anchor=unit.is_same,
    )
    return (*found, unit.unit, None, UNITS)


def unit_of_row(row: Sequence[object]) -> ListedUnit:
    """Return the unit of a row with the columns of `UNIT_COLUMNS`."""
    return ListedUnit(*row)  # type: ignore[arg-type]


UNIT_COLUMNS = ("source", "unit", "size", "etag", "anchor", "mtime_us")


def tables(logs: DataFrame, formats: Sequence[str]) -> DataFrame:
    """Return one row per table, with the size and newest time of its log in place of a file's.

    A table that several formats describe is the foremost of `formats`.
    """
    from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

    ranked = F.array(*map(F.lit, formats))
    anchored = F.when(F.col("anchor"), F.array_position(ranked, F.col("kind")))
    # The number of log files stands for a listing's ETag: a log only ever grows or is rewritten.
    number = F.concat(F.count("*").cast("string"), F.lit("/"), F.coalesce(F.max("etag"), F.lit("")))
    summed = (
        logs.groupBy("source", "path")
        .agg(
            F.sum("size").alias("size"),
            F.max("mtime_us").alias("mtime_us"),
            number.alias("etag"),
            F.min(anchored).alias("rank"),
        )
        .where("rank IS NOT NULL")
    )
    kind = F.element_at(ranked, F.col("rank").cast("int")).alias("kind")
    unit = F.lit(None).cast("binary").alias("unit")
    position = F.crc32("path").alias("position")
    return summed.select("source", "path", "size", "mtime_us", "etag", kind, unit, position)


def loose_files(files: DataFrame, is_in_table: IsInTable | None) -> DataFrame:
    """Return the files that belong to no table."""
    columns = ["source", "path", "size", "mtime_us", "etag", "kind", "unit", "position"]
    files = files.select(*columns)
    if is_in_table is None:
        return files

    def run(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for part in parts:
            loose = [
                not is_in_table(str(source), bytes(path))  # type: ignore[call-overload]
                for source, path in rows(part, ("source", "path"))
            ]
            yield part.filter(arrow_array(loose, pa.bool_()))

    return files.mapInArrow(run, files.schema)
