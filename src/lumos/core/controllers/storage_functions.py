"""What the pipeline does with files, put together from the features; none of it knows Spark."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import orjson

import lumos
from lumos.core.errors import SourceError, UnreadableItemError
from lumos.core.formats.sandbox import FileItem, read_documents
from lumos.core.formats.tables.marks import TABLE_FORMATS, inside_table, table_of_path
from lumos.core.models import LumosDataset, Schema, with_parts
from lumos.core.models.base import canonical_json, sha256_of
from lumos.core.models.origin import ORIGIN
from lumos.feature.discovery.assembling import dataset_names, place_of
from lumos.feature.discovery.datasets import FileTotals, Layout, SourceRoot, dataset_of
from lumos.feature.discovery.merging import SchemaVariant, merge_schemas
from lumos.feature.ingestion.handlers.local import LocalSettings
from lumos.feature.ingestion.local_files import LocalFile, LocalFiles
from lumos.spark.stages.datasets import DatasetPieces
from lumos.spark.stages.rows import (
    BuiltDataset,
    FileRow,
    ItemToRead,
    ListedFile,
    Place,
    ReadOutcome,
)

if TYPE_CHECKING:
    from lumos.feature.ingestion.handlers.base_ingestion_handler import (
        BaseIngestionHandler,
        SourceSettings,
    )

READERS = f"{lumos.__version__}/1"
"""Changes with everything that places and reads files; the number is for changes in between."""
PLATFORM = "local"
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


def shown_path(root: str, path: bytes) -> str:
    """Return the whole path of a file as reports show it."""
    folder = root if os.path.isdir(root) else os.path.dirname(root)
    return os.path.join(folder, path.decode("utf-8", "backslashreplace"))


@dataclass(frozen=True)
class StorageFunctions:
    """The functions of a pipeline over local folders; they travel to the executors."""

    roots: Mapping[str, str]
    """The root of each source."""
    table_formats: tuple[str, ...] = TABLE_FORMATS

    def list_unit(self, source: str, unit: str) -> Iterator[ListedFile]:
        """List a unit where the executor runs; the files of a table's log go by the table."""
        for found in LocalUnit.of_text(unit).files().listing():
            if not isinstance(found, LocalFile):
                path = os.fsencode(found.item)
                yield ListedFile(source, path, None, None, error=found.error.message)
                continue
            path, size, mtime_us = found
            mark = table_of_path(path.decode("utf-8", "surrogateescape"))
            if mark is None:
                yield ListedFile(source, path, size, mtime_us)
            else:
                root = mark.root.encode("utf-8", "surrogateescape")
                yield ListedFile(source, root, size, mtime_us, None, mark.kind, mark.is_anchor)

    def in_tables(self, tables: Iterable[tuple[str, bytes, str]]) -> Callable[[str, bytes], bool]:
        """Return what tells whether a file lies in one of the tables."""
        roots: dict[str, dict[str, str]] = {}
        for source, path, kind in tables:
            roots.setdefault(source, {})[path.decode("utf-8", "surrogateescape")] = kind

        def is_in_table(source: str, path: bytes) -> bool:
            text = path.decode("utf-8", "surrogateescape")
            return inside_table(text, roots.get(source, {})) is not None

        return is_in_table

    def read_items(self, items: Iterable[ItemToRead]) -> Iterator[tuple[ItemToRead, ReadOutcome]]:
        """Read files in a child process, so that none of them can end the executor."""
        placed: list[tuple[ItemToRead, Place]] = []
        for item in items:
            place = placed_at(item.path)
            if place is None:
                yield item, ReadOutcome(skipped="")
            else:
                placed.append((item, place))
        files = (
            FileItem(
                os.path.join(_folder(self.roots[item.source]), os.fsdecode(item.path)), item.size
            )
            for item, _ in placed
        )
        for (item, place), (_, answer) in zip(placed, read_documents(files), strict=True):
            yield item, _outcome(answer, place)

    def new_fold(self) -> _Fold:
        return _Fold()

    def build_datasets(self, pieces: DatasetPieces) -> Iterator[BuiltDataset]:
        """Build the canonical datasets of the files of one name, one for each format."""
        fold = _Fold()
        for state in pieces.states:
            fold.merge(_Fold.from_bytes(state))
        root = _folder(self.roots[pieces.source])
        parts: tuple[str, ...] = tuple(orjson.loads(pieces.dataset))
        names = dataset_names(parts, sorted(fold.formats))
        for name, files in sorted(fold.formats.items()):
            merged = merge_schemas(
                SchemaVariant(
                    Schema.from_json(orjson.loads(pieces.schemas[fingerprint])),
                    counts["files"],
                    counts["newest_us"],
                )
                for fingerprint, counts in sorted(files["schemas"].items())
            )
            layouts = [_layout(text, count) for text, count in sorted(files["layouts"].items())]
            found = dataset_of(
                SourceRoot(PLATFORM, parts=Path(root).parts[1:], path=root),
                names[name],
                merged=merged,
                layouts=layouts,
                totals=_totals(files, is_partitioned=any(each.partition_keys for each in layouts)),
                format=name,
            )
            origin = {"source": pieces.source, "dataset": pieces.dataset}
            dataset = with_parts(found, extensions={**found.extensions, ORIGIN: origin})
            yield _built(dataset, pieces, warnings=[drift.message for drift in merged.drift])


