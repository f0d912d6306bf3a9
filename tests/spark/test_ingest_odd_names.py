"""Ingestion of paths, columns and values that are too long or hold odd characters."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typing_extensions import override

from command_line import Lumos, capturing
from lakes import write_lake, write_settings, write_table
from lumos.core.errors import UnstorableValueError
from lumos.core.models import Contributor, LumosDataset, Urn
from lumos.core.models.urn import LONGEST_URN
from lumos.core.store.catalog.catalog_tables import CatalogTables
from lumos.feature.ingestion.scan.file_functions import StorageFunctions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CJK = "表" * 80
"""240 bytes, of which a URN makes 720."""
DEEP = "x" * 250


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    return write_lake(tmp_path / "lake")


@pytest.fixture
def lumos(
    spark: SparkSession,
    tmp_path: Path,
    lake: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Lumos:
    write_settings(tmp_path, lake)
    monkeypatch.chdir(tmp_path)
    return capturing(capfd)


def write_deep(root: Path, *folders: bytes | str, text: str = "id,name\n1,a\n") -> None:
    """Write a CSV file below folders whose whole path may be longer than a system call takes."""
    here = os.open(root, os.O_RDONLY)
    *above, file = folders
    for folder in above:
        with suppress(FileExistsError):
            os.mkdir(folder, dir_fd=here)
        below = os.open(folder, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT, dir_fd=here)
    os.write(descriptor, text.encode())
    os.close(descriptor)
    os.close(here)


def write_odd_paths(lake: Path) -> None:
    """Write files under long paths, and under names that are odd in other ways."""
    write_deep(lake, CJK, CJK, CJK, "表" * 60, "one.csv")
    write_deep(lake, CJK, CJK, CJK, "表" * 60, "two.csv")
    write_deep(lake, *[DEEP] * 15, "deepest.csv")
    for number, name in enumerate(
        [
            b"new\nline",
            b"tab\tand\x01control\x7f",
            b"escape\x1b[31m",
            b"caf\xe9",
            b"\xff\xfe\xed\xa0\x80",
        ]
    ):
        write_deep(lake, name, f"table_{'abcde'[number]}.csv")
    write_deep(lake, b"%00%2F..", "percent.csv")
    write_deep(lake, "key=\x01value", "part-0.csv")


def ingested(lumos: Lumos) -> Any:
    result = lumos("ingest", "--json")
    assert result.exit_code == 0, result.stderr
    return result.json()


def exported(lumos: Lumos, file: str) -> dict[str, LumosDataset]:
    assert lumos("export", "--output", file).exit_code == 0
    document = json.loads(Path(file).read_text())
    return {each["urn"]: LumosDataset.from_json(each) for each in document["datasets"]}


def test_long_and_odd_paths_are_stored_beside_all_others(lumos: Lumos, lake: Path) -> None:
    write_odd_paths(lake)

    first = ingested(lumos)
    assert first["counts"]["failed"] == 0, first["items"]
    assert first["datasets"]["created"] == first["datasets"]["found"] == 3 + 3 + 5 + 1 + 1
    datasets = exported(lumos, "out.json")
    assert len(datasets) == first["datasets"]["found"]
    assert max(map(len, datasets)) <= LONGEST_URN
    long = [Urn(urn) for urn in datasets if Urn(urn).is_shortened]
    assert {datasets[urn].name for urn in long} == {"one", "two", "deepest"}
    for urn in long:
        whole = datasets[urn].location
        assert whole is not None
        assert whole.prefix is not None
        assert whole.prefix.endswith(f"{datasets[urn].name}.csv")
        assert CJK in whole.prefix or DEEP in whole.prefix


def test_a_second_run_over_odd_names_has_no_news(lumos: Lumos, lake: Path) -> None:
    write_odd_paths(lake)
    first = ingested(lumos)
    second = ingested(lumos)

    assert second["datasets"]["unchanged"] == first["datasets"]["found"]
    assert second["changes"] == []
    assert second["snapshot"] == first["snapshot"]
    (full,) = [lumos("ingest", "--full", "--json").json()]
    assert full["snapshot"] == first["snapshot"]


def test_a_long_path_that_is_gone_is_removed(lumos: Lumos, lake: Path) -> None:
    write_odd_paths(lake)
    ingested(lumos)
    (lake / CJK / CJK / CJK / ("表" * 60) / "two.csv").unlink()

    result = ingested(lumos)

    assert result["datasets"]["removed"] == 1
    names = [each.name for each in exported(lumos, "out.json").values()]
    assert "two" not in names
    assert "one" in names


def test_datasets_of_long_paths_can_be_exported_validated_and_imported(
    lumos: Lumos, lake: Path, tmp_path: Path
) -> None:
    write_odd_paths(lake)
    ingested(lumos)
    before = exported(lumos, "out.json")

    assert lumos("validate", "out.json").exit_code == 0
    other = tmp_path / "other"
    imported = lumos("--state-dir", str(other), "import", "out.json", "--json")

    assert imported.exit_code == 0, imported.stderr
    assert imported.json()["report"]["counts"]["failed"] == 0
    assert lumos("diff", "--source", "out.json", "--target", "latest").exit_code == 0
    assert lumos("--state-dir", str(other), "export", "--output", "again.json").exit_code == 0
    document = json.loads(Path("again.json").read_text())
    assert {each["urn"]: each["schema"] for each in document["datasets"]} == {
        urn: dataset.to_json()["schema"] for urn, dataset in before.items()
    }


def test_a_source_whose_root_is_too_long_itself_loses_only_what_is_gone(
    lumos: Lumos, lake: Path, tmp_path: Path
) -> None:
    write_deep(lake, *[DEEP] * 11, "one.csv")
    write_deep(lake, *[DEEP] * 11, "two.csv")
    root = lake.joinpath(*[DEEP] * 10)
    write_settings(tmp_path, root)

    first = ingested(lumos)
    (root / DEEP / "two.csv").unlink()
    second = ingested(lumos)

    assert first["datasets"]["created"] == 2
    assert second["datasets"] == {
        "found": 1, "created": 0, "updated": 0, "unchanged": 1, "removed": 1,
    }  # fmt: skip


def test_odd_columns_are_stored_or_named_and_cost_no_other_dataset(
    lumos: Lumos, lake: Path
) -> None:
    write_table(lake / "wide" / "part-0.parquet", {"c" * 1_000_000: [1], "nul\0in": [1]})
    (lake / "json").mkdir()
    (lake / "json" / "surrogate.json").write_text('{"a\\ud800b": 1, "nul\\u0000": 2}\n')
    (lake / "header.csv").write_bytes(b"id,caf\xe9,\x01\x02," + b"z" * 100_000 + b"\n1,2,3,4\n")
    write_table(lake / "parts" / ("k=" + "%0A" * 60) / "part-0.parquet", {"id": [1]})

    first = ingested(lumos)
    second = ingested(lumos)

    names = {each.name for each in exported(lumos, "out.json").values()}
    assert {"orders", "customers", "campaigns", "wide", "surrogate", "parts"} <= names
    assert {item["item"] for item in first["items"]} <= {str(lake / "header.csv")}
    assert second["items"] == first["items"]
    assert second["datasets"]["removed"] == 0
    assert second["snapshot"] == first["snapshot"]
    assert lumos("validate", "out.json").exit_code == 0


@dataclass(frozen=True)
class FailingFunctions(StorageFunctions):
    """The functions of the pipeline, except that the dataset `customers` cannot be built."""

    @override
    def _builders(self, pieces: Any) -> Any:
        def fail() -> None:
            raise KeyError("a value of the data")

        is_failing = json.loads(pieces.dataset) == ["customers"]
        builders = super()._builders(pieces)
        return [(kind, text, fail if is_failing else build) for kind, text, build in builders]


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the building of `customers` fail, also in the workers of Spark."""
    from pyspark import cloudpickle

    module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    monkeypatch.setattr("lumos.feature.ingestion.scan.files.StorageFunctions", FailingFunctions)
    yield
    cloudpickle.unregister_pickle_by_value(module)  # type: ignore[no-untyped-call]


