"""What the pipeline does with files, put together from the features; none of it knows Spark."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import orjson

from lumos.core.errors import SourceError, UnreadableItemError
from lumos.core.formats.sandbox import FileItem
from lumos.core.formats.sandbox import read_files as read_in_sandbox
from lumos.core.models import LumosDataset, Schema, with_parts
from lumos.core.models.base import canonical_json, sha256_of
from lumos.feature.discovery.assembling import dataset_names, place_of
from lumos.feature.discovery.datasets import FileTotals, Layout, SourceRoot, dataset_of
from lumos.feature.discovery.merging import SchemaVariant, merge_schemas
from lumos.feature.ingestion.handlers.local import LocalSettings
from lumos.feature.ingestion.local_files import LocalFile, LocalFiles
from lumos.spark.pipeline import PipelineFunctions
from lumos.spark.stages.datasets import BuiltDataset, DatasetGroup
from lumos.spark.stages.facts import FileToRead, ReadFile
from lumos.spark.stages.files import ListedFile, Place

if TYPE_CHECKING:
    from lumos.core.formats.facts import FileFacts
    from lumos.feature.ingestion.handlers.base_ingestion_handler import (
        BaseIngestionHandler,
        SourceSettings,
    )

PLATFORM = "local"
ORIGIN = "lumos"
"""The extension in which a dataset keeps the source and the place that it was found in."""
OWN_EXTENSIONS = frozenset({ORIGIN, "schema_drift"})
"""The extensions that every ingestion says anew."""


class LocalUnit(NamedTuple):
    """A local folder to scan, as it travels to the executors."""

    root: str
    patterns: tuple[str, ...]
    exclude: tuple[str, ...]
    skip: tuple[str, ...] = ()

    def as_text(self) -> str:
        return json.dumps(self._asdict())

    @classmethod
    def of_text(cls, text: str) -> LocalUnit:
        values: dict[str, list[str]] = json.loads(text)
        root = str(values.pop("root"))
        return cls(root, **{name: tuple(items) for name, items in values.items()})

    @classmethod
    def of(
        cls, handler: BaseIngestionHandler[SourceSettings], *, skip: Sequence[str] = ()
    ) -> LocalUnit:
        """Return what a handler of local files scans.

        Raises:
            SourceError: it is not there, or the handler is of another kind.
        """
        settings = handler.settings
        if not isinstance(settings, LocalSettings):
            raise SourceError(
                f"source '{handler.name}': {handler.source_type} cannot be ingested yet",
                hint="sources of type local can",
            )
        (unit,) = handler.plan()
        return cls(unit.target, settings.file_patterns, settings.exclude, tuple(skip))

    def files(self) -> LocalFiles:
        return LocalFiles(
            Path(self.root), patterns=self.patterns, exclude=self.exclude, skip=self.skip
        )


class Origin(NamedTuple):
    """The source that a dataset was found in, and its place there."""

    source: str
    dataset: str


def origin_of(dataset: LumosDataset) -> Origin | None:
    """Return where a dataset was found, if ingestion found it."""
    origin = dataset.extensions.get(ORIGIN)
    if not isinstance(origin, Mapping):
        return None
    return Origin(str(origin.get("source")), str(origin.get("dataset")))


def shown_path(root: str, path: bytes) -> str:
    """Return the whole path of a file as reports show it."""
    folder = root if os.path.isdir(root) else os.path.dirname(root)
    return os.path.join(folder, path.decode("utf-8", "backslashreplace"))


def storage_functions(roots: Mapping[str, str]) -> PipelineFunctions:
    """Return the functions of a pipeline over local folders, given by source."""
    return PipelineFunctions(
        list_unit=list_unit,
        place_of=place,
        read_files=partial(read_files, roots=dict(roots)),
        build_dataset=partial(build_dataset, roots=dict(roots)),
    )


def list_unit(source: str, unit: str) -> Iterator[ListedFile]:
    """List a unit where the executor runs."""
    for found in LocalUnit.of_text(unit).files().listing():
        if isinstance(found, LocalFile):
            yield ListedFile(source, found.path, found.size, found.mtime_us)
        else:
            yield ListedFile(source, os.fsencode(found.item), None, None, found.error.message)


def place(path: bytes) -> Place | None:
    """Tell where a file belongs."""
    found = place_of(path.decode("utf-8", "backslashreplace"))
    if found is None:
        return None
    layout = {
        "prefix": found.prefix,
        "partitioning": found.partitioning,
        "partition_keys": found.partition_keys,
        "partition_types": found.partition_types,
    }
    return Place(_text(found.dataset), _text(layout), _text(found.partition_values))


def read_files(files: Iterable[FileToRead], roots: Mapping[str, str]) -> Iterator[ReadFile]:
    """Read files in a child process, so that none of them can end the executor."""
    items = (
        FileItem(os.path.join(_folder(roots[file.source]), os.fsdecode(file.path)), file.size)
        for file in files
    )
    for _, outcome in read_in_sandbox(items):
        yield _read(outcome)


def _read(outcome: FileFacts | UnreadableItemError) -> ReadFile:
    if isinstance(outcome, UnreadableItemError):
        return ReadFile(None, None, None, None, outcome.message, None)
    schema = outcome.schema.to_json()
    warnings = _text(outcome.warnings) if outcome.warnings else None
    return ReadFile(outcome.format, sha256_of(schema), _text(schema), outcome.rows, None, warnings)


def build_dataset(group: DatasetGroup, roots: Mapping[str, str]) -> BuiltDataset:
    """Build the canonical dataset of a group of files."""
    root = _folder(roots[group.source])
    parts: tuple[str, ...] = tuple(orjson.loads(group.dataset))
    merged = merge_schemas(
        SchemaVariant(Schema.from_json(orjson.loads(each.schema)), each.files, each.newest_us)
        for each in group.schemas
    )
    found = dataset_of(
        SourceRoot(PLATFORM, parts=Path(root).parts[1:], path=root),
        dataset_names(parts, group.formats)[group.format],
        merged=merged,
        layouts=[_layout(each.layout, each.files) for each in group.layouts],
        totals=_totals(group),
        format=group.format,
    )
    origin = {"source": group.source, "dataset": group.dataset}
    dataset = with_parts(found, extensions={**found.extensions, ORIGIN: origin})
    warnings = [drift.message for drift in merged.drift]
    return BuiltDataset(
        group.source,
        dataset.urn,
        canonical_json(dataset.to_json()).decode(),
        _text(warnings) if warnings else None,
    )


def _totals(group: DatasetGroup) -> FileTotals:
    newest = max(each.newest_us for each in group.schemas)
    return FileTotals(
        files=sum(each.files for each in group.schemas),
        size_bytes=sum(each.bytes for each in group.schemas),
        exact_rows=sum(each.rows or 0 for each in group.schemas),
        exact_files=sum(each.files_with_rows for each in group.schemas),
        partitions=group.partitions if _partitioned(group) else None,
        last_modified=_moment(newest),
    )


def _moment(microseconds: int) -> datetime | None:
    try:
        return datetime.fromtimestamp(microseconds / 1_000_000, UTC)
    except (OverflowError, OSError, ValueError):  # a clock gone wrong, not a reason to fail
        return None


def _partitioned(group: DatasetGroup) -> bool:
    return any(orjson.loads(each.layout)["partition_keys"] for each in group.layouts)


def _layout(text: str, files: int) -> Layout:
    values = orjson.loads(text)
    return Layout(
        prefix=values["prefix"],
        partitioning=values["partitioning"],
        partition_keys=tuple(values["partition_keys"]),
        partition_types=tuple(values["partition_types"]),
        files=files,
    )


def _folder(root: str) -> str:
    return root if os.path.isdir(root) else os.path.dirname(root)


def _text(value: Sequence[str | None] | Mapping[str, object]) -> str:
    return canonical_json(value).decode()
