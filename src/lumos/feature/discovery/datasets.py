"""Builds the canonical dataset of files that belong together, from what was summed up over them."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from datetime import datetime
from typing import TYPE_CHECKING, Final

from pydantic import JsonValue

from lumos.core.models import (
    ColumnStatistics,
    DatasetKind,
    Documentation,
    Field,
    Location,
    LumosDataset,
    OperationalMetadata,
    PartitionRange,
    Schema,
    TypeName,
    Urn,
)

if TYPE_CHECKING:
    from lumos.feature.discovery.assembling import PathParts
    from lumos.feature.discovery.merging import MergedSchema

_MOST_TOLD: Final = 100


@dataclass(frozen=True)
class SourceRoot:
    """Where a source begins: what stands before the dataset's own parts in every URN."""

    platform: str
    parts: PathParts = ()
    """The bucket and the folders down to the source's root, as plain text."""
    bucket: str | None = None
    path: str | None = None
    """The folder of the root on this machine; None for object storage. It is in no URN."""
    prefix: str = ""
    """The folders between bucket and root, such as `/raw`; empty where `path` says it all."""


@dataclass(frozen=True)
class Layout:
    """How some files of a dataset lie, as `FilePlace` says it."""

    prefix: str
    partitioning: str | None = None
    partition_keys: PathParts = ()
    partition_types: PathParts = ()
    files: int = 1


@dataclass(frozen=True)
class FileTotals:
    """What was summed up over the files of a dataset."""

    files: int
    size_bytes: int
    exact_rows: int = 0
    """The rows of all files that say how many they have."""
    exact_files: int = 0
    estimated_rows: int = 0
    estimated_files: int = 0
    partitions: int | None = None
    estimated_partitions: int | None = None
    """About how many, where there are too many to count."""
    newest_partition: str | None = None
    partition_ranges: tuple[PartitionRange, ...] = ()
    last_modified: datetime | None = None
    columns: Mapping[str, ColumnStatistics] = dataclass_field(default_factory=dict)

    def statistics(self) -> OperationalMetadata:
        """Return them as observed facts; rows are exact only where every file is."""
        return OperationalMetadata(
            file_count=self.files,
            total_size_bytes=self.size_bytes,
            row_count=self.exact_rows if self.exact_files == self.files else None,
            row_count_estimate=self._estimate(),
            partition_count=self.partitions,
            partition_count_estimate=self.estimated_partitions,
            newest_partition=self.newest_partition,
            partition_ranges=self.partition_ranges,
            last_modified=self.last_modified,
            columns=tuple(each.facts(path) for path, each in sorted(self.columns.items())),
        )

    def _estimate(self) -> int | None:
        """Return the rows known and estimated; a silent file counts as an average one."""
        told = self.exact_files + self.estimated_files
        rows = self.exact_rows + self.estimated_rows
        return round(rows * self.files / told) if told else None


def files_dataset(
    root: SourceRoot,
    dataset: PathParts,
    *,
    merged: MergedSchema,
    layouts: Sequence[Layout],
    totals: FileTotals,
    format: str | None,
    description: str | None = None,
    environment: str | None = None,
) -> LumosDataset:
    """Build the dataset that files form together.

    Args:
        root: where the source begins.
        dataset: its own parts, as `dataset_names` gives them.
        merged: the schema of its files.
        layouts: the distinct layouts of its files, in any order.
        totals: what was summed up over its files.
        format: the format that its files really have.
        description: what a file says of itself.
        environment: such as `prod`.
    """
    layout = merge_layouts(layouts)
    parts = (*root.parts, *dataset)
    return LumosDataset(
        urn=Urn.of_path(root.platform, *parts),
        name=_printable(parts[-1]),
        platform=root.platform,
        kind=DatasetKind.FILES,
        environment=environment,
        format=format,
        location=Location(
            bucket=root.bucket,
            prefix=_printable(root.prefix + layout.prefix),
            partitioning=None if layout.partitioning is None else _printable(layout.partitioning),
            partition_keys=tuple(dict.fromkeys(map(_printable, layout.partition_keys))),
        ),
        schema=_with_partition_columns(merged.schema, layout),
        documentation=Documentation(description=description),
        statistics=totals.statistics(),
        extensions={"schema_drift": _drift(merged)} if merged.drift else {},
    )


