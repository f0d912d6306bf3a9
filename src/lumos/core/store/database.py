"""The state database: SQLite or PostgreSQL behind the same SQL text."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from lumos.core.errors import ConfigurationError, NoCatalogError, StateError
from lumos.core.store.engine import Connection, Cursor, Dialect, Engine, Parameters, Row
from lumos.core.store.schema_version import create_or_upgrade, is_current
from lumos.core.store.sqlite_engine import SqliteEngine

_SQLITE = "sqlite:///"
_POSTGRES = ("postgresql://", "postgres://", "postgresql+psycopg://")
_NO_PARAMETERS: Parameters = {}


class Fence(Protocol):
    """Lets writes through while their right lasts.

    `check` and `confirm` are called within each transaction, `require` before a write elsewhere.
    """

    def check(self) -> None:
        """Raise if nothing may be written; the first statement."""

    def confirm(self) -> None:
        """Raise if nothing may be written, and keep it so until the commit; the last one."""

    def require(self) -> None:
        """Raise if the right has ended as far as this process knows, without asking a database."""


class StateDatabase:
    """One open state database.

    It may be used from several threads: they share one connection under a lock, which a
    transaction holds from beginning to end. Results are read whole, so no cursor stays open.
    """

    def __init__(self, engine: Engine, *, read_only: bool) -> None:
        self._engine = engine
        self._read_only = read_only
        self._lock = threading.RLock()
        self._connection: Connection | None = engine.connect(read_only=read_only)
        self._depth = 0
        self._reading = False
        self.fence: Fence | None = None
        """While there is one, every write passes it."""

    @classmethod
    def open(cls, url_or_path: str | Path, *, read_only: bool = False) -> Self:
        """Open the database at a path, a `sqlite:///` URL or a `postgresql://` URL.

        A missing SQLite file is made, unless `read_only`. A schema of an older Lumos is brought
        up to date, also by a reader where it may write.

        Raises:
            StateError: there is no database to read, it is damaged, out of reach or too new.
            StateReadOnlyError: it has to be written and cannot be.
            MissingExtraError: psycopg is not installed.
        """
        engine = engine_for(url_or_path)
        if read_only and not engine.exists():
            raise _no_catalog(engine)
        database = cls(engine, read_only=read_only)
        try:
            database._bring_up_to_date()
        except BaseException:
            database.close()
            raise
        return database

    @property
    def dialect(self) -> Dialect:
        return self._engine.dialect

    @property
    def place(self) -> str:
        """Where the database is, in words that hold no secret."""
        return self._engine.place

    @property
    def read_only(self) -> bool:
        return self._read_only

    @property
    def clock(self) -> str:
        """The SQL of the time in seconds that all users of the database share."""
        return self._engine.clock

    def another_connection(self) -> Self:
        """Return the same database over a second connection, for another thread."""
        return type(self)(self._engine, read_only=self._read_only)

    def close(self) -> None:
        """Let go of the connection; what is not committed is undone."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make all writes of the block one: they are kept together or not at all.

        A transaction inside another joins it: it is kept only if the outer one is. If the inner
        block fails and the caller goes on, the writes of the inner block alone are undone.
        """
        with self._lock:
            if self._reading:
                raise StateError("a write cannot begin inside a consistent read")
            begin = self._engine.begin_read if self._read_only else self._engine.begin_write
            with self._joined() if self._depth else self._outermost(begin, fence=self.fence):
                yield

    @contextmanager
    def consistent_read(self) -> Iterator[None]:
        """Let all queries of the block see the database as it was at one moment."""
        with self._lock:
            if self._depth:
                yield
                return
            self._reading = True
            try:
                with self._outermost(self._engine.begin_read):
                    yield
            finally:
                self._reading = False

    def execute(self, sql: str, params: Parameters = _NO_PARAMETERS) -> int:
        """Carry out one statement and return how many rows it touched."""
        with self._lock:
            if self.fence is None or self._depth:
                return self._run(sql, params).rowcount
            with self.transaction():
                return self._run(sql, params).rowcount

    def execute_many(self, sql: str, rows: Iterable[Parameters]) -> None:
        """Carry out one statement for each set of parameters, as one transaction."""
        every = list(rows)
        if len(every) <= 1:  # one statement is a transaction by itself
            for params in every:
                self.execute(sql, params)
            return
        with self.transaction():
            for params in every:
                self._run(sql, params)

    def query(self, sql: str, params: Parameters = _NO_PARAMETERS) -> list[Row]:
        """Return all rows of a query."""
        with self._lock:
            connection, statement = self._live_connection(), self._engine.statement(sql)
            try:
                cursor = connection.execute(statement, params)
                rows = cursor.fetchall()
            except self._engine.driver_errors as error:
                # Damage of one row must not hide the others: who reads it finds the damage.
                found = self._engine.with_damaged_text(connection, statement, params, error=error)
                if found is None:
                    raise self._engine.translated(error) from None
                cursor, rows = found
        columns = {str(column[0]): index for index, column in enumerate(cursor.description or ())}
        return [Row(columns, values) for values in rows]

    def _run(self, sql: str, params: Parameters = _NO_PARAMETERS) -> Cursor:
        connection = self._live_connection()
        try:
            return connection.execute(self._engine.statement(sql), params)
        except self._engine.driver_errors as error:
            raise self._engine.translated(error) from None

    def _live_connection(self) -> Connection:
        if self._connection is None:
            raise StateError(f"the connection to {self.place} is closed")
        if self._depth:
            if not self._engine.in_transaction(self._connection):
                raise StateError(f"{self.place} undid the transaction", retryable=True)
        elif self._engine.is_lost(self._connection):
            self._connection = self._engine.connect(read_only=self._read_only)
        return self._connection

    @contextmanager
    def _outermost(self, begin: str, *, fence: Fence | None = None) -> Iterator[None]:
        self._run(begin)
        self._depth = 1
        try:
            if fence is not None:
                fence.check()
            yield
            if fence is not None:
                fence.confirm()
        except BaseException:
            self._undo("ROLLBACK")
            raise
        else:
            self._commit()
        finally:
            self._depth = 0

    @contextmanager
    def _joined(self) -> Iterator[None]:
        name = f"nested_{self._depth}"
        self._run(f"SAVEPOINT {name}")
        self._depth += 1
        try:
            yield
        except BaseException:
            self._undo(f"ROLLBACK TO SAVEPOINT {name}")
            raise
        else:
            self._run(f"RELEASE SAVEPOINT {name}")
        finally:
            self._depth -= 1

    def _commit(self) -> None:
        try:
            self._run("COMMIT")
        except StateError:
            self._undo("ROLLBACK")
            raise

    def _undo(self, statement: str) -> None:
        """Roll back; when that fails too, the database has already done so or will."""
        try:
            self._run(statement)
        except StateError:
            return

    def _bring_up_to_date(self) -> None:
        revision = self._revision()
        if is_current(revision, place=self.place):
            return
        if self._read_only and revision is None:
            raise _no_catalog(self._engine)
        create_or_upgrade(self._engine, revision=revision)

    def _revision(self) -> str | None:
        connection = self._live_connection()
        try:
            rows = connection.execute("SELECT version_num FROM alembic_version", {}).fetchall()
        except self._engine.driver_errors as error:
            if self._engine.is_missing_table(error):
                return None
            raise self._engine.translated(error) from None
        return str(rows[0][0]) if rows else None


def is_url(text: str) -> bool:
    """Return whether a text is the address of a state database, and no path."""
    return text.startswith((_SQLITE, *_POSTGRES))


def engine_for(url_or_path: str | Path) -> Engine:
    """Return the engine that a path or URL asks for."""
    text = str(url_or_path)
    if text.startswith(_POSTGRES):
        from lumos.core.store.postgres_engine import PostgresEngine

        return PostgresEngine(text)
    if text.startswith(_SQLITE):
        text = text.removeprefix(_SQLITE)
        if "?" in text:
            raise ConfigurationError(
                "the URL of a SQLite state database takes no parameters after ?",
                hint="give sqlite:///PATH alone; a path with ? in it is written without sqlite:///",
            )
    if "://" in text or not text or text == ":memory:" or "\0" in text:
        raise ConfigurationError(
            "the state database is a file path, sqlite:///PATH or postgresql://…",
            hint="set LUMOS_DATABASE_URL, or leave it out for .lumos/lumos.db",
        )
    return SqliteEngine(Path(text))


def _no_catalog(engine: Engine) -> NoCatalogError:
    return NoCatalogError(
        f"there is no catalog yet at {engine.place}",
        hint="make one with lumos init, then fill it with lumos import",
    )
