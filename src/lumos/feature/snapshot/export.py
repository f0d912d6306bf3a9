"""Writing a snapshot as one JSON document, streamed and sorted."""

from __future__ import annotations

import hashlib
import os
import stat
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import orjson

from lumos.core.models import Snapshot
from lumos.core.models.base import canonical_json
from lumos.core.store.line_sorter import MEMORY_BYTES, LineSorter
from lumos.core.store.part_format import SECTIONS, dataset_json_of, item_of, key_of_line
from lumos.core.store.snapshot_files import (
    DurableFiles,
    FilesForOthers,
    storing,
    write_all,
    write_atomically,
)
from lumos.core.store.snapshot_parts import StoredPart
from lumos.core.store.snapshot_sections import MAP_SECTIONS
from lumos.feature.snapshot.bucket_work import LOCAL, BucketEngine, BucketWork, Codec
from lumos.feature.snapshot.document_seal import COMPACT, PRETTY, Layout
from lumos.feature.snapshot.key_order import KeyOrder
from lumos.feature.snapshot.source import in_parts

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.feature.snapshot.source import Bucket, SnapshotSource

_CHUNK = 1 << 20
_ITEM = struct.Struct("<BI")
# Without a list of edges a reader would take the neighbours that datasets name for edges.
_ALWAYS_WRITTEN = frozenset({"datasets", "lineage_edges"})


def export_document(
    source: SnapshotSource,
    target: Path,
    *,
    pretty: bool = True,
    files: DurableFiles | None = None,
    memory_bytes: int = MEMORY_BYTES,
    engine: BucketEngine = LOCAL,
) -> None:
    """Write the document to a file, which is replaced only when the new one is whole.

    Equal content gives equal bytes, whatever form the source has. A pretty document has its keys
    in the order of the models, names first; a compact one has them sorted, and one item on each
    line. The last entry is the checksum of all that comes before it. The umask decides who can
    read the file.

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
        engine=engine,
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
    engine: BucketEngine = LOCAL,
) -> Iterator[bytes]:
    """Yield the document in pieces of about a megabyte; what must wait, waits in `spill_folder`."""
    buffer, digest = bytearray(), hashlib.sha256()
    layout = PRETTY if pretty else COMPACT
    sorting = _Sorting(spill_folder, files=files or DurableFiles(), memory_bytes=memory_bytes)
    with in_parts(source, engine) as readable:
        items = engine.run(render_work(pretty=pretty), export_tasks(readable))
        sections = (
            (name, sorting.texts(group, buckets=readable.bucket_count(name)))
            for number, group in groupby(items, key=lambda item: item.section)
            for name in (SECTIONS[number],)
        )
        for piece in _pieces(source, sections, layout=layout):
            buffer += piece
            if len(buffer) >= _CHUNK:
                digest.update(buffer)
                yield bytes(buffer)
                buffer.clear()
        digest.update(buffer)
        yield bytes(buffer) + layout.seal(digest.hexdigest())


def _set_value(value: JsonValue, layout: Layout, *, depth: int) -> bytes:
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


def _set_item(section: str, document: bytes, layout: Layout) -> bytes:
    """Set an item that is canonical JSON already, in which free JSON is sorted."""
    if layout is COMPACT:
        return document
    item = orjson.loads(document)
    if order := KeyOrder.of(Snapshot).under(section):
        order.arrange(item)
    return _set_value(item, layout, depth=2)


@dataclass(frozen=True, slots=True)
class BucketToRender:
    """A bucket of the section of that number."""

    section: int
    bucket: Bucket


class RenderedItem(NamedTuple):
    """An item as the document shows it, under what it is sorted by."""

    section: int
    key: bytes
    text: bytes


def render_bucket(task: BucketToRender, *, pretty: bool) -> Iterator[RenderedItem]:
    """Yield the items of a bucket as the document shows them, in the order of their keys.

    Raises:
        CorruptSnapshotError: the part is damaged.
    """
    section, layout = SECTIONS[task.section], PRETTY if pretty else COMPACT
    for line in task.bucket.lines():
        text = layout.line(2) + _item(section, line, layout=layout)
        yield RenderedItem(task.section, key_of_line(section, line), text)


def render_work(*, pretty: bool) -> BucketWork[BucketToRender, RenderedItem]:
    """Return the rendering of one bucket, as every engine carries it out."""
    kernel = partial(render_bucket, pretty=pretty)
    tasks = Codec(_encoded_task, _decoded_task)
    return BucketWork(kernel, tasks, Codec(_encoded_item, _decoded_item), together=1)


def export_tasks(source: SnapshotSource) -> list[BucketToRender]:
    """Return all buckets in the order of the document's sections."""
    return [
        BucketToRender(number, bucket)
        for number, section in enumerate(SECTIONS)
        for place in range(source.bucket_count(section))
        if (bucket := source.part(place, section=section)) is not None
    ]


def _encoded_task(task: BucketToRender) -> bytes:
    if not isinstance(task.bucket, StoredPart):
        raise TypeError("only stored parts travel")
    return bytes([task.section]) + task.bucket.encode()


def _decoded_task(content: bytes) -> BucketToRender:
    return BucketToRender(content[0], StoredPart.decode(content[1:]))


def _encoded_item(item: RenderedItem) -> bytes:
    return _ITEM.pack(item.section, len(item.key)) + item.key + item.text


def _decoded_item(content: bytes) -> RenderedItem:
    section, length = _ITEM.unpack_from(content)
    end = _ITEM.size + length
    return RenderedItem(section, content[_ITEM.size : end], content[end:])


class _Sorting:
    """Brings a section's items from the order of buckets into one order."""

    def __init__(self, folder: Path, *, files: DurableFiles, memory_bytes: int) -> None:
        self._folder = folder
        self._files = files
        self._memory_bytes = memory_bytes

    def texts(self, items: Iterable[RenderedItem], *, buckets: int) -> Iterator[bytes]:
        if buckets == 1:
            yield from (item.text for item in items)
            return
        with LineSorter(self._folder, files=self._files, memory_bytes=self._memory_bytes) as sorter:
            for item in items:
                sorter.add(0, item.key, line=item.text)
            for sorted_item in sorter:
                yield sorted_item.line


def _pieces(
    source: SnapshotSource, texts: Iterator[tuple[str, Iterator[bytes]]], *, layout: Layout
) -> Iterator[bytes]:
    yield b"{"
    for name, value in _head(source).items():
        yield (
            layout.line(1)
            + canonical_json(name)
            + layout.colon
            + _set_value(value, layout, depth=1)
            + b","
        )
    separator = b""
    section, items = next(texts, (None, iter(())))
    for name in SECTIONS:
        opened = name == section
        if not opened and name not in _ALWAYS_WRITTEN:
            continue
        brackets = (b"{", b"}") if name in MAP_SECTIONS else (b"[", b"]")
        yield separator + layout.line(1) + canonical_json(name) + layout.colon + brackets[0]
        separator = b","
        if opened:
            comma = b""
            for text in items:
                yield comma + text
                comma = b","
            yield layout.line(1)
            section, items = next(texts, (None, iter(())))
        yield brackets[1]
    yield layout.before_seal()


def _item(section: str, line: bytes, *, layout: Layout) -> bytes:
    if section == "datasets":
        return _set_item(section, dataset_json_of(line), layout)
    if section not in MAP_SECTIONS:
        return _set_item(section, line, layout)
    key, value = (item_of(line)[name] for name in MAP_SECTIONS[section])
    return canonical_json(key) + layout.colon + _set_value(value, layout, depth=2)


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
