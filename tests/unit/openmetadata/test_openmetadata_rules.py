"""What the default rules of a server do not allow is stashed, and never costs the dataset."""

from __future__ import annotations

import pytest

from doubles.openmetadata_server import openmetadata_at
from doubles.openmetadata_store import Json, OpenMetadataStore
from doubles.openmetadata_tests import RefusedError
from lumos.core.errors import PlatformConflictError, PlatformError
from lumos.core.models import GlossaryTerm, Group, LumosDataset, User, with_parts
from lumos.core.platform.batch import Batch, Seen
from lumos.core.platform.entities import name_of
from lumos.core.platform.fidelity import Fidelity, FidelityCount
from lumos.core.platform.impl.openmetadata.handler import OpenMetadataHandler
from lumos.testing.platform_samples import AT, dataset

ORDERS = "snowflake.default.lake.orders"


def orders(**parts: object) -> LumosDataset:
    return dataset("orders", platform="snowflake", **parts)


def held(store: OpenMetadataStore) -> Json:
    return store.entities["tables"][ORDERS]


def names(table: Json, field: str) -> list[str]:
    return [each["name"] for each in table.get(field) or []]


def labels(entity: Json) -> list[str]:
    return [each["tagFQN"] for each in entity.get("tags") or []]


OWNERS = [
    ([{"user": "ada"}, {"user": "bob"}], ["ada", "bob"]),
    ([{"group": "shop"}], ["shop"]),
    ([{"user": "ada"}, {"group": "shop"}, {"user": "bob"}], ["ada", "bob"]),
    ([{"group": "shop"}, {"group": "sales"}], ["sales"]),
]


@pytest.mark.parametrize(("owners", "shown"), OWNERS)
@pytest.mark.parametrize("together", [True, False], ids=["bulk", "alone"])
def test_owners_are_users_or_one_team_and_the_others_are_stashed(
    platform: OpenMetadataHandler,
    store: OpenMetadataStore,
    owners: list[Json],
    shown: list[str],
    together: bool,
) -> None:
    both = [orders(ownership=owners), dataset("other", platform="snowflake", ownership=owners)]
    for chunk in [both] if together else [[each] for each in both]:
        platform.apply(Batch(datasets=chunk))

    assert names(held(store), "owners") == shown
    assert platform.get_dataset(both[0].urn) == both[0]
    store.requests.clear()
    platform.apply(Batch(datasets=both))
    assert store.writes() == []


