"""A token that may not do everything: what it may do is done, and nothing of others is changed."""

from __future__ import annotations

from typing import Any

import pytest

from doubles.datahub_server import DataHubDouble
from lumos.core.errors import PlatformForbiddenError
from lumos.core.models import GlossaryTerm, Job, Tag, with_parts
from lumos.core.platform.batch import Batch
from lumos.core.platform.batches import found_together
from lumos.core.platform.impl.datahub.handler import DataHubHandler
from lumos.core.platform.impl.datahub.mapping.containers import containers_of
from lumos.testing.platform_samples import AT, dataset, rich_dataset

HERE = "urn:li:dataset:(urn:li:dataPlatform:s3,lake/customers,PROD)"
BUCKET = containers_of(HERE)[0].urn
CURATED: dict[str, Any] = {
    "name": "The lake",
    "description": "Curated by the lake team",
    "externalUrl": "https://wiki/lake",
    "customProperties": {"team": "lake"},
}


def writes(server: DataHubDouble) -> list[str]:
    return [
        target
        for method, target, _ in server.requests
        if method != "GET" and "batchGet" not in target and "scroll" not in target
    ]


def test_a_container_that_others_made_stays_as_it_is(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    server.put(BUCKET, containerProperties=CURATED, subTypes={"typeNames": ["Lake"]})

    platform.emit_dataset(dataset())

    held = server.stored[BUCKET]
    assert held["containerProperties"] == (CURATED, 1)
    assert held["subTypes"] == ({"typeNames": ["Lake"]}, 1)
    assert "status" not in held
    assert server.stored[HERE]["container"][0] == {"container": BUCKET}


def test_a_container_without_properties_is_given_them(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    server.put(BUCKET, ownership={"owners": []})

    platform.emit_dataset(dataset())

    assert server.stored[BUCKET]["containerProperties"][0]["name"] == "lake"
    assert server.stored[BUCKET]["ownership"][1] == 1


def test_no_container_is_made_that_no_dataset_is_in(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    server.put(HERE, datasetProperties={"name": "x"}, container={"container": "urn:li:container:y"})

    platform.emit_dataset(rich_dataset())

    assert [urn for urn in server.stored if ":container:" in urn] == []


def test_what_terms_and_jobs_stand_in_is_not_overwritten(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    flow = "urn:li:dataFlow:(airflow,daily,PROD)"
    node = {"name": "Sales", "definition": "by people", "customProperties": {"a": "b"}}
    info = {"name": "Daily", "description": "by people", "project": "shop"}
    server.put("urn:li:glossaryNode:Sales", glossaryNodeInfo=node)
    server.put(flow, dataFlowInfo=info)

    platform.apply(Batch(entities=[GlossaryTerm(name="Order", parent="Sales")]))
    job = Job.from_json({"urn": "lumos://airflow/daily/load", "name": "load"})
    platform.apply(Batch(entities=[job]))

    assert server.stored["urn:li:glossaryNode:Sales"]["glossaryNodeInfo"] == (node, 1)
    assert server.stored[flow]["dataFlowInfo"] == (info, 1)


def test_what_two_create_at_the_same_time_is_created_once(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    original = platform._client.write
    done: list[bool] = []

    def write_late(given: Any) -> None:
        if not done:
            done.append(True)
            server.put(BUCKET, containerProperties=CURATED)
        original(given)

    platform._client.write = write_late  # type: ignore[assignment, method-assign]
    platform.emit_dataset(dataset())

    assert server.stored[BUCKET]["containerProperties"] == (CURATED, 1)
    assert platform.get_dataset(dataset().urn) == dataset()


def test_without_the_right_to_list_the_registry_all_else_works(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    assert not server.lists_registry
    platform.apply(Batch(datasets=[rich_dataset()], entities=[Tag(name="gold", sensitive=True)]))

    exported = platform.export_all(at=AT)

    assert exported.datasets == (rich_dataset(),)
    assert exported.tags == (Tag(name="gold", sensitive=True),)


@pytest.mark.parametrize("lists_registry", [True, False])
def test_an_aspect_that_an_older_server_drops_in_silence_is_kept(
    platform: DataHubHandler, server: DataHubDouble, lists_registry: bool
) -> None:
    server.lists_registry = lists_registry
    server.unknown_aspects |= {("dataset", "deprecation"), ("dataset", "container")}
    emitted = dataset(governance={"deprecation": {"note": "old"}}, tags=["gold"])
    try:
        platform.emit_dataset(emitted)
        assert [*platform.list()] == [emitted]
        assert {"deprecation", "container"}.isdisjoint(server.stored[HERE])
        server.requests.clear()
        platform.emit_dataset(emitted)
        assert writes(server) == []
    finally:
        server.unknown_aspects.clear()


def test_a_container_that_may_not_be_created_costs_no_dataset(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    server.forbidden.add(BUCKET)
    emitted = rich_dataset()

    platform.emit_dataset(emitted)

    assert BUCKET not in server.stored
    assert "container" not in server.stored[HERE]
    assert platform.get_dataset(emitted.urn) == emitted
    (line,) = platform.notices()
    assert "unauthorized to CREATE entities" in line
    server.requests.clear()
    platform.emit_dataset(emitted)
    assert writes(server) == []


def test_a_type_of_owners_that_may_not_be_created_costs_no_dataset(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    server.forbidden_aspects.add(("ownershiptype", "ownershipTypeInfo"))
    emitted = dataset(ownership=[{"user": "ada", "type": "AUDITOR"}])

    platform.emit_dataset(emitted)

    assert platform.get_dataset(emitted.urn) == emitted


def test_a_dataset_that_may_not_be_read_is_the_only_one_not_found(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    one, other = dataset(), dataset("orders")
    platform.apply(Batch(datasets=[one, other]))
    server.hidden.add(HERE)

    found = found_together(platform, [one.urn, other.urn])

    assert isinstance(found[one.urn], PlatformForbiddenError)
    assert "unauthorized to READ entities" in str(found[one.urn])
    assert getattr(found[other.urn], "dataset", None) == other


def test_what_may_not_be_written_of_an_extension_is_named_and_the_rest_arrives(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    colours = {
        f"urn:li:tag:{name}": {"tagProperties": ["+", {"name": name, "colorHex": "#123456"}]}
        for name in ("blue", "red", "green")
    }
    server.forbidden.add("urn:li:tag:red")

    with pytest.raises(PlatformForbiddenError, match=r"1 of 3 .*tag:red.*unauthorized"):
        platform.apply(Batch(extensions={"datahub": {"entities": colours}}))  # type: ignore[dict-item]

    assert {"urn:li:tag:blue", "urn:li:tag:green"} == {u for u in server.stored if ":tag:" in u}


def test_a_dataset_of_which_one_aspect_may_not_be_written_is_refused_with_the_reason(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    platform.emit_dataset(dataset())
    server.forbidden_aspects.add(("dataset", "ownership"))

    with pytest.raises(PlatformForbiddenError, match="unauthorized to CREATE entities"):
        platform.emit_dataset(with_parts(dataset(), ownership=[{"user": "ada"}]))
    platform.emit_dataset(with_parts(dataset(), tags=("gold",)))

    assert platform.get_dataset(dataset().urn).tags == ("gold",)


def test_tags_and_owners_that_the_token_may_not_read_are_hidden_and_those_taken_away_are_not(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    platform.emit_dataset(rich_dataset())
    server.put(HERE, ownership={"owners": [], "lastModified": {"time": 1, "actor": "x"}})
    server.hidden_aspects.add(("dataset", "globalTags"))

    seen = platform.find_datasets([rich_dataset().urn])[rich_dataset().urn]

    assert seen.dataset is not None
    assert seen.dataset.tags == ()
    assert "tags" in seen.hidden
    assert seen.hidden.isdisjoint({"owners", "governance:domains", "governance:glossary_terms"})


def test_of_a_dataset_that_lumos_did_not_write_nothing_is_known_to_be_hidden(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    server.put(HERE, datasetProperties={"name": "customers"})

    assert platform.find_datasets([dataset().urn])[dataset().urn].hidden == frozenset()
