"""What a long command is doing, on standard error, where a person watches."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from typing_extensions import override

from lumos.core.progress import SILENT, EventProgress, Progress
from lumos.entry.cli.log_options import watched_by_a_person

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

_REFRESHES_PER_SECOND = 5
_BAR_WIDTH = 24


@contextmanager
def progress(title: str) -> Iterator[Progress]:
    """Yield what shows the stage of a command and its counts; silent without a terminal.

    Nothing is written to standard output. The bar is gone at the end, also of a command that was
    interrupted.
    """
    if not watched_by_a_person():
        yield SILENT
    elif os.environ.get("TERM") in {"dumb", "unknown"}:
        yield EventProgress(_Lines(title))
    else:
        with _bars() as bars:
            yield EventProgress(_Bar(title, bars))


class _Lines(Progress):
    """One line for each stage, for a terminal that cannot go back."""

    def __init__(self, title: str) -> None:
        self._title = title

    @override
    def stage(self, name: str, *, total: int | None = None, unit: str = "files") -> None:
        self._write(name if total is None else f"{name}, {total:,} {unit}")

    @override
    def advance(self, done: int) -> None:
        pass

    @override
    def note(self, text: str) -> None:
        self._write(text)

    def _write(self, text: str) -> None:
        sys.stderr.write(f"{self._title}: {text}\n")


class _Bar(Progress):
    """One line that is written over: stage, bar, counts, rate and time."""

    def __init__(self, title: str, bars: Bars) -> None:
        self._title = title
        self._bars = bars
        self._unit = ""
        self._lock = threading.Lock()  # a stage may be counted by another thread
        self._task = self._begin("starting", total=None)

    @override
    def stage(self, name: str, *, total: int | None = None, unit: str = "files") -> None:
        with self._lock:
            self._bars.remove_task(self._task)
            self._unit = unit
            # A bar of nothing would be full at once, while something is still being done.
            self._task = self._begin(name, total=total or None)

    @override
    def advance(self, done: int) -> None:
        with self._lock:
            self._bars.update(self._task, completed=done)
            (task,) = self._bars.tasks
            rate = f"{task.speed:,.0f}/s" if task.speed else ""
            self._bars.update(self._task, counts=self._counts(done, task.total), rate=rate)

    @override
    def note(self, text: str) -> None:
        self.stage(text)

    def _begin(self, name: str, *, total: int | None) -> TaskID:
        counts = self._counts(0, total) if total else ""
        text = f"{self._title}: {name}"
        return self._bars.add_task(text, total=total, counts=counts, rate="")

    def _counts(self, done: int, total: float | None) -> str:
        of_all = f"/{total:,.0f}" if total else ""
        return f"{done:,}{of_all} {self._unit}"


@contextmanager
def _bars() -> Iterator[Bars]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True, no_color="NO_COLOR" in os.environ, highlight=False)
    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=_BAR_WIDTH),
        TextColumn("{task.fields[counts]}", markup=False),
        TextColumn("{task.fields[rate]}", markup=False),
        TimeElapsedColumn(),
        console=console,
        refresh_per_second=_REFRESHES_PER_SECOND,
        transient=True,
        redirect_stdout=False,  # answers go to standard output
    ) as bars:
        # A process that is killed could not bring a hidden cursor back.
        console.show_cursor(True)
        yield bars
