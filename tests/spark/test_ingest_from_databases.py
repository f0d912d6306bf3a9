"""Ingestion of a PostgreSQL database and the dbt project that describes it, as one estate."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from command_line import ROOT
from doubles.datahub_server import datahub_double
from given_work import open_work
from lumos.core.controllers.catalog_controller import CatalogController
from lumos.core.controllers.ingestion_controller import IngestionController
from lumos.core.controllers.report_controller import ReportController
from lumos.core.errors import ConfigurationError, SourceError
from lumos.core.models import Documentation, with_parts
from postgres_source import database_of, run_sql
from postgres_wire import wire_to

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lumos.core.controllers.results import IngestResult
    from lumos.core.models import LumosDataset

ARTIFACTS = ROOT / "examples" / "dbt" / "target"
TABLES = """
CREATE SCHEMA raw;
CREATE TABLE raw.orders (id bigint PRIMARY KEY, status text, amount numeric(12,2));
CREATE TABLE orders (order_id bigint PRIMARY KEY, customer_id integer, status text,
                     amount numeric(12,2), placed_at timestamptz);
CREATE VIEW stg_orders AS SELECT id AS order_id, status FROM raw.orders;
COMMENT ON TABLE orders IS 'what the database says';
COMMENT ON COLUMN orders.status IS 'status, says the database';
CREATE TABLE of_nobody (id int);
"""


@pytest.fixture
def url(
    spark: SparkSession,
    postgres_database_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> str:
    monkeypatch.chdir(tmp_path)
    run_sql(postgres_database_url, TABLES)
    return postgres_database_url


def settings(url: str, *sources: str) -> None:
    known = {
        "postgres": f"{{type: postgres, name: db, url: '{url}'}}",
        "dbt": "{type: dbt, name: project, manifest_path: manifest.json}",
    }
    lines = [f"  - {known.get(each, each)}" for each in sources]
    Path("lumos.yaml").write_text("sources:\n" + "\n".join(lines) + "\n")


def project(url: str, *, without: str = "") -> None:
    """Write the manifest of the example as one of this database, perhaps without a model."""
    manifest: dict[str, Any] = json.loads((ARTIFACTS / "manifest.json").read_text("utf-8"))
    for nodes in (manifest["nodes"], manifest["sources"]):
        for node in nodes.values():
            node["database"] = database_of(url)
        nodes.pop(without, None)
    Path("manifest.json").write_text(json.dumps(manifest))


def ingested(*names: str, dry_run: bool = False) -> IngestResult:
    with open_work(environment=os.environ) as work:
        return IngestionController(work).ingest(names=names, dry_run=dry_run)


def shown(url: str, table: str, schema: str = "public") -> LumosDataset:
    with open_work(environment=os.environ) as work:
        return CatalogController(work).show(urn(url, table, schema))


def urn(url: str, table: str, schema: str = "public") -> str:
    return f"lumos://postgres/{database_of(url)}/{schema}/{table}"


def contributors(url: str, table: str, facet: str) -> list[str]:
    with open_work(environment=os.environ) as work:
        said = CatalogController(work).contributions(CatalogController(work).show(urn(url, table)))
    return [each.contributor for each in said if each.facet == facet]


def test_a_database_is_ingested_versioned_and_compared(url: str) -> None:
    settings(url, "postgres")
    first = ingested()
    assert (first.datasets.created, first.failed) == (4, ())
    again = ingested()
    assert (again.datasets.unchanged, again.changes) == (4, ())
    assert again.snapshot == first.snapshot

    run_sql(url, "ALTER TABLE orders ADD COLUMN note text", "ALTER TABLE orders DROP COLUMN status")
    changed = ingested()
    assert {(each.rule, each.level) for each in changed.changes} == {
        ("field.added.nullable", "NON_BREAKING"),
        ("field.removed", "BREAKING"),
    }
    (version,) = changed.versions
    assert (version.previous_version, version.version) == ("1.0.0", "2.0.0")
    with open_work(environment=os.environ) as work:
        history = CatalogController(work).history(urn(url, "orders"))
        report = ReportController(work).build()
    assert [each.version for each in history.schema_history] == ["1.0.0", "2.0.0"]
    assert report.inventory.datasets == 4


def test_views_have_lineage_that_the_server_knows(url: str) -> None:
    settings(url, "postgres")
    ingested()
    view = shown(url, "stg_orders")
    assert view.lineage.upstream == (urn(url, "orders", "raw"),)
    assert view.lineage.inferred == ()
    assert view.version == "1.0.0"
    run_sql(
        url,
        "CREATE OR REPLACE VIEW stg_orders AS SELECT order_id, status FROM orders",
    )
    changed = ingested()
    assert {each.rule for each in changed.changes} >= {"lineage.edge.removed", "lineage.edge.added"}
    assert shown(url, "stg_orders").lineage.upstream == (urn(url, "orders"),)


def test_dbt_contributes_to_the_tables_that_postgres_found(url: str) -> None:
    settings(url, "postgres", "dbt")
    project(url)
    ingested()

    orders = shown(url, "orders")
    assert orders.version == "1.0.0", "one run, one version, however many speak"
    assert orders.documentation.description != "what the database says"
    assert contributors(url, "orders", "documentation.description") == [
        "declared:project",
        "source:db",
    ]
    assert contributors(url, "orders", "schema.fields")[0] == "source:db"
    assert [field.name for field in orders.schema.fields] == [
        "order_id", "customer_id", "status", "amount", "placed_at",
    ]  # fmt: skip
    assert orders.schema.primary_key == ("order_id",)
    assert orders.assertions
    assert urn(url, "stg_orders") in orders.lineage.upstream
    nobody = shown(url, "of_nobody")
    assert contributors(url, "of_nobody", "schema.fields") == ["source:db"]
    assert nobody.assertions == ()

    again = ingested()
    assert (again.datasets.updated, again.datasets.removed, again.changes) == (0, 0, ())


def test_each_can_be_withdrawn_and_nothing_of_the_other_is_lost(url: str) -> None:
    settings(url, "postgres", "dbt")
    project(url)
    ingested()
    before = shown(url, "orders")

    project(url, without="model.shop.orders")
    ingested()
    found = shown(url, "orders")
    assert found.documentation.description == "what the database says"
    assert found.assertions == ()
    assert found.schema.fields[2].description == "status, says the database"

    project(url)
    ingested()
    assert shown(url, "orders").documentation == before.documentation
    assert shown(url, "orders").assertions == before.assertions


def test_a_dropped_table_is_a_breaking_removal_although_dbt_declares_it(url: str) -> None:
    settings(url, "postgres", "dbt")
    project(url)
    ingested()
    run_sql(url, "DROP TABLE orders")

    gone = ingested()

    removal = [each for each in gone.changes if each.dataset == urn(url, "orders")]
    assert [(each.rule, each.level) for each in removal] == [("dataset.removed", "BREAKING")]
    assert any("declared by declared:project, and no source" in each for each in gone.warnings)
    assert ingested().changes == ()

    run_sql(url, "CREATE TABLE orders (order_id bigint PRIMARY KEY, status text)")
    ingested()
    back = shown(url, "orders")
    assert len(back.schema.fields) == 2
    assert back.documentation.description != "what the database says"
    assert back.assertions


def test_a_database_out_of_reach_removes_nothing_and_fails_no_other(url: str) -> None:
    settings(url, "postgres", "dbt")
    project(url)
    ingested()
    settings("postgresql://nobody:s3cret-word@127.0.0.1:9/shop", "postgres", "dbt")
    project(url, without="model.shop.orders")

    result = ingested()

    assert [each.item for each in result.failed] == ["db"]
    assert "s3cret-word" not in json.dumps(result.as_json())
    assert result.datasets.removed == 0
    assert shown(url, "of_nobody").schema.fields
    assert shown(url, "orders").assertions == (), "dbt was read all the same"


def test_a_server_that_goes_down_after_the_plan_is_reported_with_its_own_code(url: str) -> None:
    project(url)
    with wire_to(url, connections=1) as wire:
        settings(url, f"{{type: postgres, name: db, retries: 0, url: '{wire.url}'}}", "dbt")
        result = ingested()

    (failed,) = result.failed
    assert failed.item == f"db: {database_of(url)}"
    assert failed.reason is not None
    assert failed.reason.endswith("no server listens there")
    assert (failed.code, failed.retryable) == (SourceError.code, True)
    assert failed.hint == "check host and port of the source and that the server runs"
    assert not result.complete
    assert result.datasets.created, "dbt was read all the same"


def test_a_dry_run_writes_nothing(url: str) -> None:
    settings(url, "postgres", "dbt")
    project(url)
    result = ingested(dry_run=True)
    assert result.datasets.created >= 4
    assert not Path(".lumos", "lumos.db").exists()


def test_one_source_of_several_can_be_ingested_alone(url: str) -> None:
    settings(url, "postgres", "dbt")
    project(url)
    ingested()
    run_sql(url, "DROP TABLE of_nobody")
    assert ingested("project").datasets.removed == 0
    assert ingested("db").datasets.removed == 1


def test_two_servers_with_one_name_need_an_instance(url: str) -> None:
    other = (
        "{type: postgres, name: eu, url: 'postgresql://u:p@db.invalid/" + database_of(url) + "'}"
    )
    settings(url, "postgres", other)
    with pytest.raises(ConfigurationError, match="different servers") as raised:
        ingested()
    assert "instance: eu" in (raised.value.hint or "")


def test_a_source_that_is_taken_out_withdraws_what_only_it_said(url: str) -> None:
    settings(url, "postgres", "dbt")
    project(url)
    ingested()
    settings(url, "dbt")

    result = ingested()

    gone = {each.dataset for each in result.changes if each.rule == "dataset.removed"}
    assert urn(url, "of_nobody") in gone
    orders = shown(url, "orders")
    assert contributors(url, "orders", "documentation.description") == ["declared:project"]
    assert orders.documentation.description


def test_a_renamed_source_removes_nothing(url: str) -> None:
    settings(url, "postgres")
    ingested()
    settings(url, f"{{type: postgres, name: warehouse, url: '{url}'}}")

    result = ingested()

    assert (result.datasets.removed, result.changes) == (0, ())
    assert contributors(url, "orders", "schema.fields") == ["source:warehouse"]


def test_a_database_with_a_new_instance_and_name_leaves_nothing_under_its_old_urns(
    url: str,
) -> None:
    settings(url, "postgres")
    before = ingested()
    settings(url, f"{{type: postgres, name: db-eu, instance: eu, url: '{url}'}}")

    result = ingested()

    assert result.datasets.created == result.datasets.removed == before.datasets.created
    with open_work(environment=os.environ) as work:
        eu = f"lumos://postgres/eu/{database_of(url)}/public/orders"
        assert CatalogController(work).show(eu).schema.fields


def test_another_settings_file_takes_nothing_out(url: str) -> None:
    settings(url, "postgres")
    ingested()
    Path("other.yaml").write_text(Path("lumos.yaml").read_text().replace("name: db", "name: other"))
    with open_work(environment=os.environ, config=Path("other.yaml")) as work:
        result = IngestionController(work).ingest()
    assert result.datasets.removed == 0
    assert set(contributors(url, "orders", "schema.fields")) == {"source:db", "source:other"}


def test_the_order_of_sources_in_the_settings_decides(url: str) -> None:
    second = "{type: dbt, name: second, manifest_path: second.json}"
    project(url)
    text = Path("manifest.json").read_text("utf-8").replace("one row each", "a row for each")
    Path("second.json").write_text(text)
    settings(url, "postgres", "dbt", second)
    ingested()
    before = shown(url, "orders").documentation.description
    settings(url, "postgres", second, "dbt")
    assert ingested().datasets.updated > 0
    after = shown(url, "orders").documentation.description
    assert before != after
    assert ingested().datasets.updated == 0


def test_found_declared_and_edited_a_dataset_is_one_with_three_contributors(url: str) -> None:
    project(url)
    with datahub_double() as (datahub, _):
        settings(url, "postgres", "dbt")
        with Path("lumos.yaml").open("a") as file:
            file.write(
                f"platform: datahub\nplatform_config:\n  datahub: {{gms_server: '{datahub}'}}\n"
            )
        ingested()
        with open_work(environment=os.environ) as work:
            catalog = work.platform(None)
            there = catalog.get_dataset(urn(url, "orders"))
            tags = tuple(tag for tag in there.tags if tag != "gold")
            assert tags != there.tags, "the example has the tag"
            words = Documentation(description="What we know.")
            catalog.emit_dataset(with_parts(there, tags=(*tags, "seen"), documentation=words))
        run_sql(url, "ALTER TABLE orders ADD COLUMN note text")
        ingested()

        assert contributors(url, "orders", "documentation.description") == [
            "people:datahub",
            "declared:project",
            "source:db",
        ]
        with open_work(environment=os.environ) as work:
            there = work.platform(None).get_dataset(urn(url, "orders"))
            here = work.platform("embedded").get_dataset(urn(url, "orders"))
        assert there.documentation.description == here.documentation.description == "What we know."
        assert "seen" in here.tags
        assert "gold" not in here.tags, "what a person took away stays away"
        assert "note" in {field.name for field in there.schema.fields}
        again = ingested()
        assert again.sync is not None
        assert (again.sync.writes, again.changes) == (0, ())
