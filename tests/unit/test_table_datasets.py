from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from lumos.core.formats.tables import PartitionField, TableFacts, read_table
from lumos.core.models import DatasetKind, Field, Schema, TypeName
from lumos.feature.discovery.datasets import SourceRoot
from lumos.feature.discovery.tables import table_dataset, table_parts
from table_access import FolderAccess

ROOT = SourceRoot("s3", parts=("lake", "raw"), bucket="lake", prefix="/raw")
FACTS = TableFacts(
    format="iceberg",
    schema=Schema(fields=(Field(name="id", type=TypeName.INT64),)),
    name="orders",
    description="every order",
    partitioning=(
        PartitionField("at_day", "day", "at"),
        PartitionField("id_bucket", "bucket[16]", "id"),
        PartitionField("region", "identity", "region"),
    ),
    keys=("id",),
    properties={"team": "shop"},
    version="123",
    rows=10,
    rows_exact=True,
    files=2,
    size_bytes=300,
    last_modified_us=1_700_000_000_000_001,
    observations={"refs": {"main": {"type": "branch"}}},
)


def test_a_table_under_a_long_path_keeps_it_whole_in_its_location() -> None:
    path = "/".join(["表" * 80] * 5)
    one, two = (
        table_dataset(ROOT, table_parts(f"{path}/{name}"), facts=FACTS) for name in ("one", "two")
    )

    assert one.urn != two.urn
    assert one.urn.is_shortened
    assert one.name == "one"
    assert one.location is not None
    assert one.location.prefix == f"/raw/{path}/one/"


def test_a_table_becomes_a_dataset_with_all_that_its_log_tells() -> None:
    dataset = table_dataset(ROOT, table_parts("sales/orders"), facts=FACTS, environment="prod")

    assert str(dataset.urn) == "lumos://s3/lake/raw/sales/orders"
    assert (dataset.name, dataset.format, dataset.kind) == (
        "orders",
        "iceberg",
        DatasetKind.TABLE,
    )
    assert dataset.location is not None
    assert dataset.location.prefix == "/raw/sales/orders/"
    assert (
        dataset.location.partitioning
        == "at_day={day(at)}/id_bucket={bucket[16](id)}/region={region}"
    )
    assert dataset.location.partition_keys == ("at_day", "id_bucket", "region")
    assert dataset.schema.primary_key == ("id",)
    assert dataset.documentation.description == "every order"
    assert dataset.properties == {"team": "shop"}
    assert dataset.statistics is not None
    assert dataset.statistics.row_count == 10
    assert dataset.statistics.last_modified == datetime(2023, 11, 14, 22, 13, 20, 1, tzinfo=UTC)
    assert dataset.extensions == {
        "table": {"version": "123", "name": "orders", "refs": {"main": {"type": "branch"}}}
    }


def test_rows_that_are_not_exact_are_an_estimate_only() -> None:
    dataset = table_dataset(ROOT, ("t",), facts=replace(FACTS, rows_exact=False))

    assert dataset.statistics is not None
    assert dataset.statistics.row_count is None
    assert dataset.statistics.row_count_estimate == 10


def test_a_view_is_a_view() -> None:
    dataset = table_dataset(ROOT, ("v",), facts=replace(FACTS, observations={"view": True}))

    assert dataset.kind == DatasetKind.VIEW


def test_a_table_at_the_root_of_a_source_is_called_like_the_root() -> None:
    dataset = table_dataset(ROOT, table_parts(""), facts=FACTS)

    assert dataset.name == "raw"
    assert dataset.location is not None
    assert dataset.location.prefix == "/raw/"


def test_new_commits_do_not_change_the_contract(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
    first = read_table("delta", "t", FolderAccess(tmp_path))
    write_deltalake(tmp_path / "t", pa.table({"id": [2]}), mode="append")
    second = read_table("delta", "t", FolderAccess(tmp_path))

    before = table_dataset(ROOT, ("t",), facts=first)
    after = table_dataset(ROOT, ("t",), facts=second)

    assert before != after
    assert before.contract_hash == after.contract_hash
