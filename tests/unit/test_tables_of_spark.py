"""Tables that Spark wrote with the engines of the formats, against what those engines say.

How they were written stands in tests/golden/tables/README.md.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyiceberg.table import StaticTable

from lumos.core.errors import UnreadableItemError
from lumos.core.formats.arrow_types import canonical_schema
from lumos.core.formats.tables import TableFacts, read_table, table_of_path, table_roots
from lumos.core.models import FieldType, TypeName
from table_access import FolderAccess, MemoryAccess

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:pyiceberg")

TABLES = Path(__file__).resolve().parents[1] / "golden" / "tables"
NAMES = sorted(path.parent.name for path in TABLES.glob("*/expected.json"))
SPARK_TYPES = {
    TypeName.BOOLEAN: "boolean",
    TypeName.INT8: "byte",
    TypeName.INT16: "short",
    TypeName.INT32: "integer",
    TypeName.INT64: "long",
    TypeName.FLOAT: "float",
    TypeName.DOUBLE: "double",
    TypeName.STRING: "string",
    TypeName.BINARY: "binary",
    TypeName.DATE: "date",
    TypeName.TIMESTAMP: "timestamp",
    TypeName.TIMESTAMP_NTZ: "timestamp_ntz",
    TypeName.JSON: "variant",
}


def facts_of(name: str) -> TableFacts:
    return read_table(kind_of(name), name, FolderAccess(TABLES))


def kind_of(name: str) -> str:
    return name.partition("-")[0].rstrip("01")


def expected_of(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((TABLES / name / "expected.json").read_text("utf-8"))
    return document


def as_spark(node: FieldType) -> object:
    """Return a canonical type as Spark writes it in JSON."""
    match node.type:
        case TypeName.STRUCT:
            return {
                "type": "struct",
                "fields": [
                    {
                        "name": field.name,
                        "type": as_spark(field),
                        "nullable": field.nullable,
                        "comment": field.description,
                    }
                    for field in node.fields
                ],
            }
        case TypeName.ARRAY:
            assert node.items
            return {
                "type": "array",
                "elementType": as_spark(node.items),
                "containsNull": node.items.nullable,
            }
        case TypeName.MAP:
            assert node.key
            assert node.value
            return {
                "type": "map",
                "keyType": as_spark(node.key),
                "valueType": as_spark(node.value),
                "valueContainsNull": node.value.nullable,
            }
        case TypeName.DECIMAL:
            return f"decimal({node.precision},{node.scale})"
        case _:
            return SPARK_TYPES[node.type]


def without_metadata(node: object) -> object:
    """Return Spark's own JSON with comments beside the types and nothing else."""
    if isinstance(node, list):
        return [without_metadata(member) for member in node]
    if not isinstance(node, dict):
        return node
    plain = {name: without_metadata(value) for name, value in node.items() if name != "metadata"}
    if "metadata" in node:
        plain["comment"] = node["metadata"].get("comment")
    return plain


@pytest.mark.parametrize("name", NAMES)
def test_the_schema_is_what_the_engine_says(name: str) -> None:
    fields = FieldType(type=TypeName.STRUCT, fields=facts_of(name).schema.fields)

    assert as_spark(fields) == without_metadata(expected_of(name)["schema"])


@pytest.mark.parametrize("name", [name for name in NAMES if name != "hudi0-archived"])
def test_the_rows_are_what_the_engine_counts(name: str) -> None:
    facts = facts_of(name)

    assert facts.rows == expected_of(name)["rows"]
    waiting = ("iceberg-deletes", "iceberg-third", "hudi0-mor", "hudi1-mor")
    assert facts.rows_exact == (name not in waiting)


@pytest.mark.parametrize("name", [name for name in NAMES if kind_of(name) != "hudi"])
def test_version_and_files_are_what_the_engine_says(name: str) -> None:
    facts, expected = facts_of(name), expected_of(name)

    assert facts.version == str(expected["version"])
    assert facts.files == expected["files"]
    if "size_bytes" in expected:
        assert facts.size_bytes == expected["size_bytes"]


@pytest.mark.parametrize("name", ["hudi0-cow", "hudi1-cow", "hudi1-archived"])
def test_files_of_a_hudi_table_are_the_newest_of_each_group(name: str) -> None:
    facts, expected = facts_of(name), expected_of(name)

    assert (facts.files, facts.size_bytes) == (
        expected["files_of_groups"],
        expected["bytes_of_groups"],
    )


@pytest.mark.parametrize("name", NAMES)
def test_the_paths_of_a_table_lead_to_it_and_its_secrets_stay(name: str) -> None:
    paths = [str(path.relative_to(TABLES)) for path in (TABLES / name).rglob("*")]
    marks = [mark for path in paths if (mark := table_of_path(path))]

    assert table_roots(marks) == {name: kind_of(name)}
    assert "hunter2" not in json.dumps(facts_of(name).to_json())


def test_delta_features_are_told() -> None:
    facts = facts_of("delta-evolved")
    fields = {field.name: field for field in facts.schema.fields}

    assert facts.description == "every order"
    assert [part.source for part in facts.partitioning] == ["day"]
    assert facts.properties["delta.constraints.positive"] == "id >= 0"
    assert facts.properties["upstream.password"] == "***"
    assert fields["extra"].default == "7"
    assert "note" not in fields
    assert fields["remark"].properties["field_id"] == 3
    assert not facts.warnings


