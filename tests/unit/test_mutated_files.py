"""Thousands of damaged files of every format through the real sandbox: all are accounted for."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest
import xlsxwriter
import zstandard
from pyarrow import orc
from pyarrow import parquet as pq

from conftest import FULL_SIZE
from lumos.core.errors import UnreadableItemError
from lumos.core.formats.facts import FileFacts
from lumos.core.formats.sandbox import FileItem, Limits, Sandbox
from packers import framed_snappy, hadoop_blocks, lz4_frames

MUTATED = 5_000 if FULL_SIZE else 100
VALUE = "data-value-4711"
TABLE = pa.table(
    {
        "id": list(range(40)),
        "name": [VALUE, None] * 20,
        "tags": [["a", "b"], []] * 20,
        "place": [{"x": 1.5, "y": "b"}] * 40,
    }
)
ROWS = [{"id": i, "name": VALUE, "tags": ["a"], "place": {"x": 1.5}} for i in range(40)]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS).encode()
TEXT = b"id,name,when\n" + f'1,"{VALUE}",2024-01-01\n2,"a ""b""",2024-01-02\n'.encode() * 20


def written(write: Callable[[io.BytesIO], object]) -> bytes:
    sink = io.BytesIO()
    write(sink)
    return sink.getvalue()


def arrow(sink: io.BytesIO) -> None:
    with pa.ipc.new_file(sink, TABLE.schema) as writer:
        writer.write_table(TABLE)


def arrow_stream(sink: io.BytesIO) -> None:
    with pa.ipc.new_stream(sink, TABLE.schema) as writer:
        writer.write_table(TABLE)


def avro(sink: io.BytesIO) -> None:
    fields = [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"]},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
    ]
    schema = {"type": "record", "name": "r", "fields": fields}
    fastavro.writer(sink, schema, ROWS, codec="deflate")


def excel(sink: io.BytesIO) -> None:
    with xlsxwriter.Workbook(sink) as book:
        for name in ("a", "b"):
            sheet = book.add_worksheet(name)
            for number, row in enumerate([["id", "name"], *[[i, VALUE] for i in range(30)]]):
                sheet.write_row(number, 0, row)


CONTENTS = {
    "csv": TEXT,
    "tsv": TEXT.replace(b",", b"\t"),
    "json": json.dumps(ROWS).encode(),
    "jsonl": LINES,
    "parquet": written(lambda sink: pq.write_table(TABLE, sink)),
    "orc": written(lambda sink: orc.write_table(TABLE, sink)),
    "avro": written(avro),
    "arrow": written(arrow),
    "arrows": written(arrow_stream),
    "xlsx": written(excel),
    "csv.gz": gzip.compress(TEXT),
    "csv.bz2": bz2.compress(TEXT),
    "csv.xz": lzma.compress(TEXT),
    "csv.zst": zstandard.compress(TEXT),
    "csv.lz4": lz4_frames(TEXT),
    "json.snappy": hadoop_blocks(LINES, "snappy"),
    "json.sz": framed_snappy(LINES),
}


def mutated(content: bytes, chance: random.Random) -> bytes:
    """Damage a file as disks, networks and programs do."""
    damaged = bytearray(content)
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(damaged)) if damaged else 0
        match chance.randrange(6):
            case 0 | 1:
                damaged[place : place + 1] = bytes([chance.randrange(256)])
            case 2:
                damaged[place : place + 4] = chance.choice(
                    [b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", bytes(4)]
                )
            case 3:
                del damaged[place : place + chance.randint(1, 40)]
            case 4:
                damaged[place:place] = chance.randbytes(chance.randint(1, 40))
            case _:
                del damaged[place:]
    return bytes(damaged) or b"\x00"


@pytest.mark.parametrize("suffix", CONTENTS)
def test_no_damaged_file_takes_a_reader_along_or_is_lost(suffix: str, tmp_path: Path) -> None:
    chance = random.Random(suffix)
    items = []
    for number in range(MUTATED):
        path = tmp_path / f"{number}.{suffix}"
        path.write_bytes(mutated(CONTENTS[suffix], chance))
        items.append(FileItem(str(path), path.stat().st_size))
    outcomes: Counter[str] = Counter()
    with Sandbox(limits=Limits(seconds=30)) as sandbox:
        answers = list(sandbox.read_files(items))
    assert [item for item, _ in answers] == items
    for _, answer in answers:
        assert isinstance(answer, FileFacts | UnreadableItemError)
        outcomes["read" if isinstance(answer, FileFacts) else answer.message] += 1
        if isinstance(answer, UnreadableItemError):
            assert VALUE not in answer.message
    hung = [reason for reason in outcomes if "longer than" in reason and " s" in reason]
    failed = [reason for reason in outcomes if "its reader failed" in reason]
    assert (hung, failed) == ([], []), outcomes
