"""Who can read what commands write: the state only its user, exports whoever the umask allows."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from command_line import FEBRUARY, JANUARY, Lumos

UMASKS = (0o000, 0o022)


@pytest.fixture(params=UMASKS, ids="umask {:03o}".format)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    try:
        yield request.param
    finally:
        os.umask(before)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def modes_below(folder: Path) -> dict[str, str]:
    """Return what is not private of a folder and all in it, with its mode."""
    entries = [folder, *folder.rglob("*")]
    expected = {path: 0o700 if path.is_dir() else 0o600 for path in entries}
    return {
        str(path.relative_to(folder)): oct(mode_of(path))
        for path, mode in expected.items()
        if mode_of(path) != mode
    }


def fill(lumos: Lumos) -> None:
    for command in (
        ("init",),
        ("import", JANUARY),
        ("snapshot", "create"),
        ("import", FEBRUARY),
        ("snapshot", "create"),
        ("version", "compute"),
        ("sync", "--all", "--output", "sqlite:///other/copy.db"),
        ("migrate", "--from", "embedded", "--to", "sqlite:///moved.db"),
    ):
        assert (done := lumos(*command)).exit_code == 0, (command, done.stdout, done.stderr)


def test_only_the_user_can_read_the_state(lumos: Lumos, project: Path, umask: int) -> None:
    fill(lumos)
    names = {path.name for path in (project / ".lumos").iterdir()}
    assert {"lumos.db", "snapshots", "migrations"} <= names
    assert modes_below(project / ".lumos") == {}
    for database in ("other/copy.db", "moved.db"):
        assert mode_of(project / database) == 0o600


def test_the_umask_decides_who_can_read_an_export(lumos: Lumos, project: Path, umask: int) -> None:
    fill(lumos)
    for command in (
        ("export", "--output", "out.json"),
        ("export", "--output", "folder/"),
        ("report", "--output", "report.html"),
    ):
        assert (done := lumos(*command)).exit_code == 0, (command, done.stderr)
    assert mode_of(project / "out.json") == 0o666 & ~umask
    assert mode_of(project / "report.html") == 0o666 & ~umask
    assert mode_of(project / "folder") == 0o777 & ~umask
    assert {mode_of(path) for path in (project / "folder").iterdir()} == {0o666 & ~umask}


def loosen(folder: Path) -> None:
    for path in [*folder.rglob("*"), folder]:
        path.chmod(0o775 if path.is_dir() else 0o664)


def test_a_state_folder_of_an_earlier_lumos_is_tightened_by_the_next_write(
    lumos: Lumos, project: Path
) -> None:
    fill(lumos)
    loosen(project / ".lumos")
    assert lumos("show", "lumos://postgres/shop/public/orders").exit_code == 0
    assert mode_of(project / ".lumos") == 0o775
    assert lumos("import", JANUARY).exit_code == 0
    assert modes_below(project / ".lumos") == {}


def test_a_folder_that_holds_other_things_too_keeps_its_mode(lumos: Lumos, project: Path) -> None:
    project.chmod(0o755)
    script = project / "run.sh"
    script.touch()
    script.chmod(0o755)
    assert lumos("--state-dir", ".", "import", JANUARY).exit_code == 0
    (project / "lumos.db").chmod(0o644)
    assert lumos("--state-dir", ".", "import", FEBRUARY).exit_code == 0
    assert (mode_of(project), mode_of(script)) == (0o755, 0o755)
    assert mode_of(project / "lumos.db") == 0o600


def test_a_state_folder_that_all_users_share_keeps_its_mode(lumos: Lumos, project: Path) -> None:
    shared = project / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    assert lumos("--state-dir", "shared", "import", JANUARY).exit_code == 0
    assert mode_of(shared) == 0o1777
    assert mode_of(shared / "lumos.db") == 0o600


def test_a_database_that_users_share_by_its_address_keeps_its_mode(
    lumos: Lumos, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LUMOS_DATABASE_URL", "sqlite:///team/lumos.db")
    assert lumos("import", JANUARY).exit_code == 0
    (project / "team").chmod(0o2770)
    (project / "team" / "lumos.db").chmod(0o660)
    assert lumos("import", FEBRUARY).exit_code == 0
    assert mode_of(project / "team") == 0o2770
    assert mode_of(project / "team" / "lumos.db") == 0o660
