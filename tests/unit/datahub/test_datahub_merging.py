"""What others say in DataHub stays where Lumos writes, and whoever writes in between keeps it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pytest
from pydantic import JsonValue

from doubles.datahub_server import DataHubDouble
from lumos.core.errors import PlatformConflictError
from lumos.core.models import Domain, GlossaryTerm, Group, Job, Tag, Urn, User
from lumos.core.platform.batch import Batch, Seen
from lumos.core.platform.http import RetryPolicy
from lumos.core.platform.impl.datahub.handler import DataHubHandler
from lumos.core.platform.impl.datahub.mapping.stash import KEY
from lumos.core.platform.impl.datahub.settings import DataHubSettings
from lumos.core.platform.interface import Entity, kind_of
from lumos.testing.platform_samples import dataset

QUICK = RetryPolicy(attempts=3, first_wait=0.001, longest_wait=0.002)


def writes(server: DataHubDouble) -> list[str]:
    return [target for method, target, _ in server.requests if "async=" in target]


class Case(NamedTuple):
    """An entity as it is found and as it is to become, and how it stands in DataHub."""

    known: Entity
    wanted: Entity
    there: str
    aspect: str
    held: dict[str, JsonValue]


CHANGED = {"members", "definition", "customProperties"}
CASES = [
    Case(
        Tag(name="gold"),
        Tag(name="gold", description="of worth"),
        "urn:li:tag:gold",
        "tagProperties",
        {"name": "Gold!", "colorHex": "#ffd700"},
    ),
    Case(
        GlossaryTerm(name="Order"),
        GlossaryTerm(name="Order", definition="what was bought"),
        "urn:li:glossaryTerm:Order",
        "glossaryTermInfo",
        {
            "name": "Order",
            "definition": "",
            "termSource": "EXTERNAL",
            "sourceUrl": "https://example.org",
            "customProperties": {"theirs": "1"},
        },
    ),
    Case(
        Domain(name="Sales"),
        Domain(name="Sales", description="all of it"),
        "urn:li:domain:Sales",
        "domainProperties",
        {"name": "Verkauf", "created": {"time": 7, "actor": "urn:li:corpuser:ada"}},
    ),
    Case(
        Group(name="data", members=("ada",)),
        Group(name="data", members=("ada", "ben")),
        "urn:li:corpGroup:data",
        "corpGroupInfo",
        {
            "admins": [],
            "members": ["urn:li:corpuser:ada"],
            "groups": ["urn:li:corpGroup:all"],
            "created": {"time": 7, "actor": "urn:li:corpuser:ada"},
        },
    ),
    Case(
        User(username="ada"),
        User(username="ada", title="Analyst"),
        "urn:li:corpuser:ada",
        "corpUserInfo",
        {"active": False, "system": False, "theirs": {"a": [1]}},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=[case.aspect for case in CASES])
def test_what_lumos_does_not_model_of_an_aspect_stays_when_it_is_written(
    platform: DataHubHandler, server: DataHubDouble, case: Case
) -> None:
    known, wanted, there, aspect, held = case
    server.put(there, **{aspect: held})
    kind = kind_of(wanted)
    assert [*platform.list_entities(kind)] == [known]

    for entity in (wanted, known):
        platform.apply(Batch(entities=[entity]))
        assert [*platform.list_entities(kind)] == [entity]
        stored = dict(server.stored[there][aspect][0])
        custom = {**stored.pop("customProperties", {})}
        custom.pop(KEY, None)
        stays = {name: value for name, value in held.items() if name not in CHANGED}
        assert {name: stored.get(name) for name in stays} == stays
        assert custom == held.get("customProperties", {})


def test_an_entity_that_is_as_it_should_be_is_not_written(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    platform.apply(Batch(entities=[User(username="ada", title="Analyst", skills=("sql",))]))
    server.requests.clear()
    platform.apply(Batch(entities=[User(username="ada", title="Analyst", skills=("sql",))]))

    assert writes(server) == []


def test_what_people_wrote_of_a_user_stays_unless_something_else_is_said(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    there = "urn:li:corpuser:ada"
    edited = {"displayName": "Ada L.", "skills": ["sql"], "teams": [], "slack": "@ada"}
    server.put(there, corpUserInfo={"active": True}, corpUserEditableInfo=edited)

    platform.apply(Batch(entities=[User(username="ada", skills=("python",))]))
    assert server.stored[there]["corpUserEditableInfo"][0] == {**edited, "skills": ["python"]}
    platform.apply(
        Batch(entities=[User(username="ada", skills=("python",), display_name="Countess")])
    )
    assert [user.display_name for user in platform.list_entities("user")] == ["Countess"]  # type: ignore[union-attr]
    assert server.stored[there]["corpUserEditableInfo"][0]["slack"] == "@ada"


def test_of_a_job_ends_that_it_no_longer_has_go_and_what_others_say_stays(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    job = Job(
        urn=Urn.of("airflow", "daily", "load"), name="load", orchestrator="airflow",
        flow_id="daily", job_id="load", inputs=(dataset("one").urn, dataset("two").urn),
    )  # fmt: skip
    platform.apply(Batch(entities=[job]))
    (there,) = (urn for urn in server.stored if urn.startswith("urn:li:dataJob:"))
    ends = server.stored[there]["dataJobInputOutput"][0]
    edges = [{"destinationUrn": urn, "properties": {"by": "hand"}} for urn in ends["inputDatasets"]]
    server.put(
        there,
        dataJobInfo={**server.stored[there]["dataJobInfo"][0], "externalUrl": "https://e.org"},
        dataJobInputOutput={
            "inputDatasets": [], "outputDatasets": [], "inputDatasetEdges": edges,
            "inputDatajobs": ["urn:li:dataJob:theirs"],
        },
    )  # fmt: skip
    platform.apply(Batch(entities=[job]))
    assert server.stored[there]["dataJobInputOutput"][0]["inputDatasetEdges"] == edges

    smaller = job.model_copy(update={"inputs": (dataset("two").urn,)})
    platform.apply(Batch(entities=[smaller]))

    assert [*platform.list_entities("job")] == [smaller]
    stored = server.stored[there]["dataJobInputOutput"][0]
    assert [edge["properties"] for edge in stored["inputDatasetEdges"]] == [{"by": "hand"}]
    assert stored["inputDatajobs"] == ["urn:li:dataJob:theirs"]
    assert server.stored[there]["dataJobInfo"][0]["externalUrl"] == "https://e.org"


def test_owners_that_are_added_in_between_stay(
    running: tuple[str, DataHubDouble], platform: DataHubHandler
) -> None:
    urn = dataset().urn
    platform.emit_dataset(dataset())
    names = ["ada", "ben", "cleo", "dan"]
    original = platform.find_datasets
    waiting = [*names[:3]]

    def found_early(urns: Sequence[str]) -> dict[str, Seen]:
        found = original(urns)
        if waiting:
            with DataHubHandler(DataHubSettings(gms_server=running[0]), retries=QUICK) as other:
                other.emit_ownership(urn, waiting.pop())
        return found

    platform.find_datasets = found_early  # type: ignore[method-assign]
    platform.emit_ownership(urn, names[3], "DATA_STEWARD")

    owners = platform.get_dataset(urn).ownership.owners
    assert {owner.user for owner in owners} == {*names}
    assert {owner.type for owner in owners if owner.user == "dan"} == {"DATA_STEWARD"}


def test_adding_an_owner_ends_where_others_never_stop_writing(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    platform.emit_dataset(dataset())
    (there,) = (urn for urn in server.stored if urn.startswith("urn:li:dataset:"))
    original = platform.find_datasets
    turns: list[int] = []

    def found_early(urns: Sequence[str]) -> dict[str, Seen]:
        found = original(urns)
        turns.append(1)
        owner = {"owner": f"urn:li:corpuser:u{len(turns)}", "type": "TECHNICAL_OWNER"}
        server.put(there, ownership={"owners": [owner]})
        return found

    platform.find_datasets = found_early  # type: ignore[method-assign]
    with pytest.raises(PlatformConflictError):
        platform.emit_ownership(dataset().urn, "ada")

    assert len(turns) == 20


def test_whoever_changes_an_entity_in_between_keeps_it(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    platform.apply(Batch(entities=[Tag(name="gold")]))
    original = platform._client.write
    rest = [True]

    def write_late(given: object) -> None:
        while rest:
            rest.pop()
            server.put("urn:li:tag:gold", tagProperties={"name": "gold", "colorHex": "#ffd700"})
        original(given)  # type: ignore[arg-type]

    platform._client.write = write_late  # type: ignore[method-assign, assignment]
    platform.apply(Batch(entities=[Tag(name="gold", description="of worth")]))

    assert server.stored["urn:li:tag:gold"]["tagProperties"][0] == {
        "name": "gold", "colorHex": "#ffd700", "description": "of worth",
    }  # fmt: skip