def test_a_dataset_that_cannot_be_built_is_named_and_keeps_its_earlier_state(
    lumos: Lumos, lake: Path, request: pytest.FixtureRequest
) -> None:
    ingested(lumos)
    before = exported(lumos, "before.json")
    write_table(lake / "customers" / "part-1.parquet", {"id": [1], "country": ["NL"], "new": [1]})
    write_table(lake / "suppliers" / "part-0.parquet", {"id": [1]})
    request.getfixturevalue("failing")

    runs = [ingested(lumos), ingested(lumos)]  # also where no file is new

    for run in runs:
        (failure,) = [item for item in run["items"] if item["status"] == "failed"]
        assert failure["item"] == str(lake / "customers")
        assert failure["reason"] == "Lumos cannot describe it (KeyError)"
        assert run["datasets"]["removed"] == 0
        assert run["counts"]["done"] == run["datasets"]["found"] == 3
        assert run["changes"] == [] or {c["dataset"] for c in run["changes"]} == {
            f"lumos://local/{lake.name}/suppliers"
        }
    after = exported(lumos, "after.json")
    urn = f"lumos://local/{lake.name}/customers"
    assert after[urn] == before[urn]
    assert f"lumos://local/{lake.name}/suppliers" in after
    assert [
        each["version"] for each in lumos("history", urn, "--json").json()["schema_history"]
    ] == ["1.0.0"]


def test_a_dataset_that_the_catalog_refuses_is_named_and_tried_again(
    lumos: Lumos, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = CatalogTables.put_found

    def refusing(
        self: CatalogTables,
        dataset: LumosDataset,
        by: Contributor,
        *,
        hash: str,
        at: datetime,
    ) -> bool:
        written = put(self, dataset, by, hash=hash, at=at)
        if dataset.name == "customers":
            raise UnstorableValueError("the database cannot hold a value")
        return written

    with monkeypatch.context() as patch:
        patch.setattr(CatalogTables, "put_found", refusing)
        refused = ingested(lumos)
    again = ingested(lumos)

    (failure,) = [item for item in refused["items"] if item["status"] == "failed"]
    assert failure["item"] == f"lumos://local/{lake.name}/customers"
    assert refused["datasets"]["created"] == 2
    assert refused["datasets"]["unchanged"] == 0
    assert again["counts"]["failed"] == 0
    assert again["datasets"]["created"] == 1
