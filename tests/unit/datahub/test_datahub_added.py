"""What the server adds to aspects when they are written is no change that somebody made."""

from __future__ import annotations

from typing import Any

import pytest

from doubles.datahub_server import DataHubDouble
from lumos.core.models import with_parts
from lumos.core.platform.impl.datahub.handler import DataHubHandler
from lumos.core.platform.impl.datahub.mapping.added_by_server import without_added
from lumos.core.platform.impl.datahub.mapping.structured import PREFIX
from lumos.testing.platform_samples import dataset, rich_dataset

HERE = "urn:li:dataset:(urn:li:dataPlatform:s3,lake/customers,PROD)"
SALES, SHOP = "urn:li:domain:sales", "urn:li:domain:shop"
BY_ADA = {"time": 1, "actor": "urn:li:corpuser:ada", "sourceDetail": {"propagated": "true"}}


def test_a_dataset_reads_as_it_was_written_and_is_not_written_again(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    platform.emit_dataset(rich_dataset())
    held = server.stored[HERE]
    assert held["ownership"][0]["ownerTypes"]
    assert held["domains"][0]["domainAssociations"] == [{"domain": SALES}]
    assert any("entityUrn" in aspects.get("assertionInfo", ({},))[0] for aspects in
               server.stored.values())  # fmt: skip

    assert platform.get_dataset(rich_dataset().urn) == rich_dataset()
    assert platform.extensions() == {}
    server.requests.clear()
    platform.emit_dataset(rich_dataset())

    assert [target for _, target, _ in server.requests if "async" in target] == []


def test_owners_and_domains_that_are_taken_away_read_as_none(platform: DataHubHandler) -> None:
    platform.emit_dataset(rich_dataset())
    plain = with_parts(rich_dataset(), ownership=[], governance={})

    platform.emit_dataset(plain)

    assert platform.get_dataset(plain.urn) == plain


def test_who_put_a_dataset_into_a_domain_is_kept_when_domains_change(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    domains = {"domainAssociations": [{"domain": SALES, "attribution": BY_ADA}], "domains": [SALES]}
    server.put(HERE, datasetProperties={"name": "customers"}, domains=domains)
    found = platform.get_dataset(dataset().urn)
    assert found.governance.domains == ("sales",)

    platform.emit_dataset(with_parts(found, governance={"domains": ["sales", "shop"]}))

    stored = server.stored[HERE]["domains"][0]
    assert {each["domain"] for each in stored["domainAssociations"]} == {SALES, SHOP}
    assert {"domain": SALES, "attribution": BY_ADA} in stored["domainAssociations"]
    assert platform.get_dataset(found.urn).governance.domains == ("sales", "shop")


@pytest.mark.parametrize(
    ("name", "aspect"),
    [
        ("ownership", {"owners": [], "ownerTypes": {"urn:li:ownershipType:x": ["urn:li:a:b"]}}),
        ("domains", {"domains": [SALES], "domainAssociations": [{"domain": SHOP}]}),
        ("assertionInfo", {"customAssertion": {"entity": "a"}, "entityUrn": "b"}),
        ("ownership", {"owners": [], "ownerTypes": "odd"}),
        ("domains", {"domains": None, "domainAssociations": {"odd": 1}}),
        ("other", {"ownerTypes": {}}),
    ],
)
def test_what_the_server_would_not_add_stays(name: str, aspect: Any) -> None:
    if aspect.get("ownerTypes") == "odd" or aspect.get("domains", 1) is None:
        assert without_added(name, aspect) is not None
    else:
        assert without_added(name, aspect) == aspect


def definition(name: str, **parts: object) -> dict[str, Any]:
    return {
        "qualifiedName": name,
        "valueType": "urn:li:dataType:datahub.string",
        "cardinality": "SINGLE",
        "entityTypes": ["urn:li:entityType:datahub.dataset"],
        **parts,
    }


@pytest.mark.parametrize(
    "defined",
    [
        definition("team", allowedPlatforms=["urn:li:dataPlatform:postgres"]),
        definition("team", allowedValues=[{"value": {"string": "x"}}]),
    ],
    ids=["other platforms", "other values"],
)
def test_a_property_that_does_not_take_a_value_costs_no_dataset(
    platform: DataHubHandler, server: DataHubDouble, defined: dict[str, Any]
) -> None:
    server.put(f"{PREFIX}team", propertyDefinition=defined)
    emitted = dataset(properties={f"{PREFIX}team": "blue"})

    platform.emit_dataset(emitted)

    assert "structuredProperties" not in server.stored[HERE]
    assert platform.get_dataset(emitted.urn) == emitted
    assert len(platform.notices()) == 1


def test_a_text_that_is_too_long_for_the_index_is_kept(platform: DataHubHandler) -> None:
    emitted = dataset(properties={f"{PREFIX}team": "ä" * 16_384})

    platform.emit_dataset(emitted)

    assert platform.get_dataset(emitted.urn) == emitted


def test_a_property_whose_name_collides_with_another_is_kept_and_told_with_the_reason(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    server.put(f"{PREFIX}shop.team", propertyDefinition=definition("shop.team"))
    emitted = dataset(properties={f"{PREFIX}shop_team": "blue", f"{PREFIX}other": "red"})

    platform.emit_dataset(emitted)

    assert f"{PREFIX}other" in server.stored
    assert platform.get_dataset(emitted.urn) == emitted
    (line,) = platform.notices()
    assert "shop_team could not be defined" in line
    assert "search field of another one" in line


def test_a_property_that_may_not_be_defined_is_kept(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    server.forbidden_aspects.add(("structuredproperty", "propertyDefinition"))
    emitted = dataset(properties={f"{PREFIX}team": "blue"})

    platform.emit_dataset(emitted)

    assert platform.get_dataset(emitted.urn) == emitted
    assert "unauthorized" in platform.notices()[0]


def test_an_immutable_property_stays_as_it_was_assigned_and_all_else_is_written(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    server.put(f"{PREFIX}team", propertyDefinition=definition("team", immutable=True))
    platform.emit_dataset(dataset(properties={f"{PREFIX}team": "blue"}))

    platform.emit_dataset(dataset(properties={f"{PREFIX}team": "red"}, tags=["gold"]))
    assert platform.get_dataset(dataset().urn).tags == ("gold",)
    assert platform.get_dataset(dataset().urn).properties[f"{PREFIX}team"] == "blue"
    assert "immutable" in platform.notices()[0]

    platform.emit_dataset(dataset(tags=["silver"]))
    assert platform.get_dataset(dataset().urn).tags == ("silver",)
