"""The adapter of Atlas on the real thing: Atlas 2.1.0 with its graph and its index."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from pydantic import JsonValue
from typing_extensions import override

from atlas_server import HIDDEN, OF_SERVER, RealAtlas
from doubles.atlas_store import business_metadata
from lumos.core.errors import PlatformAuthError, PlatformError, PlatformForbiddenError
from lumos.core.models import DatasetKind, Domain, LumosDataset, Urn
from lumos.core.platform.batch import Batch
from lumos.core.platform.batches import dataset_or_none
from lumos.core.platform.impl.atlas.handler import AtlasHandler
from lumos.core.platform.impl.atlas.mapping.names import BUILT_IN_TYPES
from lumos.core.platform.impl.atlas.mapping.typedefs import DATASET
from lumos.core.platform.interface import MetadataPlatformInterface
from lumos.core.platform.threads import mapped
from lumos.testing.platform_contract import PlatformContract
from lumos.testing.platform_samples import dataset, edge, rich_dataset
from ports import closed_port

SECRET = dataset(f"{HIDDEN} table")
_MANY = 10_000
_SOME = 100
_WRITES = {
    "test_a_dataset_is_found_by_what_it_says": "one dataset",
    "test_what_it_does_not_say_does_not_find_it": "one dataset",
    "test_no_query_is_an_error_or_harms": "one dataset",
    "test_a_listing_is_complete_and_in_order": "seven datasets",
}
"""Tests that write the same and nothing else: between two of them, nothing need be removed."""
_before: dict[str, str] = {}


@pytest.fixture(scope="module")
def http(real_atlas: RealAtlas) -> Iterator[httpx2.Client]:
    """What speaks to the server besides the adapter."""
    with httpx2.Client(
        base_url=f"{real_atlas.url}/api/atlas/",
        auth=(real_atlas.username, real_atlas.password),
        timeout=120,
    ) as client:
        yield client
        _empty(client)  # a server that was named is left as it was found


@pytest.fixture
def emptied(
    real_atlas: RealAtlas, http: httpx2.Client, request: pytest.FixtureRequest
) -> RealAtlas:
    """The server without entities, and without tags and terms that somebody defined."""
    writes = _WRITES.get(request.function.__name__, "")
    if not writes or writes != _before.get("writes"):
        _empty(http)
    _before["writes"] = writes
    return real_atlas


@pytest.fixture
def atlas(emptied: RealAtlas) -> Iterator[AtlasHandler]:
    with AtlasHandler.from_config({**emptied.config(), "attempts": 1}) as platform:
        yield platform


class TestAtlas(PlatformContract):
    @pytest.fixture
    @override
    def platform(self, atlas: AtlasHandler) -> AtlasHandler:
        return atlas

    @pytest.fixture
    @override
    def broken_platform(self, platform: MetadataPlatformInterface) -> MetadataPlatformInterface:
        platform.emit_dataset(dataset())
        return AtlasHandler.from_config({"url": f"http://127.0.0.1:{closed_port()}", "attempts": 1})


def test_labels_custom_and_business_attributes_are_kept_verbatim(
    atlas: AtlasHandler, http: httpx2.Client
) -> None:
    _define(http, business_metadata("Audit", attribute="year", kind="int", applies_to="DataSet"))
    own = {
        "labels": ["checked"],
        "customAttributes": {"room": "7"},
        "businessAttributes": {"Audit": {"year": 2024}},
        "unknown": [1, None],
    }
    one, created = dataset(extensions={"atlas": own}), dataset("new", extensions={"atlas": own})
    atlas.emit_dataset(dataset())
    atlas.emit_dataset(one)
    atlas.emit_dataset(created)

    for each in (one, created):
        held = _held(http, each)
        assert (held["labels"], held["customAttributes"]) == (["checked"], {"room": "7"})
        assert held["businessAttributes"] == {"Audit": {"year": 2024}}
        assert atlas.get_dataset(each.urn) == each
    atlas.emit_dataset(dataset())
    assert not _held(http, one).get("labels")
    assert atlas.get_dataset(one.urn) == dataset()


def test_what_people_edited_in_atlas_wins_over_the_stash(
    atlas: AtlasHandler, http: httpx2.Client
) -> None:
    atlas.emit_dataset(rich_dataset())
    edited = {"description": "By hand", "owner": "grace"}
    key = {"attr:qualifiedName": str(rich_dataset().urn)}
    body = {"entity": {"typeName": DATASET, "attributes": edited}}
    changed = http.put(f"v2/entity/uniqueAttribute/type/{DATASET}", params=key, json=body)
    changed.raise_for_status()

    found = atlas.get_dataset(rich_dataset().urn)
    assert found.documentation.description == "By hand"
    assert found.documentation.business_context == "Billing"
    assert {owner.name for owner in found.ownership.owners} == {"grace", "ada"}
    assert found.statistics == rich_dataset().statistics


def test_a_classification_that_came_down_the_lineage_is_no_tag(
    atlas: AtlasHandler, http: httpx2.Client
) -> None:
    source, target = dataset("source"), dataset("target", tags=["own"])
    atlas.emit_dataset(source)
    atlas.emit_dataset(target)
    atlas.apply(Batch(edges=[edge(source, target)]))
    types = {"classificationDefs": [{"name": "Theirs", "superTypes": [], "attributeDefs": []}]}
    http.post("v2/types/typedefs", json=types).raise_for_status()
    guid = _held(http, source)["guid"]
    http.post(
        f"v2/entity/guid/{guid}/classifications", json=[{"typeName": "Theirs", "propagate": True}]
    ).raise_for_status()

    carried = {each["typeName"] for each in _held(http, target)["classifications"]}
    assert carried == {"own", "Theirs"}
    assert atlas.get_dataset(source.urn).tags == ("Theirs",)
    assert atlas.get_dataset(target.urn).tags == ("own",)


def test_tables_and_lineage_of_a_hook_are_read_and_left_alone(
    atlas: AtlasHandler, http: httpx2.Client
) -> None:
    atlas.emit_dataset(dataset("report"))
    _put_hive_table(http, to=_held(http, dataset("report"))["guid"])
    table = Urn.of("hive", "sales.orders@prod")

    found = atlas.get_dataset(table)
    assert (found.name, found.kind) == ("orders", DatasetKind.VIEW)
    assert [each.signature() for each in found.schema.fields] == ["DECIMAL(10,2)", "STRING"]
    assert found.schema.fields[0].description == "what it cost"
    assert found.documentation.description == "All orders"
    assert found.lineage.downstream == (dataset("report").urn,)
    assert [each.urn for each in atlas.list()] == [table, dataset("report").urn]
    (line,) = atlas.list_edges()
    assert (line.upstream_urn, line.downstream_urn) == (table, dataset("report").urn)
    with pytest.raises(PlatformError, match="not written by Lumos"):
        atlas.delete(table)


def test_what_is_deleted_can_be_purged(emptied: RealAtlas, http: httpx2.Client) -> None:
    one, two = rich_dataset("one"), rich_dataset("two")
    with AtlasHandler.from_config({**emptied.config(), "purge": True}) as atlas:
        atlas.emit_dataset(one)
        atlas.emit_dataset(two)
        guid = _held(http, one)["guid"]
        atlas.apply(Batch(edges=[edge(one, two)]))
        atlas.delete(one.urn)

        assert http.get(f"v2/entity/guid/{guid}").status_code == httpx2.codes.NOT_FOUND
        assert [*atlas.list()] == [two]


def test_a_wrong_password_is_one_clear_line(real_atlas: RealAtlas) -> None:
    config = {**real_atlas.config(), "password": "secret-word"}
    with AtlasHandler.from_config(config) as atlas, pytest.raises(PlatformAuthError) as caught:
        atlas.reached()

    assert "secret-word" not in f"{caught.value} {caught.value.hint}"


@pytest.fixture
def steward(atlas: AtlasHandler, emptied: RealAtlas) -> Iterator[AtlasHandler]:
    """The adapter with the rights of Atlas's role DATA_STEWARD, where the types of Lumos are."""
    atlas.apply(Batch(datasets=[dataset("one"), dataset("two"), SECRET]))
    with AtlasHandler.from_config({**emptied.stewards_config(), "attempts": 1}) as platform:
        yield platform


