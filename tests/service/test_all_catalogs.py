"""The circle of migrations over the servers that can be had, in place of their doubles.

This file comes before those of the single catalogs, which empty a server before each of their
tests: here it is as it was started.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import pytest

from amundsen_server import AmundsenServer
from atlas_server import RealAtlas
from catalog_stations import STATIONS, Station
from command_line import Lumos, capturing
from lumos.core.platform.impl.amundsen.handler import AmundsenHandler
from lumos.core.platform.impl.atlas.handler import AtlasHandler
from migration_circle import (
    compared,
    exported,
    exported_file,
    import_everything,
    known_as,
    migrate,
)

START = "embedded"
BACK = "sqlite:///back.db"


@pytest.fixture
def lumos(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Lumos:
    """The command line in an empty folder."""
    for name in ("LUMOS_PLATFORM", "LUMOS_DATABASE_URL", "LUMOS_STATE_DIR", "DATAHUB_GMS_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return capturing(capfd)


@pytest.fixture
def stations(
    amundsen_server: AmundsenServer,
    real_atlas: RealAtlas,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Mapping[str, Station]]:
    """Real servers where there are some, doubles elsewhere."""
    database = {"database_url": amundsen_server.database_url}
    real = {
        "atlas": Station(lambda: AtlasHandler.from_config(real_atlas.config()), Counter),
        "amundsen": Station(lambda: AmundsenHandler.from_config({**database}), Counter),
    }
    with ExitStack() as stack:
        running = {
            name: real[name] if name in real else stack.enter_context(opened(tmp_path))
            for name, opened in STATIONS.items()
            if name != START
        }
        stack.enter_context(known_as(running, monkeypatch))
        yield running


def test_a_way_through_real_servers_changes_nothing(
    lumos: Lumos, stations: Mapping[str, Station]
) -> None:
    before = import_everything(lumos)
    for source, target in pairwise((START, *stations, BACK)):
        migrate(lumos, source, target)
        if target in stations:
            with stations[target].connect() as catalog:
                after = exported(catalog)
        else:
            after = exported_file("back.db")
        found = compared(before, after, through=set(stations))
        assert (target, found.differing) == (target, ())
        assert found.equal == found.datasets
