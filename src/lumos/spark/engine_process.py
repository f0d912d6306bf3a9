"""The process of the engine: `python -m lumos.spark.engine_process FOLDER`.

It reads what it is to be from standard input, says on standard output in one line whether it is up,
and goes on until it is asked to end, its Spark has died, its record is gone, or nobody has used it
for a while. Spark itself ends with it, whatever it dies of: its standard input is then closed.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import lumos
from lumos.core.errors import LumosError
from lumos.core.settings import RawSettings
from lumos.spark.connect import LOOPBACK, loopback_session
from lumos.spark.engine import PROCESS, EngineAnswer, EngineError, EngineRequest
from lumos.spark.engine_record import EngineFolder, EngineRecord
from lumos.spark.session import local_session
from lumos.spark.settings import SparkSettings
from lumos.spark.warm_up import warm_up

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PLUGIN = "org.apache.spark.sql.connect.SparkConnectPlugin"
_WARM = "--warm"
_WARM_SECONDS = 300
_SECONDS_BETWEEN_LOOKS = 1.0
_SECONDS_A_MINUTE = 60


def main(arguments: list[str]) -> int:
    """Be an engine, or, with `--warm`, its first user."""
    if arguments[0] == _WARM:
        _be_first_user(port=int(arguments[1]), token=sys.stdin.read())
        return 0
    folder = EngineFolder(Path(arguments[0]))
    request = EngineRequest.model_validate_json(sys.stdin.read())
    told_to_end = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: told_to_end.set())
    with folder.life() as alone:
        try:
            if not alone:
                raise EngineError("another one is being started", hint="try again")
            with _engine(request, folder) as (record, driver):
                folder.write(record)
                _answer(EngineAnswer())
                _serve(record, folder, driver=driver, told_to_end=told_to_end)
        except LumosError as error:
            _answer(EngineAnswer(problem=error.message, hint=error.hint))
            return 1
        finally:
            if alone:
                folder.forget()
    return 0


@contextmanager
def _engine(
    request: EngineRequest, folder: EngineFolder
) -> Iterator[tuple[EngineRecord, subprocess.Popen[bytes]]]:
    token = secrets.token_urlsafe(32)
    with local_session(
        _settings(request, token=token),
        environment=os.environ,
        cache_dir=Path(request.cache_dir),
        log=folder.log,
    ) as session:
        port = _port(session)
        _warm(port, token)
        record = EngineRecord(
            pid=os.getpid(),
            port=port,
            token=token,
            host=socket.gethostname(),
            software=request.software,
            settings=request.settings,
            lumos=lumos.__version__,
            spark=session.version,
            java=_java_version(session),
            master=request.master,
            started_at=datetime.now(UTC),
            idle_minutes=request.idle_minutes,
            log=str(folder.log),
        )
        driver: subprocess.Popen[bytes] = session.sparkContext._gateway.proc  # type: ignore[union-attr]
        yield record, driver


def _settings(request: EngineRequest, *, token: str) -> SparkSettings:
    plugins = request.options.get("spark.plugins")
    own = {
        "spark.connect.authenticate.token": token,
        "spark.connect.grpc.binding.address": LOOPBACK,
        "spark.connect.grpc.binding.port": "0",
        "spark.connect.grpc.debug.enabled": "false",  # it would describe the service to anybody
        "spark.connect.progress.reportInterval": "500ms",
        # A client that waits for events, such as `lumos watch`, asks for nothing for hours.
        "spark.connect.session.manager.defaultSessionTimeout": "7d",
        "spark.plugins": f"{plugins},{_PLUGIN}" if plugins else _PLUGIN,
        # Sessions of one user need no separate files; with them, each would start new workers.
        "spark.sql.artifact.isolation.enabled": "false",
    }
    return SparkSettings(
        master=request.master,
        app_name="lumos-engine",
        driver_memory=request.driver_memory,
        conf=RawSettings({**request.options, **own}),
    )


def _port(session: SparkSession) -> int:
    services = session._jvm.org.apache.spark.sql.connect.service  # type: ignore[union-attr]
    return int(getattr(getattr(services, "SparkConnectService$"), "MODULE$").localPort())


def _java_version(session: SparkSession) -> str:
    return str(session._jvm.java.lang.System.getProperty("java.version"))  # type: ignore[union-attr]


def _warm(port: int, token: str) -> None:
    """Let another process be the first user: this one cannot be server and client at once.

    Raises:
        EngineError: not even a small job runs.
    """
    try:
        subprocess.run(
            [sys.executable, "-m", PROCESS, _WARM, str(port)],
            check=True,
            input=token,
            stdout=subprocess.DEVNULL,
            text=True,
            timeout=_WARM_SECONDS,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise EngineError("a first small job failed on it") from error


def _be_first_user(*, port: int, token: str) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="lumos-warm-") as folder,
        loopback_session(SparkSettings(), port=port, token=token) as session,
    ):
        warm_up(session, Path(folder) / "table")


def _serve(
    record: EngineRecord,
    folder: EngineFolder,
    *,
    driver: subprocess.Popen[bytes],
    told_to_end: threading.Event,
) -> None:
    last_use = time.monotonic()
    while not told_to_end.wait(_SECONDS_BETWEEN_LOOKS):
        if driver.poll() is not None or folder.read() != record:
            return
        with folder.disuse() as unused:
            if not unused:
                last_use = time.monotonic()
            elif time.monotonic() - last_use > record.idle_minutes * _SECONDS_A_MINUTE:
                folder.forget()
                return


def _answer(answer: EngineAnswer) -> None:
    sys.stdout.write(answer.model_dump_json() + "\n")
    sys.stdout.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
