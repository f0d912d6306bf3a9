"""Files of a storage are read in the sandbox, of which each gets only bytes."""

from __future__ import annotations

import io
import os
import random
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import orc

from lumos.core.errors import NotTabularError, UnreadableItemError
from lumos.core.formats.reader import read_document
from lumos.core.formats.sandbox import CRASHED, Limits, Sandbox, shared_sandbox
from lumos.core.formats.sandbox_io import SparseFile
from lumos.core.formats.sandbox_orders import Questions
from lumos.core.formats.tables.access import TableEntry
from lumos.core.storage.local import LocalSource
from lumos.core.storage.port import ListedObject
from lumos.core.storage.reading import ReadItem, read_items
from lumos.core.storage.s3 import S3Source
from s3_server import Bucket

TABLE = pa.table({"id": [1, 2, 3], "name": ["a", "b", None]})
WIDE = pa.table({f"a_column_with_a_long_name_{number:05}": [number] for number in range(2_000)})


class Memory:
    """A storage of a dict that keeps a list of what it was asked."""

    local_folder = None
    is_confined = False

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = {path.encode(): content for path, content in files.items()}
        self.reads: list[tuple[str, int, int]] = []
        self.lock = threading.Lock()
        self.refuse: Callable[[bytes, int], bool] = lambda path, start: False

    def items(self) -> list[ReadItem]:
        return [ReadItem(path, len(content)) for path, content in self.files.items()]

    def read(self, path: bytes, *, start: int, length: int) -> bytes:
        with self.lock:
            self.reads.append((path.decode(), start, length))
        if self.refuse(path, start) or path not in self.files:
            raise UnreadableItemError("there is no permission", hint="allow it")
        return self.files[path][start : start + length]

    def children(self, folder: bytes) -> Sequence[ListedObject]:
        with self.lock:
            self.reads.append((f"{folder.decode()}/", 0, 0))
        start = folder + b"/"
        return [
            ListedObject(path, len(content), 7)
            for path, content in self.files.items()
            if path.startswith(start) and b"/" not in path[len(start) :]
        ]


def parquet(table: pa.Table = TABLE, *, padding: int = 0) -> bytes:
    """Return a Parquet file, with random bytes as one more column to make it large."""
    if padding:
        noise = random.Random(7).randbytes(padding)
        table = table.append_column("noise", pa.array([noise] * table.num_rows))
    out = io.BytesIO()
    pq.write_table(table, out, compression="none")
    return out.getvalue()


def orc_file(padding: int = 0) -> bytes:
    noise = pa.array([random.Random(7).randbytes(padding)] * 3)
    out = io.BytesIO()
    orc.write_table(TABLE.append_column("noise", noise), out)
    return out.getvalue()


def outcomes(store: Memory, items: Iterable[ReadItem] | None = None, **options: Any) -> list[Any]:
    return list(shared_sandbox().read_stored(items or store.items(), store, **options))


def plain(name: str, content: bytes) -> bytes:
    return read_document(io.BytesIO(content), size=len(content), name=name)


def test_facts_are_those_of_the_plain_reader_for_every_way_of_fetching() -> None:
    files = {
        "small.parquet": parquet(),
        "large.parquet": parquet(padding=300_000),
        "wide.parquet": parquet(WIDE, padding=200_000),
        "large.orc": orc_file(300_000),
        "small.csv": b"id,name\n1,a\n",
        "large.csv": b"id,name\n" + b"1,abcdefghij\n" * 50_000,
        "deep/one.json": b'{"a": "' + b"x" * 300_000 + b'"}',
        "misnamed.parquet": b"id,name\n" + b"1,abcdefghij\n" * 50_000,
        "ünï köd.csv": b"a,b\n1,2\n",
    }
    found = outcomes(Memory(files))
    assert found == [plain(name, content) for name, content in files.items()]


