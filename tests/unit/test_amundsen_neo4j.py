"""Amundsen on Neo4j: what its publisher wrote there comes out as it does from MySQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from doubles.amundsen_database import amundsen_over, publish_orders, sqlite_engine
from doubles.neo4j_server import PASSWORD, USER, Graph, Json, neo4j_server
from lumos.core.errors import CapabilityError, ConfigurationError, PlatformAuthError
from lumos.core.platform.batch import Batch
from lumos.core.platform.impl.amundsen.client import neo4j_graph
from lumos.core.platform.impl.amundsen.handler import AmundsenHandler
from lumos.testing.platform_samples import AT, dataset, edge

KEY, SOURCE = "hive://gold.sales/orders", "hive://gold.raw/orders"


def orders() -> Graph:
    """Return the graph of the tables that `publish_orders` publishes to MySQL."""
    graph = Graph()
    graph.node("Database", "database://hive", name="hive")
    graph.node("Cluster", "hive://gold", name="gold")
    graph.relate("database://hive", "CLUSTER", "hive://gold")
    for schema, table, is_view in (("sales", KEY, False), ("raw", SOURCE, True)):
        place = f"hive://gold.{schema}"
        graph.node("Schema", place, name=schema)
        graph.relate("hive://gold", "SCHEMA", place)
        graph.node("Table", table, name="orders", is_view=is_view)
        graph.relate(place, "TABLE", table)
        graph.relate(table, "TABLE_OF", place)
        columns = {"order_id": "bigint", "total": "decimal(10,2)", "tags": "array<string>"}
        for number, (name, kind) in enumerate(columns.items()):
            column = f"{table}/{name}"
            graph.node("Column", column, name=name, col_type=kind, sort_order=number)
            graph.relate(table, "COLUMN", column)
    _labels_and_people(graph)
    _texts_and_figures(graph)
    return graph


def _labels_and_people(graph: Graph) -> None:
    for name in ("ada", "bob"):
        email = f"{name}@example.org"
        graph.node("User", email, email=email, team_name="data")
    graph.node("Tag", "finance", tag_type="default")
    graph.node("Tag", "unused", tag_type="default")
    graph.node("Badge", "beta", category="table_status")
    graph.node("Badge", "pk", category="column")
    graph.relate(KEY, "TAGGED_BY", "finance")
    graph.relate(KEY, "HAS_BADGE", "beta")
    graph.relate(f"{KEY}/order_id", "HAS_BADGE", "pk")
    graph.relate(KEY, "OWNER", "ada@example.org")
    graph.relate(KEY, "FOLLOWED_BY", "bob@example.org")
    graph.relate(KEY, "READ_BY", "bob@example.org", read_count=7)
    graph.relate("bob@example.org", "READ", KEY, read_count=7)
    graph.relate(SOURCE, "HAS_DOWNSTREAM", KEY)
    graph.relate(KEY, "HAS_UPSTREAM", SOURCE)
    graph.relate(f"{SOURCE}/total", "HAS_DOWNSTREAM", f"{KEY}/total")


def _texts_and_figures(graph: Graph) -> None:
    def hang(label: str, key: str, relation: tuple[str, str], **properties: str | int) -> None:
        graph.node(label, key, **properties)
        graph.relate(relation[0], relation[1], key)

    text = {"description_source": "description"}
    hang("Description", f"{KEY}/_description", (KEY, "DESCRIPTION"),
         description="All orders", **text)  # fmt: skip
    hang("Description", f"{KEY}/total/_description", (f"{KEY}/total", "DESCRIPTION"),
         description="In euro", **text)  # fmt: skip
    hang("Programmatic_Description", f"{KEY}/_quality_description", (KEY, "DESCRIPTION"),
         description="99 %", description_source="quality_report")  # fmt: skip
    hang("Source", f"{KEY}/_source", (KEY, "SOURCE"),
         source="https://git.example.org", source_type="github")  # fmt: skip
    hang("Timestamp", f"{KEY}/timestamp", (KEY, "LAST_UPDATED_AT"),
         timestamp=1_705_314_600, last_updated_timestamp=1_705_314_600, name="updated")  # fmt: skip
    hang("Watermark", f"{KEY}/high_watermark/", (KEY, "WATERMARK"), partition_key="ds",
         partition_value="2024-01-14", create_time="2024-01-14T01:00:00")  # fmt: skip
    hang("Stat", f"{KEY}/total/max/", (f"{KEY}/total", "STAT"),
         stat_type="max", stat_val="99.5", start_epoch="0", end_epoch="1")  # fmt: skip
    hang("Application", "application://airflow/load", (KEY, "DERIVED_FROM"), name="Airflow",
         id="load/orders", description="Airflow with id load",
         application_url="https://airflow.example.org")  # fmt: skip


def settings(url: str) -> Json:
    return {"neo4j_url": url, "neo4j_username": USER, "neo4j_password": PASSWORD}


@pytest.fixture
def graph() -> Graph:
    return orders()


@pytest.fixture
def amundsen(graph: Graph) -> Iterator[AmundsenHandler]:
    with (
        neo4j_server(graph) as url,
        AmundsenHandler.from_config(settings(url)) as platform,
    ):
        yield platform


@pytest.mark.parametrize("page", [1, 2, 2_000])
def test_it_comes_out_as_from_mysql(
    amundsen: AmundsenHandler, tmp_path: Path, page: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neo4j_graph, "PAGE", page)
    engine = sqlite_engine(tmp_path / "amundsen.db")
    publish_orders(engine)
    with amundsen_over(engine) as on_mysql:
        expected = on_mysql.export_all(at=AT)

    found = amundsen.export_all(at=AT)
    assert found.datasets == expected.datasets
    assert found.lineage_edges == expected.lineage_edges
    assert (found.users, found.tags) == (expected.users, expected.tags)
    assert found == expected


def test_what_lumos_does_not_model_is_kept_as_it_is(
    amundsen: AmundsenHandler, graph: Graph
) -> None:
    graph.node("Dashboard", "mode_dashboard://gold.g/d", name="Sales", created_timestamp=5)
    graph.node("Description", "mode_dashboard://gold.g/d/_description", description="Weekly")
    graph.relate(
        "mode_dashboard://gold.g/d", "DESCRIPTION", "mode_dashboard://gold.g/d/_description"
    )
    graph.relate("mode_dashboard://gold.g/d", "DASHBOARD_WITH_TABLE", KEY)
    graph.node("Description", "hive://gold.raw/_description", description="As it came")
    graph.relate("hive://gold.raw", "DESCRIPTION", "hive://gold.raw/_description")
    graph.nodes[KEY][1]["cost_center"] = "42"
    graph.node("Application", "application://airflow/other", name="Airflow", id="other")
    graph.relate(KEY, "DERIVED_FROM", "application://airflow/other")
    graph.relate("ada@example.org", "MANAGE_BY", "bob@example.org")

    kept = amundsen.export_all(at=AT).to_json()["extensions"]
    assert kept == {
        "amundsen": {
            "nodes": {
                "Dashboard": [
                    {"key": "mode_dashboard://gold.g/d", "name": "Sales", "created_timestamp": 5}
                ],
                "Description": [
                    {"key": "mode_dashboard://gold.g/d/_description", "description": "Weekly"}
                ],
            },
            "relations": [
                {
                    "start": "mode_dashboard://gold.g/d",
                    "type": "DESCRIPTION",
                    "end": "mode_dashboard://gold.g/d/_description",
                },
                {"start": "mode_dashboard://gold.g/d", "type": "DASHBOARD_WITH_TABLE", "end": KEY},
            ],
            "schema_description": [
                {
                    "rk": "hive://gold.raw/_description",
                    "description_source": "description",
                    "description": "As it came",
                    "schema_rk": "hive://gold.raw",
                }
            ],
            "properties": {"Table": {KEY: {"cost_center": "42"}}},
            "applications": [{"table": KEY, "application": "application://airflow/other"}],
        }
    }
    users = {user.username: user for user in amundsen.export_all(at=AT).users}
    assert users["ada@example.org"].manager_urn == "bob@example.org"


def test_a_listing_sees_what_changed_since_the_last_one(
    amundsen: AmundsenHandler, graph: Graph
) -> None:
    assert len([*amundsen.list()]) == 2
    graph.relate(SOURCE, "TAGGED_BY", "unused")

    assert [one.tags for one in amundsen.list()] == [("unused",), ("beta", "finance")]


def test_nothing_is_written(amundsen: AmundsenHandler, graph: Graph) -> None:
    attempts: tuple[Callable[[], None], ...] = (
        lambda: amundsen.emit_dataset(dataset()),
        lambda: amundsen.apply(Batch(edges=[edge(dataset("a"), dataset("b"))])),
        lambda: amundsen.delete(dataset().urn),
        lambda: amundsen.emit_ownership(dataset().urn, "ada"),
        lambda: amundsen.apply(Batch(extensions={"x": 1})),
    )
    for attempt in attempts:
        with pytest.raises(CapabilityError):
            attempt()
    assert graph.queries == []


def test_it_says_which_version_answers_and_takes_that_of_3_5(
    amundsen: AmundsenHandler, graph: Graph
) -> None:
    assert amundsen.reached() == "amundsen (neo4j 4.4.36)"
    graph.version, graph.tx_path = "3.5.35", "/db/data/transaction/commit"
    assert amundsen.reached() == "amundsen (neo4j 3.5.35)"


def test_a_wrong_password_is_one_clear_line(graph: Graph) -> None:
    with neo4j_server(graph) as url:
        config = {**settings(url), "neo4j_password": "wrong-one"}
        with (
            AmundsenHandler.from_config(config) as platform,
            pytest.raises(PlatformAuthError) as caught,
        ):
            platform.reached()

    assert "wrong-one" not in str(caught.value)


@pytest.mark.parametrize(
    "config", [{}, {"neo4j_url": "http://x:1", "database_url": "mysql://u@h/d"}, {"neo4j_url": "x"}]
)
def test_wrong_settings_are_refused(config: Json) -> None:
    with pytest.raises(ConfigurationError):
        AmundsenHandler.from_config(config)
