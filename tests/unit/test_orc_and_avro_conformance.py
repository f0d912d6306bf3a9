"""ORC and Avro of several writers: schema and rows as at least two other readers say."""

from __future__ import annotations

import io
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyorc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import orc

from lumos.core.formats.facts import FileFacts
from lumos.core.formats.reader import read_file
from lumos.core.models import Field, FieldType, TypeName
from reader_verdicts import comparable, polars_avro

MOMENT = datetime(2024, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
SPELLINGS = {
    TypeName.ARRAY: "array",
    TypeName.MAP: "map",
    TypeName.STRUCT: "struct",
    TypeName.UNION: "uniontype",
}


def facts_of(content: bytes, name: str) -> FileFacts:
    return read_file(io.BytesIO(content), size=len(content), name=name)


def spelled(node: FieldType) -> str:
    """Spell a type as ORC does, from the names that Lumos kept."""
    match node.type:
        case TypeName.STRUCT:
            inner = ",".join(f"{field.name}:{spelled(field)}" for field in node.fields)
        case TypeName.ARRAY:
            inner = spelled(part(node.items))
        case TypeName.MAP:
            inner = f"{spelled(part(node.key))},{spelled(part(node.value))}"
        case TypeName.UNION:
            inner = ",".join(spelled(branch) for branch in node.branches)
        case _:
            return str(node.native_type)
    return f"{SPELLINGS[node.type]}<{inner}>"


def part(node: FieldType | None) -> FieldType:
    assert node is not None
    return node


def assert_orc_readers_agree(content: bytes) -> FileFacts:
    facts = facts_of(content, "a.orc")
    reader = pyorc.Reader(io.BytesIO(content))
    assert spelled(FieldType(type=TypeName.STRUCT, fields=facts.schema.fields)) == str(
        reader.schema
    )
    assert facts.rows == len(reader)
    arrow = orc.ORCFile(io.BytesIO(content))
    assert (facts.rows, facts.row_groups) == (arrow.nrows, arrow.nstripes)
    assert [field.name for field in facts.schema.fields] == arrow.schema.names
    for path, statistics in facts.columns.items():
        if "." not in path and statistics.null_count is not None:
            column = arrow.read(columns=[path])
            assert column[path].null_count == statistics.null_count
    return facts


KINDS: dict[str, str] = {
    "boolean": "BOOLEAN",
    "tinyint": "INT8",
    "smallint": "INT16",
    "int": "INT32",
    "bigint": "INT64",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "STRING",
    "binary": "BINARY",
    "date": "DATE",
    "timestamp": "TIMESTAMP_NTZ(ns)",
    "timestamp with local time zone": "TIMESTAMP(ns,UTC)",
    "decimal(10,2)": "DECIMAL(10,2)",
    "decimal(38,18)": "DECIMAL(38,18)",
    "varchar(10)": "STRING(10)",
    "char(3)": "STRING(3)",
}


def _nest(inner: st.SearchStrategy[tuple[str, str]]) -> st.SearchStrategy[tuple[str, str]]:
    def struct(members: list[tuple[str, str]]) -> tuple[str, str]:
        named = [(f"f{number}", *member) for number, member in enumerate(members)]
        return (
            f"struct<{','.join(f'{name}:{kind}' for name, kind, _ in named)}>",
            f"STRUCT<{', '.join(f'{name}: {signature}' for name, _, signature in named)}>",
        )

    def union(members: list[tuple[str, str]]) -> tuple[str, str]:
        return (
            f"uniontype<{','.join(kind for kind, _ in members)}>",
            f"UNION<{', '.join(signature for _, signature in members)}>",
        )

    several = st.lists(inner, min_size=1, max_size=3)
    return (
        inner.map(lambda one: (f"array<{one[0]}>", f"ARRAY<{one[1]}>"))
        | inner.map(lambda one: (f"map<string,{one[0]}>", f"MAP<STRING, {one[1]}>"))
        | several.map(struct)
        | several.map(union)
    )


orc_kinds = st.recursive(st.sampled_from(sorted(KINDS.items())), _nest, max_leaves=6)


@given(st.lists(orc_kinds, min_size=1, max_size=5), st.sampled_from(list(pyorc.CompressionKind)))
def test_every_type_of_orc_is_read_as_it_was_written(
    kinds: list[tuple[str, str]], codec: pyorc.CompressionKind
) -> None:
    if codec is pyorc.CompressionKind.LZO:
        codec = pyorc.CompressionKind.NONE  # its writer does not write it
    sink = io.BytesIO()
    columns = ",".join(f"c{number}:{kind}" for number, (kind, _) in enumerate(kinds))
    pyorc.Writer(sink, f"struct<{columns}>", compression=codec).close()
    facts = assert_orc_readers_agree(sink.getvalue())
    assert [field.signature() for field in facts.schema.fields] == [kind for _, kind in kinds]


ORC_TABLE = pa.table(
    {
        "b": pa.array([True, None] * 50),
        "i8": pa.array([1, None] * 50, pa.int8()),
        "i64": pa.array(range(100), pa.int64()),
        "f": pa.array([1.5, None] * 50, pa.float32()),
        "s": pa.array(["a", None] * 50),
        "raw": pa.array([b"a", None] * 50),
        "d": pa.array([date(2024, 1, 2), None] * 50),
        "p": pa.array([Decimal("1.50"), None] * 50, pa.decimal128(10, 2)),
        "t": pa.array([MOMENT, None] * 50, pa.timestamp("ns")),
        "l": pa.array([[1, None], None] * 50, pa.list_(pa.int32())),
        "m": pa.array([[("k", 1)], None] * 50, pa.map_(pa.string(), pa.int32())),
        "st": pa.array([{"x": 1}, None] * 50, pa.struct([("x", pa.int32())])),
    }
)


@pytest.mark.parametrize("codec", ["uncompressed", "zlib", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("version", ["0.11", "0.12"])
def test_orc_of_arrow(codec: Any, version: str) -> None:
    sink = io.BytesIO()
    orc.write_table(ORC_TABLE, sink, compression=codec, file_version=version, stripe_size=1_024)
    assert_orc_readers_agree(sink.getvalue())


@pytest.mark.parametrize("codec", ["NONE", "ZLIB", "SNAPPY", "LZ4", "ZSTD"])
def test_orc_of_pyorc(codec: str) -> None:
    sink = io.BytesIO()
    kind = "struct<i:int,s:varchar(4),u:uniontype<int,string>,n:struct<x:double>>"
    with pyorc.Writer(sink, kind, compression=pyorc.CompressionKind[codec]) as writer:
        for number in range(1_000):
            writer.write((None if number % 3 else number, "ab", number, (None,)))
    content = sink.getvalue()
    facts = facts_of(content, "a.orc")
    assert facts.rows == len(pyorc.Reader(io.BytesIO(content))) == 1_000
    assert facts.columns["i"].null_count == 666
    assert facts.columns["n.x"].null_count == 1_000


AVRO: dict[str, Any] = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "b", "type": ["null", "boolean"]},
        {"name": "i", "type": "int"},
        {"name": "l", "type": ["null", "long"]},
        {"name": "f", "type": ["null", "float"]},
        {"name": "d", "type": ["null", "double"]},
        {"name": "s", "type": ["null", "string"]},
        {"name": "raw", "type": ["null", "bytes"]},
        {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}]},
        {"name": "tus", "type": ["null", {"type": "long", "logicalType": "time-micros"}]},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
        {"name": "arr", "type": {"type": "array", "items": ["null", "long"]}},
        {
            "name": "inner",
            "type": {"type": "record", "name": "n", "fields": [{"name": "x", "type": "long"}]},
        },
    ],
}
AVRO_ROW = {
    "b": True, "i": 1, "l": None, "f": 1.5, "d": None, "s": "a", "raw": b"a",
    "day": date(2024, 1, 2), "tus": time(1, 2, 3), "at": MOMENT, "arr": [1, None],
    "inner": {"x": 1},
}  # fmt: skip
AVRO_CODECS = ("null", "deflate", "bzip2", "xz", "snappy")


