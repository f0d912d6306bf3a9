"""Reads the footer of a Parquet file: schema, counts and column statistics, never a row.

All of it is at the end of the file, so one read of the end is enough wherever the footer fits it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, BinaryIO, Final

import orjson

from lumos.core.errors import UnreadableItemError
from lumos.core.formats.facts import FileFacts
from lumos.core.formats.known_schemas import KnownSchema, KnownSchemas
from lumos.core.formats.magic import HEAD_BYTES, looks_like
from lumos.core.formats.parquet_prefix import KnownPrefixes
from lumos.core.formats.parquet_statistics import column_statistics
from lumos.core.formats.parquet_types import SPARK_SCHEMA_KEY, new_schema
from lumos.core.formats.tails import Tail
from lumos.core.formats.type_parts import MAX_DEPTH

if TYPE_CHECKING:
    import pyarrow.parquet as pq

FORMAT: Final = "parquet"

MAGIC: Final = b"PAR1"
ENCRYPTED_MAGIC: Final = b"PARE"
_TRAILER_BYTES = 8
_AROUND_FOOTER = 12
_SIGNATURE_BYTES = 28
_ENCRYPTED_COLUMNS = "columns of it are encrypted; their names and types are known, no statistics"
_SMALLEST_FILE = len(MAGIC) + _TRAILER_BYTES
_DESCRIPTION_KEYS = (b"description", b"comment")
_ARROW_SCHEMA_KEY = b"ARROW:schema"
_SCHEMAS = KnownSchemas()
_PREFIXES = KnownPrefixes()


def read_parquet(
    stream: BinaryIO, *, size: int, tail: Tail | None = None, value_ranges: bool = False
) -> FileFacts:
    """Return the facts of an open Parquet file by reading its end.

    Args:
        stream: the file, open for reading bytes at any position.
        size: its length in bytes.
        tail: its end, where that has been read already.
        value_ranges: whether to return the smallest and largest value of columns without text.

    Raises:
        UnreadableItemError: the file is not readable Parquet; the reason holds no data.
    """
    if size == 0:
        raise UnreadableItemError("the file is empty")
    try:
        footer = _footer(tail or Tail.of(stream, size=size))
    except OSError as error:
        raise UnreadableItemError(
            f"it cannot be read: {error.strerror or type(error).__name__}", retryable=True
        ) from error
    return facts_of_footer(footer, value_ranges=value_ranges)


def is_end(tail: bytes) -> bool:
    """Return whether a file ends as Parquet does."""
    return tail.endswith(MAGIC)


def facts_of_footer(footer: bytes, *, value_ranges: bool = False) -> FileFacts:
    """Return the facts that the footer of a Parquet file holds, given without its trailer.

    Raises:
        UnreadableItemError: the footer is damaged or not supported; the reason holds no data.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    content = b"".join((MAGIC, footer, len(footer).to_bytes(4, "little"), MAGIC))
    # As ParquetFile does it, without the paths of columns, which nobody asks for.
    reader = pq.ParquetReader()
    try:
        reader.open(pa.BufferReader(content))
        return _facts(reader.metadata, content, value_ranges=value_ranges)
    except (pa.ArrowException, OSError, ValueError, TypeError, OverflowError, KeyError) as error:
        raise UnreadableItemError(_reason(error)) from error


def _footer(tail: Tail) -> bytes:
    if tail.content[-len(ENCRYPTED_MAGIC) :] == ENCRYPTED_MAGIC:
        raise UnreadableItemError("its footer is encrypted", hint="Lumos reads no encrypted files")
    if tail.size < _SMALLEST_FILE or not tail.content.endswith(MAGIC):
        _require_magic(tail.head(HEAD_BYTES))
        if tail.size < _SMALLEST_FILE:
            raise UnreadableItemError(f"the file is cut off: it has {tail.size} bytes")
        raise UnreadableItemError("the file is cut off: it has no Parquet footer at its end")
    length = int.from_bytes(tail.content[-_TRAILER_BYTES : -len(MAGIC)], "little")
    if not 0 < length <= tail.size - _SMALLEST_FILE:
        raise UnreadableItemError("its footer is damaged: the length it gives does not fit")
    return tail.last(length + _TRAILER_BYTES)[:-_TRAILER_BYTES]


