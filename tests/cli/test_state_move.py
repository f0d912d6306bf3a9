"""`lumos state move`: everything arrives, on both engines, or nothing does."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from command_line import FEBRUARY, JANUARY, ORDERS, Lumos, Result, checked
from lumos.core.controllers.state_controller import URL_VARIABLE
from lumos.core.errors import EXIT_UNREADABLE, EXIT_USAGE, StateError
from lumos.core.store.checksums import checksum_of
from lumos.core.store.database import StateDatabase
from lumos.core.store.state_move import COPIED, NOT_COPIED, copy_state
from ports import closed_port
from state_databases import ENGINES, url_for

LEASE_HOLDER = Path(__file__).parents[1] / "lease_holder.py"
IDENTITY = '{"catalog":"datahub","id":"urn:li:dataset:1"}'
LOOKS = (
    ("search", "order", "--json"),
    ("search", "--tag", "pii", "--json"),
    ("show", ORDERS, "--who"),
    ("show", ORDERS, "--json"),
    ("show", ORDERS, "--trend"),
    ("history", ORDERS, "--format", "yaml"),
    ("history", ORDERS, "--blame"),
    ("compare", ORDERS),
    ("version", "compute"),
    ("alerts", "list"),
    ("sync", "--all", "--output", "sqlite:///team.db", "--dry-run"),
)
DIE_WHILE_COPYING = """
import os, signal, sys
from lumos.core.store.database import StateDatabase
from lumos.entry.cli.error_boundary import run_within_boundary
from lumos.framework_cli import app

execute, inserted = StateDatabase.execute, 0

def die(self, sql, *rest):
    global inserted
    done = execute(self, sql, *rest)
    inserted += sql.startswith("INSERT") and "leases" not in sql
    if inserted == int(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGKILL)
    return done

