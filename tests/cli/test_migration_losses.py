"""A migration that lost something says so, whatever it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from command_line import Lumos, checked
from whole_snapshot import ORDERS, whole_snapshot

NEW = "sqlite:///new/.lumos/lumos.db"
PARTS = {
    **{name: name for name in ("statistics", "profile", "quality", "cost")},
    "extensions": "extension",
    "assertions": "assertion",
}


@pytest.fixture
def document() -> dict[str, Any]:
    return whole_snapshot().to_json()


def fill(lumos: Lumos, folder: str, document: dict[str, Any]) -> None:
    Path(folder).mkdir()
    file = Path(folder, "given.json")
    file.write_text(json.dumps(document), "utf-8")
    filled = lumos("--state-dir", f"{folder}/.lumos", "import", str(file))
    assert filled.exit_code == 0, filled.stderr


def migrated(lumos: Lumos) -> tuple[Any, str]:
    done = lumos(
        "--state-dir", "old/.lumos", "migrate", "--from", "embedded", "--to", NEW,
        "--skip-existing", "--json",
    )  # fmt: skip
    result = checked(done, "migrate")
    return result, Path(result["reports"][1]).read_text("utf-8")


@pytest.mark.parametrize("part", PARTS)
def test_a_part_of_a_dataset_that_is_lost_is_told(
    lumos: Lumos, document: dict[str, Any], part: str
) -> None:
    fill(lumos, "old", document)
    (orders,) = (each for each in document["datasets"] if each["urn"] == ORDERS)
    del orders[part]
    document.pop("statistics")
    fill(lumos, "new", document)

    failed = lumos(
        "--state-dir", "old/.lumos", "diff", "--source", "embedded", "--target", NEW,
        "--fail-on", "any",
    )  # fmt: skip
    result, page = migrated(lumos)

    assert failed.exit_code == 1
    told = [check["message"] for check in result["checks"] if check["status"] == "warn"]
    assert told == [f"1 dataset lacks: {PARTS[part]}"]
    assert result["differing"] == 1
    assert "Everything arrived." not in page


def test_columns_of_lineage_that_are_lost_are_told(lumos: Lumos, document: dict[str, Any]) -> None:
    fill(lumos, "old", document)
    for edge in document["lineage_edges"]:
        edge.pop("column_mappings", None)
    fill(lumos, "new", document)
    compared = lumos("--state-dir", "old/.lumos", "diff", "--source", "embedded", "--target", NEW)

    result, page = migrated(lumos)

    told = [check["message"] for check in result["checks"] if check["status"] == "warn"]
    assert told == ["1 lineage edge lacks: column lineage"]
    assert "[warn] 1 lineage edge lacks: column lineage\n" in compared.stdout
    assert "Everything arrived." not in page


def test_where_nothing_is_lost_everything_arrived(lumos: Lumos, document: dict[str, Any]) -> None:
    fill(lumos, "old", document)
    Path("new").mkdir()

    result, page = migrated(lumos)

    assert [check["status"] for check in result["checks"]] == ["ok", "ok"]
    assert "Everything arrived." in page
