from __future__ import annotations

import os
import signal
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

import pytest
from hypothesis import HealthCheck, settings

from distribution import Distribution
from property_seed import PropertySeed
from run_times import RunTimes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from amundsen_server import AmundsenServer
    from atlas_server import RealAtlas
    from azurite_server import AzuriteServer
    from hdfs_cluster import HdfsCluster
    from s3_server import Bucket, S3Server

# An archive that is there saves seconds, but a test run leaves no process behind to make one.
os.environ.setdefault("LUMOS_SPARK_ARCHIVE", "existing")
# The engine of whoever runs the tests is not theirs to use or to stop.
os.environ["LUMOS_ENGINE_DIR"] = f"{tempfile.gettempdir()}/lumos-test-engine-{os.getpid()}"

# A shell lets what it runs in the background ignore interrupts, and whatever that starts as well.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

FULL_SIZE = os.environ.get("LUMOS_TEST_FULL") == "1"

settings.register_profile(
    "default",
    deadline=None,
    max_examples=30,
    # Examples follow from the seed of tests/property_seed.py alone: not from earlier runs, and not
    # from the name of the test, as hypothesis has it wherever the variable CI is set.
    database=None,
    derandomize=False,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("full", parent=settings.get_profile("default"), max_examples=2_000)
settings.load_profile("full" if FULL_SIZE else "default")

MARKER_OF_FIXTURE = {
    "amundsen_server": "service",
    "azurite": "service",
    "hdfs_cluster": "service",
    "real_atlas": "service",
    "s3_server": "storage",
    "postgres_url": "postgres",
    "spark": "spark",
    "spark_archive": "spark",
    "spark_cluster_url": "spark",
    "spark_connect_url": "spark",
}


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(PropertySeed(config, is_full=FULL_SIZE))
    config.pluginmanager.register(Distribution(config))
    if not hasattr(config, "workerinput"):  # workers send their reports to this process
        config.pluginmanager.register(RunTimes())


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
def s3_server() -> Iterator[S3Server]:
    """A real S3 server process, behind a proxy that counts, for as long as the test run."""
    from s3_server import running_s3

    with running_s3() as server:
        yield server


@pytest.fixture
def s3_bucket(s3_server: S3Server) -> Iterator[Bucket]:
    """An empty bucket of this test alone; nothing was counted yet and nothing fails."""
    from s3_server import Bucket

    bucket = Bucket(s3_server, f"lake{uuid.uuid4().hex}")
    s3_server.requests.clear()
    yield bucket
    s3_server.faults.clear()


@pytest.fixture(scope="session")
def amundsen_server() -> Iterator[AmundsenServer]:
    """The real metadata service of Amundsen, on MariaDB; or the one that was named."""
    from amundsen_server import AmundsenServer, require_empty, running_amundsen
    from named_catalogs import named

    if given := named("amundsen"):
        theirs = AmundsenServer(given.get("url", ""), given["database_url"], is_named=True)
        require_empty(theirs)
        yield theirs
        return
    with running_amundsen() as server:
        yield server


@pytest.fixture(scope="session")
def real_atlas() -> Iterator[RealAtlas]:
    """Apache Atlas itself, from its war; or the one that was named."""
    from atlas_server import RealAtlas, require_empty, running_atlas
    from named_catalogs import named

    if given := named("atlas"):
        theirs = RealAtlas(**given, is_named=True)
        require_empty(theirs)
        yield theirs
        return
    with running_atlas() as server:
        yield server


@pytest.fixture(scope="session")
def azurite() -> Iterator[AzuriteServer]:
    """Azurite, the emulator of Azure Blob Storage."""
    from azurite_server import running_azurite

    with running_azurite() as server:
        yield server


@pytest.fixture(scope="session")
def hdfs_cluster() -> Iterator[HdfsCluster]:
    """A real namenode with a real datanode."""
    from hdfs_cluster import running_hdfs

    with running_hdfs() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one Spark session of the run, on the Java runtime of the wheel.

    Neither JAVA_HOME nor PATH is looked at, so every machine tests on the same, locked Java.
    Whatever a test runs through `spark_session` with a local master shares it.
    """
    from lumos.core.settings import RawSettings
    from lumos.spark.session import spark_session
    from lumos.spark.settings import SparkSettings

    home = Path(os.environ.get("HOME", str(Path.home())))
    settings = SparkSettings(
        master="local[2]",
        app_name="lumos-tests",
        driver_memory="1g",
        conf=RawSettings({"spark.sql.shuffle.partitions": 2}),
    )
    environment = {"HOME": str(home), "LUMOS_SPARK_ARCHIVE": os.environ["LUMOS_SPARK_ARCHIVE"]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC")
        cache = home / ".cache" / "lumos"
        with spark_session(settings, environment=environment, cache_dir=cache) as session:
            yield session


@pytest.fixture(scope="session")
def spark_cluster_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real standalone cluster with two workers."""
    from spark_cluster import running_cluster

    with running_cluster(tmp_path_factory.mktemp("cluster")) as url:
        yield url


@pytest.fixture(scope="session")
def spark_connect_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real Spark Connect server, whose Python workers know modules of tests."""
    from spark_cluster import running_connect_server

    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYTHONPATH", str(Path(__file__).parent))
            server = running_connect_server(tmp_path_factory.mktemp("connect"))
            url = stack.enter_context(server)
        yield url
