"""Writing a snapshot as one JSON document, streamed and sorted."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from lumos.core.models import Snapshot
from lumos.core.models.base import canonical_json
from lumos.core.store.line_sorter import MEMORY_BYTES, LineSorter
from lumos.core.store.part_format import SECTIONS, dataset_json_of, item_of, key_of_line
from lumos.core.store.snapshot_files import DurableFiles, storing, write_all, write_atomically
from lumos.feature.snapshot.key_order import KeyOrder

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.feature.snapshot.source import SnapshotSource

_CHUNK = 1 << 20
# Without a list of edges a reader would take the neighbours that datasets name for edges.
_ALWAYS_WRITTEN = frozenset({"datasets", "lineage_edges"})
_MAPS = {"identity_map": ("urn", "ids"), "extensions": ("name", "value")}


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
    in the order of the models, names first; a compact one has them sorted.

    Raises:
        StorageFullError: the disk is full; an earlier file of that name is untouched.
        StateReadOnlyError: the file may not be written.
    """
    files = files or DurableFiles()
    target = Path(os.path.realpath(target))  # a link is written through, not replaced
    chunks = document_chunks(
        source, target.parent, pretty=pretty, files=files, memory_bytes=memory_bytes
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
    buffer = bytearray()
    sorter = _Sorting(spill_folder, files=files or DurableFiles(), memory_bytes=memory_bytes)
    for piece in _pieces(source, sorter, layout=_PRETTY if pretty else _COMPACT):
        buffer += piece
        if len(buffer) >= _CHUNK:
            yield bytes(buffer)
            buffer.clear()
    yield bytes(buffer)


class _Layout:
    """How the document is set: indented for people, or without any space."""

    def __init__(self, *, pretty: bool) -> None:
        self._pretty = pretty
        self.colon = b": " if pretty else b":"

    def line(self, depth: int) -> bytes:
        return b"\n" + b"  " * depth if self._pretty else b""

    def value(self, value: JsonValue, depth: int) -> bytes:
        if not self._pretty:
            return canonical_json(value)
        text = orjson.dumps(value, option=orjson.OPT_INDENT_2)
        return text.replace(b"\n", self.line(depth))  # JSON strings hold no raw line ends

    def item(self, section: str, document: bytes) -> bytes:
        """Set an item that is canonical JSON already, in which free JSON is sorted."""
        if not self._pretty:
            return document
        order = KeyOrder.of(Snapshot).under(section)
        item = orjson.loads(document)
        return self.value(order.ordered(item) if order else item, 2)


_PRETTY = _Layout(pretty=True)
_COMPACT = _Layout(pretty=False)


class _Sorting:
    """Brings a section's lines from the order of buckets into one order."""

    def __init__(self, folder: Path, *, files: DurableFiles, memory_bytes: int) -> None:
        self._folder = folder
        self._files = files
        self._memory_bytes = memory_bytes

    def lines(self, source: SnapshotSource, section: str) -> Iterator[bytes]:
        count = source.bucket_count(section)
        if count == 1:
            yield from source.bucket_lines(0, section=section)
            return
        with LineSorter(self._folder, files=self._files, memory_bytes=self._memory_bytes) as sorter:
            for bucket in range(count):
                for line in source.bucket_lines(bucket, section=section):
                    sorter.add(0, key_of_line(section, line), line=line)
            for item in sorter:
                yield item.line


def _pieces(source: SnapshotSource, sorting: _Sorting, *, layout: _Layout) -> Iterator[bytes]:
    yield b"{"
    for name, value in _head(source).items():
        yield layout.line(1) + canonical_json(name) + layout.colon + layout.value(value, 1) + b","
    separator = b""
    for section in SECTIONS:
        opened = False
        for line in sorting.lines(source, section):
            if not opened:
                bracket = b"{" if section in _MAPS else b"["
                yield separator + layout.line(1) + canonical_json(section) + layout.colon + bracket
                opened = True
            else:
                yield b","
            yield layout.line(2) + _item(section, line, layout=layout)
        if opened:
            yield layout.line(1) + (b"}" if section in _MAPS else b"]")
        elif section in _ALWAYS_WRITTEN:
            yield separator + layout.line(1) + canonical_json(section) + layout.colon + b"[]"
        if opened or section in _ALWAYS_WRITTEN:
            separator = b","
    yield layout.line(0) + b"}\n"


def _item(section: str, line: bytes, *, layout: _Layout) -> bytes:
    if section == "datasets":
        return layout.item(section, dataset_json_of(line))
    if section not in _MAPS:
        return layout.item(section, line)
    key, value = (item_of(line)[name] for name in _MAPS[section])
    return canonical_json(key) + layout.colon + layout.value(value, 2)


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