def test_the_team_that_people_chose_stays_the_owner(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    platform.emit_dataset(orders(ownership=[{"user": "ada"}, {"group": "shop"}]))
    held(store)["owners"] = [store.reference("teams", store.entities["teams"]["shop"])]

    platform.emit_dataset(orders(ownership=[{"user": "ada"}, {"group": "shop"}], tags=["gold"]))

    assert names(held(store), "owners") == ["shop"]


def test_there_is_one_domain_and_the_one_that_people_chose_stays(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    given = orders(governance={"domains": ["finance", "sales"]})
    platform.emit_dataset(given)
    assert names(held(store), "domains") == ["finance"]
    assert platform.get_dataset(given.urn) == given

    held(store)["domains"] = [store.reference("domains", store.entities["domains"]["sales"])]
    platform.emit_dataset(with_parts(given, tags=("gold",)))
    assert names(held(store), "domains") == ["sales"]


def test_what_the_rules_do_not_allow_is_counted_as_stashed_before_it_is_written() -> None:
    counted = FidelityCount()
    both: Json = {"governance": {"domains": ["finance", "sales"]}}
    counted.add_dataset(orders(ownership=[{"user": "ada"}, {"group": "shop"}], **both))
    counted.add_dataset(orders(ownership=[{"group": "a"}, {"group": "b"}, {"group": "c"}]))
    counted.add_dataset(orders(ownership=[{"user": "ada"}, {"user": "bob"}]))

    rows = counted.report(OpenMetadataHandler).rows
    assert {(row.concept, row.fidelity, row.count) for row in rows} == {
        ("dataset", Fidelity.NATIVE, 3),
        ("owner", Fidelity.TRANSFORMED, 4),
        ("owner", Fidelity.STASHED, 3),
        ("domain", Fidelity.NATIVE, 1),
        ("domain", Fidelity.STASHED, 1),
    }


def test_rules_that_a_server_has_turned_off_are_not_applied(
    store: OpenMetadataStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("doubles.openmetadata_store.check_rules", lambda *_: None)
    with openmetadata_at(store.url, entity_rules=False) as platform:
        platform.emit_dataset(
            orders(
                ownership=[{"user": "ada"}, {"group": "shop"}],
                governance={"domains": ["finance", "sales"]},
            )
        )
    assert names(held(store), "owners") == ["shop", "ada"]
    assert names(held(store), "domains") == ["finance", "sales"]


def test_of_tags_that_exclude_each_other_one_is_shown(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    column = {"name": "id", "type": "STRING", "pii": True, "tags": ["PII.NonSensitive", "key"]}
    inner = {"name": "s", "type": "STRUCT", "fields": [column]}
    given = orders(tags=["Tier.Tier1", "Tier.Tier2", "gold"], schema={"fields": [column, inner]})

    platform.emit_dataset(given)

    assert labels(held(store)) == ["Tier.Tier1", "lumos.gold"]
    first, second = held(store)["columns"]
    assert labels(first) == labels(second["children"][0]) == ["PII.NonSensitive", "lumos.key"]
    assert platform.get_dataset(given.urn) == given
    store.requests.clear()
    platform.emit_dataset(given)
    assert store.writes() == []

    held(store)["tags"][0]["tagFQN"] = "Tier.Tier2"  # as people chose
    platform.emit_dataset(with_parts(given, version="2.0.0"))
    assert labels(held(store)) == ["Tier.Tier2", "lumos.gold"]


def test_a_disabled_tag_and_a_team_that_may_own_nothing_are_stashed(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    store.entities["tags"]["Tier.Tier1"]["disabled"] = True
    store.put("teams", {"name": "Sales Department", "teamType": "Department"})
    given = orders(tags=["Tier.Tier1", "gold"], ownership=[{"group": "Sales Department"}])

    platform.emit_dataset(given)

    assert (labels(held(store)), names(held(store), "owners")) == (["lumos.gold"], [])
    assert platform.get_dataset(given.urn) == given


def test_a_field_that_a_rule_of_the_server_refuses_is_reported_with_its_message(
    platform: OpenMetadataHandler, store: OpenMetadataStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def one_term(collection: str, entity: Json, before: Json | None = None) -> None:
        terms = [each for each in entity.get("tags") or [] if each["source"] == "Glossary"]
        if collection == "tables" and len(terms) > 1:
            raise RefusedError(400, "Rule [Tables can only have a single Glossary Term] failed")

    monkeypatch.setattr("doubles.openmetadata_store.check_rules", one_term)
    given = orders(
        governance={"glossary_terms": ["Order", "Revenue"], "domains": ["sales"]},
        documentation={"description": "All orders"},
        ownership=[{"user": "ada"}],
    )
    platform.emit_dataset(given)
    platform.emit_dataset(with_parts(given, version="2.0.0"))

    assert (labels(held(store)), names(held(store), "owners")) == ([], ["ada"])
    assert names(held(store), "domains") == ["sales"]
    assert held(store)["description"] == "All orders"
    assert platform.get_dataset(given.urn) == with_parts(given, version="2.0.0")
    (notice,) = platform.notices()
    assert notice.startswith(
        f"openmetadata: tags was not written, and is kept beside it, of {ORDERS}"
    )
    assert "Rule [Tables can only have a single Glossary Term] failed" in notice


def test_what_a_dataset_cannot_do_without_is_refused_with_the_message_of_the_server(
    platform: OpenMetadataHandler, store: OpenMetadataStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(collection: str, entity: Json, before: Json | None = None) -> None:
        if collection == "tables":
            raise RefusedError(400, "Rule [No tables] validation failed")

    monkeypatch.setattr("doubles.openmetadata_store.check_rules", never)
    with pytest.raises(PlatformError, match=r"\(400\): Rule \[No tables\] validation failed"):
        platform.emit_dataset(orders(tags=["gold"]))


def test_terms_of_one_name_in_a_glossary_are_kept_apart(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    terms = [
        GlossaryTerm(name="Finance.Revenue", definition="What comes in"),
        GlossaryTerm(name="Finance.Sales.revenue", definition="Another", parent="Finance.Sales"),
        GlossaryTerm(name="Finance.Sales.revenue.Net", definition="After tax"),
        GlossaryTerm(name="Order", definition="What is bought"),
        GlossaryTerm(name="order", definition="Their sequence"),
    ]
    platform.apply(Batch(entities=terms))
    used = orders(governance={"glossary_terms": ["Finance.Sales.revenue", "Order", "order"]})
    platform.emit_dataset(used)

    listed = {name_of(each): each for each in platform.list_entities("glossary_term")}
    assert [listed[each.name] for each in terms] == terms
    assert len(labels(held(store))) == len(used.governance.glossary_terms)
    assert platform.get_dataset(used.urn) == used
    store.requests.clear()
    platform.apply(Batch(entities=terms))
    platform.emit_dataset(used)
    assert store.writes() == []


def test_a_result_that_the_server_fails_at_is_reported_and_the_dataset_is_written(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    checked = orders(
        schema={"fields": [{"name": "id", "type": "INT64"}]},
        assertions=[{"name": "id is set", "kind": "not_null", "column": "id"}],
        quality={"checks": [{"name": "id is set", "status": "FAILED", "timestamp": AT}]},
    )
    platform.emit_dataset(checked)
    platform.delete(checked.urn)  # the incident of its test case stays open

    platform.emit_dataset(with_parts(checked, tags=("gold",)))

    (notice,) = platform.notices()
    assert "testCaseResult was not written" in notice
    assert "the incident belongs to another test case" in notice
    assert platform.get_dataset(checked.urn) == with_parts(checked, tags=("gold",))
    store.requests.clear()
    platform.emit_dataset(with_parts(checked, tags=("gold",)))
    assert store.writes() == []


def test_what_the_server_came_with_is_not_listed_and_not_changed(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    assert [*platform.list_entities("user")] == []
    before = {name: dict(store.entities["users"][name]) for name in ("admin", "ingestion-bot")}
    boss = User(username="admin", about_me="Mine", email="me@example.org")

    platform.apply(Batch(entities=[boss]))
    platform.emit_dataset(orders(ownership=[{"user": "admin"}]))

    assert {name: store.entities["users"][name] for name in before} == before
    assert [*platform.list_entities("user")] == [boss]
    assert names(held(store), "owners") == ["admin"]


def test_what_a_table_inherits_or_derives_is_not_its_own(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    platform.emit_dataset(orders(governance={"glossary_terms": ["Order"]}, tags=["gold"]))
    store.put("users", {"name": "eve", "email": "eve@example.org"})
    store.put("domains", {"name": "all", "domainType": "Aggregate", "description": "x"})
    service = store.entities["services/databaseServices"]["snowflake"]
    service["owners"] = [store.reference("users", store.entities["users"]["eve"])]
    service["domains"] = [store.reference("domains", store.entities["domains"]["all"])]
    term = store.entities["glossaryTerms"]["lumos.Order"]
    term["tags"] = [{"tagFQN": "Tier.Tier1", "source": "Classification", "labelType": "Manual"}]

    found = platform.get_dataset(orders().urn)
    assert (found.ownership.owners, found.governance.domains, found.tags) == ((), (), ("gold",))
    assert [*platform.list()] == [found]

    platform.emit_dataset(with_parts(found, ownership=[{"user": "ada"}], tags=("silver",)))
    assert names(held(store), "owners") == ["ada"]
    assert labels(held(store)) == ["lumos.silver", "lumos.Order"]


def test_members_of_teams_are_read(platform: OpenMetadataHandler, store: OpenMetadataStore) -> None:
    store.put("users", {"name": "eve", "email": "eve@example.org"})
    store.put("teams", {"name": "data", "teamType": "Group"})
    eve, data = store.entities["users"]["eve"], store.entities["teams"]["data"]
    everybody = store.reference("teams", store.entities["teams"]["Organization"])
    eve["teams"] = [everybody, store.reference("teams", data)]
    data["users"] = [store.reference("users", eve)]

    assert [*platform.list_entities("user")] == [
        User(username="eve", email="eve@example.org", teams=("data",))
    ]
    assert [*platform.list_entities("group")] == [Group(name="data", members=("eve",))]


def test_an_address_that_the_server_does_not_change_is_stashed(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    platform.apply(Batch(entities=[User(username="ada", email="ada@example.org")]))
    moved = User(username="ada", email="ada@elsewhere.example.org")
    platform.apply(Batch(entities=[moved]))

    assert store.entities["users"]["ada"]["email"] == "ada@example.org"
    assert [*platform.list_entities("user")] == [moved]


@pytest.mark.parametrize("count", [1, 2], ids=["alone", "bulk"])
def test_a_table_that_somebody_makes_after_it_was_looked_up_is_not_written_over(
    platform: OpenMetadataHandler,
    store: OpenMetadataStore,
    monkeypatch: pytest.MonkeyPatch,
    count: int,
) -> None:
    given = [orders(documentation={"description": "Of Lumos"}), dataset("b", platform="snowflake")]
    platform.emit_dataset(dataset("first", platform="snowflake"))
    seen: dict[str, Seen] = platform.find_datasets([each.urn for each in given])
    theirs: Json = {"name": "orders", "databaseSchema": "snowflake.default.lake", "columns": []}
    kind = "post" if count == 1 else "put"
    write = getattr(store, kind)

    def beaten(collection: str, body: Json) -> object:
        if collection == "tables" and ORDERS not in store.entities["tables"]:
            OpenMetadataStore.put(store, "tables", {**theirs, "description": "Of people"})
        return write(collection, body)

    monkeypatch.setattr(store, kind, beaten)
    with pytest.raises(PlatformConflictError):
        platform.apply(Batch(datasets=given[:count]), seen)

    assert held(store)["description"] == "Of people"
