"""What the commands on snapshots have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from lumos.entry.cli.progress import progress
from lumos.feature.snapshot.engine_choice import Engine

if TYPE_CHECKING:
    from lumos.core.progress import Progress

EngineOption = Annotated[
    Engine,
    typer.Option(
        "--engine",
        help="Who does the work: local (this process), spark, or auto (Spark if that is faster).",
    ),
]


@contextmanager
def told(title: str) -> Iterator[Callable[[str], None]]:
    """Yield what shows how far a command is, from the first word on; most say nothing."""
    with ExitStack() as stack:
        shown: list[Progress] = []

        def tell(text: str) -> None:
            if not shown:
                shown.append(stack.enter_context(progress(title)))
            shown[0].note(text)

        yield tell
