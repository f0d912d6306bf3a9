from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from property_seed import VARIABLE, chosen_seed, seed_of_commit

TESTS = Path(__file__).parents[1]
PLUGINS = ("-p", "xdist", "-p", "_hypothesis_pytestplugin", "-p", "no:cacheprovider")
CONFTEST = """
import os

from hypothesis import settings
from property_seed import PropertySeed

settings.register_profile("plain", database=None, derandomize=False, max_examples=60)
settings.load_profile("plain")


def pytest_configure(config):
    config.pluginmanager.register(PropertySeed(config, is_full=os.environ.get("FULL") == "1"))
"""
PROPERTIES = """
import json
import os

import pytest
from hypothesis import given, strategies as st

drawn = []


def test_before():
    if os.environ.get("IMPORT") == "1":
        import constants


@pytest.mark.parametrize("name", ["first", "second"])
@given(st.tuples(st.integers(), st.text()))
def test_property(name, value):
    drawn.append((name, value))


def test_after():
    with open(os.environ["DRAWN"], "w") as file:
        json.dump(drawn, file)


def test_wrong():
    assert os.environ.get("WRONG") != "1"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("properties")
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_properties.py").write_text(PROPERTIES)
    (folder / "constants.py").write_text(
        "".join(f"A{n} = {n * 7919}\nB{n} = 'constant number {n}'\n" for n in range(200))
    )
    return folder


@pytest.fixture(scope="module")
def quiet_run(folder: Path) -> tuple[str, str]:
    """What a quiet run with the seed 7, in one process, printed and drew."""
    return run_properties(folder, "-q", LUMOS_TEST_SEED="7")


def run_properties(folder: Path, *options: str, **variables: str) -> tuple[str, str]:
    """Return what a run printed and which examples it drew."""
    drawn = folder / "drawn.json"
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *PLUGINS, *options, folder],
        check=False,
        cwd=folder,
        capture_output=True,
        text=True,
        env={
            **environment,
            "PYTHONPATH": os.pathsep.join([str(TESTS), str(folder)]),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "DRAWN": str(drawn),
            **variables,
        },
    )
    assert done.stderr == ""
    return done.stdout, drawn.read_text()


def seed_in(output: str) -> str:
    (*_, seed) = re.findall(rf"{VARIABLE}=(\d+)", output)
    return str(seed)


def test_a_seed_gives_the_same_examples_whatever_was_imported_before(
    folder: Path, quiet_run: tuple[str, str]
) -> None:
    _, first = quiet_run
    _, again = run_properties(folder, LUMOS_TEST_SEED="7", IMPORT="1")
    _, other = run_properties(folder, LUMOS_TEST_SEED="8")

    assert first == again
    assert first != other


def test_workers_draw_the_examples_that_one_process_draws(
    folder: Path, quiet_run: tuple[str, str]
) -> None:
    _, on_workers = run_properties(folder, "-n", "2", "--dist=loadfile", LUMOS_TEST_SEED="7")

    assert on_workers == quiet_run[1]


def test_a_full_run_draws_a_new_seed_and_its_printed_line_repeats_it(folder: Path) -> None:
    output, first = run_properties(folder, "-n", "1", FULL="1")
    other_output, _ = run_properties(folder, FULL="1")
    _, again = run_properties(folder, LUMOS_TEST_SEED=seed_in(output))

    assert seed_in(output) != seed_in(other_output)
    assert again == first


def test_a_failed_run_prints_the_seed_even_when_it_is_quiet(
    folder: Path, quiet_run: tuple[str, str]
) -> None:
    passed, _ = quiet_run
    failed, _ = run_properties(folder, "-q", LUMOS_TEST_SEED="7", WRONG="1")

    assert VARIABLE not in passed
    assert seed_in(failed) == "7"


def test_a_commit_has_a_seed_of_its_own_and_no_git_a_fixed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    without_git = seed_of_commit(tmp_path)
    git = ["git", "-C", str(tmp_path), "-c", "user.name=A", "-c", "user.email=a@example.com"]
    subprocess.run([*git, "init", "--quiet"], check=True)
    assert seed_of_commit(tmp_path) == without_git

    seeds = []
    for subject in ("one", "two"):
        subprocess.run([*git, "commit", "--quiet", "--allow-empty", "-m", subject], check=True)
        seeds += [chosen_seed(is_full=False, root=tmp_path), seed_of_commit(tmp_path)]

    assert seeds[0] == seeds[1] != seeds[2] == seeds[3]
    assert without_git not in seeds


def test_a_seed_that_is_no_number_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "seven")

    with pytest.raises(pytest.UsageError, match="LUMOS_TEST_SEED is a whole number, not 'seven'"):
        chosen_seed(is_full=False)
