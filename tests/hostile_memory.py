"""One reading of hostile input in a process of its own, which ends with telling its peak memory.

Run: python hostile_memory.py OPERATION ARGUMENT...
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from pathlib import Path

from lumos.core.errors import LumosError

MOST_BYTES = 3 << 30
"""Memory that the process may ask for at all, so that a failing test harms nobody else."""


def answer(url: str) -> str:
    """Ask a server for JSON."""
    from lumos.core.platform.http import CatalogHttp

    with CatalogHttp(url, name="cat") as http:
        return str(http.json("GET", "/x"))[:80]


def command(*arguments: str) -> str:
    """Run a command of Lumos."""
    from lumos.framework_cli import main as lumos

    sys.argv = ["lumos", *arguments]
    try:
        lumos()
    except SystemExit as done:
        return f"exit code {done.code}"
    return "exit code 0"


OPERATIONS: dict[str, Callable[..., str]] = {"answer": answer, "command": command}


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    operation, *arguments = sys.argv[1:]
    try:
        told = OPERATIONS[operation](*arguments)
    except LumosError as error:
        told = error.message
    status = Path("/proc/self/status").read_text(encoding="ascii")
    peak = int(status.partition("VmHWM:")[2].split()[0]) * 1024
    sys.__stdout__.write(f"{peak} {told}\n")  # type: ignore[union-attr]


if __name__ == "__main__":
    main()
