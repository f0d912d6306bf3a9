"""An ingestion into a catalog of which one document is damaged."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from command_line import run_here
from lakes import write_lake, write_settings, write_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_damaged_dataset_is_named_and_left_as_it_is_while_others_are_updated(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    lake = write_lake(tmp_path / "lake")
    write_settings(tmp_path, lake)
    monkeypatch.chdir(tmp_path)
    assert run_here("ingest") == 0
    with closing(sqlite3.connect(tmp_path / ".lumos" / "lumos.db")) as database, database:
        changed = database.execute(
            "UPDATE datasets SET document = replace(document, '\"country\"', '\"kountry\"') "
            "WHERE urn LIKE '%customers%'"
        )
        assert changed.rowcount == 1
    customers = lake / "customers" / "part-1.parquet"
    write_table(customers, {"id": [1], "country": ["NL"], "city": ["Delft"]})
    write_table(
        lake / "orders" / "year=2026" / "month=03" / "part-0.parquet", {"id": [1], "x": [2]}
    )
    capfd.readouterr()
    assert run_here("ingest", "--json") == 0
    result = json.loads(capfd.readouterr().out)
    (failed,) = [each for each in result["items"] if each["status"] == "failed"]
    assert failed["item"].startswith("lumos://")
    assert failed["item"].endswith("/customers")
    assert "does not match its checksum" in failed["reason"]
    assert result["datasets"]["updated"] == 1
    with closing(sqlite3.connect(tmp_path / ".lumos" / "lumos.db")) as database:
        (document,) = database.execute(
            "SELECT document FROM datasets WHERE urn LIKE '%customers%'"
        ).fetchone()
    assert "kountry" in document
