"""What watching does when looks fail, when it is told to stop, and when nothing is new."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from given_work import given_project
from lumos.core.controllers import watch_controller
from lumos.core.controllers.results import IngestResult, WatchRefresh
from lumos.core.controllers.watch_controller import WatchController
from lumos.core.errors import LumosError, StateLockedError, UsageError
from lumos.core.run_report import RunRecorder
from lumos.core.runtime.settings import settings_from_mapping
from lumos.feature.ingestion.results import DatasetCounts, ScannedFiles
from lumos.spark.failures import SparkRunError
from lumos.spark.warm_session import WarmSession
from s3_server import Bucket
from sqs_queue import Queue

NOW = datetime(2026, 1, 1, tzinfo=UTC)
Look = Callable[[], Sequence[str]]


class Ingestion:
    """Stands in for the real one: it looks at nothing and does what a test wants."""

    def __init__(self, looks: Sequence[Look]) -> None:
        self.looks = list(looks)
        self.calls: list[Mapping[str, Any]] = []

    def ingest(self, **asked: Any) -> IngestResult:
        self.calls.append(asked)
        look = self.looks.pop(0) if self.looks else list
        recorder = RunRecorder("ingest", started_at=NOW)
        for item in look():
            recorder.failed(item, "it is cut off", scope_seen=True)
        return IngestResult.of(
            recorder.finish(at=NOW),
            files=ScannedFiles(listed=1, opened=1, unchanged=0, unreadable=0),
            datasets=DatasetCounts(found=1, created=0, updated=0, unchanged=1, removed=0),
        )


class Watching:
    """A watch of one local folder; it ends after so many refreshes."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(watch_controller, "_FIRST_PAUSE", 0.01)
        self.folder = folder
        self.stop = threading.Event()
        self.refreshes: list[WatchRefresh] = []
        self.told: list[str] = []

    def run(
        self,
        *looks: Look,
        refreshes: int,
        then: Callable[[int], None] = lambda _: None,
        sources: Sequence[JsonValue] = (),
        list_minutes: float = 0,
        **how: Any,
    ) -> Ingestion:
        given = list(sources) or [{"type": "local", "name": "lake", "path": str(self.folder)}]
        ingestion = Ingestion(looks)

        def on_refresh(refresh: WatchRefresh) -> None:
            self.refreshes.append(refresh)
            then(len(self.refreshes))
            if len(self.refreshes) == refreshes:
                self.stop.set()

        seconds: dict[str, JsonValue] = {"quiet_seconds": 0.1, "longest_seconds": 1}
        settings = settings_from_mapping(
            {"sources": given, "watch": {**seconds, "list_minutes": list_minutes}}, {}
        )
        project = given_project(self.folder / ".lumos", settings, clock=lambda: NOW)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(watch_controller, "IngestionController", lambda _work: ingestion)
            WatchController(project, no_session).watch(
                stop=self.stop, on_refresh=on_refresh, tell=self.told.append, **how
            )
        return ingestion


@contextmanager
def no_session(tell: object) -> Iterator[Any]:
    yield None


