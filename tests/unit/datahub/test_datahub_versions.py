"""Whatever Lumos writes or takes away in DataHub is written against a version."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from doubles.datahub_server import DataHubDouble
from lumos.core.models import DQAssertion, LumosDataset
from lumos.core.platform.batch import Batch
from lumos.core.platform.impl.datahub.client import Write
from lumos.core.platform.impl.datahub.handler import DataHubHandler
from lumos.core.platform.impl.datahub.mapping.aspects import DatasetConversion
from lumos.core.platform.impl.datahub.mapping.emptied import EMPTIED, emptied
from lumos.testing.platform_samples import AT, dataset

HERE = "urn:li:dataset:(urn:li:dataPlatform:s3,lake/customers,PROD)"
CHECK = DQAssertion(name="id is set", kind="not_null", column="customer_id")
TERMS = {
    "terms": [{"urn": "urn:li:glossaryTerm:Theirs"}],
    "auditStamp": {"time": 7, "actor": "urn:li:corpuser:ada"},
}


def before_writing(
    platform: DataHubHandler, aspect: str, act: Callable[[], None], *, times: int = 1
) -> None:
    """Let somebody act after Lumos has read and before it writes some aspect."""
    original = platform._client.write
    turns = [act] * times

    def write_late(given: Sequence[Write]) -> None:
        if turns and any(aspect in write.aspects for write in given):
            turns.pop()()
        original(given)

    platform._client.write = write_late  # type: ignore[method-assign, assignment]


def the_assertion(server: DataHubDouble) -> str:
    (urn,) = (urn for urn in server.stored if urn.startswith("urn:li:assertion:"))
    return urn


def writes(server: DataHubDouble) -> list[str]:
    return [target for method, target, _ in server.requests if "async=" in target]


def test_what_somebody_says_of_an_assertion_in_between_is_not_overwritten(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    platform.emit_dataset(dataset(assertions=(CHECK,)))
    urn = the_assertion(server)

    def edit() -> None:
        info = server.stored[urn]["assertionInfo"][0]
        server.put(urn, assertionInfo={**info, "externalUrl": "https://example.org"})

    before_writing(platform, "assertionInfo", edit)
    explained = CHECK.model_copy(update={"description": "nobody without a number"})
    platform.emit_dataset(dataset(assertions=(explained,)))

    info = server.stored[urn]["assertionInfo"][0]
    assert info["externalUrl"] == "https://example.org"
    assert info["description"] == "nobody without a number"
    assert platform.get_dataset(dataset().urn).assertions == (explained,)


def test_an_assertion_that_is_as_it_should_be_is_not_written(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    checks = [{"name": CHECK.name, "status": "PASSED", "timestamp": AT}]
    emitted = dataset(assertions=(CHECK,), quality={"checks": checks})
    platform.emit_dataset(emitted)
    assert server.series[the_assertion(server)].keys() == {"assertionRunEvent"}
    server.requests.clear()

    platform.emit_dataset(emitted)

    assert writes(server) == []


def test_an_assertion_that_is_gone_is_hidden_against_a_version(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    platform.emit_dataset(dataset(assertions=(CHECK,)))
    server.requests.clear()

    platform.emit_dataset(dataset())

    bodies: list[Any] = [
        body for _, target, body in server.requests if "/assertion?async=" in target
    ]
    ((written,),) = bodies
    assert written["status"]["value"] == {"removed": True}
    assert written["status"]["headers"]["If-Version-Match"] == "1"


def test_assertions_of_many_datasets_go_in_one_request(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    platform.apply(
        Batch(datasets=[dataset(f"d{number}", assertions=(CHECK,)) for number in range(9)])
    )

    assert sum("/assertion?async=" in target for target in writes(server)) == 1


def test_adding_an_owner_leaves_assertions_alone(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    platform.emit_dataset(dataset(assertions=(CHECK,)))
    info = {"type": "CUSTOM", "customAssertion": {"type": "freshness", "entity": HERE}}
    server.put("urn:li:assertion:theirs", assertionInfo=info)
    edited = {**info, "description": "by noon"}
    before_writing(
        platform, "ownership", lambda: server.put("urn:li:assertion:theirs", assertionInfo=edited)
    )

    platform.emit_ownership(dataset().urn, "ada")

    found = server.stored["urn:li:assertion:theirs"]["assertionInfo"][0]
    assert found == {**edited, "entityUrn": HERE}  # which the server adds


def test_what_somebody_adds_to_what_is_being_taken_away_stays(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    emitted = dataset(governance={"glossary_terms": ["Mine"]})
    platform.emit_dataset(emitted)
    before_writing(
        platform, "glossaryTerms", lambda: server.put(HERE, glossaryTerms=TERMS), times=1
    )

    platform._change(emitted.urn, without_mine)

    found = platform.get_dataset(emitted.urn)
    assert found.governance.glossary_terms == ("Theirs",)


def without_mine(given: LumosDataset) -> LumosDataset:
    terms = tuple(term for term in given.governance.glossary_terms if term != "Mine")
    governance = given.governance.model_copy(update={"glossary_terms": terms})
    return given.model_copy(update={"governance": governance})


def test_what_a_dataset_no_longer_has_is_emptied_in_the_same_request(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    platform.emit_dataset(dataset(tags=("gold",), governance={"domains": ["Sales"]}))
    server.requests.clear()

    platform.emit_dataset(dataset())

    assert platform.get_dataset(dataset().urn) == dataset()
    assert not [method for method, _, _ in server.requests if method == "DELETE"]
    assert len(writes(server)) == 1
    assert server.stored[HERE]["globalTags"][0] == {"tags": []}
    server.requests.clear()
    platform.emit_dataset(dataset())
    assert writes(server) == []


def test_every_aspect_that_can_go_has_an_empty_form_that_reads_as_none() -> None:
    conversion = DatasetConversion("PROD")
    aspects = conversion.aspects(dataset().to_json(), there=EMPTIED)

    assert {name: aspects[name] for name in EMPTIED} == {
        name: emptied(name, HERE) for name in EMPTIED
    }
    assert LumosDataset.from_json(conversion.document(HERE, aspects)) == dataset()


def test_an_empty_aspect_that_others_left_is_kept_as_it_is(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    platform.emit_dataset(dataset())
    server.put(HERE, globalTags={"tags": []})

    found = platform.get_dataset(dataset().urn)
    platform.emit_dataset(found)

    assert found.extensions["datahub"] == {"globalTags": ["+", {"tags": []}]}
    assert platform.get_dataset(dataset().urn) == found


def test_a_kind_that_somebody_chose_in_between_is_not_deleted(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    platform.emit_dataset(dataset(kind="TABLE"))
    chosen = {"typeNames": ["View"]}
    before_writing(platform, "datasetProperties", lambda: server.put(HERE, subTypes=chosen))
    asked: list[bool] = []

    def unkinded(given: LumosDataset) -> LumosDataset:
        asked.append(True)
        explained = dataset(documentation={"description": "all of them"})
        return explained if given.kind == "TABLE" else given

    platform._change(dataset().urn, unkinded)

    assert len(asked) == 2
    assert server.stored[HERE]["subTypes"][0] == chosen


def test_a_kind_that_a_dataset_no_longer_has_is_deleted(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    platform.emit_dataset(dataset(kind="TABLE"))

    platform.emit_dataset(dataset())

    assert "subTypes" not in server.stored[HERE]
    assert platform.get_dataset(dataset().urn) == dataset()
