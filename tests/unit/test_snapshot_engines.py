"""Who works on a snapshot: Spark is started only where it is asked for or worth it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from lumos.bootstrap import Application
from lumos.core.controllers import diff_controller, snapshot_controller
from lumos.core.errors import CorruptSnapshotError, DatasetNotFoundError, LumosError
from lumos.core.store.snapshot_parts import StoredPart, UnseenFolderError
from lumos.core.store.snapshot_store import SnapshotStore
from lumos.feature.snapshot.bucket_work import LOCAL
from lumos.feature.snapshot.engine_choice import SPARK_FROM_BYTES, Engine
from lumos.feature.snapshot.engines import Engines, SparkEngine, decoded_error, encoded_error
from snapshot_samples import AT, sample_snapshot

if TYPE_CHECKING:
    from lumos.spark.handles import SparkSession


class Sessions:
    """Counts the sessions that are opened; none of them is real."""

    def __init__(self, problem: LumosError | None = None) -> None:
        self.opened = 0
        self._problem = problem

    @contextmanager
    def __call__(self, tell: Callable[[str], None]) -> Iterator[SparkSession]:
        tell("starting Spark")
        if self._problem:
            raise self._problem
        self.opened += 1
        yield cast("SparkSession", object())


def chosen(
    sessions: Sessions, engine: Engine, *, worth_spark: bool, runs_here: bool = True
) -> tuple[str, list[str]]:
    told: list[str] = []
    engines = Engines(open_session=sessions, runs_here=lambda: runs_here)
    with engines.opened(engine, worth_spark=worth_spark, tell=told.append) as worker:
        return ("local" if worker is LOCAL else type(worker).__name__), told


@pytest.mark.parametrize(
    ("engine", "worth_spark", "runs_here", "expected"),
    [
        (Engine.LOCAL, True, True, "local"),
        (Engine.AUTO, False, True, "local"),
        (Engine.AUTO, True, True, "SparkEngine"),
        (Engine.AUTO, True, False, "local"),  # workers elsewhere may not see the snapshots
        (Engine.SPARK, False, False, "SparkEngine"),
    ],
)
def test_spark_is_opened_only_where_it_is_asked_for_or_worth_it(
    engine: Engine, worth_spark: bool, runs_here: bool, expected: str
) -> None:
    sessions = Sessions()

    worker, _ = chosen(sessions, engine, worth_spark=worth_spark, runs_here=runs_here)

    assert worker == expected
    assert sessions.opened == (expected == SparkEngine.__name__)


def test_without_java_what_nobody_asked_for_is_done_here() -> None:
    worker, told = chosen(Sessions(LumosError("no Java")), Engine.AUTO, worth_spark=True)

    assert worker == "local"
    assert told[-1] == "without Spark: no Java"


def test_without_java_what_was_asked_for_is_an_error() -> None:
    with pytest.raises(LumosError, match="no Java"):
        chosen(Sessions(LumosError("no Java")), Engine.SPARK, worth_spark=True)


@pytest.mark.parametrize("operation", sorted(SPARK_FROM_BYTES))
def test_the_size_of_what_is_read_decides(
    operation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def opened(self: Engines, engine: Engine, *, worth_spark: bool, tell: object) -> object:
        asked.append(worth_spark)
        return original(self, Engine.LOCAL, worth_spark=worth_spark, tell=print)

    original = Engines.opened
    monkeypatch.setattr(Engines, "opened", opened)
    store = SnapshotStore(tmp_path / "snapshots")
    old = store.write(sample_snapshot(5), at=AT)
    new = store.write(sample_snapshot(6), at=AT)
    sizes = {"diff": old.plain_bytes + new.plain_bytes, "validate": new.plain_bytes}
    with Application(state_dir=tmp_path, environment={}) as application:
        for least in (1, sizes[operation] + 1):
            limits = {**SPARK_FROM_BYTES, operation: least}
            for module in (diff_controller, snapshot_controller):
                monkeypatch.setattr(module, "SPARK_FROM_BYTES", limits)
            if operation == "diff":
                application.diffs.diff(old.id, new.id)
            else:
                application.snapshots.validate(new.id)

    assert asked == [True, False]


@pytest.mark.parametrize(
    "error",
    [
        CorruptSnapshotError("snapshot x is damaged", hint="restore it"),
        UnseenFolderError("not there", retryable=True),
        DatasetNotFoundError("lumos://s3/x", platform="embedded"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_comes_from_an_executor_as_it_was(error: LumosError) -> None:
    again = decoded_error(encoded_error(error))

    assert type(again) is type(error)
    assert again.as_json() == error.as_json()
    assert str(again) == str(error)


def test_a_part_travels_whole_also_from_a_folder_that_is_no_unicode(tmp_path: Path) -> None:
    root = Path(f"{tmp_path}/caf\udce9")
    store = SnapshotStore(root)
    stored = store.open(store.write(sample_snapshot(), at=AT).id)
    part = stored.part(0)
    assert part is not None

    again = StoredPart.decode(part.encode())

    assert again == part
    assert again.lines() == part.lines()
