"""What the two database engines have in common, and the rows that queries return."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol

if TYPE_CHECKING:
    import sqlalchemy

    from lumos.core.errors import StateError

Dialect = Literal["sqlite", "postgresql"]
SqlValue = str | int | float | bytes | None
Parameters = Mapping[str, SqlValue]


class Cursor(Protocol):
    """What Lumos uses of a DB-API cursor."""

    @property
    def description(self) -> Sequence[Sequence[object]] | None: ...
    @property
    def rowcount(self) -> int: ...
    def fetchall(self) -> list[tuple[SqlValue, ...]]: ...


class Connection(Protocol):
    """What Lumos uses of a DB-API connection, in sqlite3 and psycopg alike."""

    def execute(self, query: str, params: Parameters, /) -> Cursor: ...
    def close(self) -> None: ...


class Engine(ABC):
    """How one kind of database is connected, queried, and its errors translated."""

    dialect: ClassVar[Dialect]
    begin_write: ClassVar[str]
    begin_read: ClassVar[str]
    clock: ClassVar[str]
    """The SQL of the time in seconds that all users of a database share; it decides on leases."""
    driver_errors: tuple[type[Exception], ...]
    place: str
    """Where the database is, in words that hold no secret."""

    @abstractmethod
    def connect(self, *, read_only: bool) -> Connection:
        """Return a new connection on which every statement commits by itself.

        Raises:
            StateError: the database cannot be reached.
        """

    @abstractmethod
    def exists(self) -> bool:
        """Return whether there is a database to open."""

    @abstractmethod
    def statement(self, sql: str) -> str:
        """Return the SQL text with `:name` parameters as the driver spells them."""

    @abstractmethod
    def is_lost(self, connection: Connection) -> bool:
        """Return whether the other side has closed the connection."""

    @abstractmethod
    def in_transaction(self, connection: Connection) -> bool:
        """Return whether a transaction is open; an engine may end one itself when it fails."""

    @abstractmethod
    def is_missing_table(self, error: Exception) -> bool:
        """Return whether a statement failed because a table does not exist."""

    @abstractmethod
    def translated(self, error: Exception) -> StateError:
        """Return what a driver's error means to the user, without secrets or data."""

    def with_damaged_text(
        self, connection: Connection, sql: str, params: Parameters, *, error: Exception
    ) -> tuple[Cursor, list[tuple[SqlValue, ...]]] | None:
        """Run a query again that failed because some bytes are no text; None if that was not it.

        Those bytes come as lone surrogates, which no text that Lumos wrote has.
        """
        return None

    def make_schema(self) -> bool:
        """Make all tables at once, without the time that migrations take.

        False where there are tables already, or where migrations are the only way.
        """
        return False

    @abstractmethod
    def migration_engine(self) -> sqlalchemy.Engine:
        """Return a SQLAlchemy engine whose transactions exclude every other migration."""


class Row:
    """One row of a result, read by column name and expected type."""

    __slots__ = ("_columns", "_values")

    def __init__(self, columns: Mapping[str, int], values: tuple[SqlValue, ...]) -> None:
        self._columns = columns
        self._values = values

    def __getitem__(self, name: str) -> SqlValue:
        return self._values[self._columns[name]]

    @property
    def values(self) -> tuple[SqlValue, ...]:
        """All columns, in the order of the query."""
        return self._values

    def places(self, names: Sequence[str]) -> list[int]:
        """Return where columns are in `values`, of this and all other rows of its query."""
        return [self._columns[name] for name in names]

    def text(self, name: str) -> str:
        """Return a text column that is never null."""
        return str(self[name])

    def optional_text(self, name: str) -> str | None:
        value = self[name]
        return None if value is None else str(value)

    def integer(self, name: str) -> int:
        """Return a whole number that is never null."""
        return int(self[name] or 0)

    def optional_number(self, name: str) -> float | None:
        value = self[name]
        return None if value is None else float(value)
