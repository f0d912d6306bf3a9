"""CPU seconds of the text readers, against bare loops over the first records of the same files.

The floor reads 64 KB of a file, splits it with `csv` or parses its first 50 lines with `orjson`,
guesses the types of 50 records and builds nothing. Ours finds out what the file is, how it is
written, its header and types, and returns the finished document. Both run in turn, in one process.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import orjson

from lumos.core.formats.reader import preload, read_document

FIRST_BYTES = 64 * 1024
RECORDS = 50


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    preload()
    print(f"{options.files} files of each kind   (load average {os.getloadavg()[0]:.1f})")
    with tempfile.TemporaryDirectory() as folder:
        for kind, (suffix, bare, write) in KINDS.items():
            paths = [Path(folder) / f"{number}{suffix}" for number in range(options.files)]
            for number, path in enumerate(paths):
                path.write_bytes(write(table(number)))
            measure(kind, paths, bare, rounds=options.rounds)


def measure(kind: str, paths: list[Path], bare: Callable[[Path], object], *, rounds: int) -> None:
    """Run both in turn and print the medians and their ratio."""
    costs: dict[str, list[float]] = {"bare": [], "ours": []}
    for _ in range(rounds):
        for name, read in (("bare", bare), ("ours", ours)):
            before = time.process_time()
            for path in paths:
                read(path)
            costs[name].append((time.process_time() - before) / len(paths) * 1e6)
    floor, own = (statistics.median(costs[name]) for name in ("bare", "ours"))
    print(f"  {kind:<28}{floor:7.0f} us bare {own:7.0f} us ours   {own / floor:5.2f} x bare")


def ours(path: Path) -> bytes:
    """Read one file as the sandbox does."""
    with open(path, "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        return read_document(stream, size=size, name=path.name)


def bare_csv(path: Path) -> object:
    """Split all of the first bytes, and guess the types of the first records."""
    with open(path, "rb", buffering=0) as stream:
        raw = stream.read(FIRST_BYTES)
    if raw.startswith(b"\x1f\x8b"):
        raw = gzip.GzipFile(fileobj=io.BytesIO(raw)).read1(FIRST_BYTES)
    text = raw.decode("utf-8")
    rows = list(csv.reader(io.StringIO(text[: text.rfind("\n") + 1])))
    return [
        (name, {guessed(row[i]) for row in rows[1 : RECORDS + 1] if row[i]})
        for i, name in enumerate(rows[0])
    ]


def bare_json(path: Path) -> object:
    """Parse the first lines, and keep the first type of each name."""
    with open(path, "rb", buffering=0) as stream:
        raw = stream.read(FIRST_BYTES)
    if raw.startswith(b"\x1f\x8b"):
        raw = gzip.GzipFile(fileobj=io.BytesIO(raw)).read1(FIRST_BYTES)
    types: dict[str, str] = {}
    for line in raw.split(b"\n")[: RECORDS + 1][:-1]:
        for name, value in orjson.loads(line).items():
            types.setdefault(name, type(value).__name__)
    return types


def guessed(text: str) -> str:
    """Return the narrowest of four types."""
    if text in ("true", "false"):
        return "bool"
    for kind in (int, float):
        try:
            kind(text)
        except ValueError:
            continue
        return kind.__name__
    return "string"


def table(number: int) -> list[dict[str, object]]:
    """Return the rows of one file: twenty columns of all kinds, a tenth of the values missing."""
    chance = random.Random(number)  # noqa: S311
    kinds = ["integer", "number", "word", "flag", "day"] * 4
    return [
        {
            f"{kind}_{column}": value(kind, chance) if chance.randrange(10) else None
            for column, kind in enumerate(kinds)
        }
        for _ in range(60 + number % 5 * 30)
    ]


def value(kind: str, chance: random.Random) -> object:
    """Return one value."""
    match kind:
        case "integer":
            return chance.randrange(10**9)
        case "number":
            return chance.randrange(10**6) / 128 + 1 / 256
        case "flag":
            return chance.choice((True, False))
        case "day":
            return f"2024-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}"
        case _:
            return f"word {chance.randrange(1000)}"


def as_csv(rows: list[dict[str, object]], *, delimiter: str = ",") -> bytes:
    """Write rows with a header."""
    sink = io.StringIO()
    writer = csv.writer(sink, delimiter=delimiter, lineterminator="\n")
    writer.writerow(rows[0])
    for row in rows:
        writer.writerow(
            [str(cell).lower() if isinstance(cell, bool) else cell for cell in row.values()]
        )
    return sink.getvalue().encode()


def as_lines(rows: list[dict[str, object]]) -> bytes:
    """Write one record a line."""
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def as_nested_lines(rows: list[dict[str, object]]) -> bytes:
    """Write one record a line, with objects and arrays inside, of which some lack a name."""
    nested = [
        {"id": i, "inner": row, "tags": ["a", "b"], **({"seldom": 1} if i % 7 == 0 else {})}
        for i, row in enumerate(rows)
    ]
    return as_lines(nested)


KINDS: dict[
    str, tuple[str, Callable[[Path], object], Callable[[list[dict[str, object]]], bytes]]
] = {
    "CSV": (".csv", bare_csv, as_csv),
    "CSV in gzip": (".csv.gz", bare_csv, lambda rows: gzip.compress(as_csv(rows))),
    "JSON lines": (".jsonl", bare_json, as_lines),
    "JSON lines in gzip": (".jsonl.gz", bare_json, lambda rows: gzip.compress(as_lines(rows))),
    "JSON lines, nested, uneven": (".ndjson", bare_json, as_nested_lines),
}

if __name__ == "__main__":
    main()
