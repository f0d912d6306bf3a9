"""What the pipeline does with files, without Spark."""

from __future__ import annotations

from pathlib import Path

from lakes import write_lake
from lumos.core.controllers.scan_sources import ScanSource
from lumos.core.controllers.storage_functions import StorageFunctions
from lumos.core.storage.local import LocalSource
from lumos.spark.stages.rows import ItemToRead


def items_of(functions: StorageFunctions) -> list[ItemToRead]:
    return [
        ItemToRead("lake", file.path, file.size or 0, file.mtime_us or 0, None, file.kind)
        for file in functions.list_unit("lake", "")
    ]


def test_every_task_tells_each_schema_once_whatever_readers_told_before(tmp_path: Path) -> None:
    source = LocalSource(name="lake", path=str(write_lake(tmp_path / "lake")))
    functions = StorageFunctions({"lake": ScanSource.of(source)})
    items = items_of(functions)

    for _ in range(3):
        outcomes = [outcome for _, outcome in functions.read_items(items)]
        told = [each.fingerprint for each in outcomes if each.schema is not None]
        assert sorted(told) == sorted({each.fingerprint for each in outcomes})  # type: ignore[type-var]
        assert len(outcomes) == 4
