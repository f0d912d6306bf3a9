"""The package that the how-to on sources builds is installed, kept to the contract and used."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from command_line import ROOT, run_in_child
from documented_console import (
    FILE_WORK,
    NOT_RUN,
    Shown,
    blocks_in,
    differs,
    included_file,
    show_file,
    shown_in,
    work_on_files,
)

PAGE = ROOT / "docs" / "how-to" / "add-a-source.md"
PLUGINS = ROOT / "examples" / "plugins"


@pytest.mark.spark
def test_the_commands_of_the_page_run_with_the_package_that_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("LUMOS_PLATFORM", "LUMOS_DATABASE_URL", "LUMOS_STATE_DIR"):
        monkeypatch.delenv(variable, raising=False)
    package = tmp_path / "shop-plugins"
    write_package(package)
    monkeypatch.chdir(package)

    for shown in shown_in(PAGE.read_text("utf-8")):
        if shown.command.startswith("cat "):
            show_file(shown)
        elif shown.command.startswith(FILE_WORK):
            work_on_files(shown)
        elif shown.command.startswith("pip install ."):
            monkeypatch.setenv("PYTHONPATH", str(installed(package, tmp_path / "site")))
        elif shown.command.startswith("pytest "):
            assert not differs(shown, pytest_printed(shown, package))
        else:
            assert shown.is_lumos or shown.command.startswith(NOT_RUN), shown.command
            done = run_in_child(*shown.words[1:], folder=package)
            assert done.exit_code == shown.exit_code, (shown.command, done)
            text = done.stdout + done.stderr
            assert not differs(shown, text), f"{shown.command} printed:\n{text}"


def write_package(folder: Path) -> None:
    """Write every file that the page shows as a whole under the name in its caption."""
    for block in blocks_in(PAGE.read_text("utf-8")):
        file = included_file(block, PAGE)
        if file is not None and file.caption is not None:
            path = folder / file.caption
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(file.content, "utf-8")


def installed(package: Path, site: Path) -> Path:
    """Install a package into a folder, as far as Python and its entry points can tell."""
    project = tomllib.loads((package / "pyproject.toml").read_text("utf-8"))["project"]
    metadata = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    sections = (
        "\n".join([f"[{group}]", *(f"{name} = {target}" for name, target in points.items())])
        for group, points in project["entry-points"].items()
    )
    (metadata / "entry_points.txt").write_text("\n".join(sections))
    (site / "shop_plugins").symlink_to(package / "shop_plugins")
    return site


def pytest_printed(shown: Shown, folder: Path) -> str:
    """Run tests as somebody does who knows nothing of the tests of Lumos."""
    command = [sys.executable, "-m", *shown.words, "-p", "no:cacheprovider"]
    environment = {name: text for name, text in os.environ.items() if "PYTEST" not in name}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_the_package_of_the_page_is_the_one_of_the_examples(tmp_path: Path) -> None:
    write_package(tmp_path)
    written = {path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()}
    examples = {path.relative_to(PLUGINS) for path in PLUGINS.rglob("*.*") if path.is_file()}
    assert written == {path for path in examples if path.suffix in {".py", ".toml"}} - {
        Path("shop_plugins/__init__.py")  # the page makes it with a command
    }
    for path in written:
        assert (tmp_path / path).read_text("utf-8") == (PLUGINS / path).read_text("utf-8")
