"""What other tools and people wrote into OpenMetadata is read, found again and left as it is."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from doubles.openmetadata_server import openmetadata_at, openmetadata_server
from doubles.openmetadata_store import Json, OpenMetadataStore
from lumos.core.models import (
    DatasetLineage,
    Domain,
    GlossaryTerm,
    Group,
    LineageEdge,
    LumosDataset,
    Tag,
    Urn,
    User,
    with_parts,
)
from lumos.core.platform.batch import Batch
from lumos.core.platform.impl.openmetadata.handler import OpenMetadataHandler
from lumos.core.platform.interface import Entity, kind_of
from lumos.testing.platform_samples import AT, consumed, dataset, edge

SERVICES = "services/databaseServices"
STORES = "services/storageServices"


def table(store: OpenMetadataStore, **parts: object) -> Json:
    store.put(SERVICES, {"name": "My Warehouse", "serviceType": "Snowflake"})
    store.put("databases", {"name": "shop", "service": "My Warehouse"})
    store.put("databaseSchemas", {"name": "public", "database": "My Warehouse.shop"})
    body: Json = {"name": "orders", "databaseSchema": "My Warehouse.shop.public", "columns": []}
    return store.put("tables", {**body, **parts})[0]


def test_tables_of_a_service_with_any_name_are_told_apart_and_found(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    table(store)
    table(store, name="customers")

    found = [*platform.list()]

    assert [dataset.urn for dataset in found] == [
        "lumos://openmetadata/table/My%20Warehouse/shop/public/customers",
        "lumos://openmetadata/table/My%20Warehouse/shop/public/orders",
    ]
    assert {dataset.platform for dataset in found} == {"snowflake"}
    assert [platform.get_dataset(dataset.urn) for dataset in found] == found


def test_a_container_within_containers_is_found_and_not_made_twice(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    store.put(STORES, {"name": "s3", "serviceType": "S3"})
    above: Json | None = None
    for name in ("lake", "raw", "orders"):
        parent = {"parent": {"id": above["id"], "type": "container"}} if above else {}
        above, _ = store.put("containers", {"name": name, "service": "s3", **parent})

    found = platform.get_dataset("lumos://s3/lake/raw/orders")
    platform.emit_dataset(with_parts(found, tags=("gold",)))

    assert sorted(store.entities["containers"])[-3:] == [
        "s3.lake",
        "s3.lake.raw",
        "s3.lake.raw.orders",
    ]
    assert platform.get_dataset("lumos://s3/lake/raw/orders").tags == ("gold",)


def test_keys_that_columns_say_of_themselves_are_keys(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    columns = [
        {"name": "id", "dataType": "BIGINT", "constraint": "PRIMARY_KEY"},
        {"name": "mail", "dataType": "TEXT", "constraint": "UNIQUE"},
    ]
    table(store, columns=columns)

    (found,) = platform.list()

    assert (found.schema.primary_key, found.schema.unique_keys) == (("id",), (("mail",),))
    assert [field.nullable for field in found.schema.fields] == [False, True]


def test_what_people_say_of_columns_and_labels_stays_when_columns_change(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    store.put("classifications", {"name": "Tier", "description": "x"})
    store.put("tags", {"name": "One", "classification": "Tier", "description": "x"})
    label = {"tagFQN": "Tier.One", "source": "Classification", "labelType": "Propagated"}
    column = {"name": "id", "dataType": "INT", "displayName": "Its number", "tags": [label]}
    held = table(store, columns=[column], tags=[label])
    (found,) = platform.list()

    document = found.to_json()
    document["schema"]["fields"][0]["description"] = "new"  # type: ignore[index,call-overload]
    document["tags"] = ["Tier.One", "gold"]
    document["extensions"] = {}
    platform.emit_dataset(LumosDataset.from_json(document))

    (after,) = held["columns"]
    assert (after["description"], after["displayName"]) == ("new", "Its number")
    assert after["tags"] == [label]
    assert label in held["tags"]


def test_the_tasks_of_a_scheduler_stay_and_come_along(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    store.put("services/pipelineServices", {"name": "Our Airflow", "serviceType": "Airflow"})
    tasks = [{"name": "read"}, {"name": "write"}]
    pipeline = {"name": "nightly", "service": "Our Airflow", "tasks": tasks}
    held, _ = store.put("pipelines", pipeline)

    (job,) = platform.list_entities("job")
    platform.apply(Batch(entities=[job.model_copy(update={"description": "Each night"})]))

    assert (held["tasks"], held["description"]) == (tasks, "Each night")
    with openmetadata_server() as (url, other), openmetadata_at(url) as target:
        target.apply(Batch(entities=[job]))
        assert other.entities["pipelines"]["Our Airflow.nightly"]["tasks"] == tasks
        assert [*target.list_entities("job")] == [job]


def test_many_threads_at_once_lose_nothing(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    shared: dict[str, object] = {
        "tags": ["gold", "Tier.One"],
        "ownership": [{"user": "ada"}, {"group": "sales"}],
        "governance": {"domains": ["sales.orders"], "glossary_terms": ["Order"]},
        "assertions": [{"name": "tidy", "kind": "custom"}],
    }
    both = [
        dataset(f"{platform_} {number}", platform=platform_, **shared)
        for number in range(6)
        for platform_ in ("s3", "snowflake")
    ]
    edges = [edge(each, both[0]) for each in both[1:]]
    with ThreadPoolExecutor(platform.CONCURRENCY) as pool:
        consumed(pool.map(platform.emit_dataset, both))
        consumed(pool.map(platform.apply, [Batch(edges=[each]) for each in edges]))

    alone = [with_parts(each, lineage=DatasetLineage()) for each in platform.list()]
    assert alone == sorted(both, key=lambda each: each.urn)
    assert [*platform.list_edges()] == sorted(edges, key=lambda each: each.key)
    assert len(store.entities["users"]) == len({"admin", "ingestion-bot", "ada"})


def test_custom_properties_are_properties_where_somebody_declared_them(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    for name, kind in (("costCenter", "string"), ("level", "integer"), ("mood", "enum")):
        reference = {"id": store.types[kind]["id"], "type": "type"}
        declared = {"name": name, "description": "x", "propertyType": reference}
        store.declare(store.types["table"]["id"], declared)
    given = {"costCenter": "42", "level": 3, "mood": "odd", "other": {"a": 1}}
    held = table(store, extension={"costCenter": "1", "mood": ["good"]})
    (found,) = platform.list()
    assert dict(found.properties) == {"costCenter": "1", "mood": ["good"]}

    changed = LumosDataset.from_json({**found.to_json(), "properties": given})
    platform.emit_dataset(changed)
    shown = {name: value for name, value in held["extension"].items() if name != "lumos"}
    assert shown == {"costCenter": "42", "level": 3, "mood": ["good"]}
    assert platform.get_dataset(found.urn) == changed

    fewer = LumosDataset.from_json({**found.to_json(), "properties": {"other": 1}})
    platform.emit_dataset(fewer)
    assert set(held["extension"]) == {"lumos", "mood"}
    assert platform.get_dataset(found.urn) == fewer


WORDS: list[tuple[str, Json, Entity]] = [
    (
        "tags",
        {"name": "gold", "classification": "Worth"},
        Tag(name="Worth.gold", description="of worth"),
    ),
    (
        "glossaryTerms",
        {"name": "net", "glossary": "Money"},
        GlossaryTerm(name="Money.net", definition="after tax"),
    ),
    ("domains", {"name": "sales", "domainType": "Aggregate"}, Domain(name="sales")),
    ("users", {"name": "ada", "email": "ada@example.org"}, User(username="ada", about_me="hi")),
    ("teams", {"name": "data", "teamType": "Group"}, Group(name="data", description="us")),
]


@pytest.mark.parametrize(("collection", "body", "word"), WORDS, ids=[word[0] for word in WORDS])
def test_what_lumos_does_not_model_of_a_word_stays_when_it_is_written(
    platform: OpenMetadataHandler,
    store: OpenMetadataStore,
    collection: str,
    body: Json,
    word: Entity,
) -> None:
    store.put("classifications", {"name": "Worth", "description": "w"})
    store.put("glossaries", {"name": "Money", "description": "m"})
    held, _ = store.put(collection, {**body, "description": "before"})
    theirs: Json = {"style": {"color": "#ffd700"}, "theirs": {"a": [1]}}
    if collection not in {"users", "teams"}:  # of those Lumos has the name for display
        theirs["displayName"] = "As people say"
    held.update(theirs)

    platform.apply(Batch(entities=[word]))

    _, now = store.by_id(held["id"])
    assert {name: now.get(name) for name in theirs} == theirs
    assert now["description"] != "before"
    assert word in [*platform.list_entities(kind_of(word))]


def nested(levels: int) -> Json:
    column: Json = {"name": "x", "dataType": "INT"}
    for _ in range(levels):
        column = {"name": "x", "dataType": "STRUCT", "children": [column]}
    return column


TWICE = [{"name": "x", "dataType": "INT"}, {"name": "x", "dataType": "STRING"}]
ODD: dict[str, Json] = {
    "no limit": {"columns": [{"name": "x", "dataType": "VARCHAR", "dataLength": -1}]},
    "no digits": {"columns": [{"name": "x", "dataType": "DECIMAL", "precision": -1, "scale": 0}]},
    "a column twice": {"columns": TWICE},
    "a member twice": {"columns": [{"name": "s", "dataType": "STRUCT", "children": TWICE}]},
    "too deep": {"columns": [nested(80)]},
    "no name": {"columns": [{"name": "", "dataType": "INT"}]},
    "no members": {"columns": [{"name": "s", "dataType": "STRUCT"}]},
    "keys of no column": {
        "columns": TWICE[:1],
        "tableConstraints": [{"constraintType": "PRIMARY_KEY"}, {"constraintType": "UNIQUE"}],
    },
    "a length of no text": {"columns": [{"name": "x", "dataType": "INT", "dataLength": 7}]},
}


@pytest.mark.parametrize("case", ODD)
def test_an_odd_table_is_read_and_moved_and_spares_the_others(
    platform: OpenMetadataHandler, store: OpenMetadataStore, case: str
) -> None:
    table(store, name="another")
    store.entities["tables"]["My Warehouse.shop.public.orders"] = {**table(store), **ODD[case]}

    found = [*platform.list()]

    assert [each.name for each in found] == ["another", "orders"]
    with openmetadata_server() as (url, other), openmetadata_at(url) as target:
        target.apply(Batch(datasets=found))
        assert [*target.list()] == found
        held = other.entities["tables"]["My Warehouse.shop.public.orders"]["columns"]
        assert len(held) <= 1
    extensions: Any = found[1].to_json().get("extensions", {})
    unread = extensions.get("openmetadata", {}).get("unreadColumns", [])
    assert bool(unread) == (case in {"a column twice", "a member twice", "too deep", "no name"})


def test_a_length_that_says_nothing_comes_to_another_server(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    columns = [{"name": "x", "dataType": "INT", "dataLength": 7}]
    table(store, columns=columns)
    with openmetadata_server() as (url, other), openmetadata_at(url) as target:
        target.apply(Batch(datasets=[*platform.list()]))
        (moved,) = other.entities["tables"]["My Warehouse.shop.public.orders"]["columns"]
    assert (moved["dataType"], moved["dataLength"]) == ("INT", 7)


KEYS: list[Json] = [
    {"constraintType": "DIST_KEY", "columns": ["id"]},
    {"constraintType": "PRIMARY_KEY", "columns": ["id"]},
    {"constraintType": "SORT_KEY", "columns": ["id", "day"]},
]
KEYED: Json = {
    "columns": [{"name": "id", "dataType": "INT"}, {"name": "day", "dataType": "DATE"}],
    "tableConstraints": KEYS,
}


def kinds(store: OpenMetadataStore) -> list[str]:
    held = store.entities["tables"]["My Warehouse.shop.public.orders"].get("tableConstraints") or []
    return sorted(each["constraintType"] for each in held)


def test_constraints_that_lumos_does_not_model_stay_and_come_to_another_server(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    table(store, **KEYED)
    (found,) = platform.list()
    assert found.schema.primary_key == ("id",)

    platform.emit_dataset(with_parts(found, tags=("gold",)))
    assert kinds(store) == ["DIST_KEY", "PRIMARY_KEY", "SORT_KEY"]
    bare = with_parts(found, extensions={}, schema={"fields": found.schema.fields[:1]})
    platform.emit_dataset(bare)
    assert kinds(store) == ["DIST_KEY"]  # the others were of a column that is gone, or of Lumos
    assert platform.get_dataset(bare.urn) == bare

    with openmetadata_server() as (url, other), openmetadata_at(url) as target:
        target.emit_dataset(found)
        assert kinds(other) == ["DIST_KEY", "PRIMARY_KEY", "SORT_KEY"]
        assert [*target.list()] == [found]


def test_what_cannot_be_written_elsewhere_is_kept_all_the_same(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    certified = {"tagLabel": {"tagFQN": "Certification.Gold"}, "expiryDate": 1_750_000_000_000}
    product = {"id": "7", "type": "dataProduct", "fullyQualifiedName": "Sales.Orders"}
    column = {"name": "id", "dataType": "INT", "extension": {"unit": "euro"}}
    held = table(store)
    config = {"profileSample": 10}
    held |= {"certification": certified, "dataProducts": [product], "tableProfilerConfig": config}
    held["columns"] = [column]

    (found,) = platform.list()

    kept: Any = found.to_json()["extensions"]["openmetadata"]  # type: ignore[call-overload,index]
    assert kept["certification"] == certified
    assert kept["dataProducts"] == ["Sales.Orders"]
    assert kept["tableProfilerConfig"] == config
    assert kept["columns"]["id"]["extension"] == {"unit": "euro"}
    with openmetadata_server() as (url, _), openmetadata_at(url) as target:
        target.emit_dataset(found)
        assert [*target.list()] == [found]


def edge_between(store: OpenMetadataStore, *, names: tuple[str, str]) -> Json:
    """Return the details of the edge between two tables of `My Warehouse`."""
    ends = [store.entities["tables"][f"My Warehouse.shop.public.{name}"]["id"] for name in names]
    details: Json = store.edges[ends[0], ends[1]]["lineageDetails"]
    return details


def test_sql_and_source_of_an_edge_are_read_and_kept_and_come_to_another_server(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    columns = [{"name": "id", "dataType": "INT"}]
    ends = [table(store, name=name, columns=columns) for name in ("a", "b")]
    references = [{"id": each["id"], "type": "table"} for each in ends]
    said = {"sqlQuery": "insert into b select * from a", "source": "QueryLineage"}
    edge_ = {"fromEntity": references[0], "toEntity": references[1], "lineageDetails": said}
    store.put_edge(edge_)

    datasets, (found,) = [*platform.list()], [*platform.list_edges()]
    assert found.provenance == "query"
    with openmetadata_server() as (url, other), openmetadata_at(url) as target:
        target.apply(Batch(datasets=datasets))
        target.apply(Batch(edges=[found]))
        assert said.items() <= edge_between(other, names=("a", "b")).items()
        assert [*target.list_edges()] == [found]
        assert [*target.list()] == datasets

    mapping = {"upstream_column": "id", "downstream_column": "id"}
    mapped = LineageEdge.from_json({**found.to_json(), "column_mappings": [mapping]})
    platform.apply(Batch(edges=[mapped]))
    now = edge_between(store, names=("a", "b"))
    assert said.items() <= now.items()
    assert len(now["columnsLineage"]) == 1
    assert [*platform.list_edges()] == [mapped]


def test_positions_of_columns_are_kept_where_the_list_has_another_order(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    columns = [
        {"name": "first", "dataType": "INT", "ordinalPosition": 1},
        {"name": "last", "dataType": "INT", "ordinalPosition": 3},
        {"name": "mid", "dataType": "INT", "ordinalPosition": 2},
    ]
    table(store, columns=columns)
    (found,) = platform.list()
    extension: Any = found.to_json()["extensions"]["openmetadata"]  # type: ignore[call-overload,index]
    assert extension["columns"] == {"last": {"ordinalPosition": 3}, "mid": {"ordinalPosition": 2}}

    with openmetadata_server() as (url, other), openmetadata_at(url) as target:
        target.emit_dataset(found)
        moved = other.entities["tables"]["My Warehouse.shop.public.orders"]["columns"]
        assert [each.get("ordinalPosition") for each in moved] == [None, 3, 2]
        assert [*target.list()] == [found]


def test_values_of_the_data_enter_no_snapshot(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    secret = "ada@example.org"
    odd = {"name": "x", "dataType": "STRING", "profile": {"min": secret, "valuesCount": 1}}
    deep = {"name": "s", "dataType": "STRUCT", "children": [odd, odd]}
    held = table(store, columns=[])
    held |= {
        "columns": [odd, odd, deep],
        "sampleData": {"columns": ["x"], "rows": [[secret]]},
        "joins": {"columnJoins": [{"joinedWith": [{"value": secret}]}]},
        "tableConstraints": "odd",
    }

    assert secret not in platform.export_all(at=AT).to_json().__repr__()


def test_glossaries_and_tests_that_others_defined_are_read_and_come_to_another_server(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    store.put("glossaries", {"name": "Money", "description": "All of it", "displayName": "Cash"})
    store.put("glossaryTerms", {"name": "net", "glossary": "Money", "description": "After tax"})
    store.put("classifications", {"name": "Worth", "description": "How much"})
    tidy: Json = {"description": "Is it tidy?", "entityType": "TABLE", "testPlatforms": ["Other"]}
    store.put("dataQuality/testDefinitions", {"name": "tidy", **tidy})
    platform.emit_dataset(dataset("a", tags=["Made.One"], governance={"glossary_terms": ["x"]}))
    known = {
        "glossaries": {"Money": {"description": "All of it", "displayName": "Cash"}},
        "classifications": {"Worth": {"description": "How much"}},
        "testDefinitions": {"tidy": tidy},
    }
    found = platform.extensions()
    assert found == {"openmetadata": known}

    with openmetadata_server() as (url, other), openmetadata_at(url) as target:
        target.apply(Batch(entities=[GlossaryTerm(name="Money.gross")]))
        target.apply(Batch(definitions=found))
        target.apply(Batch(entities=[*platform.list_entities("glossary_term")]))
        target.apply(Batch(extensions=found))
        assert other.entities["glossaries"]["Money"]["description"] == "All of it"
        assert other.entities["dataQuality/testDefinitions"]["tidy"]["description"] == "Is it tidy?"
        assert target.extensions() == found
        other.requests.clear()
        target.apply(Batch(definitions=found, extensions=found))
        assert other.writes() == []
        other.entities["glossaries"]["Money"]["description"] = "Of people"
        target.apply(Batch(definitions=found, extensions=found))
        assert other.entities["glossaries"]["Money"]["description"] == "Of people"


def test_names_that_the_ingestion_of_openmetadata_spells_out_are_read_and_found_again(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    store.put(SERVICES, {"name": "snowflake", "serviceType": "Snowflake"})
    store.put("databases", {"name": "shop", "service": "snowflake"})
    store.put("databaseSchemas", {"name": "a__reserved__arrow__b", "database": "snowflake.shop"})
    column = "Last__reserved__arrow__Year"
    body: Json = {
        "name": "Sales__reserved__colon__by__reserved__quote__day__reserved__quote__",
        "databaseSchema": "snowflake.shop.a__reserved__arrow__b",
        "columns": [{"name": column, "dataType": "INT"}],
        "tableConstraints": [{"constraintType": "PRIMARY_KEY", "columns": [column]}],
    }
    held, _ = store.put("tables", body)

    (found,) = platform.list()
    assert found.urn == Urn.of("snowflake", "shop", "a>b", 'Sales::by"day"')
    assert (found.name, found.namespace) == ('Sales::by"day"', "a>b")
    assert [field.name for field in found.schema.fields] == ["Last>Year"]
    assert found.schema.primary_key == ("Last>Year",)

    platform.emit_dataset(with_parts(found, tags=("gold",)))
    assert len(store.entities["tables"]) == 1
    assert [each["name"] for each in held["columns"]] == [column]
    assert platform.get_dataset(found.urn) == with_parts(found, tags=("gold",))


def test_a_name_with_a_word_of_the_ingestion_is_told_apart(platform: OpenMetadataHandler) -> None:
    names = ("a::b", "a__reserved__colon__b", "a__reserved__b", 'a"b', "a>b")
    given = [dataset(name, platform="snowflake") for name in names]
    platform.apply(Batch(datasets=given))
    assert {each.urn: each for each in platform.list()} == {each.urn: each for each in given}
