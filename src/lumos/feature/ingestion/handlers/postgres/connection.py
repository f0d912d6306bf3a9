"""One read-only transaction of a PostgreSQL server, and its failures in one line each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lumos.core.certificates import certificate_problem
from lumos.core.errors import LumosError, MissingExtraError, SourceError
from lumos.feature.ingestion.records import printable

if TYPE_CHECKING:
    import psycopg

    from lumos.feature.ingestion.handlers.postgres.settings import PostgresSettings

OLDEST_SERVER: Final = 120_000
LOCK_SECONDS: Final = 5
"""How long to wait for a table that another session has locked against all others."""
_LONGEST_TIMEOUT: Final = 2**31 - 1
_KEEPALIVES: Final = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
_BEGIN: Final = """
SELECT set_config('statement_timeout', %(statement)s, true),
       set_config('lock_timeout', %(lock)s, true),
       set_config('search_path', 'pg_catalog, pg_temp', true),
       set_config('client_encoding', CASE current_setting('server_encoding')
                  WHEN 'SQL_ASCII' THEN 'SQL_ASCII' ELSE 'UTF8' END, true),
       set_config('datestyle', 'ISO', true),
       set_config('timezone', 'UTC', true),
       set_config('intervalstyle', 'iso_8601', true),
       set_config('max_parallel_workers_per_gather', '0', true),
       set_config('jit', 'off', true)
