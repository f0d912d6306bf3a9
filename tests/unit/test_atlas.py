"""The adapter of Apache Atlas: what people do there counts, and its traps catch nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from pydantic import JsonValue

import strategies
from doubles.atlas_server import AtlasServer, atlas_at
from doubles.atlas_store import Json, business_metadata, obj, objs
from lumos.core.errors import (
    ConfigurationError,
    PlatformAuthError,
    PlatformError,
    PlatformUnavailableError,
)
from lumos.core.models import (
    DatasetKind,
    DatasetLineage,
    GlossaryTerm,
    Job,
    LumosDataset,
    Tag,
    Urn,
    with_parts,
)
from lumos.core.platform.batch import Batch
from lumos.core.platform.batches import dataset_or_none
from lumos.core.platform.fidelity import CONCEPTS, Fidelity
from lumos.core.platform.impl.atlas import client
from lumos.core.platform.impl.atlas.handler import AtlasHandler
from lumos.core.platform.impl.atlas.mapping.columns import field_of, key_columns
from lumos.core.platform.impl.atlas.mapping.datasets import DatasetParts, dataset_entity, dataset_of
from lumos.core.platform.impl.atlas.mapping.names import classification_name, term_name
from lumos.core.platform.impl.atlas.mapping.typedefs import COLUMN, DATASET, EDGE
from lumos.core.platform.threads import mapped
from lumos.testing.platform_samples import AT, dataset, edge, rich_dataset


@pytest.fixture
def server() -> Iterator[AtlasServer]:
    with AtlasServer() as server:
        yield server


@pytest.fixture
def atlas(server: AtlasServer) -> Iterator[AtlasHandler]:
    with atlas_at(server) as platform:
        yield platform


def of_type(server: AtlasServer, name: str) -> list[Json]:
    return [each for each in server.store.entities.values() if each["typeName"] == name]


def attributes(server: AtlasServer, dataset: LumosDataset) -> Json:
    found = server.store.find(DATASET, str(dataset.urn))
    assert found is not None
    return obj(found["attributes"])


@settings(deadline=None)
@given(one=strategies.datasets())
def test_entities_give_back_the_dataset_they_were_made_of(one: LumosDataset) -> None:
    plain = with_parts(one, lineage=DatasetLineage())
    made = dataset_entity(one)
    fields = [field_of(each.entity, each.tags, terms=each.terms) for each in made.columns]

    keys = key_columns(each.entity for each in made.columns)
    parts = DatasetParts(fields, made.head.tags, made.head.terms, keys)
    assert dataset_of(made.head.entity, parts) == plain


def test_atlas_shows_what_it_has_a_place_for(server: AtlasServer, atlas: AtlasHandler) -> None:
    atlas.emit_dataset(rich_dataset())

    shown = attributes(server, rich_dataset())
    assert shown["description"] == "All who ever bought"
    assert shown["owner"] == "finance-team"
    assert shown["domains"] == ["sales"]
    assert shown["rowCount"] == 45_000_000
    columns = {obj(each["attributes"])["name"]: each for each in of_type(server, COLUMN)}
    assert obj(columns["orders"]["attributes"])["dataType"] == "ARRAY<STRUCT<total: DECIMAL(10)>>"
    assert [each["typeName"] for each in objs(columns["customer_id"]["classifications"])] == ["key"]
    assert [each["name"] for each in server.store.terms.values()] == ["Customer"]


def test_what_is_the_same_is_not_written_again(server: AtlasServer, atlas: AtlasHandler) -> None:
    one = with_parts(rich_dataset(), lineage={"upstream": [dataset("raw").urn]})
    atlas.emit_dataset(one)
    atlas.apply(Batch(entities=[Tag(name="gold", description="best")]))
    before = server.store.writes
    with atlas_at(server) as later:
        later.emit_dataset(one)
        later.apply(Batch(entities=[Tag(name="gold", description="best")]))

    assert server.store.writes == before


def test_what_people_edited_in_atlas_wins_over_the_stash(
    server: AtlasServer, atlas: AtlasHandler
) -> None:
    atlas.emit_dataset(rich_dataset())
    shown = attributes(server, rich_dataset())
    shown["description"] = "By hand"
    shown["owner"] = "grace"
    found = atlas.get_dataset(rich_dataset().urn)

    assert found.documentation.description == "By hand"
    assert found.documentation.business_context == "Billing"
    assert {owner.name for owner in found.ownership.owners} == {"grace", "ada"}
    assert found.statistics == rich_dataset().statistics


def test_labels_custom_and_business_attributes_are_kept_verbatim(
    server: AtlasServer, atlas: AtlasHandler
) -> None:
    audit = business_metadata("Audit", attribute="year", kind="int", applies_to="DataSet")
    server.store.define(audit, anew=True)
    own: JsonValue = {
        "labels": ["checked"],
        "customAttributes": {"room": "7"},
        "businessAttributes": {"Audit": {"year": 2024}},
        "unknown": [1, None],
    }
    one = dataset(extensions={"atlas": own})
    atlas.emit_dataset(dataset())
    atlas.emit_dataset(one)

    held = of_type(server, DATASET)[0]
    assert (held["labels"], held["customAttributes"]) == (["checked"], {"room": "7"})
    assert held["businessAttributes"] == {"Audit": {"year": 2024}}
    assert atlas.get_dataset(one.urn) == one
    atlas.emit_dataset(dataset())
    assert (held["labels"], held["businessAttributes"]) == ([], {})


def test_a_classification_that_came_down_the_lineage_is_no_tag(
    server: AtlasServer, atlas: AtlasHandler
) -> None:
    source, target = dataset("source"), dataset("target", tags=["own"])
    atlas.emit_dataset(source)
    atlas.emit_dataset(target)
    atlas.apply(Batch(edges=[edge(source, target)]))
    server.store.define({"classificationDefs": [{"name": "PII"}]}, anew=True)
    found = server.store.find(DATASET, str(source.urn))
    assert found is not None
    server.store.classify(str(found["guid"]), [{"typeName": "PII"}])

    assert atlas.get_dataset(source.urn).tags == ("PII",)
    assert atlas.get_dataset(target.urn).tags == ("own",)


def test_tags_that_are_written_stay_with_their_dataset(
    server: AtlasServer, atlas: AtlasHandler
) -> None:
    atlas.emit_dataset(rich_dataset())
    atlas.emit_dataset(dataset("customers", tags=["gold", "new"]))

    held = objs(of_type(server, DATASET)[0]["classifications"])
    assert {(each["typeName"], each["propagate"]) for each in held} == {
        ("gold", False),
        ("new", False),
    }


@pytest.mark.parametrize("name", ["DataSet", "hive_table", "lumos_dataset", "a-b", "1st", "a "])
def test_a_tag_whose_name_atlas_cannot_take_is_still_a_tag(
    server: AtlasServer, atlas: AtlasHandler, name: str
) -> None:
    one = dataset(tags=[name])
    atlas.emit_dataset(one)
    atlas.apply(Batch(entities=[Tag(name=name, description="why")]))
    with atlas_at(server) as other:
        assert other.get_dataset(one.urn) == one
        assert [*other.list_entities("tag")] == [Tag(name=name, description="why")]


def test_a_tag_defined_by_another_process_meanwhile_is_found(
    server: AtlasServer, atlas: AtlasHandler
) -> None:
    atlas.emit_dataset(dataset("first", tags=["x"]))
    with atlas_at(server) as other:
        other.emit_dataset(dataset("second", tags=["a-b", "gold"]))
        other.apply(Batch(entities=[GlossaryTerm(name="Customer", definition="buys")]))
    atlas.emit_dataset(dataset("third", tags=["gold"]))

    assert atlas.get_dataset(dataset("second").urn).tags == ("a-b", "gold")


def test_what_people_defined_keeps_its_attributes(server: AtlasServer, atlas: AtlasHandler) -> None:
    theirs: Json = {"name": "PII", "attributeDefs": [{"name": "level"}], "options": {"x": "y"}}
    server.store.define({"classificationDefs": [theirs]}, anew=True)
    assert [*atlas.list_entities("tag")] == [Tag(name="PII")]
    atlas.apply(Batch(entities=[Tag(name="PII", description="personal")]))

    held = server.store.types["PII"]
    assert held["attributeDefs"] == [{"name": "level"}]
    assert obj(held["options"])["x"] == "y"
    assert [*atlas.list_entities("tag")] == [Tag(name="PII", description="personal")]


def test_removed_columns_go_and_those_that_stay_keep_their_identity(
    server: AtlasServer, atlas: AtlasHandler
) -> None:
    two = [{"name": name, "type": "STRING"} for name in ("keep", "drop")]
    atlas.emit_dataset(dataset(schema={"fields": two}))
    guids = {obj(each["attributes"])["name"]: each["guid"] for each in of_type(server, COLUMN)}
    atlas.emit_dataset(dataset(schema={"fields": two[:1]}))

    states = {each["guid"]: each["status"] for each in of_type(server, COLUMN)}
    assert states == {guids["keep"]: "ACTIVE", guids["drop"]: "DELETED"}


def test_a_neighbour_that_is_not_there_is_a_placeholder_until_it_comes(
    server: AtlasServer, atlas: AtlasHandler
) -> None:
    late = dataset("late")
    atlas.emit_dataset(dataset("early", lineage={"upstream": [late.urn]}))
    assert [one.name for one in atlas.list()] == ["early"]
    assert dataset_or_none(atlas, late.urn) is None
    atlas.emit_dataset(late)

    assert len(of_type(server, DATASET)) == 2
    assert atlas.get_dataset(late.urn).lineage.downstream == (dataset("early").urn,)


def test_what_is_deleted_can_be_purged(server: AtlasServer) -> None:
    with atlas_at(server, purge=True) as atlas:
        atlas.emit_dataset(dataset("a"))
        atlas.apply(Batch(edges=[edge(dataset("a"), dataset("b"))]))
        atlas.delete(dataset("a").urn)

    assert of_type(server, EDGE) == []
    assert [obj(each["attributes"])["placeholder"] for each in of_type(server, DATASET)] == [True]


@pytest.mark.parametrize("markers", [True, False])
def test_a_listing_goes_through_all_pages_of_a_search(
    monkeypatch: pytest.MonkeyPatch, markers: bool
) -> None:
    monkeypatch.setattr(client, "SEARCH_PAGE", 2)
    with AtlasServer(markers=markers) as server, atlas_at(server, table_types=[]) as atlas:
        for name in "abcde":
            atlas.emit_dataset(dataset(name))
            atlas.apply(Batch(entities=[GlossaryTerm(name=name)]))
        server.requests.clear()

        assert [one.name for one in atlas.list()] == [*"abcde"]
        assert server.requests.count(("POST", "v2/search/basic")) == 3
        assert [
            str(getattr(term, "name", "")) for term in atlas.list_entities("glossary_term")
        ] == [*"abcde"]


def test_a_stash_that_was_broken_by_hand_stops_no_export(
    server: AtlasServer, atlas: AtlasHandler
) -> None:
    atlas.emit_dataset(rich_dataset())
    attributes(server, rich_dataset())["lumosStash"] = "{"
    (found,) = atlas.export_all(at=AT).datasets

    assert found.documentation.description == "All who ever bought"


def test_long_text_is_shown_in_part_and_kept_whole(
    server: AtlasServer, atlas: AtlasHandler
) -> None:
    one = dataset(documentation={"description": "é" * 40_000})
    atlas.emit_dataset(one)

    assert len(str(attributes(server, one)["description"]).encode()) <= 30_000
    assert atlas.get_dataset(one.urn) == one


def test_a_wrong_password_is_one_clear_line(server: AtlasServer) -> None:
    with (
        atlas_at(server, password="secret-word") as atlas,
        pytest.raises(PlatformAuthError) as caught,
    ):
        next(iter(atlas.list()), None)

    assert "secret-word" not in f"{caught.value} {caught.value.hint}"
    assert "the username and the password are not accepted" in caught.value.message
    assert "token" not in f"{caught.value.message} {caught.value.hint}"


def test_a_server_that_is_down_is_one_clear_line(server: AtlasServer, atlas: AtlasHandler) -> None:
    server.stop()
    with pytest.raises(PlatformUnavailableError, match="cannot be reached"):
        atlas.get_dataset(dataset().urn)


@pytest.mark.parametrize(
    "config",
    [
        {"url": "nowhere"},
        {"adress": "http://x"},
        {"url": "http://x", "attempts": 0},
        {"url": "http://x", "glossary": "acme.org"},
        {"url": "http://x", "glossary": "terms@acme"},
    ],
)
def test_wrong_settings_are_refused(config: dict[str, JsonValue]) -> None:
    with pytest.raises(ConfigurationError, match="atlas"):
        AtlasHandler.from_config(config)


def test_every_concept_has_a_fate_and_none_is_dropped() -> None:
    assert {*AtlasHandler.FIDELITY} == {*CONCEPTS}
    assert Fidelity.DROPPED not in AtlasHandler.FIDELITY.values()


def test_names_that_atlas_takes_stay_as_they_are() -> None:
    assert classification_name("PII.email") == "PII.email"
    assert term_name("Customer (active)") == "Customer (active)"
    assert term_name("a.b") != term_name("a@b")


def put_hive_table(server: AtlasServer) -> None:
    server.store.define({"classificationDefs": [{"name": "PII"}]}, anew=True)
    columns: list[Json] = [
        {
            "typeName": "hive_column",
            "guid": f"-{number}",
            "attributes": {
                "qualifiedName": f"sales.orders.{name}@prod",
                "name": name,
                "type": kind,
                "comment": "what it cost" if name == "total" else None,
                "position": number,
            },
            "classifications": [{"typeName": "PII"}] if name == "email" else [],
        }
        for number, (name, kind) in enumerate(
            [("total", "decimal(10,2)"), ("email", "string"), ("odd", "interval")], start=2
        )
    ]
    table: Json = {
        "typeName": "hive_table",
        "guid": "-1",
        "attributes": {
            "qualifiedName": "sales.orders@prod",
            "name": "orders",
            "owner": "etl",
            "comment": "All orders",
            "tableType": "VIRTUAL_VIEW",
            "createTime": 1_700_000_000_000,
        },
        "relationshipAttributes": {"columns": [{"guid": each["guid"]} for each in columns]},
        "labels": ["checked"],
    }
    server.store.put([table, *columns])


def test_tables_that_others_wrote_are_read(server: AtlasServer, atlas: AtlasHandler) -> None:
    put_hive_table(server)
    (found,) = atlas.list()

    assert found == atlas.get_dataset(found.urn)
    assert (found.urn, found.name, found.kind) == (
        "lumos://hive/sales.orders@prod",
        "orders",
        DatasetKind.VIEW,
    )
    assert [each.signature() for each in found.schema.fields] == [
        "DECIMAL(10,2)",
        "STRING",
        "UNKNOWN",
    ]
    assert found.schema.fields[0].description == "what it cost"
    assert found.schema.fields[1].tags == ("PII",)
    assert found.schema.fields[2].native_type == "interval"
    assert found.documentation.description == "All orders"
    assert [owner.name for owner in found.ownership.owners] == ["etl"]
    own = found.to_json()["extensions"]
    assert obj(obj(obj(own)["atlas"])["attributes"])["createTime"] == 1_700_000_000_000
    assert obj(obj(own)["atlas"])["labels"] == ["checked"]


def test_tables_that_others_wrote_are_neither_changed_nor_deleted(
    server: AtlasServer, atlas: AtlasHandler
) -> None:
    put_hive_table(server)
    (found,) = atlas.list()
    with pytest.raises(PlatformError, match="not written by Lumos"):
        atlas.delete(found.urn)
    changed = with_parts(found, documentation={"description": "mine"})
    atlas.emit_dataset(changed)

    assert [*atlas.list()] == [changed]
    (table,) = of_type(server, "hive_table")
    assert obj(table["attributes"])["comment"] == "All orders"
    assert table["status"] == "ACTIVE"


def test_a_placeholder_does_not_hide_a_table_that_others_wrote(
    server: AtlasServer, atlas: AtlasHandler
) -> None:
    put_hive_table(server)
    (found,) = atlas.list()
    atlas.emit_dataset(dataset("report", lineage={"upstream": [found.urn]}))

    assert [one.name for one in atlas.list()] == ["orders", "report"]
    assert atlas.get_dataset(dataset("report").urn).lineage.upstream == (found.urn,)


def test_lineage_that_others_wrote_is_read(server: AtlasServer, atlas: AtlasHandler) -> None:
    put_hive_table(server)
    table = "lumos://hive/sales.orders@prod"
    atlas.emit_dataset(dataset("report"))
    atlas.apply(Batch(edges=[edge(dataset("raw"), dataset("report"))]))
    atlas.apply(
        Batch(
            entities=[Job(urn=Urn.of("airflow", "load"), name="load", inputs=(dataset("raw").urn,))]
        )
    )
    ends = {
        name: {"guid": of_type(server, type_name)[0]["guid"]}
        for name, type_name in (("inputs", "hive_table"), ("outputs", DATASET))
    }
    column: Json = {"guid": of_type(server, "hive_column")[0]["guid"]}
    attributes: Json = {
        "qualifiedName": "sales.orders@prod:1",
        "name": "load",
        "inputs": [ends["inputs"], column],
        "outputs": [ends["outputs"]],
    }
    server.store.put([{"typeName": "hive_process", "guid": "-1", "attributes": attributes}])

    found = [each for each in atlas.list_edges() if each.provenance == "atlas"]
    assert [(each.upstream_urn, each.downstream_urn, each.job_urn) for each in found] == [
        (table, dataset("report").urn, "lumos://hive/sales.orders@prod:1")
    ]
    assert len([*atlas.list_edges()]) == 2
    assert atlas.get_dataset(table).lineage.downstream == (dataset("report").urn,)
    assert atlas.get_dataset(dataset("report").urn).lineage.upstream == (
        table,
        dataset("raw").urn,
    )


def test_datasets_that_name_each_other_may_be_written_at_once(atlas: AtlasHandler) -> None:
    names = [f"t{number:02}" for number in range(12)]
    circle = [
        dataset(name, tags=[name, "x-y"], lineage={"upstream": [dataset(before).urn]})
        for before, name in zip((names[-1], *names), names, strict=False)
    ]
    assert [*mapped(atlas.emit_dataset, circle, workers=atlas.CONCURRENCY)] == [None] * len(names)

    found = {one.name: one for one in atlas.list()}
    assert sorted(found) == names
    assert all(found[one.name].lineage.upstream == one.lineage.upstream for one in circle)
    assert all(found[one.name].tags == one.tags for one in circle)
