"""Search and graph follow seconds after a write: what was just written is found all the same."""

from __future__ import annotations

import logging

import pytest

from doubles.datahub_server import DataHubDouble
from lumos.core.models import Tag, with_parts
from lumos.core.platform.batch import Batch
from lumos.core.platform.batches import dataset_or_none
from lumos.core.platform.impl.datahub.handler import DataHubHandler
from lumos.core.platform.impl.datahub.settings import DataHubSettings
from lumos.testing.platform_samples import AT, dataset, edge

HERE = "urn:li:dataset:(urn:li:dataPlatform:s3,lake/customers,PROD)"
ONE, TWO = dataset("one"), dataset("two")
NEVER = 1_000_000


@pytest.fixture(autouse=True)
def _no_index(server: DataHubDouble) -> None:
    server.lag = NEVER


def test_lists_have_what_was_just_written_and_not_what_was_just_removed(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    checked = with_parts(TWO, assertions=[{"name": "id is set", "column": "id"}])
    platform.apply(Batch(datasets=[ONE, checked], entities=[Tag(name="gold", sensitive=True)]))
    platform.apply(Batch(edges=[edge(ONE, TWO)]))
    platform.apply(Batch(extensions={"other": {"a": 1}}))

    assert [each.urn for each in platform.list()] == [ONE.urn, TWO.urn]
    assert [*platform.list_edges()] == [edge(ONE, TWO)]
    assert [*platform.list_entities("tag")] == [Tag(name="gold", sensitive=True)]
    assert platform.extensions() == {"other": {"a": 1}}
    assert platform.get_dataset(ONE.urn).lineage.downstream == (TWO.urn,)
    assert platform.get_dataset(TWO.urn).assertions == checked.assertions

    server.settle()
    platform.delete(ONE.urn)
    assert [each.urn for each in platform.list()] == [TWO.urn]
    assert [*platform.list_edges()] == []
    assert dataset_or_none(platform, ONE.urn) is None


def test_a_proof_compares_with_everything_that_was_written(platform: DataHubHandler) -> None:
    platform.apply(Batch(datasets=[ONE, TWO]))
    platform.apply(Batch(edges=[edge(ONE, TWO)]))

    exported = platform.export_all(at=AT)

    assert [each.urn for each in exported.datasets] == [ONE.urn, TWO.urn]
    assert exported.lineage_edges == (edge(ONE, TWO),)


def test_an_edge_that_was_just_removed_is_gone_from_its_upstream_dataset(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    platform.apply(Batch(datasets=[ONE, TWO]))
    platform.apply(Batch(edges=[edge(ONE, TWO)]))
    server.settle()

    platform.apply(Batch(removed_edges=[edge(ONE, TWO)]))

    assert platform.get_dataset(ONE.urn).lineage.downstream == ()


def test_what_somebody_else_brings_back_is_listed(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    platform.emit_dataset(dataset())
    platform.delete(dataset().urn)
    server.put(HERE, status={"removed": False})

    assert [each.urn for each in platform.list()] == [dataset().urn]


def test_a_search_waits_until_the_index_has_what_was_written(
    platform: DataHubHandler, server: DataHubDouble, caplog: pytest.LogCaptureFixture
) -> None:
    server.lag = 9
    platform.emit_dataset(dataset())

    with caplog.at_level(logging.INFO, logger="lumos"):
        assert [hit.urn for hit in platform.search("customers").hits] == [dataset().urn]

    assert "its index was waited for" in caplog.text
    assert "complete: True" in caplog.text


def test_a_search_does_not_wait_for_ever(
    running: tuple[str, DataHubDouble], server: DataHubDouble, caplog: pytest.LogCaptureFixture
) -> None:
    settings = DataHubSettings(gms_server=running[0], index_seconds=0)
    with DataHubHandler(settings) as platform, caplog.at_level(logging.INFO, logger="lumos"):
        platform.emit_dataset(dataset())
        assert platform.search("customers").hits == ()

    assert "complete: False" in caplog.text


def test_an_older_search_engine_that_fails_at_slices_is_asked_without_them(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    server.lag = 0
    server.fails_at_slices = True
    platform.apply(Batch(datasets=[ONE, TWO]))

    assert [each.urn for each in platform.list()] == [ONE.urn, TWO.urn]
    server.requests.clear()
    assert [*platform.list_edges()] == []
    assert not any("slice" in target for _, target, _ in server.requests)


def test_a_page_of_datasets_without_lineage_does_not_end_the_list(
    running: tuple[str, DataHubDouble], server: DataHubDouble
) -> None:
    named = "urn:li:dataset:(urn:li:dataPlatform:s3,lake/{},PROD)"
    for number in range(501):
        server.put(named.format(f"a{number:03}"), status={"removed": False})
    lineage = {"upstreams": [{"dataset": named.format("a000"), "type": "COPY"}]}
    server.put(named.format("z"), upstreamLineage=lineage)

    with DataHubHandler(DataHubSettings(gms_server=running[0], slices=1)) as platform:
        assert len([*platform.list_edges()]) == 1
