"""What the OpenMetadata adapter does beyond the contract, on a double of the server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from doubles.openmetadata_server import openmetadata_at
from doubles.openmetadata_store import OpenMetadataStore
from lumos.core.errors import ConfigurationError, PlatformAuthError
from lumos.core.models import ColumnMapping, GlossaryTerm, Job, LumosDataset, Urn, with_parts
from lumos.core.platform.batch import Batch
from lumos.core.platform.fidelity import CONCEPTS, Fidelity
from lumos.core.platform.impl.openmetadata.handler import OpenMetadataHandler
from lumos.core.platform.impl.openmetadata.mapping import stashed
from lumos.core.platform.impl.openmetadata.mapping.entities import told_dataset
from lumos.core.platform.impl.openmetadata.mapping.names import fqn, path_of, place_of, urn_of
from lumos.testing.platform_samples import dataset, rich_dataset

TABLE = {
    "urn": "lumos://snowflake/shop/public/orders",
    "name": "orders",
    "platform": "snowflake",
    "kind": "TABLE",
    "schema": {
        "fields": [
            {"name": "id", "type": "INT64", "nullable": False, "tags": ["key"], "default": "0"},
            {"name": "mail", "type": "STRING", "length": 80, "pii": True},
            {
                "name": "lines",
                "type": "ARRAY",
                "items": {"type": "STRUCT", "fields": [{"name": "sku", "type": "STRING"}]},
            },
        ],
        "primary_key": ["id"],
    },
    "ownership": [{"user": "ada"}, {"group": "sales", "type": "DATA_STEWARD"}],
    "tags": ["gold", "Tier.Tier1"],
    "governance": {"domains": ["sales.orders"], "glossary_terms": ["Order"]},
    "documentation": {"description": "All orders", "sla": "1h"},
    "properties": {"retention": "7y"},
}
PLACE = "snowflake.shop.public.orders"


def orders(**parts: object) -> LumosDataset:
    return LumosDataset.from_json({**TABLE, **parts})


def held(store: OpenMetadataStore, name: str = PLACE) -> dict[str, Any]:
    return store.entities["tables"][name]


def test_what_the_catalog_has_a_place_for_is_shown_there(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    platform.emit_dataset(orders())

    table = held(store)
    assert table["description"] == "All orders"
    assert [owner["name"] for owner in table["owners"]] == ["ada"]  # users, or one team
    assert [domain["fullyQualifiedName"] for domain in table["domains"]] == ["sales.orders"]
    labels = [(label["source"], label["tagFQN"]) for label in table["tags"]]
    assert ("Classification", "lumos.gold") in labels
    assert ("Classification", "Tier.Tier1") in labels
    assert ("Glossary", "lumos.Order") in labels
    assert [(each["name"], each["dataType"]) for each in table["columns"]] == [
        ("id", "BIGINT"),
        ("mail", "VARCHAR"),
        ("lines", "ARRAY"),
    ]
    assert table["columns"][1]["tags"][0]["tagFQN"] == "PII.Sensitive"
    assert table["columns"][2]["children"][0]["name"] == "sku"
    assert table["tableConstraints"] == [{"constraintType": "PRIMARY_KEY", "columns": ["id"]}]
    assert store.entities["services/databaseServices"]["snowflake"]["serviceType"] == "Snowflake"


def test_the_same_again_is_not_written_again(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    platform.emit_dataset(orders())
    before = store.writes()
    platform.emit_dataset(orders())

    assert store.writes() == before


def test_neighbours_that_are_known_cost_no_more_than_a_look_at_the_lineage(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    upstream, itself = "lumos://snowflake/shop/public/raw", TABLE["urn"]
    linked = orders(lineage={"upstream": [upstream, itself], "downstream": [itself]})
    platform.emit_dataset(linked)
    assert [(each.upstream_urn, each.downstream_urn) for each in platform.list_edges()] == [
        (upstream, itself)
    ]
    store.requests.clear()

    platform.emit_dataset(linked)

    asked = [path for _, path in store.requests if "Profile" in path or "lineage" in path]
    assert asked == [f"lineage/table/name/{PLACE}"]
    assert store.writes() == []


def test_a_dataset_is_read_once_for_each_time_that_it_is_asked_for(
    platform: OpenMetadataHandler, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def counted(entity: Mapping[str, Any], type_: str, *, foreign: bool = False) -> LumosDataset:
        read.append(entity["name"])
        return told_dataset(entity, type_, foreign=foreign)

    monkeypatch.setattr(stashed, "told_dataset", counted)
    platform.emit_dataset(orders())
    assert read == ["orders"]  # to see beforehand what has to be stashed
    read.clear()
    assert [*platform.list()] == [orders()]
    assert read == ["orders"]
    read.clear()
    platform.emit_dataset(orders(tags=["gold"]))
    assert read == ["orders"] * 2  # what is there, and what has to be stashed


def test_what_goes_is_removed_although_a_put_would_keep_it(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    platform.emit_dataset(orders())
    less = orders(ownership=[], tags=[], documentation={}, governance={})
    platform.emit_dataset(less)

    assert platform.get_dataset(less.urn) == less
    assert not {"owners", "tags", "description", "domains"} & held(store).keys()


def test_a_description_that_the_server_cleans_comes_back_whole(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    described = orders(documentation={"description": "<script>x</script> of <b>orders</b> & <i>"})
    platform.emit_dataset(described)

    assert held(store)["description"] == "x of orders & "
    assert platform.get_dataset(described.urn) == described
    before = store.writes()
    platform.emit_dataset(described)
    assert store.writes() == before


def test_what_people_change_in_the_catalog_wins_and_the_rest_stays(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    platform.emit_dataset(orders())
    held(store)["description"] = "Edited by hand"
    held(store)["columns"][0]["description"] = "The number"

    found = platform.get_dataset(orders().urn)

    assert found.documentation.description == "Edited by hand"
    assert found.documentation.sla == "1h"
    assert found.schema.fields[0].description == "The number"
    assert found.schema.fields[0].default == "0"


def test_a_table_that_another_tool_made_is_read(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    store.put("services/databaseServices", {"name": "dwh", "serviceType": "Postgres"})
    store.put("databases", {"name": "shop", "service": "dwh"})
    store.put("databaseSchemas", {"name": "public", "database": "dwh.shop"})
    column = {"name": "id", "dataType": "NUMERIC", "precision": 10, "dataTypeDisplay": "number"}
    body = {"name": "t.x", "databaseSchema": "dwh.shop.public", "tableType": "MaterializedView"}
    store.put("tables", {**body, "columns": [column], "sourceUrl": "https://example.org"})

    (found,) = platform.list()

    assert found.urn == "lumos://dwh/shop/public/t.x"
    assert (found.kind, found.database, found.namespace) == ("VIEW", "shop", "public")
    assert found.schema.fields[0].signature() == "DECIMAL(10)"
    assert found.extensions["openmetadata"] == {
        "sourceUrl": "https://example.org",
        "tableType": "MaterializedView",
        "columns": {"id": {"dataType": {"is": "NUMERIC", "as": "DECIMAL"}}},
        "serviceType": "Postgres",
    }


def test_column_lineage_is_drawn_where_both_columns_are_there(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    platform.emit_dataset(orders())
    platform.emit_dataset(rich_dataset())
    job = Job(urn=Urn.of("airflow", "load"), name="load")
    platform.apply(Batch(entities=[job]))
    mappings = (
        ColumnMapping(upstream_column="email", downstream_column="mail", transformation="lower"),
        ColumnMapping(upstream_column="not there", downstream_column="id"),
    )
    platform.emit_lineage(
        rich_dataset().urn, orders().urn, column_mappings=mappings, job_urn=job.urn
    )

    (edge,) = store.edges.values()
    (drawn,) = edge["lineageDetails"]["columnsLineage"]
    assert drawn == {
        "fromColumns": ["s3.lake.customers.email"],
        "toColumn": f"{PLACE}.mail",
        "function": "lower",
    }
    assert edge["lineageDetails"]["pipeline"]["fullyQualifiedName"] == "airflow.load"
    (found,) = platform.list_edges()
    assert {*found.column_mappings} == {*mappings}


def test_an_edge_that_people_removed_is_gone(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    platform.emit_lineage(rich_dataset().urn, orders().urn, confidence=0.5)
    store.edges.clear()

    assert [*platform.list_edges()] == []


def test_an_edge_to_what_is_not_there_lists_no_dataset(platform: OpenMetadataHandler) -> None:
    platform.emit_lineage(rich_dataset().urn, orders().urn)

    assert [*platform.list()] == []
    assert [edge.downstream_urn for edge in platform.list_edges()] == [orders().urn]
    platform.emit_dataset(orders())
    assert platform.get_dataset(orders().urn).lineage.upstream == (rich_dataset().urn,)


def test_a_deleted_bucket_leaves_what_lies_in_it(platform: OpenMetadataHandler) -> None:
    bucket = LumosDataset(urn=Urn.of("s3", "lake"), name="lake", platform="s3")
    platform.emit_dataset(dataset())
    platform.emit_dataset(bucket)
    platform.delete(bucket.urn)

    assert [*platform.list()] == [dataset()]


def test_terms_have_levels_as_in_the_catalog(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    term = GlossaryTerm(name="Finance.Revenue.Net", definition="after tax", synonyms=("net",))
    platform.apply(Batch(entities=[term]))

    assert "Finance.Revenue.Net" in store.entities["glossaryTerms"]
    assert [*platform.list_entities("glossary_term")] == [term]


def test_a_profile_is_shown_and_comes_back_whole(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    column = {"path": "id", "type": "INT64", "value_count": 9, "null_count": 0, "min": 1}
    member = {"path": "lines[].sku", "type": "STRING", "value_count": 9, "null_count": 0}
    at = "2024-01-15T10:30:00Z"
    profile = {"profiled_at": at, "row_count": 9, "file_count": 1, "columns": [column, member]}
    platform.emit_dataset(orders(profile=profile))

    ((shown,),) = store.profiles.values()
    assert shown["tableProfile"] == {"timestamp": 1705314600000, "rowCount": 9, "columnCount": 3}
    assert [each["name"] for each in shown["columnProfile"]] == ["id", "lines.sku"]
    assert platform.get_dataset(orders().urn) == orders(profile=profile)


def test_a_foreign_key_is_a_constraint_once_its_table_is_there(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    fields = [{"name": "id", "type": "INT64"}, {"name": "buyer.id", "type": "INT64"}]
    customers = dataset("customers", platform="snowflake", schema={"fields": fields})
    keys = [
        {"columns": ["id"], "references": customers.urn, "referenced_columns": ["buyer.id"]},
        {"columns": ["id"], "references": "somewhere else", "referenced_columns": ["id"]},
        {"columns": ["id"], "references": "lumos://snowflake/shop/public/orders"},
    ]
    early = orders(schema={"fields": fields, "foreign_keys": keys})
    platform.emit_dataset(early)
    assert "tableConstraints" not in held(store)
    assert platform.get_dataset(early.urn) == early

    platform.emit_dataset(customers)
    late = with_parts(early, tags=("late",))
    platform.emit_dataset(late)
    assert held(store)["tableConstraints"] == [
        {
            "constraintType": "FOREIGN_KEY",
            "columns": ["id"],
            "referredColumns": ['snowflake.default.lake.customers."buyer.id"'],
        }
    ]
    assert platform.get_dataset(late.urn) == late


def test_a_table_that_people_deleted_is_written_anew(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    platform.emit_dataset(orders())
    store.delete("tables", held(store)["id"], for_good=False)
    assert [*platform.list()] == []

    changed = orders(documentation={"description": "Another one"}, ownership=[{"user": "eve"}])
    platform.emit_dataset(changed)
    assert platform.get_dataset(changed.urn) == changed
    assert held(store)["description"] == "Another one"
    assert [owner["name"] for owner in held(store)["owners"]] == ["eve"]


def test_a_wrong_token_is_told_without_the_token(store: OpenMetadataStore) -> None:
    with (
        openmetadata_at(store.url, token="wrong-and-secret") as platform,
        pytest.raises(PlatformAuthError) as caught,
    ):
        platform.get_dataset(dataset().urn)

    assert "wrong-and-secret" not in str(caught.value)


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"platform_config\.openmetadata"):
        OpenMetadataHandler.from_config({"uri": "http://localhost"})


def test_every_concept_has_a_fate_and_none_is_dropped() -> None:
    assert set(OpenMetadataHandler.FIDELITY) == set(CONCEPTS)
    assert Fidelity.DROPPED not in OpenMetadataHandler.FIDELITY.values()


@pytest.mark.parametrize(
    ("urn", "name"),
    [
        ("lumos://snowflake/a/b/c", "snowflake.a.b.c"),
        ("lumos://snowflake/c", "snowflake.default.default.c"),
        ("lumos://snowflake/b/c.d", 'snowflake.default.b."c.d"'),
        ("lumos://snowflake/x/a/b/c", "snowflake.x/a.b.c"),
        ("lumos://s3/bucket", "s3.bucket"),
        ("lumos://s3/bucket/raw/a.csv", 's3.bucket."raw/a.csv"'),
    ],
)
def test_a_urn_has_a_place_that_leads_back_to_it(urn: str, name: str) -> None:
    place = place_of(Urn(urn))

    assert place.fqn == name
    assert path_of(name) == place.path
    assert fqn(place.path) == name
    assert urn_of(place.type, name) == urn
