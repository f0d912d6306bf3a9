"""A document whose items wait on disk until all of it is known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO, Self

import orjson

from lumos.core.errors import InvalidModelError
from lumos.core.models import SNAPSHOT_SCHEMA_VERSION
from lumos.core.models.base import canonical_json
from lumos.core.models.migrations import (
    edge_key,
    listed_edges,
    require_readable,
)
from lumos.core.models.snapshot import CHECKSUMS, CONTENT_CHECKSUM
from lumos.core.store.snapshots.line_sorter import LineSorter
from lumos.core.store.snapshots.snapshot_files import DurableFiles, storing
from lumos.core.store.snapshots.snapshot_sections import MAP_SECTIONS, MODEL_OF
from lumos.core.strict_json import DuplicateKeyError
from lumos.feature.snapshot.documents.content_digest import ContentDigest
from lumos.feature.snapshot.documents.document_seal import changed
from lumos.feature.snapshot.documents.document_text import raw_line
from lumos.feature.snapshot.scratch import Scratch

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.feature.snapshot.documents.document_text import DocumentText, Piece

CHUNK_ITEMS = 1_500
STREAMED_STEPS = frozenset({0})
"""The migrations that reading item by item takes care of: the first made edges of lists."""
_GIVEN, _LISTED = b"0", b"1"


@dataclass(frozen=True, slots=True)
class SpooledChunk:
    """Some items that lie one after the other; they are read each time they are asked for."""

    file: BinaryIO
    offset: int

    def __iter__(self) -> Iterator[JsonValue]:
        self.file.seek(self.offset)
        lines = [line for _, line in zip(range(CHUNK_ITEMS), self.file, strict=False)]
        return (orjson.loads(line) for line in lines)


class DocumentSpool:
    """The head of a document, and its items section by section, as often as wanted."""

    def __init__(self) -> None:
        self.head: dict[str, JsonValue] = {}
        self.content_sha256 = ""
        self._stated: dict[str, JsonValue] = {}
        self._digest = ContentDigest()
        self._open = ExitStack()
        self._scratch = Scratch()
        self._open.callback(self._scratch.close)
        self._files: dict[str, BinaryIO] = {}
        self._counts: dict[str, int] = {}
        self._marks: dict[str, list[int]] = {}

    @classmethod
    def of(cls, text: DocumentText) -> Self:
        """Read a document to its end.

        Raises:
            InvalidModelError: it is not JSON, or no snapshot.
            UnsupportedSnapshotVersionError: a newer Lumos wrote it.
        """
        spool = cls()
        try:
            for piece in text.pieces():
                spool._add(piece)
            spool._flush()
            spool._add_entries_to_digest()
            version = require_readable(spool.head)
            spool._take_checksums()
            if version == 0 or "lineage_edges" not in spool.head:
                spool._lift_edges()
                spool._flush()
        except BaseException:
            spool.close()
            raise
        spool.head["snapshot_schema_version"] = SNAPSHOT_SCHEMA_VERSION
        return spool

    @property
    def has_checksum(self) -> bool:
        return bool(self._stated)

    def require_unchanged(self, where: str) -> None:
        """Compare the content with the checksum that the document states, if it states one.

        Raises:
            CorruptSnapshotError: it does not match, or is one of bytes that are no longer there.
        """
        if self._stated and self._stated.get(CONTENT_CHECKSUM) != self.content_sha256:
            raise changed(where, next(name for name in CHECKSUMS if name in self._stated))

    def is_list(self, section: str) -> bool:
        """Return whether a section, if it is there at all, is a list."""
        return isinstance(self.head.get(section, []), list)

    def count(self, section: str) -> int:
        return self._counts.get(section, 0)

    def items(self, section: str) -> Iterator[JsonValue]:
        """Yield the items of a section as the document has them."""
        for chunk in self.chunks(section):
            yield from chunk

    def chunks(self, section: str) -> Iterator[SpooledChunk]:
        """Yield the items of a section in pieces of `CHUNK_ITEMS`."""
        file = self._files.get(section)
        if file is not None:
            for offset in self._marks[section]:
                yield SpooledChunk(file, offset)

    def entries(self, section: str) -> Iterator[tuple[str, JsonValue]]:
        """Yield the entries of a map."""
        for item in self.items(section):
            if isinstance(item, dict):
                yield from item.items()

    def sorter(self) -> LineSorter:
        """Return what sorts lines beside the items."""
        return LineSorter(self._scratch.folder, files=DurableFiles())

    def close(self) -> None:
        """Let go of the files."""
        with suppress(OSError):  # what a full disk did not take is of no use any more
            self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _add(self, piece: Piece) -> None:
        if piece.line is not None:
            self._write(piece.key, piece.line)
            if piece.key in MAP_SECTIONS:
                self.head.setdefault(piece.key, {})
            else:
                self._digest.add(piece.key, canonical_json(piece.value))
        else:
            self.head[piece.key] = piece.value
            if piece.key in MODEL_OF and piece.value == []:
                self._digest.open(piece.key)

    def _take_checksums(self) -> None:
        self.content_sha256 = self._digest.result(self.head)
        self._stated = {name: self.head.pop(name) for name in CHECKSUMS if name in self.head}

    def _write(self, section: str, line: bytes) -> None:
        if section not in self._files:
            file = self._open.enter_context(DurableFiles().open_spill(self._scratch.folder))
            self._files[section] = file
            self._marks[section] = []
        file, count = self._files[section], self._counts.get(section, 0)
        if count % CHUNK_ITEMS == 0:
            self._marks[section].append(file.tell())
        with storing(self._scratch.folder):
            file.write(line + b"\n")
        self._counts[section] = count + 1

    def _flush(self) -> None:
        with storing(self._scratch.folder):
            for file in self._files.values():
                file.flush()

    def _add_entries_to_digest(self) -> None:
        """Refuse a map that has a key twice; entries are sorted on disk, not held."""
        for section in MAP_SECTIONS:
            with storing(self._scratch.folder), self.sorter() as sorter:
                for name, value in self.entries(section):
                    key = name.encode("utf-8", "surrogatepass")
                    sorter.add(0, key, line=canonical_json({name: value}))
                last = None
                for _, key, line in sorter:
                    if key == last:
                        error = DuplicateKeyError(key.decode("utf-8", "replace"))
                        raise InvalidModelError(f"{section}: {error}")
                    self._digest.add(section, line)
                    last = key

    def _lift_edges(self) -> None:
        """Add an edge for each neighbour that a dataset lists, unless that edge is there."""
        if not self.is_list("lineage_edges"):
            return  # refused by the model
        with storing(self._scratch.folder), self.sorter() as sorter:
            for edge in _objects(self.items("lineage_edges")):
                key = edge_key(edge.get("upstream_urn"), edge.get("downstream_urn"))
                sorter.add(0, key, line=_GIVEN)
            for dataset in _objects(self.items("datasets")):
                for upstream, downstream in listed_edges(dataset):
                    edge = {"upstream_urn": upstream, "downstream_urn": downstream}
                    key = edge_key(upstream, downstream)
                    sorter.add(0, key, line=_LISTED + raw_line(edge))
            last = None
            for _, key, line in sorter:
                if key != last and line != _GIVEN:
                    self._write("lineage_edges", line[1:])
                last = key
        self.head.setdefault("lineage_edges", [])


def _objects(items: Iterable[JsonValue]) -> Iterator[dict[str, JsonValue]]:
    return (item for item in items if isinstance(item, dict))
