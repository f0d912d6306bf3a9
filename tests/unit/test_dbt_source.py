"""What the dbt source tells of artifacts that dbt wrote."""

from __future__ import annotations

import hashlib
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from dbt_artifacts import (
    EVERY_VERSION,
    GOLDEN,
    NEWEST,
    ORDERS,
    SHOP,
    Document,
    changed,
    datasets,
    handler,
    loaded,
    of,
    scanned,
    written,
)
from lumos.core.models import (
    Access,
    AssertionStatus,
    ContributorKind,
    DatasetKind,
    DatasetQuality,
    EdgeBasis,
    Group,
    Job,
    LineageEdge,
    LineageType,
    LumosDataset,
    Observation,
    ObservationKind,
    OperationalMetadata,
    Severity,
    TypeName,
    User,
)
from lumos.core.models.base import CanonicalModel
from lumos.core.runtime.settings import load_settings
from lumos.feature.ingestion.handlers.dbt import artifacts
from lumos.feature.ingestion.handlers.dbt.handler import DbtHandler
from lumos.feature.ingestion.handlers.factory import HandlerFactory
from lumos.feature.ingestion.records import (
    ScanMark,
    ScannedScope,
    ScanRecord,
    ScanWarning,
    SkippedItem,
    UnreadableItem,
)


@pytest.fixture(scope="module")
def records() -> list[ScanRecord]:
    return scanned(handler(NEWEST))


@pytest.mark.parametrize("folder", EVERY_VERSION.values(), ids=EVERY_VERSION)
def test_every_version_of_dbt_tells_the_same(folder: Path, records: list[ScanRecord]) -> None:
    def told(source: Path) -> list[str]:
        return [
            json.dumps(_without_times(record.to_json()))
            for record in scanned(handler(source))
            if isinstance(record, CanonicalModel)
        ]

    found = told(folder)
    if folder.name == "v9":  # dbt 1.5 knew no deprecation_date
        expected = [line for line in told(NEWEST) if '"deprecation"' not in line]
        assert set(expected) < set(found)
        assert len(found) == len(expected) + 1
    else:
        assert found == told(NEWEST)
    assert not of(UnreadableItem, records)
    assert not of(ScanWarning, scanned(handler(folder)))


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        dropped = ("at", "timestamp", "last_validated")
        return {key: _without_times(item) for key, item in value.items() if key not in dropped}
    return [_without_times(item) for item in value] if isinstance(value, list) else value


def test_models_seeds_snapshots_and_sources_are_datasets_of_the_relations_that_they_are(
    records: list[ScanRecord],
) -> None:
    assert {urn: dataset.kind for urn, dataset in datasets(records).items()} == {
        f"{SHOP}/public/customers_v1": DatasetKind.TABLE,
        f"{SHOP}/public/customers_v2": DatasetKind.TABLE,
        f"{SHOP}/public/orders": DatasetKind.TABLE,
        f"{SHOP}/public/revenue_by_day": DatasetKind.TABLE,
        f"{SHOP}/public/stg_customers": DatasetKind.VIEW,
        f"{SHOP}/public/stg_orders": DatasetKind.VIEW,
        f"{SHOP}/public_reference/countries": DatasetKind.TABLE,
        f"{SHOP}/snapshots/orders_history": DatasetKind.TABLE,
        f"{SHOP}/raw/customers": DatasetKind.TABLE,
        f"{SHOP}/raw/orders": DatasetKind.TABLE,
    }
    orders = datasets(records)[ORDERS]
    assert (orders.name, orders.platform) == ("orders", "postgres")
    assert (orders.database, orders.namespace) == ("shop", "public")


def test_a_dataset_has_what_people_wrote_of_it(records: list[ScanRecord]) -> None:
    orders = datasets(records)[ORDERS]
    assert orders.documentation.description == "Orders that were not returned, one row each."
    assert orders.tags == ("gold",)
    assert orders.governance.access is Access.PUBLIC
    assert dict(orders.properties) == {"sla": "4h", "runbook.page": "wiki/orders"}
    assert [(owner.category, owner.name) for owner in orders.ownership.owners] == [
        ("group", "orders-team"),
        ("group", "sales"),
        ("user", "jane@shop.example"),
    ]
    assert orders.extensions["dbt"] == {
        "unique_id": "model.shop.orders",
        "resource_type": "model",
        "package": "shop",
        "original_file_path": "models/orders.sql",
        "materialized": "table",
        "group": "sales",
    }


