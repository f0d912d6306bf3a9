"""What a catalog holds and cannot be read: named by every command, never lost nor removed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from command_line import JANUARY, Lumos, checked
from doubles.datahub_server import DataHubDouble, datahub_double
from lumos.core.errors import EXIT_GATE_FAILED

ODD = "urn:li:dataset:(urn:li:dataPlatform:hive,shop.odd,prod)"
SELF = "urn:li:dataset:(urn:li:dataPlatform:hive,shop.orders,PROD)"
PROPERTIES: dict[str, object] = {"customProperties": {}}
STAMP = {"time": 0, "actor": "urn:li:corpuser:etl"}


@pytest.fixture
def catalog(project: Path) -> Iterator[DataHubDouble]:
    """A DataHub with a dataset that reads itself, and with one that it does not give out."""
    with datahub_double() as (url, double):
        settings = f"platform_config:\n  datahub:\n    gms_server: {url}\n"
        (project / "lumos.yaml").write_text(settings, "utf-8")
        upstream = {"dataset": SELF, "type": "TRANSFORMED", "auditStamp": STAMP}
        double.put(SELF, datasetProperties=PROPERTIES, upstreamLineage={"upstreams": [upstream]})
        double.put(ODD, datasetProperties=PROPERTIES)
        yield double


def test_an_export_brings_all_others_and_names_what_cannot_be_read(
    lumos: Lumos, catalog: DataHubDouble
) -> None:
    result = lumos("export", "--platform", "datahub", "--output", "all.json")
    assert result.exit_code == 0
    assert ODD in result.stdout
    assert "1 done, 0 skipped, 1 failed" in result.stdout
    document = json.loads(Path("all.json").read_bytes())
    assert [each["name"] for each in document["datasets"]] == ["orders"]
    assert document["complete"] is False
    kept = document["extensions"]["datahub"]["entities"][SELF]["upstreamLineage"]
    assert SELF in json.dumps(kept)
    assert document.get("lineage_edges", []) == []


def test_a_strict_export_fails_and_has_written_the_others(
    lumos: Lumos, catalog: DataHubDouble
) -> None:
    strict = ("export", "--platform", "datahub", "--strict", "--output")
    result = lumos(*strict, "all.json", "--json")
    assert result.exit_code == EXIT_GATE_FAILED
    answer = result.json()
    assert [item["item"] for item in answer["report"]["items"]] == [f"dataset {ODD}"]
    assert answer["report"]["complete"] is False
    streamed = lumos(*strict, "-")
    assert streamed.exit_code == EXIT_GATE_FAILED
    assert ODD in streamed.stderr
    assert [each["name"] for each in streamed.json()["datasets"]] == ["orders"]


def test_a_snapshot_of_the_catalog_tells_of_it(lumos: Lumos, catalog: DataHubDouble) -> None:
    result = lumos("snapshot", "create", "--platform", "datahub")
    assert result.exit_code == 0
    assert ODD in result.stderr


def test_a_diff_does_not_take_it_for_removed(lumos: Lumos, catalog: DataHubDouble) -> None:
    lumos("export", "--platform", "datahub", "--output", "all.json")
    document = json.loads(Path("all.json").read_bytes())
    there = {**document["datasets"][0], "urn": "lumos://hive/env=prod/shop/odd", "name": "odd"}
    for checksum in ("content_sha256", "document_sha256"):
        document.pop(checksum)
    document.pop("statistics")
    document |= {"complete": True, "datasets": [*document["datasets"], there]}
    Path("before.json").write_text(json.dumps(document), "utf-8")
    compare = ("diff", "--source", "before.json", "--target", "datahub")
    answer = checked(lumos(*compare, "--json"), "diff")
    assert answer["removed"] == []
    assert answer["unobserved"] == [there["urn"]]
    assert [each["item"] for each in answer["unreadable"]] == [f"dataset {ODD}"]
    assert f"not readable: dataset {ODD}" in lumos(*compare).stdout


def test_a_migration_counts_it_as_not_migrated(lumos: Lumos, catalog: DataHubDouble) -> None:
    result = lumos("migrate", "--from", "datahub", "--to", "sqlite:///new.db")
    assert result.exit_code == EXIT_GATE_FAILED
    assert "[warn] 1/2 datasets migrated" in result.stdout
    assert f"[warn] not readable: dataset {ODD}" in result.stdout
    compared = lumos("diff", "--source", "datahub", "--target", "sqlite:///new.db")
    assert "[warn] 1/2 datasets migrated" in compared.stdout
    (page,) = Path(".lumos").rglob("report.html")
    assert "Not everything arrived." in page.read_text("utf-8")
    assert "shop.odd" in page.read_text("utf-8")


def test_a_sync_does_not_write_over_what_it_cannot_read(
    lumos: Lumos, catalog: DataHubDouble
) -> None:
    lumos("import", JANUARY)
    (tag, *_) = json.loads(Path(JANUARY).read_bytes())["tags"]
    urn = f"urn:li:tag:{tag['name']}"
    catalog.put(urn, tagProperties={"name": tag["name"], "description": 5})
    result = lumos("sync", "--all", "--output", "datahub")
    assert f"tag {tag['name']}" in result.stdout
    assert "1 failed" in result.stdout
    assert catalog.stored[urn]["tagProperties"][0] == {"name": tag["name"], "description": 5}
