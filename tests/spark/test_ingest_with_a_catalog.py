"""Ingestion where `platform` names another catalog: the state first, then a sync."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from doubles.datahub_server import DataHubDouble, datahub_double
from given_work import open_work
from lakes import write_lake, write_table
from lumos.core.controllers.ingestion_controller import IngestionController
from lumos.core.models import Documentation, LumosDataset, with_parts
from lumos.core.runtime.unit_of_work import UnitOfWork

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lumos.core.controllers.results import IngestResult
    from lumos.core.platform.interface import MetadataPlatformInterface


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_lake(tmp_path / "lake")


@pytest.fixture
def datahub(lake: Path) -> Iterator[DataHubDouble]:
    with datahub_double() as (url, double):
        settings(lake, url)
        yield double


def settings(lake: Path, url: str) -> None:
    Path("lumos.yaml").write_text(
        f"platform: datahub\nplatform_config:\n  datahub: {{gms_server: '{url}'}}\n"
        f"sources:\n  - {{type: local, name: lake, path: {lake}}}\n"
    )


def ingested(*, dry_run: bool = False) -> IngestResult:
    with open_work(environment=os.environ) as work:
        return IngestionController(work).ingest(dry_run=dry_run)


def in_datahub(name: str) -> LumosDataset:
    with open_work(environment=os.environ) as work:
        return next(each for each in _catalog(work).list() if each.name == name)


def _catalog(work: UnitOfWork) -> MetadataPlatformInterface:
    return work.platform(None)


def test_the_catalog_gets_what_was_ingested(datahub: DataHubDouble) -> None:
    first = ingested()
    assert first.sync is not None
    assert first.sync.kinds["dataset"].new == first.datasets.created > 0
    again = ingested()
    assert again.sync is not None
    assert (again.sync.writes, again.datasets.updated) == (0, 0)


def test_a_run_without_news_asks_the_catalog_for_no_dataset(datahub: DataHubDouble) -> None:
    ingested()
    before = len(datahub.requests)
    ingested()
    asked = len(datahub.requests) - before
    assert asked <= 2, "only whether the server answers"


def test_what_people_changed_in_the_catalog_stays(lake: Path, datahub: DataHubDouble) -> None:
    ingested()
    with open_work(environment=os.environ) as work:
        catalog = _catalog(work)
        dataset = next(each for each in catalog.list() if each.name == "orders")
        documentation = Documentation(description="What people know of it.")
        catalog.emit_dataset(with_parts(dataset, documentation=documentation))
    write_table(
        lake / "orders" / "year=2026" / "month=12" / "part-0.parquet", {"id": [1], "brand_new": [2]}
    )

    result = ingested()

    assert result.datasets.updated == 1
    there = in_datahub("orders")
    assert there.documentation.description == "What people know of it."
    assert "brand_new" in {field.name for field in there.schema.fields}


def test_what_is_ingested_is_kept_where_the_catalog_is_out_of_reach(lake: Path) -> None:
    settings(lake, "http://127.0.0.1:9")
    failed = ingested()
    assert failed.sync is None
    assert failed.sync_error is not None
    assert failed.snapshot is not None
    with datahub_double() as (url, _):
        settings(lake, url)
        later = ingested()
    assert later.datasets.created == 0
    assert later.sync is not None
    assert later.sync.kinds["dataset"].new == failed.datasets.created


def test_a_dry_run_asks_no_catalog(datahub: DataHubDouble) -> None:
    result = ingested(dry_run=True)
    assert (result.sync, result.datasets.created > 0) == (None, True)
    assert len(datahub.requests) == 0
