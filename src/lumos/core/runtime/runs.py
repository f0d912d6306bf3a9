"""Runs that write to the state: each holds the lease while it goes on, and leaves a report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Protocol

from lumos.core.errors import LumosError, StateError
from lumos.core.run_report import RunRecorder
from lumos.core.store.leases import WRITE_STATE, LeaseRequest, acquire
from lumos.core.store.runs import RunRepository, RunState

if TYPE_CHECKING:
    from datetime import datetime

    from lumos.core.run_report import Clock, RunReport
    from lumos.core.store.database import StateDatabase


class Run(Protocol):
    """A run that may write to the state."""

    def keep(self, report: RunReport) -> None:
        """Say what the run did; it is stored when the run ends, and the last report counts."""


class _StoredRun:
    """A run with a row in the state database."""

    def __init__(
        self, database: StateDatabase, operation: str, *, fence: int, started_at: datetime
    ) -> None:
        self._repository = RunRepository(database)
        self._operation = operation
        self._fence = fence
        self._started_at = started_at
        self._id = f"{started_at:%Y%m%dT%H%M%S%fZ} {operation} {fence}"  # clocks may stand still
        self._report: RunReport | None = None

    def begin(self) -> None:
        self._repository.expire(before=self._fence)
        self._repository.save(
            self._id,
            {},
            operation=self._operation,
            started_at=self._started_at,
            state=RunState.RUNNING,
            fence=self._fence,
        )

    def keep(self, report: RunReport) -> None:
        self._report = report

    def finish(self, state: RunState, *, at: datetime, reason: str | None = None) -> None:
        report = self._report
        if report is None:
            recorder = RunRecorder(self._operation, started_at=self._started_at)
            if reason is not None:
                recorder.incomplete(reason=f"it ended early: {reason}")
            report = recorder.finish(at=at)
        self._repository.save(
            self._id,
            report.as_json(),
            operation=report.operation,
            started_at=report.started_at,
            finished_at=report.finished_at,
            state=state,
            fence=self._fence,
        )


@contextmanager
def stored_run(
    database: StateDatabase, operation: str, *, request: LeaseRequest, clock: Clock
) -> Iterator[Run]:
    """Hold the lease to write, and keep a row of the run from its beginning to its end.

    Raises:
        StateLockedError: another run goes on.
        LeaseLostError: this run was paused, or cut off from the database, until its lease ended.
    """
    with acquire(database, WRITE_STATE, request=request, clock=clock) as lease:
        run = _StoredRun(database, operation, fence=lease.fence, started_at=clock())
        with database.transaction():
            run.begin()
        try:
            yield run
        except BaseException as error:
            is_failure = isinstance(error, Exception)
            reason = error.message if isinstance(error, LumosError) else type(error).__name__
            with suppress(StateError):  # of two errors the first is reported
                state = RunState.FAILED if is_failure else RunState.ABORTED
                run.finish(state, at=clock(), reason=reason)
            raise
        run.finish(RunState.DONE, at=clock())


@contextmanager
def report_if_cut_short(
    recorder: RunRecorder, keep_report: Callable[[RunReport], None], *, clock: Clock
) -> Iterator[None]:
    """Keep what a run did up to the error that ends it, and let the error through."""
    try:
        yield
    except LumosError as error:
        recorder.incomplete(reason=f"it ended early: {error.message}")
        with suppress(StateError):  # of two errors the first is reported
            keep_report(recorder.finish(at=clock()))
        raise
