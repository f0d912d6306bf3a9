from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

TOOL = str(Path(__file__).parents[2] / "tools" / "side_by_side.py")
# `meet` and `greet` end only if both run at the same time.
MAKEFILE = """
good:
	@echo good output
bad:
	@echo bad output >&2; exit 3
other:
	@echo other output
meet:
	@touch met; while [ ! -e greeted ]; do sleep 0.05; done
greet:
	@touch greeted; while [ ! -e met ]; do sleep 0.05; done
endless:
	@echo $$$$ > pid; exec sleep 600
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "Makefile").write_text(MAKEFILE)
    return tmp_path


def side_by_side(folder: Path, *targets: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, TOOL, *targets]
    return subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)


def results(output: str) -> dict[str, str]:
    return dict(re.findall(r"^(\S+) +\d+ s  (\w.*)$", output, flags=re.MULTILINE))


def test_targets_run_at_the_same_time(folder: Path) -> None:
    done = side_by_side(folder, "meet", "greet")

    assert done.returncode == 0
    assert results(done.stdout) == {"meet": "passed", "greet": "passed"}


@pytest.mark.parametrize("targets", [("bad", "good"), ("good", "bad")])
def test_one_that_fails_fails_the_whole_and_keeps_no_other_from_running(
    folder: Path, targets: tuple[str, str]
) -> None:
    done = side_by_side(folder, *targets)

    assert done.returncode == 1
    assert results(done.stdout) == {"good": "passed", "bad": "failed"}
    assert "good output\n" in done.stdout
    assert "bad output\n" in done.stdout


def test_the_output_of_a_target_stands_below_its_name_in_one_piece(folder: Path) -> None:
    done = side_by_side(folder, "good", "other", "meet", "greet")

    assert "=== good passed\ngood output\n" in done.stdout
    assert "=== other passed\nother output\n" in done.stdout


def test_a_target_runs_after_another_one_only_if_that_one_passed(folder: Path) -> None:
    done = side_by_side(folder, "good+other", "bad+meet")

    assert done.returncode == 1
    assert results(done.stdout) == {
        "good": "passed",
        "other": "passed",
        "bad": "failed",
        "meet": "not run",
    }


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_all_targets(folder: Path, number: signal.Signals) -> None:
    command = [sys.executable, TOOL, "good", "endless"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL) as process:
        pid = waited_for_pid(folder / "pid")
        process.send_signal(number)
        assert process.wait() == 130

    wait_until_gone(pid)


def wait_until_gone(pid: int) -> None:
    while True:  # one that was not waited for is still there for a moment
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)


def waited_for_pid(path: Path) -> int:
    while not path.exists() or not path.read_text().strip():
        time.sleep(0.05)
    return int(path.read_text())
