"""Which PostgreSQL database to read, how to reach it, and which of its schemas."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal, NamedTuple, Self
from urllib.parse import parse_qs, unquote, urlsplit

from pydantic import Field, SecretStr, model_validator

from lumos.feature.ingestion.handlers.base_ingestion_handler import RecordSourceSettings

DEFAULT_PORT = 5432
_SCHEME = re.compile(r"postgres(?:ql)?(?:\+psycopg)?://")
_HOST_AND_PORT = re.compile(r"(\[[^\]@]*\]|[^:@\[\]]*)(?::(\d*))?")
_SYSTEM_SCHEMAS = ("pg_catalog", "information_schema")
_NEVER_READ = ("pg_toast", "pg_temp_", "pg_toast_temp_")
_URL_SHAPE = (
    "url does not look like postgresql://USER:PASSWORD@HOST:5432/DATABASE; "
    "characters such as / ? # @ % in a user or password are percent-encoded"
)


class Server(NamedTuple):
    """Where a database is, without credentials."""

    address: str
    """`host:port`, or several of them with commas between."""
    database: str


class PostgresSettings(RecordSourceSettings):
    """Which database to read and how to reach it."""

    url: SecretStr | None = Field(
        default=None,
        description="`postgresql://USER:PASSWORD@HOST:5432/DATABASE`, with any option of libpq "
        "behind a `?`; in place of host, port, database, user and password.",
    )
    host: str | None = Field(
        default=None, min_length=1, description="The server, or the folder of its socket."
    )
    port: int | None = Field(default=None, ge=1, le=65535, description="Without, 5432.")
    database: str | None = Field(default=None, min_length=1, description="The database to read.")
    user: str | None = Field(default=None, min_length=1, description="Needs CONNECT, no more.")
    password: SecretStr | None = Field(
        default=None, description="Without, libpq looks into PGPASSWORD and .pgpass."
    )
    sslmode: Literal["disable", "allow", "prefer", "require", "verify-ca", "verify-full"] | None = (
        Field(default=None, description="As libpq has it; verify-full checks the server's name.")
    )
    sslrootcert: Path | None = Field(
        default=None, description="A file with the authorities to trust."
    )
    connect_timeout_seconds: int = Field(
        default=10, ge=1, description="How long to wait for a server that does not answer."
    )
    schemas: tuple[str, ...] = Field(
        default=(),
        description="Schemas to read, such as `sales` or `sales_*`. Without, all but those of "
        "the system.",
    )
    exclude: tuple[str, ...] = Field(
        default=(), description="Schemas or tables to leave out: `tmp_*`, `sales.audit_*`."
    )

    @model_validator(mode="after")
    def _one_way_to_the_server(self) -> Self:
        parts = (self.host, self.port, self.database, self.user, self.password)
        if self.url is not None:
            if any(part is not None for part in parts):
                raise ValueError("give either url, or host, port, database, user and password")
            _server_of(self.url.get_secret_value())
        elif self.database is None:
            raise ValueError("give url or database")
        return self

    @property
    def server(self) -> Server:
        """Where the database is, without credentials."""
        if self.url is not None:
            return _server_of(self.url.get_secret_value())
        host, port = self.host or "localhost", self.port or DEFAULT_PORT
        return Server(f"{host.lower()}:{port}", self.database or "")

    def libpq_url(self) -> str:
        """Return the URL as libpq takes it, or nothing where there is none."""
        url = self.url.get_secret_value() if self.url is not None else ""
        return _SCHEME.sub("postgresql://", url, count=1)

    def unmatched(self, schemas: Sequence[str]) -> tuple[str, ...]:
        """Return the patterns of `schemas` that no schema of the database has."""
        return tuple(
            pattern
            for pattern in self.schemas
            if not any(fnmatchcase(schema, pattern) for schema in schemas)
        )

    def reads_schema(self, schema: str) -> bool:
        """Return whether tables of a schema may be read; a system schema only by its full name."""
        if schema.startswith(_NEVER_READ) or _fits(schema, self.exclude):
            return False
        if schema in _SYSTEM_SCHEMAS:
            return schema in self.schemas
        return not self.schemas or _fits(schema, self.schemas)

    def reads_table(self, schema: str, table: str) -> bool:
        """Return whether a table of a schema that is read is not left out."""
        return not _fits(f"{schema}.{table}", self.exclude)


def is_system_schema(schema: str) -> bool:
    """Return whether a schema is the server's own."""
    return schema in _SYSTEM_SCHEMAS or schema.startswith(_NEVER_READ)


def _fits(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _server_of(url: str) -> Server:
    """Read host, port and database from a URL.

    Raises:
        ValueError: it is not the URL of a database. Nothing of it is echoed: in a URL that is
            not well encoded, a part of the password may look like a host or database.
    """
    if not _SCHEME.match(url):
        raise ValueError(_URL_SHAPE)
    try:
        parts = urlsplit(url)
        options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    except ValueError:
        raise ValueError(_URL_SHAPE) from None
    path = parts.path.removeprefix("/")
    hosts = parts.netloc.rpartition("@")[2].split(",")
    places = [_HOST_AND_PORT.fullmatch(host) for host in hosts]
    if "/" in path or "@" in path or parts.fragment or None in places:
        raise ValueError(_URL_SHAPE)
    database = options.get("dbname") or unquote(path)
    if not database:
        raise ValueError("url names no database")
    named = [
        _address(place[1] or options.get("host", ""), place[2] or options.get("port", ""))
        for place in places
        if place is not None
    ]
    return Server(",".join(named), database)


def _address(host: str, port: str) -> str:
    return f"{unquote(host).lower() or 'localhost'}:{port or DEFAULT_PORT}"
