"""Files of the local file system: finds them in a stable order and turns each into a dataset.

One file is one dataset. Files that form a larger dataset together, such as the parts and
partitions of a table, are put together by the pipeline, not here.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import BinaryIO, NamedTuple

from lumos.core.errors import SourceError, UnreadableItemError
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
from lumos.feature.ingestion.records import (
    ScanRecord,
    ScanUnit,
    ScanWarning,
    SkippedItem,
    UnlistedPart,
    UnreadableItem,
    printable,
)

PLATFORM = "local"
PARQUET_PATTERNS = ("*.parquet", "*.parq", "*.pq")

DATA_PATTERNS = tuple(
    f"*.{suffix}{codec}" for suffix in sorted(SUFFIXES) for codec in ("", ".gz", ".gzip")
)
_DATA_SUFFIXES = frozenset(f".{suffix}" for suffix in SUFFIXES)
_CODEC_SUFFIXES = frozenset({".snappy", ".gz", ".gzip", ".zstd", ".zst", ".lz4", ".brotli"})
_TEMPORARY_SUFFIXES = (".crc", ".tmp", ".temp", ".inprogress", ".swp", "~", "._copying_")


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
        self._skip = frozenset(skip)
        self._root = os.path.abspath(os.path.expanduser(root))
        self._patterns = tuple(pattern.lower() for pattern in patterns)
        self._exclude = tuple(pattern.lower().rstrip("/") for pattern in exclude)

    def unit(self, *, source: str) -> ScanUnit:
        """Return the one unit of this path, after a look at whether it is there.

        Raises:
            SourceError: there is nothing at the path, or it may not be looked at.
        """
        mode = _mode(self._root, source=source)
        if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
            raise SourceError(
                f"source '{source}': {printable(self._root)} is neither a folder nor a file",
                hint="give the path of a folder or of a file",
            )
        return ScanUnit(self._root)

    def records(self, unit: ScanUnit, *, source: str) -> Iterator[ScanRecord]:
        """Yield a record for every file of the unit, and for what could not be looked at.

        Raises:
            SourceError: the path is gone since the scan was planned.
        """
        if not stat.S_ISDIR(_mode(unit.target, source=source)):
            yield from self._file_records(unit.target)
            return
        for found in _Walk(unit.target, exclude=self._exclude).files():
            if not isinstance(found, str):
                yield found
            elif self._wanted(found, below=unit.target):
                yield from self._file_records(found)

    def listing(self) -> Iterator[LocalFile | UnlistedPart]:
        """Yield every file with its size and time, and what could not be listed.

        Raises:
            SourceError: the path is gone since the scan was planned.
        """
        if not stat.S_ISDIR(_mode(self._root, source=self._root)):
            yield from _listed(self._root, below=os.path.dirname(self._root))
            return
        for found in _Walk(self._root, exclude=self._exclude, skip=self._skip).files():
            if isinstance(found, UnlistedPart):
                yield found
            elif isinstance(found, str) and self._wanted(found, below=self._root):
                yield from _listed(found, below=self._root)

    def _wanted(self, path: str, *, below: str) -> bool:
        return _matches(os.path.relpath(path, below), self._patterns)

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
            yield UnreadableItem(path, _unreadable(error), urn)
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


class LocalFile(NamedTuple):
    """A file as a listing sees it."""

    path: bytes
    """Relative to the folder listed, with `/` between the parts, in the system's own bytes."""
    size: int
    mtime_us: int


def _listed(path: str, *, below: str) -> Iterator[LocalFile | UnlistedPart]:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return  # gone between the listing and the look: it is not there
    except OSError as error:
        yield UnlistedPart(path, _unreadable(error))
        return
    relative = os.fsencode(os.path.relpath(path, below))
    yield LocalFile(relative, status.st_size, status.st_mtime_ns // 1000)


class _Walk:
    """A walk that enters every real folder once, whatever links lead to it.

    Real folders come first, in the order of their names; links to folders follow, and only where
    they lead to a folder that was not walked under its own name. So no link can make a loop, and
    a new link never changes how anything else is called.
    """

    def __init__(
        self, root: str, *, exclude: Sequence[str], skip: frozenset[str] = frozenset()
    ) -> None:
        self._root = root
        self._exclude = exclude
        self._skip = skip
        self._entered: set[tuple[int, int]] = set()
        self._links: list[str] = []

    def files(self) -> Iterator[str | ScanRecord]:
        """Yield the path of every file, and a record for each folder that cannot be listed."""
        yield from self._below(self._root)
        while self._links:
            links, self._links = sorted(self._links, key=os.fsencode), []
            for link in links:
                yield from self._below(link)

    def _below(self, top: str) -> Iterator[str | ScanRecord]:
        waiting = [top]
        while waiting:
            folder = waiting.pop()
            try:
                if not self._enter(folder):
                    continue
                with os.scandir(folder) as listing:
                    entries = sorted(listing, key=lambda entry: os.fsencode(entry.name))
            except OSError as error:
                reason = f"it cannot be listed: {error.strerror or type(error).__name__}"
                yield UnlistedPart(folder, UnreadableItemError(reason, hint="check permissions"))
                continue
            folders = []
            for entry in entries:
                if _is_hidden(entry.name) or self._excluded(entry.path):
                    continue
                if not _is_folder(entry):
                    yield entry.path
                elif entry.is_symlink():
                    self._links.append(entry.path)
                else:
                    folders.append(entry.path)
            waiting.extend(reversed(folders))

    def _enter(self, folder: str) -> bool:
        status = os.stat(folder)
        identity = (status.st_dev, status.st_ino)
        is_new = identity not in self._entered
        self._entered.add(identity)
        return is_new

    def _excluded(self, path: str) -> bool:
        if path in self._skip:
            return True
        return bool(self._exclude) and _matches(os.path.relpath(path, self._root), self._exclude)


def _mode(path: str, *, source: str) -> int:
    try:
        return os.stat(path).st_mode
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a valid path"
        raise SourceError(
            f"source '{source}': cannot scan {printable(path)}: {reason}",
            hint="check the path of the source and its permissions",
        ) from error


def _matches(relative: str, patterns: Sequence[str]) -> bool:
    """Tell whether a pattern fits: one with a slash the whole path, any other the name alone."""
    path = relative.replace(os.sep, "/").lower()
    name = path.rsplit("/", 1)[-1]
    return any(fnmatchcase(path if "/" in pattern else name, pattern) for pattern in patterns)


def _is_hidden(name: str) -> bool:
    """Tell whether writers use the name for what is not data, or not data yet."""
    lowered = name.lower()
    if lowered.startswith(".") or lowered.endswith(_TEMPORARY_SUFFIXES):
        return True
    return lowered.startswith("_") and "=" not in lowered  # `_day=1` is a partition


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself; opening it will give the reason
        return False


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


def _unreadable(error: OSError) -> UnreadableItemError:
    reason = error.strerror or type(error).__name__
    return UnreadableItemError(f"it cannot be read: {reason}", hint="check its permissions")


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
