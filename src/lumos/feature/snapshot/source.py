"""Where a snapshot is read from: the store, a folder, or a one-document file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from typing_extensions import override

from lumos.core.errors import InputUnreadableError, SnapshotNotFoundError
from lumos.core.store.snapshots.manifest import MANIFEST_NAME, SnapshotHeader, is_snapshot_id
from lumos.core.store.snapshots.part_format import (
    SECTIONS,
    dataset_line,
    item_line,
    key_of_line,
)
from lumos.core.store.snapshots.snapshot_sections import header_of
from lumos.core.store.snapshots.snapshot_store import LATEST, SnapshotStore
from lumos.core.store.snapshots.stored_snapshot import StoredSnapshot
from lumos.feature.snapshot.documents.document import stored_document, unreadable
from lumos.feature.snapshot.scratch import Scratch

if TYPE_CHECKING:
    from datetime import datetime

    from pydantic import JsonValue

    from lumos.core.models import Snapshot, SnapshotStatistics
    from lumos.core.platform.unreadable import Unreadable


class Bucket(Protocol):
    """A bucket of a snapshot that is read when its lines are asked for."""

    def lines(self) -> list[bytes]: ...


class SnapshotSource(Protocol):
    """A snapshot in any form, read by buckets of lines sorted by key."""

    unreadable: tuple[Unreadable, ...] = ()
    """What the catalog that it was just taken from holds besides, and could not be read."""

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

    def part(self, bucket: int, *, section: str = "datasets") -> Bucket | None:
        """Return a bucket, which any process may read; None for an empty one."""
        return HeldBucket(self, bucket, section)

    def require_whole(self) -> None:
        """Read every byte once, so that damage is found before anything is done with it.

        Raises:
            CorruptSnapshotError: a part is damaged.
        """
        return

    def load(self) -> Snapshot:
        """Return the whole snapshot."""


@dataclass(frozen=True, slots=True)
class HeldBucket:
    """A bucket of a snapshot that only this process has."""

    source: SnapshotSource
    bucket: int
    section: str

    def lines(self) -> list[bytes]:
        return self.source.bucket_lines(self.bucket, section=self.section)


class StoredSource(SnapshotSource):
    """A snapshot in the store's form."""

    def __init__(self, stored: StoredSnapshot, name: str | None = None) -> None:
        """Take a stored snapshot, and what to call it if not by its id."""
        self.stored = stored
        self._name = name or stored.manifest.id

    @property
    @override
    def name(self) -> str:
        return self._name

    @property
    @override
    def header(self) -> SnapshotHeader:
        return self.stored.manifest

    @property
    @override
    def statistics(self) -> SnapshotStatistics:
        return self.stored.manifest.statistics

    @property
    def content_hash(self) -> str:
        """What is equal for snapshots of equal content, in whatever form."""
        return self.stored.manifest.content_hash

    @property
    def stored_at(self) -> datetime:
        return self.stored.manifest.stored_at

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
    def part(self, bucket: int, *, section: str = "datasets") -> Bucket | None:
        return self.stored.part(bucket, section=section)

    @override
    def require_whole(self) -> None:
        for section in SECTIONS:
            for bucket in range(self.bucket_count(section)):
                if part := self.stored.part(bucket, section=section):
                    part.content()

    @override
    def load(self) -> Snapshot:
        return self.stored.read()


class DocumentSource(StoredSource):
    """A document or a catalog, put into parts that last as long as this does."""

    def __init__(
        self,
        stored: StoredSnapshot,
        name: str,
        *,
        scratch: Scratch,
        unreadable: tuple[Unreadable, ...] = (),
    ) -> None:
        super().__init__(stored, printable_reference(name))
        self._scratch = scratch
        self.unreadable = unreadable


class LoadedSource(SnapshotSource):
    """A snapshot in memory; every section is one bucket."""

    def __init__(self, snapshot: Snapshot, name: str) -> None:
        self._snapshot = snapshot
        self._name = printable_reference(name)

    @property
    @override
    def name(self) -> str:
        return self._name

    @property
    @override
    def header(self) -> SnapshotHeader:
        return header_of(self._snapshot)

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


def section_lines(source: SnapshotSource, section: str) -> Iterator[bytes]:
    """Yield the lines of a section, holding one bucket at a time."""
    for bucket in range(source.bucket_count(section)):
        yield from source.bucket_lines(bucket, section=section)


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


def open_source(reference: str, *, store: SnapshotStore, edited: bool = False) -> SnapshotSource:
    """Open what the user named: `latest`, an id in the store, a snapshot folder or a document.

    Args:
        reference: what the user named.
        store: where ids are looked up.
        edited: accept a document whose content does not match its checksum.

    Raises:
        SnapshotNotFoundError: the store has no such snapshot.
        InputUnreadableError: there is no such file, or it cannot be read.
        InvalidModelError: the file is no snapshot.
        CorruptSnapshotError: a checksum does not match.
    """
    if stored := opened_stored(reference, store=store):
        return StoredSource(stored)
    scratch = Scratch()
    stored = stored_document(Path(reference), scratch, edited=edited)
    return DocumentSource(stored, reference, scratch=scratch)


def opened_stored(reference: str, *, store: SnapshotStore) -> StoredSnapshot | None:
    """Open what the user named if it has the store's form; None where it can only be a document.

    Raises:
        SnapshotNotFoundError: the store has no such snapshot.
        InputUnreadableError: the folder is no snapshot, or cannot be read.
        CorruptSnapshotError: the manifest is damaged.
    """
    if reference == LATEST or is_snapshot_id(reference):
        return store.open(reference)
    path = Path(reference)
    if path.name == MANIFEST_NAME:
        path = path.parent
    return opened_folder(path) if is_folder(path) else None


def is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError as error:
        raise unreadable(path, error) from error


def printable_reference(reference: str) -> str:
    """Return how a report spells what the user named, also a file name that is no Unicode."""
    return reference.encode("utf-8", "replace").decode()


def opened_folder(path: Path) -> StoredSnapshot:
    """Open a snapshot folder that the user named."""
    try:
        return StoredSnapshot.open(path)
    except SnapshotNotFoundError:
        raise InputUnreadableError(
            f"{path} is a folder without a {MANIFEST_NAME}: no snapshot",
            hint="give a snapshot's own folder, or a file that lumos export wrote",
        ) from None