def test_people_that_own_something_are_told_once(records: list[ScanRecord]) -> None:
    assert [user.username for user in of(User, records)] == [
        "jane@shop.example",
        "platform@shop.example",
    ]
    assert of(Group, records) == [
        Group(name="orders-team"),
        Group(name="sales", display_name="Sales Analytics", email="sales-analytics@shop.example"),
    ]


def test_the_owner_of_a_source_owns_its_tables(records: list[ScanRecord]) -> None:
    for name in ("orders", "customers"):
        owners = datasets(records)[f"{SHOP}/raw/{name}"].ownership.owners
        assert [owner.user for owner in owners] == ["platform@shop.example"]


def test_columns_have_types_and_words(records: list[ScanRecord]) -> None:
    fields = {field.name: field for field in datasets(records)[ORDERS].schema.fields}
    assert list(fields) == ["order_id", "customer_id", "status", "amount", "placed_at"]
    assert fields["order_id"].description == "The number on the invoice."
    assert fields["amount"].signature() == "DECIMAL(12,2)"
    assert fields["amount"].native_type == "numeric(12,2)"
    assert fields["amount"].tags == ("money",)
    assert dict(fields["amount"].properties) == {"unit": "EUR"}
    assert fields["placed_at"].type is TypeName.TIMESTAMP
    assert [name for name, field in fields.items() if not field.nullable] == [
        "order_id",
        "customer_id",
    ]


def test_the_catalog_adds_columns_that_nobody_documented_and_comments(
    records: list[ScanRecord],
) -> None:
    fields = {field.name: field for field in datasets(records)[f"{SHOP}/raw/orders"].schema.fields}
    assert list(fields) == ["id", "customer_id", "status", "amount", "placed_at"]
    assert fields["placed_at"].description == "When the customer confirmed the order."
    alone = datasets(scanned(handler(NEWEST, catalog_path=None)))
    assert [field.name for field in alone[f"{SHOP}/raw/orders"].schema.fields] == ["id"]
    assert alone[f"{SHOP}/raw/orders"].schema.fields[0].type is TypeName.UNKNOWN


def test_an_enforced_contract_gives_keys_and_checks(records: list[ScanRecord]) -> None:
    schema = datasets(records)[ORDERS].schema
    assert schema.primary_key == ("order_id",)
    assert [(check.name, check.column, check.expression) for check in schema.checks] == [
        ("amount_is_positive", "amount", "amount >= 0")
    ]
    history = datasets(records)[f"{SHOP}/snapshots/orders_history"].schema
    assert history.primary_key == (), "a unique_key says how to merge, and is no promise"


def test_constraints_of_models_and_columns_are_keys(tmp_path: Path) -> None:
    def constrain(manifest: Document) -> None:
        orders = manifest["nodes"]["model.shop.orders"]
        orders["columns"]["order_id"]["constraints"] = [{"type": "unique"}]
        orders["columns"]["customer_id"]["constraints"] = [
            {
                "type": "foreign_key",
                "to": '"shop"."public"."customers_v2"',
                "to_columns": ["customer_id"],
            }
        ]
        orders["constraints"] = [
            {"type": "primary_key", "columns": ["ORDER_ID", "status"]},
            {"type": "unique", "columns": ["customer_id", "placed_at"]},
            {
                "type": "foreign_key",
                "columns": ["status"],
                "expression": '"other"."statuses" ("code")',
            },
            {"type": "custom", "expression": "anything"},
        ]

    schema = datasets(changed(tmp_path, constrain))[ORDERS].schema
    assert schema.primary_key == ("order_id", "status")
    assert schema.unique_keys == (("order_id",), ("customer_id", "placed_at"))
    assert [key.to_json() for key in schema.foreign_keys] == [
        {
            "columns": ["customer_id"],
            "references": f"{SHOP}/public/customers_v2",
            "referenced_columns": ["customer_id"],
        },
        {
            "columns": ["status"],
            "references": "other.statuses",
            "referenced_columns": ["code"],
        },
    ]


