from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lumos.core.errors import StateError, StateLockedError
from lumos.core.store.state_lock import StateLock

HOLD = """
import sys
from pathlib import Path
from lumos.core.store.state_lock import StateLock
with StateLock(Path(sys.argv[1])).acquire("ingest of lake"):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(folder: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_process_is_told_who_holds_the_lock_and_why(tmp_path: Path) -> None:
    with holder(tmp_path) as process:
        with (
            pytest.raises(StateLockedError) as caught,
            StateLock(tmp_path).acquire("import"),
        ):
            pass
        process.communicate()

    assert f"process {process.pid} " in caught.value.message
    assert "ingest of lake" in caught.value.message
    assert str(tmp_path) in caught.value.message
    assert caught.value.retryable
    assert caught.value.hint


def test_a_killed_holder_frees_the_lock(tmp_path: Path) -> None:
    with holder(tmp_path) as process:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()

        with StateLock(tmp_path).acquire("import"):
            assert "import" in (tmp_path / "writer.json").read_text()


def test_a_holder_that_ends_is_waited_for(tmp_path: Path) -> None:
    with holder(tmp_path) as process:
        assert process.stdin is not None
        process.stdin.close()

        with StateLock(tmp_path).acquire("import", timeout=600):
            pass


def test_the_lock_can_be_taken_again_also_after_an_error(tmp_path: Path) -> None:
    lock = StateLock(tmp_path / "new" / "state")

    with pytest.raises(RuntimeError, match="inside"), lock.acquire("first"):
        raise RuntimeError("inside")

    with lock.acquire("second"):
        pass
    assert not (tmp_path / "new" / "state" / "writer.json").exists()


def test_two_holders_in_one_process_exclude_each_other(tmp_path: Path) -> None:
    with (
        StateLock(tmp_path).acquire("first"),
        pytest.raises(StateLockedError, match="first"),
        StateLock(tmp_path).acquire("second"),
    ):
        pass


def test_a_holder_without_a_readable_note_is_still_a_holder(tmp_path: Path) -> None:
    with holder(tmp_path) as process:
        (tmp_path / "writer.json").write_text("not json")
        with (
            pytest.raises(StateLockedError, match="another Lumos process"),
            StateLock(tmp_path).acquire("import"),
        ):
            pass
        process.communicate()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with (
        pytest.raises(StateError, match="file"),
        StateLock(tmp_path / "file" / "state").acquire("import"),
    ):
        pass


def test_who_waits_is_told_for_whom(tmp_path: Path) -> None:
    told: list[str] = []
    with holder(tmp_path) as process:

        def release(text: str) -> None:
            told.append(text)
            os.kill(process.pid, signal.SIGKILL)

        with StateLock(tmp_path).acquire("import", 600, on_wait=release):
            pass

    (said,) = told
    assert f"process {process.pid} " in said
    assert "waiting up to 600 s" in said


def test_who_need_not_wait_is_told_nothing(tmp_path: Path) -> None:
    told: list[str] = []

    with StateLock(tmp_path).acquire("import", 600, on_wait=told.append):
        assert told == []
    with (
        holder(tmp_path) as process,
        pytest.raises(StateLockedError),
        StateLock(tmp_path).acquire("import", 0, on_wait=told.append),
    ):
        pass
    process.wait()

    assert told == []
