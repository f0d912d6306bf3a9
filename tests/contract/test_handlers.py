"""Every registered source handler against the shipped contract, and proof that it has teeth."""

from __future__ import annotations

import inspect
import json
import pickle
import uuid
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typing_extensions import override

from azurite_server import ACCOUNT, AzuriteServer
from hdfs_cluster import HdfsCluster
from lumos.core.models import Urn
from lumos.feature.ingestion.handlers.dbt.handler import DbtHandler, DbtSettings
from lumos.feature.ingestion.handlers.factory import BUILT_IN, HandlerFactory
from lumos.testing.handler_contract import (
    ContractProject,
    HandlerContract,
    SourceCase,
    SourceContract,
)
from mutant_handlers import INGESTION_MUTANTS, PLANNING_MUTANTS
from postgres_source import database_of, run_sql, url_with
from s3_server import Bucket

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


INGEST = "lumos_ingest_stores_what_is_there_and_reports_what_is_gone"
FILES = ("orders.parquet", "raw/events.parquet", "raw/ünï köd.pq")
NAMES = [file.rpartition(".")[0].split("/") for file in FILES]


class OnSharedSpark:
    """Lets the contract use the Spark of the test run."""

    @pytest.fixture
    def contract_spark(self, spark: SparkSession) -> None:
        """The session itself is shared; see `lumos.spark.session`."""


def small_lake(folder: Path) -> frozenset[str]:
    """Write three Parquet files and a broken one; return the URNs of the three."""
    paths = [folder / name for name in FILES]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"id": [1, 2], "note": ["a", None]}), path)
    (folder / "raw" / "broken.parquet").write_bytes(b"PAR1 this is not the whole file")
    (folder / "_SUCCESS").write_bytes(b"")
    return frozenset(str(Urn.of("local", folder.name, *name)) for name in NAMES)


def parquet_case(folder: Path, source_type: str) -> SourceCase:
    urns = small_lake(folder)

    def remove() -> str:
        (folder / FILES[0]).unlink()
        return str(Urn.of("local", folder.name, *NAMES[0]))

    return SourceCase(
        config={"type": source_type, "name": "lake", "path": str(folder)},
        datasets=urns,
        broken_item="raw/broken.parquet",
        folder=folder,
        missing={"path": str(folder / "nowhere")},
        remove=remove,
    )


class TestLocal(OnSharedSpark, SourceContract):
    source_type: ClassVar = "local"

    @pytest.fixture
    @override
    def source(self, tmp_path: Path) -> SourceCase:
        return parquet_case(tmp_path / "lake", "local")


class TestParquet(OnSharedSpark, SourceContract):
    source_type: ClassVar = "parquet"

    @pytest.fixture
    @override
    def source(self, tmp_path: Path) -> SourceCase:
        return parquet_case(tmp_path / "lake", "parquet")


def stored_case(source_type: str, root: tuple[str, ...], config: Mapping[str, Any]) -> SourceCase:
    """Return the case of the small lake in a storage."""
    return SourceCase(
        config={"type": source_type, "name": "lake", **config},
        datasets=frozenset(str(Urn.of(source_type, *root, *name)) for name in NAMES),
        broken_item="raw/broken.parquet",
    )


class TestS3(OnSharedSpark, SourceContract):
    source_type: ClassVar = "s3"

    @pytest.fixture
    @override
    def source(self, tmp_path: Path, s3_bucket: Bucket) -> SourceCase:
        small_lake(tmp_path)
        s3_bucket.put_folder(tmp_path)

        def remove() -> str:
            s3_bucket.server.client().delete_object(Bucket=s3_bucket.name, Key=FILES[0])
            return str(Urn.of("s3", s3_bucket.name, *NAMES[0]))

        case = stored_case("s3", (s3_bucket.name,), s3_bucket.settings())
        return replace(case, missing={"bucket": "no-such-bucket-of-lumos"}, remove=remove)


class TestGcs(OnSharedSpark, SourceContract):
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
        case = stored_case("gcs", (s3_bucket.name,), config)
        return replace(case, missing={"bucket": "no-such-bucket-of-lumos"})


class TestAzure(OnSharedSpark, SourceContract):
    source_type: ClassVar = "azure"

    @pytest.fixture
    @override
    def source(self, tmp_path: Path, azurite: AzuriteServer) -> SourceCase:
        small_lake(tmp_path)
        container = f"lake-{uuid.uuid4().hex}"
        azurite.create(container)
        azurite.put_folder(container, tmp_path)
        case = stored_case("azure", (ACCOUNT, container), azurite.settings(container))
        return replace(case, missing={"container": "no-such-container"})


