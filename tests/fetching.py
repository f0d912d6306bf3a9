"""Fetching what tests need over a network that may fail for a moment."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_PAUSES = (5, 15, 45, None)


def fetched(
    command: Sequence[str | Path],
    *,
    timeout: float,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
) -> None:
    """Run a command that fetches something; one that fails is run again after a while.

    Raises:
        RuntimeError: it failed every time; what it said is told.
    """
    for pause in _PAUSES:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=env,
            check=False,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        if done.returncode == 0:
            return
        if pause is None:
            raise RuntimeError(f"{command[0]} failed:\n{done.stdout.decode(errors='replace')}")
        time.sleep(pause)
