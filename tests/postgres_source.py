"""What tests of the PostgreSQL source share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg

from lumos.core.models import LineageEdge, LumosDataset
from lumos.feature.ingestion.handlers.factory import HandlerFactory
from lumos.feature.ingestion.handlers.postgres.handler import PostgreSQLHandler
from lumos.feature.ingestion.records import PreviousScan, ScannedScope, UnreadableItem


@dataclass
class Scanned:
    """What a scan of all units gave."""

    datasets: dict[str, LumosDataset] = field(default_factory=dict)
    """By `schema.table`."""
    edges: set[tuple[str, str]] = field(default_factory=set)
    """By the names of both ends."""
    unreadable: list[UnreadableItem] = field(default_factory=list)
    scopes: list[str] = field(default_factory=list)
    records: list[object] = field(default_factory=list)


def run_sql(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def source_of(url: str, **settings: Any) -> PostgreSQLHandler:
    handler = HandlerFactory.get_handler(
        {"type": "postgres", "name": "shop", "url": url, **settings}
    )
    assert isinstance(handler, PostgreSQLHandler)
    return handler


def scanned(handler: PostgreSQLHandler) -> Scanned:
    found = Scanned()
    for unit in handler.plan(PreviousScan()):
        for record in handler.scan(unit):
            found.records.append(record)
            match record:
                case LumosDataset():
                    found.datasets[f"{record.namespace}.{record.name}"] = record
                case LineageEdge():
                    found.edges.add((record.upstream_urn.name, record.downstream_urn.name))
                case UnreadableItem():
                    found.unreadable.append(record)
                case ScannedScope():
                    found.scopes.append(record.urn_prefix)
    return found


def scanned_after(url: str, *statements: str, **settings: Any) -> Scanned:
    """Return what a scan gives once the statements have run."""
    run_sql(url, *statements)
    return scanned(source_of(url, **settings))


def database_of(url: str) -> str:
    return urlsplit(url).path.removeprefix("/")


def url_with(url: str, *, database: str | None = None, login: str | None = None) -> str:
    """Return the URL of another database, or with another `user:password`."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    netloc = f"{login}@{host}" if login else parts.netloc
    path = f"/{database}" if database else parts.path
    return urlunsplit(parts._replace(netloc=netloc, path=path))


def schema_json(dataset: LumosDataset) -> Mapping[str, Any]:
    return dataset.schema.to_json()