def test_constraints_of_a_contract_that_is_not_enforced_promise_nothing(tmp_path: Path) -> None:
    def loosen(manifest: Document) -> None:
        orders = manifest["nodes"]["model.shop.orders"]
        orders["contract"] = orders["config"]["contract"] = {"enforced": False}

    schema = datasets(changed(tmp_path, loosen))[ORDERS].schema
    assert (schema.primary_key, schema.checks) == ((), ())
    assert all(field.nullable for field in schema.fields)


def test_a_version_of_a_model_is_deprecated_until_its_last_day(records: list[ScanRecord]) -> None:
    first, second = (datasets(records)[f"{SHOP}/public/customers_v{n}"] for n in (1, 2))
    assert first.governance.deprecation is not None
    assert str(first.governance.deprecation.sunset) == "2025-06-30"
    assert first.governance.deprecation.replacement == str(second.urn)
    assert second.governance.deprecation is None
    extension = first.extensions["dbt"]
    assert isinstance(extension, dict)
    assert (extension["version"], extension["latest_version"]) == ("1", "2")


def test_the_last_day_is_that_of_the_project_and_not_of_utc(tmp_path: Path) -> None:
    def deprecate(manifest: Document) -> None:
        model = manifest["nodes"]["model.shop.orders"]
        model["deprecation_date"] = "2025-06-30T00:00:00+02:00"

    deprecation = datasets(changed(tmp_path, deprecate))[ORDERS].governance.deprecation
    assert str(deprecation and deprecation.sunset) == "2025-06-30"


def test_tests_are_assertions_on_the_dataset_that_they_test(records: list[ScanRecord]) -> None:
    found = {
        assertion.name: (assertion.kind, assertion.column, assertion.severity)
        for assertion in datasets(records)[ORDERS].assertions
    }
    assert found == {
        "unique_orders_order_id": ("unique", "order_id", Severity.ERROR),
        "not_null_orders_order_id": ("not_null", "order_id", Severity.ERROR),
        "relationships_orders_customer_id__customer_id__ref_customers_v_2_": (
            "relationships",
            "customer_id",
            Severity.ERROR,
        ),
        "accepted_values_orders_status__placed__paid__shipped": (
            "accepted_values",
            "status",
            Severity.WARNING,
        ),
    }
    parameters = {each.kind: dict(each.parameters) for each in datasets(records)[ORDERS].assertions}
    assert parameters["accepted_values"] == {"values": ["placed", "paid", "shipped"]}
    assert parameters["relationships"] == {"to": "ref('customers', v=2)", "field": "customer_id"}


def test_a_singular_test_is_about_what_it_reads_through_ephemeral_models(
    records: list[ScanRecord],
) -> None:
    (assertion,) = datasets(records)[f"{SHOP}/public/stg_orders"].assertions
    assert (assertion.name, assertion.kind, assertion.validator) == (
        "no_future_orders",
        "sql",
        "dbt",
    )


def test_the_freshness_of_a_source_is_an_assertion(records: list[ScanRecord]) -> None:
    by_kind = {each.kind: each for each in datasets(records)[f"{SHOP}/raw/orders"].assertions}
    assert set(by_kind) == {"unique", "not_null", "freshness"}
    assert by_kind["freshness"].column == "placed_at"
    limits = dict(by_kind["freshness"].parameters)
    assert limits == {"warn_after": "6 hours", "error_after": "24 hours"}
    assert not datasets(records)[f"{SHOP}/raw/customers"].assertions


def test_a_test_of_a_source_that_reads_two_tables_is_about_the_source(tmp_path: Path) -> None:
    def relate(manifest: Document) -> None:
        node = manifest["nodes"]["test.shop.source_unique_raw_orders_id.56401af608"]
        node["depends_on"]["nodes"] = ["source.shop.raw.orders", "model.shop.stg_customers"]

    found = datasets(changed(tmp_path, relate))
    names = [each.name for each in found[f"{SHOP}/raw/orders"].assertions]
    assert "source_unique_raw_orders_id" in names
    assert not found[f"{SHOP}/public/stg_customers"].assertions


