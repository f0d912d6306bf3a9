"""Only the user can read what an ingestion leaves in the state folder."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from command_line import run_here
from lakes import write_lake, write_settings, write_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(params=[0o000, 0o022], ids="umask {:03o}".format)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    try:
        yield request.param
    finally:
        os.umask(before)


def open_to_others(folder: Path) -> dict[str, str]:
    found = {path: stat.S_IMODE(path.lstat().st_mode) for path in [folder, *folder.rglob("*")]}
    return {str(path): oct(mode) for path, mode in found.items() if mode & 0o077}


@pytest.mark.usefixtures("umask")
def test_only_the_user_can_read_what_an_ingestion_leaves(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = write_lake(tmp_path / "lake")
    write_settings(tmp_path, lake)
    monkeypatch.chdir(tmp_path)
    assert run_here("ingest") == 0
    assert list((tmp_path / ".lumos" / "file_index").rglob("*.parquet"))
    assert open_to_others(tmp_path / ".lumos") == {}
    write_table(lake / "new_table" / "part-0.parquet", {"id": [1, 2]})
    assert run_here("ingest") == 0
    assert open_to_others(tmp_path / ".lumos") == {}
