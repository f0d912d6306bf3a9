"""`lumos init` makes what is needed, `lumos doctor` only looks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import Lumos


def test_init_names_both_places_from_here(lumos: Lumos) -> None:
    assert lumos("init").stdout.splitlines()[:2] == [
        "wrote lumos.yaml",
        "state database: .lumos/lumos.db",
    ]


def test_init_names_the_schema_for_editors_and_what_git_ignores(
    lumos: Lumos, project: Path
) -> None:
    (project / ".gitignore").write_text("*.pyc\n/.lumos")

    result = lumos("init")

    first = (project / "lumos.yaml").read_text().splitlines()[0]
    assert first == "# yaml-language-server: $schema=.lumos/settings.schema.json"
    schema = json.loads((project / ".lumos" / "settings.schema.json").read_bytes())
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert (project / ".gitignore").read_text() == "*.pyc\n/.lumos\n.env\n"
    assert "added to .gitignore: .env" in result.stdout
    assert "added" not in lumos("init").stdout


def test_init_finds_the_schema_beside_a_state_elsewhere(lumos: Lumos, project: Path) -> None:
    assert lumos("--state-dir", "../state", "init").exit_code == 0

    first = (project / "lumos.yaml").read_text().splitlines()[0]
    assert first.endswith("$schema=../state/settings.schema.json")
    assert (project / "../state/settings.schema.json").exists()


def test_doctor_makes_nothing(lumos: Lumos, project: Path) -> None:
    result = lumos("doctor")

    assert result.exit_code == 0, result.stdout
    assert list(project.iterdir()) == []
    assert "[warn] state database: there is no catalog yet at .lumos/lumos.db" in result.stdout
    assert "[warn] catalog: there is no catalog yet" in result.stdout
    assert "lumos init" in result.stdout


def test_doctor_leaves_a_catalog_as_it_is(lumos: Lumos, project: Path) -> None:
    lumos("init")
    before = (project / ".lumos" / "lumos.db").read_bytes()

    assert "[ok] catalog: embedded answers" in lumos("doctor").stdout
    assert (project / ".lumos" / "lumos.db").read_bytes() == before


def test_doctor_shows_every_problem_of_the_settings_once(lumos: Lumos, project: Path) -> None:
    (project / "lumos.yaml").write_text("sorces: []\nplatfrom: x\n")

    result = lumos("doctor")

    assert result.exit_code == 1
    assert result.stdout.count("unknown key 'sorces'") == 1
    assert result.stdout.count("  lumos.yaml:2: unknown key 'platfrom'") == 1
    assert "[warn] catalog: not checked: see settings" in result.stdout


def test_the_path_of_a_database_is_no_secret(lumos: Lumos, project: Path) -> None:
    (project / "lumos.yaml").write_text(f"database_url: {project}/shared/lumos.db\n")

    assert f"there is no catalog yet at {project}/shared/lumos.db" in lumos("search").error_line


def test_a_sqlite_url_takes_no_parameters(lumos: Lumos, project: Path) -> None:
    url = f"sqlite:///{project}/x.db?password=hunter2-hunter2"
    (project / "lumos.yaml").write_text(f"database_url: {url}\n")

    for command in (("init",), ("search",)):
        result = lumos(*command)
        assert result.exit_code == 2
        assert "takes no parameters" in result.error_line
        assert "hunter2" not in result.stderr
    assert [path.name for path in project.iterdir()] == ["lumos.yaml"]


@pytest.mark.parametrize(
    ("written", "status", "told"),
    [
        ("{master: 'local[2]'}", "ok", ""),
        ("{master: 'spark://spark.example:7077'}", "warn", "does not turn on spark.authenticate"),
        (
            "{master: 'spark://spark.example:7077', conf: {spark.authenticate: true}}",
            "ok",
            "",
        ),
        ("{conf: {spark.ui.enabled: true}}", "warn", "Spark's pages ask nobody for a password"),
        ("{remote: 'sc://spark.example:15002'}", "ok", ""),
    ],
)
def test_doctor_tells_whether_others_can_read_what_spark_handles(
    lumos: Lumos, project: Path, written: str, status: str, told: str
) -> None:
    (project / "lumos.yaml").write_text(f"spark: {written}\n")

    checks = {each["name"]: each for each in lumos("doctor", "--json").json()["checks"]}

    assert checks["spark"]["status"] == status
    assert checks["spark"]["detail"].startswith("PySpark ")
    assert told in checks["spark"]["detail"]
