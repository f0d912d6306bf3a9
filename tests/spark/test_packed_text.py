"""Text that Spark wrote in each of its compressions, read without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lumos.core.formats.reader import read_file

ROWS = 3_000
CODECS = {
    "bzip2": "bzip2",
    "deflate": "deflate",
    "gzip": "gzip",
    "lz4": "lz4",
    "none": None,
    "snappy": "snappy",
}


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("kind", ["csv", "json"])
def test_what_spark_packed_is_read(
    spark: SparkSession, tmp_path: Path, kind: str, codec: str
) -> None:
    frame = spark.range(ROWS).selectExpr("id", "concat('name ', id * 7919 % 1000) as name")
    folder = tmp_path / "out"
    writer = frame.coalesce(1).write.option("compression", codec)
    if kind == "csv":
        writer.option("header", "true").csv(str(folder))
    else:
        writer.json(str(folder))
    (path,) = folder.glob("part-*")
    with path.open("rb") as stream:
        facts = read_file(stream, size=path.stat().st_size, name=path.name)
    assert [(field.name, field.type.value) for field in facts.schema.fields] == [
        ("id", "INT64"),
        ("name", "STRING"),
    ]
    assert (facts.format, facts.compression, facts.warnings) == (kind, CODECS[codec], ())
    assert facts.rows_estimate is not None
    assert abs(facts.rows_estimate - ROWS) < ROWS * 0.3