def test_lineage_passes_through_ephemeral_models(records: list[ScanRecord]) -> None:
    edges = {
        (edge.upstream_urn.removeprefix(f"{SHOP}/"), edge.downstream_urn.removeprefix(f"{SHOP}/"))
        for edge in of(LineageEdge, records)
    }
    assert edges == {
        ("raw/orders", "public/stg_orders"),
        ("raw/customers", "public/stg_customers"),
        ("public/stg_orders", "public/orders"),
        ("public/stg_customers", "public/customers_v1"),
        ("public/stg_customers", "public/customers_v2"),
        ("public_reference/countries", "public/customers_v2"),
        ("public/orders", "public/revenue_by_day"),
        ("raw/orders", "snapshots/orders_history"),
    }
    for edge in of(LineageEdge, records):
        assert (edge.basis, edge.provenance) == (EdgeBasis.DECLARED, "dbt")
        is_view = "/stg_" in edge.downstream_urn
        assert edge.lineage_type is (LineageType.VIEW if is_view else LineageType.TRANSFORMED)


def test_lineage_comes_from_the_parent_map_where_a_node_has_none(tmp_path: Path) -> None:
    def forget(manifest: Document) -> None:
        del manifest["nodes"]["model.shop.daily_revenue"]["depends_on"]

    edges = of(LineageEdge, changed(tmp_path, forget))
    assert (ORDERS, f"{SHOP}/public/revenue_by_day") in {
        (edge.upstream_urn, edge.downstream_urn) for edge in edges
    }


def test_ephemeral_models_in_a_circle_end(tmp_path: Path) -> None:
    def tie(manifest: Document) -> None:
        node = manifest["nodes"]["model.shop.paid_orders"]
        node["depends_on"]["nodes"] = ["model.shop.paid_orders", "model.shop.orders"]

    edges = of(LineageEdge, changed(tmp_path, tie))
    assert all(edge.downstream_urn != ORDERS for edge in edges)


def test_an_exposure_is_a_job_that_reads_datasets(records: list[ScanRecord]) -> None:
    (job,) = of(Job, records)
    assert job.urn == "lumos://dbt/shop/exposures/revenue_dashboard"
    assert (job.orchestrator, job.type, job.name) == ("dbt", "dashboard", "revenue_dashboard")
    assert job.inputs == (ORDERS, f"{SHOP}/public/revenue_by_day")
    assert dict(job.properties) == {
        "label": "Revenue",
        "maturity": "high",
        "url": "https://bi.shop.example/dashboards/revenue",
        "owner": "Jane Doe",
        "owner_email": "jane@shop.example",
    }


def test_results_of_tests_are_observations_that_hold_no_data(records: list[ScanRecord]) -> None:
    found = {each.urn: each for each in of(Observation, records)}
    quality = found[ORDERS]  # type: ignore[index]
    assert quality.kind is ObservationKind.QUALITY
    assert quality.at.isoformat().startswith(
        loaded("run_results.json")["metadata"]["generated_at"][:19]
    )
    shape = DatasetQuality.from_json(dict(quality.document))
    assert shape.validator == "dbt"
    assert {check.name: (check.status, check.details) for check in shape.checks} == {
        "accepted_values_orders_status__placed__paid__shipped": (
            AssertionStatus.WARNING,
            "1 failure",
        ),
        "not_null_orders_order_id": (AssertionStatus.PASSED, None),
        "relationships_orders_customer_id__customer_id__ref_customers_v_2_": (
            AssertionStatus.PASSED,
            None,
        ),
        "unique_orders_order_id": (AssertionStatus.PASSED, None),
    }
    assert "refunded" not in json.dumps([each.to_json() for each in found.values()])


@pytest.mark.parametrize(
    ("status", "expected"),
    [("fail", "FAILED"), ("error", "ERROR"), ("skipped", "SKIPPED"), ("pass", "PASSED")],
)
def test_every_status_of_a_test_has_its_own(tmp_path: Path, status: str, expected: str) -> None:
    results = loaded("run_results.json")
    for result in results["results"]:
        result.update(status=status, message="Got 1 result: secret-row", failures=1234)
    folder = written(tmp_path / "target", loaded("manifest.json"), run_results=results)
    found = of(Observation, scanned(handler(folder)))
    checks = [check for each in found for check in each.to_json()["document"]["checks"]]  # type: ignore
    assert {check["status"] for check in checks} == {expected}  # type: ignore
    assert {check["details"] for check in checks} == {"1,234 failures"}  # type: ignore
    assert "secret-row" not in json.dumps(checks)


