"""Delta tables as their own library writes and reads them."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake import Field as DeltaField
from deltalake import Schema as DeltaSchemaOfLibrary
from deltalake.schema import PrimitiveType

from lumos.core.errors import UnreadableItemError
from lumos.core.formats.arrow_types import canonical_schema
from lumos.core.formats.tables import PartitionField, TableFacts, read_table
from lumos.core.models import Schema, TypeName
from table_access import FolderAccess, MemoryAccess

FIRST = "t/_delta_log/00000000000000000000.json"
PROTOCOL = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
ID_ONLY = [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]


def shape(schema: Schema) -> list[tuple[str, str, bool]]:
    return [(field.name, field.signature(), field.nullable) for field in schema.fields]


def facts_of(table: Path) -> TableFacts:
    return read_table("delta", table.name, FolderAccess(table.parent))


def assert_library_agrees(table: Path) -> TableFacts:
    """Read a table and compare it with what the library itself makes of it."""
    library, facts = DeltaTable(table), facts_of(table)
    expected, _ = canonical_schema(pa.schema(library.schema().to_arrow()))
    assert shape(facts.schema) == shape(expected)
    assert facts.version == str(library.version())
    assert facts.files == len(library.file_uris())
    assert facts.rows == library.to_pyarrow_dataset().count_rows()
    assert facts.size_bytes == sum(
        Path(uri.removeprefix("file://")).stat().st_size for uri in library.file_uris()
    )
    assert [part.source for part in facts.partitioning] == library.metadata().partition_columns
    return facts


def every_type(rows: int = 3) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(rows), pa.int64()),
            "tiny": pa.array([1] * rows, pa.int8()),
            "small": pa.array([1] * rows, pa.int16()),
            "plain": pa.array([1] * rows, pa.int32()),
            "single": pa.array([1.5] * rows, pa.float32()),
            "double": pa.array([1.5] * rows, pa.float64()),
            "flag": pa.array([True] * rows),
            "money": pa.array([Decimal("1.50")] * rows, pa.decimal128(12, 2)),
            "text": pa.array(["x"] * rows),
            "raw": pa.array([b"x"] * rows),
            "day": pa.array([date(2024, 1, 1)] * rows),
            "at": pa.array([datetime(2024, 1, 1, tzinfo=UTC)] * rows, pa.timestamp("us", "UTC")),
            "local": pa.array([datetime(2024, 1, 1)] * rows, pa.timestamp("us")),
            "tags": pa.array([["a"]] * rows),
            "prices": pa.array([[("k", 1)]] * rows, pa.map_(pa.string(), pa.int64())),
            "address": pa.array(
                [{"city": "B", "zip": {"code": 1}}] * rows,
                pa.struct([("city", pa.string()), ("zip", pa.struct([("code", pa.int32())]))]),
            ),
        }
    )


def test_every_type_is_what_the_library_says(tmp_path: Path) -> None:
    table = tmp_path / "t"
    write_deltalake(table, every_type())

    facts = assert_library_agrees(table)

    assert facts.rows_exact
    types = {field.name: field.type for field in facts.schema.fields}
    assert types["at"] == TypeName.TIMESTAMP
    assert types["local"] == TypeName.TIMESTAMP_NTZ
    assert {f.name: f.native_type for f in facts.schema.fields}["money"] == "decimal(12,2)"


def test_a_partitioned_table_with_commits_after_its_checkpoint(tmp_path: Path) -> None:
    table = tmp_path / "t"
    for number in range(12):
        batch = every_type(10 + number)
        write_deltalake(table, batch, partition_by=["day", "plain"], mode="append")
        if number == 9:
            DeltaTable(table).create_checkpoint()

    facts = assert_library_agrees(table)

    assert facts.partitioning == (
        PartitionField("day", "identity", "day"),
        PartitionField("plain", "identity", "plain"),
    )
    assert facts.rows == sum(range(10, 22))


def test_deleted_and_rewritten_rows_are_not_counted(tmp_path: Path) -> None:
    table = tmp_path / "t"
    for first in (0, 100, 200):
        write_deltalake(
            table, pa.table({"id": pa.array(range(first, first + 100), pa.int64())}), mode="append"
        )
    library = DeltaTable(table)
    library.create_checkpoint()
    library.delete("id < 30")
    library.update(updates={"id": "id + 1000"}, predicate="id = 150")
    library.optimize.compact()

    facts = assert_library_agrees(table)

    assert (facts.rows, facts.rows_exact) == (270, True)


def test_an_overwritten_table_has_the_rows_of_the_last_write(tmp_path: Path) -> None:
    table = tmp_path / "t"
    write_deltalake(table, pa.table({"id": [1, 2, 3]}))
    write_deltalake(table, pa.table({"name": ["x"]}), mode="overwrite", schema_mode="overwrite")

    facts = assert_library_agrees(table)

    assert [field.name for field in facts.schema.fields] == ["name"]
    assert facts.rows == 1


def test_a_column_added_later_is_in_the_schema(tmp_path: Path) -> None:
    table = tmp_path / "t"
    write_deltalake(table, pa.table({"id": [1]}))
    write_deltalake(
        table, pa.table({"id": [2], "extra": ["x"]}), mode="append", schema_mode="merge"
    )

    facts = assert_library_agrees(table)

    assert [field.name for field in facts.schema.fields] == ["id", "extra"]


def test_names_comments_properties_and_constraints_are_told(tmp_path: Path) -> None:
    fields = [
        DeltaField("id", PrimitiveType("long"), nullable=False, metadata={"comment": "number"}),
        DeltaField("name", PrimitiveType("string")),
    ]
    DeltaTable.create(
        tmp_path / "t",
        schema=DeltaSchemaOfLibrary(fields),
        name="orders",
        description="every order",
        configuration={"delta.appendOnly": "false"},
    )
    library = DeltaTable(tmp_path / "t")
    library.alter.add_constraint({"positive": "id > 0"})

    facts = assert_library_agrees(tmp_path / "t")

    assert (facts.name, facts.description) == ("orders", "every order")
    assert facts.schema.fields[0].description == "number"
    assert not facts.schema.fields[0].nullable
    assert facts.properties["delta.constraints.positive"] == "id > 0"
    assert facts.properties["delta.appendOnly"] == "false"
    assert (facts.rows, facts.rows_exact, facts.files) == (0, True, 0)


def test_a_log_that_was_cleaned_up_is_read_from_its_checkpoint(tmp_path: Path) -> None:
    table = tmp_path / "t"
    for _ in range(4):
        write_deltalake(table, pa.table({"id": [1, 2]}), mode="append")
    library = DeltaTable(table)
    library.create_checkpoint()
    library.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    before = facts_of(table)
    for version in range(3):
        (table / "_delta_log" / f"{version:020}.json").unlink()
    (table / "_delta_log" / "_last_checkpoint").unlink()

    after = facts_of(table)

    assert (after.rows, after.files) == (8, 4)
    assert after == before


def test_an_older_state_that_was_restored_is_the_current_one(tmp_path: Path) -> None:
    table = tmp_path / "t"
    write_deltalake(table, pa.table({"id": [1, 2]}))
    write_deltalake(table, pa.table({"id": [3]}), mode="append")
    DeltaTable(table).restore(0)

    assert assert_library_agrees(table).rows == 2


def test_data_files_are_never_opened(tmp_path: Path) -> None:
    table = tmp_path / "t"
    for _ in range(3):
        write_deltalake(table, pa.table({"id": [1]}), mode="append")
    access = FolderAccess(tmp_path)

    read_table("delta", "t", access)

    assert access.lists == ["t/_delta_log"]
    assert sorted(access.reads) == [f"t/_delta_log/{version:020}.json" for version in range(3)]


def log_of(*actions: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(action).encode() + b"\n" for action in actions)


def metadata(fields: object = ID_ONLY, **more: object) -> dict[str, Any]:
    text = json.dumps({"type": "struct", "fields": fields})
    return {
        "metaData": {
            "id": "x",
            "schemaString": text,
            "partitionColumns": [],
            "format": {"provider": "parquet", "options": {}},
            "configuration": {},
            **more,
        }
    }


def added(path: str, rows: int | None = None, **more: object) -> dict[str, Any]:
    stats = {} if rows is None else {"stats": json.dumps({"numRecords": rows})}
    return {
        "add": {
            "path": path,
            "size": 100,
            "partitionValues": {},
            "modificationTime": 1,
            "dataChange": True,
            **stats,
            **more,
        }
    }


def read_made(*commits: bytes) -> TableFacts:
    files = {f"t/_delta_log/{n:020}.json": commit for n, commit in enumerate(commits)}
    return read_table("delta", "t", MemoryAccess(files))


def test_rows_are_an_estimate_where_a_file_does_not_say() -> None:
    facts = read_made(log_of(PROTOCOL, metadata(), added("a", 10), added("b")))

    assert (facts.rows, facts.rows_exact, facts.files) == (20, False, 2)


def test_rows_are_unknown_where_no_file_says() -> None:
    facts = read_made(log_of(PROTOCOL, metadata(), added("a"), added("b", stats="not json")))

    assert (facts.rows, facts.rows_exact, facts.size_bytes) == (None, False, 200)


def test_rows_under_a_deletion_vector_are_taken_off() -> None:
    vector = {"storageType": "u", "pathOrInlineDv": "abc", "offset": 1, "cardinality": 4}
    facts = read_made(
        log_of(PROTOCOL, metadata(), added("a", 10)),
        log_of({"remove": {"path": "a"}}, added("a", 10, deletionVector=vector)),
    )

    assert (facts.rows, facts.rows_exact, facts.files) == (6, True, 1)


def test_unknown_reader_features_are_a_warning_and_the_schema_is_told() -> None:
    protocol = {"minReaderVersion": 3, "readerFeatures": ["columnMapping", "fromTheFuture"]}
    facts = read_made(log_of({"protocol": protocol}, metadata()))

    assert facts.warnings == ("it needs reader features that are not known: fromTheFuture",)
    assert [field.name for field in facts.schema.fields] == ["id"]


def test_secrets_among_the_properties_are_masked() -> None:
    configuration = {
        "fs.s3a.secret.key": "AKIAsecretsecret",
        "url": "jdbc:postgresql://me:hunter2@host/db",
    }
    facts = read_made(log_of(PROTOCOL, metadata(configuration=configuration)))

    assert facts.properties["fs.s3a.secret.key"] == "***"
    assert "hunter2" not in json.dumps(facts.to_json())


def test_the_time_of_the_commit_is_the_writers() -> None:
    commit_info = {"commitInfo": {"timestamp": 1_600_000_000_123}}

    assert read_made(log_of(PROTOCOL, metadata())).last_modified_us == MemoryAccess.MTIME_US
    assert (
        read_made(log_of(commit_info, PROTOCOL, metadata())).last_modified_us
        == 1_600_000_000_123_000
    )


def _without_commit(table: Path) -> None:
    (table / "_delta_log" / f"{1:020}.json").unlink()


def _cut_off(table: Path) -> None:
    path = table / "_delta_log" / f"{1:020}.json"
    path.write_bytes(path.read_bytes()[:-20])


def _without_checkpoint(table: Path) -> None:
    path = table / "_delta_log" / f"{2:020}.checkpoint.parquet"
    path.write_bytes(path.read_bytes()[:-100])


def _empty_log(table: Path) -> None:
    shutil.rmtree(table / "_delta_log")


@pytest.mark.parametrize(
    ("damage", "checkpoint", "message"),
    [
        (_without_commit, False, "commit 1 is missing"),
        (_cut_off, False, "00000000000000000001.json is damaged"),
        (
            _without_checkpoint,
            True,
            "checkpoint 00000000000000000002.checkpoint.parquet is damaged",
        ),
        (_empty_log, False, "neither a commit nor a complete checkpoint"),
    ],
)
def test_a_damaged_log_is_said_to_be_so(
    tmp_path: Path, damage: Callable[[Path], None], checkpoint: bool, message: str
) -> None:
    table = tmp_path / "t"
    for _ in range(3):
        write_deltalake(table, pa.table({"id": [1]}), mode="append")
    if checkpoint:
        DeltaTable(table).create_checkpoint()
    damage(table)

    with pytest.raises(UnreadableItemError, match=message):
        facts_of(table)


@pytest.mark.parametrize(
    "schema",
    ["", "[]", '{"type": "long"}', '{"type": "struct"}', '{"type": "struct", "fields": [1]}'],
)
def test_a_damaged_schema_is_said_to_be_so(schema: str) -> None:
    broken = {"metaData": {"schemaString": schema}}

    with pytest.raises(UnreadableItemError):
        read_made(log_of(PROTOCOL, broken))


def test_a_large_checkpoint_is_read_in_ranges(tmp_path: Path) -> None:
    rng = random.Random(1)
    actions = [added(f"{rng.randbytes(100).hex()}.parquet", 3) for _ in range(50_000)]
    (tmp_path / "t" / "_delta_log").mkdir(parents=True)
    (tmp_path / FIRST).write_bytes(log_of(PROTOCOL, metadata(), *actions))
    library = DeltaTable(tmp_path / "t")
    library.create_checkpoint()
    (tmp_path / FIRST).unlink()
    access = FolderAccess(tmp_path)

    facts = read_table("delta", "t", access)

    assert (facts.files, facts.rows, facts.size_bytes) == (50_000, 150_000, 5_000_000)
    assert len(access.reads) > 2


def test_what_is_said_of_a_column_beside_its_type_is_kept_but_for_its_values() -> None:
    told = {
        "delta.generationExpression": "id * 2",
        "delta.identity.start": 5,
        "delta.identity.step": 2,
        "delta.identity.highWaterMark": 4711,
        "delta.columnMapping.id": 4,
        "delta.columnMapping.physicalName": "col-x",
        "comment": "made",
    }
    field = {"name": "made", "type": "long", "nullable": True, "metadata": told}

    [column] = read_made(log_of(PROTOCOL, metadata([field]))).schema.fields

    assert column.description == "made"
    assert column.properties == {
        "field_id": 4,
        "generation_expression": "id * 2",
        "identity_start": 5,
        "identity_step": 2,
    }


@pytest.mark.parametrize(
    ("native", "expected"),
    [
        ("decimal", "DECIMAL(10,0)"),
        ("varchar(8)", "STRING(8)"),
        ("char(3)", "STRING(3)"),
        ("string collate UNICODE", "STRING"),
        ("variant", "JSON"),
        ("time(6)", "TIME(us)"),
        ("interval day to second", "DURATION"),
        ("geometry(4326)", "GEOMETRY"),
        ("void", "UNKNOWN"),
        ("from the future", "UNKNOWN"),
    ],
)
def test_types_that_no_library_here_writes(native: str, expected: str) -> None:
    field = {"name": "c", "type": native, "nullable": True, "metadata": {}}

    [column] = read_made(log_of(PROTOCOL, metadata([field]))).schema.fields

    assert (column.signature(), column.native_type) == (expected, native)


def test_a_varchar_keeps_its_length() -> None:
    told = {"__CHAR_VARCHAR_TYPE_STRING": "varchar(8)"}
    field = {"name": "c", "type": "string", "nullable": True, "metadata": told}

    [column] = read_made(log_of(PROTOCOL, metadata([field]))).schema.fields

    assert (column.length, column.native_type) == (8, "varchar(8)")