"""


class _Refusal(NamedTuple):
    said: re.Pattern[str]
    reason: str
    hint: str
    retryable: bool = False


# The driver's own text may repeat what the URL held; only these fixed words are passed on.
_REFUSALS: Final = (
    _Refusal(
        re.compile(r"password authentication failed|authentication failed for user"),
        "the server refused the user or password",
        "check user and password of the source",
    ),
    _Refusal(
        re.compile(r"no password supplied"),
        "the server asks for a password and the settings have none",
        "set password, or PGPASSWORD where Lumos runs",
    ),
    _Refusal(
        re.compile(r"server certificate for .* does not match host name"),
        "its certificate is for another name",
        "give the host by the name that the certificate is for",
    ),
    _Refusal(
        re.compile(r"root certificate file .* does not exist"),
        "no file of certificate authorities to check its certificate with",
        "name one with sslrootcert",
    ),
    _Refusal(
        re.compile(r"does not support SSL|server does not support TLS"),
        "the server does not speak TLS",
        "let TLS be switched on there, or set sslmode: prefer",
    ),
    _Refusal(
        re.compile(r"database .* does not exist"),
        "there is no such database",
        "check database of the source; psql -l lists those of a server",
    ),
    _Refusal(
        re.compile(r"role .* does not exist"), "there is no such user", "check user of the source"
    ),
    _Refusal(
        re.compile(r"permission denied for database|no CONNECT privilege"),
        "the user may not connect to this database",
        "let an administrator run: GRANT CONNECT ON DATABASE ... TO ...",
    ),
    _Refusal(
        re.compile(r"no pg_hba\.conf entry|pg_hba\.conf rejects"),
        "the server accepts no connection of this user, machine, database and encryption",
        "let an administrator add a line to pg_hba.conf, or set sslmode: require",
    ),
    _Refusal(
        re.compile(r"too many (?:clients|connections)|remaining connection slots"),
        "the server has no free connection",
        "try again later",
        retryable=True,
    ),
    _Refusal(
        re.compile(r"is (?:starting up|shutting down)|in recovery mode|not yet accepting"),
        "the server is starting or stopping",
        "try again later",
        retryable=True,
    ),
    _Refusal(
        re.compile(
            r"could not translate host name|failed to resolve host|Name or service not known"
            r"|nodename nor servname|No address associated"
        ),
        "no server of that name is known",
        "check host of the source",
        retryable=True,
    ),
    _Refusal(
        re.compile(r"Connection refused|No such file or directory|No route to host"),
        "no server listens there",
        "check host and port of the source and that the server runs",
        retryable=True,
    ),
    _Refusal(
        re.compile(r"timeout expired|timed out"),
        "the server does not answer",
        "check host and port of the source and that no firewall is between",
        retryable=True,
    ),
)
_OTHER_REFUSAL: Final = _Refusal(
    re.compile(""),
    "the server did not let us in",
    "try the same settings with psql, which shows what the server says",
    retryable=True,
)
_LOST_CONNECTION: Final = ("08", "57P")
_FAILURES: Final = {
    "57014": (
        "a query was cancelled, or took longer than timeout_seconds",
        "raise timeout_seconds, or read fewer schemas at once",
    ),
    "42501": (
        "the user may not read the system catalog",
        "let the user read pg_catalog, as everybody may by default",
    ),
    "55P03": (
        "another session holds a lock that queries of the catalog wait for",
        "try again when its change of tables is done",
    ),
    "22P05": (
        "a name has characters that UTF-8 does not have",
        "leave the schema of it out with: exclude",
    ),
}
_WORTH_ANOTHER_TRY: Final = frozenset({"57014", "55P03", "53300", "40001", "40P01"})


@contextmanager
def read_only_transaction(settings: PostgresSettings) -> Iterator[psycopg.Connection[Any]]:
    """Open one transaction that sees one moment of the database and can write nothing.

    Everything is set for the transaction alone, so that a pooler may sit in between.

    Raises:
        MissingExtraError: the driver is not installed.
        SourceError: the server is not there, does not let us in, is too old, or failed later.
    """
    psycopg = _driver()
    with _connected(settings) as connection:
        try:
            if connection.info.server_version < OLDEST_SERVER:
                raise SourceError(
                    f"{server_of_settings(settings)} is of a version before 12",
                    hint="upgrade the server: versions before 12 are no longer maintained",
                )
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            limits = {
                "statement": f"{_milliseconds(settings.timeout_seconds)}ms",
                "lock": f"{LOCK_SECONDS}s",
            }
            connection.execute(_BEGIN, limits)
            yield connection
        except psycopg.Error as error:
            raise _failed(settings, error) from error


def _milliseconds(seconds: float) -> int:
    """Return a limit that the server takes; 0 would be none."""
    return round(min(max(seconds * 1000, 1), _LONGEST_TIMEOUT))


def server_of_settings(settings: PostgresSettings) -> str:
    """Return what errors call the source."""
    server = settings.server
    return f"source '{settings.name}': database '{printable(server.database)}' at {server.address}"


@contextmanager
def _connected(settings: PostgresSettings) -> Iterator[psycopg.Connection[Any]]:
    psycopg = _driver()
    try:
        address = psycopg.conninfo.make_conninfo(settings.libpq_url(), **_options(settings))
    except (psycopg.Error, UnicodeError):
        raise SourceError(
            f"{server_of_settings(settings)}: libpq does not accept the settings",
            hint="check the options behind the ? of url, and that % stands before two digits only",
        ) from None
    try:
        connection = psycopg.connect(address, prepare_threshold=None)
    except (psycopg.Error, UnicodeError, ValueError) as error:
        raise _refused(settings, str(error)) from None
    try:
        yield connection
    finally:
        connection.close()


def _options(settings: PostgresSettings) -> dict[str, Any]:
    given: dict[str, Any] = {
        "host": settings.host,
        "port": settings.port,
        "dbname": settings.database,
        "user": settings.user,
        "password": settings.password.get_secret_value() if settings.password else None,
        "sslmode": settings.sslmode,
        "sslrootcert": settings.sslrootcert,
    }
    if settings.url is None:
        given["host"] = settings.host or "localhost"
    options = {name: str(value) for name, value in given.items() if value is not None}
    return {
        "connect_timeout": settings.connect_timeout_seconds,
        "application_name": "lumos",
        **_KEEPALIVES,
        **options,
    }


def _refused(settings: PostgresSettings, said: str) -> SourceError:
    problem = certificate_problem(said, authority="sslrootcert")
    if problem is not None:
        return SourceError(f"{server_of_settings(settings)}: {problem.reason}", hint=problem.hint)
    refusal = next((each for each in _REFUSALS if each.said.search(said)), _OTHER_REFUSAL)
    return SourceError(
        f"{server_of_settings(settings)}: {refusal.reason}",
        hint=refusal.hint,
        retryable=refusal.retryable,
    )


def _failed(settings: PostgresSettings, error: psycopg.Error) -> LumosError:
    state = error.sqlstate or ""
    if not state or (state.startswith(_LOST_CONNECTION) and state not in _FAILURES):
        return SourceError(
            f"{server_of_settings(settings)}: the connection was lost",
            hint="check that the server runs, then try again",
            retryable=True,
        )
    reason, hint = _FAILURES.get(
        state, (f"a query of the catalog failed (SQLSTATE {state})", "run with --debug for more")
    )
    return SourceError(
        f"{server_of_settings(settings)}: {reason}",
        hint=hint,
        retryable=state in _WORTH_ANOTHER_TRY,
    )


def _driver() -> Any:
    try:
        import psycopg
    except ImportError:
        raise MissingExtraError(
            "a source of type postgres needs the package psycopg",
            hint="install it with: pip install 'lumos[postgres]'",
        ) from None
    return psycopg
