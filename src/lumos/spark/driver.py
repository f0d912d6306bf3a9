"""The JVM that carries the driver of a session, started and ended by this process."""

from __future__ import annotations

import shlex
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from lumos.core.private_files import private_opener
from lumos.spark.java import JavaRuntime, spark_environment
from lumos.spark.run_folder import run_folder

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway  # type: ignore[import-untyped]
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

# C1 alone and the serial collector suit a JVM that lives for seconds on a few cores.
SHORT_LIFE = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
# The JVM's own notices (an archive that does not fit, a directory in the class path) go nowhere.
_SILENCE = ("-Xlog:disable", "-Xlog:all=off", "-XX:-PrintWarnings")
# Otherwise each JVM puts a file with its command line into /tmp/hsperfdata_USER.
_NO_PERFORMANCE_FILE = "-XX:-UsePerfData"
_PROPERTIES = "spark.properties"
_LOCAL_DIRS = "spark.local.dir"
_LOCAL_DIRS_VARIABLE = "SPARK_LOCAL_DIRS"

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
    """Return the JVM flags that keep Spark's log to errors and all files in the folder."""
    path = folder / "log4j2.properties"
    path.write_text(_LOG4J, encoding="utf-8")
    return (
        *_SILENCE,
        _NO_PERFORMANCE_FILE,
        # Blocks, shuffle files, artifacts and unpacked native libraries go there.
        shlex.quote(f"-Djava.io.tmpdir={_temporary(folder)}"),
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

    A command line would show the options, keys to a storage among them, to every user. The file is
    to be removed with `forget_options` once the JVM has read it.
    """
    path = folder / _PROPERTIES
    path.touch(mode=0o600)
    path.write_text(
        "".join(f"{_escaped(name)}={_escaped(value)}\n" for name, value in options.items()),
        encoding="utf-8",
    )
    submitted = environment.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell")
    variables = spark_environment(runtime)
    variables["TMPDIR"] = str(_temporary(folder))  # of Python workers, which inherit it
    variables["PYSPARK_SUBMIT_ARGS"] = (
        f"--properties-file {shlex.quote(str(path))} --load-spark-defaults {submitted}"
    )
    # Spark's scripts start a first, tiny JVM that puts the command together.
    variables["SPARK_LAUNCHER_OPTS"] = " ".join(
        [*SHORT_LIFE, _NO_PERFORMANCE_FILE, environment.get("SPARK_LAUNCHER_OPTS", "")]
    ).strip()
    if python := options.get("spark.pyspark.python"):
        variables["PYSPARK_PYTHON"] = python
    if options.get("spark.driver.host") == "127.0.0.1":
        variables["SPARK_LOCAL_IP"] = environment.get("SPARK_LOCAL_IP", "127.0.0.1")
    return variables


def forget_options(folder: Path) -> None:
    """Remove the file of the options, which may hold secrets."""
    (folder / _PROPERTIES).unlink(missing_ok=True)


class LocalDirs(NamedTuple):
    """Where Spark spills to, each place a folder of this run.

    Attributes:
        options: the options, with these folders.
        variables: the variables that name folders.
        locks: the locks of the folders, for the JVM to inherit.
    """

    options: dict[str, str]
    variables: dict[str, str]
    locks: tuple[int, ...]


@contextmanager
def private_local_dirs(
    options: Mapping[str, str], environment: Mapping[str, str]
) -> Iterator[LocalDirs]:
    """Make a folder of this run below each local dir that the user chose.

    Without any of the user's, Spark spills below `java.io.tmpdir`.
    """
    locks: list[int] = []
    with ExitStack() as stack:

        def below(folder: str) -> str:
            try:
                Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
                made = stack.enter_context(run_folder(Path(folder)))
            except OSError:  # Spark says what is wrong with it
                return folder
            locks.append(made.lock)
            return str(made.path)

        def all_below(folders: str) -> str:
            return ",".join(below(each.strip()) for each in folders.split(","))

        changed, variables = dict(options), {}
        if folders := options.get(_LOCAL_DIRS):
            changed[_LOCAL_DIRS] = all_below(folders)
        if folders := environment.get(_LOCAL_DIRS_VARIABLE):
            variables[_LOCAL_DIRS_VARIABLE] = all_below(folders)
        yield LocalDirs(changed, variables, tuple(locks))


def _temporary(folder: Path) -> Path:
    path = folder / "tmp"
    path.mkdir(mode=0o700, exist_ok=True)
    return path


class StartLimit:
    """Kills a JVM that has not started in time, so that a caller that waits for it gets an error.

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


def start_driver(log: Path, limit: StartLimit, *, inherited: Sequence[int]) -> JavaGateway:
    """Start the JVM with all that it and its Python workers print going to `log`.

    Args:
        log: gets what they print.
        limit: ends a start that takes too long.
        inherited: descriptors that the JVM keeps open for as long as it lives.

    Raises:
        PySparkRuntimeError: it ended at once; the log has the reason.
    """
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    with open(log, "wb", opener=private_opener) as output, limit.noting_process():
        how = {"stdout": output, "stderr": subprocess.STDOUT, "pass_fds": inherited}
        gateway = launch_gateway(popen_kwargs=how)  # type: ignore[no-untyped-call]
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
