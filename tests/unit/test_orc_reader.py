"""The ORC tail reader: what was written is what is read, and no size in it is trusted."""

from __future__ import annotations

import io
import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyorc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import orc
from pyorc import typedescription as orc_types

from lumos.core.errors import UnreadableItemError
from lumos.core.formats.arrow_types import canonical_schema
from lumos.core.formats.facts import FileFacts
from lumos.core.formats.orc import read_orc
from lumos.core.formats.orc_types import canonical_orc_schema
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


def pyorc_bytes(kind: Any, *rows: Any, **options: Any) -> bytes:
    sink = io.BytesIO()
    with pyorc.Writer(sink, kind, **options) as writer:
        writer.writerows(rows)
    return sink.getvalue()


SPELLED = (
    "struct<a:varchar(10),b:char(3),c:timestamp,d:timestamp with local time zone,"
    "e:uniontype<int,string>,f:decimal(10,2),g:array<map<string,struct<x:tinyint>>>>"
)


def test_lengths_unions_and_both_kinds_of_timestamp_are_kept() -> None:
    fields = facts_of(pyorc_bytes(SPELLED)).schema.fields
    assert [(field.signature(), field.native_type) for field in fields] == [
        ("STRING(10)", "varchar(10)"),
        ("STRING(3)", "char(3)"),
        ("TIMESTAMP_NTZ(ns)", "timestamp"),
        ("TIMESTAMP(ns,UTC)", "timestamp with local time zone"),
        ("UNION<INT32, STRING>", "uniontype"),
        ("DECIMAL(10,2)", "decimal(10,2)"),
        ("ARRAY<MAP<STRING, STRUCT<x: INT8>>>", "array"),
    ]
    assert all(field.nullable for field in fields)


@pytest.mark.parametrize(
    ("kind", "attributes", "signature"),
    [
        ("timestamp", {"spark.sql.catalyst.type": "timestamp"}, "TIMESTAMP(ns,UTC)"),
        ("timestamp", {"spark.sql.catalyst.type": "timestamp_ntz"}, "TIMESTAMP_NTZ(ns)"),
        ("bigint", {"spark.sql.catalyst.type": "interval day to second"}, "DURATION(us)"),
        ("int", {"spark.sql.catalyst.type": "interval year to month"}, "DURATION"),
        ("bigint", {"iceberg.long-type": "TIME"}, "TIME(us)"),
        ("bigint", {"iceberg.long-type": "LONG"}, "INT64"),
        ("binary", {"iceberg.binary-type": "UUID"}, "UUID"),
        ("binary", {"iceberg.binary-type": "FIXED", "iceberg.length": "7"}, "BINARY(7)"),
    ],
)
def test_what_writers_note_on_a_type_decides_what_it_means(
    kind: str, attributes: dict[str, str], signature: str
) -> None:
    described = TYPES[kind]()
    described.set_attributes(attributes)
    (field,) = facts_of(pyorc_bytes(orc_types.Struct(c=described))).schema.fields
    assert field.signature() == signature


TYPES: dict[str, Any] = {
    "timestamp": orc_types.Timestamp,
    "bigint": orc_types.BigInt,
    "int": orc_types.Int,
    "binary": orc_types.Binary,
}


def test_descriptions_and_required_columns_are_read_from_attributes() -> None:
    struct_type = orc_types.Struct(a=orc_types.Int(), b=orc_types.Array(orc_types.Int()))
    struct_type["a"].set_attributes({"comment": "the key", "iceberg.required": "true"})
    one, two = facts_of(pyorc_bytes(struct_type)).schema.fields
    assert (one.description, one.nullable) == ("the key", False)
    assert (two.description, two.nullable) == (None, True)


@pytest.mark.parametrize("codec", ["NONE", "ZLIB", "SNAPPY", "LZ4", "ZSTD"])
def test_a_footer_is_read_however_it_is_packed(codec: str) -> None:
    columns = ",".join(f"column_with_a_long_name_{number:04}:int" for number in range(600))
    kind = pyorc.CompressionKind[codec]
    content = pyorc_bytes(f"struct<{columns}>", compression=kind, compression_block_size=65_536)
    facts = facts_of(content)
    assert len(facts.schema.fields) == 600
    assert facts.compression == (None if codec == "NONE" else codec.lower())


