"""Folders that commands need for a while, where several commands run at once."""

from __future__ import annotations

import fcntl
import os
import stat
from pathlib import Path

import pytest

from lumos.feature.importing import buckets as import_buckets
from lumos.feature.snapshot import scratch
from lumos.feature.snapshot.scratch import Scratch


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_a_folder_that_is_being_made_is_not_swept_away_by_another_command(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = fcntl.flock

    def after_others_have_swept(descriptor: int, operation: int) -> None:
        if operation == fcntl.LOCK_SH:
            scratch._sweep(place)
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", after_others_have_swept)
    made = Scratch()

    assert made.folder.is_dir()
    made.close()


def test_what_a_killed_command_left_goes_and_what_a_living_one_has_stays(place: Path) -> None:
    living = Scratch()
    left = place / "lumos-scratch-left"
    left.mkdir()
    os.close(os.open(left / "owner.lock", os.O_RDWR | os.O_CREAT, 0o600))

    other = Scratch()

    assert not left.exists()
    assert living.folder.is_dir()
    living.close()
    other.close()
    assert [*place.iterdir()] == []


def test_a_lock_that_is_a_link_is_not_followed(place: Path) -> None:
    (place / "target").touch()
    planted = place / "lumos-scratch-planted"
    planted.mkdir()
    (planted / "owner.lock").symlink_to(place / "target")

    Scratch().close()

    assert planted.exists()


def test_the_folder_of_an_import_is_private_and_can_be_swept(place: Path) -> None:
    with import_buckets._sorter():
        (folder,) = place.iterdir()
        assert folder.name.startswith("lumos-scratch-")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
