"""What independent readers say of a file, in one spelling, to compare Lumos with.

Each reader has its own blind spots: a type it has no name for is spelled as what it calls it, and
`comparable` spells the canonical type the same way.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lumos.core.models import FieldType, TypeName

Columns = dict[str, str]


@dataclass(frozen=True)
class Verdict:
    """What one reader says."""

    reader: str
    columns: Columns
    rows: int
    required: frozenset[str] | None = None
    """Columns that may not be null; None where the reader does not tell."""


def comparable(node: FieldType, reader: str) -> str:
    """Spell a canonical type as this reader would."""
    losses = LOSSES[reader]
    match node.type:
        case TypeName.ARRAY:
            return f"list<{comparable(_some(node.items), reader)}>"
        case TypeName.MAP:
            key = comparable(_some(node.key), reader)
            return f"map<{key},{comparable(_some(node.value), reader)}>"
        case TypeName.STRUCT:
            inner = (f"{field.name}:{comparable(field, reader)}" for field in node.fields)
            return f"struct<{','.join(inner)}>"
        case TypeName.DECIMAL:
            return f"decimal({node.precision},{node.scale})"
        case _:
            name = node.type.value.lower()
            return losses.get(name, name)


def _some(node: FieldType | None) -> FieldType:
    assert node is not None
    return node


LOSSES: dict[str, Mapping[str, str]] = {
    "pyarrow": {},
    "duckdb": {},
    "polars": {"uuid": "binary", "json": "string", "duration": "duration"},
    "spark": {
        "uint8": "int16",
        "uint16": "int32",
        "uint32": "int64",
        "uint64": "decimal(20,0)",
        "uuid": "binary",
        "json": "string",
        "time": "time",
    },
    "fastparquet": {},
    "pyorc": {},
    "fastavro": {},
}


def pyarrow_parquet(path: Path) -> Verdict:
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    names = table.schema.names
    required = frozenset(name for name in names if not table.schema.field(name).nullable)
    columns = {name: _arrow(table.schema.field(name).type) for name in names}
    return Verdict("pyarrow", columns, table.num_rows, required)


def _arrow(kind: Any) -> str:
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(kind):
        return _arrow(kind.value_type)
    if types.is_map(kind):
        return f"map<{_arrow(kind.key_type)},{_arrow(kind.item_type)}>"
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return f"list<{_arrow(kind.value_type)}>"
    if types.is_struct(kind):
        inner = (
            f"{kind.field(i).name}:{_arrow(kind.field(i).type)}" for i in range(kind.num_fields)
        )
        return f"struct<{','.join(inner)}>"
    if types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if types.is_timestamp(kind):
        return "timestamp_ntz" if kind.tz is None else "timestamp"
    text = re.sub(r"\[.*", "", str(kind))
    return {
        "bool": "boolean",
        "halffloat": "float",
        "large_string": "string",
        "string_view": "string",
        "large_binary": "binary",
        "fixed_size_binary": "binary",
        "date32": "date",
        "time32": "time",
        "time64": "time",
        "null": "unknown",
        "extension<arrow.uuid>": "uuid",
        "extension<arrow.json>": "json",
    }.get(text, text)


def duckdb_parquet(path: Path) -> Verdict:
    import duckdb

    with duckdb.connect() as connection:
        source = f"read_parquet('{path}')"
        described = connection.sql(f"DESCRIBE SELECT * FROM {source}").fetchall()  # noqa: S608
        (count,) = connection.sql(f"SELECT count(*) FROM {source}").fetchall()[0]  # noqa: S608
        raw = connection.sql(f"FROM parquet_schema('{path}')").fetchall()
        names = [
            column[0] for column in connection.sql(f"FROM parquet_schema('{path}')").description
        ]
    parts = [dict(zip(names, row, strict=True)) for row in raw]
    top = _top_level(parts)
    required = frozenset(part["name"] for part in top if part["repetition_type"] == "REQUIRED")
    repeated = frozenset(part["name"] for part in top if part["repetition_type"] == "REPEATED")
    columns = {row[0]: _duckdb(row[1]) for row in described}
    return Verdict("duckdb", columns, count, required | repeated)


def _top_level(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The columns themselves, of a list of all nodes of the tree from the root on."""
    found, position = [], 1
    while position < len(parts):
        found.append(parts[position])
        left = parts[position]["num_children"] or 0
        position += 1
        while left:
            left += (parts[position]["num_children"] or 0) - 1
            position += 1
    return found


