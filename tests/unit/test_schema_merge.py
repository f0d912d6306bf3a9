from __future__ import annotations

from datetime import UTC, datetime
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from lumos.core.changes import diff_datasets
from lumos.core.models import ChangeLevel, LumosDataset, Schema, Urn
from lumos.feature.discovery.assembling import path_place
from lumos.feature.discovery.datasets import (
    FileTotals,
    Layout,
    SourceRoot,
    files_dataset,
    merge_layouts,
)
from lumos.feature.discovery.merging import MergedSchema, SchemaVariant, merge_schemas
from strategies import datasets

Json = dict[str, JsonValue]


def schema(*fields: Json) -> Schema:
    return Schema.from_json({"fields": [*fields]})


def column(name: str, type_: str, **rest: JsonValue) -> Json:
    return {"name": name, "type": type_, "nullable": False, **rest}


def merged_type(*types: Json) -> tuple[str, list[str]]:
    merged = merge_schemas(
        SchemaVariant(schema({"name": "x", **type_}), files=10 - index)
        for index, type_ in enumerate(types)
    )
    return merged.schema.fields[0].signature(), [drift.kind.value for drift in merged.drift]


def test_one_schema_is_its_own_merger() -> None:
    only = schema(column("id", "INT64"))
    assert merge_schemas([SchemaVariant(only, files=5)]) == MergedSchema(only)
    assert merge_schemas([SchemaVariant(only), SchemaVariant(only, newest=9)]) == MergedSchema(only)


def test_no_schema_at_all_is_the_empty_one() -> None:
    assert merge_schemas([]) == MergedSchema(Schema())


def test_the_newest_schema_leads_and_older_fields_follow() -> None:
    old = schema(column("fax", "STRING"), column("id", "INT64"))
    new = schema(column("id", "INT64"), column("email", "STRING"))
    merged = merge_schemas([SchemaVariant(old, 100, newest=1), SchemaVariant(new, 1, newest=2)])
    assert [field.name for field in merged.schema.fields] == ["id", "email", "fax"]


def test_a_field_that_some_files_lack_is_nullable_and_recorded() -> None:
    old = schema(column("id", "INT64"))
    new = schema(column("id", "INT64"), column("email", "STRING"))
    merged = merge_schemas([SchemaVariant(old, 3), SchemaVariant(new, 1, newest=1)])
    assert [field.nullable for field in merged.schema.fields] == [False, True]
    assert [drift.message for drift in merged.drift] == ["field 'email' is missing in 3 of 4 files"]


def test_a_file_without_any_field_says_nothing() -> None:
    full = schema(column("id", "INT64"))
    assert merge_schemas([SchemaVariant(full), SchemaVariant(Schema(), 9)]) == MergedSchema(full)


@pytest.mark.parametrize(
    ("one", "other", "merged"),
    [
        ({"type": "INT32"}, {"type": "INT64"}, "INT64"),
        ({"type": "INT64"}, {"type": "DOUBLE"}, "DOUBLE"),
        ({"type": "INT32"}, {"type": "FLOAT"}, "DOUBLE"),
        ({"type": "INT8"}, {"type": "FLOAT"}, "FLOAT"),
        ({"type": "UINT32"}, {"type": "INT32"}, "INT64"),
        ({"type": "UINT64"}, {"type": "INT64"}, "DECIMAL(20,0)"),
        ({"type": "FLOAT"}, {"type": "DOUBLE"}, "DOUBLE"),
        (
            {"type": "DECIMAL", "precision": 10, "scale": 2},
            {"type": "DECIMAL", "precision": 6, "scale": 4},
            "DECIMAL(12,4)",
        ),
        ({"type": "DECIMAL", "precision": 5, "scale": 2}, {"type": "INT32"}, "DECIMAL(12,2)"),
        ({"type": "DATE"}, {"type": "TIMESTAMP_NTZ", "unit": "us"}, "TIMESTAMP_NTZ(us)"),
        ({"type": "TIMESTAMP", "unit": "ms"}, {"type": "TIMESTAMP", "unit": "us"}, "TIMESTAMP(us)"),
        ({"type": "STRING", "length": 5}, {"type": "STRING", "length": 9}, "STRING"),
        ({"type": "ENUM", "symbols": ["a"]}, {"type": "ENUM", "symbols": ["b"]}, "ENUM(a, b)"),
        ({"type": "ENUM", "symbols": ["a"]}, {"type": "STRING"}, "STRING"),
    ],
)
def test_types_that_go_together_are_widened(one: Json, other: Json, merged: str) -> None:
    assert merged_type(one, other) == (merged, ["widened"])
    if "ENUM(" not in merged:
        assert merged_type(other, one) == (merged, ["widened"])


