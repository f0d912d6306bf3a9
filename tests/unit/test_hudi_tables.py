"""Hudi tables laid out by hand; those that Hudi itself wrote are in test_tables_of_spark.py."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumos.core.errors import UnreadableItemError
from lumos.core.formats.tables import PartitionField, TableFacts, read_table
from lumos.core.formats.tables.hudi import parse_properties
from table_access import MemoryAccess

SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "r",
        "doc": "every order",
        "fields": [
            {"name": "id", "type": "long", "doc": "the number"},
            {"name": "note", "type": ["null", "string"]},
        ],
    }
)
PROPERTIES = (
    b"#made\nhoodie.table.name=t\nhoodie.table.version=6\nhoodie.table.type=COPY_ON_WRITE\n"
)


def stat(group: str, **more: Any) -> dict[str, Any]:
    return {"fileId": group, "path": f"p/{group}_1.parquet", "fileSizeInBytes": 100, **more}


def commit(*stats: dict[str, Any], schema: str = SCHEMA, **more: Any) -> bytes:
    document = {
        "partitionToWriteStats": {"p": list(stats)},
        "extraMetadata": {"schema": schema},
        **more,
    }
    return json.dumps(document).encode()


def read_made(properties: bytes = PROPERTIES, **files: bytes) -> TableFacts:
    content = {f"t/.hoodie/{name}": body for name, body in files.items()}
    return read_table(
        "hudi", "t", MemoryAccess({"t/.hoodie/hoodie.properties": properties, **content})
    )


def instant(number: int, action: str = "commit") -> str:
    return f"2024010100000{number}000.{action}"


def test_only_the_newest_file_of_each_group_counts() -> None:
    facts = read_made(
        **{
            instant(1): commit(stat("a", numWrites=10), stat("b", numWrites=20)),
            instant(2): commit(stat("a", numWrites=7)),
            instant(3): commit(stat("c", numWrites=99)) + b"",
            f"{instant(4)}.requested": b"",
        }
    )

    assert (facts.rows, facts.rows_exact, facts.files, facts.size_bytes) == (126, True, 3, 300)
    assert facts.version == "20240101000003000"
    assert facts.last_modified_us == MemoryAccess.MTIME_US
    assert facts.description == "every order"


def test_replaced_groups_are_gone() -> None:
    facts = read_made(
        **{
            instant(1): commit(stat("a", numWrites=10), stat("b", numWrites=20)),
            instant(2, "replacecommit"): commit(
                stat("c", numWrites=5), partitionToReplaceFileIds={"p": ["a"]}
            ),
        }
    )

    assert (facts.rows, facts.files) == (25, 2)


def test_logged_changes_make_the_rows_an_estimate() -> None:
    logged = stat("a", path="p/.a_1.log.1_0-1-1", numInserts=3, numDeletes=1, numWrites=5)
    facts = read_made(
        **{
            instant(1): commit(stat("a", numWrites=10)),
            instant(2, "deltacommit"): commit(logged),
        }
    )

    assert (facts.rows, facts.rows_exact, facts.files, facts.size_bytes) == (12, False, 2, 200)


def test_columns_of_hudi_itself_are_there_unless_they_are_not_written() -> None:
    files = {instant(1): commit()}
    with_them = read_made(**files)
    without = read_made(PROPERTIES + b"hoodie.populate.meta.fields=false\n", **files)

    assert [field.name for field in without.schema.fields] == ["id", "note"]
    assert [field.name for field in with_them.schema.fields][:2] == [
        "_hoodie_commit_time",
        "_hoodie_commit_seqno",
    ]
    assert len(with_them.schema.fields) == 7


def test_a_commit_without_a_schema_leaves_that_of_an_older_one() -> None:
    facts = read_made(**{instant(1): commit(), instant(2): commit(schema=""), instant(3): b""})

    assert facts.schema.fields[-1].name == "note"


def test_a_table_without_commits_has_the_schema_it_was_made_with() -> None:
    escaped = SCHEMA.replace('"', '\\"').replace(":", "\\:").encode()
    facts = read_made(PROPERTIES + b"hoodie.table.create.schema=" + escaped + b"\n")

    assert facts.schema.fields[-1].name == "note"
    assert (facts.rows, facts.files, facts.version) == (0, 0, None)


def test_partitions_and_keys_are_told() -> None:
    more = (
        b"hoodie.table.partition.fields=region:SIMPLE,at:TIMESTAMP\n"
        b"hoodie.keygen.timebased.output.dateformat=yyyy/MM/dd\n"
        b"hoodie.table.recordkey.fields=id, note\n"
        b"fs.s3a.secret.key=hunter2-hunter2\n"
    )
    facts = read_made(PROPERTIES + more, **{instant(1): commit()})

    assert facts.partitioning == (
        PartitionField("region", "identity", "region"),
        PartitionField("at", "format[yyyy/MM/dd]", "at"),
    )
    assert facts.keys == ("id", "note")
    assert [field.name for field in facts.schema.fields][-2:] == ["region", "at"]
    assert facts.properties["fs.s3a.secret.key"] == "***"


def avro_commit(records: list[dict[str, Any]]) -> bytes:
    schema = fastavro.parse_schema(
        {
            "type": "record",
            "name": "HoodieCommitMetadata",
            "fields": [{"name": "extraMetadata", "type": {"type": "map", "values": "string"}}],
        }
    )
    stream = io.BytesIO()
    fastavro.writer(stream, schema, records)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("properties", "body", "message"),
    [
        (b"", b"", "hoodie.properties are damaged"),
        (PROPERTIES, b"{", "its commit 20240101000001000.commit is damaged: it is not JSON"),
        (PROPERTIES, b"Obj\x01xx", "its commit 20240101000001000.commit is damaged"),
        (PROPERTIES, avro_commit([]), "is damaged: it is empty"),
        (PROPERTIES, commit(schema="{"), "the schema in its timeline is not JSON"),
        (PROPERTIES, commit(schema="{}"), "its schema is not valid Avro"),
        (PROPERTIES, b"", "hold a schema"),
    ],
)
def test_a_damaged_table_is_said_to_be_so(properties: bytes, body: bytes, message: str) -> None:
    with pytest.raises(UnreadableItemError, match=message):
        read_made(properties, **{instant(1): body})


def test_properties_are_parsed_as_java_writes_them() -> None:
    text = (
        b"# comment\n! comment\n\n  a = 1\nb:2\nc 3\nd=x\\\n    y\ne\\=f=\\u00e9\\n\\\\\n"
        b"pair=\\ud83d\\ude00\nlone=\\ud83d\nempty=\nbare\n"
    )

    assert parse_properties(text) == {
        "a": "1",
        "b": "2",
        "c": "3",
        "d": "xy",
        "e=f": "é\n\\",
        "pair": "\N{GRINNING FACE}",
        "lone": "\N{REPLACEMENT CHARACTER}",
        "empty": "",
        "bare": "",
    }


@given(st.binary())
def test_any_bytes_are_properties_of_some_kind(content: bytes) -> None:
    json.dumps(parse_properties(content)).encode("utf-8")
