"""Data that tests profile, in every format, and what independent engines say of it."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

SECRET = "s3cr3t-Ünïcødé-名前"
"""Stands in text and binary columns, and must never come out."""
MOMENT = datetime(2024, 2, 29, 12, 30, 15, 123456, tzinfo=UTC)


def rows_of(count: int, *, first: int = 0) -> pa.Table:
    """Return rows with every type that Spark's own readers know, nulls and nested fields."""
    import pyarrow as pa

    numbers = range(first, first + count)
    naive = MOMENT.replace(tzinfo=None)
    address = pa.struct(
        [("city", pa.string()), ("zip", pa.int32()), ("geo", pa.struct([("lat", pa.float64())]))]
    )
    columns: dict[str, tuple[list[Any], pa.DataType]] = {
        "id": (list(numbers), pa.int64()),
        "small": ([n % 7 if n % 5 else None for n in numbers], pa.int8()),
        "price": ([Decimal(n * 31 % 997) / 100 for n in numbers], pa.decimal128(12, 2)),
        "ratio": ([_ratio(n) for n in numbers], pa.float64()),
        "flag": ([None if n % 10 == 0 else n % 3 == 0 for n in numbers], pa.bool_()),
        "name": ([None if n % 4 == 0 else f"{SECRET}{n % 50}" for n in numbers], pa.string()),
        "blob": ([SECRET.encode()[: n % 9] for n in numbers], pa.binary()),
        "day": ([date(2024, 1, 1) + timedelta(days=n % 400) for n in numbers], pa.date32()),
        "at": (
            [MOMENT + timedelta(seconds=n) if n % 3 else None for n in numbers],
            pa.timestamp("us", "UTC"),
        ),
        "local": ([naive + timedelta(hours=n) for n in numbers], pa.timestamp("us")),
        "nothing": ([None] * count, pa.int32()),
        "tags": ([["t"] * (n % 4) if n % 6 else None for n in numbers], pa.list_(pa.string())),
        "address": ([_address(n) for n in numbers], address),
    }
    return pa.table({name: pa.array(values, type_) for name, (values, type_) in columns.items()})


def odd_rows(count: int) -> pa.Table:
    """Return rows with types that Spark cannot read from files by itself."""
    import pyarrow as pa

    return pa.table(
        {
            "huge": pa.array([2**64 - 1 - n for n in range(count)], pa.uint64()),
            "nanos": pa.array([n * 1_000_000_001 for n in range(count)], pa.timestamp("ns")),
            "clock": pa.array([time(n % 24, n % 60) for n in range(count)], pa.time64("us")),
            "word": pa.array([f"w{n % 3}" for n in range(count)]).dictionary_encode(),
            "sizes": pa.array(
                [[(str(k), k) for k in range(n % 3)] if n % 5 else None for n in range(count)],
                pa.map_(pa.string(), pa.int64()),
            ),
            "Word": pa.array([n / 2 for n in range(count)], pa.float32()),
            "void": pa.nulls(count),
        }
    )


def figures(table: pa.Table, column: str) -> dict[str, Any]:
    """Return what DuckDB says of a column; a member of a struct is given by its path."""
    import duckdb

    with duckdb.connect() as engine:
        engine.execute("SET TimeZone='UTC'")
        engine.register("data", table)
        name = ".".join(f'"{part}"' for part in column.split("."))
        engine.execute(f"CREATE TABLE one AS SELECT {name} AS v FROM data")  # noqa: S608
        kind = engine.execute("SELECT any_value(typeof(v)) FROM one").fetchall()[0][0]
        if kind == "DOUBLE":
            engine.execute("UPDATE one SET v = NULL WHERE NOT isfinite(v)")
        asked = "count(*), count(v), count(DISTINCT v)"
        names = ["rows", "values", "distinct"]
        if kind in {"VARCHAR", "BLOB"} or kind.endswith("[]"):
            length = "octet_length(v)" if kind == "BLOB" else "len(v)"
            asked += f", min({length}), avg({length}), max({length})"
            names += ["shortest", "length", "longest"]
        elif kind in {"DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE"}:
            asked += ", min(v), max(v)"
            names += ["min", "max"]
        else:
            asked += ", min(v), max(v), avg(v), stddev_samp(v)"
            asked += ", quantile_disc(v, [0.05, 0.25, 0.5, 0.75, 0.95])"
            names += ["min", "max", "mean", "stddev", "quantiles"]
        found = engine.execute(f"SELECT {asked} FROM one").fetchall()[0]  # noqa: S608
    return dict(zip(names, found, strict=True))


def write_parquet(path: Path, table: pa.Table, **options: Any) -> None:
    """Write a file, and the folders above it."""
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, **options)


def damage_data(path: Path) -> None:
    """Damage the pages of a Parquet file and leave its footer whole."""
    content = bytearray(path.read_bytes())
    for place in range(8, len(content) // 2):
        content[place] ^= 0x5A
    path.write_bytes(bytes(content))


def _ratio(n: int) -> float | None:
    special = {0: None, 1: math.nan, 2: math.inf, 3: -math.inf}
    return special.get(n % 50, n / 8)


def _address(n: int) -> dict[str, Any] | None:
    if n % 5 == 0:
        return None
    geo = None if n % 2 else {"lat": n / 4}
    return {"city": f"{SECRET[: n % 7]}", "zip": n % 90 if n % 3 else None, "geo": geo}