def test_rows_that_are_no_structs_are_one_column() -> None:
    (field,) = facts_of(pyorc_bytes("int", 1, 2)).schema.fields
    assert (field.name, field.signature()) == ("value", "INT32")


def test_columns_of_one_name_are_told_apart() -> None:
    facts = facts_of(pyorc_bytes("struct<a:int,b:struct<c:int>,`a.b`:string>"))
    assert list(facts.columns) == ["a", "b.c", "`a.b`"]


ROWS = [
    (1, "data-value-4711", 1.5, Decimal("2.50"), date(2024, 1, 2), True, [1, None]),
    (-7, None, None, Decimal("-1.00"), date(1969, 12, 31), False, None),
    (None, None, 2.5, None, None, None, []),
]
RANGED = "struct<i:int,s:string,d:double,p:decimal(9,2),day:date,ok:boolean,l:array<int>>"


def test_statistics_of_columns_tell_nulls_and_no_values() -> None:
    facts = facts_of(pyorc_bytes(RANGED, *ROWS))
    assert {path: column[:2] for path, column in facts.columns.items()} == {
        "i": (3, 1),
        "s": (3, 2),
        "d": (3, 1),
        "p": (3, 1),
        "day": (3, 1),
        "ok": (3, 1),
    }
    assert all(column[4:] == (None, None) for column in facts.columns.values())


def test_ranges_are_told_where_they_are_asked_for_and_never_of_text() -> None:
    content = pyorc_bytes(RANGED, *ROWS)
    facts = read_orc(io.BytesIO(content), size=len(content), value_ranges=True)
    assert {path: column[4:] for path, column in facts.columns.items()} == {
        "i": (-7, 1),
        "s": (None, None),
        "d": (1.5, 2.5),
        "p": ("-1", "2.5"),
        "day": ("1969-12-31", "2024-01-02"),
        "ok": (False, True),
        "l[]": (1, 1),
    }
    assert "data-value" not in repr(facts)


def test_times_in_ranges_have_microseconds() -> None:
    moments = [datetime(2024, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC), datetime(1965, 1, 1, tzinfo=UTC)]
    rows = [(moment, moment) for moment in moments]
    content = pyorc_bytes("struct<a:timestamp,b:timestamp with local time zone>", *rows)
    facts = read_orc(io.BytesIO(content), size=len(content), value_ranges=True)
    assert [column[4:] for column in facts.columns.values()] == [
        ("1965-01-01T00:00:00.000000", "2024-01-02T03:04:05.678901"),
        ("1965-01-01T00:00:00.000000Z", "2024-01-02T03:04:05.678901Z"),
    ]


@pytest.mark.parametrize(
    ("types", "reason"),
    [
        ([], "it holds no types"),
        ([b"\x08\x0c\x12\x01\x00\x1a\x01a"], "no place in the tree"),
        ([b"\x08\x0c\x12\x01\x01\x1a\x01a"], "no place in the tree"),
        ([b"\x08\x0c\x12\x01\x01", b"\x08\x03"], "more names than members, or fewer"),
        ([b"\x08\x0c\x12\x01\x01\x1a\x01\xff", b"\x08\x03"], "cannot be read"),
        ([b"\x08"], "cannot be read"),
        ([b"\x0f\x01"], "cannot be read"),
        ([b"\x12\x01\x80"], "cannot be read"),
        ([b"\x08" + b"\xff" * 11], "cannot be read"),
        ([b"\x08\x0a\x12\x00"], "no place in the tree"),
    ],
)
def test_types_that_make_no_tree_are_refused(types: list[bytes], reason: str) -> None:
    with pytest.raises(UnreadableItemError, match=reason):
        canonical_orc_schema(types)


def test_a_type_that_orc_has_learned_since_is_unknown_and_named() -> None:
    schema, _, _ = canonical_orc_schema([b"\x08\x63"])
    assert (schema.fields[0].signature(), schema.fields[0].native_type) == ("UNKNOWN", "type 99")
