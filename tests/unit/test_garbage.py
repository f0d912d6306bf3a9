"""Garbage collection while much is made."""

from __future__ import annotations

import gc
import weakref

from lumos.core.controllers.garbage import only_new_garbage


class _Ring:
    def __init__(self) -> None:
        self.itself = self


def test_what_is_made_in_the_block_is_collected_there() -> None:
    with only_new_garbage():
        gone = weakref.ref(_Ring())
        gc.collect()

        assert gone() is None


def test_what_was_there_is_looked_at_again_afterwards() -> None:
    before = gc.get_threshold()
    gc.disable()  # nobody else collects it in between
    try:
        gone = weakref.ref(_Ring())

        with only_new_garbage():
            gc.collect()
            assert gone() is not None
            assert gc.get_threshold()[0] > before[0]
        gc.collect()

        assert gone() is None
        assert gc.get_threshold() == before
    finally:
        gc.enable()
