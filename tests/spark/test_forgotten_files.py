"""Files that cannot be read when nothing is known of them any more: their columns are kept."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from given_work import open_work
from lakes import write_settings, write_table
from lumos.core.controllers.catalog_controller import CatalogController
from lumos.core.controllers.ingestion_controller import IngestionController

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lumos.core.controllers.results import IngestResult


@pytest.fixture
def customers(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "lake" / "customers"
    write_table(folder / "part-0.parquet", {"id": [1]})
    write_table(folder / "part-1.parquet", {"id": [1], "extra": [2]})
    write_settings(tmp_path, tmp_path / "lake")
    return folder


def ingested(*, dry_run: bool = False) -> IngestResult:
    with open_work(environment=os.environ) as work:
        return IngestionController(work).ingest(dry_run=dry_run)


def columns() -> list[str]:
    with open_work(environment=os.environ) as work:
        found = CatalogController(work).show("customers")
        return [field.name for field in found.schema.fields]


def damage(file: Path) -> None:
    file.write_bytes(b"PAR1 and nothing else")


def forget(project: Path) -> None:
    shutil.rmtree(project / ".lumos" / "file_index")


def outdate(project: Path) -> None:
    (origin,) = (project / ".lumos" / "file_index").glob("*/origin.json")
    origin.write_text(origin.read_text().replace('"readers": "', '"readers": "0'))


KEPT = "the columns extra are kept: files that may have them cannot be read"


def test_columns_are_kept_until_no_file_that_may_have_them_is_unreadable(
    customers: Path, tmp_path: Path
) -> None:
    ingested()
    forget(tmp_path)
    damage(customers / "part-1.parquet")

    looked, first, second = ingested(dry_run=True), ingested(), ingested()
    kept = columns()
    write_table(customers / "part-1.parquet", {"id": [1]})
    third = ingested()

    for result in (looked, first, second):
        assert result.changes == ()
        (warning,) = result.warnings
        assert warning.endswith(f"/customers: {KEPT}")
    assert kept == ["id", "extra"]
    assert [change.rule for change in third.changes] == ["field.removed"]
    assert third.warnings == ()
    assert columns() == ["id"]


def test_columns_go_with_the_file_that_could_not_be_read(customers: Path, tmp_path: Path) -> None:
    ingested()
    forget(tmp_path)
    damage(customers / "part-1.parquet")
    ingested()
    (customers / "part-1.parquet").unlink()

    assert [change.rule for change in ingested().changes] == ["field.removed"]


def test_new_columns_of_other_files_are_found_all_the_same(customers: Path, tmp_path: Path) -> None:
    ingested()
    forget(tmp_path)
    damage(customers / "part-1.parquet")
    write_table(customers / "part-0.parquet", {"id": [1], "more": [2]})

    assert [change.rule for change in ingested().changes] == ["field.added.nullable"]
    assert columns() == ["id", "extra", "more"]


def test_what_other_readers_could_not_read_either_keeps_nothing(
    customers: Path, tmp_path: Path
) -> None:
    damage(customers / "part-2.parquet")
    ingested()
    outdate(tmp_path)
    write_table(customers / "part-1.parquet", {"id": [1]})

    result = ingested()

    assert [change.rule for change in result.changes] == ["field.removed"]


def test_what_other_readers_could_read_keeps_its_columns(customers: Path, tmp_path: Path) -> None:
    ingested()
    outdate(tmp_path)
    damage(customers / "part-1.parquet")

    assert ingested().changes == ()
    assert columns() == ["id", "extra"]
