"""Reading a stored snapshot, part by part; nothing is believed before its checksum matched."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lumos.core.errors import CorruptSnapshotError, SnapshotNotFoundError
from lumos.core.models import LumosDataset, Snapshot, load_snapshot
from lumos.core.regular_files import read_regular
from lumos.core.store.snapshots.manifest import (
    LARGEST_MANIFEST_BYTES,
    MANIFEST_NAME,
    ContentHasher,
    Manifest,
    PartEntry,
    SnapshotInfo,
    VerifyReport,
    corrupt,
)
from lumos.core.store.snapshots.part_format import (
    SECTIONS,
    dataset_item_of,
    dataset_of_line,
    item_of,
)
from lumos.core.store.snapshots.snapshot_files import reading
from lumos.core.store.snapshots.snapshot_parts import StoredPart

if TYPE_CHECKING:
    from pydantic import JsonValue


class StoredSnapshot:
    """One snapshot folder, opened by its manifest."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder = folder
        self.manifest = manifest
        self._parts = {section: manifest.parts_of(section) for section in SECTIONS}

    @classmethod
    def open(cls, folder: Path, *, expected_id: str | None = None) -> StoredSnapshot:
        """Open the snapshot in a folder.

        Raises:
            SnapshotNotFoundError: there is none.
            CorruptSnapshotError: its manifest is damaged.
        """
        with reading(folder / MANIFEST_NAME):
            try:
                content = read_regular(folder / MANIFEST_NAME, most=LARGEST_MANIFEST_BYTES)
            except (FileNotFoundError, NotADirectoryError):
                raise SnapshotNotFoundError(
                    f"there is no snapshot in {folder}",
                    hint="see what there is with: lumos snapshot list",
                ) from None
        manifest = Manifest.parse(content, where=folder.name)
        if expected_id is not None and manifest.id != expected_id:
            raise corrupt(folder.name, MANIFEST_NAME, reason=f"it belongs to {manifest.id}")
        return cls(folder, manifest)

    @property
    def info(self) -> SnapshotInfo:
        return SnapshotInfo.of(self.manifest)

    @property
    def complete(self) -> bool:
        return self.manifest.complete

    def has_all_parts(self) -> bool:
        """Return whether every part lies there in its size; no byte of it is read."""
        try:
            return all(
                (self.folder / part.name).stat().st_size == part.bytes
                for part in self.manifest.parts
            )
        except OSError:
            return False

    def bucket_count(self, section: str = "datasets") -> int:
        return self.manifest.buckets.get(section, 1)

    def bucket_digest(self, bucket: int, *, section: str = "datasets") -> str:
        """Return what stays equal while a bucket's content does; empty for an empty bucket."""
        part = self._parts[section].get(bucket)
        return part.sha256 if part else ""

    def bucket_lines(self, bucket: int, *, section: str = "datasets") -> list[bytes]:
        """Return a bucket's lines, sorted by key.

        Raises:
            CorruptSnapshotError: the part is damaged or missing.
        """
        part = self.part(bucket, section=section)
        return part.lines() if part else []

    def part(self, bucket: int, *, section: str = "datasets") -> StoredPart | None:
        """Return the part of a bucket; an empty bucket has none."""
        entry = self._parts[section].get(bucket)
        return self._part(entry) if entry else None

    def iter_lines(self, section: str = "datasets") -> Iterator[bytes]:
        """Yield a section's lines bucket after bucket, sorted by key within each."""
        for _, entry in sorted(self._parts[section].items()):
            yield from self._part(entry).lines()

    def datasets(self) -> Iterator[LumosDataset]:
        """Yield the datasets, one at a time, in the order of the parts."""
        for line in self.iter_lines():
            yield dataset_of_line(line)

    def read(self) -> Snapshot:
        """Load the whole snapshot into memory."""
        header: dict[str, JsonValue] = self.manifest.model_dump(
            mode="json",
            include={
                "snapshot_schema_version",
                "lumos_version",
                "export_timestamp",
                "source_platform",
                "complete",
                "statistics",
            },
        )
        sections: dict[str, JsonValue] = {
            section: [item_of(line) for line in self.iter_lines(section)]
            for section in SECTIONS
            if section not in {"datasets", "identity_map", "extensions"}
        }
        datasets: list[JsonValue] = [dataset_item_of(line) for line in self.iter_lines()]
        identity = [item_of(line) for line in self.iter_lines("identity_map")]
        extensions = [item_of(line) for line in self.iter_lines("extensions")]
        return load_snapshot(
            {
                **header,
                **sections,
                "datasets": datasets,
                "identity_map": {str(item.get("urn")): item.get("ids") for item in identity},
                "extensions": {str(item.get("name")): item.get("value") for item in extensions},
            }
        )

    def verify(self) -> VerifyReport:
        """Check every byte, count and place; damage is reported, never raised."""
        hasher = ContentHasher()
        problems: list[str] = []
        lines = 0
        for part in self.manifest.parts:
            try:
                lines += self._verify_part(self._part(part), hasher)
            except CorruptSnapshotError as error:
                problems.append(error.message)
        if not problems and hasher.digest(self.manifest) != self.manifest.content_hash:
            problems.append(f"snapshot {self.manifest.id}: the parts are not what was written")
        return VerifyReport(
            id=self.manifest.id,
            parts=len(self.manifest.parts),
            lines=lines,
            bytes=sum(part.bytes for part in self.manifest.parts),
            content_hash=self.manifest.content_hash,
            problems=tuple(problems),
        )

    def _verify_part(self, part: StoredPart, hasher: ContentHasher) -> int:
        lines = part.lines()
        for line in lines:
            hasher.add(part.entry.section, line)
        part.require_order(lines)
        return len(lines)

    def _part(self, entry: PartEntry) -> StoredPart:
        buckets = self.bucket_count(entry.section)
        return StoredPart(self.manifest.id, self.folder, buckets, entry)