def _require_magic(head: bytes) -> None:
    if head.startswith(MAGIC):
        return
    if head.startswith(ENCRYPTED_MAGIC):
        raise UnreadableItemError("its footer is encrypted", hint="Lumos reads no encrypted files")
    found = looks_like(head)
    seems = f": it looks like {found}" if found else ""
    raise UnreadableItemError(f"it is not a Parquet file{seems}")


def _facts(metadata: pq.FileMetaData, content: bytes, *, value_ranges: bool) -> FileFacts:
    rows = metadata.num_rows
    if rows < 0:
        raise UnreadableItemError("its footer is damaged: it counts less than no rows")
    known = _known_schema(metadata, content)
    # Behind a footer that is signed, because columns are encrypted, stands its signature; to ask
    # Arrow for the statistics of such columns ends the process.
    is_encrypted = len(content) - _AROUND_FOOTER - metadata.serialized_size == _SIGNATURE_BYTES
    return FileFacts(
        format=FORMAT,
        schema=known.schema,
        rows=rows,
        rows_estimate=rows,
        row_groups=metadata.num_row_groups,
        created_by=metadata.created_by or None,
        description=known.description,
        warnings=(*known.warnings, *([_ENCRYPTED_COLUMNS] if is_encrypted else ())),
        columns={}
        if is_encrypted
        else column_statistics(metadata, known, value_ranges=value_ranges),
        known=known,
    )


def _known_schema(metadata: pq.FileMetaData, content: bytes) -> KnownSchema:
    entries = metadata.metadata or {}
    description = _description(entries)
    geometries = _geometries(entries.get(b"geo"))
    # Names may hold anything, but none can make text of so many columns look like other columns.
    key = (
        metadata.num_columns,
        _PREFIXES.of(content[len(MAGIC) :]) or str(metadata.schema).partition("\n")[2],
        _arrow_key(metadata, entries),
        entries.get(SPARK_SCHEMA_KEY),
        geometries,
        description,
    )
    return _SCHEMAS.get(
        key,
        lambda: new_schema(
            _opened(content), entries, geometries=geometries, description=description
        ),
    )


def _arrow_key(metadata: pq.FileMetaData, entries: Mapping[bytes, bytes]) -> bytes | None:
    """The schema that Arrow stores, without what pandas adds on the rows of each file."""
    if b"pandas" in entries:
        return bytes(metadata.schema.to_arrow_schema().remove_metadata().serialize())
    return entries.get(_ARROW_SCHEMA_KEY)


def _opened(content: bytes) -> pq.ParquetFile:
    import pyarrow as pa
    import pyarrow.parquet as pq

    return pq.ParquetFile(pa.BufferReader(content))


def _geometries(text: bytes | None) -> frozenset[str]:
    """The columns that hold shapes, as GeoParquet notes them for the whole file."""
    if text is None:
        return frozenset()
    try:
        columns = orjson.loads(text)["columns"]
    except (ValueError, KeyError, TypeError):
        return frozenset()  # the notes are a courtesy; the schema itself is read
    return frozenset(columns) if isinstance(columns, dict) else frozenset()


def _description(entries: Mapping[bytes, bytes]) -> str | None:
    if not any(key in entries for key in _DESCRIPTION_KEYS):
        return None
    texts = (entries.get(key, b"").decode("utf-8", "replace") for key in _DESCRIPTION_KEYS)
    return next((text for text in texts if text.strip()), None)


def _reason(error: Exception) -> str:
    """Say why, without the library's own words, which may quote the file's content."""
    said = str(error)
    if "deeply nested" in said:
        return f"its schema is nested deeper than {MAX_DEPTH} levels"
    if isinstance(error, UnicodeDecodeError):
        return "its footer is damaged: a name in it is not UTF-8"
    return "its footer is damaged, or holds what Lumos does not know"
