"""Garbage collection for work that makes many objects in a process that holds many more."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def only_new_garbage() -> Iterator[None]:
    """Let collections in the block look at what is made in it alone: all else stays anyway."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
