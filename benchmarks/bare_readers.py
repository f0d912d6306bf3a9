"""The floor of a scan: bare readers in two processes that build nothing from what they read.

Run: python benchmarks/bare_readers.py FOLDER

Every file is opened: the footer of Parquet and ORC, header and block counts of Avro, the first
64 KB of text with the types of all whole rows in it, which are as many as Lumos looks at. A schema
travels to the parent once per process, a file as its rows and the key of its schema. The answer is
one line of JSON.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import multiprocessing
import os
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import fastavro
import orjson
import pyarrow.parquet as pq
from pyarrow import orc

PROCESSES = 2
CHUNK = 256
SAMPLE_BYTES = 65_536
_told: set[int] = set()


class Read(NamedTuple):
    """What is known of one file."""

    format: str
    rows: int
    schema: str


class Answer(NamedTuple):
    """What one process says of a chunk of files."""

    files: list[tuple[str, int, int]]
    schemas: dict[int, str]


def listed(folder: str) -> Iterator[str]:
    """Yield the path of every file."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from listed(entry.path)
            else:
                entry.stat(follow_symlinks=False)
                yield entry.path


def read_chunk(paths: list[str]) -> Answer:
    """Read some files; a schema that this process told before is not told again."""
    answer = Answer([], {})
    for path in paths:
        try:
            read = read_one(path)
        except Exception:  # noqa: BLE001 - whatever a library says of a broken file
            read = Read("unreadable", 0, "")
        key = hash(read.schema)
        if key not in _told:
            _told.add(key)
            answer.schemas[key] = read.schema
        answer.files.append((read.format, read.rows, key))
    return answer


def read_one(path: str) -> Read:
    """Read one file by what it begins with."""
    with open(path, "rb") as stream:
        head = stream.read(SAMPLE_BYTES)
        match head[:4]:
            case b"PAR1":
                footer = pq.read_metadata(path)
                return Read("parquet", footer.num_rows, str(footer.schema.to_arrow_schema()))
            case b"Obj\x01":
                stream.seek(0)
                blocks = fastavro.block_reader(stream)
                schema = orjson.dumps(blocks.writer_schema).decode()
                return Read("avro", sum(block.num_records for block in blocks), schema)
    if head[:3] == b"ORC":
        file = orc.ORCFile(path)
        return Read("orc", file.nrows, str(file.schema))
    if head[:2] == b"\x1f\x8b":
        head = zlib.decompressobj(31).decompress(head, SAMPLE_BYTES)
    return json_lines(head) if head[:1] == b"{" else comma_separated(head)


def json_lines(head: bytes) -> Read:
    """Read the types of the rows."""
    types: dict[str, str] = {}
    for line in head[: head.rindex(b"\n")].split(b"\n"):
        for name, value in orjson.loads(line).items():
            if value is not None:
                types[name] = type(value).__name__
    return Read("jsonl", 0, repr(types))


def comma_separated(head: bytes) -> Read:
    """Read the header and the types of the rows."""
    lines = csv.reader(io.StringIO(head[: head.rindex(b"\n")].decode()))
    names = next(lines)
    types = dict.fromkeys(names, "")
    for row in lines:
        types.update((name, type_of(text)) for name, text in zip(names, row, strict=True) if text)
    return Read("csv", 0, repr(types))


def type_of(text: str) -> str:
    """Guess the type of one value, without failing where it is plain."""
    if text.isdigit():
        return "int"
    if text[0] in "+-.0123456789":
        try:
            float(text)
        except ValueError:
            return "str"
        return "float"
    return "bool" if text in {"true", "false"} else "str"


def scan(folder: Path) -> dict[str, object]:
    """Read a whole folder and say how long it took."""
    began, used = time.perf_counter(), sum(os.times()[:4])
    paths = list(listed(str(folder)))
    between = time.perf_counter()
    chunks = [paths[at : at + CHUNK] for at in range(0, len(paths), CHUNK)]
    schemas: dict[int, str] = {}
    rows: Counter[str] = Counter()
    files: Counter[str] = Counter()
    forking = multiprocessing.get_context("fork")  # the libraries are there at once
    with ProcessPoolExecutor(PROCESSES, mp_context=forking) as pool:
        for answer in pool.map(read_chunk, chunks):
            schemas |= answer.schemas
            for kind, count, _ in answer.files:
                rows[kind] += count
                files[kind] += 1
    after = time.perf_counter()
    return {
        "listing": between - began,
        "reading": after - between,
        "cpu": sum(os.times()[:4]) - used,
        "files": dict(files),
        "rows": dict(rows),
        "schemas": len(schemas),
    }


def main() -> None:
    """Scan and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?")
    given = parser.parse_args()
    if given.folder is None:
        print("reads lakes for other benchmarks; name a folder to read one")
        return
    print(json.dumps(scan(given.folder)))


if __name__ == "__main__":
    main()
