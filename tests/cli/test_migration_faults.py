"""A migration that meets faults of the server is completed by running it again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from catalog_stations import STATIONS, Station
from command_line import Lumos, Result
from faulty_wire import FAULTS, faulty_wire
from migration_circle import compared, exported, import_everything, known_as

MOST_RUNS = 200


@pytest.fixture
def station(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Station]:
    with (
        STATIONS[request.param](tmp_path) as running,
        known_as({request.param: running}, monkeypatch),
    ):
        yield running


@pytest.mark.parametrize(
    ("station", "fault"),
    [
        ("datahub", "reset, though done"),
        ("atlas", "no answer in time, though done"),
        pytest.param("datahub", "an expired token", marks=pytest.mark.full),
        pytest.param("openmetadata", "500", marks=pytest.mark.full),
        pytest.param("openmetadata", "somebody else was quicker (412)", marks=pytest.mark.full),
        pytest.param("atlas", "an answer that breaks off", marks=pytest.mark.full),
    ],
    indirect=["station"],
)
def test_all_of_it_arrives_once(
    lumos: Lumos,
    station: Station,
    fault: str,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = import_everything(lumos)
    catalog = request.node.callspec.params["station"]
    command = ("migrate", "--from", "embedded", "--to", catalog, "--json")
    with faulty_wire(FAULTS[fault], monkeypatch) as wire:
        assert any(_completed(lumos(*command)) for _ in range(MOST_RUNS))
    assert wire.hits
    with station.connect() as platform:
        found = compared(before, exported(platform), through={catalog})
    assert (found.differing, found.equal) == ((), found.datasets)


def _completed(run: Result) -> bool:
    if run.exit_code != 0:
        return False
    imported = run.json()["imported"]
    return not imported["report"]["counts"]["failed"]
