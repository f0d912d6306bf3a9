"""Reads what Arrow files, streams and Feather files say of themselves."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, BinaryIO, Final

from lumos.core.errors import UnreadableItemError
from lumos.core.formats.arrow_types import canonical_schema
from lumos.core.formats.facts import FileFacts
from lumos.core.formats.file_names import ARROW
from lumos.core.formats.known_schemas import KnownSchema, KnownSchemas

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT: Final = ARROW
MAGIC: Final = b"ARROW1"
OLD_MAGIC: Final = b"FEA1"
STREAM_MAGIC: Final = b"\xff\xff\xff\xff"

MOST_BATCHES: Final = 64
"""Rows are counted where no more batches than this tell theirs."""
LARGEST_OLD_FILE: Final = 16 * 1024 * 1024
"""Feather files of version 1 can only be read whole."""

_LARGEST_METADATA = 16 * 1024 * 1024
_PREFIX_BYTES = 8
_SCHEMAS = KnownSchemas()


def read_arrow(stream: BinaryIO, *, size: int) -> FileFacts:
    """Return the facts of an open Arrow file, Arrow stream or Feather file.

    The rows of a file are told by its batches; those of a stream only where all of it is at hand.

    Raises:
        UnreadableItemError: the file is damaged; the reason holds no data.
    """
    import pyarrow as pa

    stream.seek(0)
    head = stream.read(_PREFIX_BYTES)
    stream.seek(0)
    try:
        if head.startswith(MAGIC):
            return _facts_of_file(stream, size)
        if head.startswith(OLD_MAGIC):
            return _facts_of_old_file(stream, size)
        return _facts_of_stream(stream, head)
    except (pa.ArrowException, OSError, ValueError, TypeError, OverflowError, KeyError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise UnreadableItemError("its Arrow metadata is damaged or cut off") from error


def _facts_of_file(stream: BinaryIO, size: int) -> FileFacts:
    import pyarrow as pa

    if size < 2 * len(MAGIC) + 4:
        raise UnreadableItemError(f"the file is cut off: it has {size} bytes")
    with pa.ipc.open_file(pa.PythonFile(stream, mode="r")) as reader:
        batches = reader.num_record_batches
        rows = reader.count_rows() if batches <= MOST_BATCHES else None
        return _facts(reader.schema, rows, batches=batches, layout="file")


def _facts_of_stream(stream: BinaryIO, head: bytes) -> FileFacts:
    import pyarrow as pa

    length = int.from_bytes(head[4:], "little", signed=True)
    if not 0 < length <= _LARGEST_METADATA:
        raise UnreadableItemError("its Arrow metadata is damaged or cut off")
    content = stream.read(_PREFIX_BYTES + length)
    schema = pa.ipc.read_schema(pa.py_buffer(content))
    return _facts(schema, None, batches=None, layout="stream")


def _facts_of_old_file(stream: BinaryIO, size: int) -> FileFacts:
    from pyarrow import feather

    if size > LARGEST_OLD_FILE:
        raise UnreadableItemError(
            "it is a Feather file of version 1, which can only be read whole",
            hint="write it anew as version 2, which is the Arrow format",
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = feather.read_table(stream, use_threads=False, memory_map=False)
    return _facts(table.schema, table.num_rows, batches=None, layout="feather 1")


def _facts(schema: pa.Schema, rows: int | None, *, batches: int | None, layout: str) -> FileFacts:
    serialized = schema.serialize().to_pybytes()
    known = _SCHEMAS.get(serialized, lambda: KnownSchema.of(*canonical_schema(schema)))
    return FileFacts(
        format=FORMAT,
        schema=known.schema,
        rows=rows,
        rows_estimate=rows,
        row_groups=batches,
        warnings=known.warnings,
        properties={"layout": layout},
        known=known,
    )
