"""The share of an action's tasks that are done, told while it runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from typing_extensions import override

from lumos.core.progress import Progress
from lumos.spark.task_progress import _Counter, _Stage, task_progress

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


class Kept(Progress):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[int] = []

    @override
    def stage(self, name: str, *, total: int | None = None, unit: str = "files") -> None:
        raise AssertionError("a stage is the caller's to name")

    @override
    def advance(self, done: int) -> None:
        self.told.append(done)

    @override
    def note(self, text: str) -> None:
        raise AssertionError("there is nothing to say")


class Failing(Kept):
    @override
    def advance(self, done: int) -> None:
        super().advance(done)
        if done < 100:
            raise RuntimeError("the terminal is gone")


def slowly(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    time.sleep(0.5)
    yield from batches


def slow_frame(spark: SparkSession, *, parts: int) -> DataFrame:
    return spark.range(0, 800, numPartitions=parts).mapInArrow(slowly, "id long")


def test_tasks_that_are_done_are_told_as_items_while_the_action_runs(spark: SparkSession) -> None:
    kept = Kept()

    with task_progress(spark, kept, items=20_000, tasks=8):
        assert slow_frame(spark, parts=8).repartition(3).count() == 800

    assert kept.told == sorted(kept.told)
    assert kept.told[-1] == 20_000
    assert {done for done in kept.told if 0 < done < 20_000}, kept.told
    assert {done % 2_500 for done in kept.told} == {0}


def test_an_action_that_fails_is_not_told_as_done(spark: SparkSession) -> None:
    kept = Kept()

    with pytest.raises(ZeroDivisionError), task_progress(spark, kept, items=100):
        raise ZeroDivisionError

    assert 100 not in kept.told


def test_whoever_shows_it_cannot_fail_the_action(spark: SparkSession) -> None:
    failing = Failing()

    with task_progress(spark, failing, items=100):
        assert slow_frame(spark, parts=8).count() == 800

    assert len(failing.told) == 2, "it was told once in between, which failed, and at the end"
    assert failing.told[-1] == 100


def test_a_stage_that_a_later_job_takes_over_does_not_lead_back() -> None:
    kept = Kept()
    counter = _Counter(kept, items=800, tasks=16)

    for number, done in ((3, 0), (3, 0), (3, 14), (4, 0), (4, 0), (4, 16)):
        counter.look_at([_Stage(number, 16, done)])

    assert kept.told == [0, 700, 700, 800]
