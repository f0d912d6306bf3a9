"""The digest of a local folder: it tells that a listing would find nothing new."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lumos.core.storage.local import LocalSource


def fingerprint(folder: Path, **given: object) -> str | None:
    source = {"name": "lake", "path": str(folder), "patterns": ("*.csv",), **given}
    return LocalSource.model_validate(source).open().fingerprint("")


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    folder = tmp_path / "lake"
    for path in ("a/1.csv", "a/2.csv", "b/_delta_log/0.json", "b/x.parquet", ".hidden/y.csv"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("id\n")
    return folder


def move(path: Path, to: Path) -> None:
    times = path.stat()
    path.rename(to)
    os.utime(to, ns=(times.st_atime_ns, times.st_mtime_ns))


CHANGES: dict[str, Callable[[Path], object]] = {
    "a file is added": lambda lake: (lake / "a/3.csv").write_text(""),
    "a file is removed": lambda lake: (lake / "a/2.csv").unlink(),
    "a file grows": lambda lake: (lake / "a/2.csv").write_text("id\n1\n"),
    "a file is written again": lambda lake: os.utime(lake / "a/2.csv", ns=(1, 1)),
    "a file is renamed": lambda lake: move(lake / "a/2.csv", lake / "a/4.csv"),
    "a file is moved": lambda lake: move(lake / "a/2.csv", lake / "b/2.csv"),
    "a folder is renamed": lambda lake: (lake / "a").rename(lake / "c"),
    "a folder is added": lambda lake: (lake / "c").mkdir(),
    "a log grows": lambda lake: (lake / "b/_delta_log/1.json").write_text("{}"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_any_change_of_a_folder_changes_its_fingerprint(lake: Path, change: str) -> None:
    before = fingerprint(lake)
    assert before == fingerprint(lake)
    CHANGES[change](lake)
    assert fingerprint(lake) not in {None, before}


def test_a_hidden_folder_is_not_looked_at(lake: Path) -> None:
    before = fingerprint(lake)
    (lake / ".hidden/z.csv").write_text("id\n")
    assert fingerprint(lake) == before
    assert fingerprint(lake, skip=(str(lake / "a"),)) != before


@pytest.mark.parametrize(
    "given",
    [{"patterns": ("*",)}, {"exclude": ("2.csv",)}, {"follow_symlinks": "all"}],
    ids=lambda given: next(iter(given)),
)
def test_other_files_are_wanted(lake: Path, given: dict[str, object]) -> None:
    assert fingerprint(lake, **given) != fingerprint(lake)


def test_a_symlink_and_a_folder_that_cannot_be_listed_need_a_listing(
    lake: Path, tmp_path: Path
) -> None:
    (lake / "b/link.csv").symlink_to(lake / "a/1.csv")
    assert fingerprint(lake) is None
    assert fingerprint(tmp_path / "missing") is None
    assert fingerprint(lake / "a/1.csv") is None
