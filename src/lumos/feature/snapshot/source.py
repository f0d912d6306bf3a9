"""Where a snapshot is read from: the store, a folder, or a one-document file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import orjson
from typing_extensions import override

from lumos.core.errors import InputUnreadableError, InvalidModelError, SnapshotNotFoundError
from lumos.core.models import Snapshot, SnapshotStatistics, load_snapshot
from lumos.core.store.manifest import MANIFEST_NAME, SnapshotHeader, is_snapshot_id
from lumos.core.store.part_format import (
    SECTIONS,
    dataset_line,
    item_line,
    key_of_line,
    split_bucket,
)
from lumos.core.store.snapshot_store import LATEST, SnapshotStore
from lumos.core.store.stored_snapshot import StoredSnapshot

if TYPE_CHECKING:
    from pydantic import JsonValue


class SnapshotSource(Protocol):
    """A snapshot in any form, read by buckets of lines sorted by key."""

    @property
    def name(self) -> str:
        """How people call it."""

    @property
    def header(self) -> SnapshotHeader: ...

    @property
    def statistics(self) -> SnapshotStatistics:
        """Counted, never merely claimed."""

    def section_count(self, section: str) -> int:
        """Return how many items a section has, without reading them."""

    def bucket_count(self, section: str = "datasets") -> int: ...

    def bucket_digest(self, bucket: int, *, section: str = "datasets") -> str | None:
        """Return what is equal for buckets of equal content, or None where it is not known."""

    def bucket_lines(self, bucket: int, *, section: str = "datasets") -> list[bytes]: ...

    def load(self) -> Snapshot:
        """Return the whole snapshot."""


class StoredSource(SnapshotSource):
    """A snapshot in the store's form."""

    def __init__(self, stored: StoredSnapshot) -> None:
        self.stored = stored

    @property
    @override
    def name(self) -> str:
        return self.stored.manifest.id

    @property
    @override
    def header(self) -> SnapshotHeader:
        return self.stored.manifest

    @property
    @override
    def statistics(self) -> SnapshotStatistics:
        return self.stored.manifest.statistics

    @override
    def section_count(self, section: str) -> int:
        return sum(part.count for part in self.stored.manifest.parts_of(section).values())

    @override
    def bucket_count(self, section: str = "datasets") -> int:
        return self.stored.bucket_count(section)

    @override
    def bucket_digest(self, bucket: int, *, section: str = "datasets") -> str | None:
        return self.stored.bucket_digest(bucket, section=section)

    @override
    def bucket_lines(self, bucket: int, *, section: str = "datasets") -> list[bytes]:
        return self.stored.bucket_lines(bucket, section=section)

    @override
    def load(self) -> Snapshot:
        return self.stored.read()


class LoadedSource(SnapshotSource):
    """A snapshot in memory; every section is one bucket."""

    def __init__(self, snapshot: Snapshot, name: str) -> None:
        self._snapshot = snapshot
        self._name = printable(name)

    @property
    @override
    def name(self) -> str:
        return self._name

    @property
    @override
    def header(self) -> SnapshotHeader:
        return SnapshotHeader(
            snapshot_schema_version=self._snapshot.snapshot_schema_version,
            lumos_version=self._snapshot.lumos_version,
            export_timestamp=self._snapshot.export_timestamp,
            source_platform=self._snapshot.source_platform,
            complete=self._snapshot.complete,
        )

    @property
    @override
    def statistics(self) -> SnapshotStatistics:
        return self._snapshot.counted()

    @override
    def section_count(self, section: str) -> int:
        return len(getattr(self._snapshot, section))

    @override
    def bucket_count(self, section: str = "datasets") -> int:
        return 1

    @override
    def bucket_digest(self, bucket: int, *, section: str = "datasets") -> str | None:
        return None

    @override
    def bucket_lines(self, bucket: int, *, section: str = "datasets") -> list[bytes]:
        if section == "datasets":
            return [dataset_line(dataset) for dataset in self._snapshot.datasets]
        lines = [item_line(item) for item in section_items(self._snapshot, section)]
        return sorted(lines, key=lambda line: (key_of_line(section, line), line))

    @override
    def load(self) -> Snapshot:
        return self._snapshot


