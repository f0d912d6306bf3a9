"""Whatever a server does in the middle of a sync, nothing is lost and nothing is there twice."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from catalog_stations import STATIONS, Station
from faulty_wire import FAULTS, faulty_wire
from given_work import GivenWork, given_project
from lumos.core.controllers.sync_controller import SyncController
from lumos.core.errors import PlatformError
from lumos.core.models import Domain, GlossaryTerm, Group, Tag, User
from lumos.core.platform.batch import Batch
from lumos.core.platform.impl.embedded_handler import EmbeddedHandler
from lumos.core.platform.interface import MetadataPlatformInterface
from lumos.core.run_report import RunReport
from lumos.core.runtime.settings import FeatureSettings, LumosSettings
from lumos.core.store.database import StateDatabase
from lumos.feature.sync.results import SyncResult
from lumos.feature.sync.settings import SyncSettings
from lumos.testing.platform_samples import AT, dataset, edge

FULL_SIZE = os.environ.get("LUMOS_TEST_FULL") == "1"
SIZE = 1_000 if FULL_SIZE else 8
CATALOGS = ("datahub", "openmetadata", "atlas")


def fill(catalog: EmbeddedHandler, size: int) -> None:
    """Put datasets with a little of what people care for into a catalog, and lineage."""
    catalog.apply(Batch(entities=[User(username="ada", email="ada@example.org")]))
    catalog.apply(Batch(entities=[Group(name="shop", members=("ada",))]))
    catalog.apply(Batch(entities=[Tag(name="gold", description="of the best")]))
    catalog.apply(Batch(entities=[Domain(name="sales")]))
    catalog.apply(Batch(entities=[GlossaryTerm(name="Order", definition="what is bought")]))
    made = [
        dataset(
            f"t{number:04d}",
            schema={
                "fields": [
                    {"name": "id", "type": "INT64", "nullable": False},
                    {"name": "price", "type": "DECIMAL", "precision": 10, "scale": 2},
                    {"name": "note", "type": "STRING", "tags": ["gold"], "description": "free"},
                ]
            },
            ownership=[{"user": "ada"}, {"group": "shop"}],
            tags=["gold"],
            documentation={"description": f"Number {number}"},
            properties={"number": number},
        )
        for number in range(size)
    ]
    for each in made:
        catalog.emit_dataset(each)
    for upstream, downstream in zip(made[::4], made[1::4], strict=False):
        catalog.apply(Batch(edges=[edge(upstream, downstream)]))


class World:
    """A filled catalog of Lumos, and the way from it to a server."""

    def __init__(self, database: StateDatabase, station: Station) -> None:
        self.local = EmbeddedHandler(database)
        self.reports: list[RunReport] = []
        self._database = database
        self._station = station

    def sync(self) -> SyncResult:
        """Sync once, as a new process does."""
        with self._station.connect() as target:
            settings = LumosSettings(
                sync=SyncSettings(batch_size=SIZE // 4),
                features=FeatureSettings(schema_tracking=False),
            )
            work = GivenWork(
                given_project(Path("nowhere"), settings, clock=lambda: AT),
                database=self._database,
                platforms={"there": target},
                reports=self.reports,
            )
            return SyncController(work).sync("there")

    def sync_until_done(self) -> int:
        """Sync until a run ends without a failure, and return how many did not."""
        for failures in range(10 * SIZE):
            known = len(self.reports)
            ended_by = self._ended_by()
            report = self.reports[-1] if len(self.reports) > known else None
            if ended_by is None and report is not None and not report.failed:
                return failures
            if ended_by is not None and report is not None:
                assert report.warnings == (f"it ended early: {ended_by.message}",)
                assert not report.complete
        raise AssertionError("a sync never comes to its end")

    def _ended_by(self) -> PlatformError | None:
        try:
            self.sync()
        except PlatformError as error:
            return error
        return None


def everything(catalog: MetadataPlatformInterface) -> object:
    snapshot = catalog.export_all(at=AT).to_json()
    del snapshot["source_platform"]
    return snapshot


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("filled") / "lumos.db"
    with StateDatabase.open(path) as database, database.transaction():
        fill(EmbeddedHandler(database), SIZE)
    return path


@pytest.fixture
def world(
    tmp_path: Path, filled: Path, request: pytest.FixtureRequest
) -> Iterator[tuple[World, Station]]:
    shutil.copy(filled, tmp_path / "lumos.db")
    with ExitStack() as stack:
        station = stack.enter_context(STATIONS[request.param](tmp_path))
        database = stack.enter_context(StateDatabase.open(tmp_path / "lumos.db"))
        yield World(database, station), station


@pytest.fixture(scope="module")
def undisturbed(
    tmp_path_factory: pytest.TempPathFactory, filled: Path
) -> dict[str, tuple[object, object]]:
    """What each server holds, and gives back, where nothing goes wrong."""
    found: dict[str, tuple[object, object]] = {}
    for name in CATALOGS:
        folder = tmp_path_factory.mktemp(name)
        shutil.copy(filled, folder / "lumos.db")
        with (
            STATIONS[name](folder) as station,
            StateDatabase.open(folder / "lumos.db") as database,
        ):
            World(database, station).sync()
            with station.connect() as platform:
                found[name] = (station.census(), everything(platform))
    return found


PAIRS = [
    pytest.param(catalog, fault, id=f"{catalog}-{fault}")
    for place, fault in enumerate(FAULTS)
    for number, catalog in enumerate(CATALOGS)
    if FULL_SIZE or place % len(CATALOGS) == number
]


@pytest.mark.parametrize(("world", "fault"), PAIRS, indirect=["world"])
def test_nothing_is_lost_and_nothing_doubled(
    world: tuple[World, Station],
    fault: str,
    undisturbed: dict[str, tuple[object, object]],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    syncing, station = world
    with faulty_wire(FAULTS[fault], monkeypatch) as wire:
        syncing.sync_until_done()
    assert wire.hits
    census, content = undisturbed[request.node.callspec.params["world"]]
    assert station.census() == census
    with station.connect() as platform:
        assert everything(platform) == content
    assert syncing.sync().writes == 0