_DUCKDB = {
    "TINYINT": "int8", "SMALLINT": "int16", "INTEGER": "int32", "BIGINT": "int64",
    "UTINYINT": "uint8", "USMALLINT": "uint16", "UINTEGER": "uint32", "UBIGINT": "uint64",
    "VARCHAR": "string", "BLOB": "binary", "TIME": "time", "TIME_NS": "time",
    "TIME WITH TIME ZONE": "time",
    "TIMESTAMP": "timestamp_ntz", "TIMESTAMP_NS": "timestamp_ntz", "TIMESTAMP_MS": "timestamp_ntz",
    "TIMESTAMP_S": "timestamp_ntz", "TIMESTAMP WITH TIME ZONE": "timestamp",
    "TIMESTAMPTZ_NS": "timestamp", "INTERVAL": "duration", '"NULL"': "unknown", "VARIANT": "json",
}  # fmt: skip


def _duckdb(text: str) -> str:
    if text.endswith("[]"):
        return f"list<{_duckdb(text[:-2])}>"
    if text.startswith("MAP("):
        key, value = _split(text[4:-1])
        return f"map<{_duckdb(key)},{_duckdb(value)}>"
    if text.startswith("STRUCT("):
        members = [part.strip().split(" ", 1) for part in _split(text[7:-1])]
        inner = (f"{name.strip(chr(34))}:{_duckdb(kind)}" for name, kind in members)
        return f"struct<{','.join(inner)}>"
    if text.startswith("GEOMETRY"):
        return "geometry"
    if text.startswith("ENUM"):
        return "string"
    return _DUCKDB.get(text, text.lower())


def _split(text: str) -> list[str]:
    """Split at commas outside of parentheses."""
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append(text[start:position].strip())
            start = position + 1
    return [*parts, text[start:].strip()]


def polars_parquet(path: Path) -> Verdict:
    import polars as pl

    frame = pl.read_parquet(path)
    columns = {name: _polars(kind) for name, kind in frame.schema.items()}
    return Verdict("polars", columns, frame.height)


def polars_avro(path: Path) -> Verdict:
    import polars as pl

    frame = pl.read_avro(path)
    columns = {name: _polars(kind) for name, kind in frame.schema.items()}
    return Verdict("polars", columns, frame.height)


def _polars(kind: Any) -> str:
    import polars as pl

    match kind:
        case pl.List() | pl.Array():
            return f"list<{_polars(kind.inner)}>"
        case pl.Struct():
            inner = (f"{field.name}:{_polars(field.dtype)}" for field in kind.fields)
            return f"struct<{','.join(inner)}>"
        case pl.Decimal():
            return f"decimal({kind.precision},{kind.scale})"
        case pl.Datetime():
            return "timestamp_ntz" if kind.time_zone is None else "timestamp"
    text = str(kind)
    if text.startswith("Map("):
        key, value = _split(text[4:-1])
        return f"map<{_POLARS.get(key, key.lower())},{_POLARS.get(value, value.lower())}>"
    text = text.partition("(")[0]
    return _POLARS.get(text, text.lower())


_POLARS = {
    "Float16": "float", "Float32": "float", "Float64": "double", "Null": "unknown",
    "Categorical": "string", "Enum": "string",
}  # fmt: skip


def fastparquet_parquet(path: Path) -> Verdict:
    from fastparquet import ParquetFile, parquet_thrift

    file = ParquetFile(str(path))
    parts = [
        {"name": part.name, "kind": part.repetition_type, "num_children": part.num_children}
        for part in file.fmd.schema
    ]
    top = [(_text(part["name"]), part["kind"]) for part in _top_level(parts)]
    optional = parquet_thrift.FieldRepetitionType.OPTIONAL
    return Verdict(
        "fastparquet",
        dict.fromkeys([name for name, _ in top], ""),
        int(file.count()),
        frozenset(name for name, kind in top if kind != optional),
    )


def _text(name: Any) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)


def spark_columns(schema: Any) -> Columns:
    """Spell the schema of a Spark frame."""
    return {field.name: _spark(field.dataType.jsonValue()) for field in schema.fields}


_SPARK = {
    "byte": "int8", "short": "int16", "integer": "int32", "long": "int64", "variant": "json",
    "boolean": "boolean",
}  # fmt: skip


def _spark(kind: Any) -> str:
    if isinstance(kind, str):
        if kind.startswith("interval"):
            return "duration"
        if kind.startswith(("char(", "varchar(")):
            return "string"
        return _SPARK.get(kind, kind.partition("(")[0] if kind.startswith("time(") else kind)
    match kind["type"]:
        case "array":
            return f"list<{_spark(kind['elementType'])}>"
        case "map":
            return f"map<{_spark(kind['keyType'])},{_spark(kind['valueType'])}>"
        case _:
            inner = (f"{field['name']}:{_spark(field['type'])}" for field in kind["fields"])
            return f"struct<{','.join(inner)}>"
