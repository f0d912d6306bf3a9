"""Files of any storage, each as one dataset.

Files that form a larger dataset together, such as the parts and partitions of a table, are put
together by the pipeline, not here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

import orjson

from lumos.core.errors import NotTabularError, UnreadableItemError
from lumos.core.formats import packed
from lumos.core.formats.confined import ALLOW, OUTSIDE
from lumos.core.formats.facts import FileFacts
from lumos.core.formats.file_names import PATTERNS, SUFFIXES
from lumos.core.formats.tables import table_of_path
from lumos.core.models import (
    DatasetKind,
    Documentation,
    Location,
    LumosDataset,
    OperationalMetadata,
    Urn,
)
from lumos.core.storage.port import ListedObject, SkippedLink, UnlistedPrefix, printable
from lumos.core.storage.reading import ReadItem, read_items
from lumos.feature.ingestion.records import (
    ScanRecord,
    ScanWarning,
    SkippedItem,
    UnlistedPart,
    UnreadableItem,
)

if TYPE_CHECKING:
    from lumos.core.storage.port import Storage

DATA_PATTERNS: Final = PATTERNS
"""Names of files that are data."""
PARQUET_PATTERNS: Final = ("*.parquet", "*.parq", "*.pq")

_DATA_SUFFIXES = frozenset(f".{suffix}" for suffix in SUFFIXES)
_CODEC_SUFFIXES = frozenset({".brotli", *(f".{suffix}" for suffix in packed.SUFFIXES)})
_BATCH: Final = 256
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class StoredFiles:
    """The files of an open storage as records."""

    def __init__(self, storage: Storage, *, platform: str) -> None:
        self._storage = storage
        self._platform = platform

    def records(self, unit: str) -> Iterator[ScanRecord]:
        """Yield a record for every file of a unit, and for what could not be listed, in order."""
        batch: list[ListedObject] = []
        for found in self._storage.list(unit):
            if isinstance(found, ListedObject):
                if table_of_path(_text(found.path)) is None:
                    batch.append(found)
                if len(batch) < _BATCH:
                    continue
            yield from self._read(batch)
            batch = []
            if isinstance(found, UnlistedPrefix):
                yield UnlistedPart(found.shown, found.error)
            elif isinstance(found, SkippedLink):
                yield SkippedItem(self._storage.shown(found.path), f"{OUTSIDE}; {ALLOW}")
        yield from self._read(batch)

    def _read(self, files: Sequence[ListedObject]) -> Iterator[ScanRecord]:
        items = (ReadItem(file.path, file.size) for file in files)
        outcomes = read_items(items, self._storage)
        for file, outcome in zip(files, outcomes, strict=True):
            yield from self._records_of(file, outcome)

    def _records_of(
        self, file: ListedObject, outcome: bytes | UnreadableItemError
    ) -> Iterator[ScanRecord]:
        shown = self._storage.shown(file.path)
        parts = [part for part in os.fsdecode(file.path).split("/") if part]
        urn = Urn.of_path(self._platform, *self._storage.urn_parts(), *parts)
        if isinstance(outcome, NotTabularError):
            yield SkippedItem(shown, outcome.message)
        elif isinstance(outcome, UnreadableItemError):
            yield UnreadableItem(shown, outcome, urn)
        else:
            facts = FileFacts.from_json(orjson.loads(outcome))
            yield from (ScanWarning(shown, text) for text in facts.warnings)
            yield self._dataset(file, urn, facts)

    def _dataset(self, file: ListedObject, urn: Urn, facts: FileFacts) -> LumosDataset:
        return LumosDataset(
            urn=urn,
            name=printable(_dataset_name(PurePosixPath(os.fsdecode(file.path)))),
            platform=self._platform,
            kind=DatasetKind.FILES,
            format=facts.format,
            location=self._location(file.path),
            schema=facts.schema,
            documentation=Documentation(description=facts.description),
            statistics=OperationalMetadata(
                file_count=1,
                total_size_bytes=file.size,
                row_count=facts.rows,
                last_modified=_moment(file.mtime_us),
            ),
        )

    def _location(self, path: bytes) -> Location:
        if self._storage.bucket is None:
            return Location(path=self._storage.shown(path))
        return Location(bucket=self._storage.bucket, prefix=f"/{printable(_text(path))}")


def _text(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")


def _dataset_name(path: PurePosixPath) -> str:
    """Return the file name without its format and codec, as people call the dataset."""
    while path.suffix.lower() in _DATA_SUFFIXES | _CODEC_SUFFIXES and path.stem:
        path = path.with_suffix("")
    return path.name


def _moment(microseconds: int) -> datetime | None:
    try:
        return _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:  # a clock gone wrong, not a reason to fail
        return None
