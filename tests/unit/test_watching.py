"""Events, and the folders that they lead to."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumos.core.storage.local import LocalSource
from lumos.core.storage.selection import FileSelection
from lumos.feature.watching.folders import (
    WHOLE_FOLDER,
    fewest,
    folder_of_file,
    folder_of_folder,
    folder_of_missing,
)
from lumos.feature.watching.inbox import MOST_REMEMBERED, Gathered, Inbox
from lumos.feature.watching.local_events import SUSPICIOUS, LocalEvents
from lumos.feature.watching.s3_messages import UnreadableMessageError, changed_objects

SELECTION = FileSelection(patterns=["*.parquet", "*.csv"], exclude=["scratch"])
COMMIT = "_delta_log/00000000000000000001.json"


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        ("raw/orders/day=1/part-0.parquet", b"raw/orders/day=1"),
        ("prices.csv", WHOLE_FOLDER),
        (f"lake/orders/{COMMIT}", b"lake/orders"),
        (COMMIT, WHOLE_FOLDER),
        ("lake/orders/metadata/v2.metadata.json", b"lake/orders"),
        ("lake/orders/.hoodie/20240101000000.commit", b"lake/orders"),
        ("raw/orders/_temporary/0/part-0.parquet", None),
        ("raw/orders/_SUCCESS", None),
        ("raw/orders/.part-0.parquet.crc", None),
        ("raw/scratch/part-0.parquet", None),
        ("notes.txt", None),
    ],
)
def test_a_file_leads_to_its_own_folder_and_a_log_to_its_table(
    path: str, folder: bytes | None
) -> None:
    assert folder_of_file(path, SELECTION) == folder


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        ("raw/orders", b"raw/orders"),
        ("lake/orders/_delta_log", b"lake/orders"),
        ("lake/orders/.hoodie/timeline", b"lake/orders"),
        ("raw/orders/_temporary", None),
        (".git", None),
        ("raw/scratch", None),
    ],
)
def test_a_folder_leads_to_itself_and_that_of_a_log_to_its_table(
    path: str, folder: bytes | None
) -> None:
    assert folder_of_folder(path, SELECTION) == folder


def test_what_is_gone_is_looked_for_under_its_own_path_whether_it_was_a_file_or_a_folder() -> None:
    assert folder_of_missing("raw/orders/a.parquet", SELECTION) == b"raw/orders/a.parquet"
    assert folder_of_missing("raw/orders", SELECTION) == b"raw/orders"
    assert folder_of_missing(f"lake/orders/{COMMIT}", SELECTION) == b"lake/orders"
    assert folder_of_missing("raw/.hidden", SELECTION) is None


def test_folders_within_others_are_left_out() -> None:
    assert fewest([b"a/b", b"a/b/c", b"a/bc"]) == (b"a/b", b"a/bc")
    assert fewest([b"a/b", WHOLE_FOLDER]) == (WHOLE_FOLDER,)


def test_the_most_crowded_folders_are_looked_into_as_a_whole_first() -> None:
    days = [b"orders/day=%d" % day for day in range(100)]

    assert fewest([*days, b"prices/eu/today"], 3) == (b"orders", b"prices/eu/today")


names = st.sampled_from([b"a", b"b", b"c"])
folders = st.lists(names, max_size=4).map(b"/".join)


@given(st.sets(folders), st.integers(1, 5))
def test_fewest_folders_hold_all_and_are_no_more_than_allowed(
    wanted: set[bytes], most: int
) -> None:
    chosen = fewest(wanted, most)

    assert len(chosen) <= most
    for folder in wanted:
        assert any(top in (WHOLE_FOLDER, folder) or folder.startswith(top + b"/") for top in chosen)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def inbox(clock: Clock) -> Inbox:
    return Inbox(quiet=2, longest=10, now=clock)


def test_events_are_due_when_it_is_quiet(inbox: Inbox, clock: Clock) -> None:
    assert inbox.take() is None
    inbox.put({"lake": {b"a"}}, events=1)
    clock.now += 1
    inbox.put({"lake": {b"b"}}, events=2)

    assert inbox.take() is None
    clock.now += 2
    gathered = inbox.take()

    assert gathered is not None
    assert gathered.folders == {"lake": {b"a", b"b"}}
    assert gathered.events == 3
    assert inbox.take() is None


def test_events_are_due_after_the_longest_time_though_it_is_never_quiet(
    inbox: Inbox, clock: Clock
) -> None:
    for _ in range(10):
        inbox.put({"lake": {b"a"}}, events=1)
        assert inbox.take() is None
        clock.now += 1
    inbox.put({"lake": {b"a"}}, events=1)

    assert inbox.take() is not None


def test_what_failed_is_due_again_after_the_pause_together_with_what_came_since(
    inbox: Inbox, clock: Clock
) -> None:
    done: list[str] = []
    inbox.put({"lake": {b"a"}}, events=1, acknowledge=lambda: done.append("a"))
    clock.now += 2
    first = inbox.take()
    assert first is not None
    inbox.put({"lake": {b"b"}}, events=1, acknowledge=lambda: done.append("b"))

    inbox.put_back(first, pause=30)

    clock.now += 29
    assert inbox.take() is None
    clock.now += 1
    again = inbox.take()
    assert again is not None
    assert again.folders == {"lake": {b"a", b"b"}}
    for acknowledge in again.acknowledgements:
        acknowledge()
    assert done == ["a", "b"]


def test_a_problem_is_told_at_once(inbox: Inbox) -> None:
    inbox.report("nobody answers")

    gathered = inbox.take()

    assert gathered is not None
    assert gathered.problems == ["nobody answers"]


def test_of_too_many_folders_none_is_remembered_but_all_is_looked_into() -> None:
    gathered = Gathered()

    gathered.add({"lake": (b"%d" % number for number in range(MOST_REMEMBERED + 1))})

    assert gathered.folders == {"lake": {WHOLE_FOLDER}}


def s3_event(key: str, event: str = "ObjectCreated:Put") -> dict[str, Any]:
    record = {"eventName": event, "s3": {"bucket": {"name": "lake"}, "object": {"key": key}}}
    return {"Records": [record]}


def bridge_event(key: str, kind: str = "Object Created") -> dict[str, Any]:
    detail = {"bucket": {"name": "lake"}, "object": {"key": key}}
    return {"source": "aws.s3", "detail-type": kind, "detail": detail}


def in_sns(message: dict[str, Any]) -> dict[str, Any]:
    return {"Type": "Notification", "Message": json.dumps(message)}


@pytest.mark.parametrize(
    ("message", "keys"),
    [
        (s3_event("a+b/%C3%A9.csv"), ["a b/é.csv"]),
        (s3_event("a.csv", "ObjectRemoved:Delete"), ["a.csv"]),
        (in_sns(s3_event("a%2Bb.csv")), ["a+b.csv"]),
        (bridge_event("a+b.csv"), ["a+b.csv"]),
        (in_sns(bridge_event("a%20b.csv")), ["a%20b.csv"]),
        (s3_event("a.csv", "ObjectTagging:Put"), []),
        (bridge_event("a.csv", "Object Tags Added"), []),
        ({"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "lake"}, []),
        ({"Records": []}, []),
    ],
)
def test_every_form_of_notification_is_understood(message: dict[str, Any], keys: list[str]) -> None:
    assert changed_objects(json.dumps(message)) == tuple(("lake", key) for key in keys)


@pytest.mark.parametrize(
    "body",
    [
        "hunter2", "[]", "{}", '"x"', "7", '{"Records": 7}', '{"Records": [7]}',
        '{"Records": [{"s3": {"bucket": "hunter2"}}]}',
        '{"source": "aws.s3", "detail": {"bucket": {"name": "b"}, "object": {"key": 7}}}',
        '{"Message": "hunter2"}', '{"Message": {"Message": {"Message": {"Message": {}}}}}',
    ],
)  # fmt: skip
def test_another_message_is_refused_and_not_echoed(body: str) -> None:
    with pytest.raises(UnreadableMessageError) as refused:
        changed_objects(body)
    assert "hunter2" not in str(refused.value)
    assert refused.value.hint


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(
        st.sampled_from(["Records", "Message", "s3", "detail", "source", "bucket", "object", "key"])
        | st.text(), inner),
))  # fmt: skip
def test_any_json_is_understood_or_refused(document: Any) -> None:
    with suppress(UnreadableMessageError):
        changed_objects(json.dumps(document))


@contextmanager
def watched(folder: Path, *, skip: tuple[str, ...] = ()) -> Iterator[Inbox]:
    inbox = Inbox(quiet=0.3, longest=5)
    source = LocalSource(name="lake", path=str(folder), patterns=("*.csv",), skip=skip)
    with LocalEvents(source, inbox).running():
        yield inbox


def next_folders(inbox: Inbox) -> set[bytes]:
    """Return the folders of the next events; the time limit of the test is the only one."""
    while (gathered := inbox.take()) is None:
        inbox.wait(0.05)
    assert not gathered.problems
    return gathered.folders["lake"]


def wait_for(inbox: Inbox, folder: bytes) -> None:
    while folder not in next_folders(inbox):
        pass


def test_a_file_that_is_written_renamed_or_removed_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "orders").mkdir()
    file = tmp_path / "orders" / "a.csv"
    with watched(tmp_path) as inbox:
        file.write_text("a,b\n1,2\n")
        wait_for(inbox, b"orders")
        file.write_text("a,b,c\n1,2,3\n")
        wait_for(inbox, b"orders")
        os.replace(file, tmp_path / "orders" / "b.csv")
        wait_for(inbox, b"orders")
        (tmp_path / "orders" / "b.csv").unlink()
        wait_for(inbox, b"orders/b.csv")


def test_folders_that_are_made_deep_and_at_once_are_looked_into(tmp_path: Path) -> None:
    with watched(tmp_path) as inbox:
        (tmp_path / "a" / "b" / "c").mkdir(parents=True)
        (tmp_path / "a" / "b" / "c" / "d.csv").touch()

        assert fewest(next_folders(inbox)) == (b"a",)


def test_hidden_temporary_unwanted_and_skipped_files_lead_to_nothing(tmp_path: Path) -> None:
    for folder in ("state", "_temporary", "orders"):
        (tmp_path / folder).mkdir()
    with watched(tmp_path, skip=(str(tmp_path / "state"),)) as inbox:
        (tmp_path / "state" / "x.csv").touch()
        (tmp_path / "_temporary" / "x.csv").touch()
        (tmp_path / "orders" / ".x.csv").touch()
        (tmp_path / "orders" / "x.csv.tmp").touch()
        (tmp_path / "orders" / "x.txt").touch()
        (tmp_path / "orders" / "x.csv").touch()

        assert next_folders(inbox) == {b"orders"}


def test_a_folder_that_is_not_there_yet_or_comes_back_is_looked_into_as_a_whole(
    tmp_path: Path,
) -> None:
    lake = tmp_path / "lake"
    with watched(lake) as inbox:
        lake.mkdir()
        wait_for(inbox, WHOLE_FOLDER)
        lake.rename(tmp_path / "moved")
        wait_for(inbox, WHOLE_FOLDER)
        lake.mkdir()
        (lake / "a.csv").touch()
        wait_for(inbox, WHOLE_FOLDER)


def test_one_file_is_watched_alone(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.touch()
    with watched(file) as inbox:
        (tmp_path / "b.csv").touch()
        file.write_text("a\n1\n")

        assert next_folders(inbox) == {WHOLE_FOLDER}


def test_more_events_than_are_surely_delivered_lead_to_a_look_at_everything(
    tmp_path: Path, inbox: Inbox, clock: Clock
) -> None:
    events = LocalEvents(LocalSource(name="lake", path=str(tmp_path)), inbox)

    events._put([f"{tmp_path}/{number}.csv" for number in range(SUSPICIOUS)])

    clock.now += 60
    gathered = inbox.take()
    assert gathered is not None
    assert gathered.folders == {"lake": {WHOLE_FOLDER}}


def test_watching_ends_with_its_block(tmp_path: Path) -> None:
    with watched(tmp_path) as inbox:
        pass
    (tmp_path / "a.csv").touch()
    time.sleep(0.3)

    assert inbox.take_all() is None