@pytest.mark.parametrize(
    ("name", "content", "reads"),
    [
        ("small.parquet", parquet(), 1),
        ("large.parquet", parquet(padding=300_000), 1),
        ("large.orc", orc_file(300_000), 1),
        ("wide.parquet", parquet(WIDE, padding=200_000), 2),  # its footer is larger than a tail
        ("small.csv", b"id,name\n" + b"1,abcdefghij\n" * 20_000, 1),
        ("large.csv", b"id,name\n" + b"1,abcdefghij\n" * 50_000, 3),  # head, middle and end
        ("large.json", b'{"id": 1, "name": "abcdefghij"}\n' * 50_000, 2),  # and its end
    ],
)
def test_one_read_is_enough_where_the_metadata_is_where_it_should_be(
    name: str, content: bytes, reads: int
) -> None:
    store = Memory({name: content})
    (answer,) = outcomes(store)
    assert isinstance(answer, bytes)
    assert len(store.reads) == reads


def test_a_large_file_is_never_fetched_whole() -> None:
    content = parquet(padding=3_000_000)
    store = Memory({"large.parquet": content})
    outcomes(store)
    assert sum(length for _, _, length in store.reads) < len(content) / 20


def test_the_order_stays_and_what_cannot_be_fetched_is_named() -> None:
    files = {f"{number:03}.csv": f"c{number}\n1\n".encode() for number in range(200)}
    store = Memory(files)
    store.refuse = lambda path, start: path in {b"000.csv", b"077.csv", b"199.csv"}
    found = outcomes(store)
    assert [isinstance(each, UnreadableItemError) for each in found] == [
        number in {0, 77, 199} for number in range(200)
    ]
    assert str(found[77]) == "there is no permission"
    names = [
        orjson.loads(each)["schema"]["fields"][0]["name"] for each in found if type(each) is bytes
    ]
    assert names == [f"c{number}" for number in range(200) if number not in {0, 77, 199}]


def test_a_fetch_that_fails_in_the_middle_is_the_reason_that_is_told() -> None:
    store = Memory({"wide.parquet": parquet(WIDE, padding=200_000), "b.csv": b"a\n1\n"})
    first = len(store.files[b"wide.parquet"]) - 64 * 1024
    store.refuse = lambda path, start: path == b"wide.parquet" and start != first
    refused, read = outcomes(store)
    assert str(refused) == "there is no permission"
    assert isinstance(read, bytes)


def test_a_file_that_became_shorter_is_not_guessed_at() -> None:
    store = Memory({"a.parquet": parquet(padding=300_000)})
    items = [ReadItem(b"a.parquet", len(store.files[b"a.parquet"]) + 100_000)]
    (answer,) = outcomes(store, items)
    assert isinstance(answer, UnreadableItemError)


def test_a_document_keeps_its_kind_of_error_on_the_way() -> None:
    (answer,) = outcomes(Memory({"notes": b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n" + b"x" * 100}))
    assert isinstance(answer, NotTabularError)


def test_a_reader_that_dies_takes_only_its_file_and_the_fetched_bytes_are_sent_again() -> None:
    files = {f"{number}.csv": b"a,b\n1,2\n" for number in range(40)}
    files["abort.csv"] = b"a\n1\n"
    files |= {f"{number}.csv": b"a,b\n1,2\n" for number in range(40, 80)}
    store = Memory(files)
    with Sandbox(reader="hostile_reader:read") as sandbox:
        found = list(sandbox.read_stored(store.items(), store))
    assert [str(each) for each in found if not isinstance(each, bytes)] == [f"{CRASHED} (SIGABRT)"]
    assert len(found) == 81
    assert len(store.reads) == 81


def test_time_spent_on_fetching_is_not_held_against_a_file() -> None:
    store = Memory({"wide.parquet": parquet(WIDE, padding=200_000)})
    slow = threading.Event()
    real = store.read

    def read(path: bytes, *, start: int, length: int) -> bytes:
        if store.reads:
            slow.wait(4.5)
        return real(path, start=start, length=length)

    store.read = read  # type: ignore[method-assign]
    with Sandbox(limits=Limits(seconds=4)) as sandbox:
        (answer,) = sandbox.read_stored(store.items(), store)
    assert isinstance(answer, bytes)


def test_tables_are_read_through_the_parent_and_mixed_with_files(tmp_path: Path) -> None:
    files = delta_table("orders") | {"x.csv": b"a\n1\n"}
    store = Memory(files)
    items = [
        ReadItem(b"x.csv", 4),
        ReadItem(b"orders", 0, "delta"),
        ReadItem(b"nowhere", 0, "delta"),
        ReadItem(b"x.csv", 4),
    ]
    file, table, missing, again = outcomes(store, items)
    facts = orjson.loads(table)
    assert [field["name"] for field in facts["schema"]["fields"]] == ["id"]
    assert isinstance(missing, UnreadableItemError)
    assert file == again
    for path, content in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(content)
        os.utime(tmp_path / path, ns=(7_000, 7_000))
    local = LocalSource(name="lake", path=str(tmp_path)).open()
    assert list(read_items(items, local))[:2] == [file, table]


def delta_table(root: str) -> dict[str, bytes]:
    schema = orjson.dumps(
        {
            "type": "struct",
            "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}],
        }
    ).decode()
    actions = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "id": "0b1f4c5e-7a0e-4a53-9e0b-0c3b0f1d2e3f",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": schema,
                "partitionColumns": [],
                "configuration": {},
                "createdTime": 1_700_000_000_000,
            }
        },
    ]
    log = b"\n".join(orjson.dumps(action) for action in actions)
    return {f"{root}/_delta_log/{0:020}.json": log}


