"""Builds the dataset of files that were put together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import orjson
from pydantic import JsonValue

from lumos.core.models import LumosDataset, PartitionRange, Schema, with_parts
from lumos.feature.discovery.datasets import (
    FileTotals,
    Layout,
    SourceRoot,
    files_dataset,
    merge_layouts,
)
from lumos.feature.discovery.distinct import DistinctSketch
from lumos.feature.discovery.drift import DriftKind, FileSpan, moment_of
from lumos.feature.discovery.merging import SchemaVariant, merge_schemas
from lumos.feature.discovery.partitions import NO_VALUE

if TYPE_CHECKING:
    from lumos.feature.discovery.assembling import PathParts
    from lumos.feature.discovery.fold import FileProblems, FormatFold, LayoutTotals, SchemaTotals
    from lumos.feature.discovery.grouping import Group
    from lumos.feature.discovery.merging import MergedSchema

FILE_LIST = "files"
"""The extension of a dataset that was just found; the state does not keep it."""
_FIELDS_SHOWN = 3


class FoundDataset(NamedTuple):
    """A dataset, and what people should know of its files."""

    dataset: LumosDataset
    warnings: tuple[str, ...]


def dataset_of_group(
    root: SourceRoot,
    dataset: PathParts,
    *,
    group: Group,
    schemas: Mapping[str, str | bytes],
    of: PathParts,
    problems: FileProblems | None = None,
    environment: str | None = None,
) -> FoundDataset:
    """Build the dataset of files that `grouping` put together.

    Args:
        root: where the source begins.
        dataset: the parts that name it, as `dataset_names` gives them.
        group: its files.
        schemas: the schema of each fingerprint in the fold, as JSON.
        of: the name that its files share, whether or not they are one dataset.
        problems: the files of this name that cannot be read, or only with warnings.
        environment: such as `prod`.
    """
    files = group.files
    merged = merge_schemas(
        _variant(fingerprint, totals, schemas[fingerprint])
        for fingerprint, totals in sorted(files.schemas.items())
    )
    layouts = [_layout(totals) for totals in files.layouts.values()]
    if group.dataset != of and files.file_count == 1 and not layouts[0].partition_keys:
        layouts = [replace(layouts[0], prefix=f"/{files.paths[0]}")]
    found = files_dataset(
        root,
        dataset,
        merged=merged,
        layouts=layouts,
        totals=_totals(files, layouts),
        format=group.format,
        environment=environment,
    )
    found = with_parts(
        found,
        properties=_usual_dialect(files.dialects),
        extensions={
            **found.extensions,
            **_listed(files),
            **({"file_problems": problems.as_json()} if problems else {}),
        },
    )
    return FoundDataset(found, (*_drift_warning(merged), *([group.reason] if group.reason else ())))


def _usual_dialect(dialects: Mapping[str, int]) -> dict[str, str]:
    """Return how most files are written; of two ways as common, the one that sorts first."""
    if not dialects:
        return {}
    usual = min(dialects, key=lambda text: (-dialects[text], text))
    found: dict[str, str] = orjson.loads(usual)
    return found


def _listed(files: FormatFold) -> dict[str, JsonValue]:
    """Name the files of a dataset that has several, up to a bearable number."""
    count = files.file_count
    return {FILE_LIST: {"count": count, "first": [*files.paths]}} if count > 1 else {}


def _drift_warning(merged: MergedSchema) -> Iterator[str]:
    """Say once how the files of a dataset differ, however many fields do."""
    drift = sorted(merged.drift, key=lambda each: (each.kind is not DriftKind.CONFLICT, each.rank))
    if not drift:
        return
    shown = "; ".join(each.message for each in drift[:_FIELDS_SHOWN])
    more = len(drift) - _FIELDS_SHOWN
    yield f"{shown}; {more:,} more fields differ (schema_drift)" if more > 0 else shown


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
