"""The snapshot store: one folder per snapshot, each whole or not there at all."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from lumos.core.errors import (
    CorruptSnapshotError,
    SnapshotNotFoundError,
    UnsupportedSnapshotVersionError,
)
from lumos.core.private_files import private_opener
from lumos.core.regular_files import read_regular
from lumos.core.store.snapshots.folder_claim import CLAIM_NAME, FolderClaim
from lumos.core.store.snapshots.line_sorter import MEMORY_BYTES
from lumos.core.store.snapshots.manifest import (
    MANIFEST_NAME,
    Manifest,
    SnapshotHeader,
    SnapshotInfo,
    VerifyReport,
    is_snapshot_id,
)
from lumos.core.store.snapshots.part_format import PART_BYTES
from lumos.core.store.snapshots.snapshot_files import (
    TEMP_PREFIX,
    DurableFiles,
    FilesForOthers,
    reading,
    storing,
)
from lumos.core.store.snapshots.snapshot_order import Numbers, SnapshotOrder, order_key
from lumos.core.store.snapshots.snapshot_sections import (
    SnapshotContent,
    SnapshotSections,
    header_of,
)
from lumos.core.store.snapshots.snapshot_writer import SnapshotWriter, discard_folder
from lumos.core.store.snapshots.stored_snapshot import StoredSnapshot

if TYPE_CHECKING:
    import builtins

    from lumos.core.models import Snapshot

LATEST = "latest"
_MADE_OF = ".made-of.json"
_LARGEST_NOTE = 64 * 1024
_SECOND = len("YYYYMMDDTHHMMSSZ")
_NAMED_IN_ERROR = 3


class SnapshotStore:
    """Snapshots on a local file system. Readers need no lock; writers do not disturb each other."""

    def __init__(
        self,
        root: Path,
        *,
        files: DurableFiles | None = None,
        part_bytes: int = PART_BYTES,
        memory_bytes: int = MEMORY_BYTES,
    ) -> None:
        self.root = root
        self._files = files or DurableFiles()
        self._files_elsewhere = files or FilesForOthers()
        self._order = SnapshotOrder(root, files=self._files)
        self._part_bytes = part_bytes
        self._memory_bytes = memory_bytes

    def write(
        self, snapshot: Snapshot, *, at: datetime, reuse_identical: bool = False
    ) -> SnapshotInfo:
        """Store a snapshot under the time `at`; its statistics are counted anew.

        Writing the content of the newest snapshot for the same second again returns that one.

        Args:
            snapshot: what to store.
            at: the time that names it.
            reuse_identical: return the newest snapshot in place of a new one where it has the
                same content, whenever that was written.

        Raises:
            StorageFullError: the disk is full.
            StateReadOnlyError: the folder does not allow writing.
            StateError: the disk failed otherwise. In each case nothing new is visible.
        """
        return self.write_sections(
            header_of(snapshot),
            SnapshotSections.of(snapshot),
            at=at,
            reuse_identical=reuse_identical,
        )

    def write_sections(
        self,
        header: SnapshotHeader,
        sections: SnapshotSections,
        *,
        at: datetime,
        reuse_identical: bool = False,
    ) -> SnapshotInfo:
        """Store a snapshot from streams, holding no more than a bounded part of it in memory."""
        return self.write_content(sections.content(header), at=at, reuse_identical=reuse_identical)

    def write_content(
        self, content: SnapshotContent, *, at: datetime, reuse_identical: bool = False
    ) -> SnapshotInfo:
        """Store a snapshot from the lines of its parts."""
        reusable = self._whole_newest if reuse_identical else None
        with storing(self.root):
            written = self._writer(self._files).write(content, at=at, reusable=reusable)
        return SnapshotInfo.of(written)

    def write_folder(self, content: SnapshotContent, folder: Path, *, at: datetime) -> SnapshotInfo:
        """Make a folder anywhere hold a snapshot, whole or as it was before.

        The umask decides who can read it.

        Raises:
            StateError: the folder holds something else, or the disk failed.
        """
        with storing(folder):
            writer = self._writer(self._files_elsewhere)
            return SnapshotInfo.of(writer.write_folder(content, folder, at=at))

    def _writer(self, files: DurableFiles) -> SnapshotWriter:
        return SnapshotWriter(
            self.root,
            files=files,
            part_bytes=self._part_bytes,
            memory_bytes=self._memory_bytes,
        )

    def list(self) -> builtins.list[SnapshotInfo]:
        """Return the snapshots, oldest first; one that is damaged is listed with its problem."""
        infos = [info for name in self._names() if (info := self._info(name)) is not None]
        noted = self._order.noted()
        return sorted(infos, key=lambda info: order_key(info, noted))

    def latest(self) -> SnapshotInfo | None:
        """Return the snapshot that was stored last, or None in an empty store.

        Raises:
            CorruptSnapshotError: a snapshot that may be the newest is damaged.
        """
        names = self._names()
        for trust_note in (True, False):  # what is noted may have come from a backup
            numbers = self._order.numbers(names, trust_note=trust_note)
            try:
                newest = self._newest_numbered(numbers)
            except _WrongNoteError:
                continue
            return newest or self._newest_by_time(names)
        return None

    def _newest_numbered(self, numbers: Numbers) -> SnapshotInfo | None:
        """Return the snapshot with the highest number, if any has one."""
        ordered = sorted(
            ((number, name) for name, number in numbers.items() if number is not None),
            reverse=True,
        )
        for number, name in ordered:
            stored = self._opened(name)
            if stored is None:  # removed since it was listed
                continue
            if stored.manifest.sequence != number:
                raise _WrongNoteError
            for other, known in numbers.items():
                if known is None and other[:_SECOND] >= name[:_SECOND]:
                    self._opened(other)  # its number may be unknown because it is damaged
            return stored.info
        return None

    def _newest_by_time(self, names: builtins.list[str]) -> SnapshotInfo | None:
        """Return the newest of snapshots without numbers."""
        while names:
            second = names[-1][:_SECOND]
            newest = [self._opened(name) for name in names if name.startswith(second)]
            infos = [stored.info for stored in newest if stored is not None]
            if infos:
                return max(infos, key=lambda info: (str(info.stored_at), info.id))
            names = [name for name in names if not name.startswith(second)]
        return None

    def open(self, reference: str) -> StoredSnapshot:
        """Open a snapshot by its id, or the newest by `latest`.

        Raises:
            SnapshotNotFoundError: there is none; the newest ids are named.
            CorruptSnapshotError: its manifest is damaged.
        """
        if reference == LATEST:
            newest = self.latest()
            if newest is None:
                raise SnapshotNotFoundError(
                    f"there is no snapshot in {self.root}",
                    hint="make one with: lumos snapshot create",
                )
            reference = newest.id
        stored = self._opened(reference) if is_snapshot_id(reference) else None
        if stored is None:
            raise self._not_found(reference)
        return stored

    def read(self, reference: str) -> Snapshot:
        """Load a whole snapshot by its id or `latest`, every byte of it verified."""
        return self.open(reference).read()

    def iter_lines(self, reference: str, *, section: str = "datasets") -> Iterator[bytes]:
        """Yield the lines of a section, holding one part at a time."""
        return self.open(reference).iter_lines(section)

    def verify(self, reference: str) -> VerifyReport:
        """Check every byte of a snapshot; damage is reported, not raised.

        Raises:
            SnapshotNotFoundError: there is no such snapshot.
        """
        try:
            return self.open(reference).verify()
        except CorruptSnapshotError as error:
            return VerifyReport(id=reference, problems=(error.message,))

    def remove(self, identity: str) -> bool:
        """Remove a snapshot, first its manifest: from then on it is not there.

        What a killed remover leaves is collected with what killed writers leave. False is
        returned where somebody else holds the folder or removed it.

        Raises:
            StateError: the disk failed.
        """
        folder = self.root / identity
        with storing(folder):
            claim = FolderClaim.try_existing(folder, files=self._files)
            if claim is None:
                return False
            with claim:
                self._files.remove(folder / MANIFEST_NAME)
                self._files.sync_folder(folder)
                discard_folder(folder, files=self._files)
            self._files.sync_folder(self.root)
        return True

    def collect_orphans(self) -> tuple[str, ...]:
        """Remove what dead writers left behind and return its names.

        That is: folders named like a snapshot that never got a manifest, and temp files in
        finished ones and in the store. What a live writer of any process holds is left alone.
        """
        removed: list[str] = []
        with storing(self.root):
            removed += [path.name for path in self._order.leftovers()]
            for folder in self._folders():
                if (folder / MANIFEST_NAME).exists():
                    removed += self._collect_leftovers(folder)
                elif self._collect_folder(folder):
                    removed.append(folder.name)
            if removed:
                self._files.sync_folder(self.root)
        return tuple(removed)

    def newest_made_of(self, fingerprint: str) -> SnapshotInfo | None:
        """Return the newest snapshot where it is whole and was made of what has this fingerprint.

        Args:
            fingerprint: of a catalog's content, as `remember` was given it.
        """
        try:
            note = json.loads(read_regular(self.root / _MADE_OF, most=_LARGEST_NOTE))
        except (OSError, ValueError):
            return None
        if not isinstance(note, dict) or note.get("fingerprint") != fingerprint:
            return None
        newest = self._whole_newest()
        return SnapshotInfo.of(newest) if newest and newest.id == note.get("snapshot") else None

    def remember(self, identity: str, fingerprint: str) -> None:
        """Note what a snapshot was made of; a note that is lost costs one comparison."""
        text = json.dumps({"snapshot": identity, "fingerprint": fingerprint})
        with suppress(OSError):
            new = self.root / f"{_MADE_OF}.new"
            with open(new, "w", encoding="utf-8", opener=private_opener) as file:
                file.write(text)
            os.replace(new, self.root / _MADE_OF)

    def _whole_newest(self) -> Manifest | None:
        """Return the newest snapshot's manifest, or None where any of its files is not in place."""
        try:
            newest = self.latest()
            stored = self._opened(newest.id) if newest else None
        except (CorruptSnapshotError, UnsupportedSnapshotVersionError):
            return None
        return stored.manifest if stored and stored.has_all_parts() else None

    def _collect_folder(self, folder: Path) -> bool:
        claim = FolderClaim.try_existing(folder, files=self._files)
        if claim is None:
            return False
        with claim:
            if (folder / MANIFEST_NAME).exists():  # committed while we asked for the claim
                return False
            discard_folder(folder, files=self._files)
            return not folder.exists()

    def _collect_leftovers(self, folder: Path) -> builtins.list[str]:
        leftovers = [path for path in folder.iterdir() if _is_leftover(path.name)]
        if not leftovers:
            return []
        claim = FolderClaim.try_existing(folder, files=self._files)
        if claim is None:
            return []
        with claim:
            for path in leftovers:
                if path.name != CLAIM_NAME:
                    self._files.remove(path)
        return [f"{folder.name}/{path.name}" for path in leftovers]

    def _folders(self) -> builtins.list[Path]:
        with reading(self.root):
            try:
                entries = sorted(self.root.iterdir())
            except FileNotFoundError:
                return []
            return [path for path in entries if is_snapshot_id(path.name) and path.is_dir()]

    def _names(self) -> builtins.list[str]:
        with reading(self.root):
            return [folder.name for folder in self._folders() if (folder / MANIFEST_NAME).exists()]

    def _opened(self, name: str) -> StoredSnapshot | None:
        try:
            return StoredSnapshot.open(self.root / name, expected_id=name)
        except SnapshotNotFoundError:  # removed since it was listed
            return None

    def _info(self, name: str) -> SnapshotInfo | None:
        try:
            stored = self._opened(name)
        except (CorruptSnapshotError, UnsupportedSnapshotVersionError) as error:
            return SnapshotInfo(id=name, problem=error.message)
        return stored.info if stored else None

    def _not_found(self, reference: str) -> SnapshotNotFoundError:
        numbers = self._order.numbers(self._names())
        ordered = sorted(numbers, key=lambda name: (numbers[name] or 0, name))
        names = ", ".join(ordered[-_NAMED_IN_ERROR:][::-1])
        hint = f"the newest are {names}" if names else "make one with: lumos snapshot create"
        return SnapshotNotFoundError(f"no snapshot {reference} in {self.root}", hint=hint)


class _WrongNoteError(Exception):
    """The note of a store gives a snapshot another number than its manifest."""


def _is_leftover(name: str) -> bool:
    return name.startswith(TEMP_PREFIX) or name == CLAIM_NAME
