"""The Spark session that all stages run on: local, on a cluster, or behind Spark Connect."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lumos.core.events import emit, since
from lumos.core.own_process import is_own_process
from lumos.spark.class_archive import (
    ClassArchive,
    class_archive,
    make_in_background,
    may_make,
    may_use,
)
from lumos.spark.connect import connected_session
from lumos.spark.driver import (
    SHORT_LIFE,
    StartLimit,
    driver_environment,
    end_accumulators_meanwhile,
    end_driver,
    forget_options,
    private_local_dirs,
    quiet_options,
    start_driver,
    stop_session,
)
from lumos.spark.engine import engine_session
from lumos.spark.engine_record import EngineFolder
from lumos.spark.java import JavaRuntime, find_java
from lumos.spark.options import (
    driver_options,
    is_local,
    runtime_options,
    standalone_addresses,
    user_options,
)
from lumos.spark.process_variables import process_variables
from lumos.spark.run_folder import run_folder
from lumos.spark.start_failures import SparkUnavailableError, clear_failures, require_answer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lumos.spark.settings import SparkSettings

StatusListener = Callable[[str], None]

_STOP_SECONDS = 30
# With an archive a start takes seconds; one that takes so long spins in damage of the archive.
_ARCHIVE_SECONDS = 120.0


def _ignore(_stage: str) -> None:
    pass


@contextmanager
def spark_session(
    settings: SparkSettings,
    *,
    environment: Mapping[str, str],
    cache_dir: Path,
    on_status: StatusListener | None = None,
    on_notice: StatusListener | None = None,
) -> Iterator[SparkSession]:
    """Yield the session that the settings describe, and stop it afterwards.

    Where this process already runs Spark, its session is used and goes on afterwards. Where an
    engine runs on this machine that fits the settings, the session is one of the engine.

    Args:
        settings: the `spark` part of the settings.
        environment: where Java is looked for; the process environment outside of tests.
        cache_dir: keeps the class archive, which the first session makes in the background.
        on_status: is called with a few words on what is being waited for.
        on_notice: is called with a line that says why a running engine is not used.

    Raises:
        ConfigurationError: a property in `spark.conf` cannot be used.
        JavaUnavailableError: there is no Java that can carry Spark.
        MissingExtraError: `remote` is set and the packages of Spark Connect are not installed.
        SparkUnavailableError: Spark did not start or does not answer.
    """
    tell = on_status or _ignore
    start = _Start(on_notice or _ignore)
    with ExitStack() as stack:
        stack.callback(start.log_stopped)
        if settings.remote is not None:
            session = stack.enter_context(connected_session(settings, tell))
            start.log_started("Spark Connect", master="a Spark Connect server")
        elif running := _running_session():
            session = _beside(running, settings)
            start.log_started("running session", master=settings.master)
        else:
            # Before Java is looked for: a wrong setting is the quicker answer.
            user_options(settings)
            _require_master(settings.master)
            with _interrupts_as_before():
                found = stack.enter_context(
                    engine_session(settings, EngineFolder.of(environment), notice=start.no_engine)
                )
                session = found or stack.enter_context(
                    local_session(settings, environment=environment, cache_dir=cache_dir, tell=tell)
                )
            how = "engine" if found else "cold start"
            start.log_started(how, master=settings.master, engine=settings.engine)
        try:
            yield session
        finally:
            start.stop()


class _Start:
    """Logs how a session was made, and how long its start and its end took."""

    def __init__(self, notice: StatusListener) -> None:
        self._notice = notice
        self._began = time.monotonic()
        self._stopping: float | None = None
        self._reason: str | None = None
        self._is_own = False

    def no_engine(self, reason: str) -> None:
        """Pass on why an engine is not used."""
        self._reason = reason
        self._notice(reason)

    def log_started(self, how: str, *, master: str, engine: str = "auto") -> None:
        self._is_own = how == "cold start"
        none = "the settings say engine: never" if engine == "never" else "no engine runs"
        emit(
            "spark.started",
            master=master,
            how=how,
            reason=(self._reason or none) if self._is_own else None,
            seconds=since(self._began),
        )

    def stop(self) -> None:
        self._stopping = time.monotonic()

    def log_stopped(self) -> None:
        if self._is_own and self._stopping is not None:
            emit("spark.stopped", seconds=since(self._stopping))


@contextmanager
def _interrupts_as_before() -> Iterator[None]:
    """Keep the handler of Ctrl-C: PySpark's own asks the JVM in the middle of another question."""
    if is_own_process():
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
    log: Path | None = None,
) -> Iterator[SparkSession]:
    """Yield a session whose driver is a new JVM of this process, and end both afterwards.

    Args:
        settings: the `spark` part of the settings.
        runtime: the Java to use.
        java_options: flags for the JVM.
        environment: may hold Java options and arguments for Spark of the user.
        patience: seconds that the JVM may take to end.
        start_seconds: seconds after which a start has failed, where it must not take any time.
        log: gets what the JVM prints; without, it is gone with the session.

    Raises:
        SparkUnavailableError: it did not start.
    """
    with ExitStack() as stack:
        folder, lock = stack.enter_context(run_folder())
        printed = log or folder / "driver.log"
        options = driver_options(
            settings,
            folder=folder,
            java_options=(*quiet_options(folder), "-Duser.timezone=UTC", *java_options),
            environment=environment,
        )
        variables: dict[str, str] = {}
        locks = [lock]
        if is_local(settings.master):  # on a cluster these folders are those of the workers too
            dirs = stack.enter_context(private_local_dirs(options, environment))
            options, variables = dirs.options, dirs.variables
            locks += dirs.locks
        variables |= driver_environment(
            runtime, options=options, environment=environment, folder=folder
        )
        stack.enter_context(process_variables({}))
        # Only while it starts: other programs that this process runs may start a Spark too.
        with (
            clear_failures(f"Spark did not start on {settings.master}", printed),
            process_variables(variables, only=True),
            StartLimit(start_seconds) as limit,
        ):
            gateway = start_driver(printed, limit, inherited=locks)
            forget_options(folder)
            stack.callback(end_driver, gateway, patience=patience)
            session = _built(options)
            stack.callback(stop_session, session)
            stack.callback(end_accumulators_meanwhile, session.sparkContext)
        yield session


