"""Running `lumos` in tests, in this process or as a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pytest
    from jsonschema import Draft202012Validator

ROOT = Path(__file__).resolve().parent.parent
SCHEMAS = ROOT / "src" / "lumos" / "schemas"
SHOP = ROOT / "examples" / "shop"
JANUARY = str(SHOP / "january.json")
FEBRUARY = str(SHOP / "february.json")
ORDERS = "lumos://postgres/shop/public/orders"


@dataclass(frozen=True)
class Result:
    """What a command left behind."""

    exit_code: int
    stdout: str
    stderr: str

    def json(self) -> Any:
        return json.loads(self.stdout)

    @property
    def error_line(self) -> str:
        """The one line that an error is."""
        lines = self.stderr.strip().splitlines()
        assert len(lines) == 1, self.stderr
        return lines[0]


def checked(result: Result, schema: str) -> Any:
    """Return the JSON of a successful command, held against its schema."""
    assert result.exit_code == 0, result.stderr
    document = result.json()
    check_schema(document, schema)
    return document


def check_schema(document: object, schema: str) -> None:
    """Hold a document against a schema; `test_generated_files.py` checks the schemas themselves."""
    _validator(schema).validate(document)


@cache
def _validator(schema: str) -> Draft202012Validator:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(json.loads((SCHEMAS / f"{schema}.schema.json").read_text("utf-8")))


class Lumos(Protocol):
    """Runs `lumos` in the project folder of the test."""

    def __call__(self, *arguments: str) -> Result: ...


def run_here(*arguments: str) -> int:
    """Run `lumos` in this process, through the boundary that the installed command has."""
    from lumos.entry.cli.error_boundary import run_within_boundary
    from lumos.framework_cli import app

    return run_within_boundary(app, arguments)


def capturing(capfd: pytest.CaptureFixture[str]) -> Lumos:
    """Return what runs `lumos` in this process and captures what it prints."""

    def run(*arguments: str) -> Result:
        capfd.readouterr()
        code = run_here(*arguments)
        out, err = capfd.readouterr()
        return Result(code, out, err)

    return run


def run_in_child(
    *arguments: str,
    folder: Path,
    environment: Mapping[str, str] | None = None,
    before: Callable[[], None] | None = None,
) -> Result:
    """Run `lumos` as a process of its own; `before` runs in it first."""
    done = subprocess.run(
        [sys.executable, "-m", "lumos", *arguments],
        cwd=folder,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
        preexec_fn=before,
    )
    return Result(done.returncode, done.stdout, done.stderr)


def run_in_shell(script: str, *, folder: Path) -> Result:
    """Run a line of shell in which `lumos` is the command, for its redirections and pipes."""
    lumos = f'lumos() {{ "{sys.executable}" -m lumos "$@"; }}'
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {lumos}; {script}"],
        cwd=folder,
        env={**os.environ, "PYTHONUNBUFFERED": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    return Result(done.returncode, done.stdout, done.stderr)
