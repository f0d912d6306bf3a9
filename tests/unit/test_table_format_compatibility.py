"""Changes of columns against what the specifications of Iceberg and Delta allow.

The cases are written from the specifications: "Schema Evolution" of Iceberg, whose decimals widen
in precision only, and "Type Widening" of Delta's protocol.
"""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from lumos.core.changes import diff_datasets
from lumos.core.formats.tables.delta_types import DeltaSchema
from lumos.core.formats.tables.iceberg_types import IcebergSchema
from lumos.core.models import LumosDataset, Schema, Urn

URN = Urn("lumos://warehouse/shop/orders")
Json = dict[str, JsonValue]


def _dataset(schema: Schema, **parts: object) -> LumosDataset:
    document = {"urn": URN, "name": "orders", "platform": "warehouse", "schema": schema, **parts}
    return LumosDataset.model_validate(document)


def _iceberg(kind: JsonValue, *, required: bool = False) -> Schema:
    column: Json = {"id": 1, "name": "c", "required": required, "type": kind}
    return IcebergSchema({"type": "struct", "fields": [column]}).schema


def _delta(kind: JsonValue, *, nullable: bool = True) -> Schema:
    column: Json = {"name": "c", "type": kind, "nullable": nullable, "metadata": {}}
    return DeltaSchema({"type": "struct", "fields": [column]}).schema


def _passes(old: Schema, new: Schema, profile: str, **parts: object) -> bool:
    changes = diff_datasets(_dataset(old, **parts), _dataset(new, **parts), profile=profile)
    assert changes
    return all(change.level != "BREAKING" for change in changes)


ICEBERG = """
    int               long                v2 v3
    int               float
    int               double
    int               string
    int               decimal(10, 0)
    long              int
    long              double
    float             double              v2 v3
    double            float
    decimal(10, 2)    decimal(12, 2)      v2 v3
    decimal(10, 2)    decimal(11, 2)      v2 v3
    decimal(10, 2)    decimal(8, 2)
    decimal(10, 2)    decimal(12, 4)
    decimal(10, 2)    decimal(10, 5)
    decimal(10, 2)    decimal(12, 0)
    date              timestamp           v3
    date              timestamp_ns        v3
    date              timestamptz
    date              timestamptz_ns
    date              string
    timestamp         timestamptz
    timestamptz       timestamp
    timestamp         timestamp_ns
    timestamp_ns      timestamp
    timestamp         date
    unknown           int                 v3
    unknown           string              v3
    unknown           timestamptz         v3
    int               unknown
    string            binary
    binary            string
    string            uuid
    fixed[4]          fixed[8]
    fixed[8]          fixed[4]
    fixed[4]          binary
    boolean           int
    time              timestamp
"""

DELTA = """
    byte              short               yes
    byte              integer             yes
    byte              long                yes
    short             integer             yes
    short             long                yes
    integer           long                yes
    long              integer
    integer           short
    byte              float
    integer           float
    long              float
    byte              double              yes
    short             double              yes
    integer           double              yes
    long              double
    float             double              yes
    double            float
    byte              decimal(10,0)       yes
    byte              decimal(5,0)
    short             decimal(10,0)       yes
    integer           decimal(10,0)       yes
    integer           decimal(9,0)
    integer           decimal(12,2)       yes
    integer           decimal(11,2)
    long              decimal(20,0)       yes
    long              decimal(19,0)
    long              decimal(22,2)       yes
    long              decimal(21,2)
    decimal(10,2)     decimal(12,2)       yes
    decimal(10,2)     decimal(12,4)       yes
    decimal(10,2)     decimal(12,3)       yes
    decimal(10,2)     decimal(11,4)
    decimal(10,2)     decimal(10,5)
    decimal(10,2)     decimal(12,1)
    decimal(10,2)     decimal(8,2)
    decimal(10,0)     integer
    date              timestamp_ntz       yes
    date              timestamp
    timestamp_ntz     timestamp
    timestamp         date
    varchar(10)       varchar(20)         yes
    varchar(10)       string              yes
    varchar(20)       varchar(10)
    string            varchar(10)
    void              integer             yes
    string            binary
    integer           string
    boolean           byte
"""


def _rows(table: str) -> list[tuple[str, str, str]]:
    rows = [line.split("  ") for line in table.strip().splitlines()]
    cells = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    return [(old, new, rest[0] if rest else "") for old, new, *rest in cells]


@pytest.mark.parametrize(("old", "new", "versions"), _rows(ICEBERG))
def test_iceberg_promotes_what_its_specification_says(old: str, new: str, versions: str) -> None:
    before, after = _iceberg(old), _iceberg(new)
    assert _passes(before, after, "iceberg") == ("v2" in versions)
    assert _passes(before, after, "iceberg_v3") == ("v3" in versions)
    assert not _passes(before, after, "lumos")


@pytest.mark.parametrize(("old", "new", "taken"), _rows(DELTA))
def test_delta_widens_what_its_protocol_says(old: str, new: str, taken: str) -> None:
    before, after = _delta(old), _delta(new)
    assert _passes(before, after, "delta") == (taken == "yes")
    assert not _passes(before, after, "lumos")


