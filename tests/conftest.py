from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FULL_SIZE = os.environ.get("LUMOS_TEST_FULL") == "1"

settings.register_profile(
    "default",
    deadline=None,
    max_examples=50,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("full", parent=settings.get_profile("default"), max_examples=2_000)
settings.load_profile("full" if FULL_SIZE else "default")

MARKER_OF_FIXTURE = {"spark": "spark", "postgres_url": "postgres"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test by the servers that its fixtures start, before `-m` selects."""
    for item in items:
        for fixture in getattr(item, "fixturenames", ()):
            if marker := MARKER_OF_FIXTURE.get(fixture):
                item.add_marker(marker)


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The URL of a real PostgreSQL server that lives as long as the test run."""
    from postgres_server import running_postgres

    with running_postgres() as url:
        yield url


@pytest.fixture
def postgres_database_url(postgres_url: str) -> Iterator[str]:
    """The URL of an empty database of this test alone."""
    import psycopg
    from psycopg import sql

    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    yield urlunsplit(urlsplit(postgres_url)._replace(path=f"/{name}"))
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The one Spark session of the run, on the Java runtime of the wheel.

    Neither JAVA_HOME nor PATH is looked at, so every machine tests on the same, locked Java.
    """
    from lumos.spark.java import find_java, spark_environment

    runtime = find_java({"HOME": os.environ.get("HOME", str(Path.home()))})
    folder = tmp_path_factory.mktemp("spark")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in spark_environment(runtime).items():
            patch.setenv(name, value)
        patch.setenv("TZ", "UTC")
        session = _start_spark(folder)
        yield session
        session.stop()


def _start_spark(folder: Path) -> SparkSession:
    from pyspark.sql import SparkSession

    options = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master("local[2]").appName("lumos-tests")
    for name, value in options.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
