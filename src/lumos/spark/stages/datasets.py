"""From facts to datasets: the distinct schemas of each dataset become one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from lumos.spark.stages.arrow_rows import batches

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_DATASET = ["source", "dataset", "format"]
DATASETS = "source string, urn string, document string, warnings string"


class SchemaGroup(NamedTuple):
    """The files of a dataset that have one schema."""

    fingerprint: str
    schema: str
    files: int
    bytes: int
    rows: int | None
    files_with_rows: int
    newest_us: int


class LayoutGroup(NamedTuple):
    """The files of a dataset that lie alike."""

    layout: str
    files: int


class DatasetGroup(NamedTuple):
    """Everything known of one dataset, however many files it has."""

    source: str
    dataset: str
    format: str
    formats: Sequence[str]
    partitions: int
    layouts: Sequence[LayoutGroup]
    schemas: Sequence[SchemaGroup]


class BuiltDataset(NamedTuple):
    """A dataset as canonical JSON."""

    source: str
    urn: str
    document: str
    warnings: str | None


BuildDataset = Callable[[DatasetGroup], BuiltDataset]


def summarise(places: DataFrame, facts: DataFrame) -> DataFrame:
    """Return one row per dataset, its files counted by schema; nothing grows with the files."""
    from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

    located = places.where("error IS NULL").drop("size", "mtime_us", "error")
    files = located.join(facts, ["source", "path"])
    readable = files.where("reason IS NULL")
    by_schema = readable.groupBy(*_DATASET, "fingerprint").agg(
        F.any_value("schema").alias("schema"),
        F.count("*").alias("files"),
        F.sum("size").alias("bytes"),
        F.sum("rows").alias("rows"),
        F.count("rows").alias("files_with_rows"),
        F.max("mtime_us").alias("newest_us"),
    )
    schemas = by_schema.groupBy(*_DATASET).agg(
        F.array_sort(
            F.collect_list(
                F.struct(
                    "fingerprint",
                    "schema",
                    "files",
                    "bytes",
                    "rows",
                    "files_with_rows",
                    "newest_us",
                )
            )
        ).alias("schemas")
    )
    by_layout = readable.groupBy(*_DATASET, "layout").agg(F.count("*").alias("files"))
    layouts = by_layout.groupBy(*_DATASET).agg(
        F.array_sort(F.collect_list(F.struct("layout", "files"))).alias("layouts")
    )
    partitions = readable.groupBy(*_DATASET).agg(F.countDistinct("partition").alias("partitions"))
    formats = readable.groupBy("source", "dataset").agg(
        F.sort_array(F.collect_set("format")).alias("formats")
    )
    return (
        schemas.join(layouts, _DATASET)
        .join(partitions, _DATASET)
        .join(formats, ["source", "dataset"])
    )


def build_datasets(groups: DataFrame, build: BuildDataset) -> DataFrame:
    """Turn each group into a canonical dataset."""

    def run(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part in parts:
            yield from batches(map(build, map(_group, part.to_pylist())), DATASETS)

    return groups.mapInArrow(run, DATASETS)


def _group(row: dict[str, object]) -> DatasetGroup:
    values = cast("dict[str, Any]", row)
    schemas = [SchemaGroup(**schema) for schema in values["schemas"]]
    layouts = [LayoutGroup(**layout) for layout in values["layouts"]]
    return DatasetGroup(**{**values, "schemas": schemas, "layouts": layouts})
