"""The stages on small frames, with plain functions in the place of readers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lumos.spark.file_index import FileIndex
from lumos.spark.pipeline import Pipeline, PipelineFunctions
from lumos.spark.stages.datasets import BuiltDataset, DatasetGroup
from lumos.spark.stages.facts import FileToRead, ReadFile
from lumos.spark.stages.files import ListedFile, Place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = {
    "lake": [
        ("orders/day=1/part-0.parquet", 10, 1),
        ("orders/day=2/part-0.parquet", 20, 2),
        ("orders/day=2/broken.parquet", 5, 2),
        ("customers/all.csv", 7, 3),
        ("_SUCCESS", 0, 3),
    ]
}


def list_unit(source: str, unit: str) -> Iterator[ListedFile]:
    for path, size, mtime in FILES[source]:
        yield ListedFile(source, path.encode(), size, mtime)
    if unit == "closed":
        yield ListedFile(source, b"secret", None, None, "it cannot be listed: no permission")


def place_of(path: bytes) -> Place | None:
    name = path.decode().split("/")[0]
    if name.startswith("_"):
        return None
    partition = path.decode().split("/")[1] if "=" in path.decode() else ""
    return Place(name, f"/{name}/", partition)


def read_files(files: Iterable[FileToRead]) -> Iterator[ReadFile]:
    for file in files:
        if b"broken" in file.path:
            yield ReadFile(None, None, None, None, "it is cut off", None)
        else:
            kind = file.path.decode().rsplit(".", 1)[1]
            yield ReadFile(kind, f"{file.size % 3}", "{}", file.size, None, None)


def build(group: DatasetGroup) -> BuiltDataset:
    sizes = sum(schema.bytes for schema in group.schemas)
    text = f"{group.format} {group.partitions} {sizes} {len(group.schemas)}"
    return BuiltDataset(group.source, f"lumos://local/{group.dataset}", text, None)


FUNCTIONS = PipelineFunctions(list_unit, place_of, read_files, build)


def test_files_become_datasets_and_problems_are_named(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = Pipeline(spark, FUNCTIONS, work=tmp_path / "work", tell=lambda _: None)
    index = FileIndex(tmp_path / "index")

    counts = pipeline.run([("lake", "closed")], index.read(spark))

    assert counts == (4, 4, 0)
    assert [built.document for built in pipeline.datasets()] == ["csv 1 7 1", "parquet 2 30 2"]
    assert [(each.path, each.reason) for each in pipeline.unreadable()] == [
        (b"orders/day=2/broken.parquet", "it is cut off")
    ]
    assert [each.path for each in pipeline.unlisted()] == [b"secret"]
    assert pipeline.unreadable_datasets() == {("lake", "orders")}


def test_the_second_run_opens_only_what_could_not_be_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    index = FileIndex(tmp_path / "index")
    first = Pipeline(spark, FUNCTIONS, work=tmp_path / "one", tell=lambda _: None)
    first.run([("lake", "open")], index.read(spark))
    index.replace(first.facts(), run="one")

    second = Pipeline(spark, FUNCTIONS, work=tmp_path / "two", tell=lambda _: None)
    counts = second.run([("lake", "open")], index.read(spark))
    index.replace(second.facts(), run="two")

    assert counts == (4, 1, 3)
    assert list(second.datasets()) == list(first.datasets())
    assert sorted(path.name for path in (tmp_path / "index").iterdir()) == ["CURRENT", "two"]
