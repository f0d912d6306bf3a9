"""Iceberg tables as their own library writes and reads them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField as Part
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema as IcebergSchemaOfLibrary
from pyiceberg.table import Table
from pyiceberg.table.sorting import SortField, SortOrder
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    IdentityTransform,
    TruncateTransform,
)
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from lumos.core.errors import UnreadableItemError
from lumos.core.formats.arrow_types import canonical_schema
from lumos.core.formats.tables import PartitionField, TableFacts, read_table
from lumos.core.models import Schema, TypeName
from table_access import FolderAccess, MemoryAccess

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:pyiceberg")

EVERY_TYPE = IcebergSchemaOfLibrary(
    NestedField(1, "id", LongType(), required=True, doc="the number"),
    NestedField(2, "flag", BooleanType()),
    NestedField(3, "plain", IntegerType()),
    NestedField(4, "single", FloatType()),
    NestedField(5, "double", DoubleType()),
    NestedField(6, "money", DecimalType(12, 2)),
    NestedField(7, "day", DateType()),
    NestedField(8, "hour", TimeType()),
    NestedField(9, "local", TimestampType()),
    NestedField(10, "at", TimestamptzType()),
    NestedField(11, "text", StringType()),
    NestedField(12, "unique", UUIDType()),
    NestedField(13, "code", FixedType(16)),
    NestedField(14, "raw", BinaryType()),
    NestedField(15, "tags", ListType(21, StringType(), element_required=True)),
    NestedField(16, "prices", MapType(22, StringType(), 23, DoubleType(), value_required=False)),
    NestedField(
        17,
        "address",
        StructType(
            NestedField(24, "city", StringType(), doc="where"),
            NestedField(
                25, "zip", StructType(NestedField(26, "code", IntegerType(), required=True))
            ),
        ),
    ),
    identifier_field_ids=[1],
)


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[SqlCatalog]:
    catalog = SqlCatalog(
        "test", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/lake"
    )
    catalog.create_namespace("db")
    yield catalog
    catalog.close()


def shape(schema: Schema) -> list[tuple[str, str, bool]]:
    return [(field.name, field.signature(), field.nullable) for field in schema.fields]


def facts_of(table: Table) -> TableFacts:
    root = Path(urlsplit(table.location()).path)
    return read_table("iceberg", root.name, FolderAccess(root.parent))


def assert_library_agrees(table: Table) -> TableFacts:
    """Read a table and compare it with what the library itself makes of it."""
    facts = facts_of(table)
    expected, _ = canonical_schema(table.schema().as_arrow())
    assert shape(facts.schema) == shape(expected)
    snapshot = table.current_snapshot()
    assert facts.version == (str(snapshot.snapshot_id) if snapshot else None)
    assert facts.rows == table.scan().count()
    assert facts.files == len(list(table.scan().plan_files()))
    assert facts.keys == tuple(sorted(table.schema().identifier_field_names()))
    assert facts.partitioning == tuple(
        PartitionField(
            field.name,
            str(field.transform),
            table.schema().find_column_name(field.source_id) or "",
        )
        for field in table.spec().fields
    )
    ids = {field.name: field.properties["field_id"] for field in facts.schema.fields}
    assert ids == {field.name: field.field_id for field in table.schema().fields}
    return facts


def numbers(first: int, last: int) -> pa.Table:
    return pa.table({"id": pa.array(range(first, last), pa.int64())})


def test_every_type_is_what_the_library_says(catalog: SqlCatalog) -> None:
    table = catalog.create_table(
        "db.every",
        EVERY_TYPE,
        properties={"comment": "all of them", "s3.secret-access-key": "hunter2-hunter2"},
    )

    facts = assert_library_agrees(table)

    fields = {field.name: field for field in facts.schema.fields}
    assert (facts.rows, facts.rows_exact, facts.files, facts.size_bytes) == (0, True, 0, 0)
    assert facts.description == "all of them"
    assert fields["id"].description == "the number"
    assert fields["at"].type == TypeName.TIMESTAMP
    assert fields["local"].type == TypeName.TIMESTAMP_NTZ
    assert (fields["code"].native_type, fields["code"].length) == ("fixed[16]", 16)
    assert fields["address"].fields[0].description == "where"
    assert facts.properties["s3.secret-access-key"] == "***"


def test_partitions_and_sort_orders_are_spelled_with_their_transforms(catalog: SqlCatalog) -> None:
    spec = PartitionSpec(
        Part(10, 1000, DayTransform(), "at_day"),
        Part(1, 1001, BucketTransform(16), "id_bucket"),
        Part(11, 1002, TruncateTransform(4), "text_trunc"),
        Part(24, 1003, IdentityTransform(), "address.city"),
    )
    order = SortOrder(SortField(10, DayTransform()), SortField(1, IdentityTransform()))
    table = catalog.create_table("db.parts", EVERY_TYPE, partition_spec=spec, sort_order=order)

    facts = assert_library_agrees(table)

    assert [(part.transform, part.source) for part in facts.partitioning] == [
        ("day", "at"),
        ("bucket[16]", "id"),
        ("truncate[4]", "text"),
        ("identity", "address.city"),
    ]
    assert facts.properties["sort_order"] == "day(at) asc nulls-first, id asc nulls-first"


def test_an_evolved_table_has_its_newest_schema_and_keeps_field_ids(catalog: SqlCatalog) -> None:
    table = catalog.create_table("db.evolved", numbers(0, 0).schema)
    table.append(numbers(0, 10))
    with table.update_schema() as update:
        update.rename_column("id", "number")
        update.add_column("extra", StringType(), doc="added later")
    table.append(pa.table({"number": pa.array([1], pa.int64()), "extra": ["x"]}))
    with table.update_spec() as spec:
        spec.add_field("number", BucketTransform(4), "number_bucket")

    facts = assert_library_agrees(table)

    assert [(f.name, f.properties["field_id"]) for f in facts.schema.fields] == [
        ("number", 1),
        ("extra", 2),
    ]
    assert (facts.rows, facts.rows_exact) == (11, True)


def test_deleted_rows_are_not_counted_and_branches_are_told(catalog: SqlCatalog) -> None:
    table = catalog.create_table("db.deleted", numbers(0, 0).schema)
    table.append(numbers(0, 100))
    first = table.current_snapshot()
    assert first is not None
    with table.manage_snapshots() as snapshots:
        snapshots.create_tag(first.snapshot_id, "first")
    table.delete("id < 30")
    table.overwrite(numbers(500, 510), overwrite_filter="id >= 90")

    facts = assert_library_agrees(table)

    assert facts.rows == 70
    refs = facts.observations["refs"]
    assert isinstance(refs, dict)
    assert refs["first"] == {"type": "tag", "snapshot": str(first.snapshot_id)}
    assert set(refs) == {"main", "first"}


def test_only_the_newest_metadata_is_read(catalog: SqlCatalog) -> None:
    table = catalog.create_table("db.t", numbers(0, 0).schema)
    for number in range(3):
        table.append(numbers(number, number + 1))
    root = Path(urlsplit(table.location()).path)
    access = FolderAccess(root.parent)

    read_table("iceberg", root.name, access)

    assert access.lists == [f"{root.name}/metadata"]
    assert [Path(path).name for path in access.reads] == [Path(table.metadata_location).name]


def document(**more: Any) -> dict[str, Any]:
    return {
        "format-version": 2,
        "table-uuid": "x",
        "location": "s3://bucket/db/t",
        "last-updated-ms": 1_700_000_000_000,
        "current-schema-id": 0,
        "schemas": [
            {
                "schema-id": 0,
                "type": "struct",
                "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}],
            }
        ],
        "current-snapshot-id": 5,
        "snapshots": [
            {
                "snapshot-id": 5,
                "timestamp-ms": 1_700_000_000_001,
                "summary": {"operation": "append"},
            }
        ],
        **more,
    }


def named(column: str) -> dict[str, Any]:
    return document(
        schemas=[{"schema-id": 0, "fields": [{"id": 1, "name": column, "type": "int"}]}]
    )


def read_made(files: dict[str, object]) -> TableFacts:
    content = {
        f"db/t/metadata/{name}": body if isinstance(body, bytes) else json.dumps(body).encode()
        for name, body in files.items()
    }
    return read_table("iceberg", "db/t", MemoryAccess(content))


def only_column(files: dict[str, object]) -> str:
    return read_made(files).schema.fields[0].name


def test_the_highest_number_wins_and_a_hint_may_lag_behind() -> None:
    files: dict[str, object] = {
        "v9.metadata.json": named("old"),
        "v10.metadata.json": named("new"),
        "version-hint.text": b"9",
    }

    assert only_column(files) == "new"


def test_a_hint_that_names_a_file_is_followed() -> None:
    files: dict[str, object] = {
        "00001-a.metadata.json": named("one"),
        "00002-b.metadata.json": named("two"),
        "version-hint.text": b"00001-a.metadata.json\n",
    }

    assert only_column(files) == "one"


def test_gzipped_metadata_is_read_under_both_of_its_names() -> None:
    packed = gzip.compress(json.dumps(named("packed")).encode())

    assert only_column({"v2.gz.metadata.json": packed}) == "packed"
    assert only_column({"00002-a.metadata.json.gz": packed}) == "packed"


def test_two_files_of_one_number_are_a_doubt() -> None:
    facts = read_made({"00002-a.metadata.json": named("a"), "00002-b.metadata.json": named("b")})

    assert facts.warnings[0] == "2 metadata files have the number 2; the newest is taken"


def test_deletes_that_are_not_applied_make_the_rows_an_estimate() -> None:
    summary = {
        "total-records": "100",
        "total-data-files": "3",
        "total-files-size": "12345",
        "total-position-deletes": "10",
        "total-equality-deletes": "0",
        "total-delete-files": "1",
    }
    snapshot = {"snapshot-id": 5, "timestamp-ms": 1, "summary": summary}
    facts = read_made({"v1.metadata.json": document(snapshots=[snapshot])})

    assert (facts.rows, facts.rows_exact, facts.files) == (90, False, 3)
    assert facts.size_bytes == 12345


def test_a_snapshot_without_totals_has_unknown_rows() -> None:
    facts = read_made({"v1.metadata.json": document()})

    assert (facts.rows, facts.rows_exact, facts.files) == (None, False, None)
    assert facts.warnings == ("its current snapshot has no totals: rows are not known",)


def test_the_first_format_version_without_lists_of_schemas() -> None:
    old = document(
        **{
            "format-version": 1,
            "schema": {"type": "struct", "fields": [{"id": 1, "name": "ts", "type": "timestamp"}]},
            "partition-spec": [
                {"name": "ts_day", "transform": "day", "source-id": 1, "field-id": 1000},
                {"name": "gone", "transform": "void", "source-id": 1, "field-id": 1001},
            ],
            "current-snapshot-id": -1,
        }
    )
    for name in ("schemas", "current-schema-id"):
        del old[name]

    facts = read_made({"v1.metadata.json": old})

    assert shape(facts.schema) == [("ts", "TIMESTAMP_NTZ(us)", True)]
    assert facts.partitioning == (PartitionField("ts_day", "day", "ts"),)
    assert (facts.rows, facts.version) == (0, None)


@pytest.mark.parametrize(
    ("native", "expected"),
    [
        ("timestamp_ns", "TIMESTAMP_NTZ(ns)"),
        ("timestamptz_ns", "TIMESTAMP(ns,UTC)"),
        ("variant", "JSON"),
        ("unknown", "UNKNOWN"),
        ("geometry(srid:4326)", "GEOMETRY"),
        ("geography", "GEOMETRY"),
        ("decimal(9, 2)", "DECIMAL(9,2)"),
        ("from_the_future", "UNKNOWN"),
    ],
)
def test_types_that_no_library_here_writes(native: str, expected: str) -> None:
    schema = {"schema-id": 0, "fields": [{"id": 1, "name": "c", "type": native}]}
    facts = read_made({"v1.metadata.json": document(schemas=[schema], **{"format-version": 3})})

    assert facts.schema.fields[0].signature() == expected
    assert facts.schema.fields[0].native_type == native


def test_a_view_has_the_schema_of_its_current_version() -> None:
    view = {
        "view-uuid": "x",
        "format-version": 1,
        "location": "s3://bucket/db/t",
        "schemas": [{"schema-id": 1, "fields": [{"id": 1, "name": "n", "type": "long"}]}],
        "current-version-id": 3,
        "versions": [
            {
                "version-id": 3,
                "timestamp-ms": 1,
                "schema-id": 1,
                "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}],
            }
        ],
    }

    facts = read_made({"00000-a.gz.metadata.json": view})

    assert facts.observations == {"view": True, "dialects": ["spark"]}
    assert [field.name for field in facts.schema.fields] == ["n"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "v1.metadata.json is damaged: it is not JSON"),
        (b"[]", "v1.metadata.json is damaged: it is no JSON object"),
        (b"\x1f\x8b123", "v1.metadata.json is damaged: it cannot be unpacked"),
        (gzip.compress(b"{}" * 1000, mtime=0)[:-9], "v1.metadata.json is damaged: it is cut off"),
        (b"{}", "a struct of the schema has no fields"),
        (document(snapshots=[]), "the current snapshot is not in it"),
    ],
)
def test_damaged_metadata_is_said_to_be_so(body: object, message: str) -> None:
    with pytest.raises(UnreadableItemError, match=message):
        read_made({"v1.metadata.json": body})


def test_a_table_without_metadata_is_said_to_be_so() -> None:
    with pytest.raises(UnreadableItemError, match="no metadata file"):
        read_made({"version-hint.text": b"3"})


def test_data_outside_of_the_folder_is_a_warning() -> None:
    properties = {"write.data.path": "s3://other/data"}
    facts = read_made({"v1.metadata.json": document(properties=properties)})
    copied = read_made({"v1.metadata.json": document(location="s3://bucket/db/original")})

    assert "its data files are kept outside of its folder" in facts.warnings
    assert any("another location" in warning for warning in copied.warnings)
