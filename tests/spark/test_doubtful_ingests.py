"""Ingestions that see a part of what there is, or see it in another way than before."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from given_work import open_work
from lakes import write_lake, write_settings, write_table
from lumos.core.controllers.ingestion_controller import IngestionController

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lumos.core.controllers.results import IngestResult


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lake = write_lake(tmp_path / "lake")
    write_settings(tmp_path, lake)
    return lake


def ingested(
    *under: bytes, source: str = "lake", dry_run: bool = False, full: bool = False
) -> IngestResult:
    with open_work(environment=os.environ) as work:
        return IngestionController(work).ingest(
            under={source: under} if under else None, dry_run=dry_run, full=full
        )


def follow_all_links(project: Path) -> None:
    settings = project / "lumos.yaml"
    settings.write_text(settings.read_text().replace("}", ", follow_symlinks: all}"))


def test_a_look_at_one_folder_without_an_index_removes_nothing(lake: Path, tmp_path: Path) -> None:
    ingested()
    shutil.rmtree(tmp_path / ".lumos" / "file_index")

    result = ingested(b"customers")

    assert result.datasets.removed == 0
    assert result.changes == ()


def test_a_dry_run_doubts_an_empty_source_too(lake: Path, tmp_path: Path) -> None:
    ingested()
    lake.rename(tmp_path / "unmounted")
    lake.mkdir()
    assert ingested(dry_run=True).datasets.removed == 0
    assert ingested().datasets.removed == 0
    lake.rmdir()
    (tmp_path / "unmounted").rename(lake)

    assert ingested(b"customers").datasets.removed == 0


def test_a_folder_whose_name_is_no_text_can_be_looked_into(lake: Path) -> None:
    ingested()
    folder = os.fsencode(lake) + b"/caf\xe9"
    os.mkdir(folder)
    shutil.copy(lake / "customers" / "part-0.parquet", os.fsdecode(folder))

    assert ingested(b"caf\xe9").datasets.created == 1


def test_a_table_and_files_of_one_name_are_two_datasets(lake: Path) -> None:
    log = lake / "campaigns" / "_delta_log"
    log.mkdir(parents=True)
    schema = {"type": "struct", "fields": []}
    meta = {"id": "1", "format": {"provider": "parquet"}, "schemaString": json.dumps(schema)}
    lines = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": {**meta, "partitionColumns": [], "configuration": {}}},
    ]
    (log / f"{0:020}.json").write_text("\n".join(map(json.dumps, lines)))

    first, second = ingested(), ingested()

    assert first.datasets.created == first.datasets.found == 4
    assert second.changes == ()
    assert second.datasets.unchanged == 4


def test_a_source_of_one_file_is_named_by_its_path(lake: Path, tmp_path: Path) -> None:
    file = tmp_path / "single.parquet"
    write_table(file, {"id": [1]})
    file.write_bytes(file.read_bytes()[:-9])
    write_settings(tmp_path, file)

    assert [item.item for item in ingested().failed] == [str(file)]


def test_a_linked_folder_whose_disk_is_missing_keeps_its_dataset(
    lake: Path, tmp_path: Path
) -> None:
    follow_all_links(tmp_path)
    disk = tmp_path / "disk"
    write_table(disk / "part-0.parquet", {"id": [1]})
    (lake / "linked").symlink_to(disk)
    assert ingested().datasets.created == 4
    (lake / "campaigns.csv").unlink()
    disk.rename(tmp_path / "unmounted")

    result = ingested()

    assert [item.reason for item in result.failed] == [
        "it cannot be listed: the link leads nowhere"
    ]
    assert [change.dataset.split("/")[-1] for change in result.changes] == ["campaigns"]


def test_a_linked_file_whose_disk_is_missing_keeps_its_columns(lake: Path, tmp_path: Path) -> None:
    follow_all_links(tmp_path)
    disk = tmp_path / "disk"
    write_table(disk / "more.parquet", {"id": [1], "extra": [2]})
    (lake / "customers" / "part-1.parquet").symlink_to(disk / "more.parquet")
    ingested()
    disk.rename(tmp_path / "unmounted")

    result = ingested()

    assert [item.reason for item in result.failed] == ["it is gone since it was listed"]
    assert result.changes == ()


def test_a_link_that_leads_nowhere_and_would_not_be_data_is_nobodys_business(lake: Path) -> None:
    (lake / "customers" / ".#lock").symlink_to("nobody@nowhere")

    assert ingested().failed == ()


def test_what_is_reported_follows_the_policy_of_the_project(lake: Path, tmp_path: Path) -> None:
    ingested()
    settings = tmp_path / "lumos.yaml"
    rules = "change_policy: {rules: {dataset.removed: NON_BREAKING}}\n"
    settings.write_text(settings.read_text() + rules)
    (lake / "campaigns.csv").unlink()

    (change,) = ingested().changes

    assert (change.rule, change.level) == ("dataset.removed", "NON_BREAKING")
