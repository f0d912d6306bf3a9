"""Pipes, sockets and devices are refused wherever a file is expected: no command waits for one."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from command_line import JANUARY, Lumos, Result, run_in_shell
from lumos.core.regular_files import NotRegularError, open_regular, read_regular

MOST_SECONDS = 60
PIPE = "it is a pipe, not a regular file"


def run(*arguments: str, folder: Path) -> Result:
    """Run a command that has to end by itself."""
    done = subprocess.run(
        [sys.executable, "-m", "lumos", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=MOST_SECONDS,
        stdin=subprocess.DEVNULL,
    )
    return Result(done.returncode, done.stdout, done.stderr)


NAMED = {
    "import": ("import", "--input", "pipe"),
    "validate": ("validate", "pipe"),
    "diff": ("diff", "--source", JANUARY, "--target", "pipe"),
    "export": ("export", "--snapshot", "pipe", "--output", "out.json"),
    "verify": ("snapshot", "verify", "pipe"),
    "sign": ("snapshot", "sign", "sealed.json", "--key", "pipe"),
    "versions": ("version", "compute", "--from", JANUARY, "--to", "pipe"),
    "settings": ("--config", "pipe", "search", "orders"),
    "owners": ("ownership", "assign", "pipe"),
    "enrichment": ("enrich", "pipe"),
}


@pytest.mark.parametrize("command", NAMED)
def test_a_pipe_that_is_named_as_a_file_is_refused(
    lumos: Lumos, project: Path, command: str
) -> None:
    os.mkfifo(project / "pipe")
    assert lumos("export", "--snapshot", JANUARY, "--output", "sealed.json").exit_code == 0

    result = run(*NAMED[command], folder=project)

    assert result.exit_code not in {0, 1}, result.stdout
    assert "not a regular file" in result.stderr
    assert "pipe" in result.error_line


def test_a_pipe_in_place_of_a_part_or_manifest_or_signature_is_refused(
    lumos: Lumos, project: Path
) -> None:
    assert lumos("export", "--snapshot", JANUARY, "--output", "good/").exit_code == 0
    (part,) = (path.name for path in (project / "good").glob("datasets-*"))
    for name in (part, "manifest.json", "manifest.json.sig"):
        folder = project / f"with-{name}"
        shutil.copytree(project / "good", folder)
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)

        result = run("snapshot", "verify", folder.name, folder=project)

        assert result.exit_code not in {0, 1}
        assert PIPE in result.stdout + result.stderr


def test_a_pipe_in_the_state_folder_holds_no_command(lumos: Lumos, project: Path) -> None:
    assert lumos("import", JANUARY).exit_code == 0
    assert lumos("snapshot", "create").exit_code == 0
    store = project / ".lumos" / "snapshots"
    (manifest,) = store.glob("*/manifest.json")
    for path in (manifest, store / ".made-of.json"):
        path.unlink(missing_ok=True)
        os.mkfifo(path)

    listed = run("snapshot", "list", folder=project)
    again = run("import", JANUARY, folder=project)

    assert listed.exit_code in {0, 3}
    assert PIPE in listed.stdout + listed.stderr
    assert again.exit_code == 0, again.stderr


def test_a_pipe_in_place_of_the_file_of_variables_is_refused(project: Path) -> None:
    (project / "lumos.yaml").write_text("lumos: {}\n", encoding="utf-8")
    os.mkfifo(project / ".env")
    result = run("search", "orders", folder=project)
    assert result.exit_code not in {0, 1}
    assert "not a regular file" in result.error_line


def test_a_device_behind_a_symlink_is_refused(project: Path) -> None:
    (project / "zero.json").symlink_to("/dev/zero")
    result = run("validate", "zero.json", folder=project)
    assert "it is a device, not a regular file" in result.error_line


def test_a_socket_is_refused(project: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(project / "socket.json"))
        result = run("validate", "socket.json", folder=project)
    assert "not a regular file" in result.error_line


def test_a_process_substitution_is_refused_and_standard_input_is_taken(project: Path) -> None:
    refused = run_in_shell(f"lumos validate <(cat {JANUARY})", folder=project)
    taken = run_in_shell(f"cat {JANUARY} | lumos validate -", folder=project)
    assert PIPE in refused.error_line
    assert "take - for standard input" in refused.error_line
    assert taken.exit_code == 0, taken.stderr


def made_fifo(path: Path) -> None:
    os.mkfifo(path)


def made_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def made_terminal(path: Path) -> None:
    path.symlink_to("/dev/tty")


@pytest.mark.parametrize("make", [made_fifo, made_device, made_terminal])
def test_what_is_opened_is_looked_at_not_what_was_named(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    make(tmp_path / "file")
    with pytest.raises(NotRegularError, match="not a regular file"):
        open_regular(tmp_path / "file")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        open_regular(tmp_path)


def test_a_small_file_is_read_only_while_it_is_small(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert read_regular(path, most=5) == b"12345"
    with pytest.raises(OSError, match="larger than 4 bytes"):
        read_regular(path, most=4)
