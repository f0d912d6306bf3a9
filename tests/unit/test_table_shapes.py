"""Logs of tables that are whole JSON of another shape: the place is named, nothing is guessed."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from lumos.core.errors import UnreadableItemError
from lumos.core.formats.tables import read_table
from table_access import MemoryAccess

TABLES = Path(__file__).resolve().parents[1] / "golden" / "tables"
ICEBERG: Final = {
    "type": "struct", "schema-id": 0, "identifier-field-ids": [1],
    "fields": [{"id": 1, "name": "id", "required": True, "type": "long", "doc": "the key"}],
}  # fmt: skip
METADATA: Final[dict[str, Any]] = {
    "format-version": 2,
    "table-uuid": "u",
    "current-schema-id": 0,
    "schemas": [ICEBERG],
    "properties": {"owner": "x"},
    "default-spec-id": 0,
    "partition-specs": [
        {"spec-id": 0, "fields": [{"source-id": 1, "transform": "identity", "name": "id"}]}
    ],
    "default-sort-order-id": 1,
    "sort-orders": [
        {"order-id": 1, "fields": [{"source-ids": [1], "transform": "day", "direction": "asc"}]}
    ],
    "current-snapshot-id": 7,
    "snapshots": [
        {"snapshot-id": 7, "summary": {"operation": "append", "total-records": "3"}}
    ],
    "refs": {"main": {"type": "branch", "snapshot-id": 7}},
    "statistics": [
        {"snapshot-id": 7, "blob-metadata": [{"fields": [1], "properties": {"ndv": "2"}}]}
    ],
}  # fmt: skip
DELTA: Final[dict[str, Any]] = {
    "protocol": {"minReaderVersion": 3, "readerFeatures": ["columnMapping"]},
    "metaData": {
        "id": "u", "name": "n", "description": "d", "partitionColumns": ["id"],
        "schemaString": '{"type":"struct","fields":[{"name":"id","type":"long"}]}',
        "configuration": {"delta.appendOnly": "true"},
    },
    "commitInfo": {"timestamp": 1},
    "domainMetadata": {"domain": "delta.clustering", "configuration": "{}"},
    "add": {"path": "a.parquet", "size": 1, "deletionVector": {"storageType": "u"}},
}  # fmt: skip
HUDI: Final[dict[str, Any]] = {
    "partitionToWriteStats": {"p": [{"fileId": "f", "path": "p/f_1.parquet", "numWrites": 3}]},
    "partitionToReplaceFileIds": {"p": ["g"]},
    "extraMetadata": {
        "schema": '{"type":"record","name":"r","fields":[{"name":"id","type":"long"}]}'
    },
}
FREE: Final = frozenset(
    {"owner", "delta.appendOnly", "ndv", "total-records", "transform", "direction", "type"}
)
"""Values that a writer may spell otherwise, or that the readers check in words of their own."""


def files(kind: str, document: dict[str, Any]) -> dict[str, bytes]:
    if kind == "iceberg":
        return {"t/metadata/v1.metadata.json": orjson.dumps(document)}
    if kind == "delta":
        lines = [orjson.dumps({action: value}) for action, value in document.items()]
        return {"t/_delta_log/00000000000000000000.json": b"\n".join(lines)}
    properties = b"hoodie.table.name=t\nhoodie.table.version=6\n"
    commit = "t/.hoodie/20240101000000000.commit"
    return {"t/.hoodie/hoodie.properties": properties, commit: orjson.dumps(document)}


def containers(value: Any, above: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the way to every object, list and text that has a name or a place in a list."""
    if above and isinstance(value, dict | list | str) and above[-1] not in FREE:
        yield above
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for step, each in items:
            yield from containers(each, (*above, step))


def with_value(document: Any, path: tuple[str | int, ...], value: Any) -> Any:
    whole = copy.deepcopy(document)
    place = whole
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return whole


CASES = [
    pytest.param(kind, path, id=f"{kind}-{'.'.join(map(str, path))}")
    for kind, document in (("iceberg", METADATA), ("delta", DELTA), ("hudi", HUDI))
    for path in containers(document)
]


@pytest.mark.parametrize("kind", ["iceberg", "delta", "hudi"])
def test_the_log_of_these_tests_is_one_that_is_read(kind: str) -> None:
    document = {"iceberg": METADATA, "delta": DELTA, "hudi": HUDI}[kind]
    facts = read_table(kind, "t", MemoryAccess(files(kind, document)))

    assert [field.name for field in facts.schema.fields][-1:] == ["id"]


@pytest.mark.parametrize(("kind", "path"), CASES)
def test_a_number_in_place_of_a_part_of_a_log_is_refused(
    kind: str, path: tuple[str | int, ...]
) -> None:
    document = {"iceberg": METADATA, "delta": DELTA, "hudi": HUDI}[kind]
    damaged = with_value(document, path, 5)
    with pytest.raises(UnreadableItemError) as raised:
        read_table(kind, "t", MemoryAccess(files(kind, damaged)))

    assert "is damaged" in raised.value.message
    assert "\n" not in raised.value.message


def test_a_log_with_nulls_in_place_of_absent_actions_is_read() -> None:
    nulls = dict.fromkeys(("add", "remove", "metaData", "protocol", "txn"))
    lines = [orjson.dumps({**nulls, kind: value}) for kind, value in DELTA.items()]
    access = MemoryAccess({"t/_delta_log/00000000000000000000.json": b"\n".join(lines)})

    assert read_table("delta", "t", access).files == 1
