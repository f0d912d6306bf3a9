"""Reads any file that Lumos knows: finds out what it is, and what it says of itself.

A footer, a header or a bounded sample is read, never a whole file. The bytes decide on the
format; a name that says otherwise becomes a warning.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, BinaryIO, Final

from pydantic import ValidationError

from lumos.core.errors import InvalidModelError, UnreadableItemError
from lumos.core.formats import avro, csv_text, json_text, orc, parquet
from lumos.core.formats.magic import HEAD_BYTES, READABLE_TEXTS, looks_like
from lumos.core.formats.sample import (
    GZIP_MAGIC,
    LARGEST_SAMPLE_BYTES,
    SAMPLE_BYTES,
    Sample,
    Text,
    gzip_sample,
    plain_sample,
    text_of,
)
from lumos.core.formats.tails import Tail

if TYPE_CHECKING:
    from lumos.core.formats.facts import FileFacts

FORMATS: Final = {
    avro.FORMAT: "Avro",
    csv_text.FORMAT: "CSV",
    json_text.FORMAT: "JSON",
    orc.FORMAT: "ORC",
    parquet.FORMAT: "Parquet",
}
"""The formats that can be read, and how people spell them."""

SUFFIXES: Final = {
    "avro": avro.FORMAT,
    "csv": csv_text.FORMAT,
    "tsv": csv_text.FORMAT,
    "tab": csv_text.FORMAT,
    "psv": csv_text.FORMAT,
    "json": json_text.FORMAT,
    "jsonl": json_text.FORMAT,
    "ndjson": json_text.FORMAT,
    "geojson": json_text.FORMAT,
    "orc": orc.FORMAT,
    "parquet": parquet.FORMAT,
    "parq": parquet.FORMAT,
    "pq": parquet.FORMAT,
}
"""What the end of a name says about a file's format."""

_GZIP_SUFFIXES: Final = ("gz", "gzip")
_MAGIC: Final = (
    (parquet.MAGIC, parquet.FORMAT),
    (b"PARE", parquet.FORMAT),
    (avro.MAGIC, avro.FORMAT),
    (orc.MAGIC, orc.FORMAT),
)
_BINARY_READERS: Final[dict[str, Callable[..., FileFacts]]] = {
    parquet.FORMAT: parquet.read_parquet,
    avro.FORMAT: avro.read_avro,
    orc.FORMAT: orc.read_orc,
}
_TAIL_MARKS: Final = {
    parquet.FORMAT: (parquet.is_end, parquet.MAGIC),
    orc.FORMAT: (orc.is_end, orc.MAGIC),
}
_TEXT_FORMATS: Final = (csv_text.FORMAT, json_text.FORMAT)
_TAR_MAGIC, _TAR_MAGIC_AT = b"ustar", 257


def read_document(stream: BinaryIO, *, size: int, name: str, value_ranges: bool = False) -> bytes:
    """Return what `read_file` returns as canonical JSON, with the `fingerprint` of the schema.

    A schema that another file had is neither built nor written again.

    Raises:
        UnreadableItemError: as `read_file` says.
    """
    return read_file(stream, size=size, name=name, value_ranges=value_ranges).to_document()


def read_file(stream: BinaryIO, *, size: int, name: str, value_ranges: bool = False) -> FileFacts:
    """Return the facts of an open file of any known format.

    Args:
        stream: the file, open for reading bytes at any position.
        size: its length in bytes.
        name: its name or path, of which only the suffix is looked at.
        value_ranges: whether to tell the smallest and largest value of columns without text,
            where the file knows them; else no value of the data is told.

    Raises:
        UnreadableItemError: the file is empty, damaged or of no known format; the reason holds
            no data.
    """
    if size == 0:
        raise UnreadableItemError("the file is empty")
    try:
        found = _facts_of_tail(stream, size=size, name=name, value_ranges=value_ranges)
        return found or _File(stream, size, name, value_ranges=value_ranges).facts()
    except OSError as error:
        raise UnreadableItemError(
            f"it cannot be read: {error.strerror or type(error).__name__}", retryable=True
        ) from error
    except (ValidationError, InvalidModelError) as error:
        raise UnreadableItemError("its schema is outside of what Lumos can describe") from error


def named_format(name: str) -> tuple[str | None, bool]:
    """Return the format that a file's name promises, and whether it promises gzip around it."""
    stem, _, suffix = name.lower().rpartition(".")
    packed = suffix in _GZIP_SUFFIXES
    if packed:
        suffix = stem.rpartition(".")[2]
    return SUFFIXES.get(suffix), packed


def _facts_of_tail(
    stream: BinaryIO, *, size: int, name: str, value_ranges: bool
) -> FileFacts | None:
    """Read a file of which name and end agree that its end says it all; None for any other."""
    promised, packed = named_format(name)
    if packed or promised not in _TAIL_MARKS:
        return None
    tail = Tail.of(stream, size=size)
    ends, begins = _TAIL_MARKS[promised]
    if not ends(tail.content):
        return None
    try:
        read = _BINARY_READERS[promised]
        return read(stream, size=size, tail=tail, value_ranges=value_ranges)
    except UnreadableItemError:
        if tail.head(HEAD_BYTES).startswith(begins):
            raise
        return None


