from __future__ import annotations

import orjson
import pytest
from pydantic import JsonValue

from lumos.core.models import LumosDataset, Schema
from lumos.core.models.base import canonical_json
from lumos.feature.discovery import fold as fold_module
from lumos.feature.discovery.assembling import dataset_names, path_place
from lumos.feature.discovery.building import FoundDataset, dataset_of_group
from lumos.feature.discovery.datasets import SourceRoot
from lumos.feature.discovery.fold import DatasetFold, FileRow
from lumos.feature.discovery.grouping import grouped

ROOT = SourceRoot("local", ("srv", "lake"), path="/srv/lake")
DAY_US = 86_400_000_000
JANUARY = 1_704_067_200_000_000


def schema(*names: str, type_: str = "INT64") -> str:
    fields: list[JsonValue] = [{"name": name, "type": type_, "nullable": False} for name in names]
    return canonical_json(Schema.from_json({"fields": fields}).to_json()).decode()


SCHEMAS = {"old": schema("id"), "new": schema("id", "email"), "text": schema("id", type_="STRING")}


def found(*files: tuple[str, str, int], **parts: object) -> list[FoundDataset]:
    """Build the datasets of files, each given by path, schema and day of January 2024."""
    fold = DatasetFold()
    name: tuple[str, ...] = ()
    for path, fingerprint, day in files:
        place = path_place(path)
        assert place is not None
        name = place.dataset
        row = FileRow(
            size=100,
            mtime_us=JANUARY + (day - 1) * DAY_US,
            layout=place.layout,
            partition=place.partition,
            format=place.format or "unknown",
            fingerprint=fingerprint,
            rows=5,
            path=path.encode(),
            bond=orjson.dumps([place.bond, *place.alone]).decode() if place.bond else None,
        )
        fold.add(row._replace(**parts))  # type: ignore[arg-type]
    groups = grouped(name, fold.formats, schemas=SCHEMAS, kept={})
    names = dataset_names(name, [group.format for group in groups])
    return [
        dataset_of_group(ROOT, names[group.format], group=group, schemas=SCHEMAS, of=name)
        for group in groups
    ]


def test_drift_tells_the_partitions_that_differ_and_when_they_were_written() -> None:
    ((dataset, warnings),) = found(
        ("t/dt=2024-01-01/part-0.parquet", "old", 1),
        ("t/dt=2024-01-02/part-0.parquet", "old", 2),
        ("t/dt=2024-01-03/part-0.parquet", "new", 3),
        ("t/dt=2024-01-03/part-1.parquet", "new", 4),
    )
    assert warnings == (
        "field 'email' is missing in 2 of 4 files (from dt=2024-01-01 to dt=2024-01-02)",
    )
    assert dataset.to_json()["extensions"] == {
        "files": {
            "count": 4,
            "first": [
                "t/dt=2024-01-01/part-0.parquet",
                "t/dt=2024-01-02/part-0.parquet",
                "t/dt=2024-01-03/part-0.parquet",
                "t/dt=2024-01-03/part-1.parquet",
            ],
        },
        "schema_drift": {
            "schema_count": 2,
            "field_count": 1,
            "fields": [
                {
                    "path": "email",
                    "kind": "missing",
                    "files": 2,
                    "of": 4,
                    "partitions": {"first": "dt=2024-01-01", "last": "dt=2024-01-02"},
                    "written": {"first": "2024-01-01T00:00:00Z", "last": "2024-01-02T00:00:00Z"},
                }
            ],
            "schemas": [
                {
                    "fingerprint": "new",
                    "fields": 2,
                    "files": 2,
                    "partitions": {"first": "dt=2024-01-03", "last": "dt=2024-01-03"},
                    "written": {"first": "2024-01-03T00:00:00Z", "last": "2024-01-04T00:00:00Z"},
                },
                {
                    "fingerprint": "old",
                    "fields": 1,
                    "files": 2,
                    "partitions": {"first": "dt=2024-01-01", "last": "dt=2024-01-02"},
                    "written": {"first": "2024-01-01T00:00:00Z", "last": "2024-01-02T00:00:00Z"},
                },
            ],
        },
    }


