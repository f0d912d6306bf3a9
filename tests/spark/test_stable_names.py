"""The same lake has the same names, in whatever folder and on whatever machine."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from command_line import Lumos, capturing
from lakes import write_lake, write_settings
from lumos.core.storage.local import LocalStorage

pytestmark = pytest.mark.usefixtures("spark")
ORDERS = "lumos://local/lake/orders"


@pytest.fixture
def lumos(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Lumos:
    write_settings(tmp_path, write_lake(tmp_path / "lake"))
    monkeypatch.chdir(tmp_path)
    return capturing(capfd)


def ingested(lumos: Lumos, *options: str) -> Any:
    result = lumos("ingest", "--json", *options)
    assert result.exit_code == 0, result.stderr
    return result.json()


def test_a_lake_that_was_moved_is_the_same_lake(lumos: Lumos, tmp_path: Path) -> None:
    ingested(lumos)
    history = lumos("history", ORDERS).stdout
    shutil.move("lake", tmp_path / "elsewhere")
    write_settings(tmp_path, tmp_path / "elsewhere")

    again = ingested(lumos)

    counts = again["datasets"]
    assert (counts["found"], counts["created"], counts["removed"]) == (3, 0, 0)
    assert again["changes"] == []
    assert lumos("history", ORDERS).stdout == history
    assert lumos("show", "elsewhere/orders", "--json").json()["urn"] == ORDERS
    assert lumos("show", "./elsewhere/orders/", "--json").json()["urn"] == ORDERS


def test_snapshots_of_two_machines_do_not_differ(
    lumos: Lumos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingested(lumos)
    assert lumos("export", "--output", str(tmp_path / "one.json")).exit_code == 0
    colleague = tmp_path / "home" / "ann"
    colleague.mkdir(parents=True)
    shutil.copytree("lake", colleague / "copy")
    write_settings(colleague, colleague / "copy")
    monkeypatch.chdir(colleague)
    ingested(lumos)
    assert lumos("export", "--output", str(tmp_path / "two.json")).exit_code == 0

    found = lumos(
        "diff", "--source", str(tmp_path / "one.json"), "--target", str(tmp_path / "two.json"),
        "--json",
    )  # fmt: skip

    assert found.exit_code == 0
    assert found.json()["changes"] == []


def test_a_state_with_folders_in_its_names_is_renamed_and_keeps_its_history(
    lumos: Lumos, tmp_path: Path
) -> None:
    with pytest.MonkeyPatch.context() as earlier:
        earlier.setattr(LocalStorage, "urn_parts", lambda self: Path(self.local_folder).parts[1:])
        ingested(lumos)
        campaigns = tmp_path / "lake" / "campaigns.csv"
        campaigns.write_text("id,name,begun\n1,Spring,2026-03-01\n")
        ingested(lumos)
    old = f"lumos://local{tmp_path}/lake"
    history = lumos("history", f"{old}/campaigns").stdout

    result = ingested(lumos)

    assert result["datasets"] == {
        "found": 3, "created": 0, "updated": 0, "unchanged": 3, "removed": 0,
    }  # fmt: skip
    assert result["changes"] == []
    assert "3 datasets of local sources have new URNs" in " ".join(result["warnings"])
    assert lumos("history", "lumos://local/lake/campaigns").stdout == history.replace(
        old, "lumos://local/lake"
    )
    assert lumos("show", f"{old}/orders").exit_code != 0
    assert "0 datasets would get a version" in lumos("version", "compute").stdout
    assert ingested(lumos)["files"]["opened"] == 0


def test_a_discovery_takes_the_last_folder(lumos: Lumos, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("lake")
    for place in (".", "../lake/", os.path.abspath(".")):
        found = lumos("discover", place, "--json").json()["found"]
        assert ORDERS in [each["urn"] for each in found]


def test_a_discovered_file_has_the_root_of_its_folder(lumos: Lumos) -> None:
    result = lumos("discover", "lake/campaigns.csv", "--write-config", "--json")
    (found,) = result.json()["found"]
    assert found["urn"] == "lumos://local/lake/campaigns"
    run = lumos("ingest", "--config", "sources.yaml", "--dry-run", "--json").json()
    assert [each["urn"] for each in run["found"]] == [found["urn"]]


def test_equal_roots_are_refused_also_where_one_of_them_is_ingested(
    lumos: Lumos, tmp_path: Path
) -> None:
    write_lake(tmp_path / "other" / "lake")
    sources = [
        {"type": "local", "path": "lake"},
        {"type": "parquet", "name": "pq", "root": "lake", "path": "other/lake"},
    ]
    (tmp_path / "lumos.yaml").write_text(json.dumps({"sources": sources}))
    for options in ((), ("--source", "pq")):
        result = lumos("ingest", *options)
        assert result.exit_code == 2
        assert "have the same root 'lake'" in result.error_line
        assert "other/lake" in result.error_line
        assert "pq" in result.error_line