class _Fold:
    """Adds up the files of one dataset."""

    def __init__(self) -> None:
        self.formats: dict[str, dict[str, dict]] = {}

    def add(self, file: FileRow) -> None:
        files = self.formats.setdefault(
            file.format, {"schemas": {}, "layouts": {}, "partitions": {}}
        )
        counts = files["schemas"].setdefault(
            file.fingerprint,
            {"files": 0, "bytes": 0, "rows": 0, "files_with_rows": 0, "newest_us": file.mtime_us},
        )
        counts["files"] += 1
        counts["bytes"] += file.size
        if file.rows is not None:
            counts["rows"] += file.rows
            counts["files_with_rows"] += 1
        counts["newest_us"] = max(counts["newest_us"], file.mtime_us)
        files["layouts"][file.layout] = files["layouts"].get(file.layout, 0) + 1
        files["partitions"][file.partition] = 1

    def merge(self, other: _Fold) -> None:
        for name, theirs in other.formats.items():
            ours = self.formats.setdefault(name, {"schemas": {}, "layouts": {}, "partitions": {}})
            for fingerprint, counts in theirs["schemas"].items():
                mine = ours["schemas"].get(fingerprint)
                if mine is None:
                    ours["schemas"][fingerprint] = counts
                    continue
                newest = max(mine["newest_us"], counts["newest_us"])
                for key in mine:
                    mine[key] += counts[key]
                mine["newest_us"] = newest
            for layout, count in theirs["layouts"].items():
                ours["layouts"][layout] = ours["layouts"].get(layout, 0) + count
            ours["partitions"].update(theirs["partitions"])

    def to_bytes(self) -> bytes:
        return orjson.dumps(self.formats)

    @classmethod
    def from_bytes(cls, state: bytes) -> _Fold:
        fold = cls()
        fold.formats = orjson.loads(state)
        return fold


def placed_at(path: bytes) -> Place | None:
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


def _outcome(answer: bytes | UnreadableItemError, place: Place) -> ReadOutcome:
    if isinstance(answer, UnreadableItemError):
        return ReadOutcome(place=place, reason=answer.message, retry=True)
    facts = orjson.loads(answer)
    schema = canonical_json(facts["schema"])
    warnings = facts.get("warnings")
    return ReadOutcome(
        place=place,
        format=facts["format"],
        fingerprint=sha256_of(facts["schema"]),
        rows=facts.get("rows"),
        rows_estimate=facts.get("rows_estimate"),
        warnings=_text(warnings) if warnings else None,
        schema=schema.decode(),
    )


def _built(
    dataset: LumosDataset, pieces: DatasetPieces, *, warnings: Sequence[str]
) -> BuiltDataset:
    document = dataset.to_json()
    return BuiltDataset(
        pieces.source,
        pieces.dataset,
        dataset.urn,
        sha256_of(document),
        dataset.format or "unknown",
        canonical_json(document).decode(),
        _text(warnings) if warnings else None,
    )


def _totals(files: Mapping[str, Mapping], *, is_partitioned: bool) -> FileTotals:
    schemas = list(files["schemas"].values())
    return FileTotals(
        files=sum(each["files"] for each in schemas),
        size_bytes=sum(each["bytes"] for each in schemas),
        exact_rows=sum(each["rows"] for each in schemas),
        exact_files=sum(each["files_with_rows"] for each in schemas),
        partitions=len(files["partitions"]) if is_partitioned else None,
        last_modified=_moment(max(each["newest_us"] for each in schemas)),
    )


def _moment(microseconds: int) -> datetime | None:
    try:
        return datetime.fromtimestamp(microseconds / 1_000_000, UTC)
    except (OverflowError, OSError, ValueError):  # a clock gone wrong, not a reason to fail
        return None


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
