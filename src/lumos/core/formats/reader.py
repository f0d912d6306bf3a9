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

from lumos.core.errors import InvalidModelError, NotTabularError, UnreadableItemError
from lumos.core.formats import arrow_ipc, avro, csv_text, excel, json_text, orc, packed, parquet
from lumos.core.formats.file_names import ENCRYPTED, FORMATS, PATTERNS, SUFFIXES, promise_of
from lumos.core.formats.magic import (
    HEAD_BYTES,
    READABLE_TEXTS,
    kind_of_bytes,
    kind_of_text,
    looks_like,
)
from lumos.core.formats.packed import codec_of, packed_sample
from lumos.core.formats.sample import (
    FIRST_BYTES,
    LARGEST_SAMPLE_BYTES,
    SAMPLE_BYTES,
    Beginning,
    Sample,
    Text,
    sample_text,
)
from lumos.core.formats.tails import Tail

if TYPE_CHECKING:
    from lumos.core.formats.facts import FileFacts

__all__ = ["FORMATS", "PATTERNS", "SUFFIXES", "preload", "read_document", "read_file"]

_MAGIC: Final = (
    (parquet.MAGIC, parquet.FORMAT),
    (parquet.ENCRYPTED_MAGIC, parquet.FORMAT),
    (avro.MAGIC, avro.FORMAT),
    (orc.MAGIC, orc.FORMAT),
    (arrow_ipc.MAGIC, arrow_ipc.FORMAT),
    (arrow_ipc.OLD_MAGIC, arrow_ipc.FORMAT),
    (arrow_ipc.STREAM_MAGIC, arrow_ipc.FORMAT),
)
_BINARY_READERS: Final[dict[str, Callable[..., FileFacts]]] = {
    arrow_ipc.FORMAT: arrow_ipc.read_arrow,
    avro.FORMAT: avro.read_avro,
    excel.FORMAT: excel.read_excel,
    orc.FORMAT: orc.read_orc,
    parquet.FORMAT: parquet.read_parquet,
}
_WITH_VALUE_RANGES: Final = (avro.FORMAT, orc.FORMAT, parquet.FORMAT)
_READ_FROM_START: Final = (arrow_ipc.FORMAT, avro.FORMAT)
_TAIL_MARKS: Final = {
    parquet.FORMAT: (parquet.is_end, parquet.MAGIC),
    orc.FORMAT: (orc.is_end, orc.MAGIC),
}
_TEXT_FORMATS: Final = (csv_text.FORMAT, json_text.FORMAT)
_FEW_LINES = 20
_LEAVE_OUT = "leave such files out with: exclude"


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
        value_ranges: whether to return the smallest and largest value of columns without text,
            where the file has them; otherwise no value of the data is returned.

    Raises:
        NotTabularError: the file is what its name says, and that is no table.
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


def _facts_of_tail(
    stream: BinaryIO, *, size: int, name: str, value_ranges: bool
) -> FileFacts | None:
    """Read a file of which name and end agree that its end says it all; None for any other."""
    promise = promise_of(name)
    if promise.codec or promise.format not in _TAIL_MARKS:
        return None
    tail = Tail.of(stream, size=size)
    ends, begins = _TAIL_MARKS[promise.format]
    if not ends(tail.content):
        return None
    try:
        read = _BINARY_READERS[promise.format]
        facts = read(stream, size=size, tail=tail, value_ranges=value_ranges)
    except UnreadableItemError:
        if tail.head(HEAD_BYTES).startswith(begins):
            raise
        return None
    is_far = getattr(stream, "is_remote", False) and size > len(tail.content)
    if is_far or tail.head(HEAD_BYTES).startswith(begins):
        return facts
    damage = f"it does not begin as {FORMATS[promise.format]} does: its beginning is damaged"
    return replace(facts, warnings=(*facts.warnings, damage))


