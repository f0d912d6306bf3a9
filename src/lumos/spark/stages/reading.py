"""From files to what is in them: footers, headers and samples, read on executors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from lumos.spark.stages.arrow_rows import batches, rows
from lumos.spark.stages.rows import READ, ItemToRead, Place, ReadOutcome

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

ReadItems = Callable[[Iterable[ItemToRead]], Iterator[tuple[ItemToRead, ReadOutcome]]]
_NOWHERE = (None,) * len(Place._fields)


def read_items(items: DataFrame, read: ReadItems) -> DataFrame:
    """Open every file and table where this runs."""

    def run(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        outcomes = read(_items(parts))
        yield from batches(_rows(outcomes), READ)

    return items.mapInArrow(run, READ)


def _items(parts: Iterator[pa.RecordBatch]) -> Iterator[ItemToRead]:
    for part in parts:
        for row in rows(part, ItemToRead._fields):
            yield ItemToRead(*row)  # type: ignore[arg-type]


def _rows(outcomes: Iterable[tuple[ItemToRead, ReadOutcome]]) -> Iterator[tuple[object, ...]]:
    for item, (part, place, *facts) in outcomes:
        yield (*item, part, *(place or _NOWHERE), *facts)