StateDatabase.execute = die
run_within_boundary(app, ["state", "move", "--to", sys.argv[2]])
"""


@pytest.fixture
def state(lumos: Lumos, project: Path) -> Path:
    """A state with rows in every table; returns its database file."""
    channel = f"{{name: team, type: webhook, url: 'http://127.0.0.1:{closed_port()}/x'}}"
    (project / "lumos.yaml").write_text(f"alerts:\n  channels:\n    - {channel}\n", "utf-8")
    assert lumos("import", JANUARY).exit_code == 0
    assert lumos("import", FEBRUARY).exit_code == 0
    assert lumos("sync", "--all", "--output", "sqlite:///team.db").exit_code == 0
    path = project / ".lumos" / "lumos.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("INSERT INTO scan_marks VALUES ('warehouse', 'last', '2026-01-01')")
        database.execute("INSERT INTO configured_sources VALUES ('../lumos.yaml', 'source:lake')")
        database.execute(
            "INSERT INTO contributions VALUES "
            "(?, 'inferred:sql', 3, NULL, 0.5, NULL, '2026-01-01T00:00:00.000000Z', ?)",
            ("lumos://a/b", checksum_of(None, "lumos://a/b", "inferred:sql")),
        )
        database.execute(
            "INSERT INTO edge_contributions VALUES "
            "('k', 'declared:dbt', 'lumos://a/b', 'lumos://a/c', '{}', '2026-01-01', ?)",
            (checksum_of("{}", "k", "declared:dbt"),),
        )
        database.execute(
            "INSERT INTO identity_map VALUES (?, 'datahub', ?, ?)",
            (ORDERS, IDENTITY, checksum_of(IDENTITY, ORDERS, "datahub")),
        )
    return path


def rows_of(url: str | Path) -> dict[str, list[tuple[object, ...]]]:
    with StateDatabase.open(url, read_only=True) as database:
        return {
            table.name: [
                row.values
                for row in database.query(
                    f"SELECT {', '.join(columns_of(table.name))} FROM {table.name} "  # noqa: S608
                    f"ORDER BY {', '.join(table.key)}"
                )
            ]
            for table in COPIED
        }


def columns_of(table: str) -> list[str]:
    with closing(sqlite3.connect(".lumos/lumos.db")) as database:
        return [
            row[0]
            for row in database.execute(
                "SELECT name FROM pragma_table_info(?) ORDER BY name", (table,)
            )
        ]


def tables_of(url: str) -> set[str]:
    import sqlalchemy

    from lumos.core.store.database import engine_for

    with StateDatabase.open(url):
        pass
    engine = engine_for(url).migration_engine()
    names = set(sqlalchemy.inspect(engine).get_table_names())
    engine.dispose()
    return {name for name in names if not name.startswith("search_index_")}


@pytest.mark.parametrize("engine", ENGINES)
def test_every_table_of_the_schema_is_copied_or_known_to_stay(
    engine: str, request: pytest.FixtureRequest
) -> None:
    found = tables_of(url_for(engine, request))
    assert found - NOT_COPIED == {table.name for table in COPIED}


def looked(lumos: Lumos) -> list[Result]:
    return [lumos(*command) for command in LOOKS]


@pytest.mark.postgres
def test_a_state_goes_to_postgresql_and_back_and_answers_the_same(
    lumos: Lumos, state: Path, postgres_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, content = looked(lumos), rows_of(state)
    assert all(content.values()), "a table has no row to move"
    bytes_before = state.read_bytes()

    there = checked(lumos("state", "move", "--to", postgres_database_url, "--json"), "state-move")

    assert state.read_bytes() == bytes_before
    assert rows_of(postgres_database_url) == content
    assert "database_url" in there["next_step"]
    monkeypatch.setenv(URL_VARIABLE, postgres_database_url)
    assert [(each.exit_code, each.stdout) for each in looked(lumos)] == [
        (each.exit_code, each.stdout) for each in before
    ]
    back = checked(lumos("state", "move", "--to", "back.db", "--json"), "state-move")
    assert rows_of("back.db") == content
    assert back["tables"] == there["tables"]
    monkeypatch.setenv(URL_VARIABLE, "sqlite:///back.db")
    assert [(each.exit_code, each.stdout) for each in looked(lumos)] == [
        (each.exit_code, each.stdout) for each in before
    ]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_moved_state_takes_new_datasets(
    lumos: Lumos,
    state: Path,
    engine: str,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    to = url_for(engine, request)
    more = Path("more.json")
    assert lumos("state", "move", "--to", to).exit_code == 0
    monkeypatch.setenv(URL_VARIABLE, to)
    more.write_text(
        Path(JANUARY).read_text("utf-8").replace("lumos://postgres/shop/", "lumos://postgres/more/")
    )

    assert lumos("import", str(more)).exit_code == 0

    assert lumos("show", "lumos://postgres/more/public/orders").exit_code == 0
    assert lumos("doctor").stdout.count("more") == 0


def test_people_are_told_what_was_moved_and_what_to_do(lumos: Lumos, state: Path) -> None:
    assert lumos("snapshot", "create").exit_code == 0
    result = lumos("state", "move", "--to", "other/lumos.db")
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0].startswith("copied ")
    assert any(line.split()[:2] == ["datasets", "6"] for line in lines)
    assert "equal in both databases" in result.stdout
    assert any(line.startswith("stays where it is: ") for line in lines)
    assert lines[-1].endswith(f"to sqlite:///{Path('other/lumos.db').absolute()}")


def test_moving_back_to_the_default_place_says_to_remove_the_setting(
    lumos: Lumos, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert lumos("state", "move", "--to", "away.db").exit_code == 0
    for path in state.parent.glob("lumos.db*"):
        path.unlink()
    monkeypatch.setenv(URL_VARIABLE, "sqlite:///away.db")
    result = lumos("state", "move", "--to", ".lumos/lumos.db")
    assert result.stdout.splitlines()[-1].startswith(f"next: remove {URL_VARIABLE}")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_destination_that_is_not_empty_is_refused_and_kept(
    lumos: Lumos, state: Path, engine: str, request: pytest.FixtureRequest
) -> None:
    to = url_for(engine, request)
    assert lumos("state", "move", "--to", to).exit_code == 0
    before = rows_of(to)
    result = lumos("state", "move", "--to", to)
    assert result.exit_code == EXIT_UNREADABLE
    assert "is not empty: it has" in result.error_line
    assert rows_of(to) == before


@pytest.mark.parametrize("to", [".lumos/lumos.db", "sqlite:///.lumos/lumos.db", " "])
def test_a_move_to_itself_or_to_nowhere_is_refused(lumos: Lumos, state: Path, to: str) -> None:
    result = lumos("state", "move", "--to", to)
    assert result.exit_code == EXIT_USAGE
    assert result.error_line


def test_without_a_state_there_is_nothing_to_move(lumos: Lumos, project: Path) -> None:
    result = lumos("state", "move", "--to", "new.db")
    assert result.exit_code == EXIT_UNREADABLE
    assert "there is no catalog yet" in result.error_line
    assert not Path("new.db").exists()
    assert not Path(".lumos").exists()


def test_a_move_is_refused_while_a_command_writes(lumos: Lumos, state: Path) -> None:
    Path("lumos.yaml").write_text("lock_seconds: 0\n", "utf-8")
    holder = subprocess.Popen(
        [sys.executable, str(LEASE_HOLDER), str(state), "30"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline().startswith("held ")
        result = lumos("state", "move", "--to", "new.db")
    finally:
        holder.communicate("")
    assert result.exit_code == EXIT_UNREADABLE
    assert "ingest of lake" in result.error_line
    assert not Path("new.db").exists()


@pytest.mark.postgres
def test_a_move_is_refused_while_another_host_writes(
    lumos: Lumos, state: Path, postgres_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert lumos("state", "move", "--to", postgres_database_url).exit_code == 0
    monkeypatch.setenv(URL_VARIABLE, postgres_database_url)
    with StateDatabase.open(postgres_database_url) as other, other.transaction():
        other.execute("DELETE FROM scan_marks")
        result = lumos("state", "move", "--to", "new.db")
    assert result.exit_code == EXIT_UNREADABLE
    assert "is in use by another Lumos process" in result.error_line
    assert not Path("new.db").exists()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_damaged_row_is_copied_unchanged_and_named(
    lumos: Lumos, state: Path, engine: str, request: pytest.FixtureRequest
) -> None:
    with closing(sqlite3.connect(state)) as database, database:
        database.execute("UPDATE datasets SET document = '{' WHERE urn = ?", (ORDERS,))
    to = url_for(engine, request)
    result = checked(lumos("state", "move", "--to", to, "--json"), "state-move")
    assert f"dataset {ORDERS}" in result["damaged_rows"]
    assert rows_of(to) == rows_of(state)
    assert "did not match their checksums" in lumos("state", "move", "--to", "third.db").stdout


@pytest.mark.parametrize("engine", ENGINES)
def test_a_damaged_row_that_the_destination_cannot_hold_stops_the_move(
    lumos: Lumos, state: Path, engine: str, request: pytest.FixtureRequest
) -> None:
    with closing(sqlite3.connect(state)) as database, database:
        database.execute("UPDATE runs SET document = CAST(x'7bff7d' AS TEXT)")
    to = url_for(engine, request)
    result = lumos("state", "move", "--to", to)
    assert result.exit_code == EXIT_UNREADABLE
    assert "cannot hold a damaged row: runs 20" in result.error_line
    if engine == "sqlite":
        assert not Path(to).exists()
    else:
        assert not any(rows_of(to).values())


@pytest.mark.parametrize("moment", [1, 7, 18])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_killed_move_leaves_an_empty_destination_and_can_be_repeated(
    lumos: Lumos, state: Path, engine: str, moment: int, request: pytest.FixtureRequest
) -> None:
    to = url_for(engine, request)
    child = subprocess.run(
        [sys.executable, "-c", DIE_WHILE_COPYING, str(moment), to],
        check=False,
        capture_output=True,
        env={**os.environ},
    )
    assert child.returncode == -signal.SIGKILL
    assert not any(rows_of(to).values())
    content = rows_of(state)
    assert lumos("state", "move", "--to", to).exit_code == 0
    assert rows_of(to) == content


def test_a_copy_that_differs_is_not_kept(state: Path, tmp_path: Path) -> None:
    with StateDatabase.open(state) as source, StateDatabase.open(tmp_path / "new.db") as target:
        target.execute(
            "CREATE TRIGGER t AFTER INSERT ON scan_marks BEGIN "
            "UPDATE scan_marks SET value = 'other'; END"
        )
        with pytest.raises(StateError, match="the copy of scan_marks"):
            copy_state(source, target)
        assert target.query("SELECT count(*) AS n FROM datasets")[0].integer("n") == 0
