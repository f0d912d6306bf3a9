"""A structured property whose definition does not take a value: nothing is lost, and it is told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import JsonValue

from doubles.datahub_server import DataHubDouble
from lumos.core.errors import PlatformError
from lumos.core.platform.batch import Batch
from lumos.core.platform.impl.datahub.handler import DataHubHandler
from lumos.core.platform.impl.datahub.writer.definitions import takes
from lumos.testing.platform_samples import dataset

HERE = "urn:li:dataset:(urn:li:dataPlatform:s3,lake/customers,PROD)"
DAYS = "urn:li:structuredProperty:days"
TEAM = "urn:li:structuredProperty:team"
OF_DATASETS: list[JsonValue] = ["urn:li:entityType:datahub.dataset"]


def definition(kind: str, **parts: object) -> dict[str, Any]:
    return {
        "qualifiedName": "days",
        "valueType": f"urn:li:dataType:datahub.{kind}",
        "cardinality": "SINGLE",
        "entityTypes": OF_DATASETS,
        **parts,
    }


def shown(server: DataHubDouble) -> dict[str, Any]:
    """Return the values that DataHub itself has."""
    aspect = server.stored[HERE].get("structuredProperties", ({"properties": []}, 0))[0]
    return {
        each["propertyUrn"]: [next(iter(value.values())) for value in each["values"]]
        for each in aspect["properties"]
    }


def test_a_value_that_its_guessed_definition_refuses_is_kept_and_told(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    platform.emit_dataset(dataset("other", properties={DAYS: 7}))
    emitted = dataset(properties={DAYS: "a week", TEAM: "blue"})

    platform.emit_dataset(emitted)

    assert shown(server) == {TEAM: ["blue"]}
    assert platform.get_dataset(emitted.urn) == emitted
    (line,) = platform.notices()
    assert DAYS in line
    assert "number" in line
    assert "a week" not in line


def test_a_value_that_fits_again_is_shown_again(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    server.put(DAYS, propertyDefinition=definition("number"))
    platform.emit_dataset(dataset(properties={DAYS: "a week"}))
    assert shown(server) == {}

    platform.emit_dataset(dataset(properties={DAYS: 7}))

    assert shown(server) == {DAYS: [7]}
    assert platform.get_dataset(dataset().urn) == dataset(properties={DAYS: 7})


def test_what_somebody_assigns_comes_before_what_is_kept(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    server.put(DAYS, propertyDefinition=definition("number"))
    platform.emit_dataset(dataset(properties={DAYS: "a week"}))
    assigned = {"propertyUrn": DAYS, "values": [{"double": 7}]}
    server.put(HERE, structuredProperties={"properties": [assigned]})

    found = platform.get_dataset(dataset().urn)

    assert found.properties[DAYS] == 7
    assert found.extensions == {}


def test_a_text_is_guessed_to_be_a_text_whatever_it_looks_like(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    platform.emit_dataset(dataset("other", properties={DAYS: "2024-01-15", TEAM: "urn:li:x:y"}))
    platform.emit_dataset(dataset(properties={DAYS: "none", TEAM: "blue"}))

    assert shown(server) == {DAYS: ["none"], TEAM: ["blue"]}
    assert platform.notices() == ()


def test_a_guess_grows_with_the_number_of_values(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    platform.emit_dataset(dataset("other", properties={TEAM: "blue"}))

    platform.emit_dataset(dataset(properties={TEAM: ["blue", "red"]}))

    assert shown(server) == {TEAM: ["blue", "red"]}
    assert server.stored[TEAM]["propertyDefinition"][0]["cardinality"] == "MULTIPLE"


def test_a_guess_that_somebody_else_changed_meanwhile_grows_all_the_same(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    platform.emit_dataset(dataset("other", properties={TEAM: "blue"}))
    guessed = server.stored[TEAM]["propertyDefinition"][0]
    server.put(TEAM, propertyDefinition={**guessed, "displayName": "Team"})

    platform.emit_dataset(dataset(properties={TEAM: ["blue", "red"]}))

    assert shown(server) == {TEAM: ["blue", "red"]}
    assert server.stored[TEAM]["propertyDefinition"][0] == {
        **guessed, "displayName": "Team", "cardinality": "MULTIPLE",
    }  # fmt: skip


def test_a_definition_of_somebody_else_is_never_changed(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    server.put(TEAM, propertyDefinition=definition("string"))
    emitted = dataset(properties={TEAM: ["blue", "red"]})

    platform.emit_dataset(emitted)

    assert server.stored[TEAM]["propertyDefinition"] == (definition("string"), 1)
    assert platform.get_dataset(emitted.urn) == emitted
    assert len(platform.notices()) == 1


def test_a_property_that_was_removed_takes_nothing(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    server.put(TEAM, propertyDefinition=definition("string"), status={"removed": True})
    emitted = dataset(properties={TEAM: "blue"})

    platform.emit_dataset(emitted)

    assert platform.get_dataset(emitted.urn) == emitted
    (line,) = platform.notices()
    assert "removed" in line


def test_a_name_that_datahub_has_no_property_for_takes_nothing(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    odd = "urn:li:structuredProperty:with a space"
    emitted = dataset(properties={odd: "x", TEAM: "blue"})

    platform.emit_dataset(emitted)

    assert shown(server) == {TEAM: ["blue"]}
    assert odd not in server.stored
    assert platform.get_dataset(emitted.urn) == emitted
    assert len(platform.notices()) == 1


def test_a_true_definition_that_a_guess_refuses_is_kept_until_it_can_be_written(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    platform.emit_dataset(dataset("other", properties={DAYS: 7}))
    guessed = server.stored[DAYS]["propertyDefinition"]
    true = definition("date", description="Kept until then.")
    extension: JsonValue = {"entities": {DAYS: {"propertyDefinition": ["+", true]}}}

    platform.apply(Batch(definitions={"datahub": extension}))
    platform.emit_dataset(dataset(properties={DAYS: "2024-01-15"}))
    platform.apply(Batch(extensions={"datahub": extension}))

    assert server.stored[DAYS]["propertyDefinition"] == guessed
    assert platform.extensions()["datahub"] == extension
    assert platform.get_dataset(dataset().urn).properties[DAYS] == "2024-01-15"
    assert {DAYS in line for line in platform.notices()} == {True}

    del server.stored[DAYS]
    platform.apply(Batch(definitions={"datahub": extension}))
    platform.emit_dataset(dataset(properties={DAYS: "2024-01-15"}))
    platform.apply(Batch(extensions={"datahub": extension}))

    assert server.stored[DAYS]["propertyDefinition"][0] == true
    assert shown(server) == {DAYS: ["2024-01-15"]}
    assert platform.extensions()["datahub"] == extension


CASES: list[tuple[Mapping[str, JsonValue], JsonValue, bool]] = [
    (definition("string"), "x", True),
    (definition("string"), 7, False),
    (definition("rich_text"), "**x**", True),
    (definition("number"), 7.5, True),
    (definition("number"), "7", False),
    (definition("date"), "2024-02-29", True),
    (definition("date"), "2023-02-29", False),
    (definition("urn"), "urn:li:corpuser:ada", True),
    (definition("urn"), "ada", False),
    (
        definition("urn", typeQualifier={"allowedTypes": ["urn:li:entityType:datahub.corpGroup"]}),
        "urn:li:corpuser:ada",
        False,
    ),
    (
        definition("urn", typeQualifier={"allowedTypes": ["urn:li:entityType:datahub.corpGroup"]}),
        "urn:li:corpGroup:data",
        True,
    ),
    (definition("string", allowedValues=[{"value": {"string": "a"}}]), "a", True),
    (definition("string", allowedValues=[{"value": {"string": "a"}}]), "b", False),
    (definition("string"), ["a", "b"], False),
    (definition("string"), ["a"], True),
    (definition("string", cardinality="MULTIPLE"), ["a", "b"], True),
    (definition("colour"), "red", True),
]


@pytest.mark.parametrize(("defined", "value", "fits"), CASES)
def test_what_a_definition_takes_is_what_the_server_takes(
    platform: DataHubHandler,
    server: DataHubDouble,
    defined: Mapping[str, JsonValue],
    value: JsonValue,
    fits: bool,
) -> None:
    server.put(DAYS, propertyDefinition=dict(defined))

    assert takes(defined, value) is fits
    values = [
        {"string": each} if isinstance(each, str) else {"double": each}
        for each in (value if isinstance(value, list) else [value])
    ]
    body = [
        {
            "urn": HERE,
            "structuredProperties": {
                "value": {"properties": [{"propertyUrn": DAYS, "values": values}]}
            },
        }
    ]
    if fits:
        platform._http.json("POST", "openapi/v3/entity/dataset", body=body)
    else:
        with pytest.raises(PlatformError):
            platform._http.json("POST", "openapi/v3/entity/dataset", body=body)
