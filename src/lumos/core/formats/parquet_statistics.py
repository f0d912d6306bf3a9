"""Column statistics in the footer of a Parquet file, added up over its row groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from lumos.core.models import ColumnStatistics, FieldType, TimeUnit, TypeName
from lumos.core.models.statistics import Bound, bound_of, merged_columns

if TYPE_CHECKING:
    import pyarrow.parquet as pq

    from lumos.core.formats.known_schemas import KnownSchema

MOST_CHUNKS: Final = 200_000
"""A file with more column chunks gets no column statistics: adding them up takes too long."""

_RANGED: Final = frozenset(
    {
        TypeName.BOOLEAN,
        TypeName.INT8,
        TypeName.INT16,
        TypeName.INT32,
        TypeName.INT64,
        TypeName.UINT8,
        TypeName.UINT16,
        TypeName.UINT32,
        TypeName.UINT64,
        TypeName.FLOAT,
        TypeName.DOUBLE,
        TypeName.DECIMAL,
        TypeName.DATE,
        TypeName.TIME,
        TypeName.TIMESTAMP,
        TypeName.TIMESTAMP_NTZ,
    }
)
"""Types whose smallest and largest value may be returned: none of them holds text."""
_TIMES: Final = (TypeName.TIMESTAMP, TypeName.TIMESTAMP_NTZ)
_MICROSECONDS: Final = {
    TimeUnit.SECOND: (1_000_000, 1),
    TimeUnit.MILLISECOND: (1_000, 1),
    TimeUnit.MICROSECOND: (1, 1),
    TimeUnit.NANOSECOND: (1, 1_000),
}


def column_statistics(
    metadata: pq.FileMetaData, known: KnownSchema, *, value_ranges: bool
) -> dict[str, ColumnStatistics]:
    """Return the statistics of each column, by its path; ranges only where they are asked for.

    Reading them from a damaged footer may end the process: only readers in a sandbox should.
    """
    count, groups = metadata.num_columns, metadata.num_row_groups
    starts = [start for start, _ in known.places] or range(count)
    if len(starts) != len(known.leaves) or count * groups > MOST_CHUNKS:
        return {}
    if value_ranges:
        totals = _with_ranges(metadata, dict(zip(starts, known.leaves, strict=True)))
    else:
        row_groups = [metadata.row_group(place) for place in range(groups)]
        totals = [_counted([group.column(index) for group in row_groups]) for index in range(count)]
    if known.places:
        totals = [_joined(totals[one:two]) for one, two in pairwise([*starts, count])]
    return {path: total for (path, _), total in zip(known.leaves, totals, strict=True)}


def _counted(chunks: Sequence[pq.ColumnChunkMetaData]) -> ColumnStatistics:
    """Add up one column, in plain numbers: this runs for every column of every file."""
    values = packed = unpacked = 0
    nulls: int | None = 0
    for chunk in chunks:
        statistics = chunk.statistics
        values += chunk.num_values
        packed += chunk.total_compressed_size
        unpacked += chunk.total_uncompressed_size
        if nulls is not None and statistics is not None and statistics.has_null_count:
            nulls += statistics.null_count
        else:
            nulls = None
    return ColumnStatistics(values, nulls, packed, unpacked)


def _with_ranges(
    metadata: pq.FileMetaData, ranged: Mapping[int, tuple[str, FieldType]]
) -> list[ColumnStatistics]:
    count, groups = metadata.num_columns, metadata.num_row_groups
    totals = [ColumnStatistics()] * count
    for place in range(groups):
        column = metadata.row_group(place).column
        chunks = [column(index) for index in range(count)]
        part = [_of_chunk(chunk) for chunk in chunks]
        for index, (_, leaf) in ranged.items():
            low, high = _range(chunks[index], leaf)
            part[index] = part[index]._replace(minimum=low, maximum=high)
        totals = [a.merged_with(b) for a, b in zip(totals, part, strict=True)]
    return totals


def _joined(parts: Sequence[ColumnStatistics]) -> ColumnStatistics:
    """The statistics of what is kept in several columns: the first says where there is nothing."""
    whole = merged_columns({"": part} for part in parts)[""]
    return whole._replace(value_count=parts[0].value_count, null_count=parts[0].null_count)


def _of_chunk(chunk: pq.ColumnChunkMetaData) -> ColumnStatistics:
    statistics = chunk.statistics
    return ColumnStatistics(
        chunk.num_values,
        statistics.null_count if statistics is not None and statistics.has_null_count else None,
        chunk.total_compressed_size,
        chunk.total_uncompressed_size,
    )


def _range(chunk: pq.ColumnChunkMetaData, leaf: FieldType) -> tuple[Bound | None, Bound | None]:
    statistics = chunk.statistics
    if leaf.type not in _RANGED or statistics is None or not statistics.has_min_max:
        return None, None
    try:
        if leaf.type in _TIMES:
            ends: list[object] = [
                _moment(raw, leaf) for raw in (statistics.min_raw, statistics.max_raw)
            ]
        else:
            ends = [statistics.min, statistics.max]
    except (ValueError, OverflowError, TypeError):  # such as a year that no calendar here knows
        return None, None
    low, high = (bound_of(end) for end in ends)
    return (None, None) if low is None or high is None else (low, high)


def _moment(raw: object, leaf: FieldType) -> datetime:
    if not isinstance(raw, int) or leaf.unit is None:
        raise TypeError
    factor, divisor = _MICROSECONDS[leaf.unit]
    zone = UTC if leaf.type is TypeName.TIMESTAMP else None
    return datetime(1970, 1, 1, tzinfo=zone) + timedelta(microseconds=raw * factor // divisor)
