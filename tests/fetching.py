"""Fetching what tests need over a network that may fail for a moment."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

CACHE = Path.home() / ".cache" / "lumos-tests"
"""What is fetched once for each machine; removing it costs the next run a few minutes."""
_PAUSES = (5, 15, 45, None)


def kept_folder(name: str, fill: Callable[[Path], None]) -> Path:
    """Return a folder of the cache, filled by the first who asks for it.

    It is filled under another name, so that whoever sees it sees all of it.
    """
    folder = CACHE / name
    if not folder.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE, prefix=f".{name}-") as unfinished:
            filled = Path(unfinished) / name
            filled.mkdir()
            fill(filled)
            with suppress(OSError):  # somebody else was faster
                filled.rename(folder)
    return folder


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
