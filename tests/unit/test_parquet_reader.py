"""The Parquet footer reader: what it tells of good files, and what it says of all others."""

from __future__ import annotations

import io
import json
import os
import random
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import orc
from typing_extensions import override

from lumos.core.errors import UnreadableItemError
from lumos.core.formats.facts import FileFacts
from lumos.core.formats.magic import looks_like
from lumos.core.formats.parquet import read_parquet
from lumos.core.formats.reader import read_file
from lumos.core.formats.sandbox import FileItem, read_files

FULL_SIZE = os.environ.get("LUMOS_TEST_FULL") == "1"
VALUE = "data-value-4711"


def parquet_bytes(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def facts_of(content: bytes) -> FileFacts:
    return read_parquet(io.BytesIO(content), size=len(content))


ORDERS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "customer": pa.array([VALUE, None, "b"]),
        "total": pa.array([Decimal("1.50"), None, None], pa.decimal128(10, 2)),
    }
)


def test_rows_groups_schema_and_writer_come_from_the_footer() -> None:
    facts = facts_of(parquet_bytes(ORDERS, row_group_size=2))
    assert (facts.rows, facts.row_groups, facts.format) == (3, 2, "parquet")
    assert [field.signature() for field in facts.schema.fields] == [
        "INT64",
        "STRING",
        "DECIMAL(10,2)",
    ]
    assert facts.created_by is not None
    assert "parquet" in facts.created_by
    assert facts.warnings == ()


def test_no_value_of_the_data_is_in_the_facts() -> None:
    content = parquet_bytes(ORDERS, write_statistics=True)
    assert VALUE.encode() in content
    assert VALUE not in repr(facts_of(content))


def test_a_file_without_rows_is_read() -> None:
    assert facts_of(parquet_bytes(ORDERS.slice(0, 0))).rows == 0


def test_a_footer_longer_than_the_first_read_is_read_whole() -> None:
    wide = pa.table({f"column_with_a_long_name_{i:06}": [i] for i in range(2_000)})
    content = parquet_bytes(wide)
    assert int.from_bytes(content[-8:-4], "little") > 64 * 1024
    assert len(facts_of(content).schema.fields) == 2_000


def test_logical_types_are_read_without_arrows_own_schema() -> None:
    table = pa.table(
        {
            "u": pa.array([b"0" * 16], pa.uuid()),
            "j": pa.array(["{}"], pa.json_()),
            "t": pa.array([1], pa.timestamp("us", tz="UTC")),
            "n": pa.array([1], pa.timestamp("ms")),
        }
    )
    facts = facts_of(parquet_bytes(table, store_schema=False))
    assert [field.signature() for field in facts.schema.fields] == [
        "UUID",
        "JSON",
        "TIMESTAMP(us,UTC)",
        "TIMESTAMP_NTZ(ms)",
    ]


def test_int96_times_are_instants_at_any_depth() -> None:
    moment = pa.timestamp("ns")
    table = pa.table(
        {
            "first": pa.array([1]),
            "at": pa.array([1], moment),
            "nested": pa.array(
                [{"x": "a", "times": [1], "by": [("k", 1)]}],
                pa.struct(
                    [
                        ("x", pa.string()),
                        ("times", pa.list_(moment)),
                        ("by", pa.map_(pa.string(), moment)),
                    ]
                ),
            ),
        }
    )
    facts = facts_of(parquet_bytes(table, use_deprecated_int96_timestamps=True))
    assert [field.signature() for field in facts.schema.fields] == [
        "INT64",
        "TIMESTAMP(ns)",
        "STRUCT<x: STRING, times: ARRAY<TIMESTAMP(ns)>, by: MAP<STRING, TIMESTAMP(ns)>>",
    ]
    assert facts.schema.fields[1].native_type == "int96"


def test_descriptions_of_file_and_columns_are_kept() -> None:
    column = pa.field("id", pa.int64(), metadata={"comment": "the key"})
    schema = pa.schema([column], metadata={"description": "orders of the shop"})
    facts = facts_of(parquet_bytes(pa.table([pa.array([1])], schema=schema)))
    assert facts.description == "orders of the shop"
    assert facts.schema.fields[0].description == "the key"


def spark_schema(**comments: str) -> bytes:
    inner = {"name": "b", "type": "integer", "metadata": {"comment": comments["b"]}}
    struct = {"type": "struct", "fields": [inner]}
    outer = {"name": "a", "type": struct, "metadata": {"comment": comments["a"]}}
    return json.dumps({"type": "struct", "fields": [outer]}).encode()


NESTED_TABLE = pa.table({"a": pa.array([{"b": 1}], pa.struct([("b", pa.int32())]))})
SPARK_KEY = b"org.apache.spark.sql.parquet.row.metadata"


