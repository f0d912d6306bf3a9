"""What the command line costs before it does anything."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import FEBRUARY, JANUARY, ORDERS, run_in_child

HEAVY = {"pyspark", "sqlalchemy", "alembic", "pyarrow", "pandas", "rich", "jsonschema", "pydantic"}
READS = (
    ("search", "customer"),
    ("show", ORDERS),
    ("history", ORDERS),
    ("compare", ORDERS, "1.0.0", "1.0.0"),
    ("version", "show"),
    ("version", "compute"),
    ("version", "compute", "--from", JANUARY, "--to", FEBRUARY),
    ("version", "apply"),
    ("snapshot", "list"),
    ("diff", "--source", JANUARY, "--target", FEBRUARY),
    ("validate", JANUARY),
    ("rules",),
    ("export", "--output", "out.json"),
    ("import", FEBRUARY, "--dry-run"),
    ("import", FEBRUARY),
)
MEASURE = """
import json, resource, sys
from lumos.entry.cli.error_boundary import run_within_boundary
from lumos.framework_cli import app
code = run_within_boundary(app, sys.argv[1:])
used = resource.getrusage(resource.RUSAGE_SELF)
children = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps({
    "code": code,
    "modules": sorted({name.partition(".")[0] for name in sys.modules}),
    "processes": children.ru_utime + children.ru_stime,
}), file=sys.stderr)
"""


def modules_of(*arguments: str, folder: Path) -> set[str]:
    import json

    done = subprocess.run(
        [sys.executable, "-c", MEASURE, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    measured = json.loads(done.stderr.splitlines()[-1])
    assert measured["code"] == 0, done.stderr
    assert measured["processes"] == 0, "a child process, such as a JVM, was started"
    return set(measured["modules"])


def test_help_imports_nothing_heavy_and_starts_no_process(tmp_path: Path) -> None:
    assert not modules_of("--help", folder=tmp_path) & HEAVY


@pytest.fixture(scope="module")
def january(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("january")
    assert run_in_child("import", "--input", JANUARY, folder=folder).exit_code == 0
    return folder


@pytest.mark.parametrize("read", READS, ids=lambda read: read[0])
def test_a_read_imports_no_engine_and_starts_no_process(
    january: Path, tmp_path: Path, read: tuple[str, ...]
) -> None:
    shutil.copytree(january, tmp_path, dirs_exist_ok=True)

    assert not modules_of(*read, folder=tmp_path) & (HEAVY - {"pydantic"})


def test_python_dash_m_is_the_same_command(tmp_path: Path) -> None:
    result = run_in_child("--version", folder=tmp_path)

    assert result.exit_code == 0
    assert result.stdout.startswith("lumos ")
