"""One part of a stored snapshot, told so completely that any process can read and check it."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import orjson
from typing_extensions import override

from lumos.core.errors import InvalidModelError, StateError
from lumos.core.store.manifest import PartEntry, corrupt, lines_out_of_place
from lumos.core.store.part_format import differing_plain, key_of_line, lines_of, unpacked_part
from lumos.core.store.snapshot_files import reading


class UnseenFolderError(StateError):
    """A snapshot's folder is not to be seen from where its parts are read."""

    code = "LUM-312"


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
            UnseenFolderError: the whole folder is missing.
            StateError: it cannot be read.
        """
        lines = lines_of(self.plain())
        if len(lines) != self.entry.count:
            raise corrupt(self.snapshot, str(self), reason="it holds another number of lines")
        return lines

    def plain(self) -> bytes:
        """Return the lines as one text, each with its end, once the checksum has matched.

        Raises:
            CorruptSnapshotError: the part is damaged or missing.
            UnseenFolderError: the whole folder is missing.
            StateError: it cannot be read.
        """
        try:
            return unpacked_part(self.content(), self.entry.plain_bytes)
        except ValueError:
            raise corrupt(self.snapshot, str(self), reason="it cannot be unpacked") from None

    def differing_plain(self, other: StoredPart) -> tuple[bytes, bytes]:
        """Return the texts of this and another part without stretches that both have packed alike.

        Raises:
            CorruptSnapshotError: a part is damaged or missing.
            UnseenFolderError: the whole folder is missing.
            StateError: it cannot be read.
        """
        sides = [(part.content(), part.entry.plain_bytes) for part in (self, other)]
        try:
            return differing_plain(*sides)
        except ValueError:  # whichever of them is damaged says so
            return self.plain(), other.plain()

    def content(self) -> bytes:
        """Return the packed bytes, once the checksum has matched.

        Raises:
            CorruptSnapshotError: the part is damaged or missing.
            UnseenFolderError: the whole folder is missing.
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

    def encode(self) -> bytes:
        """Return the part as bytes that `decode` understands, in whatever process."""
        folder = os.fsencode(self.folder.absolute()).decode("latin-1")
        entry = self.entry.model_dump(mode="json")
        return orjson.dumps([self.snapshot, folder, self.buckets, entry])

    @classmethod
    def decode(cls, content: bytes) -> Self:
        """Return the part that `encode` wrote down."""
        snapshot, folder, buckets, entry = orjson.loads(content)
        place = Path(os.fsdecode(folder.encode("latin-1")))
        return cls(snapshot, place, buckets, PartEntry.from_json(entry))

    @override
    def __str__(self) -> str:
        return self.entry.name

    def _read(self) -> bytes:
        path = self.folder / self.entry.name
        with reading(path):
            try:
                return path.read_bytes()
            except FileNotFoundError:
                if not self.folder.is_dir():
                    raise self._unseen() from None
                raise corrupt(
                    self.snapshot, self.entry.name, reason="the file is missing"
                ) from None

    def _unseen(self) -> UnseenFolderError:
        return UnseenFolderError(
            f"the folder {self.folder} of snapshot {self.snapshot} is not there",
            hint="on a cluster every worker has to see it under this path; "
            "--engine local reads it here",
        )
