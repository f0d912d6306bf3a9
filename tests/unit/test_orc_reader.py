"""The ORC tail reader: what was written is what is read, and no size in it is trusted."""

from __future__ import annotations

import io
import struct

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import orc

from lumos.core.errors import UnreadableItemError
from lumos.core.formats.arrow_types import canonical_schema
from lumos.core.formats.facts import FileFacts
from lumos.core.formats.orc import read_orc
from lumos.core.models import Schema

TABLE = pa.table({"id": [1, 2], "name": ["a", None]})
KEPT = [
    pa.bool_(),
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.string(),
    pa.binary(),
    pa.date32(),
    pa.decimal128(12, 3),
    pa.timestamp("ns"),
    pa.timestamp("ns", tz="UTC"),
]
"""Types that ORC keeps as Arrow has them."""


def orc_bytes(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    orc.write_table(table, sink, compression="ZSTD")
    return sink.getvalue()


def facts_of(content: bytes) -> FileFacts:
    return read_orc(io.BytesIO(content), size=len(content))


def test_an_orc_file_that_claims_huge_blocks_is_refused() -> None:
    postscript = b"\x08\x10\x10\x01\x18\xff\xff\xff\xff\x0f\x82\xf4\x03\x03ORC"
    content = b"ORC" + bytes(64) + postscript + struct.pack("B", len(postscript))
    with pytest.raises(UnreadableItemError, match="its blocks are too large"):
        facts_of(content)


def test_an_orc_file_tells_rows_stripes_writer_and_compression() -> None:
    facts = facts_of(orc_bytes(TABLE))
    assert (facts.rows, facts.rows_estimate, facts.row_groups) == (2, 2, 1)
    assert facts.compression == "zstd"
    assert facts.created_by is not None
    assert facts.created_by.startswith("ORC C++")


def test_a_file_that_claims_a_footer_longer_than_itself_is_refused() -> None:
    postscript = b"\x08\xff\xff\x03\x10\x00\x82\xf4\x03\x03ORC"
    content = b"ORC" + bytes(64) + postscript + struct.pack("B", len(postscript))
    with pytest.raises(UnreadableItemError, match="the length it gives does not fit"):
        facts_of(content)


def test_a_file_cut_off_anywhere_says_so() -> None:
    content = orc_bytes(TABLE)
    for length in range(3, len(content)):
        with pytest.raises(UnreadableItemError):
            facts_of(content[:length])


def _nest(children: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    names = st.sampled_from(["x", "y", "z"])
    members = st.lists(st.tuples(names, children), min_size=1, max_size=3, unique_by=lambda m: m[0])
    return (
        children.map(pa.list_)
        | children.map(lambda kind: pa.map_(pa.string(), kind))
        | members.map(pa.struct)
    )


kinds = st.recursive(st.sampled_from(KEPT), _nest, max_leaves=6)


@given(st.dictionaries(st.text("abcdefgh", min_size=1, max_size=4), kinds, min_size=1, max_size=6))
def test_what_was_written_is_what_is_read(columns: dict[str, pa.DataType]) -> None:
    schema = pa.schema(list(columns.items()))
    facts = facts_of(orc_bytes(schema.empty_table()))
    expected, _ = canonical_schema(schema)
    assert signatures(facts.schema) == signatures(expected)
    assert facts.rows == 0


def signatures(schema: Schema) -> list[tuple[str, str]]:
    return [(field.name, field.signature()) for field in schema.fields]
