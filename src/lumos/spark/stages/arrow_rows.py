"""Rows of Python values to Arrow batches and back, for functions that run on executors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_PER_BATCH = 512


def batches(rows: Iterable[Sequence[object]], columns: str) -> Iterator[pa.RecordBatch]:
    """Yield the rows as record batches of a bounded size.

    Args:
        rows: the values.
        columns: names and types as Spark writes them, of string, long and binary.
    """
    import pyarrow as pa

    types = {"string": pa.string(), "long": pa.int64(), "binary": pa.binary()}
    named = (column.split() for column in columns.split(","))
    schema = pa.schema([pa.field(name, types[kind]) for name, kind in named])
    iterator = iter(rows)
    while chunk := list(islice(iterator, ROWS_PER_BATCH)):
        pairs = zip(zip(*chunk, strict=True), schema, strict=True)
        arrays = [pa.array(list(values), field.type) for values, field in pairs]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def rows(batch: pa.RecordBatch, *names: str) -> Iterator[tuple[object, ...]]:
    """Yield the values of some columns row by row."""
    yield from zip(*(batch.column(name).to_pylist() for name in names), strict=True)
