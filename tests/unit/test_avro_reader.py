"""The Avro header reader: what it makes of every type, and what it says of damaged headers."""

from __future__ import annotations

import io
import json
import re
from typing import Any, BinaryIO, cast

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from lumos.core.errors import UnreadableItemError
from lumos.core.formats.avro import MOST_BLOCKS, canonical_avro_schema, read_avro
from lumos.core.formats.facts import FileFacts
from lumos.core.formats.reader import read_file
from lumos.core.models import Schema, TypeName


def avro_bytes(schema: Any, records: Any = (), **options: Any) -> bytes:
    sink = io.BytesIO()
    fastavro.writer(sink, schema, records, **options)
    return sink.getvalue()


def facts_of(content: bytes) -> FileFacts:
    return read_avro(io.BytesIO(content), size=len(content))


def record(*fields: Any, name: str = "r", **rest: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **rest}


def column(kind: Any) -> dict[str, Any]:
    return {"name": "c", "type": kind}


def logical(kind: str, name: str, **rest: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **rest}


FIXED = {"type": "fixed", "name": "F", "size": 16}
CASES: list[tuple[Any, str, bool]] = [
    ("null", "UNKNOWN", True),
    ("boolean", "BOOLEAN", False),
    ("int", "INT32", False),
    ("long", "INT64", False),
    ("float", "FLOAT", False),
    ("double", "DOUBLE", False),
    ("bytes", "BINARY", False),
    ("string", "STRING", False),
    ({"type": "string"}, "STRING", False),
    (["null", "long"], "INT64", True),
    (["long", "null"], "INT64", True),
    (["long"], "INT64", False),
    (["null"], "UNKNOWN", True),
    (["long", "string"], "UNION<INT64, STRING>", False),
    (["null", "long", "string"], "UNION<INT64, STRING>", True),
    (FIXED, "BINARY(16)", False),
    ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "ENUM(A, B)", False),
    ({"type": "array", "items": ["null", "int"]}, "ARRAY<INT32>", False),
    ({"type": "map", "values": "double"}, "MAP<STRING, DOUBLE>", False),
    (record({"name": "x", "type": "int"}, name="inner"), "STRUCT<x: INT32>", False),
    (logical("int", "date"), "DATE", False),
    (logical("int", "time-millis"), "TIME(ms)", False),
    (logical("long", "time-micros"), "TIME(us)", False),
    (logical("long", "timestamp-millis"), "TIMESTAMP(ms,UTC)", False),
    (logical("long", "timestamp-micros"), "TIMESTAMP(us,UTC)", False),
    (logical("long", "timestamp-nanos"), "TIMESTAMP(ns,UTC)", False),
    (logical("long", "local-timestamp-millis"), "TIMESTAMP_NTZ(ms)", False),
    (logical("long", "local-timestamp-micros"), "TIMESTAMP_NTZ(us)", False),
    (
        {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False},
        "TIMESTAMP_NTZ(us)",
        False,
    ),
    (logical("string", "uuid"), "UUID", False),
    (logical("bytes", "decimal", precision=10, scale=2), "DECIMAL(10,2)", False),
    (logical("bytes", "decimal", precision=10), "DECIMAL(10,0)", False),
    ({**FIXED, "logicalType": "decimal", "precision": 38, "scale": 9}, "DECIMAL(38,9)", False),
    ({**FIXED, "size": 12, "logicalType": "duration"}, "DURATION", False),
    ({**FIXED, "size": 16, "logicalType": "uuid"}, "UUID", False),
    ({**FIXED, "size": 8, "logicalType": "uuid"}, "BINARY(8)", False),
    ({**FIXED, "size": 8, "logicalType": "duration"}, "BINARY(8)", False),
    (logical("long", "local-timestamp-nanos"), "TIMESTAMP_NTZ(ns)", False),
    (logical("bytes", "big-decimal"), "DECIMAL", False),
    (logical("string", "acme-money"), "STRING", False),
    (logical("string", "date"), "STRING", False),
]


@pytest.mark.parametrize(("kind", "signature", "nullable"), CASES)
def test_every_avro_type_has_a_canonical_type(kind: Any, signature: str, nullable: bool) -> None:
    facts = facts_of(avro_bytes(record(column(kind))))
    (found,) = facts.schema.fields
    assert (found.signature(), found.nullable) == (signature, nullable)
    assert found.native_type
    assert facts.warnings == ()


def test_a_decimal_without_precision_is_bytes() -> None:
    schema, _, _ = canonical_avro_schema(record(column(logical("bytes", "decimal"))))
    assert schema.fields[0].type is TypeName.BINARY


def test_texts_of_records_and_fields_are_descriptions() -> None:
    inner = record({"name": "x", "type": "int", "doc": "inner"}, name="inner")
    fields = [{"name": "c", "type": inner, "doc": "Größe"}]
    facts = facts_of(avro_bytes(record(*fields, doc="All orders.")))
    assert facts.description == "All orders."
    assert facts.schema.fields[0].description == "Größe"
    assert facts.schema.fields[0].fields[0].description == "inner"


