"""How far a running action of Spark is, by the share of its tasks that are done."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from typing_extensions import override

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lumos.core.progress import Progress

_SECONDS_BETWEEN_LOOKS = 0.3
_PATIENCE_SECONDS = 5.0


class _Stage(NamedTuple):
    number: int
    tasks: int
    done: int


@contextmanager
def task_progress(
    spark: SparkSession, progress: Progress, *, items: int, tasks: int | None = None
) -> Iterator[None]:
    """Report how many items are done while an action runs in the block; all at its good end.

    An action has several stages, and how many is not known before. The newest one counts, once it
    has been seen at work twice: most of the others are over in no time.

    Args:
        spark: the session of the action.
        progress: receives the number.
        items: what the action works on, spread evenly over its tasks.
        tasks: the number of tasks of the stage that does the work, where the caller chose it.
    """
    counter = _Counter(progress, items=items, tasks=tasks)
    watching = _asked_of_the_server if is_connect(spark) else _looked_up
    with watching(spark, counter):
        yield
    progress.advance(items)


def is_connect(spark: SparkSession) -> bool:
    """Return whether a session is one of Spark Connect, which has no `sparkContext`."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


class _Counter:
    """Turns tasks into items."""

    def __init__(self, progress: Progress, *, items: int, tasks: int | None) -> None:
        self._progress = progress
        self._items = items
        self._tasks = tasks
        self._seen: int | None = None
        self._told = 0

    def look_at(self, stages: Iterable[_Stage]) -> None:
        """Take the stages that have begun and are not over."""
        fitting = [stage for stage in stages if stage.tasks and self._tasks in {None, stage.tasks}]
        if not fitting:
            return
        newest = max(fitting)
        if newest.number == self._seen:
            # A stage that a later job takes over as done is shown anew with no task done.
            self._told = max(self._told, self._items * newest.done // newest.tasks)
            self._progress.advance(self._told)
        self._seen = newest.number


@contextmanager
def _looked_up(spark: SparkSession, counter: _Counter) -> Iterator[None]:
    """Look at the driver's own books from a thread."""
    tracker = spark.sparkContext.statusTracker()
    before = set(tracker.getActiveStageIds())
    over = threading.Event()

    def watch() -> None:
        try:
            while not over.wait(_SECONDS_BETWEEN_LOOKS):
                numbers = [n for n in tracker.getActiveStageIds() if n not in before]
                found = [info for info in map(tracker.getStageInfo, numbers) if info is not None]
                counter.look_at(
                    _Stage(each.stageId, each.numTasks, each.numCompletedTasks) for each in found
                )
        except Exception:  # noqa: BLE001 - what fails here, the action itself will report
            return

    thread = threading.Thread(target=watch, name="lumos-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(_PATIENCE_SECONDS)


@contextmanager
def _asked_of_the_server(spark: SparkSession, counter: _Counter) -> Iterator[None]:
    """Take what a Spark Connect server says with its answers."""
    from pyspark.sql.connect.shell.progress import ProgressHandler, StageInfo

    class Handler(ProgressHandler):
        @override
        def __call__(
            self,
            stages: Iterable[StageInfo] | None,
            inflight_tasks: int,
            operation_id: str | None,
            done: bool,
        ) -> None:
            counter.look_at(
                _Stage(each.stage_id, each.num_tasks, each.num_completed_tasks)
                for each in stages or ()
                if not each.done
            )

    handler = Handler()
    spark.registerProgressHandler(handler)
    try:
        yield
    finally:
        spark.removeProgressHandler(handler)
