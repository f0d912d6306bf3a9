"""The manifest of a stored snapshot: written last, it makes the snapshot exist."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Self

import orjson
from pydantic import Field, JsonValue, model_validator
from pydantic_core import PydanticCustomError

from lumos.core.errors import (
    CorruptSnapshotError,
    InvalidModelError,
    UnsupportedSnapshotVersionError,
)
from lumos.core.models import SNAPSHOT_SCHEMA_VERSION, LumosDataset, SnapshotStatistics
from lumos.core.models.base import CanonicalModel, Count, UtcDatetime, sha256_of
from lumos.core.store.snapshots.part_format import (
    MAX_BUCKETS,
    SECTIONS,
    bucket_of,
    is_part_name,
    part_name,
)
from lumos.core.strict_json import require_few_values

MANIFEST_NAME = "manifest.json"
SIGNATURE_SUFFIX = ".sig"
SIGNATURE_NAME = f"{MANIFEST_NAME}{SIGNATURE_SUFFIX}"
_PLAIN_VERSION, _NUMBERED_VERSION = 1, 2
"""A manifest with a number is of the newer version: an older Lumos asks for an upgrade."""
LARGEST_MANIFEST_BYTES = 64 * 1024 * 1024
"""Enough for 160,000 parts, which are 640 GB of metadata."""
_CHECKSUM = "manifest_sha256"
_ID = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{8,64}\Z")
_MODULUS = 1 << 256

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


def is_snapshot_id(text: str) -> bool:
    return _ID.match(text) is not None


def snapshot_id(at: datetime, content_hash: str, *, digits: int = 8) -> str:
    """Name a snapshot by its time, in UTC, and its content."""
    return f"{at:%Y%m%dT%H%M%SZ}-{content_hash[:digits]}"


class SnapshotHeader(CanonicalModel):
    """What a snapshot says of itself beside its sections."""

    snapshot_schema_version: int = Field(default=SNAPSHOT_SCHEMA_VERSION, ge=1)
    lumos_version: str
    export_timestamp: UtcDatetime
    source_platform: str
    complete: bool = True


class PartEntry(CanonicalModel):
    """One file of a snapshot."""

    name: str
    section: str
    bucket: Count
    count: Count
    bytes: Count
    plain_bytes: Count
    sha256: Sha256

    @model_validator(mode="after")
    def _name_follows_from_the_rest(self) -> Self:
        expected = part_name(self.section, self.bucket, sha256=self.sha256)
        if self.section not in SECTIONS or not is_part_name(self.name) or self.name != expected:
            raise PydanticCustomError("part_name", "a part is not named after its content")
        return self


class Manifest(SnapshotHeader):
    """All that must be known to read a snapshot and to trust it."""

    manifest_version: int = _PLAIN_VERSION
    id: str
    stored_at: UtcDatetime
    sequence: int | None = Field(
        default=None, ge=1, description="The place in the order of the store."
    )
    statistics: SnapshotStatistics
    content_hash: Sha256
    buckets: dict[str, Annotated[int, Field(ge=1, le=MAX_BUCKETS)]]
    parts: tuple[PartEntry, ...]

    @model_validator(mode="after")
    def _parts_fit_the_buckets(self) -> Self:
        if any(count & (count - 1) for count in self.buckets.values()):
            raise PydanticCustomError("buckets", "a bucket count is not a power of two")
        places = {(part.section, part.bucket) for part in self.parts}
        fits = all(part.bucket < self.buckets.get(part.section, 0) for part in self.parts)
        if len(places) != len(self.parts) or not fits:
            raise PydanticCustomError("buckets", "parts and bucket counts do not fit")
        return self

    def render(self) -> bytes:
        """Return the bytes of `manifest.json`, with a checksum over the rest of it."""
        document = self.model_dump(mode="json")
        if self.sequence is None:
            del document["sequence"]
        return _rendered(document)

    def numbered(self, sequence: int) -> Self:
        """Return the manifest with its place in the order of a store."""
        return self.model_copy(update={"sequence": sequence, "manifest_version": _NUMBERED_VERSION})

    @classmethod
    def parse(cls, content: bytes, where: str) -> Self:
        """Read a manifest, refusing any byte that `render` would not have written.

        Raises:
            CorruptSnapshotError: the content is not as it was written; `where` names it.
            UnsupportedSnapshotVersionError: a newer Lumos wrote it.
        """
        document = _checked(content, where)
        version = document.get("manifest_version")
        schema_version = document.get("snapshot_schema_version")
        is_known = version in (_PLAIN_VERSION, _NUMBERED_VERSION)
        if not is_known or not isinstance(schema_version, int):
            raise _newer(where, f"manifest version {version}")
        if schema_version > SNAPSHOT_SCHEMA_VERSION:
            raise _newer(where, f"schema version {schema_version}")
        try:
            return cls.from_json(document)
        except InvalidModelError as error:
            raise corrupt(where, MANIFEST_NAME, reason=error.message) from None

    def parts_of(self, section: str) -> dict[int, PartEntry]:
        """Return the section's parts by bucket; an empty bucket has none."""
        return {part.bucket: part for part in self.parts if part.section == section}


