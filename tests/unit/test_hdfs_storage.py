"""HDFS over HTTP: what goes wrong by a stand-in, what goes right by a real cluster."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from hdfs_cluster import HdfsCluster
from lumos.core.errors import SourceError
from lumos.core.storage.hdfs import HdfsSource
from lumos.core.storage.port import ListedObject, UnlistedPrefix
from lumos.core.storage.reading import ReadItem, read_items
from ports import closed_port
from raw_server import listening, request_from
from s3_server import Answer, S3Server, Times, proxied

PATIENCE = {"retries": 1, "timeout": 30}


@pytest.fixture
def web() -> Iterator[S3Server]:
    """A server that answers nothing but what a test tells it to."""
    with proxied(f"http://127.0.0.1:{closed_port()}") as server:
        yield server


def source(namenode: str, **settings: Any) -> HdfsSource:
    return HdfsSource(name="lake", namenode=namenode, **{**PATIENCE, **settings})


def refusal(exception: str) -> bytes:
    return f'{{"RemoteException": {{"exception": "{exception}", "message": "hunter2"}}}}'.encode()


@pytest.mark.parametrize(
    ("status", "exception", "reason", "retryable"),
    [
        (404, "FileNotFoundException", "there is no such folder", False),
        (403, "AccessControlException", "there is no permission", False),
        (403, "StandbyException", "the namenode is on standby", True),
        (401, "", "the user or the token is not accepted", False),
        (403, "InvalidToken", "the user or the token is not accepted", False),
        (500, "", "HDFS was too busy or failed", True),
        (400, "Whatever", "HDFS refused for an unknown reason", False),
    ],
)
def test_what_keeps_hdfs_shut_is_said_in_one_line(
    web: S3Server, status: int, exception: str, reason: str, retryable: bool
) -> None:
    web.faults.append(lambda request: Answer(status, content=refusal(exception)))
    with pytest.raises(SourceError) as raised:
        source(web.url, prefixes=("data",)).open().check()
    assert raised.value.message.startswith(f"source 'lake': hdfs://127.0.0.1/data: {reason}")
    assert raised.value.hint
    assert raised.value.retryable == retryable
    assert "hunter2" not in raised.value.message


def test_a_namenode_that_does_not_listen_is_said() -> None:
    with pytest.raises(SourceError, match="HDFS cannot be reached"):
        source(f"http://127.0.0.1:{closed_port()}", retries=0).open().check()


def test_a_busy_namenode_is_asked_again_and_told_who_asks(web: S3Server) -> None:
    folder = {"type": "DIRECTORY", "pathSuffix": "", "length": 0, "modificationTime": 1}
    status = json.dumps({"FileStatus": folder}).encode()
    web.faults += [Times(1, Answer(503)), lambda request: Answer(200, content=status)]
    source(web.url, user="lumos").open().check()
    assert [request.query["user.name"] for request in web.requests] == ["lumos", "lumos"]
    web.requests.clear()
    source(web.url, user="lumos", delegation_token="t0ken").open().check()
    assert web.requests[0].query.get("delegation") == "t0ken"
    assert "t0ken" not in repr(source(web.url, delegation_token="t0ken"))


def test_a_real_hdfs_is_divided_listed_and_read(hdfs_cluster: HdfsCluster) -> None:
    root = f"lake-{uuid.uuid4().hex}"
    keys = [f"t{table}/d={day}/p.csv" for table in range(3) for day in range(4)]
    keys += ["top.csv", "t1/ä b+c%.csv"]
    for key in [*keys, "t1/_SUCCESS", "t1/_temporary/x.csv"]:
        hdfs_cluster.put(f"{root}/{key}", b"a,b\n1,2\n")
    storage = source(hdfs_cluster.namenode, prefixes=(root,), patterns=("*.csv",)).open()
    listed: list[ListedObject] = []
    for wanted in (1, 3, 8):
        found = [each for unit in storage.units(wanted) for each in storage.list(unit)]
        listed = [each for each in found if isinstance(each, ListedObject)]
        expected = sorted(f"{root}/{key}" for key in keys)
        assert sorted(each.path.decode() for each in listed) == expected
    assert {each.size for each in listed} == {8}
    assert storage.read(listed[0].path, start=4, length=3) == b"1,2"
    assert storage.read(listed[0].path, start=6, length=100) == b"2\n"
    assert [each.path for each in storage.children(f"{root}/t1".encode())] == [
        f"{root}/t1/_SUCCESS".encode(),
        f"{root}/t1/ä b+c%.csv".encode(),
    ]
    assert storage.children(b"nowhere") == []
    answers = list(read_items([ReadItem(each.path, each.size) for each in listed], storage))
    assert all(isinstance(each, bytes) for each in answers)
    (gone,) = read_items([ReadItem(f"{root}/gone.csv".encode(), 8)], storage)
    assert str(gone) == "it is gone since it was listed"


def test_a_forbidden_folder_of_a_real_hdfs_is_named(hdfs_cluster: HdfsCluster) -> None:
    root = f"lake-{uuid.uuid4().hex}"
    for key in ("open/a.csv", "locked/b.csv"):
        hdfs_cluster.put(f"{root}/{key}", b"a\n")
    hdfs_cluster.forbid(f"{root}/locked")
    storage = source(hdfs_cluster.namenode, prefixes=(root,), user="somebody").open()
    found = [each for unit in storage.units(1) for each in storage.list(unit)]
    assert [each.path for each in found if isinstance(each, ListedObject)] == [
        f"{root}/open/a.csv".encode()
    ]
    (unlisted,) = [each for each in found if isinstance(each, UnlistedPrefix)]
    assert str(unlisted.error) == "there is no permission"
    assert unlisted.shown.endswith(f"{root}/locked")


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def answering(head: bytes, more: bytes, *, ended: threading.Event | None = None) -> Any:
    """Send a head and then more of the same without end: at once, or now and then."""

    def serve(connection: socket.socket) -> None:
        request_from(connection)
        connection.sendall(head)
        while ended is None or not ended.wait(0.02):
            connection.sendall(more)

    return serve


def refusal_of(serve: Any, **settings: Any) -> str:
    with listening(serve) as port, pytest.raises(SourceError) as raised:
        source(f"http://127.0.0.1:{port}", **{"retries": 0, **settings}).open().check()
    return raised.value.message


def test_a_listing_without_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lumos.core.storage.hdfs._LARGEST_LISTING", 100_000)
    told = refusal_of(answering(HEAD + b"\r\n", b" " * 65_536))
    assert "an answer of HDFS is larger than" in told


def test_a_listing_that_drips_ends_with_the_time_of_a_request() -> None:
    ended = threading.Event()
    try:
        serve = answering(HEAD + b"Content-Length: 5000\r\n\r\n", b" ", ended=ended)
        told = refusal_of(serve, request_seconds=0.3)
    finally:
        ended.set()
    assert "an answer of HDFS took too long as a whole" in told


def test_a_packed_answer_is_not_unpacked() -> None:
    bomb = gzip.compress(bytes(10_000_000))
    head = HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(bomb)
    assert "or packed" in refusal_of(answering(head + bomb, b""))


@pytest.mark.parametrize("content", [b"", b"<html>", b"[]", b'{"FileStatus": {}}', b"[" * 9_999])
def test_an_answer_that_is_none_of_webhdfs_is_one_line(content: bytes) -> None:
    head = HEAD + b"Content-Length: %d\r\n\r\n" % len(content)
    assert "the answer is not one of WebHDFS" in refusal_of(answering(head + content, b""))


def test_redirects_in_a_circle_are_left() -> None:
    moved = b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n"

    def serve(connection: socket.socket) -> None:
        while request_from(connection):
            connection.sendall(moved)

    assert "the answer is not one of WebHDFS" in refusal_of(serve)


def test_of_a_file_no_more_is_read_than_was_asked_for() -> None:
    with listening(answering(HEAD + b"\r\n", b"x" * 65_536)) as port:
        storage = source(f"http://127.0.0.1:{port}", retries=0).open()
        assert storage.read(b"a.csv", start=0, length=100_000) == b"x" * 100_000


def test_a_connection_is_used_again_after_a_read() -> None:
    opened: list[int] = []

    def serve(connection: socket.socket) -> None:
        opened.append(1)
        while request_from(connection):
            connection.sendall(HEAD + b"Content-Length: 10\r\n\r\n0123456789")

    with listening(serve) as port:
        storage = source(f"http://127.0.0.1:{port}", retries=0).open()
        assert [storage.read(b"a", start=0, length=10) for _ in range(5)] == [b"0123456789"] * 5
    assert len(opened) == 1
