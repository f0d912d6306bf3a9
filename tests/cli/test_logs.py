"""The log of commands: options, environment, settings, files, and what can be read from it."""

from __future__ import annotations

import json
import logging
import os
import stat
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from command_line import JANUARY, SCHEMAS, Lumos, run_in_child
from scripted_server import Reply, scripted_server

SECRET = "hunter2-hunter2"
SCHEMA = jsonschema.Draft202012Validator(
    json.loads((SCHEMAS / "log-event.schema.json").read_text("utf-8"))
)


def events(text: str) -> list[dict[str, object]]:
    """Return the lines of a JSON log, each held against the schema."""
    found = [json.loads(line) for line in text.splitlines()]
    for each in found:
        SCHEMA.validate(each)
    return found


def names(found: list[dict[str, object]]) -> list[object]:
    return [each["event"] for each in found]


@pytest.fixture(autouse=True)
def as_it_was() -> object:
    """Logging of this process is as it was before a command."""
    from lumos.core.events import ROOT_LOGGER  # which adds a null handler when it is loaded

    logger = logging.getLogger(ROOT_LOGGER)
    before = list(logger.handlers), logger.level
    yield
    assert (list(logger.handlers), logger.level) == before


def test_a_command_logs_nothing_unasked(lumos: Lumos) -> None:
    assert lumos("import", JANUARY).stderr == ""


def test_verbose_tells_what_was_done_and_how_long_it_took(lumos: Lumos) -> None:
    done = lumos("-v", "import", JANUARY)
    assert done.exit_code == 0
    assert "imported: 5 new" in done.stdout
    lines = done.stderr.splitlines()
    assert "lumos import started" in lines[0]
    assert any("phase.finished" in line and "writing datasets took" in line for line in lines)
    assert any("run.finished" in line and "failed=0" in line for line in lines)
    assert "ended with exit code 0 after" in lines[-1]
    assert "DEBUG" not in done.stderr


def test_json_lines_have_the_documented_keys(lumos: Lumos) -> None:
    done = lumos("--log-level", "debug", "--log-format", "json", "import", JANUARY)
    found = events(done.stderr)
    assert names(found)[:2] == ["command.started", "run.started"]
    within = [each for each in found if not str(each["event"]).startswith("command.")]
    assert len({each["run"] for each in within}) == 1
    assert {each["pid"] for each in found} == {os.getpid()}


def test_an_error_is_a_json_line_where_standard_error_has_these(lumos: Lumos) -> None:
    done = lumos("--log-format", "json", "show", "nothing")
    (failed, *rest) = [each for each in events(done.stderr) if each["level"] == "error"]
    assert not rest
    assert failed["event"] == "command.failed"
    assert failed["code"] == "LUM-302" or str(failed["code"]).startswith("LUM-")
    assert done.exit_code != 0


def test_quiet_leaves_out_notices_and_keeps_the_error(lumos: Lumos) -> None:
    Path("lumos.yaml").write_text("environment: staging\n", "utf-8")
    assert "without effect" in lumos("search", "x").stderr
    assert "without effect" not in lumos("-q", "search", "x").stderr
    assert lumos("-q", "show", "nothing").stderr.count("lumos: ") == 1


def test_a_notice_is_told_once(lumos: Lumos) -> None:
    Path("lumos.yaml").write_text("environment: staging\n", "utf-8")
    assert lumos("-v", "search", "x").stderr.count("without effect") == 1
    with_file = lumos("--log-file", "log", "search", "x")
    assert with_file.stderr.count("without effect") == 1
    assert Path("log").read_text("utf-8").count("without effect") == 1


def test_a_file_is_private_gets_info_and_is_appended_to(lumos: Lumos) -> None:
    before = os.umask(0)
    try:
        for _ in range(2):
            done = lumos("--log-file", "log", "--log-format", "json", "import", JANUARY)
            assert done.stderr == ""
    finally:
        os.umask(before)
    assert stat.S_IMODE(Path("log").stat().st_mode) == 0o600
    found = events(Path("log").read_text("utf-8"))
    assert names(found).count("command.started") == 2
    assert "phase.finished" in names(found)
    assert len({each["run"] for each in found if "run" in each}) == 2


def test_several_processes_append_whole_lines(project: Path) -> None:
    script = """
import logging, sys
from pathlib import Path
from lumos.core.events import emit
from lumos.core.logs import FileHandler, JsonFormatter
handler = FileHandler(Path("log"))
handler.setFormatter(JsonFormatter())
logging.getLogger("lumos").addHandler(handler)
for number in range(300):
    emit("notice", text=sys.argv[1] * 5_000)
"""
    children = [subprocess.Popen([sys.executable, "-c", script, letter]) for letter in "abc"]
    assert [child.wait() for child in children] == [0, 0, 0]
    texts = [str(each["text"]) for each in events(Path("log").read_text("utf-8"))]
    assert sorted(texts) == sorted(letter * 5_000 for letter in "abc" for _ in range(300))


