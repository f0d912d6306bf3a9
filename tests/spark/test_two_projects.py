"""Two projects in one process: each writes to its own state, catalogs and nothing else."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from command_line import Lumos, capturing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = """\
sources:
  - {{type: local, name: files, root: {table}, path: data}}
{more}
"""


def make_project(folder: Path, table: str, *, more: str = "") -> Path:
    data = folder / "data"
    data.mkdir(parents=True)
    (data / f"{table}.csv").write_text("id,amount\n1,2\n2,3\n")
    settings = folder / "lumos.yaml"
    settings.write_text(SETTINGS.format(table=table, more=more))
    return settings


def names_in(database: Path) -> list[str]:
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        rows = connection.execute("select urn from datasets order by urn").fetchall()
    finally:
        connection.close()
    return [urn.rpartition("/")[2] for (urn,) in rows]


@pytest.fixture
def lumos(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Lumos:
    monkeypatch.chdir(tmp_path)
    return capturing(capfd)


def test_a_chain_over_two_projects_writes_each_to_its_own_state(
    lumos: Lumos, tmp_path: Path
) -> None:
    make_project(tmp_path / "a", "orders")
    make_project(tmp_path / "b", "payments")

    done = lumos("run", "ingest:a/lumos.yaml", "ingest:b/lumos.yaml", "--json")

    assert done.exit_code == 0, done.stderr
    assert names_in(tmp_path / "a/.lumos/lumos.db") == ["orders"]
    assert names_in(tmp_path / "b/.lumos/lumos.db") == ["payments"]
    assert not (tmp_path / ".lumos").exists()


@pytest.mark.parametrize(
    "more", ["state_dir: state", "database_url: sqlite:///own.db", "snapshots: {path: kept}"]
)
def test_relative_paths_of_the_state_begin_at_the_settings_file(
    lumos: Lumos, tmp_path: Path, more: str
) -> None:
    make_project(tmp_path / "a", "orders", more=more)
    make_project(tmp_path / "b", "payments", more=more)

    done = lumos("run", "ingest:a/lumos.yaml", "ingest:b/lumos.yaml", "snapshot", "--json")

    assert done.exit_code == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir() if path.name not in {"a", "b"}] == []
    for project, name in (("a", "orders"), ("b", "payments")):
        databases = [path for path in (tmp_path / project).rglob("*.db") if path.stat().st_size]
        assert [names_in(path) for path in databases] == [[name]]


def test_steps_after_an_ingest_work_on_its_project(lumos: Lumos, tmp_path: Path) -> None:
    make_project(tmp_path / "a", "orders")
    make_project(tmp_path / "b", "payments")

    done = lumos(
        *("run", "ingest:a/lumos.yaml", "export:a.json", "ingest:b/lumos.yaml"),
        *("export:b.json", "ingest:a/lumos.yaml", "report:a.html"),
    )

    assert done.exit_code == 0, done.stderr
    assert "orders" in (tmp_path / "a.json").read_text()
    assert "payments" not in (tmp_path / "a.json").read_text()
    assert "payments" in (tmp_path / "b.json").read_text()
    assert "orders" not in (tmp_path / "b.json").read_text()
    assert "payments" not in (tmp_path / "a.html").read_text()


def test_a_state_folder_given_on_the_command_line_holds_for_every_step(
    lumos: Lumos, tmp_path: Path
) -> None:
    make_project(tmp_path / "a", "orders")
    make_project(tmp_path / "b", "payments")

    steps = ("ingest:a/lumos.yaml", "ingest:b/lumos.yaml")
    done = lumos("--state-dir", "both", "run", *steps)

    assert done.exit_code == 0, done.stderr
    assert names_in(tmp_path / "both/lumos.db") == ["orders", "payments"]


def test_settings_named_after_the_command_choose_the_whole_project(
    lumos: Lumos, tmp_path: Path
) -> None:
    make_project(tmp_path / "a", "orders")
    make_project(tmp_path / "b", "payments")

    done = lumos("--config", "a/lumos.yaml", "ingest", "--config", "b/lumos.yaml", "--json")

    assert done.exit_code == 0, done.stderr
    assert names_in(tmp_path / "b/.lumos/lumos.db") == ["payments"]
    assert not (tmp_path / "a/.lumos").exists()
