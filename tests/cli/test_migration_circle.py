"""What goes through any catalog, and through all of them in a circle, comes back the same."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import pytest

from catalog_stations import STATIONS, Station
from command_line import Lumos
from lumos.core.platform.factory import PlatformFactory
from migration_circle import (
    compared,
    declared,
    exported,
    exported_file,
    import_everything,
    known_as,
    migrate,
)

START = "embedded"
OTHERS = tuple(name for name in STATIONS if name != START)
BACK = "sqlite:///back.db"


@pytest.fixture
def stations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mapping[str, Station]]:
    with ExitStack() as stack:
        running = {name: stack.enter_context(STATIONS[name](tmp_path)) for name in OTHERS}
        stack.enter_context(known_as(running, monkeypatch))
        yield running


def test_a_way_through_all_catalogs_changes_nothing(
    lumos: Lumos, stations: Mapping[str, Station], capfd: pytest.CaptureFixture[str]
) -> None:
    before = import_everything(lumos)
    lines = []
    for source, target in pairwise((START, *OTHERS, BACK)):
        migrate(lumos, source, target)
        if target in stations:
            with stations[target].connect() as catalog:
                after = exported(catalog)
        else:
            after = exported_file("back.db")
        found = compared(before, after, through=set(stations))
        lines.append(f"{target}: {found.equal}/{found.datasets} datasets equal")
        assert found.differing == (), lines
        assert found.equal == found.datasets
    with capfd.disabled():
        sys.stdout.write("\n" + "\n".join(lines) + "\n")


@pytest.mark.full
@pytest.mark.parametrize("catalog", OTHERS)
def test_there_and_back_is_the_same(
    lumos: Lumos, stations: Mapping[str, Station], catalog: str
) -> None:
    before = import_everything(lumos)
    migrate(lumos, START, catalog)
    migrate(lumos, catalog, BACK)
    found = compared(before, exported_file("back.db"), through={catalog})
    assert (found.differing, found.equal) == ((), found.datasets)


def test_every_catalog_is_a_station_and_every_normalisation_is_of_one() -> None:
    assert set(STATIONS) == set(PlatformFactory.names())
    for each in declared():
        assert each.catalogs <= {*STATIONS, "all"}
        assert each.reason.endswith(".")
