"""Parquet of several writers: schema, nullability and rows as at least two other readers say."""

from __future__ import annotations

import io
import itertools
import os
import random
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumos.core.formats.facts import FileFacts
from lumos.core.formats.reader import read_file
from reader_verdicts import (
    Verdict,
    comparable,
    duckdb_parquet,
    fastparquet_parquet,
    polars_parquet,
    pyarrow_parquet,
)

FULL_SIZE = os.environ.get("LUMOS_TEST_FULL") == "1"
ROWS = 50
MOMENT = datetime(2024, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)


def column(kind: pa.DataType, *values: Any) -> pa.Array:
    return pa.array([values[number % len(values)] for number in range(ROWS)], kind)


PLAIN: dict[str, pa.Array] = {
    "boolean": column(pa.bool_(), True, False, None),
    "int8": column(pa.int8(), -1, None),
    "int16": column(pa.int16(), -1, None),
    "int32": column(pa.int32(), -1, None),
    "int64": column(pa.int64(), -1, None),
    "uint8": column(pa.uint8(), 1, None),
    "uint16": column(pa.uint16(), 1, None),
    "uint32": column(pa.uint32(), 1, None),
    "uint64": column(pa.uint64(), 1, None),
    "float": column(pa.float32(), 1.5, None),
    "double": column(pa.float64(), 1.5, None),
    "text": column(pa.string(), "a", "b", None),
    "bytes": column(pa.binary(), b"a", None),
    "fixed": column(pa.binary(7), b"1234567", None),
    "small decimal": column(pa.decimal128(9, 2), Decimal("1.50"), None),
    "decimal": column(pa.decimal128(18, 3), Decimal("1.500"), None),
    "large decimal": column(pa.decimal128(38, 10), Decimal("1.5"), None),
    "day": column(pa.date32(), date(2024, 1, 2), None),
    "time ms": column(pa.time32("ms"), time(1, 2, 3), None),
    "time us": column(pa.time64("us"), time(1, 2, 3), None),
    "instant ms": column(pa.timestamp("ms", "UTC"), MOMENT, None),
    "instant us": column(pa.timestamp("us", "UTC"), MOMENT, None),
    "instant ns": column(pa.timestamp("ns", "UTC"), MOMENT, None),
    "local ms": column(pa.timestamp("ms"), MOMENT, None),
    "local us": column(pa.timestamp("us"), MOMENT, None),
    "local ns": column(pa.timestamp("ns"), MOMENT, None),
    "word": column(pa.string(), "a", "b").dictionary_encode(),
}
NESTED: dict[str, pa.Array] = {
    "list": column(pa.list_(pa.int32()), [1, None], [], None),
    "lists": column(pa.list_(pa.list_(pa.string())), [["a"], []], None),
    "struct": column(
        pa.struct([pa.field("x", pa.int32(), nullable=False), ("y", pa.string())]),
        {"x": 1, "y": None},
        None,
    ),
    "structs": column(pa.list_(pa.struct([("x", pa.list_(pa.float64()))])), [{"x": [1.5]}], None),
    "map": column(pa.map_(pa.string(), pa.int32()), [("k", 1)], None),
}
NEWER: dict[str, pa.Array] = {
    "half": column(pa.float16(), 1.5, None),
    "uuid": column(pa.uuid(), b"0" * 16, None),
    "json": column(pa.json_(), "{}", None),
    "time ns": column(pa.time64("ns"), time(1, 2, 3), None),
    "huge decimal": column(pa.decimal256(60, 5), Decimal("1.5"), None),
    "nothing": pa.nulls(ROWS),
    "duration": column(pa.duration("us"), timedelta(seconds=1), None),
    "long text": column(pa.large_string(), "a", None),
    "fixed list": column(pa.list_(pa.int32(), 2), [1, 2], None),
}


