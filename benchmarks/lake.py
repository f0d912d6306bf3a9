"""Makes lakes of many small files of several formats, the same for the same numbers.

Run: python benchmarks/lake.py FOLDER --datasets N --files-each N [--seed N]

A dataset is a folder `area/subject_number` with one folder per day. Of twenty datasets ten are
Parquet, three Avro, three CSV, two JSON lines and two ORC; a fifth of the texts is gzipped, a
quarter of the others has nested columns, one dataset in fifteen changes its schema half-way.
About one file in 150 is broken: empty, cut off, or noise. Datasets write a few different bodies
again and again, which makes a lake of 100,000 files a matter of a minute or two.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import json
import random
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import NamedTuple

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

AREAS = ("landing", "curated", "marts", "sandbox")
SUBJECTS = ("bookings", "fares", "crews", "meters", "claims", "parcels", "visits", "tariffs")
FORMATS = tuple("ppappcpjpoappcpjacop")
"""One letter for each of twenty datasets, by the first letter of the format."""
BODIES = 3
MOST_ROWS = 160
NESTED_SHARE, PACKED_SHARE, NULL_SHARE = 0.25, 0.2, 0.04
_NAMES = {"p": "parquet", "a": "avro", "c": "csv", "j": "jsonl", "o": "orc"}

Rows = list[dict[str, object]]
Draw = Callable[[random.Random], object]


class Kind(NamedTuple):
    """A type of column: how Arrow and Avro call it, and where its values come from."""

    arrow: pa.DataType
    avro: object
    draw: Draw


class LakeSize(NamedTuple):
    """How large a lake is."""

    datasets: int
    files_each: int

    @property
    def files(self) -> int:
        return self.datasets * self.files_each


SIZES = {
    2_000: LakeSize(200, 10),
    20_000: LakeSize(1_000, 20),
    100_000: LakeSize(2_000, 50),
}


def _word(rng: random.Random) -> str:
    return f"{rng.choice(SUBJECTS)} {rng.randrange(3_000)}"


def _place(rng: random.Random) -> dict[str, object]:
    return {"town": _word(rng), "point": {"north": rng.random(), "east": rng.random()}}


_POINT_AVRO = {
    "type": "record",
    "name": "Point",
    "fields": [{"name": "north", "type": "double"}, {"name": "east", "type": "double"}],
}
_PLACE_AVRO = {
    "type": "record",
    "name": "Place",
    "fields": [{"name": "town", "type": "string"}, {"name": "point", "type": _POINT_AVRO}],
}
_POINT = pa.struct([("north", pa.float64()), ("east", pa.float64())])
FLAT = {
    "number": Kind(pa.int64(), "long", lambda rng: rng.randrange(1 << 45)),
    "count": Kind(pa.int32(), "int", lambda rng: rng.randrange(1 << 18)),
    "ratio": Kind(pa.float64(), "double", lambda rng: rng.random()),
    "text": Kind(pa.string(), "string", _word),
    "flag": Kind(pa.bool_(), "boolean", lambda rng: rng.choice((True, False))),
    "moment": Kind(
        pa.timestamp("us", tz="UTC"),
        {"type": "long", "logicalType": "timestamp-micros"},
        lambda rng: datetime(2025, 1, 1, tzinfo=UTC) + timedelta(seconds=rng.randrange(10**7)),
    ),
    "day": Kind(
        pa.date32(),
        {"type": "int", "logicalType": "date"},
        lambda rng: date(2025, 1, 1) + timedelta(days=rng.randrange(900)),
    ),
    "price": Kind(
        pa.decimal128(12, 2),
        {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2},
        lambda rng: Decimal(rng.randrange(10**9)).scaleb(-2),
    ),
}
NESTED = {
    "place": Kind(pa.struct([("town", pa.string()), ("point", _POINT)]), _PLACE_AVRO, _place),
    "labels": Kind(
        pa.list_(pa.string()),
        {"type": "array", "items": "string"},
        lambda rng: [_word(rng) for _ in range(rng.randrange(4))],
    ),
    "spots": Kind(
        pa.list_(_POINT),
        {"type": "array", "items": {**_POINT_AVRO, "name": "Spot"}},
        lambda rng: [{"north": rng.random(), "east": 1.0} for _ in range(rng.randrange(3))],
    ),
}
KINDS = {**FLAT, **NESTED}
Columns = Mapping[str, str]
"""The kind of each column by its name."""


@dataclass(frozen=True)
class Recipe:
    """Everything about one dataset."""

    folder: Path
    format: str
    suffix: str
    before: Columns
    after: Columns
    files_per_day: int

    @classmethod
    def of(cls, number: int, lake: Path, *, rng: random.Random) -> Recipe:
        letter = FORMATS[number % len(FORMATS)]
        columns = {"key": "number", "seen_at": "moment", "state": "text", "total": "count"}
        for place in range(rng.randrange(3, 20)):
            columns[f"{rng.choice(SUBJECTS)}_{place}"] = rng.choice(sorted(FLAT))
        if letter != "c" and rng.random() < NESTED_SHARE:
            columns |= {kind: kind for kind in rng.sample(sorted(NESTED), rng.randrange(1, 3))}
        later = dict(columns)
        match rng.randrange(60):
            case 0:
                later["remark"] = "text"
            case 1:
                later["total"] = "number"
            case 2:
                del later["state"]
            case 3:
                later = {("status" if name == "state" else name): k for name, k in later.items()}
            case _:
                pass
        suffix = "." + _NAMES[letter]
        if letter in "cj" and rng.random() < PACKED_SHARE:
            suffix += ".gz"
        folder = lake / AREAS[number % 4] / f"{SUBJECTS[number // 4 % 8]}_{number:05}"
        return cls(folder, _NAMES[letter], suffix, columns, later, rng.choice((1, 2, 5)))


def make_lake(lake: Path, size: LakeSize, *, seed: int = 1) -> None:
    """Write a lake in two processes."""
    make = partial(make_dataset, lake=lake, files=size.files_each, seed=seed)
    with ProcessPoolExecutor(2) as pool:
        written = sum(pool.map(make, range(size.datasets), chunksize=10))
    assert written == size.files


def make_dataset(number: int, *, lake: Path, files: int, seed: int) -> int:
    """Write one dataset and return the number of its files."""
    rng = random.Random(f"{seed} {number}")  # noqa: S311 - nothing is kept secret with it
    recipe = Recipe.of(number, lake, rng=rng)
    halves = [bodies(recipe, recipe.before, rng=rng)]
    halves.append(
        halves[0] if recipe.before == recipe.after else bodies(recipe, recipe.after, rng=rng)
    )
    first_day = date(2025, 1, 1) + timedelta(days=rng.randrange(200))
    for place in range(files):
        day = first_day + timedelta(days=place // recipe.files_per_day)
        folder = recipe.folder / f"dt={day}"
        folder.mkdir(parents=True, exist_ok=True)
        half = halves[2 * place // files]
        content = maybe_broken(half[place % BODIES], rng=rng)
        (folder / f"chunk-{place:05}{recipe.suffix}").write_bytes(content)
    return files


def bodies(recipe: Recipe, columns: Columns, *, rng: random.Random) -> list[bytes]:
    """Return some files of one schema."""
    pool = [_row(columns, rng) for _ in range(MOST_ROWS)]
    return [body(recipe, columns, rows=pool[: rng.randrange(40, MOST_ROWS)]) for _ in range(BODIES)]


def _row(columns: Columns, rng: random.Random) -> dict[str, object]:
    return {
        name: None
        if kind in FLAT and name != "key" and rng.random() < NULL_SHARE
        else KINDS[kind].draw(rng)
        for name, kind in columns.items()
    }


def body(recipe: Recipe, columns: Columns, *, rows: Rows) -> bytes:
    """Return the bytes of one file."""
    sink = io.BytesIO()
    match recipe.format:
        case "parquet":
            pq.write_table(_table(columns, rows), sink, row_group_size=80)
        case "orc":
            orc.write_table(_table(columns, rows), sink, compression="zstd")
        case "avro":
            # The marker between blocks is random otherwise.
            fastavro.writer(sink, _avro(columns), rows, codec="deflate", sync_marker=bytes(16))
        case "csv":
            text = io.StringIO()
            writer = csv.writer(text, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows([_plain(value) for value in row.values()] for row in rows)
            sink.write(text.getvalue().encode())
        case _:
            sink.writelines(json.dumps(row, default=str).encode() + b"\n" for row in rows)
    content = sink.getvalue()
    return gzip.compress(content, mtime=0) if recipe.suffix.endswith(".gz") else content


def _plain(value: object) -> object:
    return str(value).lower() if isinstance(value, bool) else value


def _table(columns: Columns, rows: Rows) -> pa.Table:
    fields = [(name, KINDS[kind].arrow) for name, kind in columns.items()]
    return pa.Table.from_pylist(rows, schema=pa.schema(fields))


def _avro(columns: Columns) -> dict[str, object]:
    fields: Sequence[dict[str, object]] = [
        {"name": name, "type": ["null", KINDS[kind].avro] if kind in FLAT else KINDS[kind].avro}
        for name, kind in columns.items()
    ]
    return {"type": "record", "name": "Entry", "fields": fields}


def maybe_broken(content: bytes, *, rng: random.Random) -> bytes:
    """Return the content, or rarely what is left of it."""
    match rng.randrange(450):
        case 0:
            return b""
        case 1:
            return content[: len(content) * 3 // 5]
        case 2:
            return rng.randbytes(700)
        case _:
            return content


def main() -> None:
    """Make a lake, where one is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--datasets", type=int, default=200)
    parser.add_argument("--files-each", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if given.folder is None:
        print("makes the lakes of other benchmarks; name a folder to make one there")
        return
    make_lake(given.folder, LakeSize(given.datasets, given.files_each), seed=given.seed)


if __name__ == "__main__":
    main()
