"""The state database in a file: SQLite in WAL mode, every commit on disk before it returns."""

from __future__ import annotations

import os
import re
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from typing_extensions import override

from lumos.core.errors import (
    StateError,
    StateLockedError,
    StateReadOnlyError,
    StorageFullError,
    UnstorableValueError,
)
from lumos.core.private_files import make_private_folder, private_opener
from lumos.core.store.engine import Connection, Cursor, Engine, Parameters, SqlValue
from lumos.core.store.schema_version import SQLITE_SCRIPT, statements_of

if TYPE_CHECKING:
    import sqlalchemy

BUSY_SECONDS = 30.0
"""Longer than a busy machine takes for what is written in one go."""
MIGRATION_BUSY_SECONDS = 60.0
_PRIMARY_CODE = 0xFF
_NO_SIDE_FILES = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
_WAL_ATTEMPTS = 1_200
_WAL_PAUSE = 0.05


class _Meaning(NamedTuple):
    """What a result code of SQLite means to the user."""

    error: type[StateError]
    message: str
    hint: str
    retryable: bool


_IN_USE = _Meaning(
    StateLockedError,
    "{place} is in use by another Lumos process",
    hint="wait until it has finished, then try again",
    retryable=True,
)
_DAMAGED = _Meaning(
    StateError,
    "{place} is damaged or no Lumos database",
    hint="move it away, run lumos init, and import the latest snapshot",
    retryable=False,
)
_MEANINGS = {
    sqlite3.SQLITE_BUSY: _IN_USE,
    sqlite3.SQLITE_LOCKED: _IN_USE,
    sqlite3.SQLITE_TOOBIG: _Meaning(
        UnstorableValueError,
        "{place} cannot hold a value that was to be written",
        hint="a text of more than a gigabyte does not fit",
        retryable=False,
    ),
    sqlite3.SQLITE_NOTADB: _DAMAGED,
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_FULL: _Meaning(
        StorageFullError,
        "no space left to write {place}",
        hint="free some space, then try again",
        retryable=True,
    ),
    sqlite3.SQLITE_CONSTRAINT: _Meaning(
        StateError,
        "{place} refused a write that conflicts with what it holds",
        hint="another process may have been faster; try again",
        retryable=True,
    ),
    sqlite3.SQLITE_IOERR: _Meaning(
        StateError,
        "reading or writing {place} failed",
        hint="check the disk: it may be full, over quota or failing",
        retryable=True,
    ),
}


