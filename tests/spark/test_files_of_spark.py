"""Files of Spark and of parquet-java: types, legacy layouts and codecs as other readers say."""

from __future__ import annotations

import os
import random
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyorc
import pytest
from pyarrow import orc

from lumos.core.formats.facts import FileFacts
from lumos.core.formats.reader import read_file
from reader_verdicts import comparable, pyarrow_parquet, spark_columns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SELECT = """
    CAST(id AS TINYINT) i8, CAST(id AS SMALLINT) i16, CAST(id AS INT) i32, id AS i64,
    CAST(id AS FLOAT) f, CAST(id AS DOUBLE) d, CAST(id AS DECIMAL(9,2)) d9,
    CAST(id AS DECIMAL(18,3)) d18, CAST(id AS DECIMAL(38,10)) d38, id % 2 = 0 AS b,
    CAST(id AS STRING) s, CAST('x' AS BINARY) raw, DATE'2024-01-02' AS day,
    TIMESTAMP'2024-01-02 03:04:05' AS at, TIMESTAMP_NTZ'2024-01-02 03:04:05' AS local,
    INTERVAL '1' DAY AS days, INTERVAL '1' MONTH AS months,
    array(id, NULL) AS l, map('k', id) AS m,
    named_struct('x', id, 'y', array(named_struct('z', 1))) AS st,
    IF(id = 3, NULL, id) AS n
"""


def sampled(cases: list[Any], count: int) -> list[Any]:
    full_size = os.environ.get("LUMOS_TEST_FULL") == "1"
    return cases if full_size else random.Random(7).sample(cases, count)


def only_file(folder: Path, suffix: str) -> Path:
    (path,) = folder.glob(f"*.{suffix}")
    return path


def facts_of(path: Path) -> FileFacts:
    with path.open("rb") as stream:
        return read_file(stream, size=path.stat().st_size, name=path.name)


def written(spark: SparkSession, folder: Path, *, format: str, **options: str) -> Path:
    frame = spark.range(50).coalesce(1).selectExpr("id").selectExpr(*_columns())
    frame.write.format(format).options(**options).save(str(folder))
    return only_file(folder, format)


def _columns() -> list[str]:
    parts, depth, start = [], 0, 0
    for place, character in enumerate(SELECT):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append(SELECT[start:place].strip())
            start = place + 1
    return [*parts, SELECT[start:].strip()]


@pytest.mark.parametrize(
    ("times", "legacy"),
    sampled(list(product(("INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"), ("true", "false"))), 2),
)
def test_parquet_of_spark(spark: SparkSession, tmp_path: Path, times: str, legacy: str) -> None:
    spark.conf.set("spark.sql.parquet.outputTimestampType", times)
    spark.conf.set("spark.sql.parquet.writeLegacyFormat", legacy)
    try:
        path = written(spark, tmp_path / "a", format="parquet", compression="zstd")
    finally:
        spark.conf.unset("spark.sql.parquet.outputTimestampType")
        spark.conf.unset("spark.sql.parquet.writeLegacyFormat")
    facts = facts_of(path)
    fields = {field.name: field for field in facts.schema.fields}
    frame = spark.read.parquet(str(path))
    assert {name: comparable(field, "spark") for name, field in fields.items()} == spark_columns(
        frame.schema
    )
    arrow = pyarrow_parquet(path)
    plain = {n: kind for n, kind in arrow.columns.items() if n not in ("at", "days", "months")}
    assert {name: comparable(fields[name], "pyarrow") for name in plain} == plain
    required = frozenset(name for name, field in fields.items() if not field.nullable)
    assert arrow.required == required
    assert facts.rows == arrow.rows == frame.count()
    assert facts.columns["n"].null_count == 1
    assert fields["at"].timezone == (None if times == "INT96" else "UTC")
    assert fields["days"].signature() == "DURATION(us)"


