"""Many datasets are found at once as each of them is found alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import event

from catalog_stations import STATIONS
from doubles.amundsen_database import amundsen_over, sqlite_engine
from doubles.atlas_server import AtlasServer, atlas_at
from doubles.openmetadata_server import openmetadata_at, openmetadata_server
from lumos.core.models import LumosDataset, Urn
from lumos.core.platform.batch import Batch, Seen
from lumos.core.platform.interface import MetadataPlatformInterface, without_lineage
from lumos.testing.platform_samples import MISSING, dataset, edge, rich_dataset


@pytest.mark.parametrize("catalog", STATIONS)
def test_those_that_are_there_are_found_and_no_others(tmp_path: Path, catalog: str) -> None:
    rich, plain, other = rich_dataset(), dataset("plain"), dataset("other")
    with STATIONS[catalog](tmp_path) as station, station.connect() as platform:
        assert platform.find_datasets([rich.urn]) == {rich.urn: Seen()}
        for each in (rich, plain, other):
            platform.emit_dataset(each)
        platform.apply(Batch(edges=[edge(rich, plain)]))
        found = platform.find_datasets([rich.urn, MISSING, plain.urn])
        assert {urn: without_lineage(each.dataset) for urn, each in found.items()} == {
            rich.urn: rich,
            MISSING: None,
            plain.urn: plain,
        }
        assert platform.find_datasets([]) == {}


MANY = 20
Asked = list[object]
Counted = Callable[[Path], AbstractContextManager[tuple[MetadataPlatformInterface, Asked]]]


@contextmanager
def openmetadata(_: Path) -> Iterator[tuple[MetadataPlatformInterface, Asked]]:
    with openmetadata_server() as (url, store), openmetadata_at(url) as platform:
        asked: Asked = store.requests  # type: ignore[assignment]
        yield platform, asked


@contextmanager
def atlas(_: Path) -> Iterator[tuple[MetadataPlatformInterface, Asked]]:
    with AtlasServer() as server, atlas_at(server) as platform:
        asked: Asked = server.requests  # type: ignore[assignment]
        yield platform, asked


@contextmanager
def amundsen(folder: Path) -> Iterator[tuple[MetadataPlatformInterface, Asked]]:
    asked: Asked = []
    engine = sqlite_engine(folder / "amundsen.db")
    event.listen(engine, "before_cursor_execute", lambda *given: asked.append(given[2]))
    with amundsen_over(engine) as platform:
        yield platform, asked


def tables(number: int, *, schema: str = "public") -> list[LumosDataset]:
    return [
        dataset(
            f"t{each}", urn=Urn.of("snowflake", "shop", schema, f"t{each}"), platform="snowflake"
        )
        for each in range(number)
    ]


@pytest.mark.parametrize("counted", [openmetadata, atlas, amundsen])
def test_many_are_found_by_fewer_requests_than_one_for_each(
    tmp_path: Path, counted: Counted
) -> None:
    made = tables(MANY)
    with counted(tmp_path) as (platform, asked):
        for each in made:
            platform.emit_dataset(each)
        platform.find_datasets([made[0].urn])  # so that what is learnt once is known
        asked.clear()
        platform.find_datasets([made[0].urn])
        alone = len(asked)
        asked.clear()

        found = platform.find_datasets([each.urn for each in made])

        assert found == {each.urn: Seen(each) for each in made}
        assert len(asked) <= max(alone, MANY // 2)


@pytest.mark.parametrize("counted", [openmetadata, amundsen])
def test_that_none_of_many_is_there_is_told_by_few_requests(
    tmp_path: Path, counted: Counted
) -> None:
    with counted(tmp_path) as (platform, asked):
        platform.emit_dataset(dataset())
        asked.clear()

        found = platform.find_datasets([each.urn for each in tables(MANY)])

        assert [*found.values()] == [Seen()] * MANY
        assert len(asked) <= 3


def test_a_long_list_is_not_read_for_a_few_datasets(tmp_path: Path) -> None:
    made = tables(MANY)
    with openmetadata(tmp_path) as (platform, asked):
        for each in made:
            platform.emit_dataset(each)
        for wanted in (made[-2:], made[-4:]):
            asked.clear()
            found = platform.find_datasets([each.urn for each in wanted])
            assert found == {each.urn: Seen(each) for each in wanted}
            assert len(asked) <= len(wanted) + 1


def test_those_of_several_schemas_and_services_are_found_together(tmp_path: Path) -> None:
    files = [dataset(f"f{number}", urn=Urn.of("s3", "lake", f"f{number}")) for number in range(5)]
    made = [*tables(5), *tables(4, schema="raw"), *tables(1, schema="one"), *files]
    with openmetadata(tmp_path) as (platform, _):
        for each in made:
            platform.emit_dataset(each)

        assert platform.find_datasets([each.urn for each in made]) == {
            each.urn: Seen(each) for each in made
        }