def test_a_column_without_a_known_type_takes_that_of_the_others() -> None:
    assert merged_type({"type": "UNKNOWN"}, {"type": "DATE"}) == ("DATE", [])


def test_types_that_do_not_go_together_become_text_whichever_most_files_have() -> None:
    variants = [
        SchemaVariant(schema(column("x", "INT64", native_type="bigint")), 2),
        SchemaVariant(schema(column("x", "STRING", native_type="text")), 1, newest=9),
        SchemaVariant(schema(column("x", "INT32")), 1),
    ]
    merged = merge_schemas(variants)
    (field,) = merged.schema.fields
    assert (field.signature(), field.native_type) == ("STRING", "text")
    assert [drift.message for drift in merged.drift] == [
        "field 'x' is INT32, STRING in 2 of 4 files, but INT64 in the others; "
        "only STRING holds all",
    ]


@pytest.mark.parametrize(
    ("one", "other", "merged"),
    [
        ({"type": "BOOLEAN"}, {"type": "INT64"}, "STRING"),
        ({"type": "DATE"}, {"type": "INT64"}, "STRING"),
        ({"type": "DATE"}, {"type": "TIMESTAMP", "timezone": "UTC"}, "STRING"),
        ({"type": "DECIMAL", "precision": 38, "scale": 2}, {"type": "DOUBLE"}, "STRING"),
        ({"type": "STRUCT", "fields": [column("a", "INT64")]}, {"type": "STRING"}, "JSON"),
        ({"type": "ARRAY", "items": {"type": "INT64"}}, {"type": "INT64"}, "JSON"),
        ({"type": "JSON"}, {"type": "INT64"}, "JSON"),
    ],
)
def test_of_types_that_do_not_go_together_neither_stands(
    one: Json, other: Json, merged: str
) -> None:
    assert merged_type(one, other) == (merged, ["conflict"])
    assert merged_type(other, one) == (merged, ["conflict"])


def test_members_of_a_list_that_disagree_become_text() -> None:
    numbers: Json = {"type": "ARRAY", "items": {"type": "INT64"}}
    words: Json = {"type": "ARRAY", "items": {"type": "STRING"}}
    assert merged_type(numbers, words) == ("ARRAY<STRING>", ["conflict"])


def test_structs_arrays_and_maps_are_merged_to_the_bottom() -> None:
    def nested(*members: Json) -> Schema:
        line: Json = {"type": "STRUCT", "nullable": False, "fields": [*members]}
        by_key: Json = {"type": "MAP", "key": {"type": "STRING"}, "value": line}
        return schema(column("lines", "ARRAY", items=by_key))

    old = nested(column("sku", "STRING"), column("n", "INT32"))
    new = nested(column("sku", "STRING"), column("n", "INT64"), column("price", "DOUBLE"))
    merged = merge_schemas([SchemaVariant(old, 2), SchemaVariant(new, 1, newest=1)])
    assert merged.schema.fields[0].signature() == (
        "ARRAY<MAP<STRING, STRUCT<sku: STRING, n: INT64, price: DOUBLE>>>"
    )
    assert [drift.path for drift in merged.drift] == [
        "lines[]{value}.n",
        "lines[]{value}.price",
    ]


def test_unions_gain_the_branches_of_each_other() -> None:
    one: Json = {"type": "UNION", "branches": [{"type": "INT32"}, {"type": "STRING"}]}
    other: Json = {"type": "UNION", "branches": [{"type": "STRING"}, {"type": "BOOLEAN"}]}
    assert merged_type(one, other)[0] == "UNION<INT32, STRING, BOOLEAN>"


def test_keys_are_kept_only_where_all_files_agree() -> None:
    keyed = Schema.from_json({"fields": [column("id", "INT64")], "primary_key": ["id"]})
    wider = Schema.from_json(
        {"fields": [column("id", "INT64"), column("a", "INT64")], "primary_key": ["id"]}
    )
    keyless = schema(column("id", "INT64"), column("b", "INT64"))
    assert merge_schemas(map(SchemaVariant, (keyed, wider))).schema.primary_key == ("id",)
    assert merge_schemas(map(SchemaVariant, (keyed, wider, keyless))).schema.primary_key == ()


variants = st.builds(
    SchemaVariant,
    datasets().map(lambda dataset: dataset.schema),
    files=st.integers(1, 5),
    newest=st.integers(0, 3),
)


