"""A little of everything that the stages use, so that its classes and workers are loaded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


def warm_up(session: SparkSession, table: Path) -> None:
    """Run a Python function, write and read a table, group, join, spread and sort.

    Args:
        session: any, also one of Spark Connect.
        table: a folder to be made.
    """
    from pyspark.sql import functions as F  # noqa: N812 - its common name

    numbers = session.range(0, 1_000, numPartitions=2).mapInArrow(_as_it_is, "id long")
    keyed = numbers.withColumn("key", F.sha2(F.col("id").cast("string"), 256))
    keyed.write.parquet(str(table))
    read = session.read.parquet(str(table))
    counted = read.groupBy((F.col("id") % 7).alias("rest")).agg(
        F.count("*").alias("count"), F.max("key").alias("key")
    )
    counted.join(read, "key").repartition(2, "rest").sortWithinPartitions("rest").collect()


def _as_it_is(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches
