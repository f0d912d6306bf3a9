"""The connection to Snowflake, and what its errors mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from lumos.core.errors import (
    MissingExtraError,
    PlatformAuthError,
    PlatformConflictError,
    PlatformError,
    PlatformForbiddenError,
    PlatformLimitError,
    PlatformNotFoundError,
    PlatformUnavailableError,
)

if TYPE_CHECKING:
    from lumos.core.platform.impl.snowflake.settings import SnowflakeSettings

_SESSION_GONE = (390_110, 390_111, 390_112, 390_113, 390_114, 390_115)
_LOGIN = range(390_000, 400_000)
_UNAUTHORIZED = 290_401
_REFUSED_LOGIN = 250_001
_NETWORK = (*range(250_002, 250_011), *range(290_500, 290_600), 251_005, 251_012, 290_429)
_BY_TOKEN = "PROGRAMMATIC_ACCESS_TOKEN"  # noqa: S105 - the name of a way to log in
Row = tuple[object, ...]
T = TypeVar("T")


class _Cursor(Protocol):
    """What is used of a cursor of DB-API."""

    @property
    def description(self) -> Sequence[Sequence[object]] | None: ...

    def execute(self, command: str, /) -> object: ...

    def fetchall(self) -> Sequence[Sequence[object]]: ...

    def close(self) -> object: ...


class _Connection(Protocol):
    """What is used of a connection of DB-API."""

    def cursor(self) -> _Cursor: ...

    def close(self) -> None: ...


class SnowflakeSession:
    """Runs statements; connects when the first one is run, and again after a lost connection."""

    def __init__(self, connect: Callable[[], _Connection], *, place: str = "snowflake") -> None:
        """Get ready; nothing is sent yet.

        Args:
            connect: makes a connection.
            place: what messages call the account.
        """
        self._connect = connect
        self._place = place
        self._connection: _Connection | None = None
        self._closed = False

    def rows(self, statement: str) -> list[Row]:
        """Return what a statement gives.

        Raises:
            PlatformError: Snowflake is out of reach or refuses.
        """
        return self._executed(statement, _rows)

    def named_rows(self, statement: str) -> list[dict[str, object]]:
        """Return what a statement gives, each value by the lower-case name of its column.

        Raises:
            PlatformError: Snowflake is out of reach or refuses.
        """

        def named(cursor: _Cursor) -> list[dict[str, object]]:
            names = [str(column[0]).lower() for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in _rows(cursor)]

        return self._executed(statement, named)

    def run(self, statement: str) -> None:
        """Run a statement that changes something.

        Raises:
            PlatformError: Snowflake is out of reach or refuses.
        """
        self._executed(statement, lambda _: None)

    def close(self) -> None:
        """Let go of the connection; no statement runs afterwards."""
        self._closed = True
        self._drop()

    def _executed(self, statement: str, taken: Callable[[_Cursor], T]) -> T:
        if self._closed:
            raise PlatformUnavailableError(f"{self._place}: the connection was closed")
        errors = driver_errors()
        had_session = self._connection is not None
        try:
            return self._once(statement, taken)
        except errors as error:
            failure = error
        if had_session and getattr(failure, "errno", None) in _SESSION_GONE:
            self._drop()  # after hours without a statement; this one was not run
            try:
                return self._once(statement, taken)
            except errors as error:
                failure = error
        told = translated(failure, place=self._place)
        if told.retryable or type(told) is PlatformAuthError:
            self._drop()
        raise told from None

    def _once(self, statement: str, taken: Callable[[_Cursor], T]) -> T:
        if self._connection is None:
            self._connection = self._connect()
        cursor = self._connection.cursor()
        try:
            cursor.execute(statement)
            return taken(cursor)
        finally:
            cursor.close()

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.close()
            except driver_errors():
                return  # it was lost already


def _rows(cursor: _Cursor) -> list[Row]:
    return [tuple(row) for row in cursor.fetchall() or ()]


def driver_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions that Snowflake's connector may raise.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        from snowflake.connector.errors import Error
    except ModuleNotFoundError:
        raise MissingExtraError(
            "the platform snowflake needs the package snowflake-connector-python",
            hint="install it with: pip install 'lumos[snowflake]'",
        ) from None
    return (Error, OSError)


def connector(settings: SnowflakeSettings) -> Callable[[], _Connection]:
    """Return what connects to the account of the settings.

    Raises:
        MissingExtraError: the connector is not installed.
    """
    driver_errors()

    def connect() -> _Connection:
        import snowflake.connector

        try:
            connection: _Connection = snowflake.connector.connect(**connect_arguments(settings))
        except (ValueError, TypeError):
            raise PlatformAuthError(
                f"{place_of(settings)}: the private key or its passphrase cannot be used",
                hint="check platform_config.snowflake.private_key_file",
            ) from None
        return connection

    return connect


def place_of(settings: SnowflakeSettings) -> str:
    """Return for messages which account, or which other host, is meant."""
    return f"snowflake at {settings.host or settings.account}"


def connect_arguments(settings: SnowflakeSettings) -> dict[str, object]:
    """Return the arguments of the connector; they hold secrets."""
    secrets = {
        "password": settings.password,
        "token": settings.token,
        "private_key_file_pwd": settings.private_key_passphrase,
    }
    given = {
        "account": settings.account,
        "user": settings.user,
        "authenticator": settings.authenticator or (_BY_TOKEN if settings.token else None),
        "private_key_file": settings.private_key_file,
        "role": settings.role,
        "warehouse": settings.warehouse,
        "host": settings.host,
        "port": settings.port,
        "protocol": settings.protocol,
        **{name: value and value.get_secret_value() for name, value in secrets.items()},
    }
    return {
        **{name: value for name, value in given.items() if value is not None},
        "login_timeout": settings.timeout,
        "network_timeout": settings.timeout,
        "application": "Lumos",
        "session_parameters": {"QUERY_TAG": "lumos"},
    }


def translated(error: Exception, *, place: str) -> PlatformError:
    """Say what an error of the connector means, without its text, which may hold the statement."""
    code = getattr(error, "errno", None)
    number = code if isinstance(code, int) else 0
    kind = type(error).__name__
    refused = number == _REFUSED_LOGIN and kind != "OperationalError"
    if refused or number in _LOGIN or number == _UNAUTHORIZED:
        return PlatformAuthError(
            f"{place}: Snowflake refuses the login",
            hint="check the login in platform_config.snowflake",
        )
    if kind == "ForbiddenError":  # of HTTP, before anybody looks at a statement
        return PlatformAuthError(
            f"{place}: Snowflake does not let anybody in from here",
            hint="check the account, and the network policies of Snowflake",
        )
    for codes, error_type, what, hint in _MEANINGS:
        if number in codes:
            return error_type(f"{place}: {what}", hint=hint)
    if number in _NETWORK or kind == "OperationalError" or isinstance(error, OSError):
        return PlatformUnavailableError(
            f"{place}: Snowflake does not answer",
            hint="check the account, the host and the network",
        )
    shown = f"error {number}" if number else kind
    return PlatformError(
        f"{place}: Snowflake refused a statement of Lumos ({shown})",
        hint="look for it in the query history of Snowflake, by the tag lumos",
    )


_MEANINGS: Final[tuple[tuple[tuple[int, ...], type[PlatformError], str, str | None], ...]] = (
    (
        (3001, 3003, 3540),
        PlatformForbiddenError,
        "the role of Lumos lacks a privilege in Snowflake",
        "docs/how-to/snowflake.md lists the grants that it needs",
    ),
    (
        (290_404, 290_403),
        PlatformNotFoundError,
        "there is no such account of Snowflake",
        "write platform_config.snowflake.account as ORGANISATION-ACCOUNT",
    ),
    (
        (2003, 2043),
        PlatformNotFoundError,
        "Snowflake has no such object, or the role of Lumos may not see it",
        "check databases and stash_schema, spelt as Snowflake stores them, and the grants",
    ),
    (
        (90_030,),
        PlatformLimitError,
        "INFORMATION_SCHEMA holds more than Snowflake gives at once",
        "name fewer databases, or a role that sees fewer tables",
    ),
    (
        (2,),
        PlatformError,
        "this edition of Snowflake lacks a feature",
        "tags need the Enterprise edition; without it set use_tags: false",
    ),
    (
        (606, 57014),
        PlatformError,
        "Snowflake has no warehouse to run a statement",
        "name one in platform_config.snowflake.warehouse",
    ),
    (
        (625, 639),
        PlatformConflictError,
        "another writer holds what Lumos wants to write in Snowflake",
        None,
    ),
)
"""What the codes of Snowflake mean, by kind of error."""
