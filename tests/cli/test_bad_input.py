"""One clear line, the documented exit code, nothing lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from command_line import FEBRUARY, JANUARY, ORDERS, Lumos, Result, run_in_child
from privileges import obeying_permissions, with_files_up_to

USAGE, UNREADABLE = 2, 3


def assert_one_line(result: Result, *, code: int, says: str) -> None:
    assert result.exit_code == code, (result.stdout, result.stderr)
    assert result.error_line.startswith("lumos: ")
    assert says in result.error_line
    assert "Traceback" not in result.stderr


@pytest.fixture
def shop(lumos: Lumos) -> Lumos:
    assert lumos("import", "--input", JANUARY).exit_code == 0
    assert lumos("snapshot", "create").exit_code == 0
    return lumos


def intact(lumos: Lumos) -> None:
    """The catalog and its snapshots are as January left them."""
    assert len(lumos("search", "--json").json()["hits"]) == 5
    assert lumos("snapshot", "verify").exit_code == 0
    assert (
        lumos("diff", "--source", "latest", "--target", "embedded", "--fail-on", "any").exit_code
        == 0
    )


def test_a_misspelt_key_names_the_file_the_line_and_the_right_key(
    lumos: Lumos, project: Path
) -> None:
    (project / "lumos.yaml").write_text("environment: production\nsorces: []\n")

    assert_one_line(lumos("search"), code=USAGE, says="lumos.yaml:2: unknown key 'sorces'")
    assert "sources" in lumos("search").error_line


def test_settings_that_are_no_yaml_name_the_line(lumos: Lumos, project: Path) -> None:
    (project / "lumos.yaml").write_text("platform: [embedded\nenvironment: x\n")

    assert_one_line(lumos("search"), code=USAGE, says="lumos.yaml:")


def test_a_settings_file_that_is_not_there_is_named(lumos: Lumos) -> None:
    assert_one_line(lumos("--config", "other.yaml", "search"), code=USAGE, says="other.yaml")


def test_an_unknown_platform_is_named_with_the_known_ones(lumos: Lumos, project: Path) -> None:
    (project / "lumos.yaml").write_text("platform: embeded\n")

    result = lumos("import", "--input", JANUARY)

    assert_one_line(result, code=USAGE, says="embeded")
    assert "embedded" in result.error_line


def test_a_missing_input_is_named(lumos: Lumos) -> None:
    assert_one_line(lumos("validate", "--input", "no.json"), code=UNREADABLE, says="no.json")
    assert_one_line(lumos("import", "--input", "no.json"), code=UNREADABLE, says="no.json")
    assert_one_line(
        lumos("diff", "--source", "no.json", "--target", JANUARY), code=UNREADABLE, says="no.json"
    )
    assert_one_line(lumos("enrich", "no.yaml"), code=UNREADABLE, says="no file no.yaml")


def test_an_input_that_is_no_snapshot_is_refused(lumos: Lumos, project: Path) -> None:
    (project / "list.json").write_text("[1, 2]")
    (project / "torn.json").write_text('{"datasets": [')

    assert_one_line(lumos("import", "--input", "list.json"), code=UNREADABLE, says="snapshot")
    assert_one_line(lumos("import", "--input", "torn.json"), code=UNREADABLE, says="torn.json")


def test_a_snapshot_of_a_newer_lumos_is_refused(lumos: Lumos, project: Path) -> None:
    document = json.loads(Path(JANUARY).read_text())
    (project / "new.json").write_text(json.dumps({**document, "snapshot_schema_version": 99}))

    assert_one_line(lumos("import", "--input", "new.json"), code=UNREADABLE, says="99")


def test_a_read_without_a_catalog_says_how_to_make_one(lumos: Lumos, project: Path) -> None:
    assert_one_line(lumos("search", "x"), code=UNREADABLE, says="lumos init")
    assert not (project / ".lumos").exists()


def test_a_dataset_that_is_not_there_is_named(shop: Lumos) -> None:
    missing = "lumos://s3/no/where"

    assert_one_line(shop("show", missing), code=UNREADABLE, says=missing)
    assert_one_line(shop("history", missing), code=UNREADABLE, says=missing)
    assert_one_line(shop("show", "nowhere"), code=UNREADABLE, says="nowhere")
    assert_one_line(shop("show", "s3://no/where"), code=UNREADABLE, says="lumos://")
    assert_one_line(shop("compare", ORDERS, "1.0.0", "9.0.0"), code=UNREADABLE, says="9.0.0")


def test_an_unknown_option_command_or_argument_is_a_usage_error(lumos: Lumos) -> None:
    assert_one_line(lumos("serach", "x"), code=USAGE, says="search")
    assert_one_line(lumos("search", "--nope"), code=USAGE, says="--nope")
    assert_one_line(lumos("import"), code=USAGE, says="--input")


def test_with_json_the_error_is_an_object_too(lumos: Lumos) -> None:
    result = lumos("validate", "--input", "no.json", "--json")

    assert result.exit_code == UNREADABLE
    assert result.json()["error"]["code"] == "LUM-210"
    assert "no.json" in result.json()["error"]["message"]


def test_an_input_without_permission_is_named(project: Path) -> None:
    secret = project / "closed.json"
    secret.write_text("{}")
    secret.chmod(0)

    result = run_in_child(
        "import", "--input", "closed.json", folder=project, before=obeying_permissions
    )

    assert_one_line(result, code=UNREADABLE, says="closed.json")


def test_a_read_only_state_folder_can_be_read_and_not_written(shop: Lumos, project: Path) -> None:
    state = project / ".lumos"
    with read_only(state):
        written = run_in_child(
            "import", "--input", FEBRUARY, folder=project, before=obeying_permissions
        )
        read = run_in_child("search", "orders", folder=project, before=obeying_permissions)
        stored = run_in_child("snapshot", "create", folder=project, before=obeying_permissions)

    assert_one_line(written, code=UNREADABLE, says=".lumos")
    assert_one_line(stored, code=UNREADABLE, says=".lumos")
    assert read.exit_code == 0, read.stderr
    intact(shop)


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    everything = [folder, *folder.rglob("*")]
    modes = [(path, path.stat().st_mode) for path in everything]
    for path in everything:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        yield
    finally:
        for path, mode in modes:
            path.chmod(mode)


def test_a_second_writer_is_told_who_holds_the_state_folder(shop: Lumos, project: Path) -> None:
    (project / "lumos.yaml").write_text("lock_seconds: 0.1\n")
    with holding_the_lock(project / ".lumos") as pid:
        refused = shop("import", "--input", FEBRUARY)
        assert shop("search", "orders").exit_code == 0

    assert_one_line(refused, code=UNREADABLE, says=f"process {pid}")
    intact(shop)
    assert shop("import", "--input", FEBRUARY).exit_code == 0


@contextmanager
def holding_the_lock(folder: Path) -> Iterator[int]:
    code = (
        "import sys; from pathlib import Path\n"
        "from lumos.core.runtime.project import Project\n"
        "from lumos.core.runtime.unit_of_work import UnitOfWork\n"
        "project = Project(given_state_dir=Path(sys.argv[1]), environment={})\n"
        "with UnitOfWork(project) as work:\n"
        "    with work.begin_run('a long import'):\n"
        "        print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        try:
            yield holder.pid
        finally:
            holder.kill()  # no clean release: the next command sees that the process is dead


def test_two_imports_at_once_both_complete(project: Path) -> None:
    (project / "lumos.yaml").write_text("lock_seconds: 600\n")
    commands = [
        [sys.executable, "-m", "lumos", "import", "--input", file] for file in (JANUARY, FEBRUARY)
    ]
    running = [subprocess.Popen(command, cwd=project) for command in commands]

    assert [process.wait() for process in running] == [0, 0]
    listed = run_in_child("search", "--json", folder=project).json()
    assert listed["total"] == 6


def test_a_full_disk_is_one_line_and_loses_nothing(shop: Lumos, project: Path) -> None:
    large = {**json.loads(Path(JANUARY).read_text())}
    template = large["datasets"][0]
    large["datasets"] = [
        {**template, "urn": f"lumos://s3/many/{number}", "name": f"many_{number}"}
        for number in range(2_000)
    ]
    (project / "large.json").write_text(json.dumps(large))

    # What is there is below the limit, what is to be written is not.
    before = with_files_up_to(400_000)
    imported = run_in_child("import", "--input", "large.json", folder=project, before=before)
    export = ("export", "--snapshot", "latest", "--output", "out.json")
    exported = run_in_child(*export, folder=project, before=with_files_up_to(1_000))

    assert_one_line(imported, code=UNREADABLE, says="disk")
    assert_one_line(exported, code=UNREADABLE, says="out.json")
    assert not (project / "out.json").exists()
    intact(shop)


def test_one_flipped_bit_is_noticed_by_every_reader(shop: Lumos, project: Path) -> None:
    (folder,) = (project / ".lumos" / "snapshots").glob("*Z-*")
    part = max(folder.glob("datasets-*"), key=os.path.getsize)
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 0b100
    part.write_bytes(content)

    for command in (
        ("snapshot", "verify", "latest"),
        ("export", "--snapshot", "latest", "--output", "out.json"),
        ("diff", "--source", "latest", "--target", FEBRUARY),
        ("import", "--input", "latest"),
    ):
        assert_one_line(shop(*command), code=UNREADABLE, says=part.name)
    assert shop("validate", "--input", "latest").exit_code == 1
    assert len(shop("search", "--json").json()["hits"]) == 5


def test_a_state_database_that_is_none_is_refused(lumos: Lumos, project: Path) -> None:
    (project / ".lumos").mkdir()
    (project / ".lumos" / "lumos.db").write_bytes(
        b"this is no database, whatever it is called\n" * 99
    )

    assert_one_line(lumos("search", "x"), code=UNREADABLE, says="lumos.db")
    assert_one_line(lumos("import", "--input", JANUARY), code=UNREADABLE, says="lumos.db")


def test_a_reader_that_stops_early_is_no_error(shop: Lumos, project: Path) -> None:
    shop("export", "--output", "all.json")
    command = f"{sys.executable} -m lumos export --output - | head -c 10 >/dev/null"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_names_cannot_steer_the_terminal(lumos: Lumos, project: Path) -> None:
    document = json.loads(Path(JANUARY).read_text())
    document["datasets"][0]["documentation"] = {"description": "\x1b[2J\x1b]0;owned\x07gone"}
    (project / "hostile.json").write_text(json.dumps(document))
    lumos("import", "--input", "hostile.json")

    shown = lumos("show", document["datasets"][0]["urn"]).stdout

    assert "\x1b" not in shown
    assert "\\x1b[2J" in shown


def test_a_source_without_files_cannot_be_profiled(shop: Lumos, project: Path) -> None:
    settings = "sources: [{type: dbt, name: shop, manifest_path: manifest.json}]\n"
    (project / "lumos.yaml").write_text(settings, "utf-8")

    result = shop("profile", "--source", "shop")

    assert_one_line(result, code=USAGE, says="source 'shop' has no files to profile")
