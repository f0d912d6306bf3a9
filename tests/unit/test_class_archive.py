"""An archive is used only as it was made."""

from __future__ import annotations

import json
import os
import stat
import time
from pathlib import Path

import pytest

from lumos.spark import class_archive
from lumos.spark.class_archive import ClassArchive


@pytest.fixture
def archive(tmp_path: Path) -> ClassArchive:
    made = tmp_path / "made"
    made.write_bytes(b"classes" * 1_000)
    archive = ClassArchive(tmp_path / "java.jsa", java_major=25)
    archive.put(made)
    return archive


def test_an_archive_is_whole_until_it_is_written_to(archive: ClassArchive) -> None:
    assert archive.is_whole()
    with archive.path.open("r+b") as file:
        file.seek(3_000)
        file.write(b"?")

    assert not archive.is_whole()
    assert not archive.path.exists()
    assert not archive.seal.exists()


def test_one_that_was_cut_off_is_removed(archive: ClassArchive) -> None:
    os.truncate(archive.path, 1_000)

    assert not archive.is_whole()
    assert not archive.is_there


def test_one_that_was_only_touched_is_checked_once(
    archive: ClassArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.utime(archive.path, ns=(1, 1))
    assert archive.is_whole()
    monkeypatch.setattr(class_archive, "_checksum", lambda _: pytest.fail("checked again"))

    assert archive.is_whole()


def test_after_a_start_of_the_machine_it_is_checked_again(
    archive: ClassArchive, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    status = archive.path.stat()
    archive.path.write_bytes(b"blanks." * 1_000)
    os.utime(archive.path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert archive.is_whole(), "nothing tells that it was written to"
    (tmp_path / "boot").write_text("another")
    monkeypatch.setattr(class_archive, "_BOOT_ID", tmp_path / "boot")

    assert not archive.is_whole()


@pytest.mark.parametrize("seal", ["", "null", "{}", json.dumps({"look": 1, "checksum": "x"})])
def test_a_seal_that_says_nothing_is_no_seal(archive: ClassArchive, seal: str) -> None:
    archive.seal.write_text(seal)

    assert not archive.is_whole()


def test_an_archive_without_a_seal_is_not_there(archive: ClassArchive) -> None:
    archive.seal.unlink()

    assert not archive.is_there
    assert not archive.is_whole()


def test_a_system_that_does_not_tell_when_it_started_will_do(
    archive: ClassArchive, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(class_archive, "_BOOT_ID", tmp_path / "none")

    assert archive.is_whole()


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o757])
def test_an_archive_that_others_could_have_written_is_removed(
    archive: ClassArchive, mode: int
) -> None:
    archive.path.parent.chmod(mode)

    assert not archive.is_whole()
    assert not archive.is_there, "the next one is made in a private folder"

    archive.prepare_folder()
    assert stat.S_IMODE(archive.path.parent.stat().st_mode) == 0o700


def test_an_archive_that_others_may_only_read_is_used(archive: ClassArchive) -> None:
    archive.path.parent.chmod(0o755)
    archive.path.chmod(0o444)

    assert archive.is_whole()


def test_leftovers_of_a_clock_ahead_are_swept_and_those_of_now_are_not(tmp_path: Path) -> None:
    from lumos.spark.archive_trainer import _MAKING, _sweep

    hours = {"old": -2, "ahead": 24 * 365, "new": 0}
    for name, offset in hours.items():
        folder = tmp_path / f"{_MAKING}{name}"
        folder.mkdir()
        moment = time.time() + 3_600 * offset
        os.utime(folder, (moment, moment))

    _sweep(tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == [f"{_MAKING}new"]
