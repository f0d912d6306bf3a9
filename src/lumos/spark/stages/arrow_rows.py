"""Rows of Python values to Arrow batches and back, for functions that run on executors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_PER_BATCH = 512


def batches(rows: Iterable[Sequence[object]], columns: str) -> Iterator[pa.RecordBatch]:
    """Yield the rows as record batches of a bounded size.

    Args:
        rows: the values.
        columns: names and types as Spark writes them, of string, long, boolean and binary.
    """
    import pyarrow as pa

    schema = _schema(columns)
    iterator = iter(rows)
    while chunk := list(islice(iterator, ROWS_PER_BATCH)):
        pairs = zip(zip(*chunk, strict=True), schema, strict=True)
        arrays = [pa.array(values, field.type) for values, field in pairs]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def rows(batch: pa.RecordBatch, names: Iterable[str]) -> Iterator[tuple[object, ...]]:
    """Yield the values of some columns row by row."""
    yield from zip(*(batch.column(name).to_pylist() for name in names), strict=True)


def names_of(columns: str) -> tuple[str, ...]:
    """Return the names of columns given as Spark writes them."""
    return tuple(column.split()[0] for column in columns.split(","))


@cache
def _schema(columns: str) -> pa.Schema:
    import pyarrow as pa

    types = {
        "string": pa.string(),
        "long": pa.int64(),
        "binary": pa.binary(),
        "boolean": pa.bool_(),
    }
    named = (column.split() for column in columns.split(","))
    return pa.schema([pa.field(name, types[kind]) for name, kind in named])
