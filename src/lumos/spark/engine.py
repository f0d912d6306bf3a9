"""A Spark that is kept warm on this machine, so that one command after the other starts at once.

The engine is a separate process, `lumos.spark.engine_process`, which runs Spark with a Spark
Connect server that listens to this machine alone and answers only those who know its token. It
outlives the terminal and ends itself when nobody has used it for a while.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from lumos.core.errors import EXIT_UNREADABLE, LumosError, UsageError
from lumos.spark.connect import loopback_session, require_connect
from lumos.spark.engine_record import EngineFolder, EngineRecord, settings_mark, software_mark
from lumos.spark.options import is_local, user_options
from lumos.spark.start_failures import SparkUnavailableError

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from lumos.spark.settings import SparkSettings

PROCESS = "lumos.spark.engine_process"
_STOP_SECONDS = 40.0
_SECONDS_BETWEEN_LOOKS = 0.1

# Python warns about a child that runs on when its handle is dropped.
_BACKGROUND: list[subprocess.Popen[str]] = []


class EngineError(LumosError):
    """The engine did not start, or does not end."""

    code = "LUM-132"
    exit_code = EXIT_UNREADABLE


class EngineRequest(BaseModel):
    """What an engine is started with; it reaches the process through a pipe, as it has secrets."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    master: str
    driver_memory: str | None
    options: dict[str, str]
    settings: str
    software: str
    idle_minutes: float
    cache_dir: str


class EngineAnswer(BaseModel):
    """What the process says once it is up, or cannot come up."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    problem: str | None = None
    hint: str | None = None


class StartedEngine(NamedTuple):
    """An engine, and why a command with certain settings cannot use it, if it cannot."""

    record: EngineRecord
    unfit: str | None


def find_engine(settings: SparkSettings, folder: EngineFolder) -> StartedEngine | None:
    """Return the engine that runs on this machine, if there is one."""
    record = folder.read()
    if record is None or not folder.is_alive():
        return None
    return StartedEngine(record, _unfit(record, settings))


def start_engine(
    settings: SparkSettings,
    folder: EngineFolder,
    *,
    environment: Mapping[str, str],
    cache_dir: Path,
    idle_minutes: float,
) -> tuple[EngineRecord, bool]:
    """Return an engine that fits the settings, and whether it had to be started.

    One that does not fit is ended first.

    Raises:
        ConfigurationError: a property in `spark.conf` cannot be used.
        EngineError: it did not start.
        MissingExtraError: the packages of Spark Connect are not installed.
        StateReadOnlyError: its folder cannot be written.
        UsageError: the settings want Spark elsewhere.
    """
    from filelock import FileLock

    if settings.remote is not None or not is_local(settings.master):
        place = "behind Spark Connect" if settings.remote else f"on {settings.master}"
        raise UsageError(
            f"the engine is for Spark on this machine, and the settings want it {place}",
            hint="commands reach that Spark without an engine",
        )
    user_options(settings)
    require_connect()
    folder.prepare()
    with FileLock(folder.folder / "start.lock", mode=0o600):
        found = find_engine(settings, folder)
        if found is not None and found.unfit is None:
            return found.record, False
        stop_engine(folder)
        request = EngineRequest(
            master=settings.master,
            driver_memory=settings.driver_memory,
            options=user_options(settings),
            settings=settings_mark(settings),
            software=software_mark(),
            idle_minutes=idle_minutes,
            cache_dir=str(cache_dir.absolute()),
        )
        return _started(request, folder, environment=environment), True


def stop_engine(folder: EngineFolder) -> bool:
    """End the engine, even while it is used, and return whether there was one.

    Raises:
        EngineError: it does not end.
    """
    record = folder.read()
    if record is None or not folder.is_alive():
        folder.forget()
        return False
    for end in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.kill(record.pid, end)
        if _gone(folder):
            folder.forget()
            _reap(record.pid)
            return True
    raise EngineError(f"the engine, process {record.pid}, does not end", hint="end it by hand")


@contextmanager
def engine_session(
    settings: SparkSettings, folder: EngineFolder, *, notice: Callable[[str], None]
) -> Iterator[SparkSession | None]:
    """Yield a session of the engine that runs, or None where there is none that can be used.

    Why a known engine cannot be used is said in a line; it is never an error.
    """
    record = _usable(settings, folder, notice)
    with ExitStack() as stack:
        # Where it cannot be had, it ends itself right now.
        may_use = record is not None and stack.enter_context(folder.use())
        session = None
        if record is not None and may_use:
            opened = loopback_session(settings, port=record.port, token=record.token)
            try:
                session = stack.enter_context(opened)
            except SparkUnavailableError as error:
                notice(f"{error.message}; starting Spark for this command alone")
                stack.close()
        yield session


def _usable(
    settings: SparkSettings, folder: EngineFolder, notice: Callable[[str], None]
) -> EngineRecord | None:
    if settings.engine == "never" or not is_local(settings.master):
        return None
    record = folder.read()
    if record is None:
        return None
    if not folder.is_alive():
        folder.forget()
        notice("the Spark engine is gone; starting Spark for this command alone")
        return None
    if reason := _unfit(record, settings):
        notice(f"the Spark engine is not used: {reason}")
        return None
    return record


def _unfit(record: EngineRecord, settings: SparkSettings) -> str | None:
    if record.software != software_mark():
        return "it runs another Lumos, Spark or Python; start it anew: lumos engine start"
    if record.settings != settings_mark(settings):
        return "it was started with other spark settings"
    return None


def _started(
    request: EngineRequest, folder: EngineFolder, *, environment: Mapping[str, str]
) -> EngineRecord:
    with folder.log.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", PROCESS, str(folder.folder)],
            cwd="/",  # a folder in use could not be unmounted, or removed on some systems
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,  # it goes on when the terminal is closed
            text=True,
        )
    try:
        answer = _answer_of(process, request)
    except BaseException:  # Ctrl-C among them: nobody would know of the engine
        process.kill()
        process.wait()
        raise
    record = folder.read()
    if answer.problem is None and record is not None:
        _BACKGROUND.append(process)
        return record
    process.wait()
    raise EngineError(
        f"the engine did not start: {answer.problem or 'it ended at once'}",
        hint=answer.hint or f"see {folder.log}",
    )


def _answer_of(process: subprocess.Popen[str], request: EngineRequest) -> EngineAnswer:
    assert process.stdin is not None  # noqa: S101 - both are pipes
    assert process.stdout is not None  # noqa: S101
    with process.stdout:
        with suppress(BrokenPipeError), process.stdin:
            process.stdin.write(request.model_dump_json())
        line = process.stdout.readline()
    try:
        return EngineAnswer.model_validate_json(line)
    except ValidationError:
        return EngineAnswer(problem="its process ended without a word")


def _reap(pid: int) -> None:
    """Take note of the end of an engine that this very process started."""
    for process in [each for each in _BACKGROUND if each.pid == pid]:
        process.wait()
        _BACKGROUND.remove(process)


def _gone(folder: EngineFolder) -> bool:
    end = time.monotonic() + _STOP_SECONDS
    while folder.is_alive():
        if time.monotonic() > end:
            return False
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    return True