def test_a_table_reader_gets_no_file_outside_of_the_source() -> None:
    questions = Questions(Memory({}), None, most_bytes=100)
    reply = questions.serve(b'["read", "a/../../etc/passwd", 0, 10]')
    assert b"outside of the source" in reply


def test_the_reader_of_a_file_gets_that_file_alone() -> None:
    store = Memory({"mine": b"0123456789", "secret": b"hunter2"})
    questions = Questions(store, b"mine", most_bytes=100)
    assert questions.serve(b'["read", "secret", 2, 3]').endswith(b"234")


class _Bytes:
    """Answers like the parent of a child that reads these bytes."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def read(self, path: str | None, start: int, length: int | None) -> bytes:
        assert path is None
        return self.content[start : None if length is None else start + length]

    def list(self, folder: str) -> Iterable[TableEntry]:
        raise AssertionError(folder)


@given(
    content=st.binary(max_size=400),
    pieces=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 100)), max_size=4),
    steps=st.lists(
        st.tuples(st.integers(-50, 450), st.sampled_from([0, 1, 2]), st.integers(-1, 200))
    ),
)
def test_a_sparse_file_reads_like_a_whole_one(
    content: bytes, pieces: list[tuple[int, int]], steps: list[tuple[int, int, int]]
) -> None:
    sparse, whole = SparseFile(len(content), _Bytes(content)), io.BytesIO(content)
    for start, length in pieces:
        if piece := content[start : start + length]:
            sparse.add(start, piece)
    for offset, whence, size in steps:
        if whence == 0 and offset < 0:
            continue
        assert sparse.seek(offset, whence) == whole.seek(offset, whence)
        assert sparse.read(size) == whole.read(size)
        assert sparse.tell() == whole.tell()


def test_every_object_of_s3_takes_one_request_and_unread_ones_none(s3_bucket: Bucket) -> None:
    objects = {f"t/d={day}/p.parquet": parquet(padding=200_000) for day in range(5)}
    objects |= {f"c/{day}.csv": b"id,name\n" + b"1,abcdefghij\n" * 20_000 for day in range(5)}
    objects |= {"small.parquet": parquet(), "o.orc": orc_file(200_000), "unread.csv": b"a\n"}
    for key, content in objects.items():
        s3_bucket.put(key, content)
    server = s3_bucket.server
    storage = S3Source(name="lake", **s3_bucket.settings()).open()
    listed = [each for unit in storage.units(1) for each in storage.list(unit)]
    assert len(server.listings()) == 2, "one to look whether it is small, one to list it"
    assert server.reads() == []
    items = [
        ReadItem(each.path, each.size)
        for each in listed
        if isinstance(each, ListedObject) and each.path != b"unread.csv"
    ]
    answers = list(read_items(items, storage))
    assert all(isinstance(each, bytes) for each in answers)
    assert len(server.listings()) == 2
    assert sorted(request.path for request in server.reads()) == sorted(
        f"/{s3_bucket.name}/{key}" for key in objects if key != "unread.csv"
    )
    assert {request.method for request in server.reads()} == {"GET"}
    assert all("range" in request.headers for request in server.reads())