class TestHdfs(OnSharedSpark, SourceContract):
    source_type: ClassVar = "hdfs"

    @pytest.fixture
    @override
    def source(self, tmp_path: Path, hdfs_cluster: HdfsCluster) -> SourceCase:
        small_lake(tmp_path)
        root = f"lake-{uuid.uuid4().hex}"
        hdfs_cluster.put_folder(root, tmp_path)
        config = {"namenode": hdfs_cluster.namenode, "prefixes": [f"/{root}/"]}
        case = stored_case("hdfs", ("127.0.0.1", root), config)
        return replace(case, missing={"prefixes": ["nowhere"]})


def dbt_manifest(*names: str) -> str:
    """Return a manifest with these models, and one that is broken."""
    columns: dict[str, Any] = {"id": {"name": "id", "data_type": "bigint"}}
    models = {**dict.fromkeys(names, columns), "broken": "this is not an object"}
    nodes = {
        f"model.shop.{name}": {
            "resource_type": "model",
            "database": "shop",
            "schema": "public",
            "alias": name,
            "columns": columns,
        }
        for name, columns in models.items()
    }
    metadata = {
        "dbt_schema_version": "https://schemas.getdbt.com/dbt/manifest/v12.json",
        "adapter_type": "postgres",
    }
    return json.dumps({"metadata": metadata, "nodes": nodes})


def dbt_case(folder: Path, source_type: str = "dbt") -> SourceCase:
    folder.mkdir()
    manifest = folder / "manifest.json"
    manifest.write_text(dbt_manifest("orders", "ünï köd"))
    urns = [str(Urn.of("postgres", "shop", "public", name)) for name in ("orders", "ünï köd")]

    def remove() -> str:
        manifest.write_text(dbt_manifest("orders"))
        return urns[1]

    return SourceCase(
        config={"type": source_type, "name": "shop", "manifest_path": str(manifest)},
        datasets=frozenset(urns),
        broken_item="model.shop.broken",
        folder=folder,
        missing={"manifest_path": str(folder / "nowhere.json")},
        remove=remove,
    )


class TestDbt(OnSharedSpark, HandlerContract):
    source_type: ClassVar = "dbt"

    @pytest.fixture
    @override
    def source(self, tmp_path: Path) -> SourceCase:
        return dbt_case(tmp_path / "target")


class TestPostgres(OnSharedSpark, HandlerContract):
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

        def remove() -> str:
            run_sql(postgres_database_url, 'DROP TABLE "raw"."ünï köd"')
            return str(Urn.of(*root, "raw", "ünï köd"))

        return SourceCase(
            config={"type": "postgres", "name": "shop", "url": postgres_database_url},
            datasets=frozenset(str(Urn.of(*root, *name)) for name in names),
            broken_item="public.broken",
            missing={"url": elsewhere},
            remove=remove,
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


@pytest.mark.parametrize("kind", sorted(PLANNING_MUTANTS))
def test_the_contract_finds_a_handler_that_plans_or_scans_wrongly(
    tmp_path: Path, kind: str
) -> None:
    broken_promise, mutant = PLANNING_MUTANTS[kind]
    case = dbt_case(tmp_path / "target")
    check_contract(broken_promise, DbtHandler(dbt_settings(case)), case)
    with pytest.raises((AssertionError, AttributeError, pickle.PicklingError, ValueError)):
        check_contract(broken_promise, mutant(dbt_settings(case)), case)


@pytest.mark.parametrize("kind", sorted(INGESTION_MUTANTS))
def test_the_contract_finds_a_handler_that_cannot_be_ingested(
    tmp_path: Path, spark: SparkSession, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken_promise, mutant = INGESTION_MUTANTS[kind]
    spark.sparkContext.addPyFile(inspect.getfile(mutant))
    monkeypatch.setattr(HandlerFactory._registry, "_registered", {})
    HandlerFactory.register(f"mutant_{kind}", mutant)
    case = dbt_case(tmp_path / "target", f"mutant_{kind}")
    (tmp_path / "project").mkdir()
    project = ContractProject(tmp_path / "project", case.config)
    with pytest.raises((AssertionError, pytest.fail.Exception)) as raised:
        check_contract(INGEST, mutant(dbt_settings(case)), case, project=project)
    assert broken_promise in [each.name for each in raised.traceback]


def test_a_source_of_records_cannot_pass_for_one_of_files(tmp_path: Path) -> None:
    handler = DbtHandler(dbt_settings(dbt_case(tmp_path / "target")))
    with pytest.raises(AssertionError, match="HandlerContract"):
        TestLocal().test_it_is_read_either_as_files_or_by_records(handler)


def dbt_settings(case: SourceCase) -> DbtSettings:
    return DbtSettings.model_validate(dict(case.config))


def check_contract(
    promise: str, handler: DbtHandler, case: SourceCase, *, project: ContractProject | None = None
) -> None:
    """Hold a handler against one test of the contract."""
    check = getattr(TestDbt(), f"test_{promise}")
    given = {"handler": handler, "scanner": handler, "source": case, "project": project}
    check(**{name: given[name] for name in inspect.signature(check).parameters})
