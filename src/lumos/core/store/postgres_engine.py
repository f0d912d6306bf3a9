"""The state database on a server: PostgreSQL by psycopg, for teams and services."""

from __future__ import annotations

import re
from types import ModuleType
from typing import TYPE_CHECKING, cast

from typing_extensions import override

from lumos.core.errors import (
    ConfigurationError,
    LeaseLostError,
    MissingExtraError,
    StateError,
    StateLockedError,
    StateReadOnlyError,
    StorageFullError,
    UnstorableValueError,
)
from lumos.core.store.engine import Connection, Engine
from lumos.core.store.sql_text import for_psycopg

if TYPE_CHECKING:
    import psycopg
    import sqlalchemy

CONNECT_SECONDS = 10
SESSION = (
    "SET lock_timeout = '5s'",
    "SET client_encoding = 'UTF8'",
    "SET standard_conforming_strings = on",
)
MIGRATION_LOCK = 0x6C756D6F73  # "lumos"
_SCHEME = re.compile(r"postgres(?:ql)?(?:\+psycopg)?://")

_LOCKED = frozenset({"55P03", "40P01", "40001"})
_FULL = frozenset({"53100"})
_READ_ONLY = frozenset({"25006", "42501"})
_TOO_LARGE = "54000"
"""A value is larger than an index or a full-text entry can hold."""
_MISSING_TABLE = "42P01"
_PAUSED = "25P03"
"""The server ended a transaction in which nothing happened for most of the time of a lease."""
_REFUSALS = (
    ("password authentication failed", "the server refused the user or password"),
    ("does not exist", "the database or user does not exist"),
    ("no password supplied", "the server asks for a password and the URL has none"),
)


class PostgresEngine(Engine):
    """PostgreSQL, reached by URL."""

    dialect = "postgresql"
    begin_write = "BEGIN"
    begin_read = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    clock = "CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS DOUBLE PRECISION)"

    def __init__(self, url: str) -> None:
        self._psycopg = _driver()
        self.driver_errors = (self._psycopg.Error, UnicodeError, OverflowError)
        self._conninfo = _SCHEME.sub("postgresql://", url, count=1)
        try:
            known = self._psycopg.conninfo.conninfo_to_dict(self._conninfo)
        except self._psycopg.Error:
            raise ConfigurationError(
                "the URL of the state database is not a valid PostgreSQL URL",
                hint="it looks like postgresql://USER:PASSWORD@HOST:5432/DATABASE",
            ) from None
        self._defaults = {} if "connect_timeout" in known else {"connect_timeout": CONNECT_SECONDS}
        host, port = known.get("host", "localhost"), known.get("port", 5432)
        self.place = f"PostgreSQL database {known.get('dbname', '')!r} at {host}:{port}"

    @override
    def exists(self) -> bool:
        return True

    @override
    def connect(self, *, read_only: bool) -> Connection:
        connection = self._connected(autocommit=True)
        try:
            if read_only:
                connection.execute("SET default_transaction_read_only = on")
        except self._psycopg.Error as error:
            connection.close()
            raise self.translated(error) from None
        return cast("Connection", connection)

    @override
    def statement(self, sql: str) -> str:
        return for_psycopg(sql)

    @override
    def is_lost(self, connection: Connection) -> bool:
        return bool(cast("psycopg.Connection", connection).closed)

    @override
    def in_transaction(self, connection: Connection) -> bool:
        status = cast("psycopg.Connection", connection).info.transaction_status
        return status.name in {"ACTIVE", "INTRANS", "INERROR"}

    @override
    def is_missing_table(self, error: Exception) -> bool:
        return getattr(error, "sqlstate", None) == _MISSING_TABLE

    @override
    def translated(self, error: Exception) -> StateError:
        state = getattr(error, "sqlstate", None) or ""
        if state in _LOCKED:
            return StateLockedError(
                f"{self.place} is in use by another Lumos process",
                hint="wait until it has finished, then try again",
            )
        if state == _PAUSED:
            return LeaseLostError(
                f"{self.place} ended a transaction that stood still: nothing of it is written",
                hint="run the command again; was this process paused?",
            )
        if state in _FULL:
            return StorageFullError(f"no space left on the server of {self.place}")
        if state in _READ_ONLY:
            return StateReadOnlyError(
                f"{self.place} does not allow writing", hint="use a role that may write"
            )
        if state.startswith("23"):
            return StateError(
                f"{self.place} refused a write that conflicts with what it holds",
                hint="another process may have been faster; try again",
                retryable=True,
            )
        if isinstance(error, UnicodeError | self._psycopg.DataError) or state == _TOO_LARGE:
            return UnstorableValueError(f"{self.place} cannot hold a value that was to be written")
        if isinstance(error, self._psycopg.OperationalError | self._psycopg.InterfaceError):
            return StateError(
                f"the connection to {self.place} was lost",
                hint="check that the server runs, then try again",
                retryable=True,
            )
        kind = f"SQLSTATE {state}" if state else type(error).__name__
        return StateError(f"{self.place} could not carry out a statement ({kind})")

    @override
    def migration_engine(self) -> sqlalchemy.Engine:
        import sqlalchemy

        engine = sqlalchemy.create_engine(
            "postgresql+psycopg://",
            creator=lambda: self._connected(autocommit=False),
            poolclass=sqlalchemy.NullPool,
        )

        @sqlalchemy.event.listens_for(engine, "begin")
        def _exclude_others(connection: sqlalchemy.Connection) -> None:
            connection.exec_driver_sql("SET LOCAL lock_timeout = '60s'")
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})")

        return engine

    def _connected(self, *, autocommit: bool) -> psycopg.Connection:
        try:
            connection = self._psycopg.connect(
                self._conninfo, autocommit=autocommit, **self._defaults
            )
        except self._psycopg.Error as error:
            raise self._cannot_connect(error) from None
        try:
            for statement in SESSION:
                connection.execute(statement)
            if not autocommit:
                connection.commit()
        except self._psycopg.Error as error:
            connection.close()
            raise self.translated(error) from None
        return cast("psycopg.Connection", connection)

    def _cannot_connect(self, error: Exception) -> StateError:
        # The driver's own text may repeat what the URL held; only known phrases are passed on.
        text = str(error)
        for phrase, meaning in _REFUSALS:
            if phrase in text:
                return StateError(
                    f"cannot connect to {self.place}: {meaning}",
                    hint="check LUMOS_DATABASE_URL",
                )
        return StateError(
            f"cannot connect to {self.place}: the server does not answer",
            hint="check LUMOS_DATABASE_URL and that the server runs",
            retryable=True,
        )


def _driver() -> ModuleType:
    try:
        import psycopg
    except ImportError:
        raise MissingExtraError(
            "a state database on PostgreSQL needs the package psycopg",
            hint="install it with: pip install 'lumos[postgres]'",
        ) from None
    return psycopg
