"""A sync leaves alone what people did in DataHub, as somebody at a terminal sees it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from command_line import JANUARY, Lumos
from doubles.datahub_rules import mutated
from doubles.datahub_server import datahub_double
from lumos.core.platform.batch import Seen
from lumos.core.platform.impl.datahub.handler import DataHubHandler

CUSTOMERS = "urn:li:dataset:(urn:li:dataPlatform:postgres,shop.public.customers,PROD)"
BY = {"time": 0, "actor": "urn:li:corpuser:jo"}
TERM = {"terms": [{"urn": "urn:li:glossaryTerm:Human"}], "auditStamp": BY}
BY_HAND: dict[str, Any] = {
    "editableDatasetProperties": {"description": "By hand."},
    "editableSchemaMetadata": {
        "editableSchemaFieldInfo": [
            {"fieldPath": "country", "description": "Where.", "glossaryTerms": TERM}
        ]
    },
    "domains": {"domains": ["urn:li:domain:retail"]},
    "glossaryTerms": TERM,
    "deprecation": {"deprecated": True, "note": "old", "actor": "urn:li:corpuser:jo"},
    "structuredProperties": {
        "properties": [
            {"propertyUrn": "urn:li:structuredProperty:days", "values": [{"string": "90"}]}
        ]
    },
}


def test_terms_domains_and_properties_of_people_outlast_a_new_column(lumos: Lumos) -> None:
    with datahub_double() as (url, double):
        Path("lumos.yaml").write_text(f"platform_config:\n  datahub:\n    gms_server: {url}\n")
        lumos("import", JANUARY)
        assert lumos("sync", "--all", "--output", "datahub").exit_code == 0
        double.put(CUSTOMERS, **BY_HAND)

        document = json.loads(Path(JANUARY).read_text("utf-8"))
        (customers,) = (each for each in document["datasets"] if each["name"] == "customers")
        customers["schema"]["fields"].append({"name": "added", "type": "STRING"})
        Path("newer.json").write_text(json.dumps(document), "utf-8")
        lumos("import", "newer.json")
        assert "sent 1 write" in lumos("sync", "--all", "--output", "datahub").stdout

        held = {name: value for name, (value, _) in double.stored[CUSTOMERS].items()}
        stored = {name: mutated(name, value, None) for name, value in BY_HAND.items()}
        assert {name: held.get(name) for name in BY_HAND} == stored
        assert "added" in [field["fieldPath"] for field in held["schemaMetadata"]["fields"]]


def test_what_both_sides_changed_is_named(lumos: Lumos) -> None:
    with datahub_double() as (url, double):
        Path("lumos.yaml").write_text(f"platform_config:\n  datahub:\n    gms_server: {url}\n")
        lumos("import", JANUARY)
        assert lumos("sync", "--all", "--output", "datahub").exit_code == 0
        double.put(CUSTOMERS, editableDatasetProperties={"description": "By hand."})
        document = json.loads(Path(JANUARY).read_text("utf-8"))
        (customers,) = (each for each in document["datasets"] if each["name"] == "customers")
        customers["documentation"]["description"] = "By Lumos."
        Path("newer.json").write_text(json.dumps(document), "utf-8")
        lumos("import", "--overwrite", "newer.json")

        told = lumos("sync", "--all", "--output", "datahub").stdout
        assert "[warn] 1 part changed on both sides; the catalog's state was kept:\n" in told
        assert f"  {customers['urn']} documentation:description\n" in told


@pytest.mark.parametrize("also_changed_here", [False, True])
def test_a_tag_set_between_look_up_and_write_stays(
    lumos: Lumos, monkeypatch: pytest.MonkeyPatch, also_changed_here: bool
) -> None:
    """People do not wait for a sync: what they do after it looked, and before it writes, stays."""
    with datahub_double() as (url, double):
        Path("lumos.yaml").write_text(f"platform_config:\n  datahub:\n    gms_server: {url}\n")
        lumos("import", JANUARY)
        assert lumos("sync", "--all", "--output", "datahub").exit_code == 0
        document = json.loads(Path(JANUARY).read_text("utf-8"))
        (customers,) = (each for each in document["datasets"] if each["name"] == "customers")
        customers["schema"]["fields"].append({"name": "added", "type": "STRING"})
        customers["tags"] = [*customers["tags"], *(["new"] if also_changed_here else [])]
        Path("newer.json").write_text(json.dumps(document), "utf-8")
        lumos("import", "newer.json")

        look_up = DataHubHandler.find_datasets
        edits = [("by-hand",)]

        def looked_up(handler: DataHubHandler, urns: Sequence[str]) -> dict[str, Seen]:
            found = look_up(handler, urns)
            for names in edits:
                tags = double.stored[CUSTOMERS]["globalTags"][0]["tags"]
                added = [{"tag": f"urn:li:tag:{name}"} for name in names]
                double.put(CUSTOMERS, globalTags={"tags": [*tags, *added]})
            edits.clear()
            return found

        monkeypatch.setattr(DataHubHandler, "find_datasets", looked_up)
        assert lumos("sync", "--all", "--output", "datahub", "--strict").exit_code == 0

        held = {name: value for name, (value, _) in double.stored[CUSTOMERS].items()}
        expected = {*customers["tags"], "by-hand"}
        tags = {each["tag"].removeprefix("urn:li:tag:") for each in held["globalTags"]["tags"]}
        assert tags == expected
        assert "added" in [field["fieldPath"] for field in held["schemaMetadata"]["fields"]]


def test_a_first_sync_overwrites_no_words_of_people_on_groups_tags_and_users(lumos: Lumos) -> None:
    group, tag = "urn:li:corpGroup:sales-data", "urn:li:tag:pii"
    with datahub_double() as (url, double):
        Path("lumos.yaml").write_text(f"platform_config:\n  datahub:\n    gms_server: {url}\n")
        empty: dict[str, Any] = {"admins": [], "members": [], "groups": []}
        double.put(group, corpGroupInfo={**empty, "description": "By hand."})
        double.put(tag, tagProperties={"name": "pii", "description": "By law."})
        lumos("import", JANUARY)
        assert lumos("sync", "--all", "--output", "datahub").exit_code == 0

        held = double.stored[group]["corpGroupInfo"][0]
        assert (held["description"], held["members"]) == ("By hand.", ["urn:li:corpuser:ada"])
        assert double.stored[tag]["tagProperties"][0]["description"] == "By law."
        again = lumos("sync", "--all", "--full", "--output", "datahub").stdout
        assert "sent 0 writes" in again


@pytest.mark.parametrize(
    "command",
    [
        ("sync", "--all", "--output", "datahub"),
        ("import", "given.json", "--platform", "datahub"),
        ("migrate", "--from", "embedded", "--to", "datahub"),
    ],
    ids=lambda command: command[0],
)
def test_a_value_that_the_catalog_does_not_take_is_told_in_one_line(
    lumos: Lumos, command: Sequence[str]
) -> None:
    days = "urn:li:structuredProperty:days"
    number = {"qualifiedName": "days", "valueType": "urn:li:dataType:datahub.number"}
    document = json.loads(Path(JANUARY).read_text("utf-8"))
    document["datasets"][0]["properties"] = {days: "a week"}
    Path("given.json").write_text(json.dumps(document), "utf-8")
    with datahub_double() as (url, double):
        Path("lumos.yaml").write_text(f"platform_config:\n  datahub:\n    gms_server: {url}\n")
        double.put(days, propertyDefinition={**number, "entityTypes": []})
        lumos("import", "given.json")

        outcome = lumos(*command)

    assert outcome.exit_code == 0, outcome
    (line,) = (line for line in outcome.stdout.splitlines() if days in line)
    assert line.startswith(f"[warn] datahub: {days} is for one number there")
    assert "a week" not in outcome.stdout
