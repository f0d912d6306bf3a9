"""Garbage collection for work that makes many objects in a process that holds many more."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from lumos.core.own_process import is_own_process

_NEW_OBJECTS = 50_000
"""How many come about between two looks; datasets have no cycles and go by themselves."""


@contextmanager
def only_new_garbage(*, after: int = _NEW_OBJECTS) -> Iterator[None]:
    """Let collections in the block be rare, and look at what is made in it alone.

    In a process that only uses Lumos nothing changes: what its other objects need is not known.

    Args:
        after: how many objects come about between two looks; more than the work holds at a time.
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
