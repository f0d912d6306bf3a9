"""Flat columns out of Arrow batches: members of structs, sizes of lists, one type for each kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, BinaryIO, Final

from lumos.feature.profiling.record_batches import value_text
from lumos.spark.stages.profiling import ColumnKind, arrow_type

if TYPE_CHECKING:
    import pyarrow as pa

    from lumos.feature.profiling.columns import ProfiledColumn

_BATCH_ROWS = 16_384
ARROW_FORMATS: Final = frozenset({"parquet", "orc", "arrow"})


def arrow_batches(stream: BinaryIO, format: str) -> Iterator[pa.RecordBatch]:
    """Yield the rows of an open file of one of the `ARROW_FORMATS`, a bounded number at a time."""
    if format == "parquet":
        import pyarrow.parquet as pq

        yield from pq.ParquetFile(stream).iter_batches(batch_size=_BATCH_ROWS)
    elif format == "orc":
        from pyarrow import orc

        file = orc.ORCFile(stream)
        for number in range(file.nstripes):
            yield from _small(file.read_stripe(number))
    else:
        yield from _ipc_batches(stream)


def flat_batch(batch: pa.RecordBatch, columns: Sequence[ProfiledColumn]) -> pa.RecordBatch:
    """Return the flat columns of a batch; what it lacks is null.

    Raises:
        ArrowException: values do not fit the type that the dataset has for them.
    """
    import pyarrow as pa

    arrays = [
        _flat(_member(batch, column.steps), column, rows=batch.num_rows) for column in columns
    ]
    return pa.RecordBatch.from_arrays(arrays, names=[column.flat.name for column in columns])


def _ipc_batches(stream: BinaryIO) -> Iterator[pa.RecordBatch]:
    from pyarrow import ipc

    magic = stream.read(6)
    stream.seek(0)
    if magic == b"ARROW1":
        file = ipc.open_file(stream)
        batches: Iterable[pa.RecordBatch] = map(file.get_batch, range(file.num_record_batches))
    else:
        batches = ipc.open_stream(stream)
    for batch in batches:
        yield from _small(batch)


def _small(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for start in range(0, batch.num_rows, _BATCH_ROWS):
        yield batch.slice(start, _BATCH_ROWS)


def _member(batch: pa.RecordBatch, steps: tuple[str, ...]) -> pa.Array | None:
    """Return the values that some names lead to; None where the file has no such column."""
    import pyarrow as pa
    import pyarrow.compute as pc

    names = batch.schema.names
    if steps[0] not in names:
        return None
    array = batch.column(names.index(steps[0]))
    for step in steps[1:]:
        array = _plain(array)
        if not pa.types.is_struct(array.type):
            return None
        place = array.type.get_field_index(step)
        if place < 0:
            return None
        array = pc.struct_field(array, [place])
    return _plain(array)


def _plain(array: pa.Array) -> pa.Array:
    """Return values without the extension type, dictionary or runs around them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        return array.dictionary_decode()
    if pa.types.is_run_end_encoded(array.type):
        return pc.run_end_decode(array)
    return array


def _flat(array: pa.Array | None, column: ProfiledColumn, *, rows: int) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    wanted = arrow_type(column.flat)
    if array is None or pa.types.is_null(array.type):
        return pa.nulls(rows, wanted)
    match column.flat.kind:
        case ColumnKind.PRESENT:
            return pc.if_else(pc.is_valid(array), True, pa.scalar(None, pa.bool_()))
        case ColumnKind.SIZE:
            return _sizes(array).cast(wanted)
        case ColumnKind.MOMENT:
            zone = getattr(array.type, "tz", None)
            return array.cast(pa.timestamp("us", zone), safe=False).cast(wanted)
        case ColumnKind.TIME:
            return array.cast(pa.time64("us"), safe=False).cast(wanted)
        case ColumnKind.TEXT if pa.types.is_nested(array.type) or pa.types.is_union(array.type):
            return pa.array(map(value_text, array.to_pylist()), pa.string())
        case _:
            return array.cast(wanted)


def _sizes(array: pa.Array) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_map(array.type):
        return pc.list_value_length(array)
    ends, starts = array.offsets.slice(1), array.offsets.slice(0, len(array))
    return pc.if_else(pc.is_valid(array), pc.subtract(ends, starts), pa.scalar(None, pa.int32()))
