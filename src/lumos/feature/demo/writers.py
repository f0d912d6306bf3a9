"""Writes made-up rows in every format; the same rows always give the same bytes."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from lumos.feature.demo.columns import Column, ColumnType, ListOf, MapOf, Struct, Value

if TYPE_CHECKING:
    import pyarrow as pa

Rows = Sequence[dict[str, Value]]

_PRECISION, _SCALE = 12, 2
_AVRO: Final[dict[str, Any]] = {
    "bool": "boolean",
    "int32": "int",
    "int64": "long",
    "float": "float",
    "double": "double",
    "string": "string",
    "money": {"type": "bytes", "logicalType": "decimal", "precision": _PRECISION, "scale": _SCALE},
    "date": {"type": "int", "logicalType": "date"},
    "time": {"type": "long", "logicalType": "timestamp-micros"},
}
_AVRO_MARKER: Final = b"lumos-demo-lake!"  # 16 bytes; a random one would change every file


def encoded(path: str, columns: Sequence[Column], rows: Rows) -> bytes:
    """Return the file that holds the rows, in the format that its name asks for."""
    name = path.rpartition("/")[2]
    plain = name.removesuffix(".gz")
    content = _WRITERS[plain.rpartition(".")[2]](columns, rows)
    return content if plain == name else gzip.compress(content, mtime=0)


def _parquet(columns: Sequence[Column], rows: Rows) -> bytes:
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    pq.write_table(_table(columns, rows), sink, compression="snappy")
    return sink.getvalue()


def _orc(columns: Sequence[Column], rows: Rows) -> bytes:
    from pyarrow import orc

    sink = io.BytesIO()
    orc.write_table(_table(columns, rows), sink)
    return sink.getvalue()


def _avro(columns: Sequence[Column], rows: Rows) -> bytes:
    import fastavro

    schema = {"type": "record", "name": "row", "fields": [_avro_field(c, c.name) for c in columns]}
    sink = io.BytesIO()
    fastavro.writer(
        sink,
        fastavro.parse_schema(schema),
        [dict(row) for row in rows],
        codec="deflate",
        sync_marker=_AVRO_MARKER,
    )
    return sink.getvalue()


def _json(columns: Sequence[Column], rows: Rows) -> bytes:
    lines = (json.dumps(row, default=_as_text, ensure_ascii=False) for row in rows)
    return "".join(f"{line}\n" for line in lines).encode()


def _csv(columns: Sequence[Column], rows: Rows) -> bytes:
    return _separated(columns, rows, separator=",")


def _tsv(columns: Sequence[Column], rows: Rows) -> bytes:
    return _separated(columns, rows, separator="\t")


def _separated(columns: Sequence[Column], rows: Rows, *, separator: str) -> bytes:
    sink = io.StringIO()
    writer = csv.DictWriter(
        sink, [column.name for column in columns], delimiter=separator, lineterminator="\n"
    )
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return sink.getvalue().encode()


_WRITERS: Final[dict[str, Callable[[Sequence[Column], Rows], bytes]]] = {
    "parquet": _parquet,
    "orc": _orc,
    "avro": _avro,
    "json": _json,
    "jsonl": _json,
    "csv": _csv,
    "tsv": _tsv,
}


def _cell(value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return _as_text(value) if isinstance(value, date | Decimal) else str(value)


def _as_text(value: object) -> str:
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%SZ")
    return value.isoformat() if isinstance(value, date) else str(value)


def _table(columns: Sequence[Column], rows: Rows) -> pa.Table:
    import pyarrow as pa

    return pa.Table.from_pylist(
        [dict(row) for row in rows], schema=pa.schema([_arrow_field(c) for c in columns])
    )


def _arrow_field(column: Column) -> pa.Field[pa.DataType]:
    import pyarrow as pa

    return pa.field(column.name, _arrow_type(column.type), nullable=column.nullable)


def _arrow_type(type_: ColumnType) -> pa.DataType:
    import pyarrow as pa

    match type_:
        case Struct(members):
            return pa.struct([_arrow_field(member) for member in members])
        case ListOf(item):
            return pa.list_(_arrow_type(item))
        case MapOf(value):
            return pa.map_(pa.string(), _arrow_type(value))
        case _:
            return _plain_arrow_types()[type_]


@cache
def _plain_arrow_types() -> dict[str, pa.DataType]:
    import pyarrow as pa

    return {
        "bool": pa.bool_(),
        "int32": pa.int32(),
        "int64": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "string": pa.string(),
        "money": pa.decimal128(_PRECISION, _SCALE),
        "date": pa.date32(),
        "time": pa.timestamp("us", tz="UTC"),
    }


def _avro_field(column: Column, path: str) -> dict[str, Any]:
    type_ = _avro_type(column.type, path)
    return {"name": column.name, "type": ["null", type_] if column.nullable else type_}


def _avro_type(type_: ColumnType, path: str) -> Any:
    match type_:
        case Struct(members):
            name = path.replace(".", "_")
            fields = [_avro_field(member, f"{path}.{member.name}") for member in members]
            return {"type": "record", "name": name, "fields": fields}
        case ListOf(item):
            return {"type": "array", "items": _avro_type(item, f"{path}.item")}
        case MapOf(value):
            return {"type": "map", "values": _avro_type(value, f"{path}.value")}
        case _:
            return _AVRO[type_]