class _File:
    """One file, while it is read."""

    def __init__(self, stream: BinaryIO, size: int, name: str, *, value_ranges: bool) -> None:
        self._stream = stream
        self._size = size
        self._value_ranges = value_ranges
        self._promise = promise_of(name)
        self._is_encrypted = name.lower().endswith(ENCRYPTED)
        self._start = Beginning(stream, size=size)
        if not self._start.content:
            raise UnreadableItemError("the file changed while it was read", retryable=True)
        self._codec = codec_of(self._start.content[:HEAD_BYTES], self._promise.codec)

    def facts(self) -> FileFacts:
        sample = self._sample(FIRST_BYTES)
        if not sample.content:
            raise UnreadableItemError(f"there is nothing inside its {self._archive()}")
        found = self._binary_format(sample.content)
        if found is not None and not self._is_text_after_all(sample):
            return self._checked(self._binary_facts(found))
        is_promised = self._promise.format in _TEXT_FORMATS
        text = sample_text(sample, promised=is_promised and not kind_of_bytes(sample.content, ""))
        if text is None or (text.is_guess and kind_of_bytes(sample.content, "")):
            raise self._no_text(sample.content)
        if text.content.isspace() or not text.content:
            raise UnreadableItemError("the file holds nothing but space")
        return self._checked(self._text_facts(text, sample))

    def _sample(self, limit: int) -> Sample:
        if self._codec is None:
            return self._start.sample(limit)
        return packed_sample(self._start.from_start(), self._codec, size=self._size, limit=limit)

    def _binary_format(self, content: bytes) -> str | None:
        for magic, name in _MAGIC:
            if content.startswith(magic):
                return name
        return excel.FORMAT if excel.is_workbook(content) else None

    def _binary_facts(self, found: str) -> FileFacts:
        try:
            return self._facts_inside(found)
        except NotTabularError as error:
            if self._promise.format is None:
                raise
            raise _of_no_known_format(f"it looks like {error.kind}") from error

    def _facts_inside(self, found: str) -> FileFacts:
        if self._codec is None:
            ranges = {"value_ranges": self._value_ranges} if found in _WITH_VALUE_RANGES else {}
            stream, size = self._stream, self._size
            if size == len(self._start.content):
                stream = io.BytesIO(self._start.content)
            stream.seek(0)
            return _BINARY_READERS[found](stream, size=size, **ranges)
        if found not in _READ_FROM_START:
            raise UnreadableItemError(
                f"it is {FORMATS[found]} inside {_with_article(self._archive())}",
                hint="unpack it: such a file can only be read from its end",
            )
        sample = self._sample(SAMPLE_BYTES)
        stream, size = io.BytesIO(sample.content), len(sample.content)
        return _BINARY_READERS[found](stream, size=size, whole=sample.whole)

    def _text_facts(self, text: Text, sample: Sample) -> FileFacts:
        begin = text.content.lstrip()[:2]
        if begin[:1] in ("{", "[") or self._promise.format == json_text.FORMAT:
            try:
                return self._json_facts(text, sample)
            except UnreadableItemError:
                facts = self._csv_facts(text, sample)
                if facts is not None:
                    return facts
                if self._promise.format is not None or begin[:1] == "{":
                    raise
        elif begin.startswith("<"):
            raise self._no_table(text)
        facts = self._csv_facts(text, sample)
        if facts is None:
            raise self._no_table(text)
        return facts

    def _csv_facts(self, text: Text, sample: Sample) -> FileFacts | None:
        promised = self._promise.format == csv_text.FORMAT
        further: list[str] = []
        if not promised and text.content.count("\n") >= _FEW_LINES:
            facts = csv_text.read_csv_table(text, sample=sample)
            if facts is None or text.whole:
                return facts
        if not text.whole:
            is_spread = self._codec is None and self._size > SAMPLE_BYTES
            larger = self._sample(SAMPLE_BYTES // 2 if is_spread else SAMPLE_BYTES)
            text, sample = sample_text(larger, promised=promised) or text, larger
            if text.content.count("\n") < _FEW_LINES:
                larger = self._sample(SAMPLE_BYTES)
                text, sample = sample_text(larger, promised=promised) or text, larger
            elif is_spread:
                further = self._start.lines_elsewhere(text, bytes_each=SAMPLE_BYTES // 4)
        if promised:
            return csv_text.read_csv(text, sample=sample, further=further)
        return csv_text.read_csv_table(text, sample=sample, further=further)

    def _json_facts(self, text: Text, sample: Sample) -> FileFacts:
        facts = json_text.read_json(text, sample=sample)
        for limit in (SAMPLE_BYTES, LARGEST_SAMPLE_BYTES):
            if facts is None:
                sample = self._sample(limit)
                larger = sample_text(sample)
                facts = json_text.read_json(larger, sample=sample) if larger else None
        if facts is None:
            raise json_text.first_record_too_long()
        if self._codec or facts.rows is not None or facts.warnings:
            return facts
        damage = tuple(json_text.damage_at_end(self._start.end(), facts))
        return replace(facts, warnings=damage) if damage else facts

    def _is_text_after_all(self, sample: Sample) -> bool:
        """Return whether text happens to begin like a binary format, as a column ORC_ID does."""
        if self._promise.format not in _TEXT_FORMATS or self._codec is not None:
            return False
        text = sample_text(sample)
        return text is not None and text.encoding == "utf-8"

    def _no_table(self, text: Text) -> UnreadableItemError:
        kind = kind_of_text(text.content, self._promise.suffix)
        if self._promise.format is None:
            return NotTabularError(kind)
        seems = "text without columns" if kind == "a text document" else kind
        return _of_no_known_format(f"it looks like {seems}")

    def _no_text(self, content: bytes) -> UnreadableItemError:
        if self._is_encrypted:
            return UnreadableItemError(
                "it is encrypted, as its name says", hint="Lumos reads no encrypted files"
            )
        found = kind_of_bytes(content, self._promise.suffix)
        if found is not None and self._promise.format is None:
            return NotTabularError(found)
        found = found or looks_like(content[:HEAD_BYTES])
        if found in READABLE_TEXTS:
            return UnreadableItemError(f"it begins like {found} but holds bytes that are no text")
        inside = f" inside {_with_article(self._archive())}" if self._codec else ""
        return _of_no_known_format(
            f"it looks like {found}{inside}" if found else "its bytes are neither text nor known"
        )

    def _archive(self) -> str:
        return f"{packed.CODECS[self._codec or 'gzip']} archive"

    def _checked(self, facts: FileFacts) -> FileFacts:
        """Return how it is packed, with a warning where the name contradicts the bytes."""
        promise = self._promise
        if promise.format in (None, facts.format) and promise.codec == self._codec is None:
            return facts
        warnings = []
        if promise.format not in (None, facts.format):
            warnings.append(f"named {promise.suffix} but is {FORMATS[facts.format]}")
        if promise.codec and not self._codec:
            archive = f"{packed.CODECS[promise.codec]} archive"
            warnings.append(f"named as {_with_article(archive)} but is not packed")
        elif self._codec and not promise.codec:
            archive = _with_article(self._archive())
            warnings.append(f"it is {archive} but its name does not say so")
        elif self._codec != promise.codec:
            warnings.append(f"named {promise.suffix} but is {_with_article(self._archive())}")
        return replace(
            facts,
            warnings=(*warnings, *facts.warnings),
            compression=self._codec or facts.compression,
        )


def _of_no_known_format(seems: str) -> UnreadableItemError:
    return UnreadableItemError(f"it is of no known format: {seems}", hint=_LEAVE_OUT)


def _with_article(noun: str) -> str:
    return f"{'an' if noun.startswith(('xz', 'LZ4')) else 'a'} {noun}"


def preload() -> None:
    """Import now what readers import late, so that processes forked later need not."""
    import fastavro  # noqa: F401
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.ipc
    import pyarrow.orc
    import pyarrow.parquet

    # Arrow sets aside address space with its first allocation; a reader may not have so much.
    pa.allocate_buffer(1)
    for name, content in (("a.json", b'{"a": [{"b": 1}]}'), ("a.csv", b"a,b\n1,2\n")):
        read_file(io.BytesIO(content), size=len(content), name=name).to_document()
