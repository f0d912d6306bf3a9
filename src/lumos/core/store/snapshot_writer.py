"""Writing a snapshot: it appears whole, by its manifest, or not at all."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from lumos.core.errors import (
    CorruptSnapshotError,
    InvalidModelError,
    UnsupportedSnapshotVersionError,
)
from lumos.core.models import (
    Domain,
    GlossaryTerm,
    Group,
    Job,
    LineageEdge,
    LumosDataset,
    Snapshot,
    Tag,
    User,
)
from lumos.core.store.folder_claim import CLAIM_NAME, FolderClaim
from lumos.core.store.line_sorter import LineSorter
from lumos.core.store.manifest import (
    MANIFEST_NAME,
    ContentHasher,
    Manifest,
    PartEntry,
    SnapshotHeader,
    StatisticsCounter,
    snapshot_id,
)
from lumos.core.store.part_format import (
    KEY_OF,
    SECTIONS,
    bucket_count,
    bucket_of,
    dataset_line,
    encode_part,
    item_line,
    part_name,
)
from lumos.core.store.snapshot_files import DurableFiles, write_atomically

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.models.base import CanonicalModel

_ID_DIGITS = (8, 16, 64)
_REVERSED_BITS = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))
_CRC_BITS = 32


@dataclass(frozen=True, kw_only=True)
class SnapshotSections:
    """The content of a snapshot as streams; each is read once and never held as a whole."""

    datasets: Iterable[LumosDataset] = ()
    jobs: Iterable[Job] = ()
    lineage_edges: Iterable[LineageEdge] = ()
    glossary: Iterable[GlossaryTerm] = ()
    tags: Iterable[Tag] = ()
    domains: Iterable[Domain] = ()
    users: Iterable[User] = ()
    groups: Iterable[Group] = ()
    identity_map: Iterable[tuple[str, Mapping[str, str]]] = ()
    extensions: Iterable[tuple[str, JsonValue]] = ()

    @classmethod
    def of(cls, snapshot: Snapshot) -> SnapshotSections:
        return cls(
            datasets=snapshot.datasets,
            jobs=snapshot.jobs,
            lineage_edges=snapshot.lineage_edges,
            glossary=snapshot.glossary,
            tags=snapshot.tags,
            domains=snapshot.domains,
            users=snapshot.users,
            groups=snapshot.groups,
            identity_map=snapshot.identity_map.items(),
            extensions=snapshot.extensions.items(),
        )

    def models(self, section: str) -> Iterable[CanonicalModel]:
        """Return a section whose items are models other than datasets."""
        streams: dict[str, Iterable[CanonicalModel]] = {
            "jobs": self.jobs,
            "lineage_edges": self.lineage_edges,
            "glossary": self.glossary,
            "tags": self.tags,
            "domains": self.domains,
            "users": self.users,
            "groups": self.groups,
        }
        return streams[section]


class SnapshotWriter:
    """Gathers the sections of one snapshot and commits them as a folder.

    The protocol: every part under a temp name, fsync, rename; fsync of the folder; the manifest
    the same way, last; fsync of the folder and of its parent.
    """

    def __init__(
        self, root: Path, *, files: DurableFiles, part_bytes: int, memory_bytes: int
    ) -> None:
        self._root = root
        self._files = files
        self._part_bytes = part_bytes
        self._memory_bytes = memory_bytes
        self._hasher = ContentHasher()
        self._counter = StatisticsCounter()
        self._sorters: dict[str, LineSorter] = {}

    def write(
        self,
        header: SnapshotHeader,
        sections: SnapshotSections,
        *,
        at: datetime,
        reusable: Callable[[], Manifest | None] | None = None,
    ) -> Manifest:
        """Store the sections and return the manifest once nothing can take the snapshot away.

        Nothing is written where the manifest that `reusable` returns has the same content.
        """
        moment = at.astimezone(UTC)
        with ExitStack() as stack:
            self._sorters = {
                name: stack.enter_context(
                    LineSorter(self._root, files=self._files, memory_bytes=self._memory_bytes)
                )
                for name in SECTIONS
            }
            self._gather(sections)
            content_hash = self._hasher.digest(header)
            present = reusable() if reusable else None
            if present and present.content_hash == content_hash:
                return present
            for digits in _ID_DIGITS:
                identity = snapshot_id(moment, content_hash, digits=digits)
                manifest = self._store(
                    identity, header, content_hash=content_hash, stored_at=moment
                )
                if manifest is not None:
                    return manifest
        raise CorruptSnapshotError(
            f"snapshot {snapshot_id(moment, content_hash)} exists with another content",
            hint="verify it with: lumos snapshot verify, then run again",
        )

    def _gather(self, sections: SnapshotSections) -> None:
        for dataset in sections.datasets:
            self._counter.add_dataset(dataset)
            self._add("datasets", dataset.urn, line=dataset_line(dataset))
        for urn, ids in sections.identity_map:
            self._add_item("identity_map", {"urn": urn, "ids": dict(ids)})
        for name, value in sections.extensions:
            self._add_item("extensions", {"name": name, "value": value})
        for section in SECTIONS:
            if section not in {"datasets", "identity_map", "extensions"}:
                for model in sections.models(section):
                    tag = model.name if isinstance(model, Tag) else None
                    self._counter.add_item(section, tag=tag)
                    self._add_item(section, model.to_json())

    def _add_item(self, section: str, item: Mapping[str, JsonValue]) -> None:
        self._add(section, KEY_OF[section](item), line=item_line(item))

    def _add(self, section: str, key: str, *, line: bytes) -> None:
        name = key.encode()
        self._hasher.add(section, line)
        self._sorters[section].add(bucket_rank(name), name, line=line)

    def _store(
        self, identity: str, header: SnapshotHeader, *, content_hash: str, stored_at: datetime
    ) -> Manifest | None:
        """Write the folder of that name, or return None where other content has the name."""
        folder = self._root / identity
        if not self._root.is_dir():
            self._files.make_folder(self._root)
            self._files.sync_folder(self._root.parent)
        with FolderClaim.create(folder, files=self._files):
            if (folder / MANIFEST_NAME).exists():
                return _manifest_with(content_hash, folder)
            try:
                clear_folder(folder, files=self._files)  # what a writer that died left here
                parts = tuple(self._write_parts(folder))
                manifest = Manifest(
                    **dict(header),
                    id=identity,
                    stored_at=stored_at,
                    statistics=self._counter.result(),
                    content_hash=content_hash,
                    buckets={name: self._buckets(name) for name in SECTIONS},
                    parts=parts,
                )
                self._commit(folder, manifest)
            except BaseException:
                discard_folder(folder, files=self._files)
                raise
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
                if section == "datasets":
                    _refuse_duplicates(key for key, _ in pairs)
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
        manifest = Manifest.parse((folder / MANIFEST_NAME).read_bytes(), where=folder.name)
    except (CorruptSnapshotError, UnsupportedSnapshotVersionError):
        return None
    return manifest if manifest.content_hash == content_hash else None


def _refuse_duplicates(urns: Iterable[bytes]) -> None:
    for earlier, later in pairwise(urns):
        if earlier == later:
            raise InvalidModelError(
                f"two datasets have the URN {later.decode()}",
                hint="give each dataset of a snapshot a URN of its own",
            )
