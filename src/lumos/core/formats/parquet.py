"""Reads the footer of a Parquet file: schema, counts and what it tells of columns, never a row.

All of it is at the end of the file, so one read of the end is enough wherever the footer fits it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, BinaryIO, Final

from lumos.core.errors import UnreadableItemError
from lumos.core.formats.arrow_types import canonical_schema
from lumos.core.formats.facts import FileFacts
from lumos.core.formats.known_schemas import KnownSchema, KnownSchemas
from lumos.core.formats.magic import HEAD_BYTES, looks_like
from lumos.core.formats.parquet_statistics import column_statistics
from lumos.core.formats.tails import Tail
from lumos.core.formats.type_parts import MAX_DEPTH
from lumos.core.models import Field, FieldType, Schema, TypeName

if TYPE_CHECKING:
    import pyarrow.parquet as pq

FORMAT: Final = "parquet"

MAGIC: Final = b"PAR1"
ENCRYPTED_MAGIC: Final = b"PARE"
_TRAILER_BYTES = 8
_SMALLEST_FILE = len(MAGIC) + _TRAILER_BYTES
_DESCRIPTION_KEYS = (b"description", b"comment")
_ARROW_SCHEMA_KEY = b"ARROW:schema"
_SPARK_SCHEMA_KEY = b"org.apache.spark.sql.parquet.row.metadata"
_SCHEMAS = KnownSchemas()


def read_parquet(
    stream: BinaryIO, *, size: int, tail: Tail | None = None, value_ranges: bool = False
) -> FileFacts:
    """Return the facts of an open Parquet file by reading its end.

    Args:
        stream: the file, open for reading bytes at any position.
        size: its length in bytes.
        tail: its end, where that has been read already.
        value_ranges: whether to tell the smallest and largest value of columns without text.

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
    """Tell whether a file ends as Parquet does."""
    return tail.endswith(MAGIC)


def facts_of_footer(footer: bytes, *, value_ranges: bool = False) -> FileFacts:
    """Return the facts that the footer of a Parquet file holds, given without its trailer.

    Raises:
        UnreadableItemError: the footer is damaged or not supported; the reason holds no data.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    trailer = len(footer).to_bytes(4, "little") + MAGIC
    try:
        with pa.BufferReader(MAGIC + footer + trailer) as reader:
            return _facts(pq.ParquetFile(reader), value_ranges)
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


def _facts(file: pq.ParquetFile, value_ranges: bool) -> FileFacts:
    metadata = file.metadata
    if metadata.num_rows < 0:
        raise UnreadableItemError("its footer is damaged: it counts less than no rows")
    known = _known_schema(file)
    return FileFacts(
        format=FORMAT,
        schema=known.schema,
        rows=metadata.num_rows,
        rows_estimate=metadata.num_rows,
        row_groups=metadata.num_row_groups,
        created_by=metadata.created_by or None,
        description=known.description,
        warnings=known.warnings,
        columns=column_statistics(metadata, known, value_ranges=value_ranges),
        known=known,
    )


def _known_schema(file: pq.ParquetFile) -> KnownSchema:
    metadata = file.metadata
    entries = metadata.metadata or {}
    description = _description(entries)
    # Names may hold anything, but none can make text of so many columns look like other columns.
    key = (
        metadata.num_columns,
        str(metadata.schema).partition("\n")[2],
        _arrow_key(file, entries),
        entries.get(_SPARK_SCHEMA_KEY),
        description,
    )
    return _SCHEMAS.get(key, lambda: _new_schema(file, entries, description))


def _arrow_key(file: pq.ParquetFile, entries: Mapping[bytes, bytes]) -> bytes | None:
    """What Arrow keeps of its own schema, without what pandas adds on the rows of each file."""
    if b"pandas" in entries:
        return bytes(file.schema_arrow.remove_metadata().serialize())
    return entries.get(_ARROW_SCHEMA_KEY)


def _new_schema(
    file: pq.ParquetFile, entries: Mapping[bytes, bytes], description: str | None
) -> KnownSchema:
    schema, warnings = canonical_schema(file.schema_arrow)
    instants = _int96_columns(file.metadata)
    if instants:
        schema = _with_instants(schema, instants)
    comments = _spark_comments(entries)
    if comments:
        schema = schema.model_copy(update={"fields": _with_comments(schema.fields, comments)})
    return KnownSchema.of(schema, warnings, description=description)


def _int96_columns(metadata: pq.FileMetaData) -> frozenset[int]:
    """The positions of leaf columns that hold INT96 times.

    Arrow reads them as local times, but Spark, Hive and Impala write instants this way.
    """
    columns = (metadata.schema.column(i) for i in range(metadata.num_columns))
    return frozenset(i for i, column in enumerate(columns) if column.physical_type == "INT96")


def _with_instants(schema: Schema, positions: frozenset[int]) -> Schema:
    leaves = iter(range(1_000_000_000))
    fields = tuple(_instant(field, positions, leaves) for field in schema.fields)
    return schema.model_copy(update={"fields": fields})


def _instant(node: FieldType, positions: frozenset[int], leaves: Iterator[int]) -> FieldType:
    """Return the node with its INT96 leaves as instants; leaves are counted depth first."""
    update: dict[str, object] = {}
    if node.type is TypeName.STRUCT:
        update["fields"] = tuple(_instant(field, positions, leaves) for field in node.fields)
    for name in ("items", "key", "value"):
        child = getattr(node, name)
        if child is not None:
            update[name] = _instant(child, positions, leaves)
    is_leaf = not update
    if is_leaf and next(leaves) in positions and node.type is TypeName.TIMESTAMP_NTZ:
        update = {"type": TypeName.TIMESTAMP, "native_type": "int96"}
    return node.model_copy(update=update) if update else node


def _spark_comments(entries: Mapping[bytes, bytes]) -> Mapping[str, object]:
    """The schema that Spark keeps beside Parquet's own, which alone has the columns' comments."""
    text = entries.get(_SPARK_SCHEMA_KEY)
    if text is None or b'"comment"' not in text:
        return {}
    try:
        return _members(json.loads(text))
    except (ValueError, RecursionError):
        return {}  # comments are a courtesy; the schema itself has been read


def _members(spark_type: object) -> dict[str, object]:
    fields = spark_type.get("fields") if isinstance(spark_type, dict) else None
    if not isinstance(fields, list):
        return {}
    return {str(field.get("name")): field for field in fields if isinstance(field, dict)}


def _with_comments(fields: tuple[Field, ...], comments: Mapping[str, object]) -> tuple[Field, ...]:
    return tuple(_with_comment(field, comments.get(field.name)) for field in fields)


def _with_comment(field: Field, spark_field: object) -> Field:
    if not isinstance(spark_field, dict):
        return field
    update: dict[str, object] = {}
    metadata = spark_field.get("metadata")
    comment = metadata.get("comment") if isinstance(metadata, dict) else None
    if isinstance(comment, str) and comment.strip() and field.description is None:
        update["description"] = comment
    members = _members(spark_field.get("type"))
    if members:
        update["fields"] = _with_comments(field.fields, members)
    return field.model_copy(update=update) if update else field


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
    return f"its footer is damaged or not supported ({type(error).__name__})"
