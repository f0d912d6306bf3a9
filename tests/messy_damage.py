"""Files of every format that are damaged, so that somebody has to be told of each."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import random
from collections.abc import Callable
from typing import Final, NamedTuple

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

Rng = random.Random


class DamagedFile(NamedTuple):
    """A file and what was done to it."""

    name: str
    content: bytes
    damage: str


def damaged_file(rng: Rng, *, number: int = 0) -> DamagedFile:
    """Return one damaged file of any format."""
    ending = rng.choice(sorted(_WRITERS))
    damages = _OF_JSON if ending in (".json", ".jsonl") and rng.random() < 0.4 else _DAMAGES
    damage = rng.choice(sorted(damages))
    # Nobody sees in a sample that a second array follows far behind it.
    sizes = (30, 300) if damage == "concatenated" else (30, 300, 6000)
    content = _WRITERS[ending](rng, rng.choice(sizes))
    if ending in (".csv", ".jsonl") and damage == "cut":
        damage = "cut inside a row"
    harmed = (
        _cut_row(rng, content) if damage == "cut inside a row" else damages[damage](rng, content)
    )
    return DamagedFile(f"file{number:04}{ending}", harmed, damage)


def _records(rng: Rng, count: int) -> list[dict[str, object]]:
    return [
        {"id": n, "name": rng.choice(("amber", "birch", "cedar")), "price": rng.random()}
        for n in range(count)
    ]


def _csv(rng: Rng, count: int) -> bytes:
    rows = (f"{r['id']},{r['name']},{r['price']}" for r in _records(rng, count))
    return "\n".join(("id,name,price", *rows)).encode() + b"\n"


def _lines(rng: Rng, count: int) -> bytes:
    return b"".join(json.dumps(r).encode() + b"\n" for r in _records(rng, count))


def _array(rng: Rng, count: int) -> bytes:
    return json.dumps(_records(rng, count)).encode()


def _table(rng: Rng, count: int) -> pa.Table:
    return pa.Table.from_pylist(_records(rng, count))


def _parquet(rng: Rng, count: int) -> bytes:
    sink = io.BytesIO()
    pq.write_table(_table(rng, count), sink)
    return sink.getvalue()


def _orc(rng: Rng, count: int) -> bytes:
    sink = io.BytesIO()
    orc.write_table(_table(rng, count), sink)
    return sink.getvalue()


def _avro(rng: Rng, count: int) -> bytes:
    fields = [("id", "long"), ("name", "string"), ("price", "double")]
    schema = {
        "type": "record",
        "name": "row",
        "fields": [{"name": name, "type": kind} for name, kind in fields],
    }
    sink = io.BytesIO()
    fastavro.writer(sink, fastavro.parse_schema(schema), _records(rng, count))
    return sink.getvalue()


def _arrow(rng: Rng, count: int) -> bytes:
    table = _table(rng, count)
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


_WRITERS: Final[dict[str, Callable[[Rng, int], bytes]]] = {
    ".csv": _csv,
    ".jsonl": _lines,
    ".json": _array,
    ".parquet": _parquet,
    ".orc": _orc,
    ".avro": _avro,
    ".arrow": _arrow,
    ".csv.gz": lambda rng, count: gzip.compress(_csv(rng, count)),
    ".jsonl.bz2": lambda rng, count: bz2.compress(_lines(rng, count)),
}


def _cut_row(rng: Rng, content: bytes) -> bytes:
    """Cut inside the last row that is left, before its last value."""
    end = content.rfind(b"\n", 0, max(40, int(len(content) * rng.uniform(0.2, 1)) - 30))
    return content[: content.find(b",", end + 1)]


_DAMAGES: Final[dict[str, Callable[[Rng, bytes], bytes]]] = {
    "cut": lambda rng, content: content[: max(5, int(len(content) * rng.uniform(0.4, 0.97)))],
    "empty": lambda rng, content: b"",
    "zeros": lambda rng, content: bytes(len(content)),
    "overwritten head": lambda rng, content: rng.randbytes(64) + content[64:],
    "something else": lambda rng, content: rng.randbytes(len(content)),
}
_OF_JSON: Final[dict[str, Callable[[Rng, bytes], bytes]]] = {
    "trailing comma": lambda rng, content: (
        content.rstrip()[:-1] + b",]"
        if content.startswith(b"[")
        else content.replace(b"}\n", b",}\n", 1)
    ),
    "NaN": lambda rng, content: content.replace(b'"price": 0', b'"price": NaN, "x": 0', 1),
    "Infinity": lambda rng, content: content.replace(
        b'"price": 0', b'"price": -Infinity, "x": 0', 1
    ),
    "concatenated": lambda rng, content: 2 * content.replace(b"}\n", b"}"),
    "a broken line": lambda rng, content: content.replace(b'"name": ', b'"name" ', 3),
}
