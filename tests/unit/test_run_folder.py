"""Folders of runs are private, and those of killed runs are removed by the next one."""

from __future__ import annotations

import os
import select
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lumos.core.store.state_folder import RUN_PREFIX
from lumos.spark.run_folder import run_folder, sweep

KEEPER = """
import os, subprocess, sys, time
from pathlib import Path
from lumos.spark.run_folder import run_folder
with run_folder(Path(sys.argv[1])) as folder:
    (folder.path / "deep").mkdir()
    (folder.path / "deep" / "secret").write_text("x")
    child = subprocess.Popen(["sleep", "600"], pass_fds=(folder.lock,), stdout=subprocess.DEVNULL)
    print(child.pid, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def run(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A process with a folder, and its child that inherited the lock."""
    process = subprocess.Popen(
        [sys.executable, "-c", KEEPER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    child = int(process.stdout.readline())
    yield process, child
    process.stdout.close()
    process.kill()
    process.wait()
    _kill(child)


def _kill(pid: int) -> None:
    """End a process that is no child of this one, and wait until it is gone."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    os.kill(pid, signal.SIGKILL)
    select.select([watched], [], [])
    os.close(watched)


def test_a_folder_is_private_whatever_the_umask_and_is_removed(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with run_folder(tmp_path) as folder:
            assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
            for file in folder.path.iterdir():
                assert stat.S_IMODE(file.stat().st_mode) == 0o600
            (folder.path / "a").mkdir()
            (folder.path / "a" / "b").touch()
    finally:
        os.umask(before)
    assert list(tmp_path.iterdir()) == []


def test_the_folder_of_a_living_run_is_left_alone(
    run: tuple[subprocess.Popen[str], int], tmp_path: Path
) -> None:
    before = set(tmp_path.rglob("*"))

    with run_folder(tmp_path):
        pass

    assert set(tmp_path.rglob("*")) == before


def test_the_folder_of_a_killed_run_stays_while_a_child_of_it_lives_and_goes_then(
    run: tuple[subprocess.Popen[str], int], tmp_path: Path
) -> None:
    process, child = run
    (folder,) = tmp_path.iterdir()
    process.kill()
    process.wait()

    sweep(tmp_path)
    assert (folder / "deep" / "secret").exists(), "the child may still write there"

    _kill(child)
    sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_removal_that_was_killed_is_completed(tmp_path: Path) -> None:
    (tmp_path / f"{RUN_PREFIX}0123").mkdir()

    sweep(tmp_path)

    assert list(tmp_path.iterdir()) == []


def test_a_sweep_follows_no_symlink_and_leaves_what_has_no_lock(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "run.lock").touch()
    (elsewhere / "kept").touch()
    (tmp_path / f"{RUN_PREFIX}link").symlink_to(elsewhere)
    unlocked = tmp_path / f"{RUN_PREFIX}unlocked"
    unlocked.mkdir()
    (unlocked / "kept").touch()
    linked = tmp_path / f"{RUN_PREFIX}linked"
    linked.mkdir()
    (linked / "run.lock").symlink_to(elsewhere / "run.lock")

    sweep(tmp_path)

    assert (elsewhere / "kept").exists()
    assert (unlocked / "kept").exists()
    assert linked.is_dir()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_the_folder_of_another_user_is_left_alone(tmp_path: Path) -> None:
    theirs = tmp_path / f"{RUN_PREFIX}theirs"
    theirs.mkdir()
    (theirs / "run.lock").touch()
    os.chown(theirs, 65534, 65534)

    sweep(tmp_path)

    assert (theirs / "run.lock").exists()
