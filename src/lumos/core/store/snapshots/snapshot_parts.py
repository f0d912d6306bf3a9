"""One part of a stored snapshot, with all that is needed to read and check it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from typing_extensions import override

from lumos.core.errors import CorruptSnapshotError, InvalidModelError, SnapshotNotFoundError
from lumos.core.regular_files import open_regular
from lumos.core.store.snapshots.manifest import PartEntry, corrupt, lines_out_of_place
from lumos.core.store.snapshots.part_format import (
    LARGEST_PART_BYTES,
    LARGEST_RATIO,
    MOST_LINES,
    RATIO_FLOOR_BYTES,
    differing_plain,
    key_of_line,
    unpacked_part,
)
from lumos.core.store.snapshots.snapshot_files import reading
from lumos.core.strict_json import LARGEST_ITEM_BYTES


@dataclass(frozen=True, slots=True)
class StoredPart:
    """A part, where it lies, and what its snapshot says of it."""

    snapshot: str
    folder: Path
    buckets: int
    entry: PartEntry

    def lines(self) -> list[bytes]:
        """Return the lines, once the checksum has matched.

        Raises:
            CorruptSnapshotError: the part is damaged or missing.
            SnapshotNotFoundError: the whole folder is missing.
            StateError: it cannot be read.
        """
        count = self.entry.count
        *lines, rest = self.plain().split(b"\n", count)
        if len(lines) != count or rest:
            raise corrupt(self.snapshot, str(self), reason="it holds another number of lines")
        return lines

    def plain(self) -> bytes:
        """Return the lines as one text, each with its end, once the checksum has matched.

        Raises:
            CorruptSnapshotError: the part is damaged or missing.
            SnapshotNotFoundError: the whole folder is missing.
            StateError: it cannot be read.
        """
        try:
            plain = unpacked_part(self.content(), self.entry.plain_bytes)
        except ValueError:
            raise corrupt(self.snapshot, str(self), reason="it cannot be unpacked") from None
        self._refuse_long_lines(plain)
        return plain

    def differing_plain(self, other: StoredPart) -> tuple[bytes, bytes]:
        """Return the texts of this and another part without stretches that both have packed alike.

        Raises:
            CorruptSnapshotError: a part is damaged or missing.
            SnapshotNotFoundError: the whole folder is missing.
            StateError: it cannot be read.
        """
        sides = [(part.content(), part.entry.plain_bytes) for part in (self, other)]
        try:
            plain, other_plain = differing_plain(*sides)
        except ValueError:  # whichever of them is damaged says so
            return self.plain(), other.plain()
        self._refuse_long_lines(plain)
        other._refuse_long_lines(other_plain)
        return plain, other_plain

    def content(self) -> bytes:
        """Return the packed bytes, once the checksum has matched.

        Raises:
            CorruptSnapshotError: the part is damaged or missing.
            SnapshotNotFoundError: the whole folder is missing.
            StateError: it cannot be read.
        """
        content, entry = self._read(), self.entry
        if len(content) != entry.bytes or hashlib.sha256(content).hexdigest() != entry.sha256:
            raise corrupt(self.snapshot, entry.name, reason="its checksum does not match")
        return content

    def require_order(self, lines: list[bytes]) -> None:
        """Check that the lines are sorted and belong into this part.

        Raises:
            CorruptSnapshotError: they are not.
        """
        section, bucket = self.entry.section, self.entry.bucket
        try:
            keys = [key_of_line(section, line) for line in lines]
        except InvalidModelError as error:
            raise corrupt(self.snapshot, self.entry.name, reason=error.message) from None
        if lines_out_of_place(lines, keys, bucket=bucket, buckets=self.buckets):
            raise corrupt(self.snapshot, self.entry.name, reason="its lines are out of order")

    @override
    def __str__(self) -> str:
        return self.entry.name

    def _read(self) -> bytes:
        self._refuse_excess()
        path = self.folder / self.entry.name
        with reading(path):
            try:
                with open_regular(path) as stream:
                    return stream.read(self.entry.bytes + 1)
            except FileNotFoundError:
                if not self.folder.is_dir():
                    raise SnapshotNotFoundError(
                        f"the folder {self.folder} of snapshot {self.snapshot} is not there",
                        hint="it was there a moment ago: was it pruned or moved?",
                    ) from None
                raise corrupt(
                    self.snapshot, self.entry.name, reason="the file is missing"
                ) from None

    def _refuse_excess(self) -> None:
        """Refuse what the manifest states, before a byte of the part is read."""
        entry = self.entry
        if max(entry.plain_bytes, entry.bytes) > LARGEST_PART_BYTES:
            raise self._too_large(f"more than {LARGEST_PART_BYTES:,} bytes")
        if entry.count > MOST_LINES:
            raise self._too_large(f"more than {MOST_LINES:,} lines")
        packed = max(entry.bytes, RATIO_FLOOR_BYTES // LARGEST_RATIO)
        if entry.plain_bytes > packed * LARGEST_RATIO:
            raise self._too_large(f"more than {LARGEST_RATIO:,} times its packed size")

    def _refuse_long_lines(self, plain: bytes) -> None:
        if len(plain) <= RATIO_FLOOR_BYTES:
            return
        if plain.count(b"\n") > MOST_LINES:
            raise self._too_large(f"more than {MOST_LINES:,} lines")
        if len(plain) > LARGEST_ITEM_BYTES:
            longest = max(map(len, plain.split(b"\n")))
            if longest > LARGEST_ITEM_BYTES:
                raise self._too_large(f"a line of more than {LARGEST_ITEM_BYTES:,} bytes")

    def _too_large(self, what: str) -> CorruptSnapshotError:
        return CorruptSnapshotError(
            f"snapshot {self.snapshot} cannot be read: {self}: it unpacks to {what}, "
            "which no Lumos writes",
            hint="take the snapshot from a source that you trust",
        )
