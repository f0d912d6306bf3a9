"""The seed of the property tests: the same for one commit, another for the next one."""

from __future__ import annotations

import os
import secrets
import subprocess
from pathlib import Path

import pytest

VARIABLE = "LUMOS_TEST_SEED"
_ROOT = Path(__file__).parents[1]
_WITHOUT_GIT = 20_260_101
_DIGITS = 8


def chosen_seed(*, is_full: bool, root: Path = _ROOT) -> int:
    """Return the given seed, else a new one for full runs, else that of the commit."""
    if given := os.environ.get(VARIABLE):
        if not given.isdecimal():
            raise pytest.UsageError(f"{VARIABLE} is a whole number, not {given!r}")
        return int(given)
    return secrets.randbelow(16**_DIGITS) if is_full else seed_of_commit(root)


def seed_of_commit(root: Path) -> int:
    """Return a seed made from the name of the current commit; without git a fixed one."""
    command = ["git", "-C", str(root), "rev-parse", "--verify", "HEAD"]
    try:
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return _WITHOUT_GIT
    return int(done.stdout[:_DIGITS], 16)


class PropertySeed:
    """The plugin of pytest that gives hypothesis its seed and prints it."""

    def __init__(self, config: pytest.Config, *, is_full: bool) -> None:
        from hypothesis import core
        from hypothesis.internal.conjecture import providers
        from hypothesis.internal.constants_ast import Constants

        given = config.getoption("hypothesis_seed", None)
        self.seed = int(given) if given else chosen_seed(is_full=is_full)
        os.environ[VARIABLE] = str(self.seed)  # workers start after this and take the same
        core.global_force_seed = self.seed  # type: ignore[assignment]
        # Hypothesis also draws constants of modules that happen to be imported. Which these are
        # depends on the tests that ran before, so a seed would not give the same examples again.
        none = Constants()
        providers._get_local_constants = lambda: none

    def pytest_report_header(self) -> str:
        return self._line()

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if terminalreporter.stats.get("failed"):
            terminalreporter.write_line(self._line())

    def _line(self) -> str:
        return f"property tests: the same examples again with {VARIABLE}={self.seed}"