def test_what_a_login_may_not_read_is_noted_and_all_else_is_listed(
    atlas: AtlasHandler, steward: AtlasHandler
) -> None:
    hidden = Domain(name=f"{HIDDEN} one")
    atlas.apply(Batch(entities=[Domain(name="sales"), hidden]))
    atlas.apply(Batch(edges=[edge(dataset("one"), dataset("two")), edge(dataset("one"), SECRET)]))

    assert [one.name for one in steward.list()] == ["one", "two"]
    assert [*steward.list_entities("domain")] == [Domain(name="sales")]
    assert [*steward.list_edges()] == [edge(dataset("one"), dataset("two"))]
    kinds = {each.kind for each in steward.unreadable()}
    assert kinds == {"dataset", "domain", "lineage_edge"}
    assert all(isinstance(each.error, PlatformForbiddenError) for each in steward.unreadable())


def test_one_that_a_login_may_not_write_leaves_the_whole_request_undone(
    steward: AtlasHandler,
) -> None:
    new, forbidden = dataset("new"), dataset(f"{HIDDEN} new")
    with pytest.raises(PlatformForbiddenError, match="not authorized"):
        steward.apply(Batch(datasets=[new, forbidden]))
    with pytest.raises(PlatformForbiddenError, match="not authorized"):
        steward.get_dataset(SECRET.urn)

    assert dataset_or_none(steward, new.urn) is None
    steward.emit_dataset(new)
    assert steward.get_dataset(new.urn) == new