@pytest.mark.parametrize(
    ("adapter", "stats", "expected"),
    [
        ("snowflake", {"row_count": 12, "bytes": "3072"}, {"row_count": 12, "bytes": 3072}),
        ("bigquery", {"num_rows": 7.0, "num_bytes": 10}, {"row_count": 7, "bytes": 10}),
        ("redshift", {"rows": 5}, {"row_count_estimate": 5}),
        ("spark", {"bytes": "many", "rows": -1}, {}),
    ],
)
def test_sizes_in_the_catalog_are_observations(
    tmp_path: Path, adapter: str, stats: Document, expected: dict[str, int]
) -> None:
    manifest, catalog = loaded("manifest.json"), loaded("catalog.json")
    manifest["metadata"]["adapter_type"] = adapter
    catalog["nodes"]["model.shop.orders"]["stats"] = {
        name: {"id": name, "value": value, "include": True} for name, value in stats.items()
    }
    found = of(Observation, scanned(handler(written(tmp_path / "t", manifest, catalog=catalog))))
    if not expected:
        assert found == []
        return
    (observation,) = found
    assert observation.urn == f"lumos://{adapter}/shop/public/orders"
    assert observation.kind is ObservationKind.STATISTICS
    size = {"total_size_bytes": expected.pop("bytes")} if "bytes" in expected else {}
    assert dict(observation.document) == {**expected, **size}
    OperationalMetadata.from_json(dict(observation.document))


def test_another_adapter_has_its_own_platform() -> None:
    found = datasets(scanned(handler(GOLDEN / "duckdb")))
    orders = found["lumos://duckdb/shop/main/orders"]
    assert orders.platform == "duckdb"
    assert {field.type for each in found.values() for field in each.schema.fields} == {
        TypeName.INT32,
        TypeName.INT64,
        TypeName.STRING,
        TypeName.DECIMAL,
        TypeName.DATE,
        TypeName.TIMESTAMP,
        TypeName.TIMESTAMP_NTZ,
    }


def test_a_platform_without_databases_has_shorter_names(tmp_path: Path) -> None:
    def without_database(manifest: Document) -> None:
        manifest["metadata"]["adapter_type"] = "spark"
        for node in (*manifest["nodes"].values(), *manifest["sources"].values()):
            node["database"] = None

    assert "lumos://spark/public/orders" in datasets(changed(tmp_path, without_database))


def test_the_instance_is_the_first_part_of_the_path() -> None:
    found = scanned(handler(NEWEST, instance="eu"))
    assert "lumos://postgres/eu/shop/public/orders" in datasets(found)
    assert of(Job, found)[0].urn == "lumos://dbt/eu/shop/exposures/revenue_dashboard"


def test_names_are_spelled_as_dbt_has_them(tmp_path: Path) -> None:
    def raise_case(manifest: Document) -> None:
        manifest["metadata"]["adapter_type"] = "snowflake"
        manifest["nodes"]["model.shop.orders"].update(
            database="SHOP", schema="PUBLIC", alias="ORDERS"
        )

    assert "lumos://snowflake/SHOP/PUBLIC/ORDERS" in datasets(changed(tmp_path, raise_case))


def test_columns_of_catalog_and_manifest_meet_in_any_case(tmp_path: Path) -> None:
    manifest, catalog = loaded("manifest.json"), loaded("catalog.json")
    table = catalog["nodes"]["model.shop.orders"]
    table["columns"] = {
        name.upper(): {**column, "name": name.upper()} for name, column in table["columns"].items()
    }
    orders = datasets(scanned(handler(written(tmp_path / "t", manifest, catalog=catalog))))[ORDERS]
    assert [field.name for field in orders.schema.fields][:2] == ["ORDER_ID", "CUSTOMER_ID"]
    assert orders.schema.primary_key == ("ORDER_ID",)
    assert orders.schema.fields[0].description == "The number on the invoice."


def test_columns_that_differ_in_case_alone_are_two(tmp_path: Path) -> None:
    manifest, catalog = loaded("manifest.json"), loaded("catalog.json")
    columns = catalog["sources"]["source.shop.raw.orders"]["columns"]
    columns["ID"] = {"name": "ID", "type": "text", "index": 9, "comment": None}
    found = datasets(scanned(handler(written(tmp_path / "t", manifest, catalog=catalog))))
    fields = [field.name for field in found[f"{SHOP}/raw/orders"].schema.fields]
    assert fields[0] == "id"
    assert fields[-1] == "ID"


