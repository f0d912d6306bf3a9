"""Nothing gets past the boundary: no trace, whatever becomes of the streams around a command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import orjson
import pytest

from command_line import JANUARY, SHOP, Lumos, Result, run_in_child, run_in_shell

USAGE, UNREADABLE, INTERRUPTED = 2, 3, 130
NOT_TEXT = "$'a\\xff'"


@pytest.fixture
def shop(lumos: Lumos) -> Lumos:
    assert lumos("import", "--input", JANUARY).exit_code == 0
    return lumos


def assert_told_in_one_line(result: Result, *, code: int, says: str) -> None:
    assert result.exit_code == code, result
    assert says in result.error_line


@pytest.mark.parametrize(
    "command",
    [
        f"show {NOT_TEXT} --json",
        "show $'lumos://s3/\\xff'",
        f"search {NOT_TEXT}",
        f"search x --owner {NOT_TEXT} --json",
        f"import --input {NOT_TEXT}",
        f"history {NOT_TEXT}",
        f"snapshot verify {NOT_TEXT} --json",
    ],
)
def test_an_argument_that_is_no_text_is_no_internal_error(
    shop: Lumos, project: Path, command: str
) -> None:
    result = run_in_shell(f"lumos {command}", folder=project)

    assert result.exit_code in {0, USAGE, UNREADABLE}, result
    assert "internal" not in result.stderr
    if "--json" in command:
        assert isinstance(orjson.loads(result.stdout), dict)  # refuses halves of characters


@pytest.mark.parametrize("command", ["show", "history", "show --json"])
def test_a_name_that_is_no_text_is_said_to_be(project: Path, command: str) -> None:
    result = run_in_shell(f"lumos {command} {NOT_TEXT}", folder=project)

    assert_told_in_one_line(result, code=USAGE, says="it is not UTF-8 text")


def test_a_path_that_is_no_text_is_a_path_still(project: Path) -> None:
    result = run_in_shell(f"lumos --state-dir {NOT_TEXT} import {JANUARY} --json", folder=project)

    assert result.exit_code == 0, result
    assert (project / os.fsdecode(b"a\xff") / "lumos.db").exists()


@pytest.mark.parametrize(
    "command",
    ["search a --json", "search a", "--help", "--version", "export --output -", "snapshot", "run"],
)
@pytest.mark.parametrize("away", [">/dev/full", ">&-"])
def test_an_output_that_cannot_be_written_is_one_line(
    shop: Lumos, project: Path, command: str, away: str
) -> None:
    result = run_in_shell(f"lumos {command} {away}", folder=project)

    if command == "run":
        assert_told_in_one_line(result, code=USAGE, says="OPERATION")
    else:
        assert_told_in_one_line(result, code=UNREADABLE, says="standard output")


@pytest.mark.parametrize("away", ["2>/dev/full", "2>&-", ">/dev/full 2>/dev/full", ">&- 2>&- <&-"])
def test_without_standard_error_the_exit_code_remains(project: Path, away: str) -> None:
    assert run_in_shell(f"lumos search a {away}", folder=project).exit_code == UNREADABLE
    assert run_in_shell(f"lumos serach a {away}", folder=project).exit_code == USAGE


def test_an_error_whose_object_cannot_be_written_keeps_its_line(project: Path) -> None:
    result = run_in_shell("lumos validate --input no.json --json >/dev/full", folder=project)

    assert_told_in_one_line(result, code=UNREADABLE, says="no.json")


@pytest.mark.parametrize("quality", ["nan", "inf", "-inf", "101", "-1", "x"])
def test_a_quality_is_a_percentage(shop: Lumos, quality: str) -> None:
    result = shop("search", f"--min-quality={quality}")

    assert_told_in_one_line(result, code=USAGE, says="--min-quality")


@pytest.mark.parametrize(
    "command", [("search", "--limit"), ("search", "--offset"), ("import", "--batch-size")]
)
def test_numbers_have_a_limit(shop: Lumos, command: tuple[str, str]) -> None:
    result = shop(*command, "99999999999999999999")

    assert_told_in_one_line(result, code=USAGE, says=command[1])


@pytest.mark.parametrize("command", ["init", "search x", "import --input x.json", "doctor"])
def test_a_folder_that_was_removed_is_said_to_be(project: Path, command: str) -> None:
    result = run_in_shell(
        f'mkdir gone && cd gone && rmdir "$PWD" && lumos {command}', folder=project
    )

    assert_told_in_one_line(result, code=UNREADABLE, says="the current folder no longer exists")


def test_help_needs_no_folder(project: Path) -> None:
    result = run_in_shell('mkdir gone && cd gone && rmdir "$PWD" && lumos --help', folder=project)

    assert result.exit_code == 0, result.stderr


@pytest.mark.parametrize("as_json", [False, True])
def test_an_interrupt_is_one_line(project: Path, as_json: bool) -> None:
    arguments = ["import", "--input", "-", *(["--json"] if as_json else [])]
    with subprocess.Popen(
        [sys.executable, "-m", "lumos", *arguments],
        cwd=project,
        env={**os.environ, "TMPDIR": str(project)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        while not [*project.glob("lumos-*/standard-input.json")]:
            assert running.poll() is None
            time.sleep(0.02)  # until it waits for standard input, which nobody writes to
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=400)

    assert running.returncode == INTERRUPTED
    assert err == "lumos: interrupted\n"
    if as_json:
        assert json.loads(out)["error"]["code"] == "LUM-600"
    else:
        assert out == ""


def test_usage_errors_carry_their_hint_in_json_too(lumos: Lumos) -> None:
    error = lumos("search", "--nope", "--json").json()["error"]

    assert error["code"] == "LUM-110"
    assert error["hint"] == "see lumos search --help"


def test_every_problem_of_the_settings_is_in_the_error_object(lumos: Lumos, project: Path) -> None:
    (project / "lumos.yaml").write_text("sorces: []\nplatfrom: x\n")

    error = lumos("search", "--json").json()["error"]

    assert [problem.partition(";")[0] for problem in error["problems"]] == [
        "lumos.yaml:1: unknown key 'sorces'",
        "lumos.yaml:2: unknown key 'platfrom'",
    ]


def test_output_in_a_narrow_encoding_is_spelt_out(project: Path) -> None:
    document = json.loads((SHOP / "january.json").read_text())
    document["datasets"][0]["documentation"] = {"description": "Größe"}
    (project / "umlauts.json").write_text(json.dumps(document))
    run_in_child("import", "--input", "umlauts.json", folder=project)
    environment = {"PYTHONIOENCODING": "ascii"}
    show = ("show", document["datasets"][0]["urn"])

    text = run_in_child(*show, folder=project, environment=environment)
    machine = run_in_child(*show, "--json", folder=project, environment=environment)

    assert "Gr\\xf6\\xdfe" in text.stdout
    assert machine.json()["documentation"]["description"] == "Größe"
