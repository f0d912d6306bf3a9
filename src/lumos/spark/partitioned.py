"""What the file index knows of partitions that are called by a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lumos.spark.file_index import IndexTables


class DatasetKey(NamedTuple):
    """The files of one name and one format in one source."""

    source: str
    dataset: str
    format: str


class PartitionFiles(NamedTuple):
    """The files of a dataset in one partition."""

    key: DatasetKey
    urn: str
    files: int
    first_us: int | None
    """When the first of them was written."""
    fingerprints: tuple[str, ...]
    """Their schemas; empty where all files of the dataset have the same one."""
    newest: str
    """The last partition that there is, in the order of its name."""


def folders_above(tables: IndexTables, source: str, *, pattern: str) -> list[bytes]:
    """Return the folders of a source in which partitions lie, in order.

    Args:
        tables: what earlier runs knew.
        source: the name of the source.
        pattern: fits a file's path; its first group is the folder, its second the partition.
    """
    from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

    matching = _matching(tables.items.where(F.col("source") == source), pattern)
    folder = F.regexp_extract("text", pattern, 1)
    rows = matching.select(folder.alias("folder")).distinct().collect()
    return sorted(row["folder"].encode("utf-8", "surrogateescape") for row in rows)


def partition_files(
    tables: IndexTables, source: str, *, pattern: str, partition: str
) -> list[PartitionFiles]:
    """Return what each partitioned dataset of a source has in one partition, by URN.

    Args:
        tables: what is known after the run.
        source: the name of the source.
        pattern: as of `folders_above`.
        partition: the folders of the partition, without a slash at the end.
    """
    from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

    key = list(DatasetKey._fields)
    files = _matching(tables.items.where(F.col("source") == source), pattern)
    named = files.withColumn("partition_name", F.regexp_extract("text", pattern, 2))
    is_here = F.col("partition_name") == partition
    folded = named.groupBy(*key).agg(
        F.count_if(is_here).alias("files"),
        F.min(F.when(is_here, F.col("mtime_us"))).alias("first_us"),
        F.collect_set(F.when(is_here, F.col("fingerprint"))).alias("fingerprints"),
        F.count_distinct("fingerprint").alias("schemas"),
        F.max("partition_name").alias("newest"),
    )
    known = tables.datasets.where("reason IS NULL").select(*key, "urn")
    rows = folded.join(known, key).orderBy("urn").collect()
    return [
        PartitionFiles(
            DatasetKey(*(row[name] for name in key)),
            row["urn"],
            row["files"],
            row["first_us"],
            tuple(sorted(row["fingerprints"])) if row["schemas"] > 1 else (),
            row["newest"],
        )
        for row in rows
    ]


def schemas_of(tables: IndexTables, fingerprints: Iterable[str]) -> dict[str, str]:
    """Return schemas as JSON, by fingerprint."""
    from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

    rows = tables.schemas.where(F.col("fingerprint").isin(sorted(set(fingerprints)))).collect()
    return {row["fingerprint"]: row["schema"] for row in rows}


def documents_of(tables: IndexTables, keys: Sequence[DatasetKey]) -> dict[DatasetKey, str]:
    """Return some datasets as JSON."""
    rows = _of(tables.datasets.where("reason IS NULL"), keys).collect()
    return {
        DatasetKey(row["source"], row["dataset"], row["format"]): row["document"] for row in rows
    }


def _matching(items: DataFrame, pattern: str) -> DataFrame:
    """Return loose files that were read and whose path fits."""
    from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

    read = items.where("kind IS NULL AND dataset IS NOT NULL AND format IS NOT NULL")
    text = read.withColumn("text", F.col("path").cast("string"))
    return text.where(F.col("text").rlike(pattern))


def _of(table: DataFrame, keys: Iterable[DatasetKey]) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

    wanted = sorted({(key.source, key.dataset) for key in keys})
    is_wanted = F.lit(False)
    for source in sorted({source for source, _ in wanted}):
        datasets = [dataset for name, dataset in wanted if name == source]
        is_wanted |= (F.col("source") == source) & F.col("dataset").isin(datasets)
    return table.where(is_wanted)
