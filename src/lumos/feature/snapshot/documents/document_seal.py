"""The checksums that a one-document snapshot ends with, and how a document is read by them.

The last entry, `document_sha256`, is the SHA-256 of all bytes before it. Where it matches, Lumos
wrote these bytes, in one of two layouts, so that items are found without parsing: indented for
people, or one item on each line. No JSON text holds a raw line end, so a line end with its
indentation cannot be anything but layout. The entry before it, `content_sha256`, still matches
after a JSON tool has rewritten the document.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from lumos.core.errors import CorruptSnapshotError
from lumos.core.models.snapshot import CONTENT_CHECKSUM, DOCUMENT_CHECKSUM
from lumos.core.store.snapshots.part_format import SECTIONS
from lumos.core.store.snapshots.snapshot_sections import MAP_SECTIONS
from lumos.core.strict_json import LARGEST_ITEM_BYTES, parsed_unique

if TYPE_CHECKING:
    from pydantic import JsonValue

_BLOCK = 1 << 20
_SEAL_LINE = re.compile(rb'(,\n {0,2}"document_sha256": ?")([0-9a-f]{64})"\n}\n\Z')
_HEX_DIGEST = re.compile(rb'[0-9a-f]{64}"')
_TAIL_BYTES = 512
_DIGEST_BYTES = 64 + len(b'"\n}\n')


@dataclass(frozen=True, slots=True)
class DocumentLayout:
    """How a document is set."""

    indent: bytes
    colon: bytes

    def line(self, depth: int) -> bytes:
        return b"\n" + self.indent * depth

    def content_checksum(self, digest: str) -> bytes:
        """Return the entry with the checksum of the content."""
        return self.before_content_checksum() + digest.encode() + b'"'

    def before_content_checksum(self) -> bytes:
        return self._before_value(CONTENT_CHECKSUM)

    def seal(self, digest: str) -> bytes:
        """Return the end of a document, which follows the bytes that `digest` is made of."""
        return digest.encode() + b'"\n}\n'

    def before_seal(self) -> bytes:
        return self._before_value(DOCUMENT_CHECKSUM)

    def _before_value(self, name: str) -> bytes:
        return b"," + self.line(1) + b'"' + name.encode() + b'"' + self.colon + b'"'


PRETTY = DocumentLayout(b"  ", b": ")
COMPACT = DocumentLayout(b"", b":")


class Seal(NamedTuple):
    """The checksum that a document states, over so many bytes from its beginning."""

    layout: DocumentLayout
    digest: str
    covered: int


def seal_of(stream: BinaryIO) -> Seal | None:
    """Return the seal that a document ends with; None where its last lines are other ones."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - _TAIL_BYTES))
    tail = stream.read(_TAIL_BYTES)
    stream.seek(0)
    found = _SEAL_LINE.search(tail)
    layouts = (PRETTY, COMPACT) if found else ()
    for layout in layouts:
        if found and layout.before_seal() == found[1]:
            return Seal(layout, found[2].decode(), size - _DIGEST_BYTES)
    return None


def matches(stream: BinaryIO, seal: Seal) -> bool:
    """Return whether all bytes are those that the seal was made for; rewind the stream."""
    digest, left = hashlib.sha256(), seal.covered
    stream.seek(0)
    while left and (block := stream.read(min(_BLOCK, left))):
        digest.update(block)
        left -= len(block)
    stream.seek(0)
    return not left and digest.hexdigest() == seal.digest


def damaged(where: str, reason: str) -> CorruptSnapshotError:
    """Say that a document is not what Lumos wrote, and what to do."""
    return CorruptSnapshotError(
        f"snapshot {where} is damaged: {reason}", hint="take it from a backup"
    )


def changed(where: str, checksum: str) -> CorruptSnapshotError:
    """Say that the content of a document is not what Lumos wrote, and what to do."""
    return CorruptSnapshotError(
        f"snapshot {where} was edited or damaged: its {checksum} does not match",
        hint="if it was edited on purpose, add --edited; otherwise take it from a backup",
    )


