"""Notifications of S3 in a real queue of a server process."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lumos.core.storage.s3 import S3Source
from lumos.feature.watching.inbox import Gathered, Inbox
from lumos.feature.watching.queue_events import QueueError, QueueEvents
from s3_server import REGION, Bucket, S3Server
from sqs_queue import Queue


@pytest.fixture
def queue(s3_server: S3Server) -> Queue:
    return Queue(s3_server)


@pytest.fixture
def inbox() -> Inbox:
    return Inbox(quiet=0, longest=0)


def source_of(bucket: Bucket, name: str = "lake", **more: Any) -> S3Source:
    return S3Source(name=name, patterns=("*.csv",), **bucket.settings(**more))


def taken(inbox: Inbox) -> Gathered:
    while (gathered := inbox.take_all()) is None:
        inbox.wait(0.05)
    return gathered


def test_what_s3_tells_leads_to_folders_and_stays_in_the_queue_until_it_is_dealt_with(
    s3_bucket: Bucket, queue: Queue, inbox: Inbox
) -> None:
    queue.get_notified_by(s3_bucket)
    s3_bucket.put("raw/orders day/a.csv", b"a\n1\n")
    s3_bucket.put("raw/prices/b.csv", b"a\n1\n")
    s3_bucket.put("raw/prices/notes.txt", b"")

    QueueEvents(queue.url, [source_of(s3_bucket)], inbox).drain()

    gathered = taken(inbox)
    assert gathered.folders == {"lake": {b"raw/orders day", b"raw/prices"}}
    assert gathered.problems == []
    waiting, with_somebody = queue.counts()
    assert waiting == 0
    assert with_somebody >= 3
    for acknowledge in gathered.acknowledgements:
        acknowledge()
    assert queue.counts() == (0, 0)


def test_a_message_that_nobody_understands_is_reported_once_and_stays(
    s3_bucket: Bucket, queue: Queue, inbox: Inbox
) -> None:
    queue.send("hunter2")
    events = QueueEvents(queue.url, [source_of(s3_bucket)], inbox)

    events.drain()

    gathered = taken(inbox)
    (problem,) = gathered.problems
    assert "it is no JSON" in problem
    assert "hunter2" not in problem
    assert gathered.acknowledgements == []
    assert queue.counts() == (0, 1)


def test_sources_that_share_a_queue_get_what_lies_below_their_own_prefixes(
    s3_bucket: Bucket, queue: Queue, inbox: Inbox
) -> None:
    records = [
        {"eventName": "ObjectCreated:Put", "s3": {"bucket": {"name": name}, "object": {"key": key}}}
        for name, key in (
            (s3_bucket.name, "raw/a.csv"),
            (s3_bucket.name, "cooked/b.csv"),
            (s3_bucket.name, "other/c.csv"),
            ("elsewhere", "raw/d.csv"),
        )
    ]
    queue.send(json.dumps({"Records": records}))
    sources = [
        source_of(s3_bucket, "raw", prefixes=("/raw/",)),
        source_of(s3_bucket, "cooked", prefixes=("cooked",)),
    ]

    QueueEvents(queue.url, sources, inbox).drain()

    assert taken(inbox).folders == {"raw": {b"raw"}, "cooked": {b"cooked"}}


def test_events_come_while_the_queue_is_watched(
    s3_bucket: Bucket, queue: Queue, inbox: Inbox
) -> None:
    queue.get_notified_by(s3_bucket)
    with QueueEvents(queue.url, [source_of(s3_bucket)], inbox).running():
        s3_bucket.put("raw/a.csv", b"a\n1\n")

        folders: dict[str, set[bytes]] = {}
        while not folders:
            folders = taken(inbox).folders

    assert folders == {"lake": {b"raw"}}


def test_a_queue_that_does_not_exist_is_named(s3_bucket: Bucket, inbox: Inbox) -> None:
    url = f"{s3_bucket.server.direct_url}/123456789012/nowhere"

    with pytest.raises(QueueError, match="queue nowhere cannot be read: there is no such queue"):
        QueueEvents(url, [source_of(s3_bucket)], inbox).drain()
    with QueueEvents(url, [source_of(s3_bucket)], inbox).running():
        assert taken(inbox).problems == ["queue nowhere cannot be read: there is no such queue"]


def test_a_server_that_does_not_answer_is_named(s3_bucket: Bucket, inbox: Inbox) -> None:
    source = source_of(s3_bucket, region=REGION)

    with pytest.raises(QueueError, match="nobody answers"):
        QueueEvents("http://127.0.0.1:9/1/events", [source], inbox).drain()