def test_delta_checkpoints_of_every_form_are_read() -> None:
    second = MemoryAccess.of_folder(TABLES)
    read_table("delta", "delta-second_checkpoint", second)
    parts = MemoryAccess.of_folder(TABLES)
    clustered = read_table("delta", "delta-many_parts", parts)

    assert any("/_sidecars/" in path for path in second.reads)
    assert sum(".checkpoint." in path for path in parts.reads) > 1
    assert clustered.properties["clustering_columns"] == "id"


@pytest.mark.parametrize("lost", ["/_sidecars/", ".checkpoint."])
def test_a_lost_part_of_a_checkpoint_is_said_to_be_so(lost: str) -> None:
    access = MemoryAccess.of_folder(TABLES)
    name = "delta-second_checkpoint"
    gone = sorted(path for path in access.files if path.startswith(name) and lost in path)[-1]
    del access.files[gone]
    for version in range(3):  # cleaned up, as logs are behind their checkpoint
        access.files.pop(f"{name}/_delta_log/{version:020}.json", None)

    with pytest.raises(UnreadableItemError, match="log is incomplete"):
        read_table("delta", name, access)


@pytest.mark.parametrize("name", [name for name in NAMES if kind_of(name) == "delta"])
def test_a_second_reader_agrees_on_delta_tables(name: str) -> None:
    library, facts = DeltaTable(TABLES / name), facts_of(name)
    expected = json.loads(library.schema().to_json())

    fields = FieldType(type=TypeName.STRUCT, fields=facts.schema.fields)
    assert as_spark(fields) == without_metadata(expected)
    assert facts.version == str(library.version())
    actions = pa.table(library.get_add_actions(flatten=True))
    assert (facts.files, facts.size_bytes) == (
        actions.num_rows,
        sum(actions.column("size_bytes").to_pylist()),
    )


# PyIceberg refuses the third: it does not know the type variant yet.
@pytest.mark.parametrize("name", ["iceberg-deletes", "iceberg-evolved", "iceberg-first"])
def test_a_second_reader_agrees_on_iceberg_tables(name: str) -> None:
    newest = max(
        (TABLES / name / "metadata").glob("v*.metadata.json"),
        key=lambda path: int(path.name[1:].partition(".")[0]),
    )
    library, facts = StaticTable.from_metadata(str(newest)), facts_of(name)
    expected, _ = canonical_schema(library.schema().as_arrow())

    assert [(f.name, f.signature(), f.nullable) for f in facts.schema.fields] == [
        (f.name, f.signature(), f.nullable) for f in expected.fields
    ]
    assert [(p.name, p.transform) for p in facts.partitioning] == [
        (p.name, str(p.transform)) for p in library.spec().fields if str(p.transform) != "void"
    ]
    assert facts.observations["format_version"] == library.format_version


@pytest.mark.parametrize("name", [name for name in NAMES if kind_of(name) == "hudi"])
def test_a_second_reader_agrees_on_hudi_tables(name: str) -> None:
    answer = base64.b64decode(expected_of(name)["hudi_rs_schema"])
    expected, _ = canonical_schema(pa.ipc.read_schema(pa.py_buffer(answer)))

    # hudi-rs takes Hudi's own columns for required; Spark shows them nullable.
    assert [
        (f.name, f.signature(), f.nullable and not f.name.startswith("_hoodie_"))
        for f in facts_of(name).schema.fields
    ] == [(f.name, f.signature(), f.nullable) for f in expected.fields]


def test_iceberg_features_are_told() -> None:
    facts = facts_of("iceberg-evolved")

    assert [f"{part.transform}({part.source})" for part in facts.partitioning] == [
        "day(at)",
        "bucket[16](id)",
        "truncate[4](remark)",
        "identity(address.city)",
    ]
    assert facts.keys == ("id",)
    assert facts.properties["sort_order"] == "at desc nulls-last, id asc nulls-first"
    refs = facts.observations["refs"]
    assert isinstance(refs, dict)
    assert set(refs) == {"main", "audit", "first"}
    distinct = facts.observations["distinct_values"]
    assert isinstance(distinct, dict)
    assert distinct["id"] == 100
    assert facts_of("iceberg-first").partitioning == ()


@pytest.mark.parametrize("prefix", ["hudi0", "hudi1"])
def test_hudi_features_are_told(prefix: str) -> None:
    cow, mor = facts_of(f"{prefix}-cow"), facts_of(f"{prefix}-mor")

    assert cow.name == "cow"
    assert cow.keys == ("id",)
    assert [part.source for part in cow.partitioning] == ["day"]
    assert cow.properties["hoodie.table.type"] == "COPY_ON_WRITE"
    assert mor.properties["hoodie.table.type"] == "MERGE_ON_READ"
    assert cow.properties["hoodie.table.precombine.field"] == "at"
    assert cow.schema.fields[-2].name == "extra"


def test_an_archive_that_is_not_read_leaves_rows_unknown() -> None:
    facts = facts_of("hudi0-archived")

    assert (facts.rows, facts.files) == (None, None)
    assert facts.warnings == ("older commits are archived: rows and files are not known",)
