"""Reads the end of an ORC file: schema, counts and column statistics, never a row."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, Final, cast

from lumos.core.errors import UnreadableItemError
from lumos.core.formats.arrow_types import canonical_schema
from lumos.core.formats.facts import FileFacts
from lumos.core.formats.known_schemas import KnownSchema, KnownSchemas
from lumos.core.formats.orc_footer import MAGIC, Footer, footer_of, postscript_of
from lumos.core.formats.orc_statistics import column_statistics
from lumos.core.formats.orc_types import canonical_orc_schema
from lumos.core.formats.protobuf_walk import DamagedMessageError
from lumos.core.formats.tails import Tail

if TYPE_CHECKING:
    import io

FORMAT: Final = "orc"
_LEFT_TO_ARROW: Final = ("lzo", "brotli")
_SCHEMAS = KnownSchemas()

__all__ = ["FORMAT", "MAGIC", "is_end", "read_orc"]


def is_end(tail: bytes) -> bool:
    """Return whether a file ends as ORC does: a postscript, and its length."""
    return tail[-1 - len(MAGIC) : -1] == MAGIC


def read_orc(
    stream: BinaryIO, *, size: int, tail: Tail | None = None, value_ranges: bool = False
) -> FileFacts:
    """Return the facts of an open ORC file by reading its end.

    Args:
        stream: the file, open for reading bytes at any position.
        size: its length in bytes.
        tail: its end, where that has been read already.
        value_ranges: whether to return the smallest and largest value of columns without text.

    Raises:
        UnreadableItemError: the file is not readable ORC; the reason holds no data.
    """
    tail = tail or Tail.of(stream, size=size)
    postscript = postscript_of(tail)
    if postscript.compression in _LEFT_TO_ARROW:
        return _facts_by_arrow(stream, postscript.compression)
    footer = footer_of(tail, postscript)
    known = _SCHEMAS.get(footer.types, lambda: _new_schema(footer))
    try:
        columns = column_statistics(
            footer.statistics, known, rows=footer.rows, value_ranges=value_ranges
        )
    except DamagedMessageError:
        raise UnreadableItemError("its footer is damaged: its statistics cannot be read") from None
    return FileFacts(
        format=FORMAT,
        schema=known.schema,
        rows=footer.rows,
        rows_estimate=footer.rows,
        row_groups=footer.stripes,
        created_by=footer.created_by,
        warnings=known.warnings,
        compression=None if postscript.compression == "none" else postscript.compression,
        columns=columns,
        known=known,
    )


def _new_schema(footer: Footer) -> KnownSchema:
    schema, warnings, places = canonical_orc_schema(footer.types)
    return KnownSchema.of(schema, warnings, places=places)


def _facts_by_arrow(stream: BinaryIO, compression: str) -> FileFacts:
    """Read a file whose footer is packed in a rare way, which Arrow alone can unpack."""
    import pyarrow as pa
    from pyarrow import orc

    stream.seek(0)
    try:
        file = orc.ORCFile(pa.PythonFile(cast("io.IOBase", stream), mode="r"))
        schema, warnings = canonical_schema(file.schema)
        rows, stripes, writer = file.nrows, file.nstripes, file.software_version
    except (pa.ArrowException, OSError, ValueError, TypeError, OverflowError, LookupError) as error:
        reason = "its footer is damaged, or holds what Lumos does not know"
        raise UnreadableItemError(reason) from error
    if rows < 0:
        raise UnreadableItemError("its footer is damaged: it counts less than no rows")
    return FileFacts(
        format=FORMAT,
        schema=schema,
        rows=rows,
        rows_estimate=rows,
        row_groups=stripes,
        created_by=writer or None,
        warnings=warnings,
        compression=compression,
    )