def _rendered(document: Mapping[str, JsonValue]) -> bytes:
    checksum = sha256_of(document)
    options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    return orjson.dumps({**document, _CHECKSUM: checksum}, option=options)


def _checked(content: bytes, where: str) -> dict[str, JsonValue]:
    try:
        require_few_values(content)
        document = orjson.loads(content)
    except ValueError:
        document = None
    if isinstance(document, dict) and _CHECKSUM in document:
        del document[_CHECKSUM]
        if _rendered(document) == content:
            return document
    raise corrupt(where, MANIFEST_NAME, reason="its checksum does not match")


def corrupt(snapshot: str, part: str, *, reason: str) -> CorruptSnapshotError:
    """Say which part of which snapshot is damaged, and what to do."""
    return CorruptSnapshotError(
        f"snapshot {snapshot} is damaged: {part}: {reason}",
        hint="restore the folder from a backup, or remove it and use another snapshot "
        "(lumos snapshot list)",
    )


def _newer(where: str, version: str) -> UnsupportedSnapshotVersionError:
    return UnsupportedSnapshotVersionError(
        f"snapshot {where} has {version}, which this Lumos does not read",
        hint="upgrade Lumos: pip install --upgrade lumos",
    )


class ContentHasher:
    """The hash of a snapshot's content.

    It depends on neither the time, the order of adding, nor the number of parts: the digests of
    lines are summed. Damage is found by the checksums of the parts, which are plain SHA-256.
    """

    def __init__(self) -> None:
        self._sums: dict[str, tuple[int, int]] = {}

    def add(self, section: str, line: bytes) -> None:
        count, total = self._sums.get(section, (0, 0))
        digest = int.from_bytes(hashlib.sha256(line).digest(), "big")
        self._sums[section] = (count + 1, (total + digest) % _MODULUS)

    def sums(self) -> dict[str, tuple[int, int]]:
        """Return what was added so far: for each section the count and the sum of digests."""
        return dict(self._sums)

    def add_sum(self, section: str, count: int, *, total: int) -> None:
        """Take over what another hasher was given of a section."""
        known, sofar = self._sums.get(section, (0, 0))
        if count:
            self._sums[section] = (known + count, (sofar + total) % _MODULUS)

    def digest(self, header: SnapshotHeader) -> str:
        sections = {name: [count, f"{total:064x}"] for name, (count, total) in self._sums.items()}
        return sha256_of(
            {
                "snapshot_schema_version": header.snapshot_schema_version,
                "source_platform": header.source_platform,
                "complete": header.complete,
                "sections": sections,
            }
        )


class StatisticsTally(CanonicalModel):
    """What was counted of some part of a snapshot, so that several can be put together."""

    counts: dict[str, Count] = Field(default_factory=dict)
    fields: Count = 0
    owners: tuple[tuple[str, str], ...] = ()
    tags: tuple[str, ...] = ()


