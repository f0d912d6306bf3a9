"""A session that is opened when it is first needed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

import pytest

from lumos.core.errors import StateError
from lumos.spark.lazy_session import LazySession, OpenSession, Tell

if TYPE_CHECKING:
    from lumos.spark.handles import SparkSession

_SESSION = cast("SparkSession", object())


def _opening(
    log: list[str], *, until: threading.Event | None = None, fails: bool = False
) -> OpenSession:
    @contextmanager
    def open_session(tell: Tell) -> Iterator[SparkSession]:
        if until is not None:
            until.wait(60)
        if fails:
            raise StateError("no Spark")
        log.append("open")
        yield _SESSION
        log.append("closed")

    return open_session


def test_nothing_is_opened_or_made_ready_where_nobody_asks() -> None:
    log: list[str] = []

    with LazySession(_opening(log), print, meanwhile=lambda: log.append("ready")):
        pass

    assert log == []


def test_what_is_needed_later_is_made_ready_while_spark_starts() -> None:
    log: list[str] = []
    is_ready = threading.Event()

    def make_ready() -> None:
        log.append("ready")
        is_ready.set()

    with LazySession(_opening(log, until=is_ready), print, meanwhile=make_ready) as session:
        assert session() is _SESSION
        assert session() is _SESSION

    assert log == ["ready", "open", "closed"]


def test_what_cannot_be_made_ready_is_left_to_whoever_needs_it() -> None:
    log: list[str] = []

    def fail() -> None:
        raise StateError("out of reach")

    with LazySession(_opening(log), print, meanwhile=fail) as session:
        assert session() is _SESSION


def test_a_failure_to_open_is_told_once_the_other_work_is_over() -> None:
    log: list[str] = []

    with (
        LazySession(
            _opening(log, fails=True), print, meanwhile=lambda: log.append("ready")
        ) as session,
        pytest.raises(StateError, match="no Spark"),
    ):
        session()

    assert log == ["ready"]