def _iceberg_list(kind: str) -> Json:
    return {"type": "list", "element-id": 2, "element": kind, "element-required": False}


def _iceberg_map(key: str, value: str) -> Json:
    return {
        "type": "map",
        "key-id": 2,
        "key": key,
        "value-id": 3,
        "value": value,
        "value-required": False,
    }


def _iceberg_struct(*kinds: tuple[int, str, str]) -> Json:
    return {
        "type": "struct",
        "fields": [
            {"id": number, "name": name, "required": False, "type": kind}
            for number, name, kind in kinds
        ],
    }


@pytest.mark.parametrize(
    ("old", "new", "passes"),
    [
        pytest.param(_iceberg_list("int"), _iceberg_list("long"), True, id="elements widen"),
        pytest.param(_iceberg_list("int"), _iceberg_list("string"), False, id="or break"),
        pytest.param(_iceberg_map("string", "int"), _iceberg_map("string", "long"), True, id="map"),
        pytest.param(
            _iceberg_map("int", "int"), _iceberg_map("long", "int"), False, id="keys never change"
        ),
        pytest.param("int", _iceberg_list("int"), False, id="a value becomes no list"),
        pytest.param(
            _iceberg_struct((2, "a", "int")),
            _iceberg_struct((2, "a", "long")),
            True,
            id="members widen",
        ),
        pytest.param(
            _iceberg_struct((2, "a", "int")),
            _iceberg_struct((2, "z", "int")),
            True,
            id="a member is renamed by its id",
        ),
        pytest.param(
            _iceberg_struct((2, "a", "int")),
            _iceberg_struct((3, "z", "int")),
            False,
            id="another id is another member",
        ),
        pytest.param(
            _iceberg_struct((2, "a", "int")),
            _iceberg_struct((2, "a", "int"), (3, "b", "int")),
            True,
            id="a member is added",
        ),
    ],
)
def test_nested_columns_of_iceberg_follow_the_same_rules(
    old: JsonValue, new: JsonValue, passes: bool
) -> None:
    assert _passes(_iceberg(old), _iceberg(new), "iceberg") == passes


def test_iceberg_promotes_no_date_that_partitions_are_made_from() -> None:
    before, after = _iceberg("date"), _iceberg("timestamp")
    assert not _passes(before, after, "iceberg_v3", location={"partition_keys": ["c"]})
    assert _passes(before, after, "iceberg_v3", location={"partition_keys": ["d"]})


def test_both_formats_let_a_column_become_nullable_and_not_required() -> None:
    optional, required = _iceberg("int"), _iceberg("int", required=True)
    assert _passes(required, optional, "iceberg")
    assert not _passes(optional, required, "iceberg")
    nullable, filled = _delta("integer"), _delta("integer", nullable=False)
    assert _passes(filled, nullable, "delta")
    assert not _passes(nullable, filled, "delta")


def _delta_map(key: JsonValue) -> Schema:
    return _delta({"type": "map", "keyType": key, "valueType": "long", "valueContainsNull": True})


def _delta_key_member(kind: str, *more: str) -> JsonValue:
    members: list[JsonValue] = [
        {"name": name, "type": each, "nullable": True, "metadata": {}}
        for name, each in zip("ab", (kind, *more), strict=False)
    ]
    return {"type": "struct", "fields": members}


@pytest.mark.parametrize(
    ("old", "new", "taken"),
    [
        ("integer", "long", True),
        ("float", "double", True),
        ("decimal(6,2)", "decimal(10,4)", True),
        ("long", "integer", False),
        ("integer", "string", False),
        (_delta_key_member("integer"), _delta_key_member("long"), True),
        (_delta_key_member("integer"), _delta_key_member("integer", "integer"), False),
        (_delta_key_member("integer"), _delta_key_member("long", "integer"), False),
    ],
    ids=str,
)
def test_delta_widens_the_keys_of_maps_and_changes_nothing_else_of_them(
    old: JsonValue, new: JsonValue, taken: bool
) -> None:
    """The protocol allows a type change "to a column, struct field, map key/value or element"."""
    assert _passes(_delta_map(old), _delta_map(new), "delta") == taken
    assert not _passes(_delta_map(old), _delta_map(new), "iceberg_v3")


def _delta_column(name: str, number: int | None) -> Schema:
    metadata: Json = {} if number is None else {"delta.columnMapping.id": number}
    column: Json = {"name": name, "type": "integer", "nullable": True, "metadata": metadata}
    return DeltaSchema({"type": "struct", "fields": [column]}).schema


def test_delta_renames_columns_only_where_they_are_mapped_by_id() -> None:
    assert _passes(_delta_column("a", 1), _delta_column("z", 1), "delta")
    assert not _passes(_delta_column("a", None), _delta_column("z", None), "delta")
    assert not _passes(_delta_column("a", 1), _delta_column("z", 2), "delta")
