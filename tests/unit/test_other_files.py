"""Files that hold no table are told apart from tables that cannot be read."""

from __future__ import annotations

import io
import pickle
import sqlite3
import tarfile
from pathlib import Path

import pytest
from typing_extensions import override

from lumos.core.errors import NotTabularError, UnreadableItemError
from lumos.core.formats.file_names import PATTERNS
from lumos.core.formats.reader import read_file


def outcome(content: bytes, name: str) -> UnreadableItemError:
    with pytest.raises(UnreadableItemError) as raised:
        read_file(io.BytesIO(content), size=len(content), name=name)
    return raised.value


def tar_file() -> bytes:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a.csv"), io.BytesIO())
    return sink.getvalue()


def sqlite_file(folder: Path) -> bytes:
    with sqlite3.connect(folder / "a.db") as connection:
        connection.execute("create table t (a int)")
    connection.close()
    return (folder / "a.db").read_bytes()


PROSE = b"Just some prose, with commas; and more.\nAnd more of it.\n\nThe end.\n"
PROTO = b'syntax = "proto3";\nmessage Order {\n  int64 id = 1;\n  string name = 2;\n}\n'
THRIFT = b"namespace java x\nstruct Order {\n  1: i64 id,\n  2: string name\n}\n"


@pytest.mark.parametrize(
    ("content", "name", "kind"),
    [
        (PROSE, "README.txt", "a text document"),
        (PROSE, "README", "a text document"),
        (b"# Title\n\nSome *words*, and more.\n\n- a\n- b\n", "README.md", "a Markdown document"),
        (b"[INFO] started at 10:00\n[INFO] done\n", "app.log", "a log"),
        (b'<?xml version="1.0"?>\n<a><b c="1"/></a>\n', "a.xml", "an XML document"),
        (b"<feed><entry/></feed>", "feed", "an XML document"),
        (b"<!DOCTYPE html>\n<html><body>x</body></html>", "index.html", "an HTML page"),
        (PROTO, "order.proto", "a Protocol Buffers schema"),
        (THRIFT, "order.thrift", "a Thrift schema"),
        (b"\x08\x96\x01\x12\x04\x00abc", "order.pb", "a Protocol Buffers message"),
        (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n\x00", "a.pdf", "a PDF document"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "a.png", "a PNG picture"),
        (b"\xff\xd8\xff\xe0\x00\x10JFIF", "a.jpg", "a JPEG picture"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "a.webp", "a WebP picture"),
        (b"\x00\x00\x00\x18ftypmp42\x00", "a.mp4", "a film"),
        (b"\x89HDF\r\n\x1a\n\x00\x00", "a.h5", "an HDF5 file"),
        (b"\x93NUMPY\x01\x00v\x00", "a.npy", "a NumPy array"),
        (pickle.dumps({"a": [1, 2, 3]}), "a.pkl", "a Python pickle"),
        (pickle.dumps([1.5], protocol=2), "model.bin", "a Python pickle"),
        (b"\x7fELF\x02\x01\x01\x00", "a.so", "a program"),
        (b"SEQ\x06\x19org.apache.hadoop\x00", "a.seq", "a Hadoop sequence file"),
        (tar_file(), "a.tar", "a tar archive"),
        (b"PK\x05\x06" + bytes(18), "a.zip", "a zip archive"),
        (b"7z\xbc\xaf\x27\x1c\x00\x04", "a.7z", "a 7-Zip archive"),
    ],
)
def test_a_file_that_holds_no_table_says_what_it_is(content: bytes, name: str, kind: str) -> None:
    error = outcome(content, name)
    assert isinstance(error, NotTabularError)
    assert (error.kind, error.message) == (kind, f"it holds no table: it is {kind}")
    assert not error.retryable


def test_a_database_is_recognised(tmp_path: Path) -> None:
    error = outcome(sqlite_file(tmp_path), "a.db")
    assert isinstance(error, NotTabularError)
    assert error.kind == "an SQLite database"


def test_a_pickle_is_never_unpickled() -> None:
    class Bomb:
        @override
        def __reduce__(self) -> tuple[object, ...]:
            return (exec, ("raise SystemExit(9)",))

    error = outcome(pickle.dumps(Bomb()), "a.pkl")
    assert isinstance(error, NotTabularError)


@pytest.mark.parametrize("name", ["a.csv", "a.json", "a.parquet", "a.avro", "a.xlsx", "a.csv.gz"])
def test_a_name_that_promises_a_table_makes_it_a_failure(name: str) -> None:
    error = outcome(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n\x00", name)
    assert not isinstance(error, NotTabularError)
    assert "it looks like a PDF document" in error.message


def test_bytes_that_nobody_knows_are_no_document() -> None:
    error = outcome(bytes(range(256)), "a.bin")
    assert not isinstance(error, NotTabularError)
    assert "neither text nor known" in error.message


def test_damaged_json_without_a_name_is_a_failure_and_a_log_is_not() -> None:
    assert not isinstance(outcome(b'{"a": 1, "b": \n', "part-00000"), NotTabularError)
    assert isinstance(outcome(b"[main] started\n[main] ended\n", "console"), NotTabularError)


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b"id,name\n1,a\n2,b\n3,c\n", "a.txt"),
        (b'{"a": 1}\n{"a": 2}\n', "a.log"),
        (b"id\tname\n1\ta\n2\tb\n", "a.dat"),
    ],
)
def test_a_table_under_a_name_of_anything_is_read_without_a_warning(
    content: bytes, name: str
) -> None:
    facts = read_file(io.BytesIO(content), size=len(content), name=name)
    assert facts.warnings == ()
    assert f"*{Path(name).suffix}" in PATTERNS


def test_patterns_hold_a_packed_name_only_where_it_can_be_read() -> None:
    assert {"*.csv", "*.csv.gz", "*.json.zst", "*.avro.bz2", "*.xlsx", "*.feather"} <= set(PATTERNS)
    assert not {"*.parquet.gz", "*.orc.zst", "*.xlsx.gz"} & set(PATTERNS)
