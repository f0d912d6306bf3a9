"""The database behind Amundsen: connections, transactions, and what its errors mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

import sqlalchemy
from sqlalchemy import and_, delete, insert, select, update
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from lumos.core.errors import (
    ConfigurationError,
    MissingExtraError,
    PlatformAuthError,
    PlatformConflictError,
    PlatformError,
    PlatformNotFoundError,
    PlatformUnavailableError,
    PlatformVersionError,
)
from lumos.core.platform.impl.amundsen.mapping.tables import PUBLISHER

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine, Table

Value = str | int | bool | None
Row = Mapping[str, Value]
_MYSQL = ("mysql", "mysql+pymysql", "mariadb", "mariadb+pymysql")
_PORT = 3306
_PATIENCE = 6
"""How many times as long as a connection an answer may take."""


def mysql_engine(url: str, *, timeout: float) -> Engine:
    """Return an engine of the MySQL or MariaDB that Amundsen's metadata service uses.

    Raises:
        ConfigurationError: the URL is not one of such a database.
        MissingExtraError: the driver is not installed.
    """
    try:
        parsed = sqlalchemy.make_url(url)
    except ArgumentError:
        parsed = None
    if parsed is None or parsed.drivername not in _MYSQL:
        raise ConfigurationError(
            "platform_config.amundsen: database_url is not the URL of a MySQL database",
            hint="write mysql://USER:PASSWORD@HOST:3306/DATABASE, or set neo4j_url instead",
        )
    if find_spec("pymysql") is None:
        raise MissingExtraError(
            "the platform amundsen needs the package pymysql",
            hint="install it with: pip install 'lumos[amundsen]'",
        )
    return sqlalchemy.create_engine(
        parsed.set(drivername="mysql+pymysql"),
        connect_args={
            "connect_timeout": max(1, round(timeout)),
            # A server there that is not MySQL would be waited for without end.
            "read_timeout": max(1, round(timeout * _PATIENCE)),
            "write_timeout": max(1, round(timeout * _PATIENCE)),
            "charset": "utf8mb4",
        },
        pool_pre_ping=True,
        hide_parameters=True,
        isolation_level="REPEATABLE READ",
    )


class AmundsenDatabase:
    """Rows in and out, in transactions; every error is one of Lumos."""

    def __init__(self, engine: Engine, *, clock: Callable[[], datetime]) -> None:
        self._engine = engine
        self._clock = clock
        self._closed = False

    @property
    def kind(self) -> str:
        """What kind of database it is, such as mysql."""
        return self._engine.dialect.name

    @property
    def place(self) -> str:
        """For messages: the catalog, and where its database is, without who asks."""
        url = self._engine.url
        if url.host is None:
            return "amundsen"
        return f"amundsen at {url.host}:{url.port or _PORT}/{url.database or ''}"

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Yield a connection whose work is kept as a whole or not at all.

        Raises:
            PlatformError: the database is out of reach or refuses.
        """
        if self._closed:
            raise PlatformUnavailableError(f"{self.place}: the connection was closed")
        try:
            with self._engine.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise _translated(error, place=self.place) from None

    def close(self) -> None:
        """Let go of all connections."""
        self._closed = True
        self._engine.dispose()

    def bring(
        self,
        connection: Connection,
        table: Table,
        *,
        rows: Sequence[Row],
        scope: sqlalchemy.ColumnElement[bool],
    ) -> None:
        """Make the rows within the scope what is given, touching none that is so already."""
        held = {_key(table, row): row for row in rows_of(connection, table, scope)}
        wanted = {_key(table, row): row for row in rows}
        for key in held.keys() - wanted.keys():
            connection.execute(delete(table).where(_is(table, key)))
        self.add(connection, table, [row for key, row in wanted.items() if key not in held])
        for key in held.keys() & wanted.keys():
            if any(held[key][name] != value for name, value in wanted[key].items()):
                changed = {**wanted[key], **self._published()}
                connection.execute(update(table).where(_is(table, key)).values(changed))

    def add(self, connection: Connection, table: Table, rows: Sequence[Row]) -> None:
        """Insert rows that are not there."""
        if rows:
            published = self._published()
            names = sorted({name for row in rows for name in row})
            filled = [{**{name: row.get(name) for name in names}, **published} for row in rows]
            connection.execute(insert(table), filled)

    def add_missing(self, connection: Connection, table: Table, rows: Iterable[Row]) -> None:
        """Insert those of the rows whose keys are not there; what is there stays as it is."""
        wanted = {_key(table, row): row for row in rows}
        first = next(iter(table.primary_key.columns))
        named = first.in_([key[0] for key in wanted])
        held = {_key(table, row) for row in rows_of(connection, table, named)} if wanted else set()
        self.add(connection, table, [row for key, row in wanted.items() if key not in held])

    def _published(self) -> dict[str, Value]:
        return {
            "published_tag": PUBLISHER,
            "publisher_last_updated_epoch_ms": int(self._clock().timestamp() * 1000),
        }


def rows_of(
    connection: Connection, table: Table, where: sqlalchemy.ColumnElement[bool]
) -> list[dict[str, Value]]:
    """Return the rows that meet a condition, in the order of their keys."""
    query = select(table).where(where).order_by(*table.primary_key.columns)
    return [dict(row) for row in connection.execute(query).mappings()]


def _key(table: Table, row: Row) -> tuple[Value, ...]:
    return tuple(row[column.name] for column in table.primary_key.columns)


def _is(table: Table, key: tuple[Value, ...]) -> sqlalchemy.ColumnElement[bool]:
    pairs = zip(table.primary_key.columns, key, strict=True)
    return and_(*(column == value for column, value in pairs))


def _translated(error: SQLAlchemyError, *, place: str) -> PlatformError:
    """Say what a database error means, without its statement, its values or a password."""
    cause = error.orig if isinstance(error, DBAPIError) else None
    code = cause.args[0] if cause is not None and cause.args else None
    number = code if isinstance(code, int) else 0
    for numbers, kind, what, hint in _MEANINGS:
        if number in numbers:
            return kind(f"{place}: {what}", hint=hint)
    shown = f" (error {number})" if number else ""
    return PlatformError(
        f"{place}: the database failed{shown}: {type(error).__name__}",
        hint="look into the log of the database",
    )


_MEANINGS: Final[tuple[tuple[tuple[int, ...], type[PlatformError], str, str], ...]] = (
    (
        (1044, 1045),
        PlatformAuthError,
        "the database refuses the user or the password",
        "check platform_config.amundsen.database_url and the grants of its user",
    ),
    (
        (1142, 1143, 1227, 1370),
        PlatformAuthError,
        "the user of the database lacks a privilege",
        "to read, grant it SELECT on all tables; to write, INSERT, UPDATE and DELETE as well",
    ),
    (
        (1290, 1836),
        PlatformAuthError,
        "the database is a replica or for reading only",
        "name the database that its metadata service writes to",
    ),
    (
        (1153, 1406),
        PlatformError,
        "the database takes no text of this length",
        "raise max_allowed_packet; check that the tables are those of amundsen-rds 0.0.8",
    ),
    (
        (1049, 1109, 1146),
        PlatformNotFoundError,
        "the database has no tables of Amundsen",
        "name the database that its metadata service uses; `flask rds initdb` makes it",
    ),
    (
        (1054,),
        PlatformVersionError,
        "the tables of Amundsen lack a column, so they are of another version",
        "Lumos knows those of amundsen-rds 0.0.8; bring the database up to it",
    ),
    (
        (1062, 1205, 1213),
        PlatformConflictError,
        "another writer changed the same rows",
        "run again",
    ),
    (
        (2002, 2003, 2005, 2006, 2013),
        PlatformUnavailableError,
        "the database does not answer",
        "check host and port in platform_config.amundsen.database_url",
    ),
    (
        (1267, 1270, 1366),
        PlatformError,
        "the database cannot keep these characters",
        "its character set has to be utf8mb4",
    ),
)
