"""One and the same type goes by many names; which name a source uses is no change."""

from __future__ import annotations

from itertools import permutations

import pyarrow as pa
import pytest

from lumos.core.changes import diff_datasets
from lumos.core.formats.arrow_types import canonical_type
from lumos.core.formats.avro_types import canonical_avro_schema
from lumos.core.formats.tables.delta_types import DeltaSchema
from lumos.core.formats.tables.iceberg_types import IcebergSchema
from lumos.core.json_reading import Json
from lumos.core.models import Field, FieldType, LumosDataset, Schema, TypeName, Urn

DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
INSTANT = {"type": "long", "logicalType": "timestamp-micros"}
WALL_CLOCK = {"type": "long", "logicalType": "local-timestamp-micros"}


def _dataset(node: FieldType) -> LumosDataset:
    column = Field.from_json({**node.to_json(), "name": "c", "nullable": True})
    urn = Urn("lumos://pg/shop/orders")
    return LumosDataset(urn=urn, name="orders", platform="pg", schema=Schema(fields=(column,)))


def _delta(kind: str) -> FieldType:
    column: Json = {"name": "c", "type": kind, "nullable": True, "metadata": {}}
    return DeltaSchema({"type": "struct", "fields": [column]}).schema.fields[0]


def _iceberg(kind: str) -> FieldType:
    column: Json = {"name": "c", "type": kind, "required": False}
    return IcebergSchema({"type": "struct", "fields": [column]}).schema.fields[0]


def _avro(kind: object) -> FieldType:
    record = {"type": "record", "name": "r", "fields": [{"name": "c", "type": kind}]}
    return canonical_avro_schema(record)[0].fields[0]


def test_how_a_database_spells_a_type_that_is_known_is_no_change() -> None:
    spellings = ("int4", "integer", "int", "INTEGER", "serial", None)
    states = [_dataset(FieldType(type=TypeName.INT32, native_type=each)) for each in spellings]
    for old, new in permutations(states, 2):
        assert diff_datasets(old, new) == ()
        assert old.contract_hash == new.contract_hash


@pytest.mark.parametrize(
    ("delta", "iceberg", "avro", "arrow"),
    [
        ("integer", "int", "int", pa.int32()),
        ("long", "long", "long", pa.int64()),
        ("float", "float", "float", pa.float32()),
        ("double", "double", "double", pa.float64()),
        ("boolean", "boolean", "boolean", pa.bool_()),
        ("string", "string", "string", pa.large_utf8()),
        ("binary", "binary", "bytes", pa.binary()),
        ("date", "date", {"type": "int", "logicalType": "date"}, pa.date32()),
        ("decimal(10,2)", "decimal(10, 2)", DECIMAL, pa.decimal128(10, 2)),
        ("timestamp", "timestamptz", INSTANT, pa.timestamp("us", tz="UTC")),
        ("timestamp_ntz", "timestamp", WALL_CLOCK, pa.timestamp("us")),
    ],
)
def test_a_type_that_another_format_spells_otherwise_is_no_change(
    delta: str, iceberg: str, avro: object, arrow: pa.DataType
) -> None:
    nodes = [_delta(delta), _iceberg(iceberg), _avro(avro), canonical_type(arrow)]
    for old, new in permutations(map(_dataset, nodes), 2):
        assert diff_datasets(old, new) == ()
