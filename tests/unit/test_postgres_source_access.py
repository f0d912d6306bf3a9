"""Settings of the PostgreSQL source, and servers that cannot be read: one line each, no secret."""

from __future__ import annotations

import pickle
import socket
import ssl
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from lumos.core.errors import MissingExtraError, SourceError
from lumos.core.settings import InvalidSettingsError
from lumos.feature.ingestion.handlers.factory import HandlerFactory
from lumos.feature.ingestion.handlers.postgres import connection as connecting
from lumos.feature.ingestion.handlers.postgres.handler import PostgreSQLHandler
from lumos.feature.ingestion.handlers.postgres.settings import PostgresSettings
from lumos.feature.ingestion.records import PreviousScan, ScanUnit
from ports import closed_port
from postgres_source import database_of, run_sql, scanned, source_of, url_with
from tls_servers import FAULTS, Authority

SECRET = "hunter2-very-secret"


def refused(url: str, **settings: Any) -> SourceError:
    """Return the error of a source that cannot be planned; it is one line and holds no secret."""
    handler = source_of(url, **settings)
    with pytest.raises(SourceError) as raised:
        list(handler.plan(PreviousScan()))
    error = raised.value
    assert error.message.startswith("source 'shop': database '")
    assert "\n" not in error.message
    assert error.hint
    assert SECRET not in f"{error.message} {error.hint} {error!r} {handler.settings!r}"
    assert error.__cause__ is None
    assert error.__context__ is None or error.__suppress_context__
    return error


def test_a_wrong_password_is_told(postgres_database_url: str) -> None:
    error = refused(url_with(postgres_database_url, login=f"lumos:{SECRET}"))
    assert error.message.endswith("the server refused the user or password")
    assert not error.retryable


def test_a_missing_password_is_told(
    postgres_database_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "none"))
    error = refused(url_with(postgres_database_url, login="lumos"))
    assert "asks for a password" in error.message


def test_an_unknown_database_is_told(postgres_database_url: str) -> None:
    error = refused(url_with(postgres_database_url, database="no_such_database"))
    assert error.message.endswith("there is no such database")
    assert "'no_such_database'" in error.message


def test_a_role_that_may_not_connect_is_told(postgres_database_url: str) -> None:
    database = database_of(postgres_database_url)
    role = f"stranger_{database}"
    run_sql(
        postgres_database_url,
        f"CREATE ROLE {role} LOGIN PASSWORD '{SECRET}'",
        f"REVOKE CONNECT ON DATABASE {database} FROM PUBLIC",
    )
    try:
        error = refused(url_with(postgres_database_url, login=f"{role}:{SECRET}"))
    finally:
        run_sql(postgres_database_url, f"DROP ROLE {role}")
    assert error.message.endswith("the user may not connect to this database")


def test_a_server_that_does_not_run_is_told() -> None:
    error = refused(f"postgresql://lumos:{SECRET}@127.0.0.1:{closed_port()}/shop")
    assert error.message.endswith("no server listens there")
    assert error.retryable


def test_an_unknown_host_is_told() -> None:
    error = refused(f"postgresql://lumos:{SECRET}@no-such-host.invalid/shop")
    assert error.message.endswith("no server of that name is known")


def test_a_server_that_never_answers_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        error = refused(
            f"postgresql://lumos:{SECRET}@127.0.0.1:{port}/shop", connect_timeout_seconds=1
        )
    assert error.message.endswith("the server does not answer")
    assert error.retryable


def test_a_server_without_tls_is_told(postgres_database_url: str) -> None:
    error = refused(postgres_database_url, sslmode="require")
    assert error.message.endswith("the server does not speak TLS")


