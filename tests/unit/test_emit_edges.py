"""Many edges are told to a catalog by fewer requests than one for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import pairwise

import pytest

from doubles.atlas_server import AtlasServer, atlas_at
from doubles.datahub_server import datahub_double
from doubles.openmetadata_server import openmetadata_at, openmetadata_server
from lumos.core.models import ColumnMapping, LineageEdge, LumosDataset, Urn
from lumos.core.platform.abilities import LineageAbility
from lumos.core.platform.batch import Batch
from lumos.core.platform.impl.datahub.handler import DataHubHandler
from lumos.core.platform.interface import MetadataPlatformInterface
from lumos.testing.platform_samples import dataset, edge

MANY = 20
PAGES = 7  # the double gives three entities at a time
Asked = list[object]
Counted = Callable[[], AbstractContextManager[tuple[MetadataPlatformInterface, Asked]]]


@contextmanager
def datahub() -> Iterator[tuple[MetadataPlatformInterface, Asked]]:
    with ExitStack() as stack:
        url, double = stack.enter_context(datahub_double())
        platform = stack.enter_context(DataHubHandler.from_config({"gms_server": url}))
        asked: Asked = double.requests  # type: ignore[assignment]
        yield platform, asked


@contextmanager
def openmetadata() -> Iterator[tuple[MetadataPlatformInterface, Asked]]:
    with openmetadata_server() as (url, store), openmetadata_at(url) as platform:
        asked: Asked = store.requests  # type: ignore[assignment]
        yield platform, asked


@contextmanager
def atlas() -> Iterator[tuple[MetadataPlatformInterface, Asked]]:
    with AtlasServer() as server, atlas_at(server) as platform:
        asked: Asked = server.requests  # type: ignore[assignment]
        yield platform, asked


def tables() -> list[LumosDataset]:
    return [
        dataset(
            f"t{number}",
            urn=Urn.of("snowflake", "shop", "public", f"t{number}"),
            platform="snowflake",
        )
        for number in range(MANY + 1)
    ]


def chain(made: list[LumosDataset], **parts: object) -> list[LineageEdge]:
    return [edge(first, second, **parts) for first, second in pairwise(made)]


PLAIN: dict[Counted, int] = {datahub: 2, atlas: 3, openmetadata: 3 * MANY + PAGES}
"""Requests for new plain edges; OpenMetadata takes one at a time and is asked before and after."""


@pytest.mark.parametrize("counted", PLAIN)
def test_new_edges_take_few_requests(counted: Counted) -> None:
    made = tables()
    with counted() as (platform, asked):
        platform.apply(Batch(datasets=made))
        platform.apply(
            Batch(edges=[edge(made[0], made[-1])])
        )  # so that what is learnt once is known
        asked.clear()

        platform.apply(Batch(edges=chain(made)))

        assert len(asked) <= PLAIN[counted]
        assert {*LineageAbility.of(platform).list_edges()} == {
            *chain(made),
            edge(made[0], made[-1]),
        }


REPEATED: dict[Counted, int] = {datahub: 1, atlas: 3, openmetadata: MANY + PAGES}


@pytest.mark.parametrize("counted", REPEATED)
def test_equal_edges_are_not_written_again(counted: Counted) -> None:
    made = tables()
    mapping = ColumnMapping(upstream_column="id", downstream_column="id")
    edges = chain(made, column_mappings=(mapping,), provenance="sql")
    with counted() as (platform, asked):
        platform.apply(Batch(datasets=made))
        platform.apply(Batch(edges=edges))
        asked.clear()

        platform.apply(Batch(edges=edges))

        assert len(asked) <= REPEATED[counted]
        assert [*LineageAbility.of(platform).list_edges()] == sorted(
            edges, key=lambda each: each.key
        )


@pytest.mark.parametrize("counted", [datahub, openmetadata, atlas])
def test_many_edges_to_one_dataset_are_told_together(counted: Counted) -> None:
    made = tables()
    edges = [edge(each, made[-1], provenance="sql") for each in made[:-1]]
    with counted() as (platform, asked):
        platform.apply(Batch(datasets=made))
        asked.clear()

        platform.apply(Batch(edges=edges))

        assert len(asked) <= MANY + PAGES + 4
        assert {*LineageAbility.of(platform).list_edges()} == {*edges}
