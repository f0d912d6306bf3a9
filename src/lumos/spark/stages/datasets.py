"""From what files hold to datasets: one fold per dataset, on executors, in one shuffle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

from lumos.spark.stages.arrow_rows import batches, rows
from lumos.spark.stages.rows import DATASETS, BuiltDataset, FileRow

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_PIECES = "source string, dataset string, state binary, fingerprint string, schema string"
_MOST_FOLDS = 10_000


class Fold(Protocol):
    """Adds up what is known of the files of one dataset."""

    def add(self, file: FileRow) -> None: ...
    def merge(self, other: Self) -> None: ...
    def to_bytes(self) -> bytes: ...


class DatasetPieces(NamedTuple):
    """Everything known of one dataset, however many files it has."""

    source: str
    dataset: str
    states: Sequence[bytes]
    schemas: Mapping[str, str]


NewFold = Callable[[], Fold]
BuildDatasets = Callable[[DatasetPieces], Iterable[BuiltDataset]]


def fold_files(items: DataFrame, new_fold: NewFold) -> DataFrame:
    """Add up the files of each dataset, as far as they lie in one task."""
    readable = items.where("reason IS NULL AND skipped IS NULL AND dataset IS NOT NULL")
    files = readable.select("source", "dataset", *FileRow._fields)

    def run(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches(_folded(parts, new_fold), _PIECES)

    return files.mapInArrow(run, _PIECES)


def _folded(parts: Iterator[pa.RecordBatch], new_fold: NewFold) -> Iterator[tuple[object, ...]]:
    folds: dict[tuple[object, object], Fold] = {}
    for part in parts:
        for source, dataset, *file in rows(part, ("source", "dataset", *FileRow._fields)):
            fold = folds.get((source, dataset))
            if fold is None:
                if len(folds) >= _MOST_FOLDS:  # what is added up so far goes on its way
                    yield from _pieces(folds)
                    folds.clear()
                fold = folds[source, dataset] = new_fold()
            fold.add(FileRow(*file))  # type: ignore[arg-type]
    yield from _pieces(folds)


def _pieces(folds: Mapping[tuple[object, object], Fold]) -> Iterator[tuple[object, ...]]:
    for (source, dataset), fold in folds.items():
        yield source, dataset, fold.to_bytes(), None, None


def build_datasets(folded: DataFrame, schemas: DataFrame, build: BuildDatasets) -> DataFrame:
    """Bring the pieces of each dataset together and build it."""
    from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

    texts = schemas.select(
        "source", "dataset", F.lit(None).cast("binary").alias("state"), "fingerprint", "schema"
    )
    pieces = folded.unionByName(texts).repartition("source", "dataset")
    ordered = pieces.sortWithinPartitions("source", "dataset")

    def run(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches(_built(parts, build), DATASETS)

    return ordered.mapInArrow(run, DATASETS)


def _built(parts: Iterator[pa.RecordBatch], build: BuildDatasets) -> Iterator[BuiltDataset]:
    columns = ("source", "dataset", "state", "fingerprint", "schema")
    every = (row for part in parts for row in rows(part, columns))
    for (source, dataset), group in groupby(every, key=lambda row: row[:2]):
        states: list[bytes] = []
        schemas: dict[str, str] = {}
        for _, _, state, fingerprint, schema in group:
            if state is not None:
                states.append(state)  # type: ignore[arg-type]
            else:
                schemas[str(fingerprint)] = str(schema)
        if states:
            yield from build(DatasetPieces(str(source), str(dataset), sorted(states), schemas))
