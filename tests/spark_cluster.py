"""A real standalone Spark cluster, and a Spark Connect server, from the programs in the wheel."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from lumos.spark.driver import SHORT_LIFE
from lumos.spark.java import find_java, spark_environment
from ports import free_port

HOST = "127.0.0.1"
WORKERS = 2
START_SECONDS = 600
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"


@contextmanager
def running_cluster(folder: Path) -> Iterator[str]:
    """Yield the URL of a master with two workers of one core each, and end all three afterwards."""
    programs = _spark_home() / "bin"
    port, pages = free_port(), free_port()
    url = f"spark://{HOST}:{port}"
    # Workers find the master again when it comes later, so all three may start at once.
    master = ["--host", HOST, "--port", str(port), "--webui-port", str(pages)]
    commands = {"master": [str(programs / "spark-class"), _MASTER, *master]}
    for number in range(WORKERS):
        work = folder / f"work-{number}"
        commands[f"worker-{number}"] = [
            str(programs / "spark-class"), _WORKER, "--host", HOST, "--port", str(free_port()),
            "--webui-port", str(free_port()), "--cores", "1", "--memory", "1g",
            "--work-dir", str(work), url,
        ]  # fmt: skip
    with ExitStack() as stack:
        processes = [
            stack.enter_context(_running(command, log=folder / f"{name}.log"))
            for name, command in commands.items()
        ]
        _wait_for(lambda: _alive_workers(pages) == WORKERS, processes=processes, folder=folder)
        yield url


@contextmanager
def running_connect_server(folder: Path) -> Iterator[str]:
    """Yield the address of a Spark Connect server on two local cores, and end it afterwards."""
    port = free_port()
    options = {
        "spark.connect.grpc.binding.address": HOST,
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.bindAddress": HOST,
        "spark.driver.host": HOST,
        "spark.driver.extraJavaOptions": " ".join(SHORT_LIFE),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
    }
    command = [str(_spark_home() / "bin" / "spark-submit"), "--master", "local[2]"]
    command += ["--class", _CONNECT, *(f"--conf={name}={value}" for name, value in options.items())]
    with _running([*command, "spark-internal"], log=folder / "connect.log") as process:
        _wait_for(lambda: _answers(port), processes=[process], folder=folder)
        yield f"sc://{HOST}:{port}"


def cluster_environment() -> dict[str, str]:
    """Return the environment of this process with the Java of the wheel alone."""
    home = os.environ.get("HOME", str(Path.home()))
    runtime = find_java({"HOME": home})
    return {**os.environ, **spark_environment(runtime), "SPARK_LOCAL_IP": HOST}


@contextmanager
def _running(command: list[str], *, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    environment = cluster_environment() | _quick_daemons()
    with log.open("wb") as output:
        # A group of its own, so that its executors end with it.
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        # The group has a process as long as its leader has not been waited for.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _quick_daemons() -> dict[str, str]:
    options = " ".join(SHORT_LIFE)
    return {
        "SPARK_DAEMON_JAVA_OPTS": options,
        "SPARK_DAEMON_MEMORY": "600m",
        "SPARK_LAUNCHER_OPTS": options,
    }


def _wait_for(
    is_ready: Callable[[], bool], *, processes: list[subprocess.Popen[bytes]], folder: Path
) -> None:
    end = time.monotonic() + START_SECONDS
    while not is_ready():
        # Not poll(): it would free the id by which the group is killed.
        ended = [each.pid for each in processes if _has_ended(each.pid)]
        if ended or time.monotonic() > end:
            logs = "\n".join(path.read_text()[-2_000:] for path in sorted(folder.glob("*.log")))
            raise RuntimeError(f"Spark's own processes did not start:\n{logs}")
        time.sleep(0.2)


def _has_ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _alive_workers(pages: int) -> int:
    # A master that just started answers with its front page, until the page of figures is there.
    try:
        with urllib.request.urlopen(f"http://{HOST}:{pages}/json/", timeout=5) as answer:
            return int(json.load(answer)["aliveworkers"])
    except (OSError, http.client.HTTPException, json.JSONDecodeError):
        return 0


def _answers(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), timeout=5).close()
    except OSError:
        return False
    return True


def _spark_home() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent
