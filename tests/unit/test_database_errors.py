"""Whatever happens to the state database, the user gets one clear Lumos error."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from lumos.core.errors import (
    ConfigurationError,
    LumosError,
    MissingExtraError,
    StateError,
    StateLockedError,
    StateReadOnlyError,
    StorageFullError,
)
from lumos.core.store import sqlite_engine
from lumos.core.store.database import StateDatabase
from state_databases import folder_for_everyone, unprivileged, without_permission_to_write

TAG = "INSERT INTO entities (kind, name, document, updated_at) VALUES ('tag', :name, :text, '')"
PASSWORD = "hunter2-secret"


def names(database: StateDatabase) -> list[str]:
    return [row.text("name") for row in database.query("SELECT name FROM entities ORDER BY name")]


@pytest.fixture
def filled() -> Iterator[Path]:
    """A database file in a folder that other accounts can read."""
    with folder_for_everyone() as folder:
        with StateDatabase.open(folder / "lumos.db") as database:
            database.execute(TAG, {"name": "a", "text": "{}"})
        yield folder / "lumos.db"


def test_a_second_writer_is_told_that_the_database_is_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_engine, "BUSY_SECONDS", 0.05)
    path = tmp_path / "lumos.db"
    with StateDatabase.open(path) as first, StateDatabase.open(path) as second:
        with first.transaction(), pytest.raises(StateLockedError) as caught:
            second.execute(TAG, {"name": "b", "text": "{}"})
        assert caught.value.retryable
        with first.transaction():
            with pytest.raises(StateLockedError), second.transaction():
                pass
            assert names(second) == []
        second.execute(TAG, {"name": "b", "text": "{}"})


def test_a_second_writer_on_postgres_is_told_that_the_database_is_in_use(
    postgres_database_url: str,
) -> None:
    with (
        StateDatabase.open(postgres_database_url) as first,
        StateDatabase.open(postgres_database_url) as second,
    ):
        second.execute("SET lock_timeout = '50ms'")
        with first.transaction():
            first.execute(TAG, {"name": "b", "text": "{}"})
            with pytest.raises(StateLockedError):
                second.execute(TAG, {"name": "b", "text": "{}"})


def test_a_read_only_folder_can_be_read_but_not_written(filled: Path) -> None:
    with without_permission_to_write(filled.parent):
        with StateDatabase.open(filled, read_only=True) as reader:
            assert names(reader) == ["a"]
        with pytest.raises(StateReadOnlyError) as caught:
            StateDatabase.open(filled)

    assert "read-only" in str(caught.value)
    assert "LUMOS_DATABASE_URL" in str(caught.value.hint)


def test_a_read_only_folder_is_no_place_for_a_new_database(filled: Path) -> None:
    with without_permission_to_write(filled.parent):
        for path in (filled.parent / "new.db", filled.parent / "folder" / "new.db"):
            with pytest.raises(StateReadOnlyError):
                StateDatabase.open(path)


def test_a_read_only_file_can_be_read_but_not_written(filled: Path) -> None:
    # A folder that can be written: SQLite opens the file and refuses at the first write.
    filled.parent.chmod(0o777)
    filled.chmod(0o444)
    with unprivileged():
        with StateDatabase.open(filled, read_only=True) as reader:
            assert names(reader) == ["a"]
        with pytest.raises(StateReadOnlyError):
            _write(filled)


def test_commits_that_wait_in_the_log_are_never_overlooked(filled: Path) -> None:
    with folder_for_everyone() as folder:
        with StateDatabase.open(filled) as database:
            database.execute(TAG, {"name": "late", "text": "{}"})
            for suffix in ("", "-wal"):
                shutil.copy(f"{filled}{suffix}", folder / f"lumos.db{suffix}")
        with (
            without_permission_to_write(folder),
            pytest.raises(StateReadOnlyError, match="interrupted write"),
        ):
            StateDatabase.open(folder / "lumos.db", read_only=True)
        with StateDatabase.open(folder / "lumos.db", read_only=True) as reader:
            assert names(reader) == ["a", "late"]


def test_a_full_disk_undoes_the_transaction_and_nothing_else(tmp_path: Path) -> None:
    with StateDatabase.open(tmp_path / "lumos.db") as database:
        database.execute(TAG, {"name": "a", "text": "{}"})
        pages = database.query("PRAGMA page_count")[0].integer("page_count")
        database.query(f"PRAGMA max_page_count = {pages + 5}")
        with pytest.raises(StorageFullError) as caught:
            database.execute_many(
                TAG, [{"name": "small", "text": "{}"}, {"name": "large", "text": "x" * 1_000_000}]
            )

        assert caught.value.retryable
        assert names(database) == ["a"]
        database.query("PRAGMA max_page_count = 1000000")
        database.execute(TAG, {"name": "large", "text": "x" * 1_000_000})
        assert names(database) == ["a", "large"]


def test_nothing_is_kept_of_a_transaction_that_went_on_after_a_full_disk(tmp_path: Path) -> None:
    with StateDatabase.open(tmp_path / "lumos.db") as database:
        pages = database.query("PRAGMA page_count")[0].integer("page_count")
        database.query(f"PRAGMA max_page_count = {pages + 5}")

        def go_on_after_a_failure() -> None:
            database.execute(TAG, {"name": "before", "text": "{}"})
            with pytest.raises(StorageFullError):
                database.execute(TAG, {"name": "large", "text": "x" * 1_000_000})
            database.execute(TAG, {"name": "after", "text": "{}"})

        with pytest.raises(StateError), database.transaction():
            go_on_after_a_failure()

        assert names(database) == []


@pytest.mark.parametrize("content", [b"hello, I am a text file" * 500, b"SQLite format 3\0" * 300])
def test_a_file_that_is_no_database_is_named_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "lumos.db"
    path.write_bytes(content)
    for read_only in (True, False):
        with pytest.raises(StateError, match="damaged or no Lumos database") as caught:
            StateDatabase.open(path, read_only=read_only)
        assert "import the latest snapshot" in str(caught.value.hint)

    assert path.read_bytes() == content


def test_damage_in_the_middle_of_the_file_is_a_lumos_error(filled: Path) -> None:
    content = bytearray(filled.read_bytes())
    for start in range(4096, len(content), 4096):
        content[start : start + 200] = b"\xff" * 200
    filled.write_bytes(content)

    with pytest.raises(StateError):
        _write(filled)


def test_a_folder_is_no_database(tmp_path: Path) -> None:
    for read_only in (True, False):
        with pytest.raises(StateError, match="folder"):
            StateDatabase.open(tmp_path, read_only=read_only)


def test_a_file_in_the_way_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match="cannot make the folder"):
        StateDatabase.open(tmp_path / "file" / "lumos.db")


def test_a_server_that_does_not_answer_may_answer_later() -> None:
    with pytest.raises(StateError, match="does not answer") as caught:
        StateDatabase.open(f"postgresql://lumos:{PASSWORD}@127.0.0.1:1/state")

    assert caught.value.retryable
    assert PASSWORD not in _everything(caught.value)


def test_a_refused_password_is_not_repeated(postgres_url: str) -> None:
    parts = urlsplit(postgres_url)
    url = urlunsplit(parts._replace(netloc=f"lumos:{PASSWORD}@127.0.0.1:{parts.port}"))
    with pytest.raises(StateError, match="refused the user or password") as caught:
        StateDatabase.open(url)

    assert not caught.value.retryable
    assert PASSWORD not in _everything(caught.value)


def test_a_missing_database_on_the_server_is_named(postgres_url: str) -> None:
    url = urlunsplit(urlsplit(postgres_url)._replace(path="/nowhere"))
    with pytest.raises(StateError, match=r"'nowhere'.*does not exist"):
        StateDatabase.open(url)


@pytest.mark.parametrize(
    "url", [f"postgresql://u:{PASSWORD}%zz@h/d", f"postgresql://u@h:{PASSWORD}/d?x={PASSWORD}"]
)
def test_a_malformed_url_is_not_echoed(url: str) -> None:
    with pytest.raises(LumosError) as caught:
        StateDatabase.open(url)

    assert isinstance(caught.value, ConfigurationError | StateError)
    assert PASSWORD not in _everything(caught.value)


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_every_spelling_of_the_scheme_is_read(postgres_database_url: str, scheme: str) -> None:
    url = postgres_database_url.replace("postgresql", scheme, 1)
    with StateDatabase.open(url) as database:
        assert database.dialect == "postgresql"


def test_without_psycopg_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtraError) as caught:
        StateDatabase.open("postgresql://h/d")

    assert "lumos[postgres]" in str(caught.value.hint)


def test_a_connection_that_breaks_in_a_transaction_leaves_nothing_and_comes_back(
    postgres_database_url: str,
) -> None:
    with (
        StateDatabase.open(postgres_database_url) as database,
        psycopg.connect(postgres_database_url, autocommit=True) as other,
    ):

        def lose_the_connection() -> None:
            database.execute(TAG, {"name": "a", "text": "{}"})
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            database.execute(TAG, {"name": "b", "text": "{}"})

        with pytest.raises(StateError) as caught, database.transaction():
            lose_the_connection()

        assert caught.value.retryable
        assert names(database) == []
        database.execute(TAG, {"name": "c", "text": "{}"})
        assert names(database) == ["c"]


def test_a_value_that_cannot_be_stored_is_a_lumos_error(
    tmp_path: Path, postgres_database_url: str
) -> None:
    for url in (tmp_path / "lumos.db", postgres_database_url):
        with StateDatabase.open(url) as database, pytest.raises(StateError):
            database.execute(TAG, {"name": "\udcff", "text": "{}"})


def _write(path: Path) -> None:
    with StateDatabase.open(path) as database:
        database.execute(TAG, {"name": "written", "text": "x" * 10_000})
        database.query("SELECT * FROM entities")


def _everything(error: LumosError) -> str:
    chain = [error, error.__cause__, None if error.__suppress_context__ else error.__context__]
    return " ".join(f"{each} {getattr(each, 'hint', '')} {each!r}" for each in chain)
