"""Whether this process is Lumos's own, or that of a program that uses Lumos as a library.

Switches that hold for a whole process, such as those of garbage collection, are Lumos's to set in
its own process only.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_NEW_OBJECTS = 50_000
"""Objects allocated between two collections; datasets have no cycles and need none."""
_claims: list[None] = []


def claim_process() -> None:
    """Say that this process was started to run Lumos; the command line does so first of all."""
    _claims.append(None)


def is_own_process() -> bool:
    """Return whether Lumos may set what holds for the whole process."""
    return bool(_claims)


@contextmanager
def only_new_garbage(*, after: int = _NEW_OBJECTS) -> Iterator[None]:
    """Make collections in the block rare, and limit them to objects that are made in it.

    In a program that uses Lumos as a library nothing changes: its objects may need collections.

    Args:
        after: objects allocated between two collections; more than the work holds at a time.
    """
    if not is_own_process():
        yield
        return
    first, *others = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(max(first, after) if first else 0, *others)
    try:
        yield
    finally:
        gc.set_threshold(first, *others)
        gc.unfreeze()
