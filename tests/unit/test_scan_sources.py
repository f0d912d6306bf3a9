"""Which files belong to which source."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from lumos.core.controllers.record_evidence import RecordEvidence
from lumos.core.controllers.record_scan import RecordScan
from lumos.core.controllers.scan_sources import (
    ScanSource,
    _refuse_overlaps,
    scan_sources,
    storages_of,
)
from lumos.core.errors import ConfigurationError, MissingExtraError, SourceError
from lumos.core.models import Urn
from lumos.core.run_report import RunRecorder
from lumos.core.settings import load_settings, settings_from_mapping
from lumos.core.storage.local import LocalSource
from lumos.core.storage.s3 import S3Source
from lumos.feature.ingestion.handlers.base_ingestion_handler import RecordSourceSettings
from lumos.feature.ingestion.handlers.factory import BUILT_IN, HandlerFactory
from lumos.feature.ingestion.handlers.storage_handler import FileSettings
from lumos.spark.record_pipeline import FoundProblem, FoundScope
from lumos.spark.stages.rows import UNLISTED_PART

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pydantic import JsonValue


def bucket(*prefixes: str) -> ScanSource:
    return ScanSource.of(
        S3Source(name="any", bucket="lake", anonymous=True, prefixes=prefixes or ("",))
    )


@pytest.mark.parametrize(
    "sources",
    [
        {"a": bucket("raw"), "b": bucket("raw/orders")},
        {"a": bucket(), "b": bucket("raw")},
        {"a": bucket("x", "raw"), "b": bucket("raw")},
        {"a": bucket("raw", "raw/x"), "b": bucket("raw/y")},
    ],
)
def test_sources_that_would_find_the_same_files_are_refused(
    sources: Mapping[str, ScanSource],
) -> None:
    with pytest.raises(ConfigurationError, match="overlap"):
        _refuse_overlaps(sources)


def test_different_prefixes_of_a_bucket_are_different_sources() -> None:
    _refuse_overlaps({"a": bucket("raw"), "b": bucket("raw-old", "curated")})


def test_a_source_holds_only_what_lies_below_its_prefixes() -> None:
    source = bucket("raw", "curated/eu")

    assert source.holds(Urn.of("s3", "lake", "raw", "orders"))
    assert source.holds(Urn.of("s3", "lake", "curated", "eu", "orders"))
    assert not source.holds(Urn.of("s3", "lake", "curated", "us", "orders"))
    assert not source.holds(Urn.of("s3", "other", "raw", "orders"))


def one_file(path: Path, *path_specs: str) -> ScanSource:
    path.touch()
    return ScanSource.of(LocalSource(name="any", path=str(path)), path_specs)


@pytest.mark.parametrize(
    "names",
    [
        ("orders_2024-01-01.csv", "orders_2024-01-02.csv"),
        ("orders.csv", "orders.parquet"),
        ("part-0.parquet", "part-1.parquet"),
    ],
)
def test_two_files_of_one_dataset_are_not_two_sources(
    names: tuple[str, str], tmp_path: Path
) -> None:
    first, second = (one_file(tmp_path / name) for name in names)

    with pytest.raises(ConfigurationError, match="a and b are files of one dataset") as caught:
        _refuse_overlaps({"a": first, "b": second})

    assert "file_patterns" in (caught.value.hint or "")


def test_files_of_two_datasets_may_be_two_sources(tmp_path: Path) -> None:
    orders = one_file(tmp_path / "orders.csv")
    (tmp_path / "other").mkdir()

    _refuse_overlaps({"a": orders, "b": one_file(tmp_path / "customers.csv")})
    _refuse_overlaps({"a": orders, "b": one_file(tmp_path / "other" / "orders.csv")})


def test_files_that_path_specs_tell_apart_may_be_two_sources(tmp_path: Path) -> None:
    first = one_file(tmp_path / "orders_001.csv", "{table}.csv")

    _refuse_overlaps({"a": first, "b": one_file(tmp_path / "orders_002.csv", "{table}.csv")})


@pytest.mark.parametrize("source_type", ["local", "parquet"])
def test_every_source_of_local_files_can_be_scanned(source_type: str, tmp_path: Path) -> None:
    source: dict[str, JsonValue] = {"type": source_type, "name": "lake", "path": str(tmp_path)}
    entries = settings_from_mapping({"sources": [source]}, {}).sources
    recorder = RunRecorder("ingest", started_at=datetime(2026, 1, 1, tzinfo=UTC))

    scanned = scan_sources(entries, recorder, skip="", parallel=1)

    assert scanned.units == [("lake", "")]


@pytest.mark.parametrize("source_type", sorted(BUILT_IN))
def test_every_source_takes_what_a_scan_of_files_or_records_asks_for(source_type: str) -> None:
    settings = HandlerFactory.settings_model(source_type)
    assert issubclass(settings, FileSettings | RecordSourceSettings)


@pytest.mark.parametrize("source_type", ["local", "parquet"])
def test_a_relative_path_begins_at_the_settings_file(
    source_type: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    (project / "lake").mkdir(parents=True)
    (elsewhere / "lake").mkdir(parents=True)
    settings = project / "lumos.yaml"
    settings.write_text(f"sources: [{{type: {source_type}, name: lake, path: lake}}]")

    monkeypatch.chdir(elsewhere)
    (given,) = load_settings(settings, {}).sources
    monkeypatch.chdir(project)
    (found,) = load_settings(None, {}).sources

    for entry in (given, found):
        (storage,) = storages_of(entry, skip="")
        assert storage.open().shown(b"") == str(project / "lake")


def test_a_path_of_the_home_folder_stays_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    settings = tmp_path / "lumos.yaml"
    settings.write_text("sources: [{type: local, name: lake, path: ~/lake}]")

    (storage,) = storages_of(load_settings(settings, {}).sources[0], skip="")

    assert storage.open().shown(b"") == str(tmp_path / "home" / "lake")


def test_a_part_that_could_not_be_listed_lets_nothing_of_its_source_be_removed() -> None:
    scopes = [FoundScope(name, "lumos://postgres/shop") for name in ("one", "two")]
    hole = FoundProblem(
        "one", 0, UNLISTED_PART, "schema x", None, "refused", "LUM-221", None, False
    )

    evidence = RecordEvidence.of(scopes, [hole])

    orders = Urn("lumos://postgres/shop/public/orders")
    assert not evidence.covers(orders, source="one")
    assert evidence.covers(orders, source="two")


def test_a_source_of_records_whose_package_is_missing_says_so_where_it_is_the_only_one() -> None:
    error = MissingExtraError("it needs the package psycopg", hint="install it")
    scan = RecordScan(["shop"], None, RecordEvidence(), [error])

    with pytest.raises(MissingExtraError, match="psycopg"):
        scan.require_any()


def test_all_sources_that_cannot_be_scanned_are_named_where_none_can(tmp_path: Path) -> None:
    sources: list[JsonValue] = [
        {"type": "local", "name": name, "path": str(tmp_path / name)} for name in ("one", "two")
    ]
    entries = settings_from_mapping({"sources": sources}, {}).sources
    recorder = RunRecorder("ingest", started_at=datetime(2026, 1, 1, tzinfo=UTC))

    with pytest.raises(SourceError, match="no source can be scanned") as caught:
        scan_sources(entries, recorder, skip="", parallel=1)

    for name in ("one", "two"):
        assert f"source '{name}': cannot scan {tmp_path / name}" in caught.value.message
    assert (caught.value.hint or "").count("check the path") == 1