@contextmanager
def local_session(
    settings: SparkSettings,
    *,
    environment: Mapping[str, str],
    cache_dir: Path,
    tell: StatusListener = _ignore,
    log: Path | None = None,
) -> Iterator[SparkSession]:
    """Yield a session whose driver is a JVM of this process, with the class archive if it can be.

    Args:
        settings: the `spark` part of the settings.
        environment: where Java is looked for.
        cache_dir: keeps the class archive.
        tell: is called with a few words on what is being waited for.
        log: gets what the JVM prints; without, it is gone with the session.

    Raises:
        JavaUnavailableError: there is no Java that can carry Spark.
        SparkUnavailableError: Spark did not start.
    """
    from pyspark.find_spark_home import _find_spark_home

    runtime = find_java(environment)
    cache = cache_dir.absolute()
    archive = class_archive(runtime, spark_home=Path(_find_spark_home()), cache_dir=cache)
    java_options = SHORT_LIFE if is_local(settings.master) else ()
    usable = archive if may_use(environment) and archive.is_whole() else None
    start = partial(embedded_session, settings, runtime=runtime, environment=environment, log=log)
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


def _running_session() -> SparkSession | None:
    """Return the session of a classic Spark that this process already runs, if any."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is None:
        return None
    return SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()


def _beside(running: SparkSession, settings: SparkSettings) -> SparkSession:
    """Return a new session of the running Spark, with separate properties."""
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


def _built(options: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    for name, value in options.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _require_master(master: str) -> None:
    """Say at once that a standalone master is not there; Spark itself would try for a minute."""
    if master.startswith("spark://"):
        require_answer(standalone_addresses(master), f"the Spark master {master}")
