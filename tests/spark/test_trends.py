"""What runs measure of datasets over time, as a user sees it."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from command_line import ROOT
from given_work import open_work
from lakes import write_settings, write_table
from lumos.core.controllers.catalog_controller import CatalogController
from lumos.entry.sdk import Lumos as Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lumos.feature.extraction.trends import TrendPoint

ARTIFACTS = ROOT / "examples" / "dbt" / "target"


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def stored_document(name: str) -> str:
    with closing(sqlite3.connect(".lumos/lumos.db")) as database:
        query = "SELECT document FROM datasets WHERE name = ?"
        ((document,),) = database.execute(query, (name,)).fetchall()
    return str(document)


def measured(urn: str, kind: str) -> list[TrendPoint]:
    with open_work(environment=os.environ) as work:
        points = CatalogController(work).trend(urn).observations
    return [point for point in points if point.kind == kind]


def test_more_rows_are_a_point_of_a_series_and_no_new_version(folder: Path) -> None:
    lake = folder / "lake"
    write_settings(folder, lake)
    write_table(lake / "orders" / "part-0.parquet", {"id": [1, 2]})
    urn = f"lumos://local/{lake.name}/orders"
    with Project() as project:
        project.ingest()
        document = stored_document("orders")
        write_table(lake / "orders" / "part-1.parquet", {"id": [3, 4, 5]})
        result = project.ingest()
        assert (result.datasets.updated, result.changes, result.versions) == (1, (), ())
        assert len(project.history(urn).schema_history) == 1
        assert stored_document("orders") == document
        points = measured(urn, "STATISTICS")
        assert [(each.rows, each.files, each.change) for each in points] == [
            (2, 1, None),
            (5, 2, 3),
        ]
        statistics = project.dataset(urn).statistics
        assert statistics is not None
        assert statistics.row_count == 5
        project.ingest()
        assert len(measured(urn, "STATISTICS")) == 2

        project.profile(urn)
        write_table(lake / "orders" / "part-2.parquet", {"id": [6]})
        project.ingest()
        project.profile(urn)
        assert [each.rows for each in measured(urn, "PROFILE")] == [5, 6]
        assert {each.contributor for each in measured(urn, "PROFILE")} == {"inferred:profile"}
        assert [each.rows for each in measured(urn, "STATISTICS")] == [2, 5, 6]
        found = project.dataset(urn)
        assert found.profile is not None
        assert found.profile.row_count == 6
        assert len(project.history(urn).schema_history) == 1


def test_what_dbt_measured_is_shown_and_kept(folder: Path) -> None:
    results: dict[str, Any] = json.loads((ARTIFACTS / "run_results.json").read_text("utf-8"))
    Path("run_results.json").write_text(json.dumps(results))
    Path("lumos.yaml").write_text(
        f"sources:\n  - {{type: dbt, name: shop, manifest_path: {ARTIFACTS}/manifest.json, "
        f"catalog_path: {ARTIFACTS}/catalog.json, run_results_path: run_results.json}}\n"
    )
    urn = "lumos://postgres/shop/public/orders"
    with Project() as project:
        project.ingest()
        quality = project.dataset(urn).quality
        assert quality is not None
        assert quality.validator == "dbt"
        assert len(measured(urn, "QUALITY")) == 1
        assert project.ingest().datasets.updated == 0
        assert len(measured(urn, "QUALITY")) == 1

        for result in results["results"]:
            if result["unique_id"].startswith("test."):
                result.update(status="fail", failures=2)
        results["metadata"]["generated_at"] = "2999-01-01T00:00:00Z"
        Path("run_results.json").write_text(json.dumps(results))
        project.ingest()
        first, second = measured(urn, "QUALITY")
        assert first.failed_checks != second.failed_checks
        assert second.at.year < 2999, "no measurement is later than the run that brings it"
        assert second.contributor == "declared:shop"
        assert len(project.history(urn).schema_history) == 1
