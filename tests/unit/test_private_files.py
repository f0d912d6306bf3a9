"""Private folders and files: their modes under any umask, and what is refused."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lumos.core import private_files
from lumos.core.errors import NotPrivateError
from lumos.core.private_files import (
    make_private_folder,
    make_trusted_folder,
    open_trusted_file,
    private_opener,
    tighten,
    tighten_below,
    write_private_text,
)

UMASKS = (0o000, 0o022, 0o077, 0o377)
_SOMEBODY_ELSE = 54_321


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@contextmanager
def umask_of(umask: int) -> Iterator[None]:
    before = os.umask(umask)
    try:
        yield
    finally:
        os.umask(before)


def make_trusted(folder: Path) -> None:
    make_trusted_folder(folder, hint="")


def folder_of_another_user(tmp_path: Path) -> Path:
    if os.geteuid() != 0:
        return Path("/")
    folder = tmp_path / "another"
    folder.mkdir(mode=0o755)
    os.chown(folder, _SOMEBODY_ELSE, -1)
    return folder


@pytest.mark.parametrize("umask", UMASKS[:3])
@pytest.mark.parametrize("make", [make_private_folder, make_trusted])
def test_a_folder_and_its_new_parents_are_private_whatever_the_umask(
    tmp_path: Path, make: Callable[[Path], None], umask: int
) -> None:
    with umask_of(umask):
        make(tmp_path / "new" / "deep" / "folder")
        make(tmp_path / "new" / "deep" / "folder")
    assert [mode_of(tmp_path / name) for name in ("new", "new/deep", "new/deep/folder")] == [
        0o700
    ] * 3


def test_an_existing_trusted_folder_of_this_user_is_tightened(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o775)
    make_trusted(folder)
    assert mode_of(folder) == 0o700


@pytest.mark.parametrize("target", ["folder", "nowhere"])
def test_a_trusted_folder_is_no_symlink(tmp_path: Path, target: str) -> None:
    (tmp_path / "folder").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / target)
    with pytest.raises(NotPrivateError, match="link is not used: it is a symlink") as refused:
        make_trusted_folder(link, hint="choose another one")
    assert refused.value.hint == "choose another one"
    assert not (tmp_path / "nowhere").exists()


def test_a_trusted_folder_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotPrivateError, match="not a folder"):
        make_trusted_folder(tmp_path / "file", hint="")
    with pytest.raises(NotADirectoryError):
        make_private_folder(tmp_path / "file")


def test_a_folder_of_another_user_is_not_trusted(tmp_path: Path) -> None:
    with pytest.raises(NotPrivateError, match="belongs to another user"):
        make_trusted_folder(folder_of_another_user(tmp_path), hint="")


def test_what_belongs_to_another_user_is_not_tightened(tmp_path: Path) -> None:
    folder = folder_of_another_user(tmp_path)
    before = mode_of(folder)
    make_private_folder(folder)
    tighten(folder)
    assert mode_of(folder) == before


def test_all_that_lies_in_a_folder_is_tightened_but_what_links_lead_to(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    outside.chmod(0o755)
    top = tmp_path / "top"
    (top / "inner").mkdir(parents=True)
    (top / "inner" / "file").touch()
    (top / "link").symlink_to(outside)
    for path, mode in ((top / "inner" / "file", 0o666), (top / "inner", 0o700), (top, 0o777)):
        path.chmod(mode)
    tighten_below(top)
    assert mode_of(top) == 0o777
    assert mode_of(top / "inner" / "file") == 0o600
    tighten(top)
    assert mode_of(top) == 0o700
    assert mode_of(outside) == 0o755


@pytest.mark.parametrize("umask", UMASKS)
def test_a_new_file_is_private_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    with umask_of(umask):
        os.close(open_trusted_file(tmp_path / "trusted", os.O_RDWR | os.O_CREAT, hint=""))
        with open(tmp_path / "opened", "w", encoding="utf-8", opener=private_opener) as file:
            file.write("text")
        write_private_text(tmp_path / "written", "text")
    assert {path.name: mode_of(path) for path in tmp_path.iterdir()} == {
        "trusted": 0o600,
        "opened": 0o600,
        "written": 0o600,
    }
    assert (tmp_path / "written").read_text("utf-8") == "text"


def test_an_existing_file_of_this_user_is_tightened(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("trusted", "opened", "written")]
    for path in paths:
        path.touch()
        path.chmod(0o664)
    os.close(open_trusted_file(paths[0], os.O_RDONLY, hint=""))
    with open(paths[1], "a", encoding="utf-8", opener=private_opener):
        pass
    write_private_text(paths[2], "")
    assert [mode_of(path) for path in paths] == [0o600] * 3


def test_reading_changes_no_mode(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    path.chmod(0o644)
    with open(path, "rb", opener=private_opener):
        pass
    assert mode_of(path) == 0o644


def test_a_device_keeps_its_mode() -> None:
    before = mode_of(Path(os.devnull))
    with open(os.devnull, "w", encoding="utf-8", opener=private_opener):
        pass
    assert mode_of(Path(os.devnull)) == before


def test_a_trusted_file_is_no_symlink_and_no_pipe(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "file")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(NotPrivateError, match="it is a symlink"):
        open_trusted_file(tmp_path / "link", os.O_RDWR | os.O_CREAT, hint="")
    with pytest.raises(NotPrivateError, match="not a regular file"):
        open_trusted_file(tmp_path / "pipe", os.O_RDWR, hint="")


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    write_private_text(tmp_path / "file", "old")
    with pytest.raises(UnicodeEncodeError):
        write_private_text(tmp_path / "file", "new \udcff")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text("utf-8") == "old"


def test_what_is_for_reading_only_stays_so(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "file").touch()
    (folder / "file").chmod(0o444)
    folder.chmod(0o555)
    tighten(folder)
    assert (mode_of(folder), mode_of(folder / "file")) == (0o500, 0o400)


def test_a_folder_that_another_process_removes_at_once_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = private_files._make

    def made_and_removed(folder: Path) -> None:
        made(folder)
        folder.rmdir()

    monkeypatch.setattr(private_files, "_make", made_and_removed)
    make_private_folder(tmp_path / "store")  # whoever uses it finds out that it is not there


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("file", "link"):
        with pytest.raises(NotADirectoryError):
            make_private_folder(tmp_path / name)
