"""Builds the datasets of a fold, one for each format that the files of one name have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import orjson

from lumos.core.models import LumosDataset, PartitionRange, Schema
from lumos.feature.discovery.datasets import (
    FileTotals,
    Layout,
    SourceRoot,
    dataset_of,
    merge_layouts,
)
from lumos.feature.discovery.distinct import DistinctSketch
from lumos.feature.discovery.drift import FileSpan, moment_of
from lumos.feature.discovery.merging import SchemaVariant, merge_schemas
from lumos.feature.discovery.partitions import NO_VALUE

if TYPE_CHECKING:
    from lumos.feature.discovery.assembling import Parts
    from lumos.feature.discovery.fold import FormatFold, LayoutTotals, SchemaTotals


class FoundDataset(NamedTuple):
    """A dataset, and what people should know of its files."""

    dataset: LumosDataset
    warnings: tuple[str, ...]


def dataset_of_format(
    root: SourceRoot,
    dataset: Parts,
    *,
    files: FormatFold,
    schemas: Mapping[str, str | bytes],
    format: str,
    environment: str | None = None,
) -> FoundDataset:
    """Build the dataset of the files of one name and one format.

    Args:
        root: where the source begins.
        dataset: the parts that name it, as `dataset_names` gives them.
        files: what was added up over its files.
        schemas: the schema of each fingerprint in the fold, as JSON.
        format: the format of its files.
        environment: such as `prod`.
    """
    merged = merge_schemas(
        _variant(fingerprint, totals, schemas[fingerprint])
        for fingerprint, totals in sorted(files.schemas.items())
    )
    layouts = [_layout(totals) for totals in files.layouts.values()]
    found = dataset_of(
        root,
        dataset,
        merged=merged,
        layouts=layouts,
        totals=_totals(files, layouts),
        format=format,
        environment=environment,
    )
    return FoundDataset(found, tuple(drift.message for drift in merged.drift))


def _variant(fingerprint: str, totals: SchemaTotals, schema: str | bytes) -> SchemaVariant:
    return SchemaVariant(
        Schema.from_json(orjson.loads(schema)),
        files=totals.files,
        newest=totals.newest_us,
        span=FileSpan(totals.oldest_us, totals.newest_us, totals.first, totals.last),
        fingerprint=fingerprint,
    )


def _layout(totals: LayoutTotals) -> Layout:
    values = orjson.loads(totals.text)
    return Layout(
        prefix=values["prefix"],
        partitioning=values["partitioning"],
        partition_keys=tuple(values["partition_keys"]),
        partition_types=tuple(values["partition_types"]),
        files=totals.files,
    )


def _totals(files: FormatFold, layouts: Sequence[Layout]) -> FileTotals:
    schemas = files.schemas.values()
    partitioned = [totals for totals in files.layouts.values() if totals.low]
    sketches = [totals.sketch for totals in partitioned if totals.sketch is not None]
    every = {partition for totals in partitioned for partition in totals.known}
    return FileTotals(
        files=sum(each.files for each in schemas),
        size_bytes=sum(each.bytes for each in schemas),
        exact_rows=sum(each.exact_rows for each in schemas),
        exact_files=sum(each.exact_files for each in schemas),
        estimated_rows=sum(each.estimated_rows for each in schemas),
        estimated_files=sum(each.estimated_files for each in schemas),
        partitions=len(every) if every and not sketches else None,
        estimated_partitions=_estimate(sketches, every) if sketches else None,
        newest_partition=_newest(files),
        partition_ranges=_ranges(partitioned, merge_layouts(layouts)),
        last_modified=moment_of(max(each.newest_us for each in schemas)),
        columns=files.column_statistics(),
    )


def _newest(files: FormatFold) -> str | None:
    """Return the partition with the latest time; None where no partition has a time."""
    lasts = [schema.last for schema in files.schemas.values() if schema.last is not None]
    newest = max(lasts, default=None)
    return newest.shown if newest is not None and newest.order[0] else None


def _estimate(sketches: Sequence[DistinctSketch], others: set[str]) -> int:
    both = DistinctSketch()
    for sketch in sketches:
        both.merge(sketch)
    for partition in others:
        both.add(partition)
    return both.count()


def _ranges(partitioned: Sequence[LayoutTotals], merged: Layout) -> tuple[PartitionRange, ...]:
    """Return the range of each key, over the layouts that have the keys of the dataset."""
    alike = [t for t in partitioned if _layout(t).partition_keys == merged.partition_keys]
    ranges = []
    for index, (key, type_) in enumerate(
        zip(merged.partition_keys, merged.partition_types, strict=True)
    ):
        lows = [t.low[index] for t in alike if t.low[index] != NO_VALUE]
        highs = [t.high[index] for t in alike if t.high[index] != NO_VALUE]
        if lows:
            ranges.append(PartitionRange(key=key, type=type_, min=min(lows)[2], max=max(highs)[2]))
    return tuple(ranges)
