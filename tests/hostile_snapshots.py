"""Snapshot folders whose manifest and checksums are right and whose parts are bombs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

import zstandard

from lumos.core.models import Snapshot
from lumos.core.store.snapshots.manifest import MANIFEST_NAME, Manifest, PartEntry
from lumos.core.store.snapshots.part_format import bucket_of, part_name
from lumos.core.store.snapshots.snapshot_store import SnapshotStore
from snapshot_samples import AT, sample_snapshot

MEGABYTE = 1 << 20


def written(folder: Path, snapshot: Snapshot | None = None) -> Path:
    """Write a good snapshot and return its folder."""
    store = SnapshotStore(folder)
    return folder / store.write(snapshot or sample_snapshot(1), at=AT).id


def packed(pieces: Iterable[bytes], *, window_log: int = 21) -> bytes:
    """Pack pieces into one frame that does not state its size."""
    parameters = zstandard.ZstdCompressionParameters(
        compression_level=1, window_log=window_log, write_content_size=False
    )
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return b"".join([packer.compress(piece) for piece in pieces]) + packer.flush()


def with_part(
    folder: Path, content: bytes, *, plain_bytes: int, count: int, section: str = "datasets"
) -> str:
    """Replace the only part of a section, and say in the manifest what is given."""
    path = folder / MANIFEST_NAME
    manifest = Manifest.parse(path.read_bytes(), where="test")
    (old,) = manifest.parts_of(section).values()
    digest = hashlib.sha256(content).hexdigest()
    entry = PartEntry(
        name=part_name(section, old.bucket, sha256=digest),
        section=section,
        bucket=old.bucket,
        count=count,
        bytes=len(content),
        plain_bytes=plain_bytes,
        sha256=digest,
    )
    (folder / entry.name).write_bytes(content)
    parts = tuple(entry if part == old else part for part in manifest.parts)
    path.write_bytes(Manifest.model_validate({**dict(manifest), "parts": parts}).render())
    return entry.name


def with_lines(folder: Path, lines: list[bytes], *, section: str = "datasets") -> str:
    """Replace the only part of a section by these lines."""
    plain = b"".join(line + b"\n" for line in lines)
    content = packed([plain])
    return with_part(folder, content, plain_bytes=len(plain), count=len(lines), section=section)


def line_bomb(folder: Path, megabytes: int) -> str:
    """Put one line of so many megabytes into the part of datasets."""
    head, tail = b'{"urn":"', b'"}\n'
    block = b"x" * MEGABYTE
    content = packed([head, *[block] * megabytes, tail])
    plain_bytes = len(head) + megabytes * MEGABYTE + len(tail)
    return with_part(folder, content, plain_bytes=plain_bytes, count=1)


def lines_bomb(folder: Path, megabytes: int) -> str:
    """Put millions of tiny lines into the part of datasets."""
    block = b"{}\n" * (MEGABYTE // 3)
    content = packed([block] * megabytes)
    count = megabytes * (MEGABYTE // 3)
    return with_part(folder, content, plain_bytes=count * 3, count=count)


def same_bucket(key: bytes, *, buckets: int) -> int:
    return bucket_of(key, buckets)