class _File:
    """One file, while it is read."""

    def __init__(self, stream: BinaryIO, size: int, name: str, *, value_ranges: bool) -> None:
        self._stream = stream
        self._size = size
        self._value_ranges = value_ranges
        parts = name.lower().rsplit(".", 2)
        self._promised, self._promised_gzip = named_format(name)
        self._suffix = "." + ".".join(parts[1:] if self._promised_gzip else parts[-1:])
        stream.seek(0)
        self._head = stream.read(HEAD_BYTES)
        if not self._head:
            raise UnreadableItemError("the file changed while it was read", retryable=True)
        self._gzip = self._head.startswith(GZIP_MAGIC)

    def facts(self) -> FileFacts:
        found = None if self._gzip else self._binary_format(self._head)
        if found is not None and not self._is_text_after_all():
            self._stream.seek(0)
            read = _BINARY_READERS[found]
            return self._checked(
                read(self._stream, size=self._size, value_ranges=self._value_ranges)
            )
        facts = self._sampled_facts()
        if self._gzip:
            facts = replace(facts, compression="gzip")
        return self._checked(facts)

    def _sampled_facts(self) -> FileFacts:
        sample = self._sample(SAMPLE_BYTES)
        if not sample.content:
            raise UnreadableItemError("there is nothing inside its gzip archive")
        if self._gzip and self._binary_format(sample.content) is not None:
            return self._packed_facts(sample)
        text = text_of(sample)
        if text is None:
            raise self._unknown(sample.content)
        if not text.content.strip():
            raise UnreadableItemError("the file holds nothing but space")
        return self._text_facts(text, sample)

    def _text_facts(self, text: Text, sample: Sample) -> FileFacts:
        begins_as_json = text.content.lstrip()[:1] in ("{", "[")
        if begins_as_json or self._promised == json_text.FORMAT:
            try:
                return self._json_facts(text, sample)
            except UnreadableItemError:
                if self._promised != csv_text.FORMAT and not self._is_table(text, sample):
                    raise
        elif text.content.lstrip().startswith("<"):
            raise self._unknown(sample.content)
        if self._promised == csv_text.FORMAT or self._is_table(text, sample):
            return csv_text.read_csv(text, sample=sample)
        raise UnreadableItemError(
            "it is of no known format: it looks like text without columns",
            hint="leave such files out with: exclude",
        )

    def _json_facts(self, text: Text, sample: Sample) -> FileFacts:
        facts = json_text.read_json(text, sample=sample)
        if facts is None:
            sample = self._sample(LARGEST_SAMPLE_BYTES)
            larger = text_of(sample)
            facts = json_text.read_json(larger, sample=sample) if larger else None
        if facts is None:
            raise json_text.first_record_too_long()
        return facts

    def _packed_facts(self, sample: Sample) -> FileFacts:
        found = self._binary_format(sample.content)
        if found == avro.FORMAT:
            return avro.read_avro(io.BytesIO(sample.content), size=len(sample.content))
        raise UnreadableItemError(
            f"it is {FORMATS[found or parquet.FORMAT]} inside a gzip archive",
            hint="unpack it: such a file can only be read from its end",
        )

    def _sample(self, limit: int) -> Sample:
        take = gzip_sample if self._gzip else plain_sample
        return take(self._stream, size=self._size, limit=limit)

    def _is_table(self, text: Text, sample: Sample) -> bool:
        return csv_text.has_columns(text, sample=sample)

    def _is_text_after_all(self) -> bool:
        """Tell whether text happens to begin like a binary format, as a column ORC_ID does."""
        if self._promised not in _TEXT_FORMATS:
            return False
        text = text_of(self._sample(SAMPLE_BYTES))
        return text is not None and text.encoding == "utf-8"

    def _binary_format(self, head: bytes) -> str | None:
        return next((name for magic, name in _MAGIC if head.startswith(magic)), None)

    def _unknown(self, content: bytes) -> UnreadableItemError:
        found = looks_like(content[:HEAD_BYTES])
        if content[_TAR_MAGIC_AT:].startswith(_TAR_MAGIC):
            found = "a tar archive"
        if found in READABLE_TEXTS:
            return UnreadableItemError(f"it begins like {found} but holds bytes that are no text")
        inside = " inside" if self._gzip else ""
        seems = (
            f"it looks like {found}{inside}" if found else "its bytes are neither text nor known"
        )
        return UnreadableItemError(
            f"it is of no known format: {seems}", hint="leave such files out with: exclude"
        )

    def _checked(self, facts: FileFacts) -> FileFacts:
        """Add a warning where the name says something else than the bytes."""
        warnings = []
        if self._promised not in (None, facts.format):
            warnings.append(f"named {self._suffix} but is {FORMATS[facts.format]}")
        if self._promised_gzip and not self._gzip:
            warnings.append("named as a gzip archive but is not packed")
        elif self._gzip and not self._promised_gzip:
            warnings.append("it is a gzip archive but its name does not say so")
        return replace(facts, warnings=(*warnings, *facts.warnings)) if warnings else facts


def preload() -> None:
    """Import now what readers import late, so that processes forked later need not."""
    import fastavro  # noqa: F401
    import pyarrow as pa
    import pyarrow.orc
    import pyarrow.parquet

    # Arrow sets aside address space with its first allocation; a reader may not have so much.
    pa.allocate_buffer(1)
    content = b'{"a": [{"b": 1}]}'
    read_file(io.BytesIO(content), size=len(content), name="a.json").to_json()