@pytest.fixture
def watching(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watching:
    (tmp_path / "orders").mkdir()
    return Watching(tmp_path, monkeypatch)


def failing(error: Exception) -> Look:
    def look() -> Sequence[str]:
        raise error

    return look


def test_a_look_after_one_that_failed_stores_the_snapshot_that_it_owes(
    watching: Watching, tmp_path: Path
) -> None:
    def write(refreshes: int) -> None:
        if refreshes == 1:
            (tmp_path / "orders" / "a.csv").touch()
        if refreshes == 3:
            (tmp_path / "orders" / "b.csv").touch()

    full = failing(OSError(28, "No space left on device"))
    ingestion = watching.run(list, full, refreshes=4, then=write)

    assert [call["snapshot_always"] for call in ingestion.calls] == [True, False, True, False]


def test_it_begins_with_everything_and_goes_on_with_what_events_tell(
    watching: Watching, tmp_path: Path
) -> None:
    def write(refreshes: int) -> None:
        if refreshes == 1:
            (tmp_path / "orders" / "a.csv").touch()

    ingestion = watching.run(refreshes=2, then=write)

    assert [call["under"] for call in ingestion.calls] == [None, {"lake": (b"orders",)}]
    assert [call["snapshot_always"] for call in ingestion.calls] == [True, False]
    assert [refresh.reason for refresh in watching.refreshes] == ["start", "events"]
    assert watching.refreshes[1].folders == {"lake": ("orders",)}
    assert watching.told == ["watching lake (file events); Ctrl-C ends it"]


@pytest.mark.parametrize(
    "error",
    [StateLockedError("the state is in use"), SparkRunError("gone"), OSError(28, "no space")],
)
def test_a_refresh_that_fails_is_told_and_tried_again(watching: Watching, error: Exception) -> None:
    ingestion = watching.run(failing(error), failing(error), refreshes=3)

    first, second, third = watching.refreshes
    assert first.error is not None
    assert first.files is None
    assert second.retry_seconds == 2 * (first.retry_seconds or 0)
    assert third.error is None
    assert third.reason == "start"
    assert third.files is not None
    assert len(ingestion.calls) == 3


def test_what_no_other_try_can_help_ends_it(watching: Watching) -> None:
    with pytest.raises(UsageError):
        watching.run(failing(UsageError("wrong")), refreshes=1)
    with pytest.raises(UsageError):
        watching.run(names=["sea"], refreshes=1)
    assert watching.refreshes == []


def test_once_fails_as_its_only_try_does(watching: Watching) -> None:
    with pytest.raises(StateLockedError):
        watching.run(failing(StateLockedError("in use")), refreshes=9, once=True)


def test_once_looks_at_everything_and_ends(watching: Watching) -> None:
    ingestion = watching.run(refreshes=9, once=True)

    assert [call["under"] for call in ingestion.calls] == [None]
    assert watching.told == []


def test_without_a_listing_nothing_is_looked_at_before_an_event(watching: Watching) -> None:
    ingestion = watching.run(refreshes=9, once=True, listing=False)

    assert ingestion.calls == []


def test_a_file_that_cannot_be_read_is_named_once(watching: Watching, tmp_path: Path) -> None:
    def write(refreshes: int) -> None:
        (tmp_path / "orders" / f"{refreshes}.csv").touch()

    watching.run(
        lambda: ["a.csv"], lambda: ["a.csv"], lambda: ["a.csv", "b.csv"], refreshes=3, then=write
    )

    named = [[item.item for item in refresh.failed] for refresh in watching.refreshes]
    assert named == [["a.csv"], [], ["b.csv"]]


def test_a_watch_that_is_told_to_stop_before_it_begins_does_nothing(watching: Watching) -> None:
    watching.stop.set()

    assert watching.run(refreshes=1).calls == []


def test_a_message_leaves_its_queue_only_after_what_it_tells_is_in_the_catalog(
    watching: Watching, s3_bucket: Bucket
) -> None:
    queue = Queue(s3_bucket.server)
    queue.get_notified_by(s3_bucket)
    s3_bucket.put("orders/a.csv", b"a\n1\n")
    events: JsonValue = {"queue_url": queue.url}
    source: JsonValue = {"type": "s3", "name": "lake", **s3_bucket.settings(events=events)}

    def left() -> Sequence[str]:
        counts.append(sum(queue.counts()))
        return []

    counts: list[int] = []
    watching.run(
        failing(StateLockedError("in use")), left, sources=[source], refreshes=2, listing=False
    )

    assert [refresh.folders for refresh in watching.refreshes] == [{"lake": ("orders",)}] * 2
    assert counts[0] >= 1
    assert queue.counts() == (0, 0)


def test_folders_beyond_the_prefixes_of_a_source_lead_to_a_look_at_all_of_it(
    watching: Watching, s3_bucket: Bucket
) -> None:
    queue = Queue(s3_bucket.server)
    queue.get_notified_by(s3_bucket)
    for number in range(66):
        s3_bucket.put(f"raw/{number}/orders/a.csv", b"a\n1\n")
    prefixes = [f"raw/{number}" for number in range(66)]
    settings = s3_bucket.settings(events={"queue_url": queue.url}, prefixes=prefixes)

    ingestion = watching.run(
        sources=[{"type": "s3", "name": "lake", **settings}], refreshes=9, once=True, listing=False
    )

    assert [call["under"] for call in ingestion.calls] == [None]


def test_a_source_without_files_is_scanned_at_the_start_and_not_for_events_of_others(
    watching: Watching, tmp_path: Path
) -> None:
    def write(refreshes: int) -> None:
        if refreshes == 1:
            (tmp_path / "orders" / "a.csv").touch()

    lake: JsonValue = {"type": "local", "name": "lake", "path": str(tmp_path)}
    database: JsonValue = {"type": "postgres", "name": "shop", "database": "shop", "host": "db"}
    ingestion = watching.run(sources=[lake, database], refreshes=2, then=write)

    assert [call["names"] for call in ingestion.calls] == [["lake", "shop"], ["lake"]]
    assert [call["under"] for call in ingestion.calls] == [None, {"lake": (b"orders",)}]
    assert watching.refreshes[0].folders == {"lake": ("/",), "shop": ("/",)}
    assert watching.told == ["watching lake (file events), shop (listed once); Ctrl-C ends it"]


def test_a_source_without_events_is_scanned_with_every_listing(watching: Watching) -> None:
    project: JsonValue = {"type": "dbt", "name": "shop", "manifest_path": "manifest.json"}
    ingestion = watching.run(sources=[project], refreshes=3, list_minutes=1e-6)

    assert [refresh.reason for refresh in watching.refreshes] == ["start", "listing", "listing"]
    assert [(call["names"], call["under"]) for call in ingestion.calls] == [(["shop"], None)] * 3
    assert watching.told == ["watching shop (listed every 1e-06 minutes); Ctrl-C ends it"]


def test_a_session_is_kept_until_spark_fails() -> None:
    opened: list[str] = []

    @contextmanager
    def open_session(tell: object) -> Iterator[Any]:
        opened.append("opened")
        yield f"session {len(opened)}"
        opened.append("closed")

    def tell(_text: str) -> None:
        return

    with WarmSession(open_session) as session:
        for _ in range(2):
            with session(tell) as used:
                assert str(used) == "session 1"
        with pytest.raises(StateLockedError), session(tell):
            raise StateLockedError("in use")
        assert opened == ["opened"]
        with pytest.raises(LumosError), session(tell):
            raise SparkRunError("gone")
        with session(tell) as used:
            assert str(used) == "session 3"
    assert opened == ["opened", "closed", "opened", "closed"]