class SqliteEngine(Engine):
    """SQLite in one file, shared by processes of one machine."""

    dialect = "sqlite"
    begin_write = "BEGIN IMMEDIATE"
    begin_read = "BEGIN"
    clock = "lumos_clock()"
    driver_errors = (sqlite3.Error, UnicodeError, OverflowError)

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.place = str(path)

    @override
    def exists(self) -> bool:
        try:
            return self.path.exists()
        except OSError as error:
            raise StateError(f"cannot look at {self.place}: {error.strerror}") from None

    @override
    def connect(self, *, read_only: bool) -> Connection:
        try:
            connection = self._reader() if read_only else self._writer(BUSY_SECONDS)
        except sqlite3.Error as error:
            raise self.translated(error) from None
        return cast("Connection", connection)

    @override
    def statement(self, sql: str) -> str:
        return sql

    @override
    def is_lost(self, connection: Connection) -> bool:
        return False

    @override
    def in_transaction(self, connection: Connection) -> bool:
        return cast("sqlite3.Connection", connection).in_transaction

    @override
    def is_missing_table(self, error: Exception) -> bool:
        return isinstance(error, sqlite3.OperationalError) and "no such table" in str(error)

    @override
    def translated(self, error: Exception) -> StateError:
        if isinstance(error, UnicodeError | OverflowError):
            return UnstorableValueError(f"{self.place} cannot hold a value that was to be written")
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & _PRIMARY_CODE
        if code == sqlite3.SQLITE_READONLY:
            return self._read_only_error()
        if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
            return self._cannot_open()
        if "no such module: fts5" in str(error):
            return StateError(
                "the SQLite of this Python has no full-text search (FTS5)",
                hint="use a Python whose SQLite has it, or PostgreSQL by LUMOS_DATABASE_URL",
            )
        meaning = _MEANINGS.get(code)
        if meaning is None:
            kind = type(error).__name__
            return StateError(f"{self.place} could not carry out a statement ({kind})")
        return meaning.error(
            meaning.message.format(place=self.place), hint=meaning.hint, retryable=meaning.retryable
        )

    @override
    def with_damaged_text(
        self, connection: Connection, sql: str, params: Parameters, *, error: Exception
    ) -> tuple[Cursor, list[tuple[SqlValue, ...]]] | None:
        is_key = isinstance(error, UnicodeEncodeError) and sql.lstrip().startswith("SELECT")
        if not is_key and "Could not decode to UTF-8" not in str(error):
            return None
        driver = cast("sqlite3.Connection", connection)
        driver.text_factory = lambda content: content.decode("utf-8", "surrogateescape")
        try:
            cursor = driver.execute(*_with_damaged_keys(sql, params))
            return cast("Cursor", cursor), cursor.fetchall()
        except self.driver_errors as again:
            raise self.translated(again) from None
        finally:
            driver.text_factory = str

    @override
    def make_schema(self) -> bool:
        try:
            with closing(self._writer(MIGRATION_BUSY_SECONDS)) as connection:
                connection.execute(self.begin_write)
                if connection.execute("SELECT 1 FROM sqlite_master").fetchone():
                    return False
                for statement in statements_of(SQLITE_SCRIPT.read_text("utf-8")):
                    connection.execute(statement)
                connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise self.translated(error) from None
        return True

    @override
    def migration_engine(self) -> sqlalchemy.Engine:
        import sqlalchemy

        engine = sqlalchemy.create_engine(
            "sqlite://",
            creator=lambda: self._writer(MIGRATION_BUSY_SECONDS),
            poolclass=sqlalchemy.NullPool,
        )

        @sqlalchemy.event.listens_for(engine, "begin")
        def _exclude_others(connection: sqlalchemy.Connection) -> None:
            connection.exec_driver_sql(self.begin_write)

        return engine

    def _writer(self, busy_seconds: float) -> sqlite3.Connection:
        try:
            make_private_folder(self.path.parent)
            self._make_private_file()
        except PermissionError:
            raise self._read_only_error() from None
        except OSError as error:
            raise StateError(f"cannot make the folder of {self.place}: {error.strerror}") from None
        connection = self._opened("rwc", busy_seconds)
        try:
            _use_wal(connection)
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _make_private_file(self) -> None:
        """Make a missing database file; SQLite gives its mode to the files that it puts beside it.

        The mode of an existing one stays: users who share a database chose it. What an earlier
        Lumos made in the state folder is made private with that folder.
        """
        with suppress(FileExistsError):
            os.close(private_opener(str(self.path), os.O_RDWR | os.O_CREAT | os.O_EXCL))

    def _reader(self) -> sqlite3.Connection:
        connection = self._opened("ro", BUSY_SECONDS)
        try:
            connection.execute("SELECT 1 FROM sqlite_schema").fetchall()
        except sqlite3.Error as error:
            connection.close()
            # A database in WAL mode needs its side files; on a medium where they cannot be made
            # it can still be read as it stands, provided that no commit waits in the log.
            if error.sqlite_errorcode & _PRIMARY_CODE not in _NO_SIDE_FILES:
                raise
            if self._has_waiting_commits():
                raise StateReadOnlyError(
                    f"{self.place} cannot be read: an interrupted write must be completed first",
                    hint="open it once where the folder can be written, with lumos doctor",
                ) from None
            return self._opened("ro&immutable=1", BUSY_SECONDS)
        return connection

    def _has_waiting_commits(self) -> bool:
        log = Path(f"{self.path}-wal")
        return log.exists() and log.stat().st_size > 0

    def _opened(self, mode: str, busy_seconds: float) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{self.path.as_uri()}?mode={mode}",
            uri=True,
            timeout=busy_seconds,
            isolation_level=None,
            check_same_thread=False,
        )
        # All users are on one machine, whose monotonic clock nobody sets and a sleep stops.
        connection.create_function("lumos_clock", 0, time.monotonic)
        return connection

    def _cannot_open(self) -> StateError:
        if self.path.is_dir():
            return StateError(f"{self.place} is a folder, not a database file")
        if not _writable(self.path.parent) or (self.path.exists() and not _writable(self.path)):
            return self._read_only_error()
        return StateError(f"cannot open {self.place}")

    def _read_only_error(self) -> StateReadOnlyError:
        return StateReadOnlyError(
            f"{self.place} cannot be written: the folder or file is read-only",
            hint="give Lumos write permission there, or set LUMOS_DATABASE_URL to another place",
        )


def _with_damaged_keys(sql: str, params: Parameters) -> tuple[str, Parameters]:
    """Return a query in which keys that are no text are compared as the bytes they are."""
    given = dict(params)
    for name, value in params.items():
        if isinstance(value, str) and not _is_text(value):
            given[name] = value.encode("utf-8", "surrogateescape")
            sql = re.sub(rf":{name}\b", f"CAST(:{name} AS TEXT)", sql)
    return sql, given


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch to write-ahead logging, once for the life of the file."""
    for attempt in range(_WAL_ATTEMPTS):
        try:
            (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
            if mode != "wal":
                connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:
            # SQLite does not wait when two processes switch a new file at the same time.
            busy = error.sqlite_errorcode & _PRIMARY_CODE == sqlite3.SQLITE_BUSY
            if not busy or attempt == _WAL_ATTEMPTS - 1:
                raise
            time.sleep(_WAL_PAUSE)
        else:
            return


def _writable(path: Path) -> bool:
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)
