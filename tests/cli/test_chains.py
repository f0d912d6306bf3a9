"""`lumos run`: what is done is told, also when a later step ends the chain."""

from __future__ import annotations

import json
from pathlib import Path

from command_line import JANUARY, Lumos, check_schema

UNREADABLE = 3


def test_steps_that_ended_are_printed_before_the_error(lumos: Lumos) -> None:
    result = lumos("run", f"import:{JANUARY}", "enrich:no.yaml", "snapshot")

    assert result.exit_code == UNREADABLE
    assert result.stdout.startswith("import: 5 done")
    assert len(result.stdout.splitlines()) == 1
    assert result.error_line == "lumos: there is no file no.yaml (check the path)"


def test_with_json_the_steps_and_the_error_are_one_document(lumos: Lumos) -> None:
    result = lumos("run", f"import:{JANUARY}", "enrich:no.yaml", "snapshot", "--json")

    assert result.exit_code == UNREADABLE
    document = result.json()
    check_schema(document, "run")
    assert [step["operation"] for step in document["steps"]] == ["import"]
    assert document["error"]["code"] == "LUM-210"
    assert "no.yaml" in document["error"]["message"]


def test_a_chain_whose_first_step_fails_prints_the_error_alone(lumos: Lumos) -> None:
    result = lumos("run", "validate:no.json", "snapshot", "--json")

    assert result.exit_code == UNREADABLE
    assert result.json().keys() == {"error"}


def test_the_help_lists_one_operation_a_line(lumos: Lumos) -> None:
    lines = lumos("run", "--help").stdout.splitlines()

    assert lines[0] == "Usage: lumos run [OPTIONS] {OPERATION}..."
    assert "  create-users:FILE      create the users of a file" in lines
    assert "  enrich:FILE            add tags, documentation and properties" in lines


def test_a_file_of_items_may_be_larger_than_settings(lumos: Lumos, project: Path) -> None:
    users = [{"username": f"user-{number}", "title": "x" * 1_000} for number in range(1_100)]
    (project / "users.json").write_text(json.dumps({"users": users}))

    result = lumos("ownership", "users", "users.json", "--json")

    assert result.exit_code == 0, result.stderr
    assert result.json()["counts"]["done"] == 1_100


def test_a_chain_brings_another_catalog_up_to_date(lumos: Lumos) -> None:
    done = lumos("run", f"import:{JANUARY}", "sync:sqlite:///team.db", "--json")
    steps = done.json()["steps"]
    assert [step["operation"] for step in steps] == ["import", "sync"]
    assert Path("team.db").exists()
    needs = lumos("run", "sync")
    assert needs.exit_code == 2
    assert "sync:CATALOG" in needs.error_line


def test_a_state_in_the_current_folder_that_other_settings_do_not_use_is_mentioned(
    lumos: Lumos, project: Path
) -> None:
    lumos("import", JANUARY)
    (project / "other").mkdir()
    (project / "other" / "lumos.yaml").write_text("platform: embedded\n")

    first = lumos("--config", "other/lumos.yaml", "import", JANUARY)
    second = lumos("--config", "other/lumos.yaml", "import", JANUARY)

    assert first.exit_code == 0
    assert "to use it, give --state-dir .lumos" in first.stderr
    assert second.stderr == ""
    assert (project / "other" / ".lumos" / "lumos.db").exists()