@contextmanager
def server_with(certificate: Path) -> Iterator[int]:
    """Serve the beginning of PostgreSQL's protocol: its way to TLS, with this certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def accept(listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                with client, suppress(OSError):
                    client.settimeout(60)
                    client.recv(8)
                    client.sendall(b"S")
                    context.wrap_socket(client, server_side=True).close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=accept, args=(listener,))
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
    thread.join()


@pytest.mark.parametrize("fault", FAULTS)
def test_a_certificate_that_is_not_accepted_is_told(tmp_path: Path, fault: str) -> None:
    authority = Authority(tmp_path)
    with server_with(authority.certificate(fault)) as port:
        error = refused(
            f"postgresql://lumos:{SECRET}@localhost:{port}/shop?hostaddr=127.0.0.1"
            "&gssencmode=disable",
            sslmode="verify-full",
            sslrootcert=str(authority.file),
        )
    # libpq tells no more than this, unless the name is wrong.
    unknown = "its certificate is not accepted"
    assert error.message.endswith(FAULTS[fault] if fault == "wrong name" else unknown)
    assert "certificate" in str(error.hint)
    assert not error.retryable


def test_a_missing_file_of_authorities_is_told(tmp_path: Path) -> None:
    with server_with(Authority(tmp_path).certificate(None)) as port:
        error = refused(
            f"postgresql://lumos:{SECRET}@127.0.0.1:{port}/shop?gssencmode=disable",
            sslmode="verify-full",
            sslrootcert=str(tmp_path / "none.pem"),
        )
    assert "no file of certificate authorities" in error.message
    assert error.hint == "name one with sslrootcert"


def test_a_server_of_an_old_version_is_told(
    postgres_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No old server is at hand: the one that there is counts as one.
    monkeypatch.setattr(connecting, "OLDEST_SERVER", 990_000)
    assert refused(postgres_database_url).message.endswith("is of a version before 12")


def test_a_schema_that_is_not_there_is_an_error_and_no_removal(postgres_database_url: str) -> None:
    error = refused(postgres_database_url, schemas=["public", "slaes"])
    assert error.message.endswith("has no schema that fits 'slaes'")


def test_a_scan_that_takes_too_long_ends(postgres_database_url: str) -> None:
    run_sql(
        postgres_database_url,
        "; ".join(f"CREATE TABLE t{n} (a int DEFAULT 1, b int, c int)" for n in range(300)),
    )
    with pytest.raises(SourceError, match="longer than timeout_seconds") as raised:
        scanned(source_of(postgres_database_url, timeout_seconds=0.001))
    assert raised.value.retryable


def test_a_server_that_goes_away_while_reading_is_told(postgres_database_url: str) -> None:
    run_sql(
        postgres_database_url,
        "; ".join(f"CREATE TABLE t{n} (a text DEFAULT '{'x' * 3000}')" for n in range(2000)),
    )
    records = source_of(postgres_database_url).scan(ScanUnit("shop"))
    next(records)
    run_sql(
        postgres_database_url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'lumos' "
        "AND datname = current_database()",
    )
    with pytest.raises(SourceError, match="the connection was lost") as raised:
        list(records)
    assert raised.value.retryable


def test_a_missing_driver_is_told_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    handler = source_of(f"postgresql://lumos:{SECRET}@127.0.0.1/shop")
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtraError) as raised:
        list(handler.plan(PreviousScan()))
    assert raised.value.hint == "install it with: pip install 'lumos[postgres]'"
    assert next(iter(handler.claims())).server == "127.0.0.1:5432"


def test_single_settings_reach_the_same_server_as_a_url(postgres_database_url: str) -> None:
    run_sql(postgres_database_url, "CREATE TABLE t (id int)")
    parts = psycopg.conninfo.conninfo_to_dict(postgres_database_url)
    handler = HandlerFactory.get_handler(
        {
            "type": "postgres",
            "name": "shop",
            "host": str(parts["host"]),
            "port": int(str(parts["port"])),
            "database": str(parts["dbname"]),
            "user": str(parts["user"]),
            "password": str(parts["password"]),
        }
    )
    assert isinstance(handler, PostgreSQLHandler)
    by_url = source_of(postgres_database_url)
    assert tuple(handler.claims()) == tuple(by_url.claims())
    assert list(handler.scan(ScanUnit("x"))) == list(by_url.scan(ScanUnit("x")))


@pytest.mark.parametrize(
    ("url", "server", "database"),
    [
        ("postgres://u:p@DB.example:6000/shop", "db.example:6000", "shop"),
        ("postgresql+psycopg://db/my%20shop", "db:5432", "my shop"),
        ("postgresql://u@[::1]:5433/shop", "[::1]:5433", "shop"),
        ("postgresql:///shop?host=/run/pg", "/run/pg:5432", "shop"),
        ("postgresql://a,b:6000/shop?sslmode=require", "a:5432,b:6000", "shop"),
        ("postgresql://u:p%40%2F%3A@db?dbname=shop", "db:5432", "shop"),
    ],
)
def test_server_and_database_are_read_from_a_url(url: str, server: str, database: str) -> None:
    assert source_of(url).settings.server == (server, database)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"host": "db"},
        {"url": f"postgresql://u:{SECRET}@db"},
        {"url": f"postgresql://u:{SECRET}@db/"},
        {"url": f"mysql://u:{SECRET}@db/shop"},
        {"url": f"postgresql://u:x/{SECRET}@db/shop"},
        {"url": f"postgresql://u:12/{SECRET}@db/shop"},
        {"url": f"postgresql://u:12#{SECRET}@db/shop"},
        {"url": f"postgresql://u:12?{SECRET}@db/shop"},
        {"url": f"postgresql://u:[{SECRET}@db/shop"},
        {"url": f"postgresql://u:{SECRET}@db/shop", "database": "shop"},
        {"url": f"postgresql://u:{SECRET}@db/shop", "password": SECRET},
        {"database": "shop", "password": [SECRET]},
        {"database": "shop", "port": SECRET},
        {"database": "shop", "sslmode": SECRET},
    ],
)
def test_wrong_settings_are_refused_and_never_echoed(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidSettingsError) as raised:
        HandlerFactory.get_handler({"type": "postgres", "name": "shop", **settings})
    error = raised.value
    assert SECRET not in " ".join([str(error), repr(error), *error.lines(), str(error.hint)])


@pytest.mark.parametrize(
    "url", [f"postgresql://u:%zz{SECRET}@db/shop", f"postgresql://db/shop?passwort={SECRET}"]
)
def test_a_url_that_libpq_does_not_take_is_refused_without_echo(url: str) -> None:
    assert refused(url).message.endswith("libpq does not accept the settings")


def test_a_timeout_longer_than_the_server_knows_is_no_error(postgres_database_url: str) -> None:
    scanned(source_of(postgres_database_url, timeout_seconds=1e12))


def test_secrets_are_in_no_text_form_of_settings() -> None:
    settings = PostgresSettings.model_validate(
        {"type": "postgres", "name": "shop", "database": "d", "password": SECRET}
    )
    assert SECRET not in f"{settings!r} {settings} {settings.model_dump()} "
    with pytest.raises(TypeError, match="must not be pickled"):
        pickle.dumps(settings)