def required(table: pa.Table) -> pa.Table:
    """The same table with a column that may not be null in front."""
    field = pa.field("key", pa.int64(), nullable=False)
    return table.add_column(0, field, pa.array(range(ROWS), pa.int64()))


TABLES = {
    "plain": required(pa.table(PLAIN)),
    "nested": required(pa.table(NESTED)),
    "newer": required(pa.table(NEWER)),
}
READERS: tuple[Callable[[Path], Verdict], ...] = (
    pyarrow_parquet,
    duckdb_parquet,
    polars_parquet,
    fastparquet_parquet,
)
BLIND: dict[str, frozenset[str]] = {
    "duckdb": frozenset({"half", "huge decimal", "duration", "nothing"}),
    "polars": frozenset({"map", "structs", "huge decimal", "nothing", "json", "uuid", "time ns"}),
}
"""Columns for which a reader has no type of its own, or another one."""


def facts_of(path: Path) -> FileFacts:
    with path.open("rb") as stream:
        return read_file(stream, size=path.stat().st_size, name=path.name)


def assert_readers_agree(path: Path, *, least: int = 2) -> None:
    facts = facts_of(path)
    fields = {field.name: field for field in facts.schema.fields}
    assert facts.warnings == ()
    agreed = []
    for read in READERS:
        try:
            verdict = read(path)
        except Exception:  # noqa: BLE001, S112 - a reader that cannot read the file is no witness
            continue
        blind = BLIND.get(verdict.reader, frozenset())
        assert list(verdict.columns) == list(fields)
        assert facts.rows == verdict.rows, verdict.reader
        if verdict.required is not None:
            found = frozenset(name for name, field in fields.items() if not field.nullable)
            assert found == verdict.required, verdict.reader
        if verdict.reader != "fastparquet":
            seen = {name: kind for name, kind in verdict.columns.items() if name not in blind}
            ours = {name: comparable(fields[name], verdict.reader) for name in seen}
            assert ours == seen, verdict.reader
            agreed.append(verdict.reader)
    assert len(agreed) >= least, agreed


CODECS = ("none", "snappy", "gzip", "brotli", "lz4", "zstd")
ENCODINGS: dict[str, dict[str, str]] = {
    "plain": {"int32": "PLAIN", "text": "PLAIN", "double": "PLAIN"},
    "delta": {"int32": "DELTA_BINARY_PACKED", "text": "DELTA_BYTE_ARRAY"},
    "delta lengths": {"int64": "DELTA_BINARY_PACKED", "text": "DELTA_LENGTH_BYTE_ARRAY"},
    "split": {"double": "BYTE_STREAM_SPLIT", "float": "BYTE_STREAM_SPLIT"},
    "run lengths": {"boolean": "RLE"},
}


def arrow_options() -> Iterator[tuple[str, dict[str, Any]]]:
    for table, version, page, codec in itertools.product(
        TABLES, ("1.0", "2.4", "2.6"), ("1.0", "2.0"), CODECS
    ):
        yield table, {"version": version, "data_page_version": page, "compression": codec}
    for table, switch in itertools.product(
        TABLES,
        (
            {"store_schema": False},
            {"use_compliant_nested_type": False},
            {"use_deprecated_int96_timestamps": True},
            {"write_statistics": False},
            {"write_page_index": True},
            {"row_group_size": 7},
            {"use_dictionary": False},
            {"store_decimal_as_integer": True},
            {"coerce_timestamps": "ms", "allow_truncated_timestamps": True},
        ),
    ):
        yield table, switch
    for encodings in ENCODINGS.values():
        yield "plain", {"column_encoding": encodings, "use_dictionary": False}


def sampled(cases: list[Any], count: int) -> list[Any]:
    return cases if FULL_SIZE else random.Random(4).sample(cases, min(count, len(cases)))


