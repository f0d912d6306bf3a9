"""Files that only their names bind: what is one dataset stays one, whatever is read again."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from command_line import Lumos, capturing
from lakes import write_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ONE, TWO = "id,city,price\n1,x,2\n", "id,doctor,room\n1,x,2\n"


@pytest.fixture
def lumos(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Lumos:
    write_settings(tmp_path, tmp_path / "lake")
    monkeypatch.chdir(tmp_path)
    return capturing(capfd)


def write(lake: Path, **files: str) -> None:
    lake.mkdir(exist_ok=True)
    for name, text in files.items():
        (lake / f"{name.replace('_', '-')}.csv").write_text(text)


def names(lumos: Lumos) -> dict[str, object]:
    """Return the files of each dataset that a full look without the index finds."""
    result = lumos("ingest", "--dry-run", "--json")
    assert result.exit_code == 0, result.stderr
    return {
        dataset["urn"].rpartition("/")[2]: dataset.get("extensions", {}).get("files")
        for dataset in result.json()["found"]
    }


def test_names_stay_when_files_come_and_when_the_index_is_lost(
    lumos: Lumos, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    write(lake, ticket_101=ONE)
    assert lumos("ingest").exit_code == 0

    write(lake, ticket_100=TWO, ticket_102=ONE, ticket_103=TWO)
    first = lumos("ingest", "--json")
    said = [text for text in first.json()["warnings"] if "kept apart" in text]
    assert len(said) == 1

    shutil.rmtree(tmp_path / ".lumos" / "file_index")
    found = names(lumos)
    assert set(found) == {"ticket", "ticket-100"}
    assert found["ticket"] == {"count": 2, "first": ["ticket-101.csv", "ticket-102.csv"]}
