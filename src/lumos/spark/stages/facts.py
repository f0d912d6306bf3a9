"""From files to facts: what is known from the last run, and what is read now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from lumos.spark.stages.arrow_rows import batches, rows

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_KEY = ["source", "path"]
FACTS = (
    "source string, path binary, size long, mtime_us long, format string, fingerprint string, "
    "schema string, rows long, reason string, warnings string"
)
"""What the file index keeps of each file: what it was, and what was read from it."""


class FileToRead(NamedTuple):
    """A file that has to be opened."""

    source: str
    path: bytes
    size: int
    mtime_us: int


class ReadFile(NamedTuple):
    """What was read from a file, or the reason why nothing was."""

    format: str | None
    fingerprint: str | None
    schema: str | None
    rows: int | None
    reason: str | None
    warnings: str | None


ReadFiles = Callable[[Iterable[FileToRead]], Iterator[ReadFile]]


def known_facts(places: DataFrame, index: DataFrame) -> DataFrame:
    """Return the facts of files that are as they were when they were last read."""
    same = ["source", "path", "size", "mtime_us"]
    listed = places.where("error IS NULL").select(*same)
    # A file that could not be read may have been in the making: it is tried again.
    return index.where("reason IS NULL").join(listed, same, "left_semi")


def unknown_files(places: DataFrame, known: DataFrame) -> DataFrame:
    """Return the files that have to be opened."""
    listed = places.where("error IS NULL").select("source", "path", "size", "mtime_us")
    return listed.join(known.select(*_KEY), _KEY, "left_anti")


def last_good_facts(index: DataFrame, failed: DataFrame) -> DataFrame:
    """Return what was read before from files that cannot be read now.

    A dataset keeps the columns of such files: nobody saw that they are gone.
    """
    return index.where("reason IS NULL").join(failed.select(*_KEY), _KEY, "left_semi")


def read_facts(files: DataFrame, read_files: ReadFiles) -> DataFrame:
    """Open every file where this runs, footers, headers and samples only."""

    def run(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part in parts:
            wanted = [
                FileToRead(*row)  # type: ignore[arg-type]
                for row in rows(part, "source", "path", "size", "mtime_us")
            ]
            outcomes = read_files(wanted)
            both = zip(wanted, outcomes, strict=True)
            yield from batches((((*file, *facts)) for file, facts in both), FACTS)

    return files.mapInArrow(run, FACTS)
