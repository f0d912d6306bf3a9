"""An ingest on a moved state goes on where the last one ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import capturing
from lakes import write_lake, write_settings
from state_databases import ENGINES, url_for


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("engine", ENGINES)
def test_an_ingest_on_a_moved_state_finds_nothing_new(
    tmp_path: Path,
    engine: str,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    write_settings(project, write_lake(tmp_path / "lake"))
    monkeypatch.chdir(project)
    lumos = capturing(capfd)
    assert lumos("ingest").exit_code == 0
    history = lumos("history", "orders").stdout
    to = url_for(engine, request)
    assert lumos("state", "move", "--to", to).exit_code == 0
    monkeypatch.setenv("LUMOS_DATABASE_URL", to)

    again = lumos("ingest", "--json")

    assert again.json()["datasets"] == {
        "found": 3, "created": 0, "updated": 0, "unchanged": 3, "removed": 0,
    }  # fmt: skip
    assert lumos("history", "orders").stdout == history
