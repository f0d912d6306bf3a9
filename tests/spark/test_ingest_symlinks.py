"""Ingestions of a lake with symlinks that lead outside of it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from command_line import ROOT
from given_work import open_work
from lakes import write_lake, write_settings, write_table
from lumos.core.controllers.ingestion_controller import IngestionController
from lumos.core.controllers.profile_controller import ProfileController
from lumos.core.formats.confined import OUTSIDE
from lumos.feature.profiling.profiler import ProfileUnavailableError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lumos.core.controllers.results import IngestResult


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lake = write_lake(tmp_path / "lake")
    write_settings(tmp_path, lake)
    return lake


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """Data outside of the lake."""
    disk = tmp_path / "disk"
    write_table(disk / "part-0.parquet", {"id": [1], "secret": [2]})
    return disk


def follow(project: Path, links: str) -> None:
    lake = project / "lake"
    source = f"{{type: local, name: lake, path: {lake}, follow_symlinks: {links}}}"
    (project / "lumos.yaml").write_text(f"sources:\n  - {source}\n")


def ingested(*under: bytes, full: bool = False) -> IngestResult:
    with open_work(environment=os.environ) as work:
        return IngestionController(work).ingest(under={"lake": under} if under else None, full=full)


def names(result: IngestResult) -> list[str]:
    return [change.dataset.split("/")[-1] for change in result.changes]


def forget(project: Path) -> None:
    """Lose the file index, as an upgrade does."""
    shutil.rmtree(project / ".lumos" / "file_index")


def test_a_link_outside_is_named_with_the_setting_and_is_no_failure(lake: Path, disk: Path) -> None:
    (lake / "linked").symlink_to(disk)
    (lake / "passwd.csv").symlink_to("/etc/passwd")

    result = ingested()

    assert result.datasets.created == 3
    assert [(item.item, item.reason) for item in result.skipped] == [
        (str(lake / "linked"), OUTSIDE),
        (str(lake / "passwd.csv"), OUTSIDE),
    ]
    (warning,) = result.warnings
    assert warning.startswith("source lake: 2 symlinks lead outside of it")
    assert "follow_symlinks: all" in warning
    assert (result.failed, result.complete) == ((), True)


def test_a_second_run_opens_nothing_and_names_the_link_again(lake: Path, disk: Path) -> None:
    (lake / "linked").symlink_to(disk)
    ingested()

    result = ingested()

    assert (result.files.opened, result.datasets.updated) == (0, 0)
    assert [item.item for item in result.skipped] == [str(lake / "linked")]


@pytest.mark.parametrize("is_index_lost", [False, True], ids=["index kept", "index lost"])
@pytest.mark.parametrize("full", [False, True], ids=["", "full"])
def test_a_dataset_behind_a_link_is_not_removed_when_links_are_no_longer_followed(
    lake: Path, disk: Path, tmp_path: Path, is_index_lost: bool, full: bool
) -> None:
    (lake / "linked").symlink_to(disk)
    write_table(disk / "alone.parquet", {"other": [1]})
    (lake / "alone.parquet").symlink_to(disk / "alone.parquet")
    follow(tmp_path, "all")
    assert ingested().datasets.created == 6
    follow(tmp_path, "inside")
    if is_index_lost:
        forget(tmp_path)
    (lake / "campaigns.csv").unlink()

    result = ingested(full=full)

    assert names(result) == ["campaigns"]
    assert len(result.skipped) == 2


@pytest.mark.parametrize("is_index_lost", [False, True], ids=["index kept", "index lost"])
@pytest.mark.parametrize("link", ["part-1.parquet", "day=2"])
def test_columns_of_files_behind_a_link_are_kept_and_the_others_are_updated(
    lake: Path, disk: Path, tmp_path: Path, is_index_lost: bool, link: str
) -> None:
    target = disk / "part-0.parquet" if link.endswith(".parquet") else disk
    (lake / "customers" / link).symlink_to(target)
    follow(tmp_path, "all")
    ingested()
    follow(tmp_path, "inside")
    if is_index_lost:
        forget(tmp_path)
    write_table(lake / "customers" / "part-7.parquet", {"id": [1], "fresh": [2]})

    result = ingested()

    assert {(change.rule, change.path) for change in result.changes} == {
        ("field.added.nullable", "fresh")
    }
    assert any("secret" in text and "are kept" in text for text in result.warnings)


def test_exclude_lets_what_was_found_behind_a_link_be_removed(
    lake: Path, disk: Path, tmp_path: Path
) -> None:
    (lake / "linked").symlink_to(disk)
    follow(tmp_path, "all")
    ingested()
    follow(tmp_path, "inside, exclude: [linked]")

    result = ingested()

    assert names(result) == ["linked"]
    assert result.skipped == ()


def test_a_table_whose_log_is_behind_a_link_stays_as_it_was(
    lake: Path, disk: Path, tmp_path: Path
) -> None:
    table = lake / "delta"
    shutil.copytree(ROOT / "tests" / "golden" / "tables" / "delta-evolved", table)
    follow(tmp_path, "inside")
    ingested()
    (table / "_delta_log").rename(disk / "log")
    (table / "_delta_log").symlink_to(disk / "log")
    write_table(table / "part-9.parquet", {"id": [1]})

    result = ingested()

    assert result.changes == ()
    assert [item.item for item in result.skipped] == [str(table / "_delta_log")]


def test_a_look_at_one_folder_does_not_enter_it_through_a_link(lake: Path, disk: Path) -> None:
    ingested()
    (lake / "linked").symlink_to(disk)

    result = ingested(b"linked")

    assert result.changes == ()
    assert [item.item for item in result.skipped] == [str(lake / "linked")]


def test_a_file_replaced_by_a_link_is_not_profiled(lake: Path, disk: Path) -> None:
    ingested()
    part = lake / "customers" / "part-0.parquet"
    part.unlink()
    part.symlink_to(disk / "part-0.parquet")

    with (
        open_work(environment=os.environ) as work,
        pytest.raises(ProfileUnavailableError, match=OUTSIDE),
    ):
        ProfileController(work).profile(["customers"])