@given(st.lists(variants, max_size=4))
def test_merging_any_schemas_keeps_every_field_and_ignores_their_order(
    found: list[SchemaVariant],
) -> None:
    merged = merge_schemas(found)
    names = {field.name for variant in found for field in variant.schema.fields}
    assert {field.name for field in merged.schema.fields} == names
    assert all(merge_schemas(order) == merged for order in list(permutations(found))[:6])
    assert Schema.from_json(merged.schema.to_json()) == merged.schema
    assert all(0 < drift.files <= drift.of and drift.message for drift in merged.drift)


@given(st.lists(variants, min_size=1, max_size=3))
def test_a_field_that_every_file_has_and_needs_stays_needed(found: list[SchemaVariant]) -> None:
    found = [variant for variant in found if variant.schema.fields]
    merged = merge_schemas(found).schema
    for field in merged.fields:
        seen = [
            member
            for variant in found
            for member in variant.schema.fields
            if member.name == field.name
        ]
        assert field.nullable == (len(seen) < len(found) or any(each.nullable for each in seen))


BUCKET = SourceRoot("s3", ("data-lake-prod",), bucket="data-lake-prod")
FOLDER = SourceRoot("local", ("srv", "lake"), path="/srv/lake")
TOTALS = FileTotals(files=1, size_bytes=10, exact_rows=3, exact_files=1)
CLICKS = MergedSchema(schema(column("event_id", "STRING")))


def layout_of(path: str, files: int = 1) -> Layout:
    place = path_place(path)
    assert place is not None
    return Layout(
        prefix=place.prefix,
        partitioning=place.partitioning,
        partition_keys=place.partition_keys,
        partition_types=place.partition_types,
        files=files,
    )


def built(root: SourceRoot, dataset: str, *paths: str) -> LumosDataset:
    return files_dataset(
        root,
        tuple(dataset.split("/")) if dataset else (),
        merged=CLICKS,
        layouts=[layout_of(path) for path in paths],
        totals=TOTALS,
        format="parquet",
    )


def test_a_partitioned_dataset_is_told_as_the_product_documents_tell_it() -> None:
    dataset = files_dataset(
        BUCKET,
        ("raw", "events", "user_clicks"),
        merged=CLICKS,
        layouts=[layout_of("raw/events/user_clicks/year=2024/month=01/day=15/part-0.parquet")],
        totals=FileTotals(
            files=1247,
            size_bytes=45_000_000_000,
            exact_rows=500_000_000,
            exact_files=1247,
            partitions=365,
            last_modified=datetime(2024, 1, 15, 8, tzinfo=UTC),
        ),
        format="parquet",
        description="Every click.",
    )
    assert dataset.to_json() == {
        "urn": "lumos://s3/data-lake-prod/raw/events/user_clicks",
        "name": "user_clicks",
        "platform": "s3",
        "kind": "FILES",
        "format": "parquet",
        "location": {
            "bucket": "data-lake-prod",
            "prefix": "/raw/events/user_clicks/",
            "partitioning": "year={yyyy}/month={mm}/day={dd}",
            "partition_keys": ["year", "month", "day"],
        },
        "schema": {
            "fields": [
                {"name": "event_id", "type": "STRING", "nullable": False},
                {"name": "year", "type": "INT32", "nullable": True},
                {"name": "month", "type": "INT32", "nullable": True},
                {"name": "day", "type": "INT32", "nullable": True},
            ]
        },
        "documentation": {"description": "Every click."},
        "statistics": {
            "file_count": 1247,
            "total_size_bytes": 45_000_000_000,
            "row_count": 500_000_000,
            "row_count_estimate": 500_000_000,
            "partition_count": 365,
            "last_modified": "2024-01-15T08:00:00Z",
        },
    }


def test_a_location_holds_no_folder_of_a_machine() -> None:
    dataset = built(FOLDER, "crm/customers", "crm/customers.csv")
    assert dataset.urn == Urn("lumos://local/srv/lake/crm/customers")
    assert dataset.location is not None
    assert (dataset.location.path, dataset.location.prefix) == (None, "/crm/customers.csv")


def test_a_source_whose_root_is_the_dataset_has_its_name() -> None:
    dataset = built(FOLDER, "", "part-0.parquet")
    assert (dataset.urn, dataset.name) == (Urn("lumos://local/srv/lake"), "lake")


def test_a_file_name_that_is_not_utf_8_can_be_written_down() -> None:
    dataset = built(FOLDER, "caf\udce9", "caf\udce9/k\udce9=1/part-0.csv")
    assert dataset.name == "caf\\xe9"
    assert dataset.urn.name == "caf\udce9"
    assert LumosDataset.from_json(dataset.to_json()) == dataset
    assert [field.name for field in dataset.schema.fields] == ["event_id", "k\\xe9"]