@pytest.mark.parametrize("codec", AVRO_CODECS)
def test_avro_of_fastavro(codec: str, tmp_path: Path) -> None:
    path = tmp_path / "a.avro"
    with path.open("wb") as sink:
        fastavro.writer(sink, AVRO, [AVRO_ROW] * 5_000, codec=codec, sync_interval=4_000)
    facts = facts_of(path.read_bytes(), "a.avro")
    with path.open("rb") as stream:
        assert facts.rows == sum(1 for _ in fastavro.reader(stream)) == 5_000
    optional = {field["name"]: isinstance(field["type"], list) for field in AVRO["fields"]}
    assert {field.name: field.nullable for field in facts.schema.fields} == optional
    if codec in ("null", "deflate", "snappy"):  # what polars unpacks
        assert_polars_agrees(path, facts)


def assert_polars_agrees(path: Path, facts: FileFacts) -> None:
    verdict = polars_avro(path)
    assert verdict.rows == facts.rows
    ours = {field.name: comparable(field, "polars") for field in facts.schema.fields}
    assert ours | {"at": "", "tus": ""} == verdict.columns | {"at": "", "tus": ""}


@pytest.mark.parametrize("codec", ["uncompressed", "snappy", "deflate"])
def test_avro_of_polars(codec: Any, tmp_path: Path) -> None:
    import polars as pl

    path = tmp_path / "a.avro"
    frame = pl.DataFrame(
        {"i": [1, None], "f": [1.5, 2.5], "s": ["a", None], "b": [True, None], "l": [[1], None]}
    )
    frame.write_avro(path, compression=codec)
    facts = facts_of(path.read_bytes(), "a.avro")
    assert_polars_agrees(path, facts)
    with path.open("rb") as stream:
        reader = fastavro.reader(stream)
        written: Any = reader.writer_schema
        names = [field["name"] for field in written["fields"]]
        assert [field.name for field in facts.schema.fields] == names
        assert facts.rows == len(list(reader)) == 2


