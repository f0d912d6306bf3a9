"""Which files belong to which source."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from lumos.core.errors import ConfigurationError, MissingExtraError, SourceError
from lumos.core.models import Urn
from lumos.core.run_report import RunRecorder
from lumos.core.runtime.settings import load_settings, settings_from_mapping
from lumos.core.storage.azure import AzureSource
from lumos.core.storage.gcs import GcsSource
from lumos.core.storage.hdfs import HdfsSource
from lumos.core.storage.local import LocalSource
from lumos.core.storage.s3 import S3Source
from lumos.feature.ingestion.handlers.base_ingestion_handler import RecordSourceSettings
from lumos.feature.ingestion.handlers.factory import BUILT_IN, HandlerFactory
from lumos.feature.ingestion.handlers.storage_handler import FileSettings
from lumos.feature.ingestion.scan.record_evidence import RecordEvidence
from lumos.feature.ingestion.scan.records import RecordScan
from lumos.feature.ingestion.scan.sources import (
    ScanSource,
    _refuse_overlaps,
    files_of,
    scan_sources,
)
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


def server(port: int, *prefixes: str, **more: str) -> ScanSource:
    storage = S3Source(
        name="any",
        bucket=more.get("bucket", "lake"),
        anonymous=True,
        endpoint_url=f"http://minio:{port}",
        prefixes=prefixes,
    )
    return ScanSource.of(storage, instance=more.get("instance"))


def test_one_bucket_name_on_two_servers_needs_an_instance() -> None:
    with pytest.raises(ConfigurationError, match="different servers") as caught:
        _refuse_overlaps({"eu": server(1), "us": server(2, "raw")})

    assert "minio:1 and minio:2" in caught.value.message
    assert "lumos://s3/lake/raw" in caught.value.message
    assert "instance: us" in (caught.value.hint or "")
    _refuse_overlaps({"eu": server(1), "us": server(2, instance="us")})
    _refuse_overlaps({"eu": server(1, instance="eu"), "us": server(2, instance="us")})
    _refuse_overlaps({"eu": server(1, "raw"), "us": server(2, "curated")})


def test_an_instance_does_not_let_two_sources_find_the_same_files() -> None:
    with pytest.raises(ConfigurationError, match="overlap"):
        _refuse_overlaps({"a": server(1, "raw"), "b": server(1, instance="b")})


def test_an_instance_that_is_the_name_of_another_bucket_is_refused() -> None:
    other = server(1, "lake", bucket="eu")

    with pytest.raises(ConfigurationError, match="both have datasets below lumos://s3/eu/lake"):
        _refuse_overlaps({"a": other, "b": server(1, instance="eu")})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://minio:9000", "HTTP://MINIO:9000/"),
        ("https://minio", "https://minio:443"),
        ("http://user:secret@minio", "http://minio:80"),
        ("https://s3.eu-central-1.amazonaws.com", None),
        ("https://s3.eu-central-1.amazonaws.com", "https://s3.amazonaws.com"),
    ],
)
def test_addresses_of_one_server_are_told_to_be_one(one: str, other: str | None) -> None:
    first, second = (S3Source(name="any", bucket="b", endpoint_url=url) for url in (one, other))

    assert first.server == second.server
    assert "secret" not in first.server


def test_every_storage_of_a_server_says_which_one_it_is() -> None:
    azure = AzureSource(name="any", account="a", container="c")
    local = LocalSource(name="any", path="/lake")

    assert HdfsSource(name="any", namenode="http://nn:9870").server == "nn:9870"
    assert GcsSource(name="any", bucket="b").server == "Google Cloud"
    assert azure.server == "Azure"
    assert azure.model_copy(update={"endpoint_url": "http://127.0.0.1:10000/a"}).server == (
        "127.0.0.1:10000/a"
    )
    assert local.server == ""


def test_an_instance_is_the_first_part_of_every_urn_and_of_no_location(tmp_path: Path) -> None:
    source: dict[str, JsonValue] = {"type": "local", "path": str(tmp_path), "instance": "host-1"}
    (files,) = files_of(settings_from_mapping({"sources": [source]}, {}).sources[0], skip="")

    assert files.root.parts == ("host-1", tmp_path.name)
    assert files.root.path == str(tmp_path)
    assert files.holds(Urn.of("local", "host-1", tmp_path.name, "orders"))
    assert not files.holds(Urn.of("local", tmp_path.name, "orders"))


@pytest.mark.parametrize(("before", "after"), [(None, "eu"), ("eu", None), ("eu", "us")])
def test_a_source_knows_the_names_that_its_datasets_had_under_another_instance(
    before: str | None, after: str | None
) -> None:
    def named(instance: str | None, *parts: str) -> Urn:
        return Urn.of("s3", *([instance] if instance else []), "lake", *parts)

    storage = S3Source(name="any", bucket="lake", anonymous=True, prefixes=("raw",))
    source = ScanSource.of(storage, instance=after)

    assert source.renames(named(before, "raw", "orders"), ("raw", "orders"))
    assert not source.renames(named(after, "raw", "orders"), ("raw", "orders"))
    assert not source.renames(named(before, "other"), ("other",)), "it is not looked at any more"
    assert not source.renames(Urn.of("s3", "pond", "raw", "orders"), ("raw", "orders"))


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
        (files,) = files_of(entry, skip="")
        assert files.shown == str(project / "lake")


def test_a_path_of_the_home_folder_stays_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    settings = tmp_path / "lumos.yaml"
    settings.write_text("sources: [{type: local, name: lake, path: ~/lake}]")

    (files,) = files_of(load_settings(settings, {}).sources[0], skip="")

    assert files.shown == str(tmp_path / "home" / "lake")


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
