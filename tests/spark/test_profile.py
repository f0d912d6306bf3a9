"""Profiling as a user runs it, on the shared session."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyarrow import orc

import lumos.feature.profiling.profiler as profiler_module
from command_line import JANUARY, ORDERS, Lumos, capturing, check_schema
from lakes import write_settings
from lumos.core.models import Urn
from lumos.core.models.profile import ColumnProfile, DatasetProfile
from lumos.entry.sdk import Lumos as Project
from lumos.feature.profiling.profiler import ProfileUnavailableError
from lumos.spark.failures import SparkRunError
from profile_data import SECRET, damage_data, figures, odd_rows, rows_of, write_parquet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lumos.entry.notebook import Profiles
    from s3_server import Bucket

MANY = 20_000
LATE_ROWS = 60_000


@dataclass
class Profiled:
    """A project whose whole lake was profiled."""

    folder: Path
    project: Project
    result: Profiles
    before: Any
    """What was known of `orders` before."""

    def urn(self, name: str) -> Urn:
        return Urn(f"lumos://local/lake/{name}")

    def of(self, name: str) -> DatasetProfile:
        (found,) = [each for each in self.result.profiles if each.dataset == self.urn(name)]
        return found.profile

    def column(self, name: str, path: str) -> ColumnProfile:
        (found,) = [each for each in self.of(name).columns if each.path == path]
        return found


def every_format(lake: Path) -> None:
    """Write the same rows in all formats, and what else there is to profile."""
    for year in (2023, 2024):
        table = rows_of(300, first=300 * (year - 2023))
        write_parquet(lake / "whole" / f"year={year}" / "part-0.parquet", table, row_group_size=64)
    table = rows_of(600)
    (lake / "orcs").mkdir(parents=True)
    orc.write_table(table.drop_columns(["local"]), lake / "orcs" / "part-0.orc")
    write_parquet(lake / "odd" / "part-0.parquet", odd_rows(40))
    write_parquet(lake / "empty" / "part-0.parquet", rows_of(0))
    numbers = pa.array(range(MANY))
    words = pa.array([f"{SECRET}{n % 5000}" for n in range(MANY)])
    write_parquet(lake / "many" / "part-0.parquet", pa.table({"id": numbers, "word": words}))
    for part in range(3):
        table = rows_of(900, first=900 * part).select(["id", "name"])
        write_parquet(lake / "broken" / f"part-{part}.parquet", table, compression="zstd")
    rows = [f'{n},"{SECRET}",{n / 4},2024-01-01 00:{n % 60:02}:00Z' for n in range(200)]
    (lake / "sheet.csv").write_text("\n".join(["id,name,ratio,at", *rows]) + "\n", "utf-8")
    records = [
        {"id": n, "who": {"name": SECRET, "age": n % 80}, "at": f"2024-01-01T00:{n % 60:02}:00Z"}
        for n in range(200)
    ]
    lines = "".join(f"{json.dumps(record)}\n" for record in records)
    (lake / "events.jsonl").write_text(lines, "utf-8")
    write_avro(lake / "rows.avro")
    # The value that does not fit lies beyond the samples of head, middle and end.
    numbers = [f"{n},{n}\n" for n in range(LATE_ROWS)]
    numbers.insert(LATE_ROWS // 4, f"1,{SECRET}\n")
    (lake / "late.csv").write_text(f"id,n\n{''.join(numbers)}", "utf-8")
    write_deltalake(lake / "delta", pa.table({"id": [1, 2]}))
    for name in ("orders", "gone"):
        write_parquet(lake / name / "part-0.parquet", rows_of(50))


def write_avro(path: Path) -> None:
    fields = [{"name": "id", "type": "long"}, {"name": "word", "type": ["null", "string"]}]
    records = [{"id": n, "word": SECRET if n % 2 else None} for n in range(100)]
    with path.open("wb") as stream:
        fastavro.writer(stream, {"type": "record", "name": "Row", "fields": fields}, records)


@pytest.fixture(scope="module")
def profiled(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Profiled]:
    folder = tmp_path_factory.mktemp("profiled")
    lake = folder / "lake"
    every_format(lake)
    write_settings(folder, lake)
    with Project(folder / "lumos.yaml", state_dir=folder / ".lumos") as project:
        project.ingest()
        before = project.dataset("orders").to_json()
        damage_data(lake / "broken" / "part-1.parquet")
        (lake / "gone" / "part-0.parquet").unlink()
        yield Profiled(folder, project, project.profile(source="lake"), before)


@pytest.fixture
def lumos(
    profiled: Profiled, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Lumos:
    """Runs commands in the folder of the project."""
    monkeypatch.chdir(profiled.folder)
    return capturing(capfd)


def assert_like(column: ColumnProfile, expected: dict[str, Any]) -> None:
    """Hold the figures of a column against those of another engine."""
    values = expected["values"] + column.not_finite_count
    assert column.value_count == values, column.path
    assert column.null_count == expected["rows"] - values
    assert column.null_share == pytest.approx(column.null_count / expected["rows"])
    if column.distinct_count is not None and column.type != "DOUBLE":
        assert column.distinct_count == pytest.approx(expected["distinct"], rel=0.1, abs=1)
    if column.length is not None:
        assert column.length.min == expected["shortest"]
        assert column.length.max == expected["longest"]
        assert column.length.mean == pytest.approx(expected["length"])
    if column.mean is not None:
        assert float(str(column.min)) == pytest.approx(float(expected["min"]))
        assert float(str(column.max)) == pytest.approx(float(expected["max"]))
        assert column.mean == pytest.approx(float(expected["mean"]))
        assert column.stddev == pytest.approx(float(expected["stddev"]))
        told = [float(str(quantile.value)) for quantile in column.quantiles]
        assert told == pytest.approx(list(map(float, expected["quantiles"])), rel=0.02, abs=0.2)
    elif column.min is not None:
        assert str(column.min)[:10] == str(expected["min"])[:10]
        assert str(column.max)[:10] == str(expected["max"])[:10]


@pytest.mark.parametrize(("dataset", "lacks"), [("whole", set()), ("orcs", {"local"})])
def test_figures_are_those_of_another_engine(
    profiled: Profiled, dataset: str, lacks: set[str]
) -> None:
    table = rows_of(600)
    names = {*table.column_names, "address.city", "address.zip", "address.geo.lat"}
    profile = profiled.of(dataset)

    assert profile.row_count == 600
    assert profile.sample is None
    counted = {"flag", "address", "address.geo"}
    for column in profile.columns:
        if column.path in names - lacks - counted:
            assert_like(column, figures(table, column.path))
    told = {column.path for column in profile.columns}
    assert told >= names - lacks


def test_dates_times_booleans_and_structs_are_told_exactly(profiled: Profiled) -> None:
    table = rows_of(600)
    flags = table["flag"].to_pylist()
    people = table["address"].to_pylist()

    def column(path: str) -> ColumnProfile:
        return profiled.column("whole", path)

    assert column("at").min == "2024-02-29T12:30:16.123456Z"
    assert column("at").max == "2024-02-29T12:40:14.123456Z"
    assert column("local").min == "2024-02-29T12:30:15.123456"
    assert (column("day").min, column("day").max) == ("2024-01-01", "2025-02-03")
    assert column("flag").true_count == flags.count(True)
    assert column("flag").null_count == flags.count(None)
    assert column("address").value_count == 600 - people.count(None)
    assert column("ratio").not_finite_count == 36
    assert column("nothing").null_share == 1
    assert column("nothing").min is None
    assert column("price").min == "0.00"
    assert (column("year").min, column("year").max) == (2023, 2024)
    assert column("name").min is None


def test_types_that_spark_cannot_read_are_profiled_too(profiled: Profiled) -> None:
    def column(path: str) -> ColumnProfile:
        return profiled.column("odd", path)

    assert column("huge").max == str(2**64 - 1)
    assert column("nanos").max == "1970-01-01T00:00:39.000000"
    assert (column("clock").min, column("clock").max) == ("00:00:00.000000", "23:23:00.000000")
    assert column("word").length is not None
    assert column("sizes").null_count == 8
    assert column("Word").max == 19.5
    assert column("void").value_count == 0


def test_text_formats_count_what_does_not_fit(profiled: Profiled) -> None:
    assert profiled.column("sheet", "id").quantiles[2].value == 99
    assert profiled.column("sheet", "ratio").mean == pytest.approx(99.5 / 4)
    assert profiled.column("sheet", "at").max == "2024-01-01T00:59:00.000000Z"
    assert profiled.column("events", "who.age").max == 79
    assert profiled.column("events", "who.name").length is not None
    assert profiled.column("rows", "word").null_share == 0.5
    assert profiled.column("rows", "id").max == 99


def test_a_value_of_another_type_is_counted_and_spoils_nothing(profiled: Profiled) -> None:
    column = profiled.column("late", "n")

    assert (column.misfit_count, column.null_count, column.max) == (1, 0, LATE_ROWS - 1)
    assert column.mean == pytest.approx((LATE_ROWS - 1) / 2)


def test_an_empty_dataset_has_a_profile_of_no_rows(profiled: Profiled) -> None:
    profile = profiled.of("empty")

    assert (profile.row_count, profile.file_count) == (0, 1)
    assert {column.null_share for column in profile.columns} == {None}


def test_different_values_are_counted_within_the_error(profiled: Profiled) -> None:
    for path, exact in (("id", MANY), ("word", 5000)):
        distinct = profiled.column("many", path).distinct_count or 0
        assert math.isclose(distinct, exact, rel_tol=4 * 0.02), path


def test_a_damaged_file_is_named_and_none_of_its_rows_count(profiled: Profiled) -> None:
    profile = profiled.of("broken")

    assert (profile.row_count, profile.file_count, profile.failed_file_count) == (1800, 2, 1)
    assert profiled.column("broken", "id").max == 2699
    (item,) = [item for item in profiled.result.failed if "broken" in item.item]
    assert item.item == str(profiled.folder / "lake" / "broken" / "part-1.parquet")
    assert item.reason is not None
    assert item.reason.startswith("its data cannot be read")


def test_a_dataset_that_fails_does_not_stop_the_others(profiled: Profiled, lumos: Lumos) -> None:
    (failed,) = [item for item in profiled.result.failed if item.item == profiled.urn("gone")]
    assert failed.code == ProfileUnavailableError.code
    (table,) = [item for item in profiled.result.failed if item.item == profiled.urn("delta")]
    assert table.reason is not None
    assert "delta cannot be profiled yet" in table.reason
    assert len(profiled.result.profiles) == 11
    alone = lumos("profile", "gone")
    assert alone.exit_code == 3
    assert "none of its files can be read" in alone.error_line
    assert lumos("profile", "broken", "--strict").exit_code == 1


def test_no_text_of_the_data_is_anywhere(profiled: Profiled) -> None:
    told = json.dumps(profiled.result.as_json(), ensure_ascii=False)
    profiled.project.export(profiled.folder / "out.json")
    shown = repr(profiled.project.dataset(profiled.urn("whole")))
    shown += str(profiled.result._repr_html_())
    kept = [path for path in (profiled.folder / ".lumos").rglob("*") if path.is_file()]

    assert SECRET[:6] not in told + shown
    assert kept
    secrets = (SECRET[:6].encode(), SECRET[:6].encode().hex().encode())
    for path in [*kept, profiled.folder / "out.json"]:
        content = path.read_bytes()
        assert not [path for secret in secrets if secret in content]


def test_both_ways_of_reading_give_the_same(
    profiled: Profiled, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise SparkRunError("no")

    def columns() -> object:
        return profiled.project.profile(profiled.urn("orders")).profiles[0].profile.columns

    with monkeypatch.context() as patch:
        patch.setattr(profiler_module, "flat_rows", refuse)
        by_spark = columns()
    monkeypatch.setattr(profiler_module, "native_rows", refuse)

    assert columns() == by_spark


def test_people_get_a_table(lumos: Lumos) -> None:
    lines = lumos("profile", "orders").stdout.splitlines()

    assert lines[1].startswith("50 rows of 1 file, ")
    assert lines[2].split() == ["column", "type", "nulls", "distinct", "values"]
    (small,) = [line for line in lines if line.strip().startswith("small ")]
    assert small.split()[:6] == ["small", "INT8", "20%", "7", "0", "to"]


def test_values_are_left_out_on_demand(lumos: Lumos) -> None:
    result = lumos("profile", "orders", "--no-values", "--json").json()

    (found,) = result["profiles"]
    columns = found["profile"]["columns"]
    assert {each["path"] for each in columns if each["min"] is not None} == set()
    assert {each["path"] for each in columns if each["quantiles"] or each["mean"]} == set()
    assert {each["path"] for each in columns if each["length"]} >= {"name", "blob", "tags"}


def test_a_sample_is_of_the_size_asked_for_and_the_same_each_time(profiled: Profiled) -> None:
    def sampled(**options: Any) -> DatasetProfile:
        (found,) = profiled.project.profile(profiled.urn("many"), **options).profiles
        return found.profile

    tenth, again = sampled(sample=0.1), sampled(sample=0.1)
    few = sampled(rows=500, seed=3)

    assert tenth.row_count == pytest.approx(MANY / 10, rel=0.15)
    assert tenth.columns == again.columns
    assert (tenth.sample, tenth.seed) == (0.1, 0)
    assert few.row_count == pytest.approx(500, rel=0.25)
    assert few.seed == 3


def test_a_profile_is_kept_and_is_no_part_of_the_contract(profiled: Profiled, lumos: Lumos) -> None:
    result = lumos("profile", "orders", "--json")
    check_schema(result.json(), "profile")
    after = lumos("show", "orders", "--json").json()

    assert after["profile"]["row_count"] == 50
    others = {name: after[name] for name in after.keys() - {"profile", "contributions"}}
    assert others == profiled.before
    table = rows_of(5, first=50)
    write_parquet(profiled.folder / "lake" / "orders" / "part-1.parquet", table)
    changed = lumos("ingest", "--json").json()
    assert profiled.urn("orders") not in [version["dataset"] for version in changed["versions"]]
    later = lumos("show", "orders", "--json").json()
    assert later["profile"] == after["profile"]
    assert later["statistics"]["row_count"] == 55
    assert len(lumos("history", "orders", "--json").json()["schema_history"]) == 1
    assert "profile (50 rows of 1 file" in lumos("show", "orders").stdout


def test_objects_of_a_bucket_are_profiled(
    spark: SparkSession, s3_bucket: Bucket, tmp_path: Path
) -> None:
    table = rows_of(30)
    write_parquet(tmp_path / "part-0.parquet", table)
    s3_bucket.put("raw/orders/part-0.parquet", (tmp_path / "part-0.parquet").read_bytes())
    s3_bucket.put("raw/rates.csv", b"id,rate\n1,0.5\n2,\n")
    source = {"type": "s3", "name": "far", **s3_bucket.settings()}
    (tmp_path / "lumos.yaml").write_text(json.dumps({"sources": [source]}))
    with Project(tmp_path / "lumos.yaml", state_dir=tmp_path / ".lumos") as project:
        project.ingest()
        result = project.profile(source="far")

    profiles = {each.dataset.parts[-1]: each.profile for each in result.profiles}
    assert result.failed == ()
    assert {name: profile.row_count for name, profile in profiles.items()} == {
        "orders": 30, "rates": 2,
    }  # fmt: skip
    (id_column, *_) = profiles["orders"].columns
    assert_like(id_column, figures(table, "id"))
    assert profiles["rates"].columns[1].null_share == 0.5


def test_what_cannot_be_profiled_is_said(profiled: Profiled, lumos: Lumos) -> None:
    unknown = lumos("profile", profiled.urn("nothing"))
    assert unknown.exit_code == 3
    assert "has no dataset" in unknown.error_line
    for wrong in (
        ("orders", "--sample", "0"),
        ("orders", "--sample", "1.5"),
        ("orders", "--sample", "0.5", "--rows", "3"),
        ("--source", "lkae"),
        (),
    ):
        assert lumos("profile", *wrong).exit_code == 2, wrong
    assert lumos("import", JANUARY).exit_code == 0
    imported = lumos("profile", ORDERS)
    assert imported.exit_code == 3
    assert "no files of it are known" in imported.error_line
    os.rename(profiled.folder / ".lumos" / "file_index", profiled.folder / "index")
    assert "lumos ingest" in lumos("profile", profiled.urn("orders")).error_line
    (profiled.folder / "lumos.yaml").write_text("sources: []\n")
    assert "no source of the settings" in lumos("profile", profiled.urn("orders")).error_line
