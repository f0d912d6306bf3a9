"""The canonical type of every Arrow type."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumos.core.errors import UnreadableItemError
from lumos.core.formats import arrow_types, type_parts
from lumos.core.formats.arrow_types import canonical_schema, canonical_type
from lumos.core.models import FieldType, Schema, TypeName

PLAIN: list[tuple[pa.DataType, str, str]] = [
    (pa.null(), "UNKNOWN", "null"),
    (pa.bool_(), "BOOLEAN", "bool"),
    (pa.int8(), "INT8", "int8"),
    (pa.int16(), "INT16", "int16"),
    (pa.int32(), "INT32", "int32"),
    (pa.int64(), "INT64", "int64"),
    (pa.uint8(), "UINT8", "uint8"),
    (pa.uint16(), "UINT16", "uint16"),
    (pa.uint32(), "UINT32", "uint32"),
    (pa.uint64(), "UINT64", "uint64"),
    (pa.float16(), "FLOAT", "halffloat"),
    (pa.float32(), "FLOAT", "float"),
    (pa.float64(), "DOUBLE", "double"),
    (pa.decimal32(7, 2), "DECIMAL(7,2)", "decimal32(7, 2)"),
    (pa.decimal64(18, 0), "DECIMAL(18,0)", "decimal64(18, 0)"),
    (pa.decimal128(38, 10), "DECIMAL(38,10)", "decimal128(38, 10)"),
    (pa.decimal128(5, -2), "DECIMAL(5,-2)", "decimal128(5, -2)"),
    (pa.decimal256(76, 3), "DECIMAL(76,3)", "decimal256(76, 3)"),
    (pa.string(), "STRING", "string"),
    (pa.large_string(), "STRING", "large_string"),
    (pa.string_view(), "STRING", "string_view"),
    (pa.binary(), "BINARY", "binary"),
    (pa.large_binary(), "BINARY", "large_binary"),
    (pa.binary_view(), "BINARY", "binary_view"),
    (pa.binary(16), "BINARY(16)", "fixed_size_binary[16]"),
    (pa.date32(), "DATE", "date32[day]"),
    (pa.date64(), "DATE", "date64[ms]"),
    (pa.time32("s"), "TIME(s)", "time32[s]"),
    (pa.time32("ms"), "TIME(ms)", "time32[ms]"),
    (pa.time64("us"), "TIME(us)", "time64[us]"),
    (pa.time64("ns"), "TIME(ns)", "time64[ns]"),
    (pa.timestamp("s"), "TIMESTAMP_NTZ(s)", "timestamp[s]"),
    (pa.timestamp("ns"), "TIMESTAMP_NTZ(ns)", "timestamp[ns]"),
    (pa.timestamp("us", tz="UTC"), "TIMESTAMP(us,UTC)", "timestamp[us, tz=UTC]"),
    (
        pa.timestamp("ms", tz="Europe/Paris"),
        "TIMESTAMP(ms,Europe/Paris)",
        "timestamp[ms, tz=Europe/Paris]",
    ),
    (pa.timestamp("ms", tz="+05:30"), "TIMESTAMP(ms,+05:30)", "timestamp[ms, tz=+05:30]"),
    (pa.duration("s"), "DURATION(s)", "duration[s]"),
    (pa.month_day_nano_interval(), "DURATION", "month_day_nano_interval"),
]
NESTED: list[tuple[pa.DataType, str, str]] = [
    (pa.list_(pa.int8()), "ARRAY<INT8>", "list"),
    (pa.large_list(pa.int8()), "ARRAY<INT8>", "large_list"),
    (pa.list_view(pa.int8()), "ARRAY<INT8>", "list_view"),
    (pa.large_list_view(pa.int8()), "ARRAY<INT8>", "large_list_view"),
    (pa.list_(pa.int8(), 3), "ARRAY<INT8>", "fixed_size_list[3]"),
    (pa.map_(pa.string(), pa.date32()), "MAP<STRING, DATE>", "map"),
    (
        pa.struct([("a", pa.int8()), ("b", pa.list_(pa.struct([("c", pa.string())])))]),
        "STRUCT<a: INT8, b: ARRAY<STRUCT<c: STRING>>>",
        "struct",
    ),
    (pa.struct([]), "STRUCT<>", "struct"),
    (
        pa.dense_union([pa.field("i", pa.int8()), pa.field("s", pa.string())]),
        "UNION<INT8, STRING>",
        "dense_union",
    ),
    (pa.sparse_union([pa.field("i", pa.int8())]), "UNION<INT8>", "sparse_union"),
    (pa.sparse_union([]), "UNKNOWN", "sparse_union<>"),
]
ENCODED: list[tuple[pa.DataType, str, str]] = [
    (
        pa.dictionary(pa.int32(), pa.string()),
        "STRING",
        "dictionary<values=string, indices=int32, ordered=0>",
    ),
    (
        pa.dictionary(pa.int8(), pa.decimal128(4, 2)),
        "DECIMAL(4,2)",
        "dictionary<values=decimal128(4, 2), indices=int8, ordered=0>",
    ),
    (
        pa.run_end_encoded(pa.int32(), pa.timestamp("us", tz="UTC")),
        "TIMESTAMP(us,UTC)",
        "run_end_encoded<run_ends: int32, values: timestamp[us, tz=UTC]>",
    ),
]
EXTENSIONS: list[tuple[pa.DataType, str, str]] = [
    (pa.uuid(), "UUID", "extension<arrow.uuid>"),
    (pa.json_(), "JSON", "extension<arrow.json>"),
    (pa.bool8(), "BOOLEAN", "extension<arrow.bool8>"),
    (
        pa.fixed_shape_tensor(pa.float32(), [2, 2]),
        "ARRAY<FLOAT>",
        "extension<arrow.fixed_shape_tensor[value_type=float, shape=[2,2]]>",
    ),
    (
        pa.opaque(pa.binary(), "inet", "PostgreSQL"),
        "BINARY",
        "extension<arrow.opaque[storage_type=binary, type_name=inet, vendor_name=PostgreSQL]>",
    ),
]
ALL = [*PLAIN, *NESTED, *ENCODED, *EXTENSIONS]


@pytest.mark.parametrize(("arrow_type", "signature", "native"), ALL, ids=[str(c[0]) for c in ALL])
def test_an_arrow_type_has_one_canonical_type_and_keeps_its_own_name(
    arrow_type: pa.DataType, signature: str, native: str
) -> None:
    found = canonical_type(arrow_type)
    assert found.signature() == signature
    assert found.native_type == native


def test_no_type_of_the_installed_arrow_is_left_out() -> None:
    kinds = set(arrow_types._kinds().values())
    mapped = {
        *arrow_types._PLAIN,
        *arrow_types._LISTS,
        *arrow_types._UNIONS,
        *arrow_types._ENCODINGS,
        "STRUCT",
        "MAP",
        "EXTENSION",
    }
    assert kinds - mapped == set()


def test_nullability_is_kept_at_every_level() -> None:
    inner = pa.field("c", pa.int8(), nullable=False)
    items = pa.field("item", pa.struct([inner]), nullable=False)
    schema, _ = canonical_schema(pa.schema([pa.field("a", pa.list_(items), nullable=False)]))
    (column,) = schema.fields
    assert (column.nullable, column.items and column.items.nullable) == (False, False)
    assert column.items
    assert column.items.fields[0].nullable is False


def test_map_keys_are_never_null() -> None:
    found = canonical_type(pa.map_(pa.string(), pa.int8()))
    assert found.key
    assert found.value
    assert (found.key.nullable, found.value.nullable) == (False, True)


@pytest.mark.parametrize("key", ["description", "comment", "doc"])
def test_the_text_beside_a_column_is_its_description(key: str) -> None:
    column = pa.field("a", pa.struct([pa.field("b", pa.int8(), metadata={key: "inner"})]))
    schema, _ = canonical_schema(pa.schema([column.with_metadata({key: "Größe in m"})]))
    assert schema.fields[0].description == "Größe in m"
    assert schema.fields[0].fields[0].description == "inner"


@pytest.mark.parametrize(
    ("extension", "expected"),
    [
        ("geoarrow.wkb", TypeName.GEOMETRY),
        ("arrow.json", TypeName.JSON),
        ("acme.money", TypeName.BINARY),
    ],
)
def test_an_extension_that_arrow_does_not_know_is_recognised_by_its_name(
    extension: str, expected: TypeName
) -> None:
    column = pa.field("a", pa.binary(), metadata={"ARROW:extension:name": extension})
    schema, _ = canonical_schema(pa.schema([column]))
    assert schema.fields[0].type is expected
    assert schema.fields[0].native_type == f"extension<{extension}>"


def test_repeated_and_empty_column_names_are_made_unique_and_reported() -> None:
    names = ["a", "a_2", "a", "", "a", ""]
    schema, warnings = canonical_schema(pa.schema([(name, pa.int8()) for name in names]))
    assert [field.name for field in schema.fields] == [
        "a",
        "a_2",
        "a_3",
        "column_4",
        "a_4",
        "column_6",
    ]
    assert schema.fields[2].properties == {"source_name": "a"}
    assert warnings == (
        "column name 'a' occurs again; it is called 'a_3' here",
        "a column has no name; it is called 'column_4' here",
        "column name 'a' occurs again; it is called 'a_4' here",
        "a column has no name; it is called 'column_6' here",
    )


def test_repeated_names_inside_a_struct_are_reported_with_their_place() -> None:
    inner = pa.struct([pa.field("x", pa.int8()), pa.field("x", pa.int16())])
    _, warnings = canonical_schema(pa.schema([("s", pa.list_(inner))]))
    assert warnings == ("column name 'x' occurs again in s[]; it is called 'x_2' here",)


def nested(depth: int) -> pa.DataType:
    arrow_type: pa.DataType = pa.int8()
    for _ in range(depth - 1):
        arrow_type = pa.struct([("f", arrow_type)])
    return arrow_type


def test_sixty_four_levels_of_nesting_are_read() -> None:
    schema, _ = canonical_schema(pa.schema([("deep", nested(64))]))
    assert schema.fields[0].signature().endswith("INT8" + ">" * 63)


def test_deeper_nesting_is_refused_with_the_name_of_the_column() -> None:
    with pytest.raises(UnreadableItemError, match="nested deeper than 64 levels, in deep"):
        canonical_schema(pa.schema([("fine", pa.int8()), ("deep", nested(65))]))


def test_a_schema_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type_parts, "MAX_NODES", 10)
    with pytest.raises(UnreadableItemError, match="more than 10 fields"):
        canonical_schema(pa.schema([(f"c{i}", pa.int8()) for i in range(11)]))


leaf_types = st.sampled_from([case[0] for case in [*PLAIN, *EXTENSIONS]])


def _member(name: str, kind: pa.DataType, nullable: bool) -> pa.Field[pa.DataType]:
    return pa.field(name, kind, nullable or kind == pa.null())  # nulls cannot be required


def _with_members(children: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    members = st.lists(st.tuples(st.text(max_size=5), children, st.booleans()), max_size=4)
    structs = members.map(lambda found: pa.struct([_member(*member) for member in found]))
    lists = children.map(pa.list_)
    maps = st.tuples(st.sampled_from([pa.string(), pa.int32()]), children).map(
        lambda pair: pa.map_(*pair)
    )
    return structs | lists | maps


arrow_types_of_any_shape = st.recursive(leaf_types, _with_members, max_leaves=12)


@given(st.lists(st.tuples(st.text(max_size=4), arrow_types_of_any_shape), max_size=6))
def test_any_arrow_schema_becomes_a_canonical_one_that_survives_json(
    columns: list[tuple[str, pa.DataType]],
) -> None:
    arrow_schema = pa.schema([pa.field(name, kind) for name, kind in columns])
    schema, warnings = canonical_schema(arrow_schema)
    assert Schema.from_json(schema.to_json()) == schema
    assert canonical_schema(arrow_schema) == (schema, warnings)
    assert len(schema.fields) == len(columns)
    assert all(node.native_type for node in _nodes(schema))
    unchanged = [name for name, _ in columns if [n for n, _ in columns].count(name) == 1 and name]
    assert set(unchanged) <= {field.name for field in schema.fields}


def _nodes(schema: Schema) -> Iterator[FieldType]:
    waiting: list[FieldType] = list(schema.fields)
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend([*node.fields, *node.branches])
        waiting.extend(child for child in (node.items, node.key, node.value) if child)


@given(st.lists(st.sampled_from(["a", "a_2", "a_3", "", "column_1", "b"]), max_size=12))
def test_names_made_unique_never_collide(names: list[str]) -> None:
    schema, warnings = canonical_schema(pa.schema([(name, pa.int8()) for name in names]))
    found = [field.name for field in schema.fields]
    assert len(set(found)) == len(names)
    assert len(warnings) == sum(1 for old, new in zip(names, found, strict=True) if old != new)
