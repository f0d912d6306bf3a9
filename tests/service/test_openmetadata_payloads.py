"""Every payload of the OpenMetadata adapter is valid for the models of OpenMetadata's client."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings

import strategies
from doubles.openmetadata_server import openmetadata_at, openmetadata_server
from doubles.openmetadata_store import Message
from lumos.core.models import ColumnMapping, DQAssertion, LumosDataset, Ownership, Urn, with_parts
from lumos.core.platform.batch import Batch, Identity
from lumos.testing.platform_samples import (
    AT,
    ENTITY_MAKERS,
    HOSTILE_NAMES,
    dataset,
    edge,
    rich_dataset,
)
from openmetadata_payloads import COLLECTIONS, ORACLES, Payload, payloads, verdicts

pytestmark = pytest.mark.service
COLUMNS = [{"name": "id", "type": "INT64"}, {"name": "a'b", "type": "STRING"}]


NAMES = ("left", "right")
BULK = "type.bulkOperationResult.BulkOperationResult"


def _elsewhere(one: LumosDataset) -> LumosDataset:
    """Return a dataset that is not there yet."""
    return with_parts(one, urn=Urn.of("elsewhere", *one.urn.parts))


def exchanged(datasets: Sequence[LumosDataset]) -> list[Message]:
    """Return all that went back and forth when these and every kind of entity were emitted."""
    with openmetadata_server() as (url, store), openmetadata_at(url) as one:
        store.recorded = []
        for each in datasets:
            one.emit_dataset(each)
            one.emit_dataset(with_parts(each, tags=("other",), ownership=Ownership()))
        together = [each for each in datasets if each.platform != "s3"]
        store.unstorable = {"left"}
        one.apply(
            Batch(
                datasets=[*map(_elsewhere, together), *(dataset(n, platform="db") for n in NAMES)]
            )
        )
        for make in ENTITY_MAKERS.values():
            for name in HOSTILE_NAMES.values():
                one.apply(Batch(entities=[make(name)]))
        mapping = ColumnMapping(
            upstream_column="a'b", downstream_column="id", transformation="f(a)"
        )
        parts = {"provenance": "sql", "created_at": AT, "created_by": "ada"}
        left = dataset("left", platform="snowflake", schema={"fields": COLUMNS})
        right = dataset("right", platform="snowflake", schema={"fields": COLUMNS})
        one.emit_dataset(left)
        one.emit_dataset(right)
        one.apply(Batch(edges=[edge(left, right, column_mappings=(mapping,), **parts)]))
        one.apply(Batch(edges=[edge(left, right, job_urn=Urn.of("airflow", "slashes"), **parts)]))
        one.apply(Batch(identities=[Identity(dataset().urn, "other", "x")]))
        one.apply(Batch(extensions={"other": {"x": 1}}))
        one.export_all(at=AT)
        return store.recorded


def drawn() -> list[LumosDataset]:
    """Return datasets with something everywhere, and random ones."""
    table = with_parts(rich_dataset(), urn=Urn.of("snowflake", "a", "b", "c"), platform="snowflake")
    checked = with_parts(
        table,
        urn=Urn.of("snowflake", "a", "b", "checked"),
        assertions=(DQAssertion(name="of our own", kind="of_our_own"),),
    )
    found = [rich_dataset(), table, checked]

    @settings(max_examples=60, deadline=None, suppress_health_check=[*HealthCheck], database=None)
    @given(strategies.datasets())
    def draw(one: LumosDataset) -> None:
        found.append(one)

    draw()
    return found


@pytest.fixture(scope="module")
def wire() -> list[Payload]:
    return payloads(exchanged(drawn()))


@pytest.mark.parametrize("oracle", ORACLES)
def test_the_oracle_refuses_what_is_wrong(oracle: str) -> None:
    wrong = [
        Payload("api.data.createTable.CreateTableRequest", {"name": "x"}),
        Payload("api.teams.createUser.CreateUserRequest", {"name": "X Y", "email": "none"}),
        Payload("api.lineage.addLineage.AddLineageRequest", {"edge": {}}),
        Payload("entity.data.table.Table", {"name": "x", "colour": "red"}),
        Payload("entity.data.table.Table", {"name": "x"}, ("colour",)),
    ]

    assert None not in verdicts(oracle, wrong)


@pytest.mark.parametrize("oracle", ORACLES)
def test_every_payload_is_valid_for_the_official_models(oracle: str, wire: list[Payload]) -> None:
    judged = zip(wire, verdicts(oracle, wire), strict=True)
    wrong = Counter((payload.model, verdict) for payload, verdict in judged if verdict)

    assert {BULK, *(model for models in COLLECTIONS.values() for model in models)} <= {
        payload.model for payload in wire
    }
    assert wrong == {}
