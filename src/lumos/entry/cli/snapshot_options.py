"""What the commands on snapshots have in common."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Annotated

import typer
from typing_extensions import override

from lumos.core.errors import UsageError
from lumos.core.progress import Progress
from lumos.entry.cli.progress import progress

Edited = Annotated[
    bool,
    typer.Option("--edited", help="Accept a document that was edited since Lumos wrote it."),
]


def one_pair(
    arguments: tuple[str | None, str | None],
    options: tuple[str | None, str | None],
    *,
    names: tuple[str, str],
) -> tuple[str, str]:
    """Return two things that were given as arguments or by options.

    Raises:
        UsageError: one of them is missing, or was given in both ways.
    """
    given = [each for each in (*arguments, *options) if each is not None]
    if len(given) != len(names):
        raise UsageError(
            f"give two, as arguments or as {names[0]} and {names[1]}; {len(given)} were given"
        )
    positional = [each for each in arguments if each is not None]
    first, second = options
    if first is None:
        first = positional.pop(0)
    return first, second if second is not None else positional.pop(0)


class LateProgress(Progress):
    """Shows how far a command is from the first word on; most say nothing."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._stack = ExitStack()
        self._shown: Progress | None = None

    @override
    def stage(self, name: str, *, total: int | None = None, unit: str = "files") -> None:
        self._open().stage(name, total=total, unit=unit)

    @override
    def advance(self, done: int) -> None:
        self._open().advance(done)

    @override
    def note(self, text: str) -> None:
        self._open().note(text)

    def rest(self) -> None:
        """Hide the progress until there is news."""
        self._stack.close()
        self._shown = None

    def _open(self) -> Progress:
        if self._shown is None:
            self._shown = self._stack.enter_context(progress(self._title))
        return self._shown


@contextmanager
def shown_late(title: str) -> Iterator[LateProgress]:
    """Yield what shows how far a command is, and clear it away at the end."""
    late = LateProgress(title)
    try:
        yield late
    finally:
        late.rest()