class StatisticsCounter:
    """The statistics of a snapshot, counted while it streams by."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._fields = 0
        self._owners: set[tuple[str, str]] = set()
        self._tags: set[str] = set()

    def add_dataset(self, dataset: LumosDataset) -> None:
        self.add_item("datasets")
        self._fields += len(dataset.schema.fields)
        self._owners.update((owner.category, owner.name) for owner in dataset.ownership.owners)
        self._tags.update(dataset.tags)

    def add_dataset_json(self, dataset: Mapping[str, JsonValue]) -> None:
        """Count a dataset that is given as `to_json` writes it."""
        self.add_item("datasets")
        schema, ownership = dataset.get("schema"), dataset.get("ownership")
        if isinstance(schema, dict) and isinstance(fields := schema.get("fields"), list):
            self._fields += len(fields)
        if isinstance(ownership, dict) and isinstance(owners := ownership.get("owners"), list):
            for owner in owners:
                if isinstance(owner, dict):
                    category = "user" if owner.get("user") else "group"
                    self._owners.add((category, str(owner.get(category))))
        if isinstance(tags := dataset.get("tags"), list):
            self._tags.update(str(tag) for tag in tags)

    def add_item(self, section: str, *, tag: str | None = None) -> None:
        self._counts[section] = self._counts.get(section, 0) + 1
        if tag is not None:
            self._tags.add(tag)

    def tally(self) -> StatisticsTally:
        """Return what was counted so far."""
        return StatisticsTally(
            counts=dict(self._counts),
            fields=self._fields,
            owners=tuple(sorted(self._owners)),
            tags=tuple(sorted(self._tags)),
        )

    def add_tally(self, tally: StatisticsTally) -> None:
        """Take over what another counter was given."""
        for section, count in tally.counts.items():
            self._counts[section] = self._counts.get(section, 0) + count
        self._fields += tally.fields
        self._owners.update(tally.owners)
        self._tags.update(tally.tags)

    def result(self) -> SnapshotStatistics:
        counted = ("datasets", "jobs", "lineage_edges", "glossary", "domains", "users", "groups")
        return SnapshotStatistics(
            **{name: self._counts.get(name, 0) for name in counted},
            fields=self._fields,
            owners=len(self._owners),
            tags=len(self._tags),
        )


class SnapshotInfo(CanonicalModel):
    """One snapshot of the store, in short."""

    id: str
    sequence: int | None = Field(
        default=None,
        description="The place in the order of the store; absent from snapshots of Lumos 0.1.",
    )
    stored_at: UtcDatetime | None = None
    export_timestamp: UtcDatetime | None = None
    source_platform: str | None = None
    lumos_version: str | None = None
    complete: bool | None = None
    statistics: SnapshotStatistics = SnapshotStatistics()
    content_hash: str | None = None
    parts: Count = 0
    bytes: Count = 0
    plain_bytes: Count = 0
    problem: str | None = Field(default=None, description="Why it cannot be read; else absent.")

    @classmethod
    def of(cls, manifest: Manifest) -> Self:
        return cls(
            id=manifest.id,
            sequence=manifest.sequence,
            stored_at=manifest.stored_at,
            export_timestamp=manifest.export_timestamp,
            source_platform=manifest.source_platform,
            lumos_version=manifest.lumos_version,
            complete=manifest.complete,
            statistics=manifest.statistics,
            content_hash=manifest.content_hash,
            parts=len(manifest.parts),
            bytes=sum(part.bytes for part in manifest.parts),
            plain_bytes=sum(part.plain_bytes for part in manifest.parts),
        )


class VerifyReport(CanonicalModel):
    """What a check of every byte of a snapshot found."""

    id: str
    parts: Count = 0
    lines: Count = 0
    bytes: Count = 0
    content_hash: str | None = None
    content_sha256: str | None = Field(
        default=None, description="Of a document: what a signature of its content covers."
    )
    signed_by: str | None = Field(
        default=None, description="The fingerprint of the key, where there is a signature."
    )
    problems: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.problems


def lines_out_of_place(lines: list[bytes], keys: list[bytes], *, bucket: int, buckets: int) -> bool:
    """Return whether a part's lines are unsorted or belong to another bucket."""
    pairs = list(zip(keys, lines, strict=True))
    return pairs != sorted(pairs) or any(bucket_of(key, buckets) != bucket for key in keys)
