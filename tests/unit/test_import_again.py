"""An import that is repeated asks little and writes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, timedelta
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest

from doubles.atlas_server import STEWARD, AtlasServer, atlas_at
from doubles.datahub_server import datahub_double
from doubles.openmetadata_server import TOKEN, openmetadata_server
from given_work import open_work
from lumos.core.controllers.import_controller import ImportController
from lumos.core.controllers.results import ImportResult
from lumos.core.models import Snapshot, load_snapshot, with_parts
from lumos.core.platform.abilities import LineageAbility
from lumos.core.platform.batch import Batch
from lumos.core.platform.factory import PlatformFactory
from lumos.core.platform.interface import MetadataPlatformInterface
from lumos.feature.importing.plan import ImportMode
from lumos.feature.snapshot.export import export_document
from lumos.feature.snapshot.source import LoadedSource
from lumos.testing.platform_samples import AT, dataset, edge

SIZE = 30


def table(number: int, *, note: str = "", version: str | None = None) -> dict[str, Any]:
    """Return a table of which a catalog keeps some parts apart: checks and figures."""
    return {
        "urn": f"lumos://snowflake/shop/public/table_{number:03d}",
        "name": f"table_{number:03d}",
        "platform": "snowflake",
        "version": version,
        "schema": {"fields": [{"name": "id", "type": "INT64", "description": note or None}]},
        "documentation": {"description": "Orders."},
        "tags": ["raw"],
        "statistics": {"row_count": number},
        "assertions": [{"name": "id is set", "kind": "not_null", "column": "id"}],
    }


def snapshot(*, note: str = "", version: str | None = None) -> Snapshot:
    datasets = [table(number, note=note, version=version) for number in range(SIZE)]
    return load_snapshot(
        {
            "snapshot_schema_version": 1,
            "lumos_version": "0",
            "export_timestamp": "2026-03-01T12:00:00Z",
            "source_platform": "embedded",
            "datasets": datasets,
            "lineage_edges": [
                {"upstream_urn": one["urn"], "downstream_urn": other["urn"]}
                for one, other in pairwise(datasets)
            ],
            "tags": [{"name": "raw"}],
            "users": [{"username": "ana"}],
            "jobs": [{"urn": "lumos://airflow/daily/load", "name": "load"}],
            "identity_map": {each["urn"]: {"other": each["name"]} for each in datasets},
            "extensions": {"other": {"form": [1]}},
        }
    ).with_derived_parts()


Asked = list[Any]
Opened = AbstractContextManager[tuple[dict[str, str], Asked]]


@contextmanager
def datahub() -> Iterator[tuple[dict[str, str], Asked]]:
    with datahub_double() as (url, double):
        double.lag = 0  # what an earlier process wrote is in the indexes by now
        yield {"gms_server": url}, double.requests


@contextmanager
def openmetadata() -> Iterator[tuple[dict[str, str], Asked]]:
    with openmetadata_server() as (url, store):
        yield {"server": url, "auth_token": TOKEN}, store.requests


@contextmanager
def atlas() -> Iterator[tuple[dict[str, str], Asked]]:
    with AtlasServer() as server:
        yield {"url": server.url, "username": "admin", "password": "admin"}, server.requests


class World:
    """A snapshot, a catalog, and imports from one into the other."""

    def __init__(self, folder: Path, name: str, config: dict[str, str], asked: Asked) -> None:
        self.folder, self.name, self.asked = folder, name, asked
        settings = {"platform_config": {name: config}}
        (folder / "lumos.yaml").write_text(json.dumps(settings), "utf-8")
        self._config = config
        self._seconds = count()
        self.fill()

    def fill(self, *, note: str = "", version: str | None = None) -> None:
        source = LoadedSource(snapshot(note=note, version=version), "memory")
        export_document(source, self.folder / "in.json")

    def run(self, **options: Any) -> ImportResult:
        """Import as a new process does."""
        self.asked.clear()
        with open_work(state_dir=self.folder / "state", environment={}, clock=self._clock) as work:
            return ImportController(work, self.name).run(str(self.folder / "in.json"), **options)

    def catalog(self) -> MetadataPlatformInterface:
        return PlatformFactory.handler(self.name).from_config(self._config)

    def writes(self) -> list[Any]:
        return [each for each in self.asked if _writes(*each[:2])]

    def _clock(self) -> datetime:
        return AT + timedelta(seconds=next(self._seconds))


def _writes(method: str, target: str) -> bool:
    read = ("batchGet", "scroll", "search/basic")
    return method != "GET" and not target.partition("?")[0].endswith(read)


CATALOGS: dict[str, Callable[[], Opened]] = {
    "datahub": datahub,
    "openmetadata": openmetadata,
    "atlas": atlas,
}


@pytest.fixture(params=CATALOGS)
def world(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[World]:
    monkeypatch.chdir(tmp_path)
    with CATALOGS[request.param]() as (config, asked):
        yield World(tmp_path, request.param, config, asked)


BESIDES_LISTS = {"datahub": 5, "openmetadata": 2 * SIZE + 20, "atlas": 20}
"""OpenMetadata tells lineage and test cases of one table at a time, and has no lists of them."""


@pytest.mark.parametrize("mode", [ImportMode.UPDATE, ImportMode.OVERWRITE])
def test_an_import_that_is_repeated_asks_little_and_writes_nothing(
    world: World, mode: ImportMode
) -> None:
    world.run(mode=mode)
    again = world.run(mode=mode)
    assert (again.unchanged, again.lineage_edges, again.report.failed) == (SIZE, 0, ())
    assert world.writes() == []
    asked = [target for _, target, *_ in world.asked if "/scroll" not in target]
    assert len(asked) <= BESIDES_LISTS[world.name]


def test_with_ordinary_rights_all_else_arrives_and_the_second_time_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A login of Atlas that defines no types and may not see one table."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("doubles.atlas_server.HIDDEN", "table_013")
    with AtlasServer() as server:
        with atlas_at(server) as administrator:
            administrator.emit_dataset(dataset())
            administrator.delete(dataset().urn)
        config = {"url": server.url, "username": STEWARD, "password": "admin"}
        world = World(tmp_path, "atlas", config, server.requests)

        results = [world.run()]
        before = server.store.writes
        results.append(world.run())

        assert server.store.writes == before
        assert (len(results[0].created), results[1].unchanged) == (SIZE - 1, SIZE - 1)
        for result in results:
            failed = [each.item for each in result.report.failed]
            assert [item for item in failed if "table_013" not in item] == ["tag raw"]
            assert "lumos://snowflake/shop/public/table_013" in failed
        with world.catalog() as catalog:
            found = [*catalog.list()]
        assert len(found) == SIZE - 1
        assert {one.tags for one in found} == {("raw",)}


def test_versions_are_those_of_the_snapshot(world: World) -> None:
    for version in ("1.0.0", "1.1.0"):
        world.fill(version=version)
        world.run()
        with world.catalog() as catalog:
            assert {dataset.version for dataset in catalog.list()} == {version}
    assert world.run().unchanged == SIZE


def test_what_somebody_changed_or_deleted_in_the_catalog_is_noticed(world: World) -> None:
    world.run()
    with world.catalog() as catalog:
        first, second, third = (found := [*catalog.list()])[:3]
        catalog.delete(first.urn)
        catalog.emit_dataset(with_parts(second, documentation={"description": "Other."}))
        catalog.emit_dataset(with_parts(third, statistics={"row_count": 999}))
    result = world.run()
    assert result.created == (first.urn,)
    assert {second.urn, third.urn} <= {*result.updated}
    assert result.unchanged >= SIZE - 4  # a neighbour lost its lineage
    with world.catalog() as catalog:
        assert [*catalog.list()] == found


def test_lineage_that_a_complete_snapshot_lacks_goes_when_overwriting(world: World) -> None:
    world.run()
    with world.catalog() as catalog:
        first, *_, last = catalog.list()
        catalog.apply(Batch(edges=[edge(last, first)]))
        before = len([*LineageAbility.of(catalog).list_edges()])
    assert world.run().lineage_edges_removed == 0
    result = world.run(mode=ImportMode.OVERWRITE)
    assert (result.lineage_edges_removed, result.report.failed) == (1, ())
    with world.catalog() as catalog:
        assert len([*LineageAbility.of(catalog).list_edges()]) == before - 1 == SIZE - 1