def test_drift_and_partitions_are_observed_and_no_part_of_the_contract() -> None:
    ((one, _),) = found(("t/dt=2024-01-01/part-0.parquet", "new", 1))
    ((other, _),) = found(
        ("t/dt=2024-01-01/part-0.parquet", "new", 1),
        ("t/dt=2024-01-09/part-0.parquet", "new", 9),
    )
    assert one.statistics != other.statistics
    assert one.contract_hash == other.contract_hash
    assert LumosDataset.from_json(other.to_json()) == other


def test_a_conflict_in_one_partition_names_that_one() -> None:
    ((_, warnings),) = found(
        ("t/dt=2024-01-01/part-0.parquet", "old", 1),
        ("t/dt=2024-01-02/part-0.parquet", "old", 2),
        ("t/dt=2024-01-03/part-0.parquet", "text", 3),
    )
    assert warnings == (
        "field 'id' is STRING in 1 of 3 files (in dt=2024-01-03), but INT64 in the others; "
        "only STRING holds all",
    )


def test_partitions_are_counted_with_their_ranges_and_the_newest_of_them() -> None:
    ((dataset, _),) = found(
        ("t/year=2023/month=12/part-0.parquet", "old", 1),
        ("t/year=2024/month=2/part-0.parquet", "old", 1),
        ("t/year=2024/month=10/part-0.parquet", "old", 1),
        ("t/year=2024/month=10/part-1.parquet", "old", 1),
    )
    statistics = dataset.to_json()["statistics"]
    assert isinstance(statistics, dict)
    assert statistics["partition_count"] == 3
    assert statistics["newest_partition"] == "year=2024/month=10"
    assert statistics["partition_ranges"] == [
        {"key": "year", "type": "INT32", "min": "2023", "max": "2024"},
        {"key": "month", "type": "INT32", "min": "2", "max": "12"},
    ]


def test_files_outside_of_every_partition_are_no_partition() -> None:
    ((dataset, _),) = found(
        ("t/part-0.parquet", "old", 1), ("t/dt=2024-01-01/part-0.parquet", "old", 1)
    )
    assert dataset.statistics is not None
    assert dataset.statistics.partition_count == 1


def test_a_dataset_without_partitions_tells_none() -> None:
    ((dataset, _),) = found(("t/part-0.parquet", "old", 1))
    assert dataset.to_json()["statistics"] == {
        "file_count": 1,
        "total_size_bytes": 100,
        "row_count": 5,
        "row_count_estimate": 5,
        "last_modified": "2024-01-01T00:00:00Z",
    }


def test_more_partitions_than_are_counted_are_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fold_module, "MOST_PARTITIONS", 10)
    ((dataset, _),) = found(*((f"t/k={n}/part-0.parquet", "old", 1) for n in range(50)))
    assert dataset.statistics is not None
    assert dataset.statistics.partition_count is None
    assert dataset.statistics.partition_count_estimate == 50


def test_each_format_of_one_name_is_a_dataset_of_its_own() -> None:
    names = [
        (each.dataset.urn.name, each.dataset.format)
        for each in found(("t/part-0.parquet", "old", 1), ("t/part-0.csv", "text", 1))
    ]
    assert names == [("t.csv", "csv"), ("t", "parquet")]


def test_columns_of_all_files_are_added_up() -> None:
    columns = orjson.dumps({"id": [5, 1, 40, 80]})
    ((dataset, _),) = found(
        ("t/part-0.parquet", "old", 1), ("t/part-1.parquet", "old", 1), columns=columns
    )
    assert dataset.statistics is not None
    (facts,) = dataset.statistics.columns
    assert (facts.path, facts.value_count, facts.null_count) == ("id", 10, 2)


def test_a_clock_that_went_wrong_fails_nothing() -> None:
    ((dataset, _),) = found(("t/part-0.parquet", "old", 1), mtime_us=2**62)
    assert dataset.statistics is not None
    assert dataset.statistics.last_modified is None