def test_tags_that_a_login_may_not_define_are_kept_beside(
    steward: AtlasHandler, http: httpx2.Client
) -> None:
    one = dataset("mine", tags=["never defined by anybody"])
    steward.emit_dataset(one)

    assert steward.get_dataset(one.urn) == one
    assert not _held(http, one).get("classifications")


def test_a_tag_may_be_called_like_a_type_of_values(atlas: AtlasHandler) -> None:
    names = (*sorted(BUILT_IN_TYPES),)
    atlas.emit_dataset(dataset(tags=names))

    assert atlas.get_dataset(dataset().urn).tags == names


@pytest.mark.parametrize(
    "own",
    [
        {"labels": ["two words", "ok"]},
        {"customAttributes": {"two words": "1", "ok": "2"}},
        {"businessAttributes": {"OnHive": {"by": "ada"}}},
        {"businessAttributes": {"OnData": {"by": "a" * 51}}},
    ],
)
def test_what_atlas_has_rules_against_is_kept_beside(
    atlas: AtlasHandler, http: httpx2.Client, own: JsonValue
) -> None:
    for name, type_name in (("OnHive", "hive_table"), ("OnData", "DataSet")):
        _define(http, business_metadata(name, attribute="by", kind="string", applies_to=type_name))
    new, old = (dataset(name, extensions={"atlas": own}) for name in ("new", "old"))
    atlas.emit_dataset(dataset("old"))

    atlas.apply(Batch(datasets=[new, old]))

    assert [*atlas.list()] == [new, old]


def test_many_datasets_go_in_at_once_and_none_is_written_twice(
    atlas: AtlasHandler, http: httpx2.Client
) -> None:
    many = [rich_dataset(f"table {number:02}") for number in range(16)]
    atlas.apply(Batch(datasets=many))
    times = {each.urn: _held(http, each)["updateTime"] for each in many[::4]}
    atlas.apply(Batch(datasets=many))

    assert [*atlas.list()] == many
    assert {each.urn: _held(http, each)["updateTime"] for each in many[::4]} == times


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


