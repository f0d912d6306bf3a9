"""What the text readers say of generated files, against DuckDB and polars."""

from __future__ import annotations

import csv
import io
import json
import random
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

from conftest import FULL_SIZE
from lumos.core.formats.facts import FileFacts
from lumos.core.formats.reader import read_file
from packers import PACKERS

FILES = 400 if FULL_SIZE else 25
KINDS = ("integer", "decimal", "word", "day", "flag")
CANONICAL = {
    "integer": "INT64",
    "decimal": "DOUBLE",
    "word": "STRING",
    "day": "DATE",
    "flag": "BOOLEAN",
}
DUCKDB = {
    "BIGINT": "INT64",
    "DOUBLE": "DOUBLE",
    "VARCHAR": "STRING",
    "DATE": "DATE",
    "BOOLEAN": "BOOLEAN",
}
POLARS = {
    "Int64": "INT64",
    "Float64": "DOUBLE",
    "String": "STRING",
    "Date": "DATE",
    "Boolean": "BOOLEAN",
}
WORDS = ("north", "a, b", 'say "hi"', "it's", "über", "two\nlines", "x;y", "p|q", "  pad")


def value(kind: str, chance: random.Random) -> Any:
    match kind:
        case "integer":
            return chance.randrange(-(10**12), 10**12)
        case "decimal":
            return chance.randrange(-(10**9), 10**9) / 128 + 1 / 256
        case "day":
            return date(2000, 1, 1) + timedelta(days=chance.randrange(10_000))
        case "flag":
            return chance.random() < 0.5
        case _:
            return f"{chance.choice(WORDS)} {chance.randrange(100)}"


def table(seed: int) -> tuple[list[str], list[str], list[list[Any]]]:
    """Names, kinds and rows; every column has some values and some nulls."""
    chance = random.Random(seed)
    kinds = ["word", *chance.choices(KINDS, k=chance.randint(1, 7))]
    names = [f"{kind}_{number}" for number, kind in enumerate(kinds)]
    rows = [
        [value(kind, chance) if i == 0 or chance.random() < 0.8 else None for kind in kinds]
        for i in range(chance.randint(2, 300))
    ]
    return names, kinds, rows


def facts_of(path: Path) -> FileFacts:
    content = path.read_bytes()
    return read_file(io.BytesIO(content), size=len(content), name=path.name)


def columns_of(facts: FileFacts) -> list[tuple[str, str]]:
    return [(field.name, field.type.value) for field in facts.schema.fields]


def rows_agree(facts: FileFacts, rows: int) -> None:
    if facts.rows is not None:
        assert facts.rows == rows
    assert facts.rows_estimate is not None
    assert abs(facts.rows_estimate - rows) <= 0.2 * rows + 2


@pytest.mark.parametrize("seed", range(FILES))
def test_a_generated_csv_is_the_same_to_three_readers(seed: int, tmp_path: Path) -> None:
    names, kinds, rows = table(seed)
    delimiter = (",", ";", "\t", "|")[seed % 4]
    path = tmp_path / "a.csv"
    with path.open("w", newline="", encoding="utf-8") as sink:
        writer = csv.writer(sink, delimiter=delimiter, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([[_spelled(cell) for cell in row] for row in rows])
    facts = facts_of(path)
    assert facts.properties["delimiter"] == delimiter
    assert columns_of(facts) == [
        (name, CANONICAL[kind]) for name, kind in zip(names, kinds, strict=True)
    ]
    rows_agree(facts, len(rows))
    with duckdb.connect() as engine:
        relation = engine.sql(f"select * from read_csv('{path}', delim='{delimiter}')")  # noqa: S608
        theirs = [
            (name, DUCKDB[str(t)]) for name, t in zip(relation.columns, relation.types, strict=True)
        ]
        assert columns_of(facts) == theirs
        assert relation.count("*").fetchall() == [(len(rows),)]
    frame = pl.read_csv(path, separator=delimiter, try_parse_dates=True, infer_schema_length=None)
    assert columns_of(facts) == [(name, POLARS[str(t)]) for name, t in frame.schema.items()]
    assert frame.height == len(rows)


@pytest.mark.parametrize("seed", range(FILES))
def test_generated_json_is_the_same_to_three_readers(seed: int, tmp_path: Path) -> None:
    names, kinds, rows = table(seed)
    kinds = ["word" if kind == "day" else kind for kind in kinds]
    path = tmp_path / "a.jsonl"
    records = [dict(zip(names, map(_jsonable, row), strict=True)) for row in rows]
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    facts = facts_of(path)
    assert columns_of(facts) == [
        (name, CANONICAL[kind]) for name, kind in zip(names, kinds, strict=True)
    ]
    rows_agree(facts, len(rows))
    frame = pl.read_ndjson(path, infer_schema_length=None)
    assert columns_of(facts) == [(name, POLARS[str(t)]) for name, t in frame.schema.items()]
    assert frame.height == len(rows)
    with duckdb.connect() as engine:
        relation = engine.sql(
            f"select * from read_json('{path}', format='newline_delimited', dateformat='none')"  # noqa: S608
        )
        assert relation.columns == names
        assert relation.count("*").fetchall() == [(len(rows),)]


@pytest.mark.parametrize("way", ["gzip", "zstd"])
def test_a_packed_csv_is_the_same_to_duckdb(way: str, tmp_path: Path) -> None:
    suffix, _, pack = PACKERS[way]
    path = tmp_path / f"a.csv.{suffix}"
    path.write_bytes(pack(b"id,name\n" + b"".join(b"%d,n%d\n" % (i, i) for i in range(5_000))))
    facts = facts_of(path)
    with duckdb.connect() as engine:
        relation = engine.sql(f"select * from read_csv('{path}')")  # noqa: S608
        assert relation.columns == [field.name for field in facts.schema.fields]
    rows_agree(facts, 5_000)


def _spelled(cell: Any) -> Any:
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return cell


def _jsonable(cell: Any) -> Any:
    return f"day {cell}" if isinstance(cell, date) else cell
