"""What reading a footer or header costs above the bare library: Parquet, Avro, ORC.

Run: python benchmarks/read_binary_formats.py [--files N] [--schemas N] [--rounds N]

N files of each format, with the given number of different schemas of 8 to 20 columns. In each
round, in random order, every file of every format is read twice over:
  bare   the library alone: Arrow's metadata and schema, fastavro's blocks, a digest of the schema
  lumos  read_document: the facts with canonical schema, fingerprint and statistics of columns
CPU of this process, medians over the rounds, and per file what Lumos adds.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import random
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from statistics import median

import fastavro
import orjson
import pyarrow as pa
import pyarrow.orc as pyarrow_orc
import pyarrow.parquet as pq

from lumos.core.formats.reader import preload, read_document

ROWS = 200
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
KINDS: tuple[tuple[str, object, pa.DataType, object], ...] = (
    ("id", 7, pa.int64(), "long"),
    ("count", 7, pa.int32(), "int"),
    ("amount", 1.5, pa.float64(), "double"),
    ("status", "open", pa.string(), "string"),
    ("active", True, pa.bool_(), "boolean"),
    ("day", date(2026, 1, 1), pa.date32(), {"type": "int", "logicalType": "date"}),
    (
        "at",
        MOMENT,
        pa.timestamp("us", "UTC"),
        {"type": "long", "logicalType": "timestamp-micros"},
    ),
    (
        "price",
        Decimal("1.50"),
        pa.decimal128(18, 2),
        {"type": "bytes", "logicalType": "decimal", "precision": 18, "scale": 2},
    ),
    ("tags", ["a", "b"], pa.list_(pa.string()), {"type": "array", "items": "string"}),
)


def contents(schemas: int, chance: random.Random) -> dict[str, list[bytes]]:
    """One file of each format for each schema."""
    found: dict[str, list[bytes]] = {"parquet": [], "avro": [], "orc": []}
    for number in range(schemas):
        chosen = [KINDS[i] for i in range(8)] + chance.choices(KINDS, k=chance.randint(0, 12))
        names = [f"{name}_{number}_{place}" for place, (name, *_) in enumerate(chosen)]
        arrays = [pa.array([value] * ROWS, kind) for _, value, kind, _ in chosen]
        table = pa.table(arrays, names=names)
        sink = io.BytesIO()
        pq.write_table(table, sink)
        found["parquet"].append(sink.getvalue())
        sink = io.BytesIO()
        pyarrow_orc.write_table(table, sink, compression="zlib")
        found["orc"].append(sink.getvalue())
        fields = [
            {"name": name, "type": ["null", kind]}
            for name, (_, _, _, kind) in zip(names, chosen, strict=True)
        ]
        row = {name: value for name, (_, value, _, _) in zip(names, chosen, strict=True)}
        sink = io.BytesIO()
        record = {"type": "record", "name": f"r{number}", "fields": fields}
        fastavro.writer(sink, record, [row] * ROWS, codec="deflate")
        found["avro"].append(sink.getvalue())
    return found


def digest(schema: bytes) -> str:
    return hashlib.blake2b(schema, digest_size=8).hexdigest()


def bare_parquet(path: Path, size: int) -> tuple[int, str]:
    metadata = pq.read_metadata(path)
    return metadata.num_rows, digest(str(metadata.schema.to_arrow_schema()).encode())


def bare_orc(path: Path, size: int) -> tuple[int, str]:
    file = pyarrow_orc.ORCFile(path)
    return file.nrows, digest(str(file.schema).encode())


def bare_avro(path: Path, size: int) -> tuple[int, str]:
    with path.open("rb") as stream:
        blocks = fastavro.block_reader(stream)
        rows = sum(block.num_records for block in blocks)
    return rows, digest(orjson.dumps(blocks.writer_schema))


def lumos(path: Path, size: int) -> tuple[int, str]:
    with path.open("rb") as stream:
        facts = orjson.loads(read_document(stream, size=size, name=path.name))
    return facts["rows"], facts["fingerprint"]


def lumos_unparsed(path: Path, size: int) -> bytes:
    with path.open("rb") as stream:
        return read_document(stream, size=size, name=path.name)


BARE: dict[str, Callable[[Path, int], tuple[int, str]]] = {
    "parquet": bare_parquet,
    "avro": bare_avro,
    "orc": bare_orc,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--files", type=int, default=2_000, help="files of each format")
    parser.add_argument("--schemas", type=int, default=100, help="different schemas")
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    chance = random.Random(1)  # noqa: S311 - the same files in every run
    preload()
    with tempfile.TemporaryDirectory() as folder:
        files = written(Path(folder), contents(arguments.schemas, chance), arguments.files)
        for name, paths in files.items():
            assert lumos(*paths[0])[0] == BARE[name](*paths[0])[0] == ROWS
        taken = measured(files, rounds=arguments.rounds, chance=chance)
    print("format    bare us/file  lumos us/file  lumos adds us   lumos / bare")
    for name, ways in taken.items():
        bare, ours = median(ways["bare"]) * 1e6, median(ways["lumos"]) * 1e6
        print(f"{name:8}  {bare:12.1f}  {ours:13.1f}  {ours - bare:13.1f}  {ours / bare:13.2f}")


def written(
    folder: Path, contents: dict[str, list[bytes]], count: int
) -> dict[str, list[tuple[Path, int]]]:
    files: dict[str, list[tuple[Path, int]]] = {}
    for name, different in contents.items():
        for number in range(count):
            content = different[number * len(different) // count]
            path = folder / f"{number}.{name}"
            path.write_bytes(content)
            files.setdefault(name, []).append((path, len(content)))
    return files


def measured(
    files: dict[str, list[tuple[Path, int]]], *, rounds: int, chance: random.Random
) -> dict[str, dict[str, list[float]]]:
    taken: dict[str, dict[str, list[float]]] = {name: {"bare": [], "lumos": []} for name in files}
    turns = [(name, way) for name in files for way in ("bare", "lumos")]
    for _ in range(rounds):
        for name, way in chance.sample(turns, len(turns)):
            read: Callable[[Path, int], object] = BARE[name] if way == "bare" else lumos_unparsed
            started = time.process_time()
            for path, size in files[name]:
                read(path, size)
            taken[name][way].append((time.process_time() - started) / len(files[name]))
    return taken


if __name__ == "__main__":
    main()