def test_comments_that_spark_keeps_beside_the_schema_are_found() -> None:
    table = NESTED_TABLE.replace_schema_metadata({SPARK_KEY: spark_schema(a="outer", b="inner")})
    (column,) = facts_of(parquet_bytes(table)).schema.fields
    assert (column.description, column.fields[0].description) == ("outer", "inner")


def test_what_spark_means_by_a_column_is_found_beside_the_schema() -> None:
    metadata: dict[str, dict[str, str]] = {"v": {"__CHAR_VARCHAR_TYPE_STRING": "varchar(9)"}}
    kinds = {"c": "char(3)", "v": "string", "d": "interval day to second", "m": "interval month"}
    fields = [
        {"name": name, "type": kind, "metadata": metadata.get(name, {})}
        for name, kind in kinds.items()
    ]
    text = json.dumps({"type": "struct", "fields": fields}).encode()
    table = pa.table(
        {
            "c": ["abc"],
            "v": ["x"],
            "d": pa.array([1], pa.int64()),
            "m": pa.array([1], pa.int32()),
        }
    )
    facts = facts_of(parquet_bytes(table.replace_schema_metadata({SPARK_KEY: text})))
    assert [field.signature() for field in facts.schema.fields] == [
        "STRING(3)",
        "STRING(9)",
        "DURATION(us)",
        "DURATION",
    ]


@pytest.mark.parametrize("extra", [b"", b"{", b"[]", b'{"columns": []}'])
def test_shapes_that_geoparquet_notes_are_geometries(extra: bytes) -> None:
    table = pa.table({"id": [1], "shape": [b"wkb"]})
    noted = json.dumps({"version": "1.1.0", "columns": {"shape": {"encoding": "WKB"}}}).encode()
    facts = facts_of(parquet_bytes(table.replace_schema_metadata({b"geo": extra or noted})))
    kinds = [field.signature() for field in facts.schema.fields]
    assert kinds == ["INT64", "BINARY" if extra else "GEOMETRY"]


def test_field_ids_are_kept() -> None:
    column = pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "7"})
    facts = facts_of(parquet_bytes(pa.table([pa.array([1])], schema=pa.schema([column]))))
    assert facts.schema.fields[0].properties == {"field_id": 7}


@pytest.mark.parametrize(
    "text", [b'{"comment"', b'["comment"]', b'{"fields": ["comment"]}', b'{"fields": 1}']
)
def test_a_strange_spark_schema_costs_the_comments_and_nothing_else(text: bytes) -> None:
    table = NESTED_TABLE.replace_schema_metadata({SPARK_KEY: text})
    assert facts_of(parquet_bytes(table)).schema.fields[0].signature() == "STRUCT<b: INT32>"


GOOD = parquet_bytes(ORDERS)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "the file is empty"),
        (b"PAR1", "cut off: it has 4 bytes"),
        (GOOD[:-1], "cut off: it has no Parquet footer"),
        (GOOD[: len(GOOD) // 2], "cut off: it has no Parquet footer"),
        (b"id,name\n1,x\n" * 9, "not a Parquet file: it looks like text, such as CSV"),
        (b'{"id": 1}\n', "not a Parquet file: it looks like JSON"),
        (b"Obj\x01 and more", "it looks like Avro"),
        (b"\x1f\x8b" + bytes(20), "it looks like a gzip archive"),
        (bytes(100), "it looks like zero bytes"),
        (b"\x80\x81\x82\x00\x01", "it is not a Parquet file"),
        (b"PARE" + bytes(20) + b"PARE", "its footer is encrypted"),
        (GOOD[:-4] + b"PARE", "its footer is encrypted"),
        (GOOD[:-8] + b"\xff\xff\xff\x7fPAR1", "the length it gives does not fit"),
        (GOOD[:-8] + b"\x00\x00\x00\x00PAR1", "the length it gives does not fit"),
        (b"PAR1" + b"\xff" * 40 + b"\x28\x00\x00\x00PAR1", "its footer is damaged"),
    ],
)
def test_a_file_that_is_no_parquet_says_why(content: bytes, reason: str) -> None:
    with pytest.raises(UnreadableItemError, match=re.escape(reason)):
        facts_of(content)


def test_a_negative_count_of_rows_is_damage() -> None:
    footer = len(GOOD) - 8 - int.from_bytes(GOOD[-8:-4], "little")
    three, minus_three = 6, 5  # as Thrift writes them
    places = [i for i in range(footer, len(GOOD) - 8) if GOOD[i] == three]
    said = [outcome_of(GOOD[:i] + bytes([minus_three]) + GOOD[i + 1 :]) for i in places]
    assert "its footer is damaged: it counts less than no rows" in said