def test_a_named_type_is_found_again_in_its_namespace() -> None:
    address = record({"name": "city", "type": "string"}, name="Address")
    fields = [{"name": "home", "type": address}, {"name": "work", "type": ["null", "Address"]}]
    facts = facts_of(avro_bytes(record(*fields, name="Person", namespace="acme.people")))
    assert [field.signature() for field in facts.schema.fields] == ["STRUCT<city: STRING>"] * 2
    assert facts.schema.fields[1].native_type == "acme.people.Address"


def test_a_type_inside_itself_is_cut_and_reported() -> None:
    children = {"type": "array", "items": "Node"}
    fields = [{"name": "id", "type": "long"}, {"name": "children", "type": children}]
    facts = facts_of(avro_bytes(record(*fields, name="Node")))
    items = facts.schema.fields[1].items
    assert items is not None
    assert (items.type, items.native_type) == (TypeName.UNKNOWN, "Node")
    assert facts.warnings == (
        "children[] holds its own type Node again; it is not followed further",
    )


def test_a_schema_that_is_no_record_is_one_column() -> None:
    facts = facts_of(avro_bytes("long", [1, 2]))
    assert [(field.name, field.signature()) for field in facts.schema.fields] == [
        ("value", "INT64")
    ]


def test_the_codec_is_told() -> None:
    assert facts_of(avro_bytes(record(), codec="deflate")).compression == "deflate"
    assert facts_of(avro_bytes(record(), codec="null")).compression is None


def test_a_schema_larger_than_the_first_read_is_read_whole() -> None:
    fields = [{"name": f"column_with_a_long_name_{i:06}", "type": "int"} for i in range(5_000)]
    content = avro_bytes(record(*fields))
    assert len(content) > 128 * 1024
    assert len(facts_of(content).schema.fields) == 5_000


def test_no_record_is_ever_decoded() -> None:
    content = avro_bytes(record(column("string")), [{"c": "x" * 100}])
    end_of_header = content.index(content[-16:]) + 16
    damaged = content[:end_of_header] + b"\xff" * 50
    assert facts_of(damaged).schema == facts_of(content).schema


def nested(depth: int) -> Any:
    kind: Any = "int"
    for _ in range(depth):
        kind = {"type": "array", "items": kind}
    return kind


def header(schema: bytes) -> bytes:
    def number(value: int) -> bytes:
        value <<= 1
        parts = bytearray()
        while value > 0x7F:
            parts.append(value & 0x7F | 0x80)
            value >>= 7
        return bytes([*parts, value])

    name = b"avro.schema"
    entry = number(len(name)) + name + number(len(schema)) + schema
    return b"Obj\x01" + number(1) + entry + number(0) + bytes(16)


def test_deep_nesting_is_refused_with_the_name_of_the_column() -> None:
    assert canonical_avro_schema(record(column(nested(63))))[0].fields
    with pytest.raises(UnreadableItemError, match="nested deeper than 64 levels, in c"):
        canonical_avro_schema(record(column(nested(64))))
    bottomless = b'{"type":"array","items":' * 100_000
    with pytest.raises(UnreadableItemError, match=r"nested deeper|not JSON"):
        facts_of(header(bottomless))


def test_a_schema_that_grows_without_end_is_refused() -> None:
    kinds: Any = record({"name": "x", "type": "int"}, name="t0")
    for level in range(1, 30):
        fields = [{"name": "a", "type": kinds}, {"name": "b", "type": f"t{level - 1}"}]
        kinds = record(*fields, name=f"t{level}")
    with pytest.raises(UnreadableItemError, match="more than 100,000 fields"):
        canonical_avro_schema(kinds)


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (record(column("Nope")), "it uses a type that it does not define, in c"),
        (record(column(None)), "a type is neither a name nor an object, in c"),
        (record(column({"name": "x"})), "a type has no name, in c"),
        (record(column({"type": "array"})), "a type is neither a name nor an object, in c[]"),
        (record(column({"type": "enum", "name": "E"})), "an enum has no symbols, in c"),
        (record(column({"type": "fixed", "name": "F", "size": "x"})), "no size, in c"),
        (record(column({"type": "record", "fields": []})), "record has no name, in c"),
        ({"type": "record", "name": "r"}, "a record has no list of fields"),
        (record(1), "a field is not an object"),
        (record({"type": "int"}), "a field has no name"),
    ],
)
def test_a_schema_that_is_not_avro_says_why(schema: Any, reason: str) -> None:
    with pytest.raises(UnreadableItemError, match=re.escape(reason)):
        facts_of(header(json.dumps(schema).encode()))


def test_a_size_beyond_all_measure_is_refused() -> None:
    content = header(json.dumps(record(column({**FIXED, "size": 2**80}))).encode())
    with pytest.raises(UnreadableItemError, match="outside of what Lumos can describe"):
        read_file(io.BytesIO(content), size=len(content), name="a.avro")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"Obj\x01\x00" + bytes(16), "it holds no schema"),
        (header(b"{"), "its schema is not JSON"),
        (header(b'"int"')[:-10], "cut off inside its header"),
        (b"Obj\x01\x02\x02\xff\x02a" + bytes(30), "its header is damaged"),
        (b"Obj\x01" + b"\xff" * 40, "its header is damaged|cut off"),
    ],
)
def test_a_damaged_header_says_so(content: bytes, reason: str) -> None:
    with pytest.raises(UnreadableItemError, match=reason):
        facts_of(content)