def test_what_looks_like_a_secret_is_not_kept(records: list[ScanRecord], tmp_path: Path) -> None:
    told = json.dumps([each.to_json() for each in records if isinstance(each, CanonicalModel)])
    assert "not-to-be-kept" not in told
    assert "pager_token" not in told

    def plant(manifest: Document) -> None:
        manifest["nodes"]["model.shop.orders"]["meta"] = {
            "links": [{"api_key": "planted-one", "page": "x"}, "https://u:planted-two@host/x"],
            "nested": {"deep": {"password": "planted-three"}},
        }
        test = manifest["nodes"]["test.shop.unique_orders_order_id.fed79b3a6e"]
        test["test_metadata"]["kwargs"]["credentials"] = "planted-four"
        manifest["exposures"]["exposure.shop.revenue_dashboard"]["url"] = (
            "https://u:planted-five@host/x?token=planted-six"
        )

    found = changed(tmp_path, plant)
    told = json.dumps([each.to_json() for each in found if isinstance(each, CanonicalModel)])
    assert "planted" not in told
    assert datasets(found)[ORDERS].properties["links"] == [{"page": "x"}, "https://u:***@host/x"]


def test_sql_text_is_not_kept(records: list[ScanRecord]) -> None:
    told = json.dumps([each.to_json() for each in records if isinstance(each, CanonicalModel)])
    assert "select" not in told.lower()


@pytest.mark.parametrize(
    ("owner", "expected"),
    [
        ("jane@x.org, Orders Team", ["group:Orders Team", "user:jane@x.org"]),
        ({"name": "Jane", "email": "jane@x.org"}, ["user:jane@x.org"]),
        ({"name": "Sales"}, ["group:Sales"]),
        ([{"name": "Sales"}, "jane@x.org", 7, None], ["group:Sales", "user:jane@x.org"]),
        ("a@x.org, ,b@x.org", ["user:a@x.org", "user:b@x.org"]),
        ("Doe, Jane", ["group:Doe, Jane"]),
        (" ", []),
        (7, []),
    ],
)
def test_owners_are_read_in_every_form(tmp_path: Path, owner: object, expected: list[str]) -> None:
    def own(manifest: Document) -> None:
        manifest["nodes"]["model.shop.stg_orders"]["meta"] = {"owner": owner}

    owners = datasets(changed(tmp_path, own))[f"{SHOP}/public/stg_orders"].ownership.owners
    assert [f"{each.category}:{each.name}" for each in owners] == expected


def test_disabled_nodes_are_left_out(tmp_path: Path) -> None:
    def disable(manifest: Document) -> None:
        for unique_id in (
            "model.shop.stg_customers",
            "test.shop.unique_orders_order_id.fed79b3a6e",
        ):
            manifest["nodes"][unique_id]["config"]["enabled"] = False
        manifest["exposures"]["exposure.shop.revenue_dashboard"]["config"]["enabled"] = False

    found = changed(tmp_path, disable)
    assert f"{SHOP}/public/stg_customers" not in datasets(found)
    assert len(datasets(found)[ORDERS].assertions) == 3
    assert not of(Job, found)
    assert not of(UnreadableItem, found)


def test_metrics_and_the_like_are_counted_in_one_warning(tmp_path: Path) -> None:
    def add(manifest: Document) -> None:
        manifest["metrics"] = {"metric.shop.a": {}, "metric.shop.b": {}}
        manifest["semantic_models"] = {"semantic_model.shop.a": {}}

    warnings = of(ScanWarning, changed(tmp_path, add))
    assert warnings == [ScanWarning("manifest.json", "not read: 2 metrics, 1 semantic model")]


def test_two_nodes_of_one_table_are_one_dataset_with_the_tests_of_both(tmp_path: Path) -> None:
    def declare_twice(manifest: Document) -> None:
        source = manifest["sources"]["source.shop.raw.orders"]
        source.update(schema="public", identifier="orders")

    found = changed(tmp_path, declare_twice)
    assert of(SkippedItem, found) == [
        SkippedItem("source.shop.raw.orders", "model.shop.orders describes the same table")
    ]
    assert "source_unique_raw_orders_id" in {
        assertion.name for assertion in datasets(found)[ORDERS].assertions
    }
    assert len(of(LumosDataset, found)) == 9


