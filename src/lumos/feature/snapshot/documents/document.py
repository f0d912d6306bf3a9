"""A one-document snapshot on its way into parts, so that its size does not decide on memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import orjson

from lumos.core.changes.text import printable
from lumos.core.errors import InputUnreadableError, InvalidModelError
from lumos.core.models import SNAPSHOT_SCHEMA_VERSION, DatasetLineage, EdgeBasis, Snapshot
from lumos.core.models.base import canonical_json
from lumos.core.models.migrations import require_readable
from lumos.core.models.snapshot import CHECKSUMS
from lumos.core.regular_files import NotRegularError, open_regular
from lumos.core.store.snapshots.manifest import SnapshotHeader, StatisticsCounter
from lumos.core.store.snapshots.part_format import SECTIONS
from lumos.core.store.snapshots.snapshot_sections import (
    MAP_SECTIONS,
    MODEL_OF,
    SectionLine,
    SnapshotContent,
    dataset_section_line,
    header_of,
    item_section_line,
)
from lumos.core.strict_json import DuplicateKeyError, require_all_keys, require_few_values
from lumos.feature.snapshot.documents.content_digest import ContentDigest
from lumos.feature.snapshot.documents.document_seal import (
    COMPACT,
    DocumentLayout,
    SealedDocument,
    damaged,
    matches,
    seal_of,
)
from lumos.feature.snapshot.documents.document_spool import DocumentSpool
from lumos.feature.snapshot.documents.document_text import DocumentText

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.models.base import CanonicalModel
    from lumos.core.store.snapshots.line_sorter import LineSorter
    from lumos.core.store.snapshots.stored_snapshot import StoredSnapshot
    from lumos.feature.snapshot.scratch import Scratch

# A dataset comes after its edges.
_UPSTREAM, _INFERRED, _DOWNSTREAM, _DATASET = b"d", b"i", b"u", b"x"
_NOTHING = {
    "snapshot_schema_version": SNAPSHOT_SCHEMA_VERSION,
    "lumos_version": "",
    "export_timestamp": "2000-01-01T00:00:00Z",
    "source_platform": "",
}


@contextmanager
def opened_file(path: Path) -> Iterator[BinaryIO]:
    """Open what the user named as a document.

    Raises:
        InputUnreadableError: there is no such file, or it cannot be read.
    """
    try:
        stream = open_regular(path)
    except FileNotFoundError:
        raise InputUnreadableError(
            f"there is no snapshot {path}",
            hint="give a file, a snapshot folder, an id from lumos snapshot list, latest, or for "
            "diff the name of a catalog",
        ) from None
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        raise unreadable(path, error) from error
    with stream:
        try:
            yield stream
        except OSError as error:
            raise unreadable(path, error) from error


def unreadable(path: Path, error: OSError | ValueError) -> InputUnreadableError:
    """Say why what the user named cannot be read."""
    reason = getattr(error, "strerror", None) or "it is no file name"
    hint = "check that you may read it"
    if isinstance(error, NotRegularError):
        hint = "write it to a file; lumos import and validate take - for standard input"
    return InputUnreadableError(f"cannot read {path}: {reason}", hint=hint)


class ReadDocument(NamedTuple):
    """A document in parts, and what its checksums are."""

    stored: StoredSnapshot
    has_checksum: bool
    content_sha256: str
    """Of the content that was read, whatever the document states."""


def stored_document(path: Path, scratch: Scratch, *, edited: bool = False) -> StoredSnapshot:
    """Read a document into parts: see `read_document`."""
    return read_document(path, scratch, edited=edited).stored


def read_document(path: Path, scratch: Scratch, *, edited: bool = False) -> ReadDocument:
    """Read a document into parts.

    Where the bytes are those that Lumos wrote, items are read as they are. Otherwise models check
    each item, and the content has to match the checksum that the document states, if any.

    Args:
        path: the file.
        scratch: where the parts are put.
        edited: accept content that does not match its checksum.

    Raises:
        InputUnreadableError: there is no such file, or it cannot be read.
        InvalidModelError: the file is no snapshot.
        CorruptSnapshotError: the content does not match its checksum.
        UnsupportedSnapshotVersionError: a newer Lumos wrote it.
    """
    where = str(path)
    with opened_file(path) as stream:
        seal = seal_of(stream)
        is_as_written = seal is not None and matches(stream, seal)
        if seal is not None and is_as_written:
            document = SealedDocument(stream, seal, where=where)
            if require_readable(document.head) == SNAPSHOT_SCHEMA_VERSION:
                digest = ContentDigest()
                content = sealed_content(document, seal.layout, digest=digest, where=where)
                stored = scratch.store(content)
                for section in document.sections:
                    digest.open(section)
                return ReadDocument(stored, True, digest.result(document.head))
            stream.seek(0)
        try:
            spool = DocumentSpool.of(DocumentText(stream, where))
        except InvalidModelError:
            if seal is None or is_as_written or edited:
                raise
            raise damaged(where, "its checksum does not match") from None
    with spool:
        if not (is_as_written or edited):
            spool.require_unchanged(where)
        stored = scratch.store(spooled_content(spool))
        return ReadDocument(stored, spool.has_checksum, spool.content_sha256)


def has_matching_seal(stream: BinaryIO) -> bool:
    """Return whether the bytes of a document are those that Lumos wrote; rewind the stream."""
    seal = seal_of(stream)
    return seal is not None and matches(stream, seal)


def sealed_content(
    document: SealedDocument, layout: DocumentLayout, *, digest: ContentDigest, where: str
) -> SnapshotContent:
    """Return the content of a document whose bytes are known to be what Lumos wrote."""
    counter = StatisticsCounter()
    return SnapshotContent(
        header=_header(document.head),
        lines=_sealed_lines(document, layout, counter=counter, digest=digest, where=where),
        statistics=counter.result,
    )


def spooled_content(spool: DocumentSpool) -> SnapshotContent:
    """Return what a document holds, with every item checked and lineage taken from the edges."""
    counter = StatisticsCounter()
    header = _header(spool.head)
    return SnapshotContent(
        header=header, lines=_checked_lines(spool, counter), statistics=counter.result
    )


def _header(head: dict[str, JsonValue]) -> SnapshotHeader:
    """Check all but the items, which are checked one by one."""
    rest = {name: value for name, value in head.items() if not _is_section(name, value)}
    for checksum in CHECKSUMS:
        rest.pop(checksum, None)
    whole = {**rest, "snapshot_schema_version": SNAPSHOT_SCHEMA_VERSION}
    return header_of(Snapshot.from_json(whole))


def _is_section(name: str, value: JsonValue) -> bool:
    return name in SECTIONS and isinstance(value, dict if name in MAP_SECTIONS else list)


def _sealed_lines(
    document: SealedDocument,
    layout: DocumentLayout,
    *,
    counter: StatisticsCounter,
    digest: ContentDigest,
    where: str,
) -> Iterator[SectionLine]:
    for section, text in document.items():
        try:
            require_few_values(text)
            item = orjson.loads(text)
            # As the text of a compact dataset is kept, its keys are checked when it is parsed.
            is_kept = section == "datasets" and layout is COMPACT
            spelt = text if is_kept else _spelt(item, text)
            digest.add(section, spelt)
            if section == "datasets":
                counter.add_dataset_json(item)
                yield dataset_section_line(item, spelt)
                continue
            if section in MAP_SECTIONS:
                name, value = next(iter(item.items()))
                yield _entry_line(section, name, value=value)
            else:
                counter.add_item(section, tag=item["name"] if section == "tags" else None)
                yield item_section_line(section, item)
        except DuplicateKeyError as error:
            raise damaged(where, f"in an item of {section} {error}") from None
        except (KeyError, TypeError, ValueError, AttributeError, StopIteration):
            raise damaged(where, f"an item of {section} is not what Lumos writes") from None


def _spelt(item: JsonValue, text: bytes) -> bytes:
    """Return the canonical JSON of an item once its text is known to have no key twice."""
    spelt = canonical_json(item)
    require_all_keys(text, spelt)
    return spelt


def _checked_lines(spool: DocumentSpool, counter: StatisticsCounter) -> Iterator[SectionLine]:
    with spool.sorter() as sorter:
        for section, model in MODEL_OF.items():
            for number, item in enumerate(spool.items(section), start=1):
                document = _checked(section, number, item=item, model=model)
                if section == "datasets":
                    urn = str(document["urn"]).encode()
                    sorter.add(0, urn, line=_DATASET + canonical_json(document))
                    continue
                if section == "lineage_edges":
                    ends = str(document["upstream_urn"]), str(document["downstream_urn"])
                    upstream, downstream = (end.encode() for end in ends)
                    is_inferred = document.get("basis") == EdgeBasis.INFERRED
                    sorter.add(
                        0, downstream, line=(_INFERRED if is_inferred else _UPSTREAM) + upstream
                    )
                    sorter.add(0, upstream, line=_DOWNSTREAM + downstream)
                counter.add_item(section, tag=str(document["name"]) if section == "tags" else None)
                yield item_section_line(section, document)
        for section in MAP_SECTIONS:
            for name, value in spool.entries(section):
                yield _checked_entry(section, name, value=value)
        yield from _with_lineage(sorter, counter)


def _checked(
    section: str, number: int, *, item: JsonValue, model: type[CanonicalModel]
) -> dict[str, JsonValue]:
    try:
        return model.from_json(item).to_json()
    except InvalidModelError as error:
        name = item.get("urn", item.get("name")) if isinstance(item, dict) else None
        called = f" ({printable(name)})" if isinstance(name, str) else ""
        raise InvalidModelError(f"{section}, item {number}{called}: {error.message}") from None


def _checked_entry(section: str, name: str, *, value: JsonValue) -> SectionLine:
    """Check an entry of a map by a snapshot that has nothing else."""
    alone = Snapshot.from_json({**_NOTHING, section: {name: value}})
    entries = alone.identity_map if section == "identity_map" else alone.extensions
    ((key, checked),) = entries.items()
    return _entry_line(section, str(key), value=orjson.loads(canonical_json(checked)))


def _entry_line(section: str, name: str, *, value: JsonValue) -> SectionLine:
    key, content = MAP_SECTIONS[section]
    return item_section_line(section, {key: name, content: value})


def _with_lineage(sorter: LineSorter, counter: StatisticsCounter) -> Iterator[SectionLine]:
    """Yield the datasets with their neighbours as the edges, which are the truth, have them."""
    for _, group in groupby(sorter, key=lambda item: item.key):
        found: dict[bytes, list[str]] = {_UPSTREAM: [], _DOWNSTREAM: [], _INFERRED: []}
        for _, _, line in group:
            kind, content = line[:1], line[1:]
            if kind != _DATASET:
                found[kind].append(content.decode())
                continue
            lineage = DatasetLineage.from_json(
                {
                    "upstream": found[_UPSTREAM] + found[_INFERRED],
                    "downstream": found[_DOWNSTREAM],
                    "inferred": [*({*found[_INFERRED]} - {*found[_UPSTREAM]})],
                }
            ).to_json()
            dataset = {**orjson.loads(content), "lineage": lineage}
            if not lineage:
                del dataset["lineage"]
            counter.add_dataset_json(dataset)
            yield dataset_section_line(dataset)
