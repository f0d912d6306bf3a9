"""A shared DataHub with its default rules and a token that is no administrator's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from command_line import JANUARY, Lumos
from doubles.datahub_rules import mutated
from doubles.datahub_server import DataHubDouble, datahub_double
from migration_circle import compared, exported_file, import_everything, migrate

SETTINGS = "platform_config:\n  datahub:\n    gms_server: {}\n    token: dhp_bot\n"
CUSTOMERS = "urn:li:dataset:(urn:li:dataPlatform:postgres,shop.public.customers,PROD)"
BY_PEOPLE: dict[str, dict[str, Any]] = {
    "editableDatasetProperties": {"description": "As the shop sees it."},
    "globalTags": {"tags": [{"tag": "urn:li:tag:favourite"}]},
    "domains": {"domains": ["urn:li:domain:people"]},
}
TO_DATAHUB = ("sync", "--all", "--output", "datahub")


@pytest.fixture
def server(lumos: Lumos) -> Iterator[DataHubDouble]:
    with datahub_double(token="dhp_bot") as (url, double):
        Path("lumos.yaml").write_text(SETTINGS.format(url), "utf-8")
        assert not double.lists_registry
        assert double.lag
        yield double


@pytest.mark.parametrize("whole", [False, True], ids=["shop", "every concept"])
def test_everything_arrives_and_a_second_sync_sends_nothing(
    lumos: Lumos, server: DataHubDouble, whole: bool
) -> None:
    if whole:
        import_everything(lumos)
    else:
        lumos("import", JANUARY)

    first = lumos(*TO_DATAHUB, "--strict")
    server.settle()
    again = lumos(*TO_DATAHUB, "--full", "--strict")

    assert first.exit_code == 0, first.stdout
    assert again.exit_code == 0, again.stdout
    assert "sent 0 writes to datahub" in again.stdout


def test_every_concept_is_migrated_there_and_back(lumos: Lumos, server: DataHubDouble) -> None:
    before = import_everything(lumos)

    migrate(lumos, "embedded", "datahub")
    server.settle()
    migrate(lumos, "datahub", "sqlite:///back.db")

    found = compared(before, exported_file("back.db"), through={"datahub"})
    assert found.differing == ()
    assert found.equal == found.datasets


def test_nothing_that_people_set_is_changed(lumos: Lumos, server: DataHubDouble) -> None:
    curated = {"name": "The lake", "description": "Ours", "customProperties": {"team": "lake"}}
    lumos("import", JANUARY)
    lumos(*TO_DATAHUB)
    for urn in [urn for urn in server.stored if ":container:" in urn and "lumos-" not in urn]:
        server.put(urn, containerProperties=curated)
    people = {urn: dict(held) for urn, held in server.stored.items() if ":container:" in urn}
    assert "datasetProperties" in server.stored[CUSTOMERS]
    server.put(CUSTOMERS, **BY_PEOPLE)

    for option in ((), ("--full",)):
        server.settle()
        assert lumos(*TO_DATAHUB, *option).exit_code == 0

    held = {name: value for name, (value, _) in server.stored[CUSTOMERS].items()}
    assert {name: held[name] for name in BY_PEOPLE} == {
        name: mutated(name, value, None) for name, value in BY_PEOPLE.items()
    }
    assert {urn: server.stored[urn] for urn in people} == people


def test_one_forbidden_dataset_of_a_hundred_is_named_and_the_others_arrive(
    lumos: Lumos, server: DataHubDouble
) -> None:
    document = json.loads(Path(JANUARY).read_text("utf-8"))
    one = document["datasets"][0]
    document["datasets"] = [
        {**one, "urn": f"lumos://s3/lake/t{number:02}", "name": f"t{number:02}", "lineage": {}}
        for number in range(100)
    ]
    document["lineage_edges"] = []
    Path("many.json").write_text(json.dumps(document), "utf-8")
    imported = lumos("import", "many.json")
    assert imported.exit_code == 0, imported.stderr
    server.forbidden.add("urn:li:dataset:(urn:li:dataPlatform:s3,lake/t42,PROD)")

    done = lumos(*TO_DATAHUB, "--json")

    result = done.json()
    assert done.exit_code == 0
    assert result["kinds"]["dataset"]["failed"] == 1
    (failed,) = (each for each in result["report"]["items"] if each["status"] == "failed")
    assert failed["item"] == "dataset lumos://s3/lake/t42"
    assert "is unauthorized to CREATE entities" in failed["reason"]
    assert len([urn for urn in server.stored if ":dataset:" in urn]) == 99
    assert lumos(*TO_DATAHUB, "--strict").exit_code == 1


def test_tags_that_the_token_may_not_read_stay_here_and_there(
    lumos: Lumos, server: DataHubDouble
) -> None:
    lumos("import", JANUARY)
    lumos(*TO_DATAHUB)
    tagged = [urn for urn, held in server.stored.items() if "globalTags" in held]
    before = {urn: server.stored[urn]["globalTags"] for urn in tagged}
    assert CUSTOMERS in tagged
    server.hidden_aspects.add(("dataset", "globalTags"))
    server.settle()

    again = lumos(*TO_DATAHUB, "--full", "--strict")

    assert again.exit_code == 0, again.stdout
    assert "sent 0 writes to datahub" in again.stdout
    assert {urn: server.stored[urn]["globalTags"] for urn in tagged} == before
    assert "pii" in lumos("show", "customers").stdout