def _held(http: httpx2.Client, one: LumosDataset) -> dict[str, Any]:
    key = {"attr:qualifiedName": str(one.urn)}
    found = http.get(f"v2/entity/uniqueAttribute/type/{DATASET}", params=key).raise_for_status()
    entity: dict[str, Any] = found.json()["entity"]
    return entity


def _define(http: httpx2.Client, definitions: dict[str, JsonValue]) -> None:
    """Define types; what is there already stays."""
    answer = http.post("v2/types/typedefs", json=definitions)
    assert answer.status_code in {httpx2.codes.OK, httpx2.codes.CONFLICT}


def _put_hive_table(http: httpx2.Client, *, to: str) -> None:
    """Write a table with columns as the hook of Hive does, and a process from it to a dataset."""
    columns = [
        {
            "typeName": "hive_column",
            "guid": f"-{number}",
            "attributes": {
                "qualifiedName": f"sales.orders.{name}@prod",
                "name": name,
                "type": kind,
                "comment": comment,
                "position": number,
            },
            "relationshipAttributes": {"table": {"guid": "-1", "typeName": "hive_table"}},
        }
        for number, (name, kind, comment) in enumerate(
            [("total", "decimal(10,2)", "what it cost"), ("email", "string", None)], start=2
        )
    ]
    table = {
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
    }
    process = {
        "typeName": "hive_process",
        "guid": "-9",
        "attributes": {
            "qualifiedName": "sales.orders@prod:1",
            "name": "load",
            "inputs": [{"guid": "-1", "typeName": "hive_table"}],
            "outputs": [{"guid": to, "typeName": DATASET}],
        },
    }
    body = {"entities": [table, *columns, process], "referredEntities": {}}
    http.post("v2/entity/bulk", json=body).raise_for_status()


def _empty(http: httpx2.Client) -> None:
    """Delete whatever a test wrote; types that Lumos defines for itself stay."""
    guids = _guids(http, without_deleted=True)
    for start in range(0, len(guids), _SOME):
        params = {"guid": guids[start : start + _SOME]}
        http.delete("v2/entity/bulk", params=params).raise_for_status()
    for glossary in http.get("v2/glossary").raise_for_status().json():
        if any(map(_is_defined, _terms(http, glossary["guid"]))):
            http.delete(f"v2/glossary/{glossary['guid']}").raise_for_status()
    types = http.get("v2/types/typedefs", params={"type": "classification"}).raise_for_status()
    for each in types.json()["classificationDefs"]:
        if each.get("options", {}).get("lumosImplied") != "true":
            _remove_classification(http, each["name"])


def _remove_classification(http: httpx2.Client, name: str) -> None:
    path = f"v2/types/typedef/name/{quote(name, safe='')}"
    gone = http.delete(path)
    if gone.status_code == httpx2.codes.CONFLICT:  # what was deleted still carries it
        http.put("admin/purge", json=_guids(http, without_deleted=False)).raise_for_status()
        gone = http.delete(path)
    gone.raise_for_status()


def _guids(http: httpx2.Client, *, without_deleted: bool) -> list[str]:
    asked = {
        "typeName": "Referenceable",
        "excludeDeletedEntities": without_deleted,
        "limit": _MANY,
    }
    found = http.post("v2/search/basic", json=asked).raise_for_status().json()
    entities = found.get("entities", ())
    return [each["guid"] for each in entities if each["typeName"] not in OF_SERVER]


def _terms(http: httpx2.Client, glossary: str) -> list[dict[str, object]]:
    found = http.get(f"v2/glossary/{glossary}/terms", params={"limit": _MANY}).raise_for_status()
    return [*found.json()]


def _is_defined(term: dict[str, object]) -> bool:
    more = term.get("additionalAttributes")
    return not isinstance(more, dict) or more.get("lumosImplied") != "true"
