"""Writing a snapshot: it appears whole, by its manifest, or not at all."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lumos.core.errors import (
    CorruptSnapshotError,
    InvalidModelError,
    StateError,
    UnsupportedSnapshotVersionError,
)
from lumos.core.regular_files import read_regular
from lumos.core.store.snapshots.folder_claim import CLAIM_NAME, FolderClaim
from lumos.core.store.snapshots.line_sorter import LineSorter
from lumos.core.store.snapshots.manifest import (
    LARGEST_MANIFEST_BYTES,
    MANIFEST_NAME,
    SIGNATURE_NAME,
    ContentHasher,
    Manifest,
    PartEntry,
    snapshot_id,
)
from lumos.core.store.snapshots.part_format import (
    SECTIONS,
    bucket_count,
    bucket_of,
    encode_part,
    is_part_name,
    part_name,
)
from lumos.core.store.snapshots.snapshot_files import TEMP_PREFIX, DurableFiles, write_atomically
from lumos.core.store.snapshots.snapshot_order import SnapshotOrder

if TYPE_CHECKING:
    from lumos.core.store.snapshots.snapshot_sections import SnapshotContent

_ID_DIGITS = (8, 16, 64)
_REVERSED_BITS = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))
_CRC_BITS = 32
_UNIQUE = {
    "datasets": ("datasets", "URN"),
    "jobs": ("jobs", "URN"),
    "identity_map": ("entries of identity_map", "URN"),
    "extensions": ("extensions", "name"),
}


class _Named(NamedTuple):
    """What a snapshot is called, and why."""

    identity: str
    content_hash: str
    stored_at: datetime


class SnapshotWriter:
    """Gathers the sections of one snapshot and commits them as a folder.

    The protocol: every part under a temp name, fsync, rename; fsync of the folder; the manifest
    the same way, last; fsync of the folder and of its parent.
    """

    def __init__(
        self,
        root: Path,
        *,
        files: DurableFiles,
        part_bytes: int,
        memory_bytes: int,
        spill: Path | None = None,
    ) -> None:
        """Take where to write, and where what does not fit into memory waits if not there."""
        self._root = root
        self._spill = spill or root
        self._files = files
        self._part_bytes = part_bytes
        self._memory_bytes = memory_bytes
        self._order = SnapshotOrder(root, files=files)
        self._hasher = ContentHasher()
        self._sorters: dict[str, LineSorter] = {}

    def write(
        self,
        content: SnapshotContent,
        *,
        at: datetime,
        reusable: Callable[[], Manifest | None] | None = None,
    ) -> Manifest:
        """Store the content and return the manifest once nothing can take the snapshot away.

        Nothing is written where the manifest that `reusable` returns has the same content.
        """
        moment = at.astimezone(UTC)
        with self._gathered(content) as content_hash:
            present = reusable() if reusable else None
            if present and present.content_hash == content_hash:
                return present
            earlier = None
            for digits in _ID_DIGITS:
                named = _Named(
                    snapshot_id(moment, content_hash, digits=digits), content_hash, moment
                )
                manifest, is_new = self._store(named, content)
                if manifest is not None and (is_new or self._order.is_last(manifest)):
                    return manifest
                # It was stored in the same second before other content was: store it once more.
                earlier = manifest or earlier
            if earlier is not None:
                return earlier
        raise CorruptSnapshotError(
            f"snapshot {snapshot_id(moment, content_hash)} exists with another content",
            hint="verify it with: lumos snapshot verify, then run again",
        )

    def write_folder(self, content: SnapshotContent, folder: Path, *, at: datetime) -> Manifest:
        """Make a folder of any name hold the content, in place of what it held before.

        Until the new manifest is there the folder holds the earlier snapshot; parts of neither
        are removed.

        Raises:
            StateError: the folder holds something that does not belong to a snapshot.
        """
        moment = at.astimezone(UTC)
        with self._gathered(content) as content_hash:
            if not folder.parent.is_dir():
                self._files.make_folder(folder.parent)
            with FolderClaim.create(folder, files=self._files):
                _refuse_strangers(folder)
                named = _Named(snapshot_id(moment, content_hash), content_hash, moment)
                try:
                    manifest = self._committed(folder, named, content=content)
                finally:
                    _remove_unnamed(folder, files=self._files)
        return manifest

    @contextmanager
    def _gathered(self, content: SnapshotContent) -> Iterator[str]:
        """Sort the content into what becomes parts, and yield its hash."""
        with ExitStack() as stack:
            self._sorters = {
                name: stack.enter_context(
                    LineSorter(self._spill, files=self._files, memory_bytes=self._memory_bytes)
                )
                for name in SECTIONS
            }
            for section, key, line in content.lines:
                self._hasher.add(section, line)
                self._sorters[section].add(bucket_rank(key), key, line=line)
            yield self._hasher.digest(content.final_header())

    def _store(self, named: _Named, content: SnapshotContent) -> tuple[Manifest | None, bool]:
        """Write the folder of that name; return its manifest, and whether it is new.

        There is no manifest where other content has the name.
        """
        folder = self._root / named.identity
        if not self._root.is_dir():
            self._files.make_folder(self._root)
            self._files.sync_folder(self._root.parent)
        with FolderClaim.create(folder, files=self._files):
            if (folder / MANIFEST_NAME).exists():
                return _manifest_with(named.content_hash, folder), False
            try:
                clear_folder(folder, files=self._files)  # what a writer that died left here
                return self._committed(folder, named, content=content, is_numbered=True), True
            except BaseException:
                discard_folder(folder, files=self._files)
                raise

    def _committed(
        self, folder: Path, named: _Named, *, content: SnapshotContent, is_numbered: bool = False
    ) -> Manifest:
        parts = tuple(self._write_parts(folder))
        manifest = Manifest(
            **dict(content.final_header()),
            id=named.identity,
            stored_at=named.stored_at,
            statistics=content.statistics(),
            content_hash=named.content_hash,
            buckets={name: self._buckets(name) for name in SECTIONS},
            parts=parts,
        )
        if not is_numbered:
            self._commit(folder, manifest)
            return manifest
        with self._order.next_number(named.identity) as number:
            manifest = manifest.numbered(number)
            self._commit(folder, manifest)
        return manifest

    def _commit(self, folder: Path, manifest: Manifest) -> None:
        self._files.sync_folder(folder)
        write_atomically(folder / MANIFEST_NAME, [manifest.render()], files=self._files)
        self._files.sync_folder(folder)
        self._files.sync_folder(folder.parent)

    def _buckets(self, section: str) -> int:
        return bucket_count(self._sorters[section].plain_bytes, part_bytes=self._part_bytes)

    def _write_parts(self, folder: Path) -> Iterator[PartEntry]:
        for section in SECTIONS:
            buckets = self._buckets(section)
            place = partial(place_of_rank, buckets=buckets)
            for _, group in groupby(self._sorters[section], key=lambda item: place(item.rank)):
                pairs = sorted((item.key, item.line) for item in group)
                if section in _UNIQUE:
                    _refuse_duplicates(section, (key for key, _ in pairs))
                part = encode_part(line for _, line in pairs)
                bucket = bucket_of(pairs[0][0], buckets)
                name = part_name(section, bucket, sha256=part.sha256)
                write_atomically(folder / name, [part.content], files=self._files)
                yield PartEntry(
                    name=name,
                    section=section,
                    bucket=bucket,
                    count=part.count,
                    bytes=len(part.content),
                    plain_bytes=part.plain_bytes,
                    sha256=part.sha256,
                )


def bucket_rank(key: bytes) -> int:
    """Return a rank under which every bucket is one run, whatever power of two their number is.

    A bucket is given by the lowest bits of the CRC; with the bits reversed those come first.
    """
    crc = zlib.crc32(key)
    return int.from_bytes(crc.to_bytes(4, "little").translate(_REVERSED_BITS), "big")


def buckets_by_rank(buckets: int) -> list[int]:
    """Return the numbers of that many buckets in the order in which ranks run through them."""
    bits = buckets.bit_length() - 1
    return [int(f"{place:0{bits}b}"[::-1], 2) if bits else 0 for place in range(buckets)]


def place_of_rank(rank: int, buckets: int) -> int:
    """Return the place of a rank's bucket in `buckets_by_rank`."""
    return rank >> (_CRC_BITS + 1 - buckets.bit_length())


