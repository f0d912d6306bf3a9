"""From what files hold to datasets: the pieces of each meet on executors, in one shuffle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import orjson

from lumos.spark.stages.arrow_rows import batches, names_of, rows
from lumos.spark.stages.folding import Folds, NewFold
from lumos.spark.stages.part_files import OutputRow, written_by_tasks
from lumos.spark.stages.rows import BUILT, DATASETS, PIECES, BuiltDataset, FileRow

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame


class DatasetPieces(NamedTuple):
    """Everything known of one dataset, however many files it has."""

    source: str
    dataset: str
    states: Sequence[bytes]
    schemas: Mapping[str, str]


BuildDatasets = Callable[[DatasetPieces], Iterable[BuiltDataset]]


def fold_files(items: DataFrame, new_fold: NewFold) -> DataFrame:
    """Add up the files of each dataset that are known from before, as far as they lie in one task.

    Without their schemas, which `schema_pieces` returns.
    """
    placed = items.where("skipped IS NULL AND dataset IS NOT NULL")
    files = placed.select("source", "dataset", *FileRow._fields)

    def run(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches(_folded(parts, Folds(new_fold)), PIECES)

    return files.mapInArrow(run, PIECES)


def _folded(parts: Iterator[pa.RecordBatch], folds: Folds) -> Iterator[tuple[object, ...]]:
    for part in parts:
        for source, dataset, *file in rows(part, ("source", "dataset", *FileRow._fields)):
            folds.add((str(source), str(dataset)), FileRow(*file))  # type: ignore[arg-type]
            if folds.is_full:
                yield from _pieces(folds)
    yield from _pieces(folds)


def _pieces(folds: Folds) -> Iterator[tuple[object, ...]]:
    for (source, dataset), state, _ in folds.taken():
        yield source, dataset, state, None


def schema_pieces(items: DataFrame, schemas: DataFrame) -> DataFrame:
    """Return the schemas of each dataset's files, where they are known from before."""
    from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

    used = items.select("source", "dataset", "fingerprint").distinct().join(schemas, "fingerprint")
    text = F.to_json(F.create_map("fingerprint", "schema")).alias("schemas")
    return used.select("source", "dataset", F.lit(None).cast("binary").alias("state"), text)


def build_datasets(
    pieces: DataFrame, build: BuildDatasets, *, tasks: int, aside: Path
) -> DataFrame:
    """Bring the pieces of each dataset together, build it, and return the files of results."""
    key = ("source", "dataset")
    ordered = pieces.repartition(tasks, *key).sortWithinPartitions(*key)

    def built(parts: Iterator[pa.RecordBatch]) -> Iterator[OutputRow]:
        return (OutputRow(BUILT, each) for each in _built(parts, build))

    return written_by_tasks(ordered, built, tables={BUILT: DATASETS}, aside=aside)


def _built(parts: Iterator[pa.RecordBatch], build: BuildDatasets) -> Iterator[BuiltDataset]:
    every = (row for part in parts for row in rows(part, names_of(PIECES)))
    for (source, dataset), group in groupby(every, key=lambda row: row[:2]):
        states: list[bytes] = []
        schemas: dict[str, str] = {}
        for _, _, state, texts in group:
            if state is not None:
                states.append(state)  # type: ignore[arg-type]
            if texts is not None:
                schemas |= orjson.loads(texts)  # type: ignore[arg-type]
        if states:
            yield from build(DatasetPieces(str(source), str(dataset), sorted(states), schemas))
