"""Jobs for tests that need a Spark of their own: `spark_jobs.py JOB SETTINGS CACHE`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typing_extensions import override

from lumos.core.errors import LumosError
from lumos.spark import session as session_module
from lumos.spark.class_archive import SWITCH
from lumos.spark.session import spark_session
from lumos.spark.settings import SparkSettings

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


JAVA = "LUMOS_TEST_JAVA_HOME"
STUCK = "LUMOS_TEST_STUCK_JAVA"


def squares(session: SparkSession) -> dict[str, object]:
    """Square numbers in Python on every executor, and tell which ones did."""

    def squared(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import time

        import pyarrow as pa

        # Long enough that no executor can take all tasks.
        time.sleep(0.5)
        for batch in batches:
            numbers = [int(value) ** 2 for value in batch.column("id").to_numpy()]
            # The parent of a Python worker is the daemon of its executor.
            yield pa.RecordBatch.from_pydict(
                {
                    "square": numbers,
                    "executor": [str(os.getppid())] * len(numbers),
                    "python": [sys.prefix] * len(numbers),
                }
            )

    frame = session.range(0, 1_000, numPartitions=4).mapInArrow(
        squared, "square long, executor string, python string"
    )
    row = frame.selectExpr(
        "sum(square) AS total",
        "sort_array(collect_set(executor)) AS executors",
        "collect_set(python) AS pythons",
    ).first()
    assert row is not None
    return {**row.asDict(), "time_zone": session.conf.get("spark.sql.session.timeZone")}


def levers(session: SparkSession) -> dict[str, object]:
    """Tell with which flags the JVM was started and which archives of classes it has mapped.

    Java's own archive, which lies beside its libraries, is not counted.
    """
    management = session._jvm.java.lang.management.ManagementFactory  # type: ignore[union-attr]
    pid = session.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
    maps = Path(f"/proc/{pid}/maps").read_text()
    mapped = {line.split(maxsplit=5)[-1] for line in maps.splitlines() if ".jsa" in line}
    options = dict(session.sparkContext.getConf().getAll())
    return {
        "arguments": list(management.getRuntimeMXBean().getInputArguments()),
        "mapped": sorted(path for path in mapped if Path(path).parent.name != "server"),
        "count": session.range(10).count(),
        "command_line": Path(f"/proc/{pid}/cmdline").read_text(),
        "jvm": pid,
        "master": session.conf.get("spark.master"),
        "options": {name: value for name, value in options.items() if "hadoop" in name},
    }


JOBS: dict[str, Callable[[SparkSession], dict[str, object]]] = {
    "levers": levers,
    "squares": squares,
}


def run_job(job: str, *, cache: Path, **settings: object) -> dict[str, object]:
    """Run a job in a process of its own that prints nothing but its answer."""
    (answer,) = run_jobs(job, [settings], cache=cache)
    return answer


def run_jobs(
    job: str,
    settings: Sequence[Mapping[str, object]],
    *,
    cache: Path,
    java_home: Path | None = None,
    stuck: Path | None = None,
) -> list[dict[str, object]]:
    """Run a job with one session after the other in the same process.

    Args:
        job: a name in `JOBS`.
        settings: the `spark` part of the settings of each session.
        cache: the folder with the class archive.
        java_home: the Java to use instead of the one that `lumos` finds.
        stuck: a file that Java makes when it hangs. A start with a class archive is given up a
            second later.
    """
    named = {JAVA: java_home, STUCK: stuck}
    own_java = {name: str(path) for name, path in named.items() if path}
    process = subprocess.run(
        [sys.executable, __file__, job, json.dumps(settings), cache],
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | {SWITCH: "existing"} | own_java,
    )
    assert process.returncode == 0, process.stderr
    assert process.stderr == ""
    answers: list[dict[str, object]] = json.loads(process.stdout)
    return answers


@contextmanager
def normal_priority(folder: Path) -> Iterator[None]:
    """Let Python processes that start meanwhile keep their priority.

    A class archive is made at the lowest one, at which it would not get on beside busy tests.
    """
    (folder / "sitecustomize.py").write_text("import os\n\nos.nice = lambda _: 0\n")
    paths = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", paths)
        yield


def timer_from(sign: Path) -> type[threading.Timer]:
    """Return a timer that counts its seconds from when a file is there."""

    class Timer(threading.Timer):
        @override
        def run(self) -> None:
            while not sign.exists() and not self.finished.wait(0.05):
                pass
            super().run()

    return Timer


def main(job: str, settings: str, cache: str) -> None:
    answers = [answer_of(job, values, cache=Path(cache)) for values in json.loads(settings)]
    sys.stdout.write(json.dumps(answers))


def answer_of(job: str, values: dict[str, object], *, cache: Path) -> dict[str, object]:
    settings = SparkSettings.model_validate(values)
    before = dict(os.environ)
    # The Java that `lumos` would find, for which `make spark-archive` has made an archive.
    names = ("HOME", "JAVA_HOME", "PATH", "XDG_CACHE_HOME", SWITCH)
    known = {name: os.environ[name] for name in names if name in os.environ}
    if home := os.environ.get(JAVA):
        known["JAVA_HOME"] = home
    if sign := os.environ.get(STUCK):
        session_module._ARCHIVE_SECONDS = 1.0
        threading.Timer = timer_from(Path(sign))  # type: ignore[misc]
    try:
        with spark_session(settings, environment=known, cache_dir=cache) as session:
            answer = JOBS[job](session)
    except LumosError as error:
        answer = {"error": error.as_json()}
    answer["environment_is_restored"] = dict(os.environ) == before
    return answer


if __name__ == "__main__":
    main(*sys.argv[1:])