def test_a_partition_key_that_the_files_hold_is_not_added_again() -> None:
    dataset = built(FOLDER, "clicks", "clicks/EVENT_ID=1/EVENT_ID=2/part-0.csv")
    assert [field.name for field in dataset.schema.fields] == ["event_id"]
    assert dataset.location is not None
    assert dataset.location.partition_keys == ("EVENT_ID",)


def test_a_date_folder_without_a_key_is_a_partition_but_no_column() -> None:
    dataset = built(FOLDER, "clicks", "clicks/2024/01/15/part-0.csv")
    assert [field.name for field in dataset.schema.fields] == ["event_id"]
    assert dataset.location is not None
    assert dataset.location.partition_keys == ("year", "month", "day")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1", "20"], "INT32"),
        (["1", "9000000000"], "INT64"),
        (["1", "x"], "STRING"),
        (["2024-01-15", "2024-01-16"], "DATE"),
        (["2024-01-15", "1"], "STRING"),
        (["1", "__HIVE_DEFAULT_PARTITION__"], "INT32"),
        (["__HIVE_DEFAULT_PARTITION__"], "STRING"),
        (["01", "10"], "STRING"),
    ],
)
def test_the_type_of_a_partition_column_holds_every_value(values: list[str], expected: str) -> None:
    dataset = built(FOLDER, "t", *(f"t/k={value}/part-0.csv" for value in values))
    assert dataset.schema.fields[-1].signature() == expected


def test_a_partition_without_a_value_does_not_change_the_template() -> None:
    dates = layout_of("t/dt=2024-01-15/part-0.csv", files=1)
    null = layout_of("t/dt=__HIVE_DEFAULT_PARTITION__/part-0.csv", files=50)
    for order in ([dates, null], [null, dates]):
        assert merge_layouts(order).partitioning == "dt={yyyy-mm-dd}"


def test_files_that_lie_in_several_ways_are_told_by_most_of_them() -> None:
    many = layout_of("t/dt=2024-01-15/part-0.csv", files=5)
    few = layout_of("t/part-0.csv", files=4)
    for order in ([many, few], [few, many]):
        merged = merge_layouts(order)
        assert (merged.partition_keys, merged.prefix) == (("dt",), "/t/")


def test_files_beside_each_other_share_their_folder() -> None:
    plain, packed = layout_of("crm/orders.csv"), layout_of("crm/orders.csv.gz")
    assert merge_layouts([plain, packed]).prefix == "/crm/"
    assert merge_layouts([layout_of("a.csv"), layout_of("a.csv.gz")]).prefix == "/"


def test_rows_are_exact_only_where_every_file_tells_them() -> None:
    exact = FileTotals(files=2, size_bytes=1, exact_rows=10, exact_files=2).statistics()
    assert (exact.row_count, exact.row_count_estimate) == (10, 10)
    mixed = FileTotals(
        files=4, size_bytes=1, exact_rows=10, exact_files=1, estimated_rows=20, estimated_files=2
    ).statistics()
    assert (mixed.row_count, mixed.row_count_estimate) == (None, 40)
    silent = FileTotals(files=2, size_bytes=1).statistics()
    assert (silent.row_count, silent.row_count_estimate) == (None, None)


def test_drift_is_told_but_is_no_part_of_the_contract() -> None:
    old, new = (
        schema(column("a", "INT64", nullable=True)),
        schema(column("b", "INT64", nullable=True)),
    )
    drifting = merge_schemas([SchemaVariant(old), SchemaVariant(new)])
    steady = MergedSchema(drifting.schema)
    one, other = (
        files_dataset(FOLDER, ("t",), merged=merged, layouts=[], totals=TOTALS, format="csv")
        for merged in (drifting, steady)
    )
    assert one.extensions["schema_drift"]
    assert one.contract_hash == other.contract_hash


def test_a_column_that_new_files_bring_is_no_breaking_change() -> None:
    old, new = schema(column("a", "INT32")), schema(column("a", "INT32"), column("b", "STRING"))
    before, after = (
        files_dataset(
            FOLDER,
            ("t",),
            merged=merge_schemas(variants),
            layouts=[layout_of("t/part-0.csv")],
            totals=TOTALS,
            format="csv",
        )
        for variants in ([SchemaVariant(old)], [SchemaVariant(old), SchemaVariant(new, newest=1)])
    )
    levels = {change.level for change in diff_datasets(before, after)}
    assert levels
    assert ChangeLevel.BREAKING not in levels
