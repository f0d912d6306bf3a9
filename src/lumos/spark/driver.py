"""The JVM that carries the driver of a session, started and ended by this process."""

from __future__ import annotations

import shlex
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from lumos.spark.java import JavaRuntime, spark_environment

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway  # type: ignore[import-untyped]
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

# C1 alone and the serial collector suit a JVM that lives for seconds on a few cores.
SHORT_LIFE = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
# The JVM's own remarks (an archive that does not fit, a directory in the class path) go nowhere.
_SILENCE = ("-Xlog:disable", "-Xlog:all=off", "-XX:-PrintWarnings")

_LOG4J = """\
status = off
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %p %c{1}: %m%n%ex
"""


def quiet_options(folder: Path) -> tuple[str, ...]:
    """Return the JVM flags that keep Spark's log to errors and all reports in the folder."""
    path = folder / "log4j2.properties"
    path.write_text(_LOG4J, encoding="utf-8")
    return (
        *_SILENCE,
        shlex.quote(f"-Dlog4j2.configurationFile={path.as_uri()}"),
        shlex.quote(f"-XX:ErrorFile={folder / 'crash.log'}"),
        "-XX:-CreateCoredumpOnCrash",
    )


def driver_environment(
    runtime: JavaRuntime,
    *,
    options: Mapping[str, str],
    environment: Mapping[str, str],
    folder: Path,
) -> dict[str, str]:
    """Return the variables under which the JVM starts, with all options in a file.

    A command line would show the options, keys to a storage among them, to every user.
    """
    path = folder / "spark.properties"
    path.touch(mode=0o600)
    path.write_text(
        "".join(f"{_escaped(name)}={_escaped(value)}\n" for name, value in options.items()),
        encoding="utf-8",
    )
    submitted = environment.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell")
    variables = spark_environment(runtime)
    variables["PYSPARK_SUBMIT_ARGS"] = (
        f"--properties-file {shlex.quote(str(path))} --load-spark-defaults {submitted}"
    )
    # Spark's scripts start a first, tiny JVM that puts the command together.
    variables["SPARK_LAUNCHER_OPTS"] = " ".join(
        [*SHORT_LIFE, environment.get("SPARK_LAUNCHER_OPTS", "")]
    ).strip()
    if python := options.get("spark.pyspark.python"):
        variables["PYSPARK_PYTHON"] = python
    if options.get("spark.driver.host") == "127.0.0.1":
        variables["SPARK_LOCAL_IP"] = environment.get("SPARK_LOCAL_IP", "127.0.0.1")
    return variables


class StartLimit:
    """Kills a JVM that has not started in time: whoever waits for it then hears that it ended.

    A damaged class archive can keep a JVM busy for ever before it says a word.
    """

    def __init__(self, seconds: float | None) -> None:
        """Allow so many seconds; None allows any number."""
        self._timer = None if seconds is None else threading.Timer(seconds, self._kill)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()

    @contextmanager
    def noting_process(self) -> Iterator[None]:
        """Get hold of the process that PySpark starts, which it hands out only once it is up."""
        from pyspark import java_gateway

        class Noted(subprocess.Popen[bytes]):
            def __init__(noted, *arguments: Any, **options: Any) -> None:  # noqa: N805
                super().__init__(*arguments, **options)
                self._process = noted

        pyspark_names = vars(java_gateway)
        usual = pyspark_names["Popen"]
        pyspark_names["Popen"] = Noted
        try:
            yield
        finally:
            pyspark_names["Popen"] = usual

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()


def start_driver(log: Path, limit: StartLimit) -> JavaGateway:
    """Start the JVM with all that it and its Python workers print going to `log`.

    Raises:
        PySparkRuntimeError: it ended at once; the log has the reason.
    """
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    with log.open("wb") as output, limit.noting_process():
        streams = {"stdout": output, "stderr": subprocess.STDOUT}
        gateway = launch_gateway(popen_kwargs=streams)  # type: ignore[no-untyped-call]
    SparkContext._ensure_initialized(gateway=gateway)
    return gateway


def end_driver(gateway: JavaGateway, *, patience: float) -> None:
    """End the JVM and forget it, so that the next session starts one with its own options.

    Args:
        gateway: the connection that `start_driver` returned.
        patience: seconds after which it is killed.
    """
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark import SparkContext

    process: subprocess.Popen[bytes] = gateway.proc
    with suppress(Py4JError, OSError):
        gateway.shutdown()
    SparkContext._gateway = None
    SparkContext._jvm = None
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def stop_session(session: SparkSession) -> None:
    """Stop a session, whether or not there is still something to stop."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    # A JVM that died has nothing to stop, and what it died of is already on its way.
    with suppress(Py4JError, PySparkException, OSError):
        session.stop()


def end_accumulators_meanwhile(context: SparkContext) -> None:
    """Spare the wait for PySpark's server of accumulators, which looks up once in a second."""
    server = getattr(context, "_accumulatorServer", None)
    if server is None:
        return
    context._accumulatorServer = None  # type: ignore[assignment]
    server.handle_error = lambda *_: None  # that the JVM is gone is no error any more
    threading.Thread(target=server.shutdown, name="lumos-accumulators", daemon=True).start()


def _escaped(text: str) -> str:
    """Write text so that java.util.Properties reads it back as it is."""
    marks = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f", " ": "\\ "}
    marks |= {mark: f"\\{mark}" for mark in ":=#!"}
    return "".join(marks.get(character, character) for character in text)
