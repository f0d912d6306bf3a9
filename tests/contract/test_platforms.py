"""Every platform adapter passes the shipped contract."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from hypothesis import strategies as st
from typing_extensions import override

import strategies
from doubles.amundsen_database import amundsen_over, sqlite_engine
from doubles.atlas_server import AtlasServer, atlas_at
from doubles.datahub_server import DataHubDouble, datahub_double
from doubles.openmetadata_server import openmetadata_at, openmetadata_server
from doubles.snowflake_account import SnowflakeAccount, snowflake_over
from lumos.core.models import DatasetLineage, LumosDataset, with_parts
from lumos.core.platform.factory import PlatformFactory
from lumos.core.platform.http import RetryPolicy
from lumos.core.platform.impl.amundsen.handler import AmundsenHandler
from lumos.core.platform.impl.atlas.handler import AtlasHandler
from lumos.core.platform.impl.datahub.handler import DataHubHandler
from lumos.core.platform.impl.datahub.settings import DataHubSettings
from lumos.core.platform.impl.embedded_handler import EmbeddedHandler
from lumos.core.platform.impl.openmetadata.handler import OpenMetadataHandler
from lumos.core.platform.impl.snowflake.handler import SnowflakeHandler
from lumos.core.platform.interface import MetadataPlatformInterface
from lumos.core.store.database import StateDatabase
from lumos.testing.platform_contract import PlatformContract
from lumos.testing.platform_samples import HOSTILE_QUERIES, dataset

FULL_SIZE = os.environ.get("LUMOS_TEST_FULL") == "1"


class EmbeddedContract(PlatformContract):
    """The embedded catalog keeps every part that a model can have."""

    @override
    def any_dataset(self) -> st.SearchStrategy[LumosDataset]:
        return strategies.datasets().map(lambda one: with_parts(one, lineage=DatasetLineage()))


class TestAmundsenOnSqlite(PlatformContract):
    """On a double of its database; the service tests do the same on the real one."""

    @pytest.fixture
    @override
    def platform(self, tmp_path: Path) -> Iterator[AmundsenHandler]:
        with amundsen_over(sqlite_engine(tmp_path / "amundsen.db")) as platform:
            yield platform


@pytest.fixture(scope="module")
def atlas_server() -> Iterator[AtlasServer]:
    with AtlasServer() as server:
        yield server


class TestAtlas(EmbeddedContract):
    """On a double of the server."""

    @pytest.fixture
    @override
    def platform(self, atlas_server: AtlasServer) -> Iterator[AtlasHandler]:
        atlas_server.reset()
        with atlas_at(atlas_server) as platform:
            yield platform

    @pytest.fixture
    @override
    def broken_platform(self) -> Iterator[AtlasHandler]:
        with AtlasServer() as server, atlas_at(server) as platform:
            platform.emit_dataset(dataset())
            server.stop()
            yield platform


class TestEmbeddedOnSqlite(EmbeddedContract):
    @pytest.fixture
    @override
    def platform(self, tmp_path: Path) -> Iterator[EmbeddedHandler]:
        with EmbeddedHandler(StateDatabase.open(tmp_path / "lumos.db")) as platform:
            yield platform


@pytest.fixture(scope="module")
def shared_database_url(postgres_url: str) -> Iterator[str]:
    """One database for all tests of this module: making 140 of them takes most of a minute."""
    url = urlunsplit(urlsplit(postgres_url)._replace(path="/platform_contract"))
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE platform_contract")
    StateDatabase.open(url).close()
    yield url
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("DROP DATABASE platform_contract WITH (FORCE)")


class TestEmbeddedOnPostgres(EmbeddedContract):
    @pytest.fixture
    @override
    def platform(self, shared_database_url: str) -> Iterator[EmbeddedHandler]:
        with psycopg.connect(shared_database_url, autocommit=True) as connection:
            connection.execute(
                "TRUNCATE datasets, dataset_labels, search_index, lineage_edges, entities, "
                "identity_map, versions, changes, runs"
            )
        with EmbeddedHandler(StateDatabase.open(shared_database_url)) as platform:
            yield platform

    def test_it_connects_again_after_the_server_dropped_the_connection(
        self, platform: EmbeddedHandler, shared_database_url: str
    ) -> None:
        platform.emit_dataset(dataset())
        with psycopg.connect(shared_database_url, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        with pytest.raises(Exception, match="was lost") as caught:
            platform.get_dataset(dataset().urn)

        assert caught.value.retryable  # type: ignore[attr-defined]
        assert platform.get_dataset(dataset().urn) == dataset()


@pytest.fixture(scope="module")
def running_datahub() -> Iterator[tuple[str, DataHubDouble]]:
    """One server for all tests of this module."""
    with datahub_double(token="a token of the tests") as running:
        yield running


class TestDataHub(PlatformContract):
    @pytest.fixture
    @override
    def platform(self, running_datahub: tuple[str, DataHubDouble]) -> Iterator[DataHubHandler]:
        url, double = running_datahub
        double.clear()
        config = {"gms_server": url, "token": "a token of the tests"}
        with DataHubHandler.from_config(config) as platform:
            yield platform

    @pytest.fixture
    @override
    def broken_platform(self) -> Iterator[MetadataPlatformInterface]:
        with datahub_double() as (url, _):
            once = RetryPolicy(attempts=1)
            platform = DataHubHandler(DataHubSettings(gms_server=url), retries=once)
            platform.emit_dataset(dataset())
        with platform:
            yield platform

    @override
    def any_dataset(self) -> st.SearchStrategy[LumosDataset]:
        return strategies.datasets().map(lambda one: with_parts(one, lineage=DatasetLineage()))


class TestOpenMetadata(EmbeddedContract):
    """On a double of the server, asked for pages of three; its index has no custom properties."""

    not_indexed = frozenset({"billing", "finance-team", "finance"})

    @pytest.fixture
    @override
    def platform(self) -> Iterator[OpenMetadataHandler]:
        with openmetadata_server() as (url, _), openmetadata_at(url) as platform:
            yield platform

    @pytest.fixture
    @override
    def broken_platform(self) -> Iterator[OpenMetadataHandler]:
        with openmetadata_server() as (url, _):
            platform = openmetadata_at(url, retries=RetryPolicy(attempts=1))
            platform.emit_dataset(dataset())
        with platform:
            yield platform


@pytest.fixture(scope="module")
def snowflake_account() -> SnowflakeAccount:
    """One account for all tests of this module."""
    return SnowflakeAccount()


class TestSnowflake(PlatformContract):
    """On the emulator fakesnow; tests/unit/test_snowflake_platform.py is about its tables."""

    proven_on = "emulator"

    @pytest.fixture
    @override
    def platform(self, snowflake_account: SnowflakeAccount) -> Iterator[SnowflakeHandler]:
        snowflake_account.reset()
        with snowflake_over(snowflake_account) as platform:
            yield platform

    @pytest.mark.parametrize("query", HOSTILE_QUERIES if FULL_SIZE else HOSTILE_QUERIES[::4])
    @override
    def test_no_query_is_an_error_or_harms(
        self, platform: MetadataPlatformInterface, query: str
    ) -> None:
        super().test_no_query_is_an_error_or_harms(platform, query)


CASES = {
    "amundsen": (TestAmundsenOnSqlite,),
    "atlas": (TestAtlas,),
    "datahub": (TestDataHub,),
    "embedded": (TestEmbeddedOnSqlite, TestEmbeddedOnPostgres),
    "openmetadata": (TestOpenMetadata,),
    "snowflake": (TestSnowflake,),
}


def test_every_registered_platform_has_a_contract_case() -> None:
    assert set(PlatformFactory.names()) == set(CASES)
