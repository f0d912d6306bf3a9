"""Every registered source handler against the shipped contract, and proof that it has teeth."""

from __future__ import annotations

import inspect
import json
import pickle
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typing_extensions import override

from azurite_server import ACCOUNT, AzuriteServer
from hdfs_cluster import HdfsCluster
from lumos.core.models import Urn
from lumos.feature.ingestion.handlers.factory import BUILT_IN, AnyHandler
from lumos.feature.ingestion.handlers.local import LocalHandler, LocalSettings
from lumos.feature.ingestion.records import PreviousScan, ScanRecord, ScanUnit, UnreadableItem
from lumos.testing.handler_contract import HandlerContract, SourceCase
from postgres_source import database_of, run_sql, url_with
from s3_server import Bucket


def small_lake(folder: Path) -> frozenset[str]:
    """Write three Parquet files and a broken one; return the URNs of the three."""
    paths = [folder / name for name in ("orders.parquet", "raw/events.parquet", "raw/ünï köd.pq")]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"id": [1, 2], "note": ["a", None]}), path)
    (folder / "raw" / "broken.parquet").write_bytes(b"PAR1 this is not the whole file")
    (folder / "_SUCCESS").write_bytes(b"")
    return frozenset(str(Urn.of("local", *path.parts[1:])) for path in paths)


def parquet_case(folder: Path, source_type: str) -> SourceCase:
    urns = small_lake(folder)
    return SourceCase(
        config={"type": source_type, "name": "lake", "path": str(folder)},
        datasets=urns,
        broken_item="raw/broken.parquet",
        folder=folder,
        missing={"path": str(folder / "nowhere")},
    )


class TestLocal(HandlerContract):
    source_type: ClassVar = "local"

    @pytest.fixture
    @override
    def source(self, tmp_path: Path) -> SourceCase:
        return parquet_case(tmp_path / "lake", "local")


class TestParquet(HandlerContract):
    source_type: ClassVar = "parquet"

    @pytest.fixture
    @override
    def source(self, tmp_path: Path) -> SourceCase:
        return parquet_case(tmp_path / "lake", "parquet")


def stored_case(
    source_type: str, root: tuple[str, ...], folder: Path, config: dict[str, Any]
) -> SourceCase:
    """Return the case of the small lake in a storage, from the folder that was stored there."""
    names = ("orders.parquet", "raw/events.parquet", "raw/ünï köd.pq")
    return SourceCase(
        config={"type": source_type, "name": "lake", **config},
        datasets=frozenset(str(Urn.of(source_type, *root, *name.split("/"))) for name in names),
        broken_item="raw/broken.parquet",
    )


class TestS3(HandlerContract):
    source_type: ClassVar = "s3"

    @pytest.fixture
    @override
    def source(self, tmp_path: Path, s3_bucket: Bucket) -> SourceCase:
        small_lake(tmp_path)
        s3_bucket.put_folder(tmp_path)
        case = stored_case("s3", (s3_bucket.name,), tmp_path, s3_bucket.settings())
        return replace(case, missing={"bucket": "no-such-bucket-of-lumos"})


class TestGcs(HandlerContract):
    """Google's XML interface has the requests of S3; no emulator in a wheel has it."""

    source_type: ClassVar = "gcs"

    @pytest.fixture
    @override
    def source(self, tmp_path: Path, s3_bucket: Bucket) -> SourceCase:
        small_lake(tmp_path)
        s3_bucket.put_folder(tmp_path, acl="public-read")
        config = {
            "bucket": s3_bucket.name,
            "endpoint_url": s3_bucket.server.url,
            "anonymous": True,
        }
        case = stored_case("gcs", (s3_bucket.name,), tmp_path, config)
        return replace(case, missing={"bucket": "no-such-bucket-of-lumos"})


class TestAzure(HandlerContract):
    source_type: ClassVar = "azure"

    @pytest.fixture
    @override
    def source(self, tmp_path: Path, azurite: AzuriteServer) -> SourceCase:
        small_lake(tmp_path)
        container = f"lake-{uuid.uuid4().hex}"
        azurite.create(container)
        azurite.put_folder(container, tmp_path)
        case = stored_case("azure", (ACCOUNT, container), tmp_path, azurite.settings(container))
        return replace(case, missing={"container": "no-such-container"})


class TestHdfs(HandlerContract):
    source_type: ClassVar = "hdfs"

    @pytest.fixture
    @override
    def source(self, tmp_path: Path, hdfs_cluster: HdfsCluster) -> SourceCase:
        small_lake(tmp_path)
        root = f"lake-{uuid.uuid4().hex}"
        hdfs_cluster.put_folder(root, tmp_path)
        config = {"namenode": hdfs_cluster.namenode, "prefixes": [f"/{root}/"]}
        case = stored_case("hdfs", ("127.0.0.1", root), tmp_path, config)
        return replace(case, missing={"prefixes": ["nowhere"]})


