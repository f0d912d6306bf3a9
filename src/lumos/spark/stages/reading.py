"""From files to what is in them: footers, headers and samples, read on executors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

import orjson

from lumos.spark.stages.arrow_rows import rows
from lumos.spark.stages.folding import Folds, NewFold
from lumos.spark.stages.part_files import OutputRow, written_by_tasks
from lumos.spark.stages.rows import (
    FILE_PART,
    ITEM,
    ITEMS,
    PIECE,
    PIECES,
    READING_TIME,
    READING_TIMES,
    SCHEMA,
    SCHEMAS,
    FileRow,
    ItemToRead,
    ReadOutcome,
    RowPlace,
)

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame

ReadItems = Callable[[Iterable[ItemToRead]], Iterator[tuple[ItemToRead, ReadOutcome]]]
TABLES = {ITEM: ITEMS, SCHEMA: SCHEMAS, PIECE: PIECES, READING_TIME: READING_TIMES}
"""What reading gives: items, what a task knows of each dataset and schema, and its times."""
_NOWHERE = (None,) * len(RowPlace._fields)


def read_items(items: DataFrame, read: ReadItems, *, new_fold: NewFold, aside: Path) -> DataFrame:
    """Open every file and table where this runs, and return the files with what was found.

    A task adds up what it read of each dataset, so that nothing has to be read again for that.
    What it counts of items are the files and tables that belong to a dataset.
    """

    def found(parts: Iterator[pa.RecordBatch]) -> Iterator[OutputRow]:
        yield from _output_rows(read(_items(parts)), Folds(new_fold))

    return written_by_tasks(items, found, tables=TABLES, aside=aside)


def _items(parts: Iterator[pa.RecordBatch]) -> Iterator[ItemToRead]:
    for part in parts:
        for row in rows(part, ItemToRead._fields):
            yield ItemToRead(*row)  # type: ignore[arg-type]


def _output_rows(
    outcomes: Iterable[tuple[ItemToRead, ReadOutcome]], folds: Folds
) -> Iterator[OutputRow]:
    texts: dict[str, str] = {}
    times: dict[str, _SourceTime] = {}
    before = perf_counter()
    for item, outcome in outcomes:
        time = times.setdefault(item.source, _SourceTime())
        time.seconds += perf_counter() - before
        time.add(item, outcome)
        part, place, *facts, schema = outcome
        row = (*item, part, *(place or _NOWHERE), *facts)
        yield OutputRow(ITEM, row, counts=place is not None and part == FILE_PART)
        if place is None or (outcome.fingerprint is None and outcome.reason is None):
            before = perf_counter()
            continue
        if schema is not None and outcome.fingerprint is not None:
            texts[outcome.fingerprint] = schema
        folds.add((item.source, place.dataset), _file_row(item, place, outcome))
        if folds.is_full:
            yield from _pieces(folds, texts)
        before = perf_counter()
    yield from _pieces(folds, texts)
    for fingerprint, text in texts.items():
        yield OutputRow(SCHEMA, (fingerprint, text))
    for source, time in times.items():
        yield OutputRow(READING_TIME, (source, *time.row()))


@dataclass
class _SourceTime:
    """What a task read of one source, and how long it waited for it."""

    seconds: float = 0.0
    files: int = 0
    failed: int = 0
    bytes: int = 0

    def add(self, item: ItemToRead, outcome: ReadOutcome) -> None:
        if outcome.part == FILE_PART:
            self.files += 1
            self.failed += outcome.reason is not None
            self.bytes += item.size

    def row(self) -> tuple[object, ...]:
        return self.files, self.failed, self.bytes, round(self.seconds * 1_000_000)


def _file_row(item: ItemToRead, place: RowPlace, outcome: ReadOutcome) -> FileRow:
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
        place.bond,
        outcome.dialect,
        outcome.warnings,
        outcome.reason,
    )


def _pieces(folds: Folds, texts: dict[str, str]) -> Iterator[OutputRow]:
    for (source, dataset), state, fingerprints in folds.taken():
        schemas = {fingerprint: texts[fingerprint] for fingerprint in sorted(fingerprints)}
        yield OutputRow(PIECE, (source, dataset, state, orjson.dumps(schemas).decode()))