def section_items(snapshot: Snapshot, section: str) -> Iterator[dict[str, JsonValue]]:
    """Yield the items of a section other than the datasets, as the store's lines have them."""
    match section:
        case "identity_map":
            for urn, ids in sorted(snapshot.identity_map.items()):
                yield {"urn": urn, "ids": dict(ids)}
        case "extensions":
            for name, value in sorted(snapshot.extensions.items()):
                yield {"name": name, "value": value}
        case _ if section in SECTIONS:
            for model in getattr(snapshot, section):
                yield model.to_json()


def open_source(reference: str, *, store: SnapshotStore) -> SnapshotSource:
    """Open what the user named: `latest`, an id in the store, a snapshot folder or a document.

    Raises:
        SnapshotNotFoundError: the store has no such snapshot.
        InputUnreadableError: there is no such file, or it cannot be read.
        InvalidModelError: the file is no snapshot.
        CorruptSnapshotError: a checksum does not match.
    """
    if reference == LATEST or is_snapshot_id(reference):
        return StoredSource(store.open(reference))
    path = Path(reference)
    if path.name == MANIFEST_NAME:
        path = path.parent
    if is_folder(path):
        return StoredSource(opened_folder(path))
    return LoadedSource(load_snapshot(read_document(path)), reference)


def read_document(path: Path) -> JsonValue:
    """Parse a one-document snapshot file, without looking at its shape."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise InputUnreadableError(
            f"there is no snapshot {path}",
            hint="give a file, a snapshot folder, an id from lumos snapshot list, or latest",
        ) from None
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        raise _unreadable(path, error) from error
    try:
        document: JsonValue = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise InvalidModelError(
            f"{path} is not JSON: line {error.lineno}, column {error.colno}",
            hint="a snapshot is what lumos export --output FILE writes",
        ) from None
    return document


def is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError as error:
        raise _unreadable(path, error) from error


def printable(reference: str) -> str:
    """Return how a report spells what the user named, also a file name that is no Unicode."""
    return reference.encode("utf-8", "replace").decode()


def _unreadable(path: Path, error: OSError | ValueError) -> InputUnreadableError:
    reason = getattr(error, "strerror", None) or "it is no file name"
    return InputUnreadableError(f"cannot read {path}: {reason}", hint="check that you may read it")


def opened_folder(path: Path) -> StoredSnapshot:
    """Open a snapshot folder that the user named."""
    try:
        return StoredSnapshot.open(path)
    except SnapshotNotFoundError:
        raise InputUnreadableError(
            f"{path} is a folder without a {MANIFEST_NAME}: no snapshot",
            hint="give a snapshot's own folder, or a file that lumos export wrote",
        ) from None


def aligned_buckets(
    old: SnapshotSource, new: SnapshotSource, *, section: str
) -> Iterator[tuple[list[bytes], list[bytes]]]:
    """Yield the lines of both sides for the same keys, bucket by bucket, however many each has.

    Buckets that are known to be equal are not read.
    """
    old_count, new_count = old.bucket_count(section), new.bucket_count(section)
    few = min(old_count, new_count)
    for bucket in range(few):
        if old_count == new_count:
            digest = old.bucket_digest(bucket, section=section)
            if digest is None or digest != new.bucket_digest(bucket, section=section):
                yield (
                    old.bucket_lines(bucket, section=section),
                    new.bucket_lines(bucket, section=section),
                )
            continue
        yield from _split_pairs(old, new, bucket=bucket, section=section)


def _split_pairs(
    old: SnapshotSource, new: SnapshotSource, *, bucket: int, section: str
) -> Iterator[tuple[list[bytes], list[bytes]]]:
    """Compare one bucket of the side that has few with all buckets of the other that it covers."""
    swapped = old.bucket_count(section) > new.bucket_count(section)
    coarse, fine = (new, old) if swapped else (old, new)
    step, count = coarse.bucket_count(section), fine.bucket_count(section)
    spread = split_bucket(coarse.bucket_lines(bucket, section=section), section, buckets=count)
    for index in range(bucket, count, step):
        lines = fine.bucket_lines(index, section=section)
        yield (lines, spread.get(index, [])) if swapped else (spread.get(index, []), lines)
