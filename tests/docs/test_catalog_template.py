"""The how-to for a catalog of one's own, followed to the letter with the template."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import ROOT

TEMPLATE = ROOT / "examples" / "catalog-template"
HOW_TO = ROOT / "docs" / "how-to" / "add-a-catalog.md"
COMMANDS = {
    # An environment of its own would have to be filled with all that Lumos needs.
    "pip": 'shift; exec "$PYTHON" -m uv pip install --quiet --offline --no-cache '
    '--python "$PYTHON" --target "$PYTHONPATH" "$@"',
    "pytest": 'exec "$PYTHON" -m pytest -p no:cacheprovider --hypothesis-seed=0 "$@"',
    "lumos": 'exec "$PYTHON" -m lumos "$@"',
}


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The commands of the script, for a folder in which packages are installed."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, script in COMMANDS.items():
        (programs / name).write_text(f"#!/bin/sh\n{script}\n", "utf-8")
        (programs / name).chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LUMOS_")}
    return {
        **kept,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHON": sys.executable,
        "PYTHONPATH": str(tmp_path / "site"),
    }


def test_the_template_becomes_a_catalog_that_is_proven_and_used(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    checkout = tmp_path / "checkout"
    shutil.copytree(ROOT / "examples", checkout / "examples")

    done = subprocess.run(
        ["sh", "examples/catalog-template/try.sh"],
        cwd=checkout,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "site" / "my_catalog" / "catalog.py").exists()
    assert not (tmp_path / "site" / "folder_catalog").exists()
    # Only what the embedded catalog alone declares is skipped, with neighbours and without.
    assert re.search(r"^\d+ passed, 2 skipped in ", done.stdout, re.MULTILINE)
    assert "0 changes" in done.stdout
    exported = json.loads((checkout / "my-catalog" / "all.json").read_text("utf-8"))
    assert exported["source_platform"] == "folder"
    assert len(exported["datasets"]) == 5


def test_the_how_to_shows_the_files_of_the_template() -> None:
    page = HOW_TO.read_text("utf-8")
    for name in ("try.sh", "pyproject.toml", "test_catalog.py", "folder_catalog/catalog.py"):
        assert f"examples/catalog-template/{name}" in page
        assert (TEMPLATE / name).exists()