def test_a_file_that_was_rotated_away_is_made_anew(project: Path) -> None:
    from lumos.core.logs import FileHandler, HumanFormatter

    handler = FileHandler(Path("log"))
    handler.setFormatter(HumanFormatter())
    try:
        handler.handle(logging.makeLogRecord({"msg": "first"}))
        Path("log").rename("log.1")
        handler.handle(logging.makeLogRecord({"msg": "second"}))
    finally:
        handler.close()
    assert "first" in Path("log.1").read_text("utf-8")
    assert "second" in Path("log").read_text("utf-8")
    assert stat.S_IMODE(Path("log").stat().st_mode) == 0o600


@pytest.mark.parametrize("place", ["missing/log", ".", "pipe", "/dev/null"])
def test_what_cannot_be_a_log_file_is_one_line(lumos: Lumos, place: str) -> None:
    os.mkfifo("pipe")
    done = lumos("--log-file", place, "search", "x")
    assert done.exit_code == 2
    assert f"the log file {place}" in done.error_line
    Path("lumos.yaml").write_text(f"logging: {{file: {place}}}\n", "utf-8")
    assert "the log file" in lumos("search", "x").error_line


def test_a_full_disk_ends_no_command(project: Path) -> None:
    lines = 'trap "" XFSZ; ulimit -f 0; exec "$0" -m lumos --log-file log rules'
    done = subprocess.run(
        ["bash", "-c", lines, sys.executable], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert done.stderr == "lumos: the log file cannot be written: File too large\n"


def test_settings_name_file_level_and_format(lumos: Lumos, project: Path) -> None:
    Path("lumos.yaml").write_text(
        "logging: {level: debug, format: json, file: logs/lumos.log}\n", "utf-8"
    )
    Path("logs").mkdir()
    assert lumos("rules").stderr == lumos("import", JANUARY).stderr == ""
    found = events(Path("logs/lumos.log").read_text("utf-8"))
    assert names(found)[0] == "command.started"


def test_options_win_over_the_environment_and_that_over_the_settings(project: Path) -> None:
    Path("lumos.yaml").write_text("logging: {level: error, file: settings.log}\n", "utf-8")
    environment = {"LUMOS_LOG_LEVEL": "info", "LUMOS_LOG_FORMAT": "json"}
    run_in_child("search", "x", folder=project, environment=environment)
    assert events(Path("settings.log").read_text("utf-8"))
    environment["LUMOS_LOG_FILE"] = "environment.log"
    run_in_child("search", "x", folder=project, environment=environment)
    assert events(Path("environment.log").read_text("utf-8"))
    run_in_child(
        *("--log-file", "option.log", "--log-format", "human", "-vv", "search", "x"),
        folder=project,
        environment=environment,
    )
    assert "lumos search started" in Path("option.log").read_text("utf-8")


@pytest.mark.parametrize(
    "options",
    [("-v", "-q"), ("-q", "--log-level", "info"), ("--log-level", "loud"), ("--log-format", "xml")],
)
def test_options_that_make_no_sense_are_refused(lumos: Lumos, options: tuple[str, ...]) -> None:
    done = lumos(*options, "search", "x")
    assert done.exit_code == 2
    assert done.error_line


def test_a_setting_that_makes_no_sense_is_refused(lumos: Lumos) -> None:
    Path("lumos.yaml").write_text("logging: {level: loud}\n", "utf-8")
    assert "logging.level" in lumos("search", "x").error_line


def test_why_a_sync_took_so_long_was_retried_and_failed_is_in_its_log(lumos: Lumos) -> None:
    lumos("import", JANUARY)
    with scripted_server() as server:
        Path("lumos.yaml").write_text(
            f"platform_config:\n  datahub: {{gms_server: '{server.url}', token: {SECRET}}}\n",
            "utf-8",
        )
        server.answer(
            Reply(503, headers={"Retry-After": "0"}),
            Reply(503, headers={"Retry-After": "0"}),
            Reply(401, body=f'{{"error": "{SECRET}"}}'.encode()),
        )
        options = ("--log-file", "log", "--log-format", "json", "-vv")
        assert lumos(*options, "sync", "--all", "--output", "datahub").exit_code == 3
    text = Path("log").read_text("utf-8")
    found = events(text)
    retried = [each for each in found if each["event"] == "http.retried"]
    assert [each["attempt"] for each in retried] == [1, 2]
    assert all("503" in str(each["reason"]) for each in retried)
    assert {each["server"] for each in retried} == {server.url}
    (failed,) = [each for each in found if each["event"] == "run.failed"]
    assert failed["operation"] == "sync"
    assert "not accepted" in str(failed["reason"])
    assert "seconds" in failed
    assert SECRET not in text
    assert SECRET not in json.dumps(found)
