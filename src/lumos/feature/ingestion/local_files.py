"""Files of the local file system: finds them in a stable order and turns each into a dataset.

One file is one dataset. Files that form a larger dataset together, such as the parts and
partitions of a table, are put together by the pipeline, not here.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, NamedTuple

from lumos.core.errors import UnreadableItemError
from lumos.core.formats import parquet
from lumos.core.formats.reader import SUFFIXES, read_file
from lumos.core.models import (
    DatasetKind,
    Documentation,
    Location,
    LumosDataset,
    OperationalMetadata,
    Urn,
)
from lumos.core.storage.local import PLATFORM, FolderWalk, LocalSource, mode_of, unreadable
from lumos.core.storage.port import UnlistedPrefix
from lumos.core.storage.selection import Selection
from lumos.feature.ingestion.records import (
    ScanRecord,
    ScanUnit,
    ScanWarning,
    SkippedItem,
    UnlistedPart,
    UnreadableItem,
    printable,
)

PARQUET_PATTERNS = ("*.parquet", "*.parq", "*.pq")

DATA_PATTERNS = tuple(
    f"*.{suffix}{codec}" for suffix in sorted(SUFFIXES) for codec in ("", ".gz", ".gzip")
)
_DATA_SUFFIXES = frozenset(f".{suffix}" for suffix in SUFFIXES)
_CODEC_SUFFIXES = frozenset({".snappy", ".gz", ".gzip", ".zstd", ".zst", ".lz4", ".brotli"})


class LocalFile(NamedTuple):
    """A file as a listing sees it."""

    path: bytes
    """Relative to the folder listed, with `/` between the parts, in the system's own bytes."""
    size: int
    mtime_us: int


class LocalFiles:
    """The files below one path that match a pattern and that nobody hides."""

    def __init__(
        self,
        root: Path,
        *,
        patterns: Sequence[str],
        exclude: Sequence[str],
        skip: Sequence[str] = (),
    ) -> None:
        """Look below a path.

        Args:
            root: a folder, or one file.
            patterns: names, or paths, of files to find.
            exclude: names, or paths, of files and folders to leave out.
            skip: whole paths of folders to leave out, such as the state folder.
        """
        self._root = os.path.abspath(os.path.expanduser(root))
        self._patterns = tuple(patterns)
        self._exclude = tuple(exclude)
        self._skip = tuple(skip)

    def storage(self, *, source: str) -> LocalSource:
        """Return the same files as a storage."""
        return LocalSource(
            name=source,
            path=self._root,
            patterns=self._patterns,
            exclude=self._exclude,
            skip=self._skip,
        )

    def unit(self, *, source: str) -> ScanUnit:
        """Return the one unit of this path, after a look at whether it is there.

        Raises:
            SourceError: there is nothing at the path, or it may not be looked at.
        """
        mode_of(self._root, source=source)
        return ScanUnit(self._root)

    def records(self, unit: ScanUnit, *, source: str) -> Iterator[ScanRecord]:
        """Yield a record for every file of the unit, and for what could not be looked at.

        Raises:
            SourceError: the path is gone since the scan was planned.
        """
        if not stat.S_ISDIR(mode_of(unit.target, source=source)):
            yield from self._file_records(unit.target)
            return
        selection = Selection(patterns=self._patterns, exclude=self._exclude, logs=False)
        for found in FolderWalk(unit.target, selection=selection).files():
            if isinstance(found, UnlistedPrefix):
                yield UnlistedPart(found.shown, found.error)
            elif selection.wanted(os.path.relpath(found, unit.target)):
                yield from self._file_records(found)

    def listing(self) -> Iterator[LocalFile | UnlistedPart]:
        """Yield every file with its size and time, and what could not be listed.

        Raises:
            SourceError: the path is gone since the scan was planned.
        """
        for found in self.storage(source=self._root).open().list(""):
            if isinstance(found, UnlistedPrefix):
                yield UnlistedPart(found.shown, found.error)
            else:
                yield LocalFile(found.path, found.size, found.mtime_us)

    def _file_records(self, path: str) -> Iterator[ScanRecord]:
        urn = Urn.of(PLATFORM, *Path(path).parts[1:])
        try:
            with _opened(path) as stream:
                status = os.fstat(stream.fileno())
                if not _is_data(path, stream):
                    yield SkippedItem(path, "no reader for this kind of file")
                    return
                facts = read_file(stream, size=status.st_size, name=path)
        except OSError as error:
            yield UnreadableItem(path, unreadable(error), urn)
            return
        except UnreadableItemError as error:
            yield UnreadableItem(path, error, urn)
            return
        yield from (ScanWarning(path, text) for text in facts.warnings)
        yield LumosDataset(
            urn=urn,
            name=printable(_dataset_name(Path(path))),
            platform=PLATFORM,
            kind=DatasetKind.FILES,
            format=facts.format,
            location=Location(path=printable(path)),
            schema=facts.schema,
            documentation=Documentation(description=facts.description),
            statistics=OperationalMetadata(
                file_count=1,
                total_size_bytes=status.st_size,
                row_count=facts.rows,
                last_modified=_moment(status.st_mtime),
            ),
        )


def _opened(path: str) -> BinaryIO:
    """Open a regular file; a pipe or device never makes a scan wait."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise UnreadableItemError("it is not a regular file")


def _is_data(path: str, stream: BinaryIO) -> bool:
    """Tell by name, else by content, so that a damaged file is reported and not passed over."""
    name = path.lower().removesuffix(".gz").removesuffix(".gzip")
    if os.path.splitext(name)[1] in _DATA_SUFFIXES:
        return True
    head = stream.read(len(parquet.MAGIC))
    stream.seek(0)
    return head == parquet.MAGIC


def _dataset_name(path: Path) -> str:
    """Return the file name without its format and codec, as people call the dataset."""
    while path.suffix.lower() in _DATA_SUFFIXES | _CODEC_SUFFIXES and path.stem:
        path = path.with_suffix("")
    return path.name


def _moment(seconds: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):  # a clock gone wrong, not a reason to fail
        return None
