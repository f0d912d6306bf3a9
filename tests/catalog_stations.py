"""Every catalog that can be run here, as one list: where to connect, and what its server holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

from doubles.amundsen_database import amundsen_over, sqlite_engine
from doubles.atlas_server import AtlasServer, atlas_at
from doubles.datahub_server import datahub_double
from doubles.openmetadata_server import openmetadata_at, openmetadata_server
from doubles.snowflake_account import SnowflakeAccount, snowflake_over
from lumos.core.platform.impl.datahub.handler import DataHubHandler
from lumos.core.platform.impl.embedded_handler import EmbeddedHandler
from lumos.core.platform.interface import MetadataPlatformInterface
from lumos.core.store.database import StateDatabase


class Station(NamedTuple):
    """A running catalog."""

    connect: Callable[[], MetadataPlatformInterface]
    """Opens the adapter, as a new run of Lumos does."""
    census: Callable[[], Counter[str]]
    """Counts what the server holds, by its own kinds."""


@contextmanager
def _embedded(folder: Path) -> Iterator[Station]:
    def connect() -> EmbeddedHandler:
        return EmbeddedHandler(StateDatabase.open(folder / "lumos.db"))

    yield Station(connect, Counter)


@contextmanager
def _datahub(_folder: Path) -> Iterator[Station]:
    with datahub_double() as (url, double):

        def census() -> Counter[str]:
            return Counter(urn.split(":")[2] for urn in double.stored)

        def connect() -> DataHubHandler:
            double.settle()  # a new run begins after the indexes have everything
            return DataHubHandler.from_config({"gms_server": url})

        yield Station(connect, census)


@contextmanager
def _openmetadata(_folder: Path) -> Iterator[Station]:
    with openmetadata_server() as (url, store):

        def census() -> Counter[str]:
            held = {
                kind: sum(not name.startswith("lumos.") for name in entities)  # notes of its own
                for kind, entities in store.entities.items()
            }
            return Counter({**held, "lineage": len(store.edges)})

        yield Station(lambda: openmetadata_at(url), census)


@contextmanager
def _atlas(_folder: Path) -> Iterator[Station]:
    with AtlasServer() as server:

        def census() -> Counter[str]:
            entities = server.store.entities.values()
            held = Counter(str(each["typeName"]) for each in entities)
            return held + Counter(term=len(server.store.terms), type=len(server.store.types))

        yield Station(lambda: atlas_at(server, attempts=6), census)


@contextmanager
def _amundsen(folder: Path) -> Iterator[Station]:
    engine = sqlite_engine(folder / "amundsen.db")
    try:
        yield Station(lambda: amundsen_over(engine), Counter)
    finally:
        engine.dispose()


@contextmanager
def _snowflake(_folder: Path) -> Iterator[Station]:
    account = SnowflakeAccount()
    yield Station(lambda: snowflake_over(account), Counter)


STATIONS: Mapping[str, Callable[[Path], AbstractContextManager[Station]]] = {
    "embedded": _embedded,
    "datahub": _datahub,
    "openmetadata": _openmetadata,
    "atlas": _atlas,
    "amundsen": _amundsen,
    "snowflake": _snowflake,
}
"""In the order of the circle; the last one leads back to the first."""