@pytest.mark.parametrize(("table", "options"), sampled(list(arrow_options()), 30))
def test_files_of_arrow(table: str, options: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    written = TABLES[table]
    if "use_deprecated_int96_timestamps" in options or options.get("version") == "1.0":
        # Arrow itself reads such times as local, and version 1 widens unsigned numbers.
        kept = [n for n in written.column_names if not n.startswith(("instant", "local", "uint32"))]
        written = written.select(kept)
    pq.write_table(written, path, **options)
    assert_readers_agree(path)


DUCKDB_CODECS = ("uncompressed", "snappy", "gzip", "zstd", "brotli", "lz4_raw")
DUCKDB_SELECT = """
    SELECT CAST(i AS TINYINT) AS i8, CAST(i AS SMALLINT) i16, CAST(i AS INTEGER) i32, i AS i64,
    CAST(i AS UTINYINT) u8, CAST(i AS USMALLINT) u16, CAST(i AS UINTEGER) u32,
    CAST(i AS UBIGINT) u64, CAST(i AS FLOAT) f, CAST(i AS DOUBLE) d, CAST(i AS DECIMAL(4,1)) d16,
    CAST(i AS DECIMAL(9,2)) d32, CAST(i AS DECIMAL(18,3)) d64, CAST(i AS DECIMAL(38,4)) d128,
    i % 2 = 0 AS b, 'x' || i AS text, encode('x') AS bytes, DATE '2024-01-02' AS day,
    TIME '01:02:03' AS t, TIMESTAMP '2024-01-02 03:04:05' AS ts,
    TIMESTAMP_NS '2024-01-02 03:04:05' AS tsn, TIMESTAMP_MS '2024-01-02 03:04:05' AS tsm,
    TIMESTAMPTZ '2024-01-02 03:04:05+00' AS tz, uuid() AS u, CAST('{}' AS JSON) AS j,
    INTERVAL 1 DAY AS iv, {'a': i, 'b': [i]} AS s, MAP {'k': i} AS m, [[i], NULL] AS ll,
    CAST('{"a": 1}' AS JSON)::VARIANT AS v, NULLIF(i, 3) AS n
    FROM range(50) t(i)
"""


@pytest.mark.parametrize(
    ("codec", "version"), sampled(list(itertools.product(DUCKDB_CODECS, ("V1", "V2"))), 4)
)
def test_files_of_duckdb(codec: str, version: str, tmp_path: Path) -> None:
    import duckdb

    path = tmp_path / "a.parquet"
    options = f"FORMAT parquet, COMPRESSION {codec}, PARQUET_VERSION {version}"
    with duckdb.connect() as connection:
        connection.sql(f"COPY ({DUCKDB_SELECT}) TO '{path}' ({options})")
    facts = facts_of(path)
    verdict = duckdb_parquet(path)
    fields = {field.name: field for field in facts.schema.fields}
    assert {name: comparable(field, "duckdb") for name, field in fields.items()} == verdict.columns
    found = frozenset(name for name, field in fields.items() if not field.nullable)
    assert (facts.rows, found) == (verdict.rows, verdict.required)
    arrow = pyarrow_parquet(path)
    plain = {n: kind for n, kind in arrow.columns.items() if n not in ("iv", "v")}
    assert {name: comparable(fields[name], "pyarrow") for name in plain} == plain
    assert facts.rows == arrow.rows
    assert fields["v"].native_type == "variant"
    assert facts.columns["v"].null_count == 0
    assert facts.columns["n"].null_count == 1


POLARS_CODECS = ("uncompressed", "snappy", "gzip", "brotli", "zstd", "lz4")


@pytest.mark.parametrize(
    ("table", "codec"), sampled(list(itertools.product(TABLES, POLARS_CODECS)), 6)
)
def test_files_of_polars(table: str, codec: Any, tmp_path: Path) -> None:
    import polars as pl

    path = tmp_path / "a.parquet"
    left_out = {"map", "huge decimal", "uuid", "json", "fixed", "half", "time ns"}
    kept = [name for name in TABLES[table].column_names if name not in left_out]
    frame = pl.DataFrame(pl.from_arrow(TABLES[table].select(kept)))
    frame.write_parquet(path, compression=codec, row_group_size=20)
    assert_readers_agree(path)


@pytest.mark.parametrize(
    "options", [{}, {"compression": "GZIP"}, {"times": "int96"}, {"has_nulls": False}]
)
def test_files_of_fastparquet(options: dict[str, Any], tmp_path: Path) -> None:
    import fastparquet
    import pandas as pd

    path = tmp_path / "a.parquet"
    frame = pd.DataFrame(
        {
            "i": pd.Series(range(5), dtype="int32"),
            "u": pd.Series(range(5), dtype="uint8"),
            "f": pd.Series([0.5] * 5, dtype="float32"),
            "b": [True, False] * 2 + [True],
            "s": list("abcde"),
            "c": pd.Series(list("ababa"), dtype="category"),
        }
    )
    if "times" not in options:
        frame["t"] = pd.Series(pd.date_range("2024-01-01", periods=5))
    fastparquet.write(str(path), frame, **options)
    assert_readers_agree(path)


SIGNATURES: dict[pa.DataType, str] = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "INT8",
    pa.uint64(): "UINT64",
    pa.float16(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "STRING",
    pa.large_binary(): "BINARY",
    pa.binary(5): "BINARY(5)",
    pa.decimal128(5, 0): "DECIMAL(5,0)",
    pa.decimal256(70, 3): "DECIMAL(70,3)",
    pa.date32(): "DATE",
    pa.time32("ms"): "TIME(ms)",
    pa.time64("ns"): "TIME(ns)",
    pa.timestamp("ms", "UTC"): "TIMESTAMP(ms,UTC)",
    pa.timestamp("ns"): "TIMESTAMP_NTZ(ns)",
    pa.uuid(): "UUID",
    pa.json_(): "JSON",
}


def _nest(inner: st.SearchStrategy[tuple[pa.DataType, str]]) -> Any:
    def struct(members: list[tuple[tuple[pa.DataType, str], bool]]) -> tuple[pa.DataType, str]:
        fields = [
            pa.field(f"f{number}", kind, nullable=nullable)
            for number, ((kind, _), nullable) in enumerate(members)
        ]
        inside = ", ".join(f"f{number}: {name}" for number, ((_, name), _) in enumerate(members))
        return pa.struct(fields), f"STRUCT<{inside}>"

    members = st.lists(st.tuples(inner, st.booleans()), min_size=1, max_size=3)
    return (
        inner.map(lambda one: (pa.list_(one[0]), f"ARRAY<{one[1]}>"))
        | inner.map(lambda one: (pa.map_(pa.string(), one[0]), f"MAP<STRING, {one[1]}>"))
        | members.map(struct)
    )


arrow_kinds = st.recursive(st.sampled_from(list(SIGNATURES.items())), _nest, max_leaves=6)


@given(
    st.lists(st.tuples(arrow_kinds, st.booleans()), min_size=1, max_size=5),
    st.booleans(),
    st.booleans(),
)
def test_every_type_of_parquet_is_read_as_it_was_written(
    columns: list[tuple[tuple[pa.DataType, str], bool]], compliant: bool, with_schema: bool
) -> None:
    schema = pa.schema(
        [
            pa.field(f"c{number}", kind, nullable=nullable)
            for number, ((kind, _), nullable) in enumerate(columns)
        ]
    )
    sink = io.BytesIO()
    with pq.ParquetWriter(
        sink, schema, use_compliant_nested_type=compliant, store_schema=with_schema
    ):
        pass
    facts = read_file(sink, size=len(sink.getvalue()), name="a.parquet")
    found = [(field.signature(), field.nullable) for field in facts.schema.fields]
    assert found == [(signature, nullable) for (_, signature), nullable in columns]
    assert len(facts.columns) == pq.read_metadata(sink).num_columns
