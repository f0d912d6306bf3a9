"""The Spark session that all stages run on: local, on a cluster, or behind Spark Connect."""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from lumos.core.errors import EXIT_UNREADABLE, ConfigurationError, LumosError, MissingExtraError
from lumos.core.redaction import redact
from lumos.spark.class_archive import (
    ClassArchive,
    class_archive,
    make_in_background,
    may_make,
    may_use,
)
from lumos.spark.driver import (
    SHORT_LIFE,
    StartLimit,
    driver_environment,
    end_driver,
    quiet_options,
    start_driver,
)
from lumos.spark.java import JavaRuntime, find_java
from lumos.spark.options import (
    driver_options,
    is_local,
    runtime_options,
    standalone_addresses,
    user_options,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lumos.core.settings import SparkSettings

StatusListener = Callable[[str], None]

_CONNECT_PORT = 15002
_CONNECT_PACKAGES = ("grpc", "grpc_status", "google.rpc")
_ANSWER_SECONDS = 10
_STOP_SECONDS = 30
# With an archive a start takes seconds; one that takes so long spins in damage of the archive.
_ARCHIVE_SECONDS = 120.0
_LONGEST_REASON = 300
_TOUCHED_VARIABLES = ("JAVA_HOME", "PYSPARK_", "SPARK_")
_JAVA_REASON = re.compile(r"^: (?P<reason>.+)$", re.MULTILINE)
_LOG_REASON = re.compile(r"error|exception|unrecognized|invalid|could not|cannot|conflicting", re.I)
_LOG_NOISE = (
    "\tat ",
    "Error: A fatal exception has occurred",
    "Error: Could not create the Java Virtual Machine",
    "Picked up ",
    "WARNING: ",
)


class SparkUnavailableError(LumosError):
    """Spark did not start, or the Spark that was named does not answer."""

    code = "LUM-130"
    exit_code = EXIT_UNREADABLE


@contextmanager
def spark_session(
    settings: SparkSettings,
    *,
    environment: Mapping[str, str],
    cache_dir: Path,
    on_status: StatusListener | None = None,
) -> Iterator[SparkSession]:
    """Yield the session that the settings describe, and stop it afterwards.

    Where this process already runs Spark, its session is used and goes on afterwards.

    Args:
        settings: the `spark` part of the settings.
        environment: where Java is looked for; the process environment outside of tests.
        cache_dir: keeps the class archive, which the first session makes in the background.
        on_status: is told in a few words what is being waited for.

    Raises:
        ConfigurationError: a property in `spark.conf` cannot be used.
        JavaUnavailableError: there is no Java that can carry Spark.
        MissingExtraError: `remote` is set and the packages of Spark Connect are not installed.
        SparkUnavailableError: Spark did not start or does not answer.
    """
    tell = on_status or _tell_nobody
    with ExitStack() as stack:
        if settings.remote is not None:
            session = stack.enter_context(_connected(settings, tell))
        elif running := _running_session():
            session = _beside(running, settings)
        else:
            # Before Java is looked for: a wrong setting is the quicker answer.
            user_options(settings)
            _require_master(settings.master)
            with _interrupts_as_before():
                session = stack.enter_context(
                    _local_or_cluster(
                        settings, environment=environment, cache_dir=cache_dir, tell=tell
                    )
                )
        yield session


@contextmanager
def _interrupts_as_before() -> Iterator[None]:
    """Keep the handler of Ctrl-C: PySpark's own asks the JVM in the middle of another question."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL)  # it logs what is raised anyway
    if not logging.getLogger().handlers:  # else py4j would set up logging to standard error
        logging.getLogger().addHandler(logging.NullHandler())
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


@contextmanager
def embedded_session(
    settings: SparkSettings,
    *,
    runtime: JavaRuntime,
    java_options: tuple[str, ...],
    environment: Mapping[str, str],
    patience: float = _STOP_SECONDS,
    start_seconds: float | None = None,
) -> Iterator[SparkSession]:
    """Yield a session whose driver is a new JVM of this process, and end both afterwards.

    Args:
        settings: the `spark` part of the settings.
        runtime: the Java to use.
        java_options: flags for the JVM.
        environment: may hold Java options and arguments for Spark of the user.
        patience: seconds that the JVM may take to end.
        start_seconds: seconds after which a start has failed, where it must not take any time.

    Raises:
        SparkUnavailableError: it did not start.
    """
    with tempfile.TemporaryDirectory(prefix="lumos-spark-") as name, ExitStack() as stack:
        folder = Path(name)
        log = folder / "driver.log"
        options = driver_options(
            settings,
            folder=folder,
            java_options=(*quiet_options(folder), "-Duser.timezone=UTC", *java_options),
            environment=environment,
        )
        variables = driver_environment(
            runtime, options=options, environment=environment, folder=folder
        )
        stack.enter_context(_variables({}))
        # Only while it starts: other programs that this process runs may start a Spark too.
        with (
            _clear_failures(f"Spark did not start on {settings.master}", log),
            _variables(variables, only=True),
            StartLimit(start_seconds) as limit,
        ):
            gateway = start_driver(log, limit)
            stack.callback(end_driver, gateway, patience=patience)
            session = _built(options)
            stack.callback(_stop, session)
        yield session


@contextmanager
def _local_or_cluster(
    settings: SparkSettings,
    *,
    environment: Mapping[str, str],
    cache_dir: Path,
    tell: StatusListener,
) -> Iterator[SparkSession]:
    from pyspark.find_spark_home import _find_spark_home

    runtime = find_java(environment)
    cache = cache_dir.absolute()
    archive = class_archive(runtime, spark_home=Path(_find_spark_home()), cache_dir=cache)
    java_options = SHORT_LIFE if is_local(settings.master) else ()
    usable = archive if may_use(environment) and archive.is_whole() else None
    start = partial(embedded_session, settings, runtime=runtime, environment=environment)
    tell(f"starting Spark on {settings.master}")
    with _started(start, java_options, archive=usable) as session:
        yield session
        tell("stopping Spark")
    if may_make(environment):
        make_in_background(archive, runtime=runtime, cache_dir=cache)


@contextmanager
def _started(
    start: Callable[..., AbstractContextManager[SparkSession]],
    java_options: tuple[str, ...],
    *,
    archive: ClassArchive | None,
) -> Iterator[SparkSession]:
    """Start with the archive, or without it where it keeps the JVM from starting."""
    with ExitStack() as stack:
        if archive is None:
            session = stack.enter_context(start(java_options=java_options))
        else:
            using = (*java_options, *archive.using_options())
            try:
                session = stack.enter_context(
                    start(java_options=using, start_seconds=_ARCHIVE_SECONDS)
                )
            except SparkUnavailableError:
                session = stack.enter_context(start(java_options=java_options))
                archive.discard()
        yield session


@contextmanager
def _connected(settings: SparkSettings, tell: StatusListener) -> Iterator[SparkSession]:
    assert settings.remote is not None  # noqa: S101 - the caller has looked
    address = settings.remote.get_secret_value()
    host, port = _connect_place(address)
    options = runtime_options(settings) | user_options(settings)
    _require_connect()
    place = f"Spark Connect at {host}:{port}"
    tell(f"connecting to {place}")
    _require_answer([(host, port)], place)
    from pyspark.sql import SparkSession

    with _variables({}), ExitStack() as stack:
        with _clear_failures(f"{place} refused a session", None):
            session = SparkSession.builder.remote(address).appName(settings.app_name).getOrCreate()
            stack.callback(_stop, session)
            _set_runtime(session, options)
        yield session


def _running_session() -> SparkSession | None:
    """Return the session of a classic Spark that this process already runs, if any."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is None:
        return None
    return SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()


def _beside(running: SparkSession, settings: SparkSettings) -> SparkSession:
    """Return a session of the Spark that runs, with properties of its own."""
    master = str(running.sparkContext.master)
    if settings.master != master and not (is_local(settings.master) and is_local(master)):
        raise SparkUnavailableError(
            f"this process already runs Spark on {master}, not on {settings.master}",
            hint="stop that session first",
        )
    session = running.newSession()
    for name, value in runtime_options(settings).items():
        if session.conf.isModifiable(name):
            session.conf.set(name, value)
    return session


def _set_runtime(session: SparkSession, options: Mapping[str, str]) -> None:
    for name, value in options.items():
        if not session.conf.isModifiable(name):
            raise ConfigurationError(
                f"spark.conf: {name} cannot be set on a Spark that already runs",
                hint="set it where the Spark Connect server is started",
            )
        session.conf.set(name, value)


def _built(options: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    for name, value in options.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _stop(session: SparkSession) -> None:
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    # A JVM that died has nothing to stop, and what it died of is already on its way.
    with suppress(Py4JError, PySparkException, OSError):
        session.stop()


@contextmanager
def _variables(variables: Mapping[str, str], *, only: bool = False) -> Iterator[None]:
    """Set variables of the process and bring them back afterwards.

    Args:
        variables: what to set.
        only: bring back these alone, not all that Spark reads or sets.
    """

    def is_ours(name: str) -> bool:
        return name in variables if only else _is_touched(name)

    before = {name: value for name, value in os.environ.items() if is_ours(name)}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in [name for name in os.environ if is_ours(name) and name not in before]:
            del os.environ[name]
        os.environ.update(before)


def _is_touched(name: str) -> bool:
    return name.startswith(_TOUCHED_VARIABLES)


@contextmanager
def _clear_failures(what: str, log: Path | None) -> Iterator[None]:
    """Turn what PySpark, Py4J or the JVM throw at the start into one line."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException, OSError) as error:
        raise SparkUnavailableError(
            f"{what}: {_reason(error, log)}",
            hint="check the spark part of the settings; --debug shows the whole trace",
        ) from error


def _reason(error: Exception, log: Path | None) -> str:
    text = str(error)
    if found := _JAVA_REASON.search(text):
        return _shortened(found["reason"])
    if log is not None and log.is_file():
        lines = log.read_text("utf-8", errors="replace").splitlines()
        said = [line for line in lines if line.strip() and not line.startswith(_LOG_NOISE)]
        telling = [line for line in said if _LOG_REASON.search(line)]
        if telling or said:
            return _shortened((telling or said)[0])
    return _shortened(text.strip().split("\n", 1)[0])


def _shortened(text: str) -> str:
    return redact(text.strip())[:_LONGEST_REASON]


def _require_master(master: str) -> None:
    """Say at once that a standalone master is not there; Spark itself would try for a minute."""
    if master.startswith("spark://"):
        _require_answer(standalone_addresses(master), f"the Spark master {master}")


def _require_answer(addresses: list[tuple[str, int]], what: str) -> None:
    problem: OSError | None = None
    for address in addresses:
        try:
            socket.create_connection(address, timeout=_ANSWER_SECONDS).close()
        except OSError as error:
            problem = error
        else:
            return
    raise SparkUnavailableError(
        f"{what} does not answer", hint="check the address and that it runs", retryable=True
    ) from problem


def _connect_place(address: str) -> tuple[str, int]:
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port or _CONNECT_PORT
    except ValueError:
        host, port = None, 0
    if host is None or not address.startswith("sc://"):
        raise ConfigurationError(
            "spark.remote is no address of a Spark Connect server",
            hint="write it as sc://HOST:PORT",
        )
    return host, port


def _require_connect() -> None:
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


def _tell_nobody(_stage: str) -> None:
    pass
