"""The state database behaves alike on SQLite and PostgreSQL."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lumos.core.errors import ConfigurationError, StateError, StateReadOnlyError
from lumos.core.store.database import StateDatabase
from lumos.core.store.sql_text import for_psycopg
from state_databases import ENGINES, url_for

TAG = "INSERT INTO entities (kind, name, document, updated_at) VALUES ('tag', :name, '{}', '')"
COUNT = "SELECT count(*) AS number FROM entities"


@pytest.fixture(params=ENGINES)
def url(request: pytest.FixtureRequest) -> str:
    return url_for(request.param, request)


@pytest.fixture
def database(url: str) -> Iterator[StateDatabase]:
    with StateDatabase.open(url) as database:
        yield database


def names(database: StateDatabase) -> list[str]:
    return [row.text("name") for row in database.query("SELECT name FROM entities ORDER BY name")]


def test_parameters_are_found_wherever_sql_has_them(database: StateDatabase) -> None:
    (row,) = database.query(
        "SELECT '%' AS percent, ':x' AS quoted, 'it''s :x %s' AS escaped, "
        "CAST(:x AS TEXT) AS x /* :no */, 7 % 4 AS rest -- :neither",
        {"x": "100% :x '"},
    )

    assert [row[name] for name in ("percent", "quoted", "escaped", "x", "rest")] == [
        "%",
        ":x",
        "it's :x %s",
        "100% :x '",
        3,
    ]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("a = :a AND b=:b_2", "a = %(a)s AND b=%(b_2)s"),
        ("x::text || :y::text", "x::text || %(y)s::text"),
        ("':a' || \":b\" || :c", "':a' || \":b\" || %(c)s"),
        ("'100%' LIKE '%' || :c", "'100%%' LIKE '%%' || %(c)s"),
        ("-- :a\n:b /* :c */", "-- :a\n%(b)s /* :c */"),
        ("$q$ :a $q$ :b", "$q$ :a $q$ %(b)s"),
        ("'it''s :a' :b", "'it''s :a' %(b)s"),
    ],
)
def test_parameters_are_spelled_for_psycopg(sql: str, expected: str) -> None:
    assert for_psycopg(sql) == expected


def test_a_transaction_is_kept_as_a_whole(database: StateDatabase) -> None:
    with database.transaction():
        database.execute(TAG, {"name": "a"})
        database.execute(TAG, {"name": "b"})

    assert names(database) == ["a", "b"]


def test_a_failed_transaction_leaves_nothing(database: StateDatabase) -> None:
    with pytest.raises(ZeroDivisionError), database.transaction():
        _write_and_fail(database, "a")

    assert names(database) == []
    database.execute(TAG, {"name": "b"})
    assert names(database) == ["b"]


def test_an_inner_transaction_falls_with_the_outer_one(database: StateDatabase) -> None:
    with pytest.raises(ZeroDivisionError), database.transaction():
        _write_in_a_transaction_and_fail(database, "a")

    assert names(database) == []


def test_a_failed_inner_transaction_undoes_only_itself(database: StateDatabase) -> None:
    with database.transaction():
        database.execute(TAG, {"name": "a"})
        with pytest.raises(StateError, match="conflicts"), database.transaction():
            database.execute_many(TAG, [{"name": "b"}, {"name": "a"}])
        database.execute(TAG, {"name": "c"})

    assert names(database) == ["a", "c"]


def test_a_consistent_read_does_not_see_later_writes(url: str, database: StateDatabase) -> None:
    with StateDatabase.open(url) as other, database.consistent_read():
        before = names(database)
        other.execute(TAG, {"name": "late"})

        assert (before, names(database)) == ([], [])
    assert names(database) == ["late"]


def test_a_write_inside_a_consistent_read_is_refused(database: StateDatabase) -> None:
    with (
        database.consistent_read(),
        pytest.raises(StateError, match="consistent read"),
        database.transaction(),
    ):
        pass

    database.execute(TAG, {"name": "a"})


def test_threads_share_one_database(database: StateDatabase) -> None:
    def write(thread: int) -> None:
        for number in range(20):
            with database.transaction():
                database.execute(TAG, {"name": f"{thread}.{number}"})
                database.query(COUNT)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert database.query(COUNT)[0].integer("number") == 120


def test_an_inner_transaction_of_another_thread_waits_for_the_outer_one(
    database: StateDatabase,
) -> None:
    started = threading.Event()

    def write() -> None:
        started.set()
        database.execute(TAG, {"name": "other"})

    def start_another_writer_and_fail() -> None:
        thread.start()
        started.wait()
        _write_and_fail(database, "mine")

    thread = threading.Thread(target=write)
    with pytest.raises(ZeroDivisionError), database.transaction():
        start_another_writer_and_fail()
    thread.join()

    assert names(database) == ["other"]


def test_a_reader_sees_what_was_written_and_cannot_write(url: str) -> None:
    with StateDatabase.open(url) as writer:
        writer.execute(TAG, {"name": "a"})
        with StateDatabase.open(url, read_only=True) as reader:
            assert names(reader) == ["a"]
            with pytest.raises(StateReadOnlyError):
                reader.execute(TAG, {"name": "b"})
            with pytest.raises(StateReadOnlyError), reader.transaction():
                reader.execute(TAG, {"name": "b"})
            writer.execute(TAG, {"name": "c"})
            assert names(reader) == ["a", "c"]


def test_reading_where_there_is_no_catalog_says_how_to_make_one(url: str) -> None:
    with pytest.raises(StateError, match="no catalog yet") as caught:
        StateDatabase.open(url, read_only=True)

    assert "lumos init" in str(caught.value.hint)


def test_reading_makes_no_file(tmp_path: Path) -> None:
    with pytest.raises(StateError):
        StateDatabase.open(tmp_path / "state" / "lumos.db", read_only=True)

    assert not [*tmp_path.iterdir()]


def test_a_closed_database_says_so(database: StateDatabase) -> None:
    database.close()
    database.close()

    for use in (lambda: database.query(COUNT), lambda: database.execute(TAG, {"name": "a"})):
        with pytest.raises(StateError, match="closed"):
            use()
    with pytest.raises(StateError, match="closed"), database.transaction():
        pass


def test_a_path_with_odd_characters_is_only_a_path(tmp_path: Path) -> None:
    path = tmp_path / "a b?mode=memory#%41'é" / "lumos.db"
    with StateDatabase.open(path) as database:
        database.execute(TAG, {"name": "a"})

    assert path.stat().st_size
    with StateDatabase.open(str(path), read_only=True) as database:
        assert names(database) == ["a"]


def test_a_sqlite_url_is_a_path_too(tmp_path: Path) -> None:
    path = tmp_path / "a b#%41'é" / "lumos.db"
    StateDatabase.open(f"sqlite:///{path}").close()

    assert path.stat().st_size


@pytest.mark.parametrize(
    "url",
    [
        "",
        ":memory:",
        "mysql://u:hunter2@h/d",
        "sqlite://x",
        "a\0b",
        "sqlite:////no/where.db?password=hunter2",
    ],
)
def test_what_is_no_state_database_is_refused_without_echo(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        StateDatabase.open(url)

    assert "hunter2" not in f"{caught.value} {caught.value.hint}"


def test_sqlite_is_set_up_to_keep_what_it_acknowledged(tmp_path: Path) -> None:
    with StateDatabase.open(tmp_path / "lumos.db") as database:
        found = {
            name: database.query(f"PRAGMA {name}")[0][column]
            for name, column in {
                "journal_mode": "journal_mode",
                "synchronous": "synchronous",
                "foreign_keys": "foreign_keys",
                "busy_timeout": "timeout",
            }.items()
        }

    assert found == {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "busy_timeout": 30_000,
    }


def test_opening_a_current_database_loads_no_migration_tools(url: str) -> None:
    StateDatabase.open(url).close()
    open_without_migration_tools(url)


def test_a_new_sqlite_is_made_without_migration_tools(tmp_path: Path) -> None:
    open_without_migration_tools(str(tmp_path / "lumos.db"))


def open_without_migration_tools(url: str) -> None:
    """Open a database in a process of its own, to which these tools are most of its start."""
    script = (
        "import sys\n"
        "from lumos.core.store.database import StateDatabase\n"
        "StateDatabase.open(sys.argv[1]).close()\n"
        "assert not {'sqlalchemy', 'alembic'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script, url], check=True)


def _write_and_fail(database: StateDatabase, name: str) -> None:
    database.execute(TAG, {"name": name})
    raise ZeroDivisionError


def _write_in_a_transaction_and_fail(database: StateDatabase, name: str) -> None:
    with database.transaction():
        database.execute(TAG, {"name": name})
    raise ZeroDivisionError