names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
plain = st.sampled_from(["boolean", "int", "long", "float", "double", "bytes", "string"])


def _nest(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        children.map(lambda kind: {"type": "array", "items": kind}),
        children.map(lambda kind: {"type": "map", "values": kind}),
    )


kinds_of_any_shape = st.recursive(plain, _nest, max_leaves=8)
columns = st.lists(
    st.tuples(names, kinds_of_any_shape, st.booleans()), unique_by=lambda c: c[0], max_size=8
)


@given(columns)
def test_what_was_written_is_what_is_read(members: list[tuple[str, Any, bool]]) -> None:
    fields = [
        {"name": name, "type": ["null", kind] if nullable else kind}
        for name, kind, nullable in members
    ]
    facts = facts_of(avro_bytes(record(*fields)))
    assert [(field.name, field.nullable) for field in facts.schema.fields] == [
        (name, nullable) for name, _, nullable in members
    ]
    assert Schema.from_json(facts.schema.to_json()) == facts.schema


COUNTED = record({"name": "x", "type": "string"})


def many(count: int, *, interval: int = 200, codec: str = "null") -> bytes:
    rows = ({"x": f"value {number:06}"} for number in range(count))
    return avro_bytes(COUNTED, rows, sync_interval=interval, codec=codec)


@pytest.mark.parametrize("codec", ["null", "deflate"])
@pytest.mark.parametrize("count", [0, 1, 5_000, 30_000])
def test_records_are_counted_by_what_each_block_says(count: int, codec: str) -> None:
    facts = facts_of(many(count, codec=codec))
    assert (facts.rows, facts.rows_estimate) == (count, count)


class Remote(io.RawIOBase):
    """A stream of which nobody knows what moving on in it costs."""

    def __init__(self, content: bytes) -> None:
        self._inner = io.BytesIO(content)
        self.reads = 0

    @override
    def seek(self, offset: int, whence: int = 0, /) -> int:
        return self._inner.seek(offset, whence)

    @override
    def read(self, size: int = -1, /) -> bytes:
        self.reads += 1
        return self._inner.read(size)


def test_a_file_that_is_far_away_is_read_once_and_its_records_are_estimated() -> None:
    content = many(30_000)
    stream = Remote(content)
    facts = read_avro(cast("BinaryIO", stream), size=len(content))
    assert stream.reads == 1
    assert facts.rows is None
    assert facts.rows_estimate == pytest.approx(30_000, rel=0.02)


def test_a_small_file_that_is_far_away_is_counted_in_one_read() -> None:
    content = many(1_000)
    stream = Remote(content)
    assert read_avro(cast("BinaryIO", stream), size=len(content)).rows == 1_000
    assert stream.reads == 1


def test_a_file_of_very_many_blocks_is_estimated() -> None:
    content = many(MOST_BLOCKS + 500, interval=1)
    facts = facts_of(content)
    assert facts.rows is None
    assert facts.rows_estimate == pytest.approx(MOST_BLOCKS + 500, rel=0.02)


def test_a_file_that_is_cut_off_in_a_block_says_so() -> None:
    facts = facts_of(many(1_000)[:-5])
    assert facts.rows is None
    assert facts.rows_estimate
    assert facts.warnings == ("it is cut off inside a block; its records are not all counted",)


def test_of_the_beginning_of_a_file_no_records_are_counted() -> None:
    content = many(1_000)[:-5]
    facts = read_avro(io.BytesIO(content), size=len(content), whole=False)
    assert (facts.rows, facts.rows_estimate, facts.warnings) == (None, None, ())


def test_a_block_that_does_not_end_where_it_says_is_reported() -> None:
    content = bytearray(many(1_000))
    content[-3] ^= 0xFF
    last = facts_of(bytes(content))
    content[len(content) // 2 : len(content) // 2 + 40] = bytes(40)
    assert facts_of(bytes(content)).rows is None
    assert last.rows == 1_000, "nothing follows the last mark, so nothing depends on it"


def test_the_same_schema_is_built_once() -> None:
    assert facts_of(many(1)).schema is facts_of(many(2)).schema


@pytest.mark.parametrize(
    ("default", "told"),
    [
        (None, "null"),
        ("DE", '"DE"'),
        ("", '""'),
        (0, "0"),
        (2**70, str(2**70)),
        ([], "[]"),
        ({"b": 1, "a": "é"}, '{"a": "é", "b": 1}'),
        ("\ud800", '"?"'),
    ],
)
def test_a_default_is_told_as_the_schema_spells_it(default: object, told: str) -> None:
    fields = [{"name": "c", "type": "string", "default": default}, {"name": "d", "type": "int"}]
    schema, _, _ = canonical_avro_schema(record(*fields))
    assert [field.default for field in schema.fields] == [told, None]