class TestDbt(HandlerContract):
    source_type: ClassVar = "dbt"

    @pytest.fixture
    @override
    def source(self, tmp_path: Path) -> SourceCase:
        folder = tmp_path / "target"
        folder.mkdir()
        manifest = {
            "metadata": {
                "dbt_schema_version": "https://schemas.getdbt.com/dbt/manifest/v12.json",
                "adapter_type": "postgres",
            },
            "nodes": {
                f"model.shop.{name}": {
                    "resource_type": "model",
                    "database": "shop",
                    "schema": "public",
                    "alias": name,
                    "columns": columns,
                }
                for name, columns in (
                    ("orders", {"id": {"name": "id", "data_type": "bigint"}}),
                    ("ünï köd", {"id": {"name": "id"}}),
                    ("broken", "this is not an object"),
                )
            },
        }
        (folder / "manifest.json").write_text(json.dumps(manifest))
        names = ("orders", "ünï köd")
        return SourceCase(
            config={
                "type": "dbt",
                "name": "shop",
                "manifest_path": str(folder / "manifest.json"),
            },
            datasets=frozenset(str(Urn.of("postgres", "shop", "public", name)) for name in names),
            broken_item="model.shop.broken",
            folder=folder,
            missing={"manifest_path": str(folder / "nowhere.json")},
        )


class TestPostgres(HandlerContract):
    source_type: ClassVar = "postgres"

    @pytest.fixture
    @override
    def source(self, postgres_database_url: str) -> SourceCase:
        deeper = (f"CREATE TYPE t{n} AS (a t{n - 1})" for n in range(1, 70))
        run_sql(
            postgres_database_url,
            "CREATE TABLE orders (id int PRIMARY KEY)",
            'CREATE SCHEMA "raw"; CREATE TABLE "raw"."ünï köd" (id int)',
            "CREATE VIEW recent AS SELECT id FROM orders",
            "CREATE TYPE t0 AS (a int)",
            *deeper,
            "CREATE TABLE broken (a t69)",
        )
        root = ("postgres", database_of(postgres_database_url))
        names = (("public", "orders"), ("raw", "ünï köd"), ("public", "recent"))
        elsewhere = url_with(postgres_database_url, database="no_such_database")
        return SourceCase(
            config={"type": "postgres", "name": "shop", "url": postgres_database_url},
            datasets=frozenset(str(Urn.of(*root, *name)) for name in names),
            broken_item="public.broken",
            missing={"url": elsewhere},
        )


def test_every_built_in_source_type_has_a_contract_case() -> None:
    classes = (
        TestLocal,
        TestParquet,
        TestS3,
        TestGcs,
        TestAzure,
        TestHdfs,
        TestDbt,
        TestPostgres,
    )
    cases = {case.source_type for case in classes}
    assert set(BUILT_IN) == cases, "add a subclass of HandlerContract for the new source type"


class _StopsAtTheBrokenFile(LocalHandler):
    """Raises where it should yield an unreadable item."""

    @override
    def scan(self, unit: ScanUnit) -> Iterator[ScanRecord]:
        for record in super().scan(unit):
            if isinstance(record, UnreadableItem):
                raise record.error
            yield record


class _LeaksAForeignError(LocalHandler):
    @override
    def scan(self, unit: ScanUnit) -> Iterator[ScanRecord]:
        yield from super().scan(unit)
        raise KeyError("hunter2")


class _HidesTheBrokenFile(LocalHandler):
    @override
    def scan(self, unit: ScanUnit) -> Iterator[ScanRecord]:
        return (record for record in super().scan(unit) if not isinstance(record, UnreadableItem))


class _WritesAMarker(LocalHandler):
    @override
    def scan(self, unit: ScanUnit) -> Iterator[ScanRecord]:
        Path(unit.target, "_lumos_was_here").touch()
        yield from super().scan(unit)


class _ReadsWhilePlanning(LocalHandler):
    @override
    def plan(self, previous: PreviousScan) -> Iterator[ScanUnit]:
        for path in sorted(self.settings.path.glob("*.parquet")):
            path.read_bytes()
        yield from super().plan(previous)


class _YieldsTwice(LocalHandler):
    @override
    def scan(self, unit: ScanUnit) -> Iterator[ScanRecord]:
        yield from super().scan(unit)
        yield from super().scan(unit)


class _UnitsThatCannotTravel(LocalHandler):
    @override
    def plan(self, previous: PreviousScan) -> Iterator[ScanUnit]:
        for unit in super().plan(previous):
            object.__setattr__(unit, "connection", lambda: None)
            yield unit


@pytest.mark.parametrize(
    ("kind", "broken_promise"),
    [
        (_StopsAtTheBrokenFile, "a_broken_item_is_named_with_its_reason_and_stops_nothing"),
        (_StopsAtTheBrokenFile, "a_broken_item_does_not_make_the_run_incomplete"),
        (_LeaksAForeignError, "a_broken_item_is_named_with_its_reason_and_stops_nothing"),
        (_HidesTheBrokenFile, "a_broken_item_is_named_with_its_reason_and_stops_nothing"),
        (_WritesAMarker, "it_writes_nothing_to_the_source"),
        (_ReadsWhilePlanning, "planning_reads_no_data"),
        (_YieldsTwice, "scanning_one_unit_never_yields_a_dataset_twice"),
        (_UnitsThatCannotTravel, "handler_and_units_travel_to_executors"),
    ],
)
def test_the_contract_finds_a_broken_handler(
    tmp_path: Path, kind: type[LocalHandler], broken_promise: str
) -> None:
    case = parquet_case(tmp_path / "lake", "local")
    settings = LocalSettings(type="local", name="lake", path=tmp_path / "lake")
    check_contract(broken_promise, LocalHandler(settings), case)
    with pytest.raises((AssertionError, AttributeError, pickle.PicklingError)):
        check_contract(broken_promise, kind(settings), case)


def check_contract(promise: str, handler: AnyHandler, case: SourceCase) -> None:
    """Hold a handler against one test of the contract."""
    check = getattr(TestLocal(), f"test_{promise}")
    given = {"handler": handler, "source": case}
    check(**{name: given[name] for name in inspect.signature(check).parameters})