class SealedDocument:
    """A document whose seal holds, read section by section in the order of its bytes."""

    def __init__(self, stream: BinaryIO, seal: Seal, *, where: str) -> None:
        """Read the head of a document from its beginning."""
        self._stream = stream
        self._layout = seal.layout
        self._where = where
        self._buffer = b""
        self._next: str | None = None
        self.sections: list[str] = []
        """The sections that were read so far, also empty ones."""
        self.head = self._read_head()

    def items(self) -> Iterator[tuple[str, bytes]]:
        """Yield each item as its section and its JSON; an entry of a map as an object of one key.

        Raises:
            CorruptSnapshotError: the document is laid out otherwise than Lumos does.
        """
        while self._next is not None:
            section = self._next
            self.sections.append(section)
            if self._take(b"]" if section not in MAP_SECTIONS else b"}"):
                self._next = self._read_name()
                continue
            for text in self._texts(section):
                yield section, text
            self._next = self._read_name()

    def _read_head(self) -> dict[str, JsonValue]:
        layout = self._layout
        mark = b"," + layout.line(1) + b'"datasets"' + layout.colon + b"["
        while (end := self._buffer.find(mark)) < 0:
            self._fill()
        try:
            head = parsed_unique(self._buffer[:end] + b"}")
        except ValueError:
            head = None
        if not isinstance(head, dict):
            raise self._strange()
        self._buffer = self._buffer[end + len(mark) :]
        self._next = "datasets"
        return head

    def _read_name(self) -> str | None:
        """Return the section that is opened next, or None before the seal."""
        layout = self._layout
        while len(self._buffer) < _TAIL_BYTES and self._fill(at_end=True):
            pass
        if self._take(layout.before_content_checksum()):
            found = _HEX_DIGEST.match(self._buffer)
            self._buffer = self._buffer[found.end() :] if found else b""
        if self._buffer.startswith(layout.before_seal()):
            return None
        for section in SECTIONS:
            bracket = b"{" if section in MAP_SECTIONS else b"["
            name = b"," + layout.line(1) + b'"' + section.encode() + b'"' + layout.colon + bracket
            if self._take(name):
                return section
        raise self._strange()

    def _texts(self, section: str) -> Iterator[bytes]:
        is_map = section in MAP_SECTIONS
        first, last = (b'"', b"}") if is_map else (b"{", b"]")
        close = self._layout.line(1) + last
        between = b"," + self._layout.line(2) + first
        if not self._take(self._layout.line(2) + first):
            raise self._strange()
        while True:
            end = self._buffer.find(close)
            whole = end >= 0
            if not whole:
                end = self._buffer.rfind(between)
            if end >= 0:
                for piece in self._buffer[:end].split(between):
                    self._refuse_long(len(piece))
                    yield b'{"' + piece + b"}" if is_map else first + piece
                self._buffer = self._buffer[end + len(close if whole else between) :]
            if whole:
                return
            self._fill()

    def _take(self, text: bytes) -> bool:
        while len(self._buffer) < len(text) and self._fill(at_end=True):
            pass
        if not self._buffer.startswith(text):
            return False
        self._buffer = self._buffer[len(text) :]
        return True

    def _fill(self, *, at_end: bool = False) -> bool:
        """Read on, twice as much each time, so that a long item is not searched again and again."""
        self._refuse_long(len(self._buffer))
        block = self._stream.read(max(_BLOCK, len(self._buffer)))
        if not block and not at_end:
            raise self._strange()
        self._buffer += block
        return bool(block)

    def _refuse_long(self, length: int) -> None:
        if length > LARGEST_ITEM_BYTES:
            raise damaged(self._where, f"it has an item of more than {LARGEST_ITEM_BYTES:,} bytes")

    def _strange(self) -> CorruptSnapshotError:
        return damaged(self._where, "it is not laid out as Lumos writes it")
