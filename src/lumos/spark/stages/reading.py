"""From files to what is in them: footers, headers and samples, read on executors."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING

import orjson

from lumos.spark.stages.arrow_rows import batches, names_of, rows
from lumos.spark.stages.folding import Folds, NewFold
from lumos.spark.stages.rows import (
    ITEM,
    PIECE,
    READ,
    ROW,
    SCHEMA,
    FileRow,
    ItemToRead,
    Place,
    ReadOutcome,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

ReadItems = Callable[[Iterable[ItemToRead]], Iterator[tuple[ItemToRead, ReadOutcome]]]
_NOWHERE = (None,) * len(Place._fields)
_READ_ROWS = f"{READ}, {ROW} string"
_COLUMNS = names_of(_READ_ROWS)
_END_OF_ITEM = (None, None, None, ITEM)


def read_items(items: DataFrame, read: ReadItems, *, new_fold: NewFold) -> DataFrame:
    """Open every file and table where this runs.

    A task adds up what it read of each dataset, so that nothing has to be read again for that.
    """

    def run(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        _spare_what_is_loaded()
        outcomes = read(_items(parts))
        yield from batches(_rows(outcomes, Folds(new_fold)), _READ_ROWS)

    return items.mapInArrow(run, _READ_ROWS)


@cache
def _spare_what_is_loaded() -> None:
    """Take modules out of garbage collection: PySpark collects after each task of a worker."""
    gc.freeze()


def _items(parts: Iterator[pa.RecordBatch]) -> Iterator[ItemToRead]:
    for part in parts:
        for row in rows(part, ItemToRead._fields):
            yield ItemToRead(*row)  # type: ignore[arg-type]


def _rows(
    outcomes: Iterable[tuple[ItemToRead, ReadOutcome]], folds: Folds
) -> Iterator[tuple[object, ...]]:
    texts: dict[str, str] = {}
    for item, outcome in outcomes:
        part, place, *facts, schema = outcome
        yield (*item, part, *(place or _NOWHERE), *facts, *_END_OF_ITEM)
        if outcome.fingerprint is None or place is None:
            continue
        if schema is not None:
            texts[outcome.fingerprint] = schema
        folds.add((item.source, place.dataset), _file_row(item, place, outcome))
        if folds.is_full:
            yield from _pieces(folds, texts)
    yield from _pieces(folds, texts)
    for fingerprint, text in texts.items():
        yield _row(SCHEMA, fingerprint=fingerprint, schema=text)


def _file_row(item: ItemToRead, place: Place, outcome: ReadOutcome) -> FileRow:
    return FileRow(
        item.path,
        item.size,
        item.mtime_us,
        place.layout,
        place.partition,
        outcome.format or "",
        outcome.fingerprint or "",
        outcome.rows,
        outcome.rows_estimate,
        outcome.columns,
        outcome.facts,
    )


def _pieces(folds: Folds, texts: dict[str, str]) -> Iterator[tuple[object, ...]]:
    for (source, dataset), state, fingerprints in folds.taken():
        schemas = {fingerprint: texts[fingerprint] for fingerprint in sorted(fingerprints)}
        text = orjson.dumps(schemas).decode()
        yield _row(PIECE, source=source, dataset=dataset, state=state, schemas=text)


def _row(kind: str, **values: object) -> tuple[object, ...]:
    return tuple(kind if name == ROW else values.get(name) for name in _COLUMNS)
