"""Writing a snapshot as one JSON document, streamed and sorted."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from lumos.core.models import Snapshot
from lumos.core.models.base import canonical_json
from lumos.core.store.snapshots.line_sorter import MEMORY_BYTES, LineSorter
from lumos.core.store.snapshots.part_format import SECTIONS, dataset_json_of, item_of, key_of_line
from lumos.core.store.snapshots.snapshot_files import (
    DurableFiles,
    FilesForOthers,
    storing,
    write_all,
    write_atomically,
)
from lumos.core.store.snapshots.snapshot_sections import MAP_SECTIONS
from lumos.feature.snapshot.documents.content_digest import ContentDigest
from lumos.feature.snapshot.documents.document_seal import COMPACT, PRETTY, DocumentLayout
from lumos.feature.snapshot.key_order import KeyOrder
from lumos.feature.snapshot.source import section_lines

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.feature.snapshot.source import SnapshotSource

_CHUNK = 1 << 20
# Without a list of edges a reader would take the neighbours that datasets name for edges.
_ALWAYS_WRITTEN = frozenset({"datasets", "lineage_edges"})


def export_document(
    source: SnapshotSource,
    target: Path,
    *,
    pretty: bool = True,
    files: DurableFiles | None = None,
    memory_bytes: int = MEMORY_BYTES,
) -> None:
    """Write the document to a file, which is replaced only when the new one is whole.

    Equal content gives equal bytes, whatever form the source has. A pretty document has its keys
    in the order of the models, names first; a compact one has them sorted, and one item on each
    line. The last entries are the checksums of the content and of all bytes before. The umask
    decides who can read the file.

    Raises:
        StorageFullError: the disk is full; an earlier file of that name is untouched.
        StateReadOnlyError: the file may not be written.
    """
    files = files or FilesForOthers()
    target = Path(os.path.realpath(target))  # a link is written through, not replaced
    chunks = document_chunks(
        source,
        target.parent,
        pretty=pretty,
        files=files,
        memory_bytes=memory_bytes,
    )
    with storing(target):
        if target.exists() and not stat.S_ISREG(target.stat().st_mode):
            _write_through(target, chunks, files=files)  # a pipe or device cannot be replaced
            return
        write_atomically(target, chunks, files=files)
        files.sync_folder(target.parent)


def document_chunks(
    source: SnapshotSource,
    spill_folder: Path,
    *,
    pretty: bool = True,
    files: DurableFiles | None = None,
    memory_bytes: int = MEMORY_BYTES,
) -> Iterator[bytes]:
    """Yield the document in pieces of about a megabyte; what must wait, waits in `spill_folder`."""
    buffer, digest = bytearray(), hashlib.sha256()
    layout = PRETTY if pretty else COMPACT
    sorter = _Sorter(spill_folder, files=files or DurableFiles(), memory_bytes=memory_bytes)
    for piece in _pieces(source, sorter, layout=layout):
        buffer += piece
        if len(buffer) >= _CHUNK:
            digest.update(buffer)
            yield bytes(buffer)
            buffer.clear()
    digest.update(buffer)
    yield bytes(buffer) + layout.seal(digest.hexdigest())


def _set_value(value: JsonValue, layout: DocumentLayout, *, depth: int) -> bytes:
    if layout is COMPACT:
        return canonical_json(value)
    for _ in range(depth):  # lists around it, which are cut off, make orjson indent that deep
        value = [value]
    return orjson.dumps(value, option=orjson.OPT_INDENT_2)[_within_lists(depth)]


@cache
def _within_lists(depth: int) -> slice:
    before = sum(len(b"[" + PRETTY.line(outer + 1)) for outer in range(depth))
    after = sum(len(PRETTY.line(outer) + b"]") for outer in range(depth))
    return slice(before, -after)


def _set_item(section: str, document: bytes, layout: DocumentLayout) -> bytes:
    """Set an item that is canonical JSON already, in which free JSON is sorted."""
    if section in MAP_SECTIONS:
        ((key, value),) = orjson.loads(document).items()
        return canonical_json(key) + layout.colon + _set_value(value, layout, depth=2)
    if layout is COMPACT:
        return document
    item = orjson.loads(document)
    if order := KeyOrder.of(Snapshot).under(section):
        order.arrange(item)
    return _set_value(item, layout, depth=2)


class _Sorter:
    """Brings the items of a section, which lie in buckets, into the order of the document."""

    def __init__(self, folder: Path, *, files: DurableFiles, memory_bytes: int) -> None:
        self._folder = folder
        self._files = files
        self._memory_bytes = memory_bytes

    def items(self, source: SnapshotSource, section: str) -> Iterator[bytes]:
        """Yield the canonical JSON of the items of a section, an entry of a map as an object.

        Raises:
            CorruptSnapshotError: a part is damaged.
        """
        lines = section_lines(source, section)
        if source.bucket_count(section) > 1:
            lines = self._in_order(lines, section)
        return (_item(section, line) for line in lines)

    def _in_order(self, lines: Iterator[bytes], section: str) -> Iterator[bytes]:
        with LineSorter(self._folder, files=self._files, memory_bytes=self._memory_bytes) as sorter:
            for line in lines:
                sorter.add(0, key_of_line(section, line), line=line)
            for sorted_item in sorter:
                yield sorted_item.line


def _pieces(source: SnapshotSource, sorter: _Sorter, *, layout: DocumentLayout) -> Iterator[bytes]:
    yield b"{"
    head, digest = _head(source), ContentDigest()
    for name, value in head.items():
        yield (
            layout.line(1)
            + canonical_json(name)
            + layout.colon
            + _set_value(value, layout, depth=1)
            + b","
        )
    separator = b""
    for name in SECTIONS:
        items = sorter.items(source, name)
        first = next(items, None)
        if first is None and name not in _ALWAYS_WRITTEN:
            continue
        digest.open(name)
        brackets = (b"{", b"}") if name in MAP_SECTIONS else (b"[", b"]")
        yield separator + layout.line(1) + canonical_json(name) + layout.colon + brackets[0]
        separator, before_item = b",", layout.line(2)
        for item in chain(() if first is None else (first,), items):
            digest.add(name, item)
            yield before_item + _set_item(name, item, layout)
            before_item = b"," + layout.line(2)
        yield (b"" if first is None else layout.line(1)) + brackets[1]
    yield layout.content_checksum(digest.result(head))
    yield layout.before_seal()


def _item(section: str, line: bytes) -> bytes:
    if section == "datasets":
        return dataset_json_of(line)
    if section not in MAP_SECTIONS:
        return line
    key, value = (item_of(line)[name] for name in MAP_SECTIONS[section])
    return canonical_json({str(key): value})


def _head(source: SnapshotSource) -> dict[str, JsonValue]:
    fields = ("snapshot_schema_version", "lumos_version", "export_timestamp", "source_platform")
    header = source.header.model_dump(mode="json", include={*fields, "complete"})
    statistics: JsonValue = source.statistics.model_dump(mode="json")
    return {**{name: header[name] for name in (*fields, "complete")}, "statistics": statistics}


def _write_through(target: Path, chunks: Iterator[bytes], *, files: DurableFiles) -> None:
    descriptor = os.open(target, os.O_WRONLY)
    try:
        for chunk in chunks:
            write_all(descriptor, chunk, files=files)
    finally:
        os.close(descriptor)
