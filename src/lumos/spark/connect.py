"""Sessions of a Spark Connect server: one that the settings name, or the engine of this machine."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from typing_extensions import override

from lumos.core.errors import ConfigurationError, MissingExtraError
from lumos.spark.driver import stop_session
from lumos.spark.options import runtime_options, user_options
from lumos.spark.process_variables import process_variables
from lumos.spark.start_failures import clear_failures, require_answer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.client.retries import RetryPolicy

    from lumos.spark.settings import SparkSettings

_CONNECT_PORT = 15002
_CONNECT_PACKAGES = ("grpc", "grpc_status", "google.rpc")
LOOPBACK = "127.0.0.1"
# PySpark sends a token without encryption to this name alone. What is connected to is the address:
# the name may stand for ::1 too, where another user could listen on the same port for the token.
_LOOPBACK_NAME = "localhost"


@contextmanager
def connected_session(
    settings: SparkSettings, tell: Callable[[str], None]
) -> Iterator[SparkSession]:
    """Yield a session of the Spark Connect server that the settings name.

    Raises:
        ConfigurationError: the address is none, or a property cannot be set there.
        MissingExtraError: the packages of Spark Connect are not installed.
        SparkUnavailableError: the server does not answer, or refuses.
    """
    assert settings.remote is not None  # noqa: S101 - the caller has looked
    address = settings.remote.get_secret_value()
    host, port = _place(address)
    options = runtime_options(settings) | user_options(settings)
    require_connect()
    place = f"Spark Connect at {host}:{port}"
    tell(f"connecting to {place}")
    require_answer([(host, port)], place)
    from pyspark.sql import SparkSession

    with process_variables({}), ExitStack() as stack:
        with clear_failures(f"{place} refused a session", None):
            session = SparkSession.builder.remote(address).appName(settings.app_name).getOrCreate()
            stack.callback(stop_session, session)
            _set_runtime(session, options)
        yield session


@contextmanager
def loopback_session(settings: SparkSettings, *, port: int, token: str) -> Iterator[SparkSession]:
    """Yield a session of a Spark Connect server on this machine that wants a token.

    Raises:
        SparkUnavailableError: it does not answer, or refuses.
    """
    place = "the Spark engine of this machine"
    require_answer([(LOOPBACK, port)], place)
    from pyspark.sql.connect.client import DefaultChannelBuilder
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    class LoopbackChannel(DefaultChannelBuilder):
        @property
        @override
        def endpoint(self) -> str:
            return f"ipv4:{LOOPBACK}:{port}"

    address = f"sc://{_LOOPBACK_NAME}:{port}/;token={token}"
    # A proxy is for other machines.
    channel = LoopbackChannel(address, [("grpc.enable_http_proxy", 0)])
    # What it warns of, it raises too.
    warnings.filterwarnings("ignore", message=re.escape("[RETRIES_EXCEEDED]"))
    with process_variables({"SPARK_CONNECT_MODE_ENABLED": "1"}), ExitStack() as stack:
        with clear_failures(f"{place} refused a session", None):
            connected = ConnectSession.builder.channelBuilder(channel).create()
            connected.client.set_retry_policies([_short_patience()])
            session = cast("SparkSession", connected)
            stack.callback(stop_session, session)
            for name, value in runtime_options(settings).items():
                if session.conf.isModifiable(name):
                    session.conf.set(name, value)
        yield session


def _short_patience() -> RetryPolicy:
    """Return how often a question is asked again: nothing lies in between that could recover.

    PySpark would try for ten minutes.
    """
    from pyspark.sql.connect.client.retries import DefaultPolicy

    return DefaultPolicy(max_retries=3, initial_backoff=100, max_backoff=1_000)


def _set_runtime(session: SparkSession, options: Mapping[str, str]) -> None:
    for name, value in options.items():
        if not session.conf.isModifiable(name):
            raise ConfigurationError(
                f"spark.conf: {name} cannot be set on a Spark that already runs",
                hint="set it where the Spark Connect server is started",
            )
        session.conf.set(name, value)


def _place(address: str) -> tuple[str, int]:
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port or _CONNECT_PORT
    except ValueError:
        host, port = None, 0
    if host is None or not address.startswith("sc://"):
        raise ConfigurationError(
            "spark.remote is not the address of a Spark Connect server",
            hint="write it as sc://HOST:PORT",
        )
    return host, port


def require_connect() -> None:
    """Say which packages are missing, and how they are installed."""
    missing = [package for package in _CONNECT_PACKAGES if not _is_installed(package)]
    if missing:
        raise MissingExtraError(
            f"Spark Connect needs packages that are not installed: {', '.join(missing)}",
            hint="install them with: pip install 'lumos[connect]'",
        )


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # the package above it is missing
        return False