def test_a_declaring_source_ends_with_its_marks_and_the_scope_of_all_it_says(
    records: list[ScanRecord],
) -> None:
    digest = hashlib.sha256((NEWEST / "manifest.json").read_bytes()).hexdigest()
    assert of(ScanMark, records)[0] == ScanMark("manifest", digest)
    assert [mark.key for mark in of(ScanMark, records)] == ["manifest", "catalog", "run_results"]
    assert records[-1] == ScannedScope("lumos://")
    assert DbtHandler.contributes_as is ContributorKind.DECLARED


def test_the_handler_travels_to_executors() -> None:
    source = handler(NEWEST)
    twin = pickle.loads(pickle.dumps(source))
    assert scanned(twin) == scanned(source)


def test_relative_paths_begin_at_the_settings_file(tmp_path: Path) -> None:
    written(tmp_path / "target", loaded("manifest.json"))
    (tmp_path / "lumos.yaml").write_text(
        "sources: [{type: dbt, name: shop, manifest_path: target/manifest.json}]"
    )
    (entry,) = load_settings(tmp_path / "lumos.yaml", {}).sources
    found = HandlerFactory.get_handler(entry)
    assert isinstance(found, DbtHandler)
    assert len(datasets(scanned(found))) == 10


def test_sql_is_not_even_held_in_memory() -> None:
    found = artifacts.read_artifact(NEWEST / "manifest.json", artifacts.MANIFEST, source="shop")
    assert "raw_code" not in json.dumps(found.document)
    assert "select" not in json.dumps(found.document).lower()


# Catalogs of something else


def test_a_catalog_of_another_run_is_told(tmp_path: Path) -> None:
    catalog = loaded("catalog.json")
    catalog["metadata"]["invocation_id"] = "another"
    folder = written(tmp_path / "t", loaded("manifest.json"), catalog=catalog)
    (warning,) = of(ScanWarning, scanned(handler(folder)))
    assert "not written together with manifest.json" in warning.text


def test_a_catalog_of_another_project_is_told(tmp_path: Path) -> None:
    catalog = loaded("catalog.json")
    catalog["sources"] = {}
    catalog["nodes"] = {"model.other.a": catalog["nodes"]["model.shop.orders"]}
    folder = written(tmp_path / "t", loaded("manifest.json"), catalog=catalog)
    (warning,) = of(ScanWarning, scanned(handler(folder)))
    assert "another project" in warning.text


def test_tables_of_another_target_are_not_taken(tmp_path: Path) -> None:
    catalog = loaded("catalog.json")
    catalog["sources"]["source.shop.raw.orders"]["metadata"]["schema"] = "dev_jane"
    folder = written(tmp_path / "t", loaded("manifest.json"), catalog=catalog)
    found = scanned(handler(folder))
    (warning,) = of(ScanWarning, found)
    assert "another database or schema than in manifest.json are not read (1)" in warning.text
    assert len(datasets(found)[f"{SHOP}/raw/orders"].schema.fields) == 1


def test_tables_that_the_catalog_lacks_are_counted(tmp_path: Path) -> None:
    catalog = loaded("catalog.json")
    del catalog["nodes"]["model.shop.orders"]
    folder = written(tmp_path / "t", loaded("manifest.json"), catalog=catalog)
    (warning,) = of(ScanWarning, scanned(handler(folder)))
    assert "1 of 10 tables and views of manifest.json are not in it" in warning.text


def test_documented_columns_that_no_table_has_are_told_once(tmp_path: Path) -> None:
    manifest = loaded("manifest.json")
    for name in ("stg_orders", "orders"):
        column = {"name": "gone", "description": "It was dropped."}
        manifest["nodes"][f"model.shop.{name}"]["columns"]["gone"] = column
    folder = written(tmp_path / "t", manifest, catalog=loaded("catalog.json"))
    (warning,) = of(ScanWarning, scanned(handler(folder)))
    assert warning.text == (
        "2 documented columns not in the table, such as gone of model.shop.orders"
    )


def test_results_of_no_test_are_told(tmp_path: Path) -> None:
    results = loaded("run_results.json")
    results["results"] = [
        each for each in results["results"] if not each["unique_id"].startswith("test.")
    ]
    folder = written(tmp_path / "t", loaded("manifest.json"), run_results=results)
    (warning,) = of(ScanWarning, scanned(handler(folder)))
    assert "no results of tests" in warning.text
