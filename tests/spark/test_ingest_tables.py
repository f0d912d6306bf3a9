"""Tables, workbooks and odd layouts through the whole pipeline, as a user ingests them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from command_line import ROOT, Lumos, capturing
from lakes import write_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = ROOT / "tests" / "golden" / "tables"


@pytest.fixture
def lumos(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Lumos:
    (tmp_path / "lake").mkdir()
    monkeypatch.chdir(tmp_path)
    return capturing(capfd)


def copy_table(name: str, target: Path) -> None:
    """Lay the log of a real table into the lake."""
    shutil.copytree(TABLES / name, target, ignore=shutil.ignore_patterns("expected.json"))


def ingested(lumos: Lumos, *options: str, **source: object) -> Any:
    settings = {"type": "local", "name": "lake", "path": "lake", **source}
    Path("lumos.yaml").write_text(json.dumps({"sources": [settings]}))
    result = lumos("ingest", *options, "--json")
    assert result.exit_code == 0, result.stderr
    return result.json()


def exported(lumos: Lumos) -> dict[str, Any]:
    Path("out.json").unlink(missing_ok=True)
    assert lumos("export", "--output", "out.json").exit_code == 0
    datasets = json.loads(Path("out.json").read_text())["datasets"]
    return {each["urn"].rpartition("/lake/")[2]: each for each in datasets}


def test_tables_are_read_from_their_logs_and_their_files_are_their_own(lumos: Lumos) -> None:
    for name in ("delta-evolved", "iceberg-evolved", "hudi0-cow"):
        copy_table(name, Path("lake", "sales", name))
    write_table(Path("lake/sales/delta-evolved/day=1/part-0.parquet"), {"stray": [1]})
    write_table(Path("lake/sales/loose/part-0.parquet"), {"id": [1]})

    first = ingested(lumos)
    found = exported(lumos)
    second = ingested(lumos)

    assert {name: each["format"] for name, each in found.items()} == {
        "sales/delta-evolved": "delta",
        "sales/iceberg-evolved": "iceberg",
        "sales/hudi0-cow": "hudi",
        "sales/loose": "parquet",
    }
    assert found["sales/delta-evolved"]["kind"] == "TABLE"
    columns = [field["name"] for field in found["sales/delta-evolved"]["schema"]["fields"]]
    assert columns
    assert "stray" not in columns
    assert first["files"]["listed"] == first["files"]["opened"] == 4
    assert second["files"]["opened"] == 0
    assert second["changes"] == []


def test_a_table_whose_log_is_gone_is_no_table_and_its_end_is_told(lumos: Lumos) -> None:
    copy_table("delta-evolved", Path("lake", "orders"))
    write_table(Path("lake/other/part-0.parquet"), {"id": [1]})
    ingested(lumos)
    shutil.rmtree(Path("lake", "orders", "_delta_log"))

    second = ingested(lumos)

    assert [change["rule"] for change in second["changes"]] == ["dataset.removed"]


def test_a_damaged_log_leaves_the_table_as_it_was(lumos: Lumos) -> None:
    copy_table("delta-evolved", Path("lake", "orders"))
    ingested(lumos)
    before = exported(lumos)["orders"]["schema"]
    for file in Path("lake/orders/_delta_log").glob("*.json"):
        file.write_text("{no json")
    for file in Path("lake/orders/_delta_log").glob("*.parquet"):
        file.write_bytes(b"PAR1")

    second = ingested(lumos)

    assert second["changes"] == []
    assert second["files"]["unreadable"] == 1
    assert exported(lumos)["orders"]["schema"] == before


def test_each_sheet_of_a_workbook_is_a_dataset(lumos: Lumos) -> None:
    import xlsxwriter

    with xlsxwriter.Workbook("lake/plan.xlsx") as book:
        for name in ("costs", "people"):
            sheet = book.add_worksheet(name)
            sheet.write_row(0, 0, ["id", name])
            sheet.write_row(1, 0, [1, 2])

    first = ingested(lumos)
    found = exported(lumos)
    second = ingested(lumos)

    assert sorted(found) == ["plan/costs", "plan/people"]
    assert [field["name"] for field in found["plan/people"]["schema"]["fields"]] == ["id", "people"]
    assert first["files"]["opened"] == 1
    assert second["files"]["opened"] == 0
    assert second["changes"] == []


def test_paths_that_the_rules_misread_can_be_given(lumos: Lumos) -> None:
    for region in ("north", "south"):
        write_table(Path(f"lake/orders/{region}.parquet"), {"id": [1]})

    by_rules = ingested(lumos)
    by_spec = ingested(lumos, path_specs=["{table}/{region}.parquet"])

    assert by_rules["datasets"]["found"] == 2
    assert by_spec["datasets"]["found"] == 1
    assert exported(lumos)["orders"]["location"]["partition_keys"] == ["region"]


def test_what_holds_no_table_is_named_and_no_failure(lumos: Lumos) -> None:
    Path("lake/notes.txt").write_text("Please do not touch this folder.\nThank you.\n")
    write_table(Path("lake/orders/part-0.parquet"), {"id": [1]})

    result = ingested(lumos, "--strict")

    assert result["counts"] == {"done": 1, "skipped": 1, "failed": 0}
    (skipped,) = [item for item in result["items"] if item["status"] == "skipped"]
    assert skipped["item"].endswith("notes.txt")


def test_ranges_of_values_are_told_only_where_they_are_allowed(lumos: Lumos) -> None:
    write_table(Path("lake/orders/part-0.parquet"), {"id": [7, 4711], "name": ["planted", "x"]})

    ingested(lumos)
    assert "4711" not in Path("out.json").read_text() if exported(lumos) else False
    ingested(lumos, value_ranges=True)
    columns = {each["path"]: each for each in exported(lumos)["orders"]["statistics"]["columns"]}

    assert columns["id"]["max"] == 4711
    assert "planted" not in Path("out.json").read_text()
