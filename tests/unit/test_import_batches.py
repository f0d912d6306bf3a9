"""An import into a catalog that takes many datasets at a time tells it of many at a time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from doubles.datahub_server import DataHubDouble, datahub_double
from lumos.bootstrap import Application
from lumos.core.controllers.publishing import Publisher
from lumos.core.controllers.results import ImportResult
from lumos.core.errors import LumosError, PlatformAuthError, PlatformError
from lumos.core.models import LumosDataset
from lumos.core.platform.batch import Batch, Seen
from lumos.core.platform.batches import looked_up, together
from lumos.core.platform.impl.datahub.handler import DataHubHandler
from lumos.feature.snapshot.export import export_document
from lumos.feature.snapshot.import_plan import ImportMode
from lumos.feature.snapshot.source import LoadedSource
from lumos.testing.platform_samples import AT
from snapshot_samples import sample_dataset, sample_snapshot

SIZE = 60
KILLED_IN = 3


class World:
    """A snapshot, a server, and imports from one into the other."""

    def __init__(self, folder: Path, url: str, double: DataHubDouble) -> None:
        self.folder = folder
        self.url = url
        self.double = double
        self.document = folder / "in.json"
        self.state = folder / "state"
        self._seconds = count()
        self.fill()

    def fill(self, *, note: str = "") -> None:
        """Write the snapshot, in another state with another note."""
        export_document(LoadedSource(sample_snapshot(SIZE, note=note), "memory"), self.document)

    def run(self, *, history: bool = True, **options: Any) -> ImportResult:
        """Import as a new process does."""
        self.double.requests.clear()
        environment = {"DATAHUB_GMS_URL": self.url}
        with Application(state_dir=self.state, environment=environment, clock=self._clock) as lumos:
            return lumos.importer("datahub", history=history).run(str(self.document), **options)

    def written(self) -> Counter[str]:
        """Count what the server was told of datasets since the last run began."""
        asked = [target for method, target, _ in self.double.requests if method == "POST"]
        paths = [target.partition("?")[0] for target in asked]
        return Counter(path.rpartition("/")[2] for path in paths if path.startswith(_ENTITIES))

    def exported(self) -> dict[str, Any]:
        with DataHubHandler.from_config({"gms_server": self.url}) as catalog:
            document = catalog.export_all(at=AT).to_json()
        return {name: document[name] for name in ("datasets", "lineage_edges")}

    def versions(self) -> Counter[tuple[str, ...]]:
        """Count the histories of datasets by the versions in them."""
        with Application(state_dir=self.state, environment={}) as lumos:
            found = [
                lumos.catalog.history(sample_dataset(number).urn).schema_history
                for number in range(SIZE)
            ]
        return Counter(tuple(entry.version for entry in history) for history in found)

    def _clock(self) -> datetime:
        return AT + timedelta(seconds=next(self._seconds))


_ENTITIES = "/openapi/v3/entity/"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.chdir(tmp_path)
    with datahub_double() as (url, double):
        yield World(tmp_path, url, double)


def refuse(patch: pytest.MonkeyPatch, name: str, error: LumosError) -> list[int]:
    """Let the catalog refuse whatever holds one dataset; return the sizes of what it is told."""
    apply, sizes = DataHubHandler.apply, []

    def refusing(
        self: DataHubHandler, batch: Batch, seen: Mapping[str, Seen] | None = None
    ) -> None:
        if batch.datasets:
            sizes.append(len(batch.datasets))
        if any(dataset.name == name for dataset in batch.models()):
            raise error
        apply(self, batch, seen)

    patch.setattr(DataHubHandler, "apply", refusing)
    return sizes


@pytest.mark.parametrize("history", [True, False])
def test_datasets_and_edges_are_written_together(world: World, history: bool) -> None:
    result = world.run(history=history)
    assert len(result.created) == SIZE
    assert result.lineage_edges == SIZE - 1
    told = world.written()
    assert 0 < told["dataset"] <= SIZE // 3
    assert result.report.failed == ()


def test_what_arrives_is_what_one_by_one_brings(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.run()
    together_there, together_known = world.exported(), world.versions()
    world.double.clear()
    world.state = world.folder / "other"
    for name in ("BATCH", "CONCURRENCY"):
        monkeypatch.setattr(DataHubHandler, name, 1)
    result = world.run()
    assert len(result.created) == SIZE
    assert world.exported() == together_there
    assert world.versions() == together_known == {("1.0.0",): SIZE}


def test_an_import_that_is_repeated_writes_nothing(world: World) -> None:
    world.run()
    again = world.run()
    assert (again.unchanged, again.lineage_edges) == (SIZE, 0)
    assert world.written()["dataset"] == 0


@pytest.mark.parametrize("dry_run", [True, False])
def test_what_is_there_is_left_alone_and_asked_for_in_bulk_only(
    world: World, dry_run: bool
) -> None:
    world.run()
    result = world.run(mode=ImportMode.SKIP_EXISTING, dry_run=dry_run)
    assert (result.skipped, result.created) == (SIZE, ())
    assert world.written()["dataset"] == 0
    assert world.written()["batchGet"] < SIZE // 2


def test_a_changed_snapshot_gives_each_dataset_its_next_version(world: World) -> None:
    world.run()
    world.fill(note="of the order")
    result = world.run(batch_size=25)
    assert len(result.updated) == SIZE
    (known,) = world.versions()
    assert len(known) == 2
    held = {each["version"] for each in world.exported()["datasets"]}
    assert held == {known[-1]}


def test_one_dataset_that_is_refused_is_sent_alone_and_named(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    unwanted = sample_dataset(7)
    with monkeypatch.context() as patch:
        sizes = refuse(patch, unwanted.name, PlatformError("not this one"))
        result = world.run(batch_size=20)
    assert max(sizes) == 20
    assert sizes.count(1) == 20  # each of the batch that was refused
    assert len(result.created) == SIZE - 1
    assert [(item.item, item.reason) for item in result.report.failed] == [
        (unwanted.urn, "not this one")
    ]
    again = world.run()
    assert again.created == (unwanted.urn,)
    assert len(world.exported()["datasets"]) == SIZE
    assert len(world.exported()["lineage_edges"]) == SIZE - 1


def test_an_edge_that_is_refused_costs_no_other(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    unwanted = sample_dataset(7)
    sizes: list[int] = []
    with monkeypatch.context() as patch:
        apply = DataHubHandler.apply

        def refusing(
            self: DataHubHandler, batch: Batch, seen: Mapping[str, Seen] | None = None
        ) -> None:
            if batch.edges:
                sizes.append(len(batch.edges))
            if any(edge.downstream_urn == unwanted.urn for edge in batch.edges):
                raise PlatformError("not this one")
            apply(self, batch, seen)

        patch.setattr(DataHubHandler, "apply", refusing)
        result = world.run(batch_size=20)
    assert max(sizes) > 10
    assert [(item.item, item.reason) for item in result.report.failed] == [
        (unwanted.urn, "not this one")
    ]
    assert result.lineage_edges == SIZE - 2
    assert len(world.exported()["lineage_edges"]) == SIZE - 2
    again = world.run()
    assert (again.lineage_edges, again.report.failed) == (1, ())
    assert len(world.exported()["lineage_edges"]) == SIZE - 1
    assert world.versions().keys() == {("1.0.0",)}


def test_a_catalog_that_is_lost_ends_the_run_and_the_next_one_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        apply, numbers = DataHubHandler.apply, count(1)

        def expiring(
            self: DataHubHandler, batch: Batch, seen: Mapping[str, Seen] | None = None
        ) -> None:
            if batch.datasets and next(numbers) > 4:  # a batch, and its versions, twice
                raise PlatformAuthError("the token has expired")
            apply(self, batch, seen)

        patch.setattr(DataHubHandler, "apply", expiring)
        with pytest.raises(PlatformAuthError):
            world.run(batch_size=10)
    result = world.run(batch_size=10)
    assert result.resumed == 20
    assert len(result.created) == SIZE - 20
    assert world.versions() == {("1.0.0",): SIZE}


class Shown:
    """Remembers how far it was said to be."""

    def __init__(self) -> None:
        self.told: list[int] = []

    def note(self, text: str) -> None:
        pass

    def stage(self, name: str, *, total: int | None = None, unit: str = "") -> None:
        pass

    def advance(self, done: int) -> None:
        self.told.append(done)


def test_progress_is_told_of_each_dataset_once(world: World) -> None:
    shown = Shown()
    world.run(progress=shown)
    assert shown.told == [*range(10, SIZE + 1, 10)]


def test_an_import_that_is_killed_loses_nothing_and_doubles_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached, released = held_up(world.double, monkeypatch)
    command = [sys.executable, "-m", "lumos", "--state-dir", "state", "import", "in.json"]
    child = subprocess.Popen(
        [*command, "--platform", "datahub", "--batch-size", "10"],
        env={**os.environ, "DATAHUB_GMS_URL": world.url},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while not reached.wait(0.1):
            assert child.poll() is None, "it ended before it could be killed"
    finally:
        if child.poll() is None:
            os.kill(child.pid, signal.SIGKILL)
        child.wait()
        released.set()
    result = world.run(batch_size=10)
    assert result.resumed == 10 * (KILLED_IN - 1)
    # What was sent and not remembered is found there.
    assert len(result.updated) + result.unchanged == 10
    assert len(result.created) == SIZE - 10 * KILLED_IN
    there = world.exported()
    assert len(there["datasets"]) == SIZE
    assert len(there["lineage_edges"]) == SIZE - 1
    assert world.versions() == {("1.0.0",): SIZE}
    assert {each["version"] for each in there["datasets"]} == {"1.0.0"}
    assert world.run().unchanged == SIZE


@pytest.mark.parametrize("restart", [True, False])
def test_a_version_is_not_lost_whatever_is_imported_after_a_kill(
    world: World, monkeypatch: pytest.MonkeyPatch, restart: bool
) -> None:
    world.run(batch_size=10)
    world.fill(note="of the order")
    with monkeypatch.context() as patch:
        numbers = count(1)
        recorded = Publisher.recorded

        def ended(self: Publisher, dataset: LumosDataset) -> LumosDataset | None:
            if next(numbers) > 15:
                raise KeyboardInterrupt  # the catalog has answered, and nothing is kept here
            return recorded(self, dataset)

        patch.setattr(Publisher, "recorded", ended)
        with pytest.raises(KeyboardInterrupt):
            world.run(batch_size=10)
    if restart:
        result = world.run(batch_size=10, restart=True)
    else:
        world.fill(note="of another order")
        result = world.run(batch_size=10, mode=ImportMode.SKIP_EXISTING)
    assert result.report.failed == ()
    missing = 0 if restart else SIZE - 20
    assert sorted(map(len, world.versions().elements())) == [1] * missing + [2] * (SIZE - missing)


def held_up(
    double: DataHubDouble, patch: pytest.MonkeyPatch
) -> tuple[threading.Event, threading.Event]:
    """Let the server do what the third batch asks for, and keep the answer back."""
    reached, released = threading.Event(), threading.Event()
    answer: Callable[[str, str, Any], tuple[int, Any]] = double.answer
    seen: set[str] = set()

    def late(method: str, target: str, body: Any) -> tuple[int, Any]:
        done = answer(method, target, body)
        asked = body if isinstance(body, list) else []
        seen.update(each["urn"] for each in asked if "schemaMetadata" in each)
        if len(seen) > 10 * (KILLED_IN - 1):
            reached.set()
            released.wait()
        return done

    patch.setattr(double, "answer", late)
    return reached, released


def test_where_all_are_refused_each_is_tried_alone_and_a_lost_catalog_is_not_asked_again() -> None:
    tried: list[Sequence[int]] = []

    def act(error: LumosError) -> Callable[[Sequence[int]], list[int]]:
        def acting(items: Sequence[int]) -> list[int]:
            tried.append(items)
            raise error

        return acting

    refused = together(act(PlatformError("no")), [1, 2], refused=lambda item, _: -item)
    assert (refused, tried) == ([-1, -2], [[1, 2], [1], [2]])
    tried.clear()
    lost = together(act(PlatformAuthError("no")), [1, 2], refused=lambda item, _: -item)
    assert (lost, tried) == ([-1, -2], [[1, 2]])


def test_a_dataset_that_cannot_be_read_does_not_hide_the_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.run()
    find = DataHubHandler.find_datasets
    unreadable = sample_dataset(3).urn

    def failing(self: DataHubHandler, urns: Sequence[str]) -> dict[str, Seen]:
        if unreadable in urns:
            raise PlatformError("it is damaged")
        return find(self, urns)

    monkeypatch.setattr(DataHubHandler, "find_datasets", failing)
    urns = [sample_dataset(number).urn for number in range(10)]
    with DataHubHandler.from_config({"gms_server": world.url}) as catalog:
        found = looked_up(catalog, urns, workers=2)
    assert {urn for urn, each in found.items() if isinstance(each, PlatformError)} == {unreadable}
    assert found.keys() == {*urns}
    result = world.run()
    assert [item.item for item in result.report.failed] == [unreadable]
    assert result.unchanged == SIZE - 1
