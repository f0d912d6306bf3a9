"""How the DataHub adapter behaves towards a server that is slow, busy, old or edited by others."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from doubles.datahub_server import DataHubDouble, Fault, datahub_double
from lumos.core.errors import (
    ConfigurationError,
    LumosError,
    PlatformAnswerError,
    PlatformAuthError,
    PlatformError,
    PlatformUnavailableError,
)
from lumos.core.models import (
    DQAssertion,
    GlossaryTerm,
    LineageEdge,
    LumosDataset,
    Tag,
    Urn,
    with_parts,
)
from lumos.core.platform.batch import Batch
from lumos.core.platform.batches import dataset_or_none
from lumos.core.platform.fidelity import CONCEPTS
from lumos.core.platform.http import RetryPolicy
from lumos.core.platform.impl.datahub.client import StoredEntity
from lumos.core.platform.impl.datahub.handler import DataHubHandler
from lumos.core.platform.impl.datahub.settings import DataHubSettings
from lumos.testing.platform_samples import AT, dataset, rich_dataset

QUICK = RetryPolicy(attempts=3, first_wait=0.001, longest_wait=0.002)
TOKEN = "dhp_secret"
HERE = "urn:li:dataset:(urn:li:dataPlatform:s3,lake/customers,PROD)"


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[str, DataHubDouble]]:
    with datahub_double(token=TOKEN) as running:
        yield running


@pytest.fixture
def server(running: tuple[str, DataHubDouble]) -> DataHubDouble:
    running[1].clear()
    running[1].unknown_aspects.clear()
    running[1].knows_slices = running[1].tells_versions = True
    return running[1]


def adapter(running: tuple[str, DataHubDouble], **parts: object) -> DataHubHandler:
    settings = {"gms_server": running[0], "token": TOKEN, **parts}
    return DataHubHandler(DataHubSettings.model_validate(settings), retries=QUICK)


@pytest.fixture
def platform(running: tuple[str, DataHubDouble], server: DataHubDouble) -> Iterator[DataHubHandler]:
    with adapter(running) as platform:
        yield platform


def writes(server: DataHubDouble) -> list[tuple[str, str]]:
    reads = ("batchGet", "scroll")
    return [
        (method, target)
        for method, target, _ in server.requests
        if method != "GET" and not any(read in target for read in reads)
    ]


def test_no_write_is_only_promised(platform: DataHubHandler, server: DataHubDouble) -> None:
    platform.emit_dataset(rich_dataset())
    platform.apply(Batch(entities=[Tag(name="gold", sensitive=True)]))
    platform.apply(
        Batch(
            edges=[
                LineageEdge.from_json(
                    {"upstream_urn": "lumos://s3/a/b", "downstream_urn": "lumos://s3/a/c"}
                )
            ]
        )
    )

    posts = [target for method, target in writes(server) if method == "POST"]
    assert posts
    assert all("async=false" in target for target in posts)


def test_a_second_emission_writes_nothing(platform: DataHubHandler, server: DataHubDouble) -> None:
    plain = with_parts(rich_dataset(), assertions=())
    platform.emit_dataset(plain)
    server.requests.clear()
    platform.emit_dataset(plain)

    assert writes(server) == []


def test_many_datasets_go_in_few_requests_within_the_limit(
    running: tuple[str, DataHubDouble], server: DataHubDouble
) -> None:
    datasets = [dataset(f"d{number:03}") for number in range(60)]
    with adapter(running, batch_size=20) as platform:
        platform.apply(Batch(datasets=datasets))
        listed = [*platform.list(page_size=7)]

    assert listed == datasets
    sizes = [
        sum(len(entity) - 1 for entity in body)
        for method, target, body in server.requests
        if method == "POST" and "async" in target and body
    ]
    assert max(sizes) <= 20
    assert len(sizes) == 1 + 10  # the bucket, and three aspects of each dataset


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
@pytest.mark.parametrize("after_doing", [False, True])
def test_a_busy_server_is_asked_again_and_nothing_is_doubled(
    platform: DataHubHandler, server: DataHubDouble, status: int, after_doing: bool
) -> None:
    platform.emit_dataset(dataset())
    server.faults.append(Fault(status, times=2, after_doing=after_doing))
    platform.emit_dataset(rich_dataset())

    assert [*platform.list()] == [rich_dataset()]


def test_a_write_whose_answer_was_lost_is_not_taken_for_a_conflict(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    one, two = dataset("one"), dataset("two")
    platform.apply(Batch(datasets=(one, two)))
    edge = LineageEdge.from_json({"upstream_urn": one.urn, "downstream_urn": two.urn})
    server.faults.extend((Fault(503, after_doing=True), Fault(503, after_doing=True)))
    platform.apply(Batch(edges=[edge]))

    assert [*platform.list_edges()] == [edge]


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault(503, times=9), PlatformUnavailableError),
        (Fault(401), PlatformAuthError),
        (Fault(403), PlatformAuthError),
        (Fault(400), PlatformError),
        (Fault(200, body=b"<html>Sign in</html>", content_type="text/html"), PlatformAnswerError),
        (Fault(200, times=9, body=b'{"entities": ['), PlatformAnswerError),
    ],
)
def test_what_a_server_refuses_is_told_in_one_line_without_secrets(
    platform: DataHubHandler, server: DataHubDouble, fault: Fault, error: type[LumosError]
) -> None:
    server.faults.append(fault)
    with pytest.raises(error) as caught:
        platform.get_dataset(dataset().urn)

    assert TOKEN not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "Sign in" not in str(caught.value)


@pytest.mark.parametrize("body", [b"{}", b"", b"7", b'{"entities": 7}'])
def test_an_answer_that_no_datahub_gives_is_no_success(
    platform: DataHubHandler, server: DataHubDouble, body: bytes
) -> None:
    platform.emit_dataset(dataset("other"))
    acts: list[Callable[[], object]] = [
        lambda: platform.find_datasets([dataset().urn]),
        lambda: platform.apply(Batch(entities=[Tag(name="gold")])),
        lambda: [*platform.list()],
        lambda: platform.search("customers"),
        platform.reached,
    ]
    for act in acts:
        server.faults.append(Fault(200, times=100, body=body))
        with pytest.raises(PlatformAnswerError, match=r"DataHub|answer|is not a list") as caught:
            act()
        assert "http://127.0.0.1" in str(caught.value)
        server.faults.clear()

    original = platform._client.get  # what is written must be told of as well
    answers = iter([True])

    def get_and_then_nothing(*given: object, **named: object) -> list[StoredEntity]:
        found = original(*given, **named)  # type: ignore[arg-type]
        if next(answers, False):
            server.faults.append(Fault(200, body=body))
        return found

    platform._client.get = get_and_then_nothing  # type: ignore[method-assign]
    with pytest.raises(PlatformAnswerError):
        platform.apply(Batch(entities=[Tag(name="gold")]))


def test_a_server_that_knows_no_slices_gives_everything_once(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    server.knows_slices = False
    datasets = [dataset(name) for name in ("a", "b", "c")]
    platform.apply(Batch(datasets=datasets))
    platform.emit_lineage(datasets[0].urn, datasets[1].urn)

    assert [each.urn for each in platform.list()] == [each.urn for each in datasets]
    assert len([*platform.list_edges()]) == 1


def test_a_server_that_tells_no_versions_is_written_to_without_conditions(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    server.tells_versions = False
    platform.emit_dataset(dataset())
    platform.emit_dataset(rich_dataset())

    assert [*platform.list()] == [rich_dataset()]


def test_settings_that_are_wrong_are_told_as_such() -> None:
    with pytest.raises(ConfigurationError, match="gms_server"):
        DataHubHandler.from_config({})
    with pytest.raises(ConfigurationError):
        DataHubHandler.from_config({"gms_server": "nowhere"})
    with pytest.raises(ConfigurationError):
        DataHubHandler.from_config({"gms_server": "http://x", "colour": "red"})


def test_somebody_who_writes_in_between_is_not_overwritten(
    running: tuple[str, DataHubDouble], server: DataHubDouble
) -> None:
    ends = dataset("one"), dataset("two"), dataset("three")
    first, second = (
        LineageEdge.from_json({"upstream_urn": end.urn, "downstream_urn": ends[2].urn})
        for end in ends[:2]
    )
    with adapter(running) as mine, adapter(running) as other:
        mine.apply(Batch(datasets=ends))
        original = mine._client.write
        done: list[bool] = []

        def write_late(given: object) -> None:
            if not done:
                done.append(True)
                other.apply(Batch(edges=[second]))
            original(given)  # type: ignore[arg-type]

        mine._client.write = write_late  # type: ignore[method-assign, assignment]
        mine.apply(Batch(edges=[first]))

        assert [*mine.list_edges()] == sorted((first, second), key=lambda edge: edge.key)


def test_what_the_server_and_others_add_is_told_apart(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    platform.emit_dataset(dataset())
    assert platform.get_dataset(dataset().urn).extensions == {}
    server.put(HERE, forms={"completedForms": [], "incompleteForms": []})

    found = platform.get_dataset(dataset().urn)

    assert found.extensions["datahub"] == {
        "forms": ["+", {"completedForms": [], "incompleteForms": []}]
    }
    assert [*platform.list()] == [found]


def test_assertions_of_others_are_read_and_left_alone(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    mine = DQAssertion(name="id is set", kind="not_null", column="customer_id")
    platform.emit_dataset(dataset(assertions=(mine,)))
    server.put(
        "urn:li:assertion:theirs",
        assertionInfo={
            "type": "CUSTOM",
            "customAssertion": {
                "type": "freshness",
                "entity": HERE,
                "field": f"urn:li:schemaField:({HERE},day)",
                "logic": "max(day)",
            },
        },
    )

    found = platform.get_dataset(dataset().urn)
    platform.emit_dataset(dataset())

    assert [each.name for each in found.assertions] == ["id is set", "urn:li:assertion:theirs"]
    assert (found.assertions[1].column, found.assertions[1].expression) == ("day", "max(day)")
    assert next(platform.list()).assertions == found.assertions[1:]
    hidden = [urn for urn in server.stored if "assertion" in urn and "theirs" not in urn]
    assert [server.stored[urn]["status"][0] for urn in hidden] == [{"removed": True}]


def test_profiles_and_runs_are_shown_at_their_time(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    check = {"name": "id is set", "status": "FAILED", "timestamp": AT}
    emitted = dataset(
        statistics={"row_count": 5, "total_size_bytes": 7, "last_modified": AT},
        assertions=[{"name": "id is set"}],
        quality={"checks": [check]},
    )
    for _ in range(2):
        platform.emit_dataset(emitted)

    at = int(AT.timestamp() * 1000)
    assert server.series[HERE]["datasetProfile"] == {
        at: {"timestampMillis": at, "rowCount": 5, "sizeInBytes": 7, "messageId": "lumos"}
    }
    assert server.series[HERE]["operation"][at]["lastUpdatedTimestamp"] == at
    (run,) = (series for urn, series in server.series.items() if "assertion" in urn)
    assert run["assertionRunEvent"][at]["result"] == {"type": "FAILURE"}
    assert platform.get_dataset(emitted.urn) == emitted


def test_checks_of_columns_are_shown_in_the_words_of_datahub(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    checks = [
        {"name": "id is set", "kind": "not_null", "column": "id"},
        {"name": "ids differ", "kind": "unique", "column": "id"},
        {"name": "adds up", "kind": "sql", "expression": "sum(a) = sum(b)"},
    ]
    emitted = dataset(assertions=checks)
    platform.emit_dataset(emitted)

    shown = {
        aspects["assertionInfo"][0]["description"]: aspects["assertionInfo"][0]
        for aspects in server.stored.values()
        if "assertionInfo" in aspects
    }
    assert shown["id is set"]["datasetAssertion"]["operator"] == "NOT_NULL"
    assert shown["ids differ"]["datasetAssertion"]["fields"] == [f"urn:li:schemaField:({HERE},id)"]
    assert shown["adds up"]["customAssertion"]["logic"] == "sum(a) = sum(b)"
    assert platform.get_dataset(emitted.urn) == emitted
    assert [*platform.list()] == [emitted]


def test_what_others_measured_is_read(platform: DataHubHandler, server: DataHubDouble) -> None:
    server.put(
        HERE,
        datasetProperties={"name": "customers"},
        datasetProfile={"timestampMillis": 1, "rowCount": 9, "sizeInBytes": 100},
        operation={"timestampMillis": 1, "operationType": "INSERT", "lastUpdatedTimestamp": 1000},
    )

    statistics = platform.get_dataset("lumos://s3/lake/customers").statistics

    assert statistics is not None
    assert (statistics.row_count, statistics.total_size_bytes) == (9, 100)
    assert statistics.last_modified is not None


def test_an_old_server_keeps_what_it_has_no_place_for(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    server.unknown_aspects |= {("dataset", "deprecation"), ("dataset", "container")}
    emitted = dataset(governance={"deprecation": {"note": "old"}}, tags=["gold"])
    for _ in range(2):
        platform.emit_dataset(emitted)

    assert {"deprecation", "container"}.isdisjoint(server.stored[HERE])
    assert "globalTags" in server.stored[HERE]
    assert [*platform.list()] == [emitted]
    assert platform.server_version() == "v1.3.0"


def test_what_tags_and_groups_cannot_hold_is_kept_beside_them(platform: DataHubHandler) -> None:
    sensitive, plain = Tag(name="gold", sensitive=True), Tag(name="gold")
    platform.apply(Batch(entities=[sensitive]))
    assert [*platform.list_entities("tag")] == [sensitive]
    platform.apply(Batch(entities=[plain]))
    assert [*platform.list_entities("tag")] == [plain]
    assert platform.extensions() == {}


def test_what_is_referred_to_is_made_once_and_never_overwritten(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    node = "urn:li:glossaryNode:Sales"
    server.put(node, glossaryNodeInfo={"definition": "by people", "name": "Sales"})
    platform.apply(Batch(entities=[GlossaryTerm(name="Order", parent="Sales")]))
    platform.emit_dataset(dataset(ownership=[{"user": "ada", "type": "AUDITOR"}]))

    assert server.stored[node]["glossaryNodeInfo"][0]["definition"] == "by people"
    assert (
        server.stored["urn:li:ownershipType:AUDITOR"]["ownershipTypeInfo"][0]["name"] == "AUDITOR"
    )


def test_a_dataset_stands_in_the_containers_of_its_name(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    emitted = dataset("orders", platform="postgres")
    emitted = with_parts(emitted, urn=Urn.of("postgres", "shop", "public", "orders"))
    platform.emit_dataset(emitted)
    there = "urn:li:dataset:(urn:li:dataPlatform:postgres,shop.public.orders,PROD)"
    schema = server.stored[there]["container"][0]["container"]
    database = server.stored[schema]["container"][0]["container"]

    names = [server.stored[urn]["containerProperties"][0]["name"] for urn in (database, schema)]
    assert names == ["shop", "public"]
    assert server.stored[schema]["subTypes"][0] == {"typeNames": ["Schema"]}
    assert platform.get_dataset(emitted.urn) == emitted
    assert platform.extensions() == {}


def test_the_container_that_others_chose_is_left(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    theirs = {"container": "urn:li:container:theirs"}
    server.put(HERE, datasetProperties={"name": "customers"}, container=theirs)
    platform.emit_dataset(rich_dataset())

    found = platform.get_dataset(rich_dataset().urn)
    platform.emit_dataset(found)

    assert server.stored[HERE]["container"][0] == theirs
    assert platform.get_dataset(found.urn) == found


def test_what_others_measured_stays_as_long_as_it_says_the_same(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    at = int(AT.timestamp() * 1000)
    usage = {"timestampMillis": at, "totalSqlQueries": 9, "uniqueUserCount": 2}
    server.put(HERE, datasetProperties={"name": "customers"}, datasetUsageStatistics=usage)
    found = platform.get_dataset(dataset().urn)
    assert found.statistics is not None
    assert (found.statistics.query_count, found.statistics.last_queried) == (9, AT)
    assert found.extensions["datahub"]["datasetUsageStatistics"] == ["+", usage]  # type: ignore[index,call-overload]

    platform.emit_dataset(found)
    assert server.series[HERE]["datasetUsageStatistics"] == {at: usage}
    platform.emit_dataset(with_parts(found, statistics={"query_count": 10, "last_queried": AT}))
    assert server.series[HERE]["datasetUsageStatistics"][at]["totalSqlQueries"] == 10


def test_what_lumos_does_not_model_of_entities_goes_along(
    platform: DataHubHandler, running: tuple[str, DataHubDouble]
) -> None:
    server = running[1]
    owners = {"owners": [{"owner": "urn:li:corpuser:ada", "type": "DATAOWNER"}]}
    definition = {"qualifiedName": "days", "valueType": "urn:li:dataType:datahub.number"}
    server.put("urn:li:tag:gold", tagProperties={"name": "Gold!"}, ownership=owners)
    server.put("urn:li:structuredProperty:days", propertyDefinition=definition)
    server.put("urn:li:corpuser:ada", corpUserInfo={}, corpUserCredentials={"salt": "secret"})
    exported = platform.export_all(at=AT)
    assert "secret" not in str(exported.to_json())

    with datahub_double() as (url, other), DataHubHandler.from_config({"gms_server": url}) as two:
        two.apply(Batch(entities=[exported.tags[0]]))
        two.apply(Batch(entities=[exported.users[0]]))
        foreign = exported.to_json()["extensions"]["datahub"]  # type: ignore[index,call-overload]
        two.apply(Batch(definitions={"datahub": foreign}))
        two.emit_dataset(dataset(properties={"urn:li:structuredProperty:days": 7}))
        two.apply(Batch(extensions={"datahub": foreign}))

        assert two.extensions() == exported.extensions
        found = other.stored["urn:li:tag:gold"]["ownership"][0]
        assert {**found, **owners} == found  # the server adds the owners by type
        assert other.stored["urn:li:tag:gold"]["tagProperties"][0]["name"] == "Gold!"
        known = other.stored["urn:li:structuredProperty:days"]["propertyDefinition"][0]
        assert known == definition


def test_deleting_hides_or_removes_as_the_settings_say(
    running: tuple[str, DataHubDouble], server: DataHubDouble
) -> None:
    with adapter(running) as soft, adapter(running, hard_delete=True) as hard:
        soft.emit_dataset(dataset())
        soft.delete(dataset().urn)
        assert server.stored[HERE]["status"][0] == {"removed": True}
        soft.emit_dataset(dataset())
        hard.delete(dataset().urn)
        assert HERE not in server.stored


def test_an_upstream_that_nobody_described_is_no_dataset(platform: DataHubHandler) -> None:
    edge = LineageEdge.from_json(
        {"upstream_urn": "lumos://s3/lake/a", "downstream_urn": "lumos://s3/lake/b"}
    )
    platform.apply(Batch(edges=[edge]))

    assert [*platform.list()] == []
    assert dataset_or_none(platform, "lumos://s3/lake/b") is None
    assert [*platform.list_edges()] == [edge]


def test_names_that_are_too_long_for_datahub_keep_their_lineage(platform: DataHubHandler) -> None:
    long, short = dataset("x" * 600), dataset("short")
    platform.apply(Batch(datasets=(long, short)))
    platform.emit_lineage(long.urn, short.urn)
    platform.emit_lineage(short.urn, dataset("y" * 600).urn)

    assert platform.get_dataset(short.urn).lineage.upstream == (long.urn,)
    assert platform.get_dataset(long.urn).lineage.downstream == (short.urn,)
    assert len([*platform.list_edges()]) == 2


def test_every_concept_has_a_fate_and_none_is_lost() -> None:
    assert set(DataHubHandler.FIDELITY) == set(CONCEPTS)
    assert "dropped" not in DataHubHandler.FIDELITY.values()


def test_a_dataset_of_another_environment_keeps_its_name(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    there = "urn:li:dataset:(urn:li:dataPlatform:postgres,shop.orders,DEV)"
    server.put(there, datasetProperties={"name": "orders"})

    (found,) = platform.list()
    platform.emit_dataset(with_parts(found, tags=("gold",)))

    assert found.urn == Urn("lumos://postgres/env=DEV/shop/orders")
    assert isinstance(found, LumosDataset)
    assert [urn for urn in server.stored if "dataset:" in urn] == [there]
