"""Ingestion as a user runs it, on the shared session."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from command_line import Lumos, capturing, check_schema
from lakes import write_lake, write_settings, write_table
from lumos.core.store.snapshots.snapshot_store import SnapshotStore
from snapshot_samples import sample_snapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    return write_lake(tmp_path / "lake")


@pytest.fixture
def lumos(
    spark: SparkSession,
    tmp_path: Path,
    lake: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Lumos:
    write_settings(tmp_path, lake)
    monkeypatch.chdir(tmp_path)
    return capturing(capfd)


def ingested(lumos: Lumos, *options: str) -> Any:
    result = lumos("ingest", *options, "--json")
    assert result.exit_code == 0, result.stderr
    check_schema(result.json(), "ingest")
    return result.json()


def newest_content(project: Path) -> str:
    newest = max((project / ".lumos" / "snapshots").iterdir())
    content: str = json.loads((newest / "manifest.json").read_text())["content_hash"]
    return content


def urn_of(lake: Path, name: str) -> str:
    return f"lumos://local/{lake.name}/{name}"


def test_a_lake_is_found_with_partitions_rows_and_columns(
    lumos: Lumos, lake: Path, tmp_path: Path
) -> None:
    result = ingested(lumos)
    lumos("export", "--output", "out.json")

    assert result["datasets"] == {
        "found": 3, "created": 3, "updated": 0, "unchanged": 0, "removed": 0,
    }  # fmt: skip
    datasets = {
        each["name"]: each for each in json.loads((tmp_path / "out.json").read_text())["datasets"]
    }
    orders = datasets["orders"]
    assert orders["urn"] == urn_of(lake, "orders")
    assert orders["format"] == "parquet"
    assert orders["location"]["partitioning"] == "year={yyyy}/month={mm}"
    assert [field["name"] for field in orders["schema"]["fields"]] == [
        "id", "total", "coupon", "year", "month",
    ]  # fmt: skip
    assert orders["statistics"]["file_count"] == 2
    assert orders["statistics"]["row_count"] == 4
    assert datasets["campaigns"]["format"] == "csv"


def test_a_second_run_opens_nothing_and_changes_nothing(lumos: Lumos, tmp_path: Path) -> None:
    first = ingested(lumos)
    content = newest_content(tmp_path)
    second = ingested(lumos)

    assert first["files"] == {"listed": 4, "opened": 4, "unchanged": 0, "unreadable": 0}
    assert second["files"] == {"listed": 4, "opened": 0, "unchanged": 4, "unreadable": 0}
    assert second["changes"] == []
    assert newest_content(tmp_path) == content
    history = lumos("history", "orders", "--json").json()["schema_history"]
    assert [version["version"] for version in history] == ["1.0.0"]
    assert ingested(lumos, "--full")["files"]["opened"] == 4


def test_a_run_without_news_needs_no_spark(lumos: Lumos, monkeypatch: pytest.MonkeyPatch) -> None:
    first = ingested(lumos)

    def refused(*_: object, **__: object) -> None:
        raise AssertionError("Spark was asked for")

    monkeypatch.setattr("lumos.spark.pipeline._SECONDS_BEFORE_SPARK", 600.0)
    monkeypatch.setattr("lumos.core.runtime.unit_of_work.UnitOfWork.spark_session", refused)
    second = ingested(lumos)

    assert second["files"]["unchanged"] == first["files"]["opened"]
    assert second["formats"] == first["formats"]
    assert second["snapshot"] == first["snapshot"]


def test_what_changed_is_classified_versioned_and_removed(lumos: Lumos, lake: Path) -> None:
    ingested(lumos)
    for month in (1, 2):
        write_table(
            lake / "orders" / "year=2026" / f"month={month:02}" / "part-0.parquet",
            {"id": [1, 2], "total": [9.5, 7.25]},
        )
    (lake / "campaigns.csv").unlink()
    write_table(lake / "refunds" / "part-0.parquet", {"id": [1]})

    result = ingested(lumos)

    found = {(change["dataset"].rsplit("/", 1)[1], change["rule"]) for change in result["changes"]}
    assert found == {
        ("orders", "field.removed"),
        ("campaigns", "dataset.removed"),
        ("refunds", "dataset.added"),
    }
    versions = {each["dataset"].rsplit("/", 1)[1]: each["version"] for each in result["versions"]}
    assert versions == {"orders": "2.0.0", "campaigns": "2.0.0", "refunds": "1.0.0"}
    assert lumos("show", urn_of(lake, "campaigns")).exit_code == 3
    history = lumos("history", urn_of(lake, "campaigns"), "--json").json()["schema_history"]
    assert history[-1]["change_type"] == "DATASET_REMOVED"


def test_a_file_that_cannot_be_read_is_named_and_its_dataset_stays(
    lumos: Lumos, lake: Path
) -> None:
    ingested(lumos)
    file = lake / "customers" / "part-0.parquet"
    file.write_bytes(file.read_bytes()[:-9])

    result = lumos("ingest", "--json")

    assert result.exit_code == 0
    (item,) = [item for item in result.json()["items"] if item["status"] == "failed"]
    assert item["item"] == str(file)
    assert "cut off" in item["reason"]
    assert result.json()["datasets"]["removed"] == 0
    assert lumos("show", "customers").exit_code == 0
    assert lumos("ingest", "--strict").exit_code == 1


def test_what_people_added_survives_the_next_run(lumos: Lumos, lake: Path, tmp_path: Path) -> None:
    ingested(lumos)
    (tmp_path / "docs.yaml").write_text(
        "datasets: [{dataset: orders, description: Ours., tags: [tier-1]}]\n"
    )
    assert lumos("enrich", "docs.yaml").exit_code == 0
    write_table(lake / "orders" / "year=2026" / "month=03" / "part-0.parquet", {"id": [1]})

    ingested(lumos)

    orders = lumos("show", "orders", "--json").json()
    assert orders["documentation"]["description"] == "Ours."
    assert orders["tags"] == ["tier-1"]
    assert orders["statistics"]["file_count"] == 3


def test_a_dry_run_and_a_discovery_write_nothing(lumos: Lumos, lake: Path, tmp_path: Path) -> None:
    planned = ingested(lumos, "--dry-run")
    discovered = lumos("discover", str(lake), "--json").json()

    assert [each["urn"] for each in planned["found"]] == [
        each["urn"] for each in discovered["found"]
    ]
    assert planned["datasets"]["found"] == 3
    assert not (tmp_path / ".lumos" / "lumos.db").exists()


def test_a_dry_run_says_what_would_change(lumos: Lumos, lake: Path) -> None:
    ingested(lumos)
    write_table(lake / "orders" / "year=2026" / "month=02" / "part-0.parquet", {"id": ["x"]})
    write_table(lake / "invoices" / "part-0.parquet", {"id": [1]})
    shutil.rmtree(lake / "customers")

    planned = ingested(lumos, "--dry-run")
    done = ingested(lumos)

    assert planned["changes"] == done["changes"] != []
    assert planned["datasets"] == done["datasets"]
    assert planned["snapshot"] is None


def test_a_discovery_writes_settings_that_find_the_same(
    lumos: Lumos, lake: Path, tmp_path: Path
) -> None:
    odd = lake / "pay${day}ments"
    odd.mkdir()
    (odd / "all.csv").write_text("a,b\n1,2\n")

    found = lumos("discover", str(lake), "--write-config", "--output", "found.yaml", "--json")
    again = lumos("discover", str(lake), "--write-config", "--output", "found.yaml")
    (tmp_path / "elsewhere").mkdir()
    run = lumos(
        "--state-dir", "elsewhere", "ingest", "--config", "found.yaml", "--dry-run", "--json"
    )

    assert found.exit_code == run.exit_code == 0, run.stderr
    assert [each["urn"] for each in run.json()["found"]] == [
        each["urn"] for each in found.json()["found"]
    ]
    assert again.exit_code == 2
    assert "exists already" in again.stderr


def test_one_missing_source_does_not_stop_the_others(lumos: Lumos, tmp_path: Path) -> None:
    settings = (tmp_path / "lumos.yaml").read_text()
    (tmp_path / "lumos.yaml").write_text(
        settings + "  - {type: local, name: gone, path: no/such/folder}\n"
    )

    result = ingested(lumos)

    assert result["datasets"]["found"] == 3
    assert result["complete"] is False
    assert [item["item"] for item in result["items"] if item["status"] == "failed"] == ["gone"]
    alone = lumos("ingest", "--source", "gone")
    assert alone.exit_code == 3
    assert "no/such/folder" in alone.error_line


def test_no_source_and_an_unknown_source_are_usage_errors(lumos: Lumos, tmp_path: Path) -> None:
    assert lumos("ingest", "--source", "lkae").exit_code == 2
    (tmp_path / "lumos.yaml").write_text("sources: []\n")
    result = lumos("ingest")
    assert result.exit_code == 2
    assert "lumos discover" in result.error_line


def test_a_chain_ingests_and_reports(lumos: Lumos, tmp_path: Path) -> None:
    result = lumos("run", "ingest:lumos.yaml", "snapshot", "report:page.html", "--json")

    assert result.exit_code == 0, result.stderr
    steps = result.json()["steps"]
    assert [step["operation"] for step in steps] == ["ingest", "snapshot", "report"]
    assert steps[0]["counts"]["done"] == 3
    assert "orders" in (tmp_path / "page.html").read_text()


def test_the_sdk_ingests_too(lumos: Lumos, tmp_path: Path) -> None:
    from lumos import Lumos as Project

    with Project(tmp_path / "lumos.yaml", state_dir=tmp_path / "sdk") as project:
        found = project.ingest()
        again = project.ingest("lake")

        assert found.datasets.created == 3
        assert again.files.opened == 0
        assert "3 datasets in 4 files" in repr(found)
        assert project.dataset("orders").version == "1.0.0"


def versions_of(lumos: Lumos, reference: str) -> list[str]:
    history = lumos("history", reference, "--json").json()["schema_history"]
    return [version["version"] for version in history]


def test_columns_of_a_file_that_cannot_be_read_now_are_not_removed(
    lumos: Lumos, lake: Path
) -> None:
    write_table(lake / "customers" / "part-1.parquet", {"id": [2], "tier": ["gold"]})
    ingested(lumos)
    file = lake / "customers" / "part-1.parquet"
    whole = file.read_bytes()
    file.write_bytes(whole[:-9])

    damaged = ingested(lumos)
    forced = ingested(lumos, "--full")

    assert damaged["changes"] == forced["changes"] == []
    assert damaged["files"]["unreadable"] == 1
    assert versions_of(lumos, "customers") == ["1.0.0"]


def test_each_format_under_one_name_comes_and_goes_alone(lumos: Lumos, lake: Path) -> None:
    (lake / "customers" / "part-0.csv").write_text("id,country\n1,NL\n")
    ingested(lumos)
    assert lumos("show", urn_of(lake, "customers.csv")).exit_code == 0
    (lake / "customers" / "part-0.csv").unlink()

    result = ingested(lumos)

    assert result["datasets"]["removed"] == 1
    assert lumos("show", urn_of(lake, "customers.csv")).exit_code == 3
    assert lumos("show", urn_of(lake, "customers"), "--json").json()["format"] == "parquet"


def test_drift_is_told_and_goes_when_it_is_healed(lumos: Lumos, lake: Path) -> None:
    write_table(lake / "customers" / "part-1.parquet", {"id": [2]})
    told = ingested(lumos)
    customers = lumos("show", "customers", "--json").json()
    assert any("country" in warning for warning in told["warnings"])
    assert "schema_drift" in customers["extensions"]

    write_table(lake / "customers" / "part-1.parquet", {"id": [2], "country": ["DE"]})
    healed = ingested(lumos)

    assert healed["warnings"] == []
    assert "schema_drift" not in lumos("show", "customers", "--json").json()["extensions"]


def test_a_dataset_that_comes_back_gets_a_version(lumos: Lumos, lake: Path) -> None:
    ingested(lumos)
    (lake / "campaigns.csv").rename(lake.parent / "away.csv")
    ingested(lumos)
    (lake.parent / "away.csv").rename(lake / "campaigns.csv")

    result = ingested(lumos)

    assert [change["rule"] for change in result["changes"]] == ["dataset.added"]
    assert versions_of(lumos, "campaigns")[:2] == ["1.0.0", "2.0.0"]
    assert len(versions_of(lumos, "campaigns")) == 3


def test_a_source_without_any_file_is_doubted(lumos: Lumos, lake: Path, tmp_path: Path) -> None:
    ingested(lumos)
    lake.rename(tmp_path / "unmounted")
    lake.mkdir()

    doubted = ingested(lumos)
    confirmed = ingested(lumos, "--full")

    assert doubted["datasets"]["removed"] == 0
    assert any("no file at all" in warning for warning in doubted["warnings"])
    assert confirmed["datasets"]["removed"] == 3


def test_sources_that_overlap_are_refused(lumos: Lumos, lake: Path, tmp_path: Path) -> None:
    settings = (tmp_path / "lumos.yaml").read_text()
    (tmp_path / "lumos.yaml").write_text(
        settings + f"  - {{type: local, name: part, path: {lake}/orders}}\n"
    )

    result = lumos("ingest")

    assert result.exit_code == 2
    assert "lake and part overlap" in result.error_line


def test_a_damaged_file_index_costs_a_full_read_and_nothing_else(
    lumos: Lumos, tmp_path: Path
) -> None:
    ingested(lumos)
    for part in (tmp_path / ".lumos" / "file_index").rglob("*.parquet"):
        part.write_bytes(b"no index any more")

    assert ingested(lumos)["files"]["opened"] == 4
    assert ingested(lumos)["files"]["opened"] == 0


def test_the_state_folder_is_no_data_even_inside_the_lake(
    lumos: Lumos, lake: Path, tmp_path: Path
) -> None:
    write_settings(tmp_path, lake, state_dir=str(lake / "state"))

    ingested(lumos)
    assert ingested(lumos)["datasets"]["found"] == 3


def test_a_warning_about_a_file_stays_while_the_file_does(lumos: Lumos, lake: Path) -> None:
    (lake / "export.parquet").write_text("id,name\n1,a\n2,b\n")

    for _ in range(2):
        assert any("named .parquet but is CSV" in text for text in ingested(lumos)["warnings"])


def test_a_time_that_no_calendar_has_is_left_out(lumos: Lumos, lake: Path) -> None:
    from datetime import datetime

    from lumos.feature.discovery.drift import moment_of

    assert moment_of(10**18) is None
    assert isinstance(moment_of(0), datetime)


def test_the_demo_catches_every_planted_change_and_cleans_up(lumos: Lumos, tmp_path: Path) -> None:
    from lumos.feature.demo.lake import EXPECTED_CHANGES, EXPECTED_UNREADABLE

    result = lumos("demo", "--path", "shop", "--json")

    assert result.exit_code == 0, result.stderr
    shown = result.json()
    check_schema(shown, "demo")
    assert len(shown["second"]["changes"]) == len(EXPECTED_CHANGES)
    assert shown["second"]["files"]["unreadable"] == len(EXPECTED_UNREADABLE)
    assert "customers" in Path(shown["report"]).read_text()
    assert lumos("demo", "--path", str(tmp_path)).exit_code == 2  # not empty, and no demo
    assert lumos("demo", "--path", "shop", "--clean").exit_code == 0
    assert not (tmp_path / "shop").exists()


def test_an_ingest_warns_of_a_newest_snapshot_that_is_dated_in_the_future(
    lumos: Lumos, lake: Path, tmp_path: Path
) -> None:
    ahead = SnapshotStore(tmp_path / ".lumos" / "snapshots").write(
        sample_snapshot(1), at=datetime.now(UTC) + timedelta(days=365)
    )

    first = ingested(lumos)
    second = ingested(lumos)

    (warning,) = first["warnings"]
    assert warning.startswith(f"snapshot {ahead.id} is dated in the future")
    assert second["warnings"] == []
    assert lumos("snapshot", "list", "--json").json()["snapshots"][-1]["id"] == first["snapshot"]