def test_a_schema_nested_too_deeply_says_so() -> None:
    kind: pa.DataType = pa.int8()
    for _ in range(120):
        kind = pa.struct([("f", kind)])
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, pa.schema([("deep", kind)])):
        pass
    with pytest.raises(UnreadableItemError, match="nested deeper than 64 levels"):
        facts_of(sink.getvalue())


def test_a_file_that_shrinks_while_it_is_read_is_worth_another_try() -> None:
    wide = parquet_bytes(pa.table({f"column_with_a_long_name_{i:06}": [i] for i in range(2_000)}))

    class Shrinking(io.BytesIO):
        reads = 0

        @override
        def read(self, size: int | None = -1, /) -> bytes:
            self.reads += 1
            return super().read(size) if self.reads < 2 else b""

    with pytest.raises(UnreadableItemError, match="changed while it was read") as raised:
        read_parquet(Shrinking(wide), size=len(wide))
    assert raised.value.retryable


def test_a_disk_error_is_an_unreadable_item() -> None:
    class Failing(io.BytesIO):
        @override
        def seek(self, offset: int, whence: int = 0, /) -> int:
            raise OSError(5, "Input/output error")

    with pytest.raises(UnreadableItemError, match="cannot be read: Input/output error"):
        read_parquet(Failing(GOOD), size=len(GOOD))


def test_a_damaged_file_is_read_or_refused_and_never_anything_else(tmp_path: Path) -> None:
    chance = random.Random(20)
    items = []
    footer = len(GOOD) - 8 - int.from_bytes(GOOD[-8:-4], "little")
    for number in range(5_000 if FULL_SIZE else 300):
        content = bytearray(GOOD)
        for _ in range(chance.randint(1, 8)):
            content[chance.randrange(footer, len(content))] = chance.randrange(256)
        path = tmp_path / f"{number}.parquet"
        path.write_bytes(content)
        items.append(FileItem(str(path), len(content)))
    answers = list(read_files(items))
    assert [item for item, _ in answers] == items
    assert all(VALUE not in repr(answer) for _, answer in answers)
    assert {type(answer) for _, answer in answers} == {FileFacts, UnreadableItemError}


def outcome_of(content: bytes) -> str:
    try:
        return repr(facts_of(content))
    except UnreadableItemError as error:
        return error.message


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_refused_with_a_reason(content: bytes) -> None:
    with pytest.raises(UnreadableItemError) as raised:
        facts_of(content)
    assert raised.value.message


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=40))
def test_text_is_recognised_even_when_cut_inside_a_character(text: str) -> None:
    assert looks_like(text.encode()[:16]) is not None


class Counting(io.BytesIO):
    """Counts what is read of it, as a storage counts requests."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self.taken: list[int] = []

    @override
    def read(self, size: int | None = -1, /) -> bytes:
        content = super().read(size)
        self.taken.append(len(content))
        return content


class Remote(Counting):
    """Lies on a storage where every read is a request."""

    is_remote = True


LONG = pa.table(
    {"id": range(200_000), "text": [f"{number * 7919:09}" for number in range(200_000)]}
)


def long_orc() -> bytes:
    sink = io.BytesIO()
    orc.write_table(LONG, sink)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("name", "content"), [("a.parquet", parquet_bytes(LONG)), ("a.orc", long_orc())]
)
def test_one_read_of_the_end_is_enough_where_the_footer_fits(name: str, content: bytes) -> None:
    stream, near = Remote(content), Counting(content)
    facts = read_file(stream, size=len(content), name=f"folder/{name}")
    assert facts.rows == 200_000
    assert len(content) > 4 * 64 * 1024
    assert stream.taken == [64 * 1024]
    read_file(near, size=len(content), name=f"folder/{name}")
    assert near.taken == [64 * 1024, 64], "of a local file the beginning is looked at too"


@pytest.mark.parametrize("name", ["a.parquet", "a.orc"])
def test_a_file_whose_end_alone_looks_right_is_read_as_what_it_is(name: str) -> None:
    text = b"id,name\n" + b"1,x\n" * 40_000 + (b"2,PAR1" if "parquet" in name else b"2,ORC1")
    facts = read_file(io.BytesIO(text), size=len(text), name=name)
    assert facts.format == "csv"
    assert facts.warnings == (f"named .{name[2:]} but is CSV",)


def test_a_longer_footer_takes_a_second_read() -> None:
    wide = parquet_bytes(pa.table({f"column_with_a_long_name_{i:06}": [i] for i in range(2_000)}))
    stream = Remote(wide)
    assert len(read_file(stream, size=len(wide), name="a.parquet").schema.fields) == 2_000
    assert len(stream.taken) == 2