def _drift(merged: MergedSchema) -> dict[str, JsonValue]:
    """Return the fields that differ and the schemas there are, up to a limit of each."""
    schemas: list[JsonValue] = [
        {
            "fingerprint": variant.fingerprint,
            "fields": len(variant.schema.fields),
            "files": variant.files,
            **variant.span.as_json(),
        }
        for variant in merged.variants[:_MOST_TOLD]
    ]
    return {
        "schema_count": len(merged.variants),
        "schemas": schemas,
        "field_count": len(merged.drift),
        "fields": [drift.as_json() for drift in merged.drift[:_MOST_TOLD]],
    }


def merge_layouts(layouts: Iterable[Layout]) -> Layout:
    """Return the layout of a dataset whose files lie in several ways.

    The partition keys of most files stand, and of those the template of most files whose values
    are all known. The type of a key holds the values of all files with these keys.
    """
    every = list(layouts)
    if not every:
        return Layout("/", files=0)
    by_keys: dict[PathParts, list[Layout]] = {}
    for layout in every:
        by_keys.setdefault(layout.partition_keys, []).append(layout)
    alike = min(by_keys.values(), key=_commonness)
    whole = [layout for layout in alike if "" not in layout.partition_types] or alike
    templates: dict[str, list[Layout]] = {}
    for layout in whole:
        templates.setdefault(layout.partitioning or "", []).append(layout)
    template = min(templates, key=lambda text: (-_files(templates[text]), text))
    return Layout(
        prefix=_common_prefix({layout.prefix for layout in every}),
        partitioning=template or None,
        partition_keys=alike[0].partition_keys,
        partition_types=tuple(
            _common_value_type(set(types))
            for types in zip(*(layout.partition_types for layout in alike), strict=True)
        ),
        files=_files(every),
    )


def _commonness(alike: Sequence[Layout]) -> tuple[int, int, PathParts]:
    keys = alike[0].partition_keys
    return -_files(alike), -len(keys), keys


def _files(layouts: Iterable[Layout]) -> int:
    return sum(layout.files for layout in layouts)


def _common_prefix(prefixes: set[str]) -> str:
    """Return the one prefix, or else the folder that holds all of them."""
    if len(prefixes) == 1:
        return next(iter(prefixes))
    folders = [prefix.rpartition("/")[0] or "/" for prefix in prefixes]
    return posixpath.commonpath(folders).rstrip("/") + "/"


def _common_value_type(types: set[str]) -> str:
    known = types - {""}
    if len(known) == 1:
        return known.pop()
    return "INT64" if known == {"INT32", "INT64"} else "STRING"


def _with_partition_columns(schema: Schema, layout: Layout) -> Schema:
    """Add the Hive keys that the files lack; every engine shows them as columns.

    A date folder without a key is no column anywhere, so it adds none.
    """
    folders = (layout.partitioning or "").split("/")
    known = {field.name.casefold() for field in schema.fields}
    columns = []
    for key, type_ in zip(layout.partition_keys, layout.partition_types, strict=True):
        if key.casefold() not in known and any(
            folder.startswith(f"{key}={{") for folder in folders
        ):
            known.add(key.casefold())
            columns.append(Field(name=_printable(key), type=TypeName(type_)))
    if not columns:
        return schema
    return Schema(
        fields=(*schema.fields, *columns),
        primary_key=schema.primary_key,
        unique_keys=schema.unique_keys,
        foreign_keys=schema.foreign_keys,
        positional=schema.positional,
    )


def _printable(name: str) -> str:
    r"""Return a name as text that JSON can carry; undecodable bytes are written as `\xe9`."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