LOGICAL: dict[str, tuple[Any, str]] = {
    "int": ("int", "INT32"),
    "long": ("long", "INT64"),
    "string": ("string", "STRING"),
    "date": ({"type": "int", "logicalType": "date"}, "DATE"),
    "uuid": ({"type": "string", "logicalType": "uuid"}, "UUID"),
    "local": ({"type": "long", "logicalType": "local-timestamp-micros"}, "TIMESTAMP_NTZ(us)"),
    "decimal": (
        {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        "DECIMAL(9,2)",
    ),
}


def _nest_avro(inner: st.SearchStrategy[tuple[Any, str]]) -> st.SearchStrategy[tuple[Any, str]]:
    return (
        inner.map(lambda one: ({"type": "array", "items": one[0]}, f"ARRAY<{one[1]}>"))
        | inner.map(lambda one: ({"type": "map", "values": one[0]}, f"MAP<STRING, {one[1]}>"))
        | inner.filter(lambda one: not isinstance(one[0], list)).map(
            lambda one: (["null", one[0]], one[1])
        )
    )


@given(st.lists(st.recursive(st.sampled_from(sorted(LOGICAL.values(), key=str)), _nest_avro)))
def test_every_type_of_avro_is_read_as_it_was_written(kinds: list[tuple[Any, str]]) -> None:
    fields = [{"name": f"c{number}", "type": kind} for number, (kind, _) in enumerate(kinds)]
    sink = io.BytesIO()
    fastavro.writer(sink, {"type": "record", "name": "r", "fields": fields}, [])
    found: tuple[Field, ...] = facts_of(sink.getvalue(), "a.avro").schema.fields
    assert [field.signature() for field in found] == [signature for _, signature in kinds]
    assert [field.nullable for field in found] == [isinstance(kind, list) for kind, _ in kinds]
