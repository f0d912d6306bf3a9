"""What a long command is doing, on standard error, where a person watches."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(title: str) -> Iterator[Callable[[str], None]]:
    """Yield a function that shows the stage and its counts; silent without a terminal."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield lambda _: None
        return
    from rich.console import Console

    console = Console(stderr=True, no_color="NO_COLOR" in os.environ, highlight=False)
    with console.status(f"{title}: starting") as status:
        yield lambda stage: status.update(f"{title}: {stage}")
