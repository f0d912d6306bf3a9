"""Buckets of two snapshots that hold the same keys, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lumos.core.store.snapshots.part_format import lines_of, plain_of, split_bucket
from lumos.core.store.snapshots.snapshot_parts import StoredPart
from lumos.feature.snapshot.source import HeldBucket, LoadedSource

if TYPE_CHECKING:
    from lumos.core.models import LumosDataset
    from lumos.feature.snapshot.source import Bucket, SnapshotSource


@dataclass(frozen=True, slots=True)
class BucketPair:
    """Buckets of both sides that cover the same keys; the side with fewer buckets has one.

    An empty bucket is None. The buckets of the side that has several are in the order of their
    numbers, `first` being the lowest, and there are `buckets` of them in the whole snapshot.
    """

    section: str
    first: int
    buckets: int
    old: tuple[Bucket | None, ...]
    new: tuple[Bucket | None, ...]

    def lines(self) -> Iterator[tuple[list[bytes], list[bytes]]]:
        """Yield the lines of both sides, at most one bucket of each at a time.

        Raises:
            CorruptSnapshotError: a part is damaged.
        """
        for old, new in self.plain():
            yield lines_of(old), lines_of(new)

    def plain(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield the lines of both sides as one text each, at most one bucket at a time.

        Raises:
            CorruptSnapshotError: a part is damaged.
        """
        if len(self.old) == len(self.new):
            for old, new in zip(self.old, self.new, strict=True):
                yield _plain(old), _plain(new)
            return
        swapped = len(self.old) > len(self.new)
        (coarse,), fine = (self.new, self.old) if swapped else (self.old, self.new)
        spread = split_bucket(lines_of(_plain(coarse)), self.section, buckets=self.buckets)
        step = self.buckets // len(fine)
        for place, bucket in enumerate(fine):
            part = plain_of(spread.get(self.first + place * step, []))
            whole = _plain(bucket)
            yield (whole, part) if swapped else (part, whole)

    def differing(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield the texts of both sides; stretches of lines that both have may be left out.

        Raises:
            CorruptSnapshotError: a part is damaged.
        """
        match self.old, self.new:
            case [[StoredPart() as old], [StoredPart() as new]]:
                yield old.differing_plain(new)
            case _:
                yield from self.plain()

    def held(self) -> tuple[Sequence[LumosDataset], Sequence[LumosDataset]] | None:
        """Return the datasets of both sides, sorted by URN, where both are in memory already."""
        sides = [[_held_datasets(bucket) for bucket in side] for side in (self.old, self.new)]
        match sides:
            case [[old], [new]] if old is not None and new is not None:
                return old, new
            case _:
                return None


def aligned_buckets(
    old: SnapshotSource, new: SnapshotSource, *, section: str
) -> Iterator[BucketPair]:
    """Yield the pairs of buckets that may differ, however many each side has.

    Buckets that are known to be equal, by their digests, are left out.
    """
    counts = old.bucket_count(section), new.bucket_count(section)
    for first in range(min(counts)):
        if counts[0] == counts[1]:
            digest = old.bucket_digest(first, section=section)
            if digest is not None and digest == new.bucket_digest(first, section=section):
                continue
        sides = [
            tuple(side.part(bucket, section=section) for bucket in range(first, count, min(counts)))
            for side, count in zip((old, new), counts, strict=True)
        ]
        yield BucketPair(section, first, max(counts), *sides)


def _plain(bucket: Bucket | None) -> bytes:
    if isinstance(bucket, StoredPart):
        return bucket.plain()
    return plain_of(bucket.lines()) if bucket else b""


def _held_datasets(bucket: Bucket | None) -> Sequence[LumosDataset] | None:
    if isinstance(bucket, HeldBucket) and isinstance(bucket.source, LoadedSource):
        return bucket.source.load().datasets
    return None
