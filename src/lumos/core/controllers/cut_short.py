"""A run that ends early still leaves its report."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from lumos.core.errors import LumosError, StateError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lumos.core.controllers.publishing import Clock
    from lumos.core.run_report import RunRecorder, RunReport


@contextmanager
def report_if_cut_short(
    recorder: RunRecorder, keep_report: Callable[[RunReport], None], *, clock: Clock
) -> Iterator[None]:
    """Keep what a run did up to the error that ends it, and let the error through."""
    try:
        yield
    except LumosError as error:
        recorder.incomplete(reason=f"it ended early: {error.message}")
        with suppress(StateError):  # of two errors the first is the one to tell
            keep_report(recorder.finish(at=clock()))
        raise
