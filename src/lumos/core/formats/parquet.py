"""Reads the footer of a Parquet file: schema and counts, never a row or a column statistic.

Only the footer's own schema and totals are asked for. The metadata of column chunks carries
minimum and maximum values of the data, and reading it from a damaged file can end the process.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, BinaryIO, Final

from lumos.core.errors import UnreadableItemError
from lumos.core.formats.arrow_types import canonical_schema
from lumos.core.formats.facts import FileFacts
from lumos.core.formats.magic import HEAD_BYTES, looks_like
from lumos.core.formats.type_parts import MAX_DEPTH
from lumos.core.models import Field, FieldType, Schema, TypeName

if TYPE_CHECKING:
    import pyarrow.parquet as pq

FORMAT: Final = "parquet"

MAGIC: Final = b"PAR1"
_ENCRYPTED_MAGIC = b"PARE"
_TRAILER_BYTES = 8
_SMALLEST_FILE = len(MAGIC) + _TRAILER_BYTES
_TAIL_BYTES = 64 * 1024
_DESCRIPTION_KEYS = (b"description", b"comment")
_SPARK_SCHEMA_KEY = b"org.apache.spark.sql.parquet.row.metadata"


def read_parquet(stream: BinaryIO, *, size: int) -> FileFacts:
    """Return the facts of an open Parquet file by reading its first bytes and its footer.

    Args:
        stream: the file, open for reading bytes at any position.
        size: its length in bytes.

    Raises:
        UnreadableItemError: the file is not readable Parquet; the reason holds no data.
    """
    try:
        footer = _footer(stream, size)
    except OSError as error:
        raise UnreadableItemError(
            f"it cannot be read: {error.strerror or type(error).__name__}", retryable=True
        ) from error
    return facts_of_footer(footer)


def facts_of_footer(footer: bytes) -> FileFacts:
    """Return the facts that the footer of a Parquet file holds, given without its trailer.

    Raises:
        UnreadableItemError: the footer is damaged or not supported; the reason holds no data.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    trailer = len(footer).to_bytes(4, "little") + MAGIC
    try:
        with pa.BufferReader(MAGIC + footer + trailer) as reader:
            return _facts(pq.ParquetFile(reader))
    except (pa.ArrowException, OSError, ValueError, TypeError, OverflowError, KeyError) as error:
        raise UnreadableItemError(_reason(error)) from error


def _footer(stream: BinaryIO, size: int) -> bytes:
    head = stream.read(min(HEAD_BYTES, size))
    if size == 0:
        raise UnreadableItemError("the file is empty")
    _require_magic(head)
    if size < _SMALLEST_FILE:
        raise UnreadableItemError(f"the file is cut off: it has {size} bytes")
    stream.seek(max(0, size - _TAIL_BYTES))
    tail = stream.read(_TAIL_BYTES)
    if tail[-len(_ENCRYPTED_MAGIC) :] == _ENCRYPTED_MAGIC:
        raise UnreadableItemError("its footer is encrypted", hint="Lumos reads no encrypted files")
    if tail[-len(MAGIC) :] != MAGIC:
        raise UnreadableItemError("the file is cut off: it has no Parquet footer at its end")
    length = int.from_bytes(tail[-_TRAILER_BYTES : -len(MAGIC)], "little")
    if not 0 < length <= size - _SMALLEST_FILE:
        raise UnreadableItemError("its footer is damaged: the length it gives does not fit")
    if length > len(tail) - _TRAILER_BYTES:
        stream.seek(size - _TRAILER_BYTES - length)
        tail = stream.read(length + _TRAILER_BYTES)
    footer = tail[-_TRAILER_BYTES - length : -_TRAILER_BYTES]
    if len(footer) != length:
        raise UnreadableItemError("the file changed while it was read", retryable=True)
    return footer


def _require_magic(head: bytes) -> None:
    if head.startswith(MAGIC):
        return
    if head.startswith(_ENCRYPTED_MAGIC):
        raise UnreadableItemError("its footer is encrypted", hint="Lumos reads no encrypted files")
    found = looks_like(head)
    seems = f": it looks like {found}" if found else ""
    raise UnreadableItemError(f"it is not a Parquet file{seems}")


def _facts(file: pq.ParquetFile) -> FileFacts:
    metadata = file.metadata
    if metadata.num_rows < 0:
        raise UnreadableItemError("its footer is damaged: it counts less than no rows")
    schema, warnings = canonical_schema(file.schema_arrow)
    entries = metadata.metadata or {}
    instants = _int96_columns(metadata)
    if instants:
        schema = _with_instants(schema, instants)
    comments = _spark_comments(entries)
    if comments:
        schema = schema.model_copy(update={"fields": _with_comments(schema.fields, comments)})
    return FileFacts(
        format=FORMAT,
        schema=schema,
        rows=metadata.num_rows,
        rows_estimate=metadata.num_rows,
        row_groups=metadata.num_row_groups,
        created_by=metadata.created_by or None,
        description=_description(entries),
        warnings=warnings,
    )


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
