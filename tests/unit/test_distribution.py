from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from distribution import (
    GROUP_OF_FIXTURE,
    LONG_FILES,
    group_of,
    usable_cores,
    usable_memory,
    worker_count,
)

TESTS = Path(__file__).parents[1]
GIB = 1024**3
CONFTEST = """
import pytest
from distribution import Distribution


def pytest_configure(config):
    config.pluginmanager.register(Distribution(config))


@pytest.fixture(scope="session")
def spark():
    return "the session"
"""
# Each waits for the other one, so both groups have to be on workers of their own.
SERVED = """
import time
from pathlib import Path


def test_served(spark):
    Path("{name}").touch()
    while not Path("alone").exists():
        time.sleep(0.05)
"""
ALONE = """
import time
from pathlib import Path


def test_alone():
    Path("alone").touch()
    while not (Path("a").exists()):
        time.sleep(0.05)
"""
CRASHING = """
import os


def test_before():
    pass


def test_that_ends_its_process():
    os._exit(3)


def test_behind():
    pass
"""
SLOW = """
import time


def test_slow():
    while True:
        time.sleep(1)


def test_behind():
    pass
"""
HANGING = """
import signal
import time


def test_that_takes_no_signal():
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    while True:
        time.sleep(1)
"""
SERVER = """
import time
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def server():
    Path("{name}.started").touch()
    yield
    time.sleep(12)  # pytest-xdist itself waits for ten seconds
    Path("{name}.stopped").touch()


def test_endless(server):
    while True:
        time.sleep(0.05)
"""
OPTIONS = (
    "-p", "xdist", "-p", "pytest_timeout", "-p", "no:cacheprovider", "-v", "-n", "2",
    "--dist=loadscope", "--no-loadscope-reorder", "--max-worker-restart=0",
)  # fmt: skip


def run(folder: Path, *options: str, **files: str) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text(CONFTEST)
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return subprocess.run(
        [sys.executable, "-m", "pytest", *OPTIONS, *options, "."],
        check=False,
        cwd=folder,
        capture_output=True,
        text=True,
        env=environment(),
    )


def environment() -> dict[str, str]:
    """Return an environment with the modules of the tests and without plugins of no use here."""
    return {**os.environ, "PYTHONPATH": str(TESTS), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def test_tests_of_one_server_share_a_worker_and_a_file_elsewhere_another(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        test_a=SERVED.format(name="a"),
        test_b=ALONE,
        test_c=SERVED.format(name="c"),
    )

    assert done.returncode == 0, done.stdout
    passed = re.findall(r"\[(gw\d)\] .* PASSED (\S+)", done.stdout)
    workers = {test: worker for worker, test in passed}
    assert workers["test_a.py::test_served"] == workers["test_c.py::test_served"]
    assert workers["test_a.py::test_served"] != workers["test_b.py::test_alone"]


@pytest.mark.parametrize("reaches_workers", [True, False])
def test_an_interrupted_run_stops_its_servers(tmp_path: Path, reaches_workers: bool) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    for name in ("a", "b"):
        (tmp_path / f"test_{name}.py").write_text(SERVER.format(name=name))
    command = [sys.executable, "-m", "pytest", *OPTIONS, "."]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        while len(list(tmp_path.glob("*.started"))) < 2:
            time.sleep(0.05)
        # A terminal interrupts all processes; `kill` only the one that it is given.
        (os.killpg if reaches_workers else os.kill)(process.pid, signal.SIGINT)
        assert process.wait() == pytest.ExitCode.INTERRUPTED

    assert {path.name for path in tmp_path.glob("*.stopped")} == {"a.stopped", "b.stopped"}


def test_a_worker_that_dies_fails_the_run_and_its_test_is_named(tmp_path: Path) -> None:
    quiet = "def test_quiet():\n    pass\n"

    done = run(tmp_path, test_a=CRASHING, test_b=quiet, test_c=quiet, test_d=quiet)

    assert done.returncode == 1
    assert "crashed while running 'test_a.py::test_that_ends_its_process'" in done.stdout
    assert "FAILED test_a.py::test_that_ends_its_process" in done.stdout


def test_a_test_past_its_time_fails_alone(tmp_path: Path) -> None:
    done = run(tmp_path, "-o", "timeout=1", test_a=SLOW)

    assert done.returncode == 1
    assert "FAILED test_a.py::test_slow - Failed: Timeout" in done.stdout
    assert "1 failed, 1 passed" in done.stdout


def test_a_test_that_hangs_past_all_signals_fails_the_run_with_its_stack(tmp_path: Path) -> None:
    limits = ("-o", "faulthandler_timeout=5", "-o", "faulthandler_exit_on_timeout=true")

    done = run(tmp_path, "-o", "timeout=2", *limits, test_a=HANGING)

    assert done.returncode == 1
    assert "FAILED test_a.py::test_that_takes_no_signal" in done.stdout
    assert "in test_that_takes_no_signal" in done.stdout + done.stderr


def test_the_same_limits_hold_in_this_project(pytestconfig: pytest.Config) -> None:
    assert pytestconfig.getini("faulthandler_exit_on_timeout") is True
    seconds = [float(pytestconfig.getini(name)) for name in ("timeout", "faulthandler_timeout")]
    assert seconds == sorted(seconds)
    assert pytestconfig.getoption("maxworkerrestart") == "0"


def test_every_file_that_starts_early_exists() -> None:
    assert [name for name in LONG_FILES if not (TESTS.parent / name).is_file()] == []


def test_tests_start_in_the_order_of_their_groups(tmp_path: Path) -> None:
    plain, own_jvm = (
        "def test_plain():\n    pass\n",
        "@pytest.mark.spark\ndef test_jvm():\n    pass\n",
    )
    done = run(
        tmp_path,
        "--collect-only",
        "-qq",
        "-n0",
        test_a=plain,
        test_b=f"import pytest\n\n\n{own_jvm}",
        test_c="def test_served(spark):\n    pass\n",
    )

    assert re.findall(r"^(test_\w).py::", done.stdout, flags=re.MULTILINE) == [
        "test_c",
        "test_b",
        "test_a",
    ]


def test_a_test_of_two_servers_belongs_to_the_first() -> None:
    fixtures = [*GROUP_OF_FIXTURE]
    assert group_of("tests/test_x.py::test_y", fixtures) == GROUP_OF_FIXTURE[fixtures[0]]
    assert group_of("tests/test_x.py::test_y", fixtures[::-1]) == GROUP_OF_FIXTURE[fixtures[0]]
    assert group_of("tests/test_x.py::test_y", ["tmp_path"]) == "tests/test_x.py"


@pytest.mark.parametrize(
    ("cores", "gib", "workers"), [(2, 24, 2), (16, 64, 16), (8, 8, 2), (4, 2, 1), (1, 64, 1)]
)
def test_there_is_a_worker_for_each_core_that_has_memory(
    cores: int, gib: int, workers: int
) -> None:
    assert worker_count(cores, gib * GIB) == workers


def test_this_machine_has_cores_and_memory() -> None:
    assert 1 <= usable_cores() <= (os.cpu_count() or 1)
    assert usable_memory() > GIB // 2
