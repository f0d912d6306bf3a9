"""The schema of the state database moves up and down whole, whatever happens meanwhile."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory

from lumos.core.changes import diff_datasets
from lumos.core.errors import StateError, StateReadOnlyError
from lumos.core.models import DatasetVersion, LumosDataset
from lumos.core.store.database import StateDatabase, engine_for
from lumos.core.store.history import HistoryRepository
from lumos.core.store.schema_version import HEAD, MIGRATIONS, REVISIONS, downgrade, upgrade
from state_databases import ENGINES, folder_for_everyone, url_for, without_permission_to_write

TAG = "INSERT INTO entities (kind, name, document, updated_at) VALUES ('tag', 'a', '{}', '')"
OPEN = "import sys; from lumos.core.store.database import StateDatabase as S; S.open(sys.argv[1])"
DIE_IN_MIGRATION = """
import os, signal, sys
import sqlalchemy
written = 0

@sqlalchemy.event.listens_for(sqlalchemy.Engine, "after_cursor_execute")
def die(connection, cursor, statement, *rest):
    global written
    written += statement.lstrip().startswith(("CREATE", "INSERT", "UPDATE"))
    if written == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

from lumos.core.store.database import engine_for
from lumos.core.store.schema_version import upgrade
upgrade(engine_for(sys.argv[1]))
"""
DIE_IN_A_NEW_SCHEMA = """
import os, signal, sys
from lumos.core.store import sqlite_engine
from lumos.core.store.database import StateDatabase
whole = sqlite_engine.statements_of

def statements_of(script):
    for number, statement in enumerate(whole(script)):
        if number == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
        yield statement

sqlite_engine.statements_of = statements_of
StateDatabase.open(sys.argv[1])
"""


@pytest.fixture(params=ENGINES)
def url(request: pytest.FixtureRequest) -> str:
    return url_for(request.param, request)


def schema_of(url: str) -> dict[str, object]:
    """Describe all tables, columns, keys and indexes as the database itself tells them."""
    import sqlalchemy

    engine = engine_for(url).migration_engine()
    inspector = sqlalchemy.inspect(engine)
    described: dict[str, object] = {
        table: (
            sorted(
                (column["name"], str(column["type"]), column["nullable"])
                for column in inspector.get_columns(table)
            ),
            inspector.get_pk_constraint(table)["constrained_columns"],
            sorted(str(index["column_names"]) for index in inspector.get_indexes(table)),
            len(inspector.get_foreign_keys(table)),
        )
        for table in inspector.get_table_names()
    }
    engine.dispose()
    return described


def revision_of(url: str) -> str:
    with StateDatabase.open(url) as database:
        return database.query("SELECT version_num FROM alembic_version")[0].text("version_num")


def test_the_known_revisions_are_those_of_the_files() -> None:
    found = [script.revision for script in ScriptDirectory(str(MIGRATIONS)).walk_revisions()]

    assert tuple(reversed(found)) == REVISIONS
    assert ScriptDirectory(str(MIGRATIONS)).get_heads() == [HEAD]


def test_every_step_up_has_a_step_down(url: str) -> None:
    engine = engine_for(url)
    seen: list[dict[str, object]] = []
    for revision in REVISIONS:
        upgrade(engine, to=revision)
        seen.append(schema_of(url))
    for index in range(len(REVISIONS) - 2, -1, -1):
        downgrade(engine, to=REVISIONS[index])
        assert schema_of(url) == seen[index]
    downgrade(engine, to="base")
    assert set(schema_of(url)) == {"alembic_version"}
    upgrade(engine)

    assert schema_of(url) == seen[-1]
    assert len(seen[-1]) >= 10


def test_an_older_database_is_brought_up_to_date_with_its_data(url: str) -> None:
    upgrade(engine_for(url), to=REVISIONS[0])
    older = engine_for(url).connect(read_only=False)
    older.execute(TAG, {})
    older.close()

    with StateDatabase.open(url, read_only=True) as database:
        assert len(database.query("SELECT * FROM entities")) == 1
        assert database.query("SELECT * FROM versions") == []
    assert revision_of(url) == HEAD


def test_the_states_of_versions_survive_a_step_down_and_up(url: str) -> None:
    state = LumosDataset.from_json({"urn": "lumos://s3/a", "name": "a", "platform": "s3"})
    number = DatasetVersion(version="1.0.0", timestamp=datetime(2026, 1, 1, tzinfo=UTC))
    change = diff_datasets(None, state)
    with StateDatabase.open(url) as database:
        HistoryRepository(database).append(state.urn, number, dataset=state, changes=change)

    downgrade(engine_for(url), to="0004")
    older = engine_for(url).connect(read_only=False)
    ((text,),) = older.execute("SELECT dataset FROM versions", {}).fetchall()
    older.close()
    assert LumosDataset.from_json(json.loads(str(text))) == state

    with StateDatabase.open(url) as database:
        history = HistoryRepository(database)
        assert history.dataset_at(state.urn, "1.0.0") == state
        assert history.changes(state.urn, "1.0.0") == change


def test_an_older_database_in_a_read_only_folder_is_not_read_wrongly() -> None:
    with folder_for_everyone() as folder:
        path = folder / "lumos.db"
        upgrade(engine_for(path), to=REVISIONS[0])
        with without_permission_to_write(folder), pytest.raises(StateReadOnlyError):
            StateDatabase.open(path, read_only=True)


def test_a_database_of_a_newer_lumos_is_refused_and_left_alone(url: str) -> None:
    with StateDatabase.open(url) as database:
        database.execute("UPDATE alembic_version SET version_num = '9999'")
    for read_only in (True, False):
        with pytest.raises(StateError, match="newer Lumos") as caught:
            StateDatabase.open(url, read_only=read_only)
        assert "upgrade" in str(caught.value.hint)

    connection = engine_for(url).connect(read_only=True)
    (row,) = connection.execute("SELECT version_num FROM alembic_version", {}).fetchall()
    connection.close()
    assert row == ("9999",)


def test_processes_that_open_a_new_database_at_once_all_succeed(url: str) -> None:
    processes = [
        subprocess.Popen([sys.executable, "-c", OPEN, url], stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    errors = [process.communicate()[1].decode() for process in processes]

    assert errors == [""] * 3
    assert [process.returncode for process in processes] == [0] * 3
    assert revision_of(url) == HEAD


def test_a_new_sqlite_has_the_schema_that_all_migrations_make(tmp_path: Path) -> None:
    made, migrated = tmp_path / "made.db", tmp_path / "migrated.db"
    StateDatabase.open(made).close()
    upgrade(engine_for(migrated))

    assert statements_in(made) == statements_in(migrated)
    assert schema_of(str(made)) == schema_of(str(migrated))


def statements_in(path: Path) -> list[tuple[str, list[str]]]:
    """Return what SQLite keeps as the statement that made each table and index."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()
    return [(name, (sql or "").split()) for name, sql in rows]


@pytest.mark.parametrize("statements", [0, 1, 20])
def test_a_new_schema_whose_making_was_killed_is_made_by_the_next_open(
    tmp_path: Path, statements: int
) -> None:
    path, whole = tmp_path / "lumos.db", tmp_path / "whole.db"
    killed = subprocess.run(
        [sys.executable, "-c", DIE_IN_A_NEW_SCHEMA, path, str(statements)], check=False
    )
    assert killed.returncode == -signal.SIGKILL

    StateDatabase.open(path).close()
    StateDatabase.open(whole).close()

    assert statements_in(path) == statements_in(whole)
    assert revision_of(str(path)) == HEAD


@pytest.mark.parametrize("statements", [1, 7, 14, 18])
def test_a_migration_that_was_killed_is_completed_by_the_next_open(
    url: str, statements: int, tmp_path: Path
) -> None:
    whole = tmp_path / "whole.db"
    StateDatabase.open(whole).close()
    killed = subprocess.run(
        [sys.executable, "-c", DIE_IN_MIGRATION, url, str(statements)], check=False
    )

    assert killed.returncode == -signal.SIGKILL
    with StateDatabase.open(url) as database:
        database.execute(TAG)
        assert len(database.query("SELECT * FROM entities")) == 1
    assert revision_of(url) == HEAD
    if not url.startswith("postgres"):
        assert schema_of(url) == schema_of(str(whole))


def test_a_step_that_fails_leaves_the_schema_as_it_was(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import alembic.op

    upgrade(engine_for(url), to=REVISIONS[0])
    before = schema_of(url)
    create_table = alembic.op.create_table

    def fail_at_runs(name: str, *columns: object, **options: object) -> object:
        if name == "runs":
            raise StateError("planted")
        return create_table(name, *columns, **options)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(alembic.op, "create_table", fail_at_runs)
        with pytest.raises(StateError, match="planted"):
            StateDatabase.open(url)

    assert schema_of(url) == before
    assert revision_of(url) == HEAD
