"""Rows of Python values to Arrow batches and back, for functions that run on executors."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import accumulate, islice
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
        arrays = [arrow_array(values, field.type) for values, field in pairs]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def arrow_array(values: Sequence[object], kind: pa.DataType) -> pa.Array:
    """Return values of text, bytes, whole numbers or truth as Arrow has them.

    `pyarrow.array` does the same, but loads pandas when it is first called: a quarter of a second
    in each process that reads files.
    """
    import pyarrow as pa

    nones = values.count(None)
    if nones == len(values):
        return pa.nulls(len(values), kind)
    there = _bits([value is not None for value in values]) if nones else None
    return pa.Array.from_buffers(
        kind, len(values), [there, *_buffers(values, kind)], null_count=nones
    )


def _buffers(values: Sequence[object], kind: pa.DataType) -> list[pa.Buffer]:
    import pyarrow as pa

    if pa.types.is_boolean(kind):
        return [_bits([bool(value) for value in values])]
    if pa.types.is_int64(kind):
        return [pa.py_buffer(array("q", [value or 0 for value in values]))]  # type: ignore[type-var]
    if pa.types.is_string(kind):
        contents = [b"" if value is None else value.encode() for value in values]  # type: ignore[attr-defined]
    else:
        contents = [value or b"" for value in values]
    ends = array("i", accumulate(map(len, contents), initial=0))
    return [pa.py_buffer(ends), pa.py_buffer(b"".join(contents))]


def _bits(flags: Sequence[bool]) -> pa.Buffer:
    import pyarrow as pa

    digits = "".join("1" if flag else "0" for flag in reversed(flags))
    return pa.py_buffer(int(digits, 2).to_bytes(-(-len(flags) // 8), "little"))


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