@pytest.mark.parametrize("codec", sampled(["none", "snappy", "zlib", "zstd", "lz4", "lzo"], 3))
def test_orc_of_spark(spark: SparkSession, tmp_path: Path, codec: str) -> None:
    path = written(spark, tmp_path / "a", format="orc", compression=codec)
    facts = facts_of(path)
    fields = {field.name: field for field in facts.schema.fields}
    file = orc.ORCFile(str(path))
    assert facts.rows == file.nrows == spark.read.orc(str(path)).count()
    assert list(fields) == file.schema.names
    if codec == "lzo":  # which Arrow alone unpacks, without what Spark notes on types
        assert facts.compression == "lzo"
        return
    seen = spark_columns(spark.read.orc(str(path)).schema)
    assert {name: comparable(field, "spark") for name, field in fields.items()} == seen
    with path.open("rb") as stream:
        assert len(pyorc.Reader(stream)) == facts.rows
    assert facts.columns["n"].null_count == 1
    assert facts.columns["n"].compressed_bytes
    assert (fields["at"].signature(), fields["local"].signature()) == (
        "TIMESTAMP(ns,UTC)",
        "TIMESTAMP_NTZ(us)",
    )


def test_comments_of_a_table_are_in_its_files(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "table"
    spark.sql(
        "CREATE TABLE commented (c CHAR(3) COMMENT 'three', s ARRAY<STRUCT<x: INT COMMENT 'deep'>>)"
        f" USING parquet LOCATION '{folder}'"
    )
    try:
        spark.sql("INSERT INTO commented VALUES ('abc', array())")
    finally:
        spark.sql("DROP TABLE commented")
    plain, nested = facts_of(only_file(folder, "parquet")).schema.fields
    assert plain.description == "three"
    assert nested.items is not None
    assert nested.items.fields[0].description == "deep"


PRIMITIVES: dict[str, str] = {
    "required boolean c": "BOOLEAN",
    "optional int32 c": "INT32",
    "optional int64 c": "INT64",
    "optional int96 c": "TIMESTAMP(ns)",
    "optional float c": "FLOAT",
    "optional double c": "DOUBLE",
    "optional binary c": "BINARY",
    "optional binary c (STRING)": "STRING",
    "optional binary c (UTF8)": "STRING",
    "optional binary c (ENUM)": "STRING",
    "optional binary c (JSON)": "JSON",
    "optional binary c (BSON)": "BINARY",
    "optional binary c (GEOMETRY(OGC:CRS84))": "GEOMETRY",
    "optional binary c (GEOGRAPHY(OGC:CRS84,SPHERICAL))": "GEOMETRY",
    "optional fixed_len_byte_array(12) c (INTERVAL)": "DURATION",
    "optional fixed_len_byte_array(16) c (UUID)": "UUID",
    "optional fixed_len_byte_array(7) c": "BINARY(7)",
    "optional fixed_len_byte_array(2) c (FLOAT16)": "FLOAT",
    "optional int32 c (DECIMAL(9,2))": "DECIMAL(9,2)",
    "optional int64 c (DECIMAL(18,3))": "DECIMAL(18,3)",
    "optional binary c (DECIMAL(30,4))": "DECIMAL(30,4)",
    "optional fixed_len_byte_array(16) c (DECIMAL(38,10))": "DECIMAL(38,10)",
    "optional int32 c (INTEGER(8,true))": "INT8",
    "optional int32 c (INTEGER(16,true))": "INT16",
    "optional int32 c (INTEGER(32,true))": "INT32",
    "optional int64 c (INTEGER(64,true))": "INT64",
    "optional int32 c (INTEGER(8,false))": "UINT8",
    "optional int32 c (INTEGER(16,false))": "UINT16",
    "optional int32 c (UINT_32)": "UINT32",
    "optional int64 c (INTEGER(64,false))": "UINT64",
    "optional int32 c (DATE)": "DATE",
    "optional int32 c (TIME(MILLIS,true))": "TIME(ms)",
    "optional int64 c (TIME(MICROS,true))": "TIME(us)",
    "optional int64 c (TIME(NANOS,false))": "TIME(ns)",
    "optional int32 c (TIME_MILLIS)": "TIME(ms)",
    "optional int64 c (TIMESTAMP(MILLIS,true))": "TIMESTAMP(ms,UTC)",
    "optional int64 c (TIMESTAMP(MICROS,true))": "TIMESTAMP(us,UTC)",
    "optional int64 c (TIMESTAMP(NANOS,true))": "TIMESTAMP(ns,UTC)",
    "optional int64 c (TIMESTAMP(MILLIS,false))": "TIMESTAMP_NTZ(ms)",
    "optional int64 c (TIMESTAMP(MICROS,false))": "TIMESTAMP_NTZ(us)",
    "optional int64 c (TIMESTAMP(NANOS,false))": "TIMESTAMP_NTZ(ns)",
    "optional int64 c (TIMESTAMP_MILLIS)": "TIMESTAMP(ms,UTC)",
    "optional int64 c (TIMESTAMP_MICROS)": "TIMESTAMP(us,UTC)",
    "optional int32 c (UNKNOWN)": "UNKNOWN",
}
NUMBER = "optional int32"
PAIR = f"required binary key (STRING); {NUMBER} value;"
GROUPS: dict[str, tuple[str, bool]] = {
    f"optional group c (LIST) {{ repeated group list {{ {NUMBER} element; }} }}": (
        "ARRAY<INT32>",
        True,
    ),
    "required group c (LIST) { repeated group list { required int32 element; } }": (
        "ARRAY<INT32>",
        False,
    ),
    f"optional group c (LIST) {{ repeated group bag {{ {NUMBER} array_element; }} }}": (
        "ARRAY<INT32>",
        True,
    ),
    "optional group c (LIST) { repeated int32 element; }": ("ARRAY<INT32>", True),
    f"optional group c (LIST) {{ repeated group array {{ {NUMBER} x; }} }}": (
        "ARRAY<STRUCT<x: INT32>>",
        True,
    ),
    f"optional group c (LIST) {{ repeated group c_tuple {{ {NUMBER} x; }} }}": (
        "ARRAY<STRUCT<x: INT32>>",
        True,
    ),
    f"optional group c (LIST) {{ repeated group element {{ {NUMBER} x; {NUMBER} y; }} }}": (
        "ARRAY<STRUCT<x: INT32, y: INT32>>",
        True,
    ),
    "repeated int32 c": ("ARRAY<INT32>", False),
    f"repeated group c {{ {NUMBER} x; }}": ("ARRAY<STRUCT<x: INT32>>", False),
    f"optional group c (MAP) {{ repeated group key_value {{ {PAIR} }} }}": (
        "MAP<STRING, INT32>",
        True,
    ),
    f"optional group c (MAP_KEY_VALUE) {{ repeated group map {{ {PAIR} }} }}": (
        "MAP<STRING, INT32>",
        True,
    ),
    f"optional group c (MAP) {{ repeated group map (MAP_KEY_VALUE) {{ {PAIR} }} }}": (
        "MAP<STRING, INT32>",
        True,
    ),
    "optional group c (MAP) { repeated group key_value { required binary key (STRING); } }": (
        "ARRAY<STRING>",
        True,
    ),
    "optional group c (VARIANT(1)) { required binary metadata; required binary value; }": (
        "JSON",
        True,
    ),
    f"optional group c {{ {NUMBER} x; required binary y (ENUM); }}": (
        "STRUCT<x: INT32, y: STRING>",
        True,
    ),
}


def written_by_java(spark: SparkSession, path: Path, message: str) -> Path:
    java: Any = spark.sparkContext._jvm
    schema = java.org.apache.parquet.schema.MessageTypeParser.parseMessageType(message)
    place = java.org.apache.hadoop.fs.Path(path.as_uri())
    builder = java.org.apache.parquet.hadoop.example.ExampleParquetWriter.builder(place)
    builder = builder.withType(schema).withConf(java.org.apache.hadoop.conf.Configuration())
    builder.build().close()
    return path


def test_every_annotation_of_parquet(spark: SparkSession, tmp_path: Path) -> None:
    found, expected = {}, {}
    for number, (column, signature) in enumerate(PRIMITIVES.items()):
        path = written_by_java(spark, tmp_path / f"{number}.parquet", f"message m {{ {column}; }}")
        (field,) = facts_of(path).schema.fields
        found[column] = (field.signature(), field.nullable)
        expected[column] = (signature, column.startswith("optional"))
    assert found == expected


def test_every_layout_of_lists_and_maps(spark: SparkSession, tmp_path: Path) -> None:
    found = {}
    for number, column in enumerate(GROUPS):
        end = "" if column.endswith("}") else ";"
        path = written_by_java(
            spark, tmp_path / f"{number}.parquet", f"message m {{ {column}{end} }}"
        )
        (field,) = facts_of(path).schema.fields
        found[column] = (field.signature(), field.nullable)
    assert found == GROUPS