def clear_folder(folder: Path, *, files: DurableFiles) -> None:
    """Remove all files of a claimed folder but the claim, the manifest first."""
    entries = sorted(folder.iterdir(), key=lambda path: path.name != MANIFEST_NAME)
    for path in entries:
        if path.name != CLAIM_NAME:
            files.remove(path)


def discard_folder(folder: Path, *, files: DurableFiles) -> None:
    """Remove a claimed folder as far as possible; what is left is an orphan, collected later."""
    with suppress(OSError):
        clear_folder(folder, files=files)
        files.remove(folder / CLAIM_NAME)
        files.remove_folder(folder)


def _manifest_with(content_hash: str, folder: Path) -> Manifest | None:
    try:
        manifest = Manifest.parse(_manifest_bytes(folder), where=folder.name)
    except (CorruptSnapshotError, UnsupportedSnapshotVersionError):
        return None
    return manifest if manifest.content_hash == content_hash else None


def _manifest_bytes(folder: Path) -> bytes:
    return read_regular(folder / MANIFEST_NAME, most=LARGEST_MANIFEST_BYTES)


def _refuse_duplicates(section: str, keys: Iterable[bytes]) -> None:
    for earlier, later in pairwise(keys):
        if earlier == later:
            items, name = _UNIQUE[section]
            raise InvalidModelError(
                f"two {items} have the {name} {later.decode()}",
                hint=f"give each of the {items} of a snapshot a different {name}",
            )


def _refuse_strangers(folder: Path) -> None:
    """Keep a folder that holds other things from becoming a snapshot."""
    for path in sorted(folder.iterdir()):
        if not _belongs(path.name):
            raise StateError(
                f"{folder} holds {path.name}, which does not belong to a snapshot",
                hint="give an empty or new folder",
            )


def _remove_unnamed(folder: Path, *, files: DurableFiles) -> None:
    """Remove what the manifest does not name, and the folder where there is no manifest."""
    try:
        manifest = Manifest.parse(_manifest_bytes(folder), where=folder.name)
    except FileNotFoundError:
        discard_folder(folder, files=files)
        return
    except (CorruptSnapshotError, UnsupportedSnapshotVersionError):
        return  # what belongs to it is not known
    kept = {MANIFEST_NAME, CLAIM_NAME, *(part.name for part in manifest.parts)}
    with suppress(OSError):  # what is left is removed by the next writer
        for path in folder.iterdir():
            if path.name not in kept:
                files.remove(path)
        files.sync_folder(folder)


def _belongs(name: str) -> bool:
    own = (MANIFEST_NAME, CLAIM_NAME, SIGNATURE_NAME)
    return name in own or name.startswith(TEMP_PREFIX) or is_part_name(name)
