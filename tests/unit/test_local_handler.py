"""Local files: what is found, what is left out, and what is reported."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lumos.core.errors import SourceError, UnknownNameError
from lumos.core.models import LumosDataset, Urn
from lumos.core.run_report import RunRecorder, RunReport
from lumos.core.settings import InvalidSettingsError, SourceEntry
from lumos.core.settings.raw import RawSettings
from lumos.feature.ingestion import stored_files
from lumos.feature.ingestion.handlers.factory import HandlerFactory
from lumos.feature.ingestion.records import PreviousScan

START = datetime(2024, 1, 1, tzinfo=UTC)
TABLE = pa.table({"id": [1, 2, 3]})


def write(path: Path, table: pa.Table = TABLE) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as stream:  # a stream, because Arrow takes no undecodable names
        pq.write_table(table, stream)
    return path


def ingest(path: Path, **settings: Any) -> tuple[list[LumosDataset], RunReport]:
    config = {"type": "local", "name": "lake", "path": str(path), **settings}
    recorder = RunRecorder("ingest", started_at=START)
    datasets = list(HandlerFactory.get_handler(config).ingest(recorder))
    return datasets, recorder.finish(at=START)


def names(found: tuple[list[LumosDataset], RunReport]) -> list[str]:
    return [dataset.name for dataset in found[0]]


def test_a_file_is_a_dataset_with_location_schema_and_statistics(tmp_path: Path) -> None:
    path = write(tmp_path / "shop" / "orders.parquet")
    os.utime(path, (1_700_000_000, 1_700_000_000))
    ((dataset,), report) = ingest(tmp_path)
    assert dataset.urn == Urn.of("local", *path.parts[1:])
    assert (dataset.name, dataset.platform, dataset.format) == ("orders", "local", "parquet")
    assert dataset.location
    assert dataset.location.path == str(path)
    assert dataset.statistics
    assert dataset.statistics.to_json() == {
        "file_count": 1,
        "total_size_bytes": path.stat().st_size,
        "row_count": 3,
        "last_modified": "2023-11-14T22:13:20Z",
    }
    assert [field.signature() for field in dataset.schema.fields] == ["INT64"]
    assert report.complete
    assert report.counts.done == 1


def test_the_path_may_be_one_file_of_any_name(tmp_path: Path) -> None:
    assert names(ingest(write(tmp_path / "_export.snappy.parquet"))) == ["_export"]


def test_an_empty_folder_is_fine(tmp_path: Path) -> None:
    datasets, report = ingest(tmp_path)
    assert (datasets, report.complete, report.items) == ([], True, ())


def test_every_file_is_a_dataset_of_its_own_in_a_stable_order(tmp_path: Path) -> None:
    for name in ("b.parquet", "a.parquet", "z/part-1.parquet", "m/part-0.parquet", "m/a/x.parquet"):
        write(tmp_path / name)
    assert names(ingest(tmp_path)) == ["a", "b", "part-0", "x", "part-1"]


@pytest.mark.parametrize(
    "name",
    [
        "_SUCCESS",
        "._orders.parquet",
        ".orders.parquet.crc",
        "orders.parquet.crc",
        "_temporary/0/orders.parquet",
        ".hidden/orders.parquet",
        "_delta_log/checkpoint.parquet",
        "orders.parquet._COPYING_",
        "orders.parquet.tmp",
    ],
)
def test_what_writers_hide_is_passed_over_in_silence(tmp_path: Path, name: str) -> None:
    write(tmp_path / name)
    datasets, report = ingest(tmp_path, file_patterns=["*"])
    assert (datasets, report.items) == ([], ())


def test_a_partition_whose_name_begins_with_an_underscore_is_data(tmp_path: Path) -> None:
    write(tmp_path / "_day=1" / "a.parquet")
    assert names(ingest(tmp_path)) == ["a"]


def test_patterns_choose_and_exclude_leaves_out(tmp_path: Path) -> None:
    for name in ("a.parquet", "B.PARQUET", "old/c.parquet", "raw/old/d.parquet", "raw/e.parquet"):
        write(tmp_path / name)
    assert names(ingest(tmp_path)) == ["B", "a", "c", "e", "d"]
    assert names(ingest(tmp_path, exclude=["old"])) == ["B", "a", "e"]
    assert names(ingest(tmp_path, exclude=["raw/old/"])) == ["B", "a", "c", "e"]
    assert names(ingest(tmp_path, file_patterns=["raw/*.parquet"])) == ["e", "d"]
    assert names(ingest(tmp_path, file_patterns=["b.*"])) == ["B"]


def test_parquet_under_another_name_is_read_and_the_rest_is_named_as_skipped(
    tmp_path: Path,
) -> None:
    write(tmp_path / "export.bin")
    (tmp_path / "notes.txt").write_text("hello")
    datasets, report = ingest(tmp_path, file_patterns=["*"])
    assert [dataset.name for dataset in datasets] == ["export.bin"]
    ((item, reason),) = [(item.item, item.reason) for item in report.skipped]
    assert item == str(tmp_path / "notes.txt")
    assert reason is not None
    assert reason.startswith("it holds no table")


def test_broken_files_are_named_with_reasons_and_the_others_are_read(tmp_path: Path) -> None:
    good = write(tmp_path / "good.parquet").read_bytes()
    (tmp_path / "empty.parquet").write_bytes(b"")
    (tmp_path / "cut.parquet").write_bytes(good[:-20])
    (tmp_path / "renamed.parquet").write_text("id,name\n1,secret-value\n")
    datasets, report = ingest(tmp_path)
    assert [(each.name, each.format) for each in datasets] == [
        ("good", "parquet"),
        ("renamed", "csv"),  # the bytes win
    ]
    reasons = {Path(item.item).name: item.reason for item in report.failed}
    assert reasons == {
        "cut.parquet": "the file is cut off: it has no Parquet footer at its end",
        "empty.parquet": "the file is empty",
    }
    assert {item.code for item in report.failed} == {"LUM-221"}
    assert report.complete
    assert "secret-value" not in str(report.as_json())


@pytest.mark.parametrize("seed", range(20))
def test_damaged_footers_never_stop_a_scan(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    content = write(tmp_path / "good.parquet").read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    for number in range(50):
        damaged = bytearray(content)
        damaged[chance.randrange(footer, len(content) - 8)] = chance.randrange(256)
        (tmp_path / f"damaged{number}.parquet").write_bytes(damaged)
    _, report = ingest(tmp_path)
    assert report.counts.done + report.counts.failed == 51
    assert report.complete
    assert {item.code for item in report.failed} == {"LUM-221"}


def test_a_pipe_with_the_name_of_a_file_makes_nothing_wait(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.parquet")
    _, report = ingest(tmp_path)
    assert [item.reason for item in report.failed] == [
        "it is not a regular file: it is a named pipe"
    ]


def test_a_device_behind_a_link_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "zero.csv").symlink_to("/dev/zero")

    datasets, report = ingest(tmp_path)
    assert (datasets, report.failed) == ([], ())

    _, report = ingest(tmp_path, follow_symlinks="all")
    assert [item.reason for item in report.failed] == ["it is not a regular file: it is a device"]


def test_a_folder_with_the_name_of_a_file_is_a_folder(tmp_path: Path) -> None:
    write(tmp_path / "orders.parquet" / "part-0.parquet")
    assert names(ingest(tmp_path)) == ["part-0"]


def test_links_that_lead_nowhere_or_to_themselves_are_named(
    tmp_path: Path,
) -> None:
    (tmp_path / "gone.parquet").symlink_to(tmp_path / "nowhere")
    (tmp_path / "self.parquet").symlink_to(tmp_path / "self.parquet")
    datasets, report = ingest(tmp_path)
    assert datasets == []
    assert [(Path(item.item).name, item.reason) for item in report.failed] == [
        ("gone.parquet", "it is gone since it was listed"),
        ("self.parquet", "it cannot be read: Too many levels of symbolic links"),
    ]
    assert not report.complete


def test_links_that_lead_back_end_the_walk_and_add_nothing(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    for number in range(9):
        write(lake / f"d{number}" / "x.parquet")
        for other in range(9):
            (lake / f"d{number}" / f"to{other}").symlink_to(lake / f"d{other}")
    (lake / "up").symlink_to(tmp_path)
    datasets, report = ingest(lake)
    assert len(datasets) == 9
    assert all("/to" not in str(dataset.urn) for dataset in datasets)
    assert report.complete


def test_a_link_to_a_folder_elsewhere_is_followed_under_its_own_name_where_settings_allow_it(
    tmp_path: Path,
) -> None:
    write(tmp_path / "elsewhere" / "x.parquet")
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "linked").symlink_to(tmp_path / "elsewhere")
    (dataset,), _ = ingest(tmp_path / "lake", follow_symlinks="all")
    assert dataset.urn == Urn.of("local", *(tmp_path / "lake/linked/x.parquet").parts[1:])


def test_a_name_that_is_not_utf_8_is_kept_exactly_in_the_urn(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9.parquet")
    write(tmp_path / name)
    (tmp_path / os.fsdecode(b"br\xf6ken.parquet")).write_bytes(b"")
    (dataset,), report = ingest(tmp_path)
    assert dataset.urn.name == name
    assert dataset.name == "caf\\xe9"
    assert LumosDataset.from_json(dataset.to_json()) == dataset
    assert report.failed[0].item.endswith("br\\xf6ken.parquet")
    assert report.as_json()


def test_a_folder_that_cannot_be_listed_is_named_and_makes_the_run_incomplete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "a" / "x.parquet")
    write(tmp_path / "locked" / "y.parquet")
    write(tmp_path / "z" / "z.parquet")
    # The tests may run as root, whom no permission stops.
    monkeypatch.setattr(os, "scandir", refusing(os.scandir, "locked"))
    datasets, report = ingest(tmp_path)
    assert [dataset.name for dataset in datasets] == ["x", "z"]
    assert [(item.item, item.reason) for item in report.failed] == [
        (str(tmp_path / "locked"), "it cannot be listed: Permission denied")
    ]
    assert not report.complete


def refusing(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    def refuse_or_call(path: Any, *rest: Any, **options: Any) -> Any:
        if str(path).endswith(name):
            raise PermissionError(13, "Permission denied")
        return function(path, *rest, **options)

    return refuse_or_call


@pytest.mark.parametrize("path", ["nowhere", "file.txt/below", "nul\0byte"])
def test_a_path_that_is_not_there_is_a_source_error_that_names_it(
    tmp_path: Path, path: str
) -> None:
    (tmp_path / "file.txt").touch()
    with pytest.raises(SourceError) as raised:
        ingest(tmp_path / path)
    assert str(tmp_path / path) in raised.value.message
    assert "source 'lake'" in raised.value.message
    assert raised.value.hint


def test_a_folder_that_goes_away_after_planning_is_not_an_empty_one(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    handler = HandlerFactory.get_handler({"type": "local", "name": "lake", "path": str(lake)})
    units = list(handler.plan(PreviousScan()))
    lake.rmdir()
    with pytest.raises(SourceError, match="cannot scan"):
        list(handler.scan(units[0]))


def test_repeated_columns_are_a_warning_that_names_the_file(tmp_path: Path) -> None:
    doubled = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["id", "id"])
    path = write(tmp_path / "x.parquet", doubled)
    (dataset,), report = ingest(tmp_path)
    assert [field.name for field in dataset.schema.fields] == ["id", "id_2"]
    assert report.warnings == (f"{path}: column name 'id' occurs again; it is called 'id_2' here",)


@pytest.mark.parametrize("microseconds", [10**18, -(10**18), 10**300])
def test_a_time_beyond_the_calendar_is_no_time(microseconds: int) -> None:
    assert stored_files._moment(microseconds) is None


def test_a_relative_path_and_a_home_path_name_the_same_datasets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "x.parquet")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert ingest(Path()) == ingest(Path("~")) == ingest(tmp_path)


@pytest.mark.parametrize(
    "config",
    [
        {"type": "parquet", "path": "{path}"},
        {"source": {"type": "parquet", "path": "{path}"}},
        {"type": "parquet", "config": {"path": "{path}"}},
        {"source_type": "parquet", "source_path": "{path}"},
    ],
)
def test_every_spelling_of_a_source_gives_the_same_handler(
    tmp_path: Path, config: dict[str, Any]
) -> None:
    write(tmp_path / "x.parquet")
    handler = HandlerFactory.get_handler(filled(config, str(tmp_path)))
    assert handler.source_type == "parquet"
    recorder = RunRecorder("ingest", started_at=START)
    assert [dataset.name for dataset in handler.ingest(recorder)] == ["x"]


def filled(value: Any, path: str) -> Any:
    if isinstance(value, dict):
        return {key: filled(item, path) for key, item in value.items()}
    return value.format(path=path)


def test_an_entry_of_the_settings_gives_its_handler(tmp_path: Path) -> None:
    raw = RawSettings({"path": str(tmp_path)})
    entry = SourceEntry(type="local", name="the lake", settings=raw)
    assert HandlerFactory.get_handler(entry).name == "the lake"


def test_an_unknown_source_type_says_what_was_probably_meant() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'parquet'"):
        HandlerFactory.get_handler({"type": "parquett", "path": "x"})


def test_a_mistyped_setting_says_what_was_probably_meant(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettingsError, match="'file_pattern'; did you mean 'file_patterns'"):
        ingest(tmp_path, file_pattern=["*"])


def test_ingesting_holds_one_dataset_at_a_time(tmp_path: Path) -> None:
    for number in range(3):
        write(tmp_path / f"{number}.parquet")
    handler = HandlerFactory.get_handler({"type": "local", "name": "lake", "path": str(tmp_path)})
    recorder = RunRecorder("ingest", started_at=START)
    datasets: Iterator[LumosDataset] = handler.ingest(recorder)
    next(datasets)
    assert recorder.finish(at=START).counts.done == 0
    next(datasets)
    assert recorder.finish(at=START).counts.done == 1
    assert recorder.finish(at=START).counts.done == 1
