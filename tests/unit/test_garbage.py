"""Garbage collection while much is made."""

from __future__ import annotations

import gc
import weakref

import pytest

from lumos.core import own_process
from lumos.core.own_process import only_new_garbage


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process be Lumos's own."""
    monkeypatch.setattr(own_process, "is_own_process", lambda: True)


class _Ring:
    def __init__(self) -> None:
        self.itself = self


@pytest.mark.usefixtures("own")
def test_what_is_made_in_the_block_is_collected_there() -> None:
    with only_new_garbage():
        gone = weakref.ref(_Ring())
        gc.collect()

        assert gone() is None


@pytest.mark.usefixtures("own")
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


def test_a_process_that_only_uses_lumos_collects_as_it_did() -> None:
    before = gc.get_threshold()

    with only_new_garbage():
        assert gc.get_threshold() == before
        assert gc.get_freeze_count() == 0
