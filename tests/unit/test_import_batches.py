"""An import into a catalog that takes many datasets at a time tells it of many at a time."""

from __future__ import annotations

import os
import signal
import stat
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
from given_work import open_work
from lumos.core.controllers.import_controller import ImportController
from lumos.core.controllers.results import ImportResult
from lumos.core.controllers.sync_controller import SyncController
from lumos.core.errors import LumosError, PlatformAuthError, PlatformError
from lumos.core.platform.batch import Batch, Seen
from lumos.core.platform.batches import looked_up, together
from lumos.core.platform.impl.datahub.handler import DataHubHandler
from lumos.core.store.database import StateDatabase
from lumos.core.store.runs import RunRepository
from lumos.feature.importing.plan import ImportMode
from lumos.feature.snapshot.export import export_document
from lumos.feature.snapshot.source import LoadedSource
from lumos.testing.platform_samples import AT
from snapshot_samples import sample_dataset, sample_snapshot

SIZE = 60


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

    def run(self, **options: Any) -> ImportResult:
        """Import as a new process does."""
        self.double.requests.clear()
        self.double.settle()  # what an earlier process wrote is in the indexes by now
        environment = {"DATAHUB_GMS_URL": self.url}
        with open_work(state_dir=self.state, environment=environment, clock=self._clock) as work:
            return ImportController(work, "datahub").run(str(self.document), **options)

    def written(self) -> Counter[str]:
        """Count what the server was told of datasets since the last run began."""
        asked = [target for method, target, _ in self.double.requests if method == "POST"]
        paths = [target.partition("?")[0] for target in asked]
        return Counter(path.rpartition("/")[2] for path in paths if path.startswith(_ENTITIES))

    def exported(self) -> dict[str, Any]:
        self.double.settle()
        with DataHubHandler.from_config({"gms_server": self.url}) as catalog:
            document = catalog.export_all(at=AT).to_json()
        return {name: document[name] for name in ("datasets", "lineage_edges")}

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


def test_datasets_and_edges_are_written_together(world: World) -> None:
    result = world.run()
    assert len(result.created) == SIZE
    assert result.lineage_edges == SIZE - 1
    told = world.written()
    assert 0 < told["dataset"] <= SIZE // 3
    assert result.report.failed == ()


def test_what_arrives_is_what_one_by_one_brings(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.run()
    together_there = world.exported()
    world.double.clear()
    world.state = world.folder / "other"
    for name in ("BATCH", "CONCURRENCY"):
        monkeypatch.setattr(DataHubHandler, name, 1)
    result = world.run()
    assert len(result.created) == SIZE
    assert world.exported() == together_there


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


def test_a_changed_snapshot_updates_each_dataset(world: World) -> None:
    world.run()
    world.fill(note="of the order")
    result = world.run(batch_size=25)
    assert len(result.updated) == SIZE
    fields = [each["schema"]["fields"][2] for each in world.exported()["datasets"]]
    assert {field["description"] for field in fields} == {"of the order"}


def test_the_state_of_the_project_knows_nothing_of_what_another_catalog_got(world: World) -> None:
    result = world.run()
    assert len(result.created) == SIZE
    with StateDatabase.open(world.state / "lumos.db", read_only=True) as database:
        for table in ("datasets", "versions", "lineage_edges", "entities", "identity_map"):
            assert database.query(f"SELECT * FROM {table}") == []  # noqa: S608
    with open_work(state_dir=world.state, environment={"DATAHUB_GMS_URL": world.url}) as work:
        assert SyncController(work).sync("datahub").writes == 0
    assert len(world.exported()["datasets"]) == SIZE


def test_one_dataset_that_is_refused_is_sent_alone_and_named(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    unwanted = sample_dataset(7)
    with monkeypatch.context() as patch:
        sizes = refuse(patch, unwanted.name, PlatformError("not this one"))
        result = world.run(batch_size=20)
    assert max(sizes) == DataHubHandler.BATCH
    assert sizes.count(1) == DataHubHandler.BATCH  # each of the batch that was refused
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
    (failed,) = result.report.failed
    assert (failed.item, failed.reason) == (
        f"lineage from {sample_dataset(6).urn} to {unwanted.urn}",
        "not this one",
    )
    assert len(result.created) == SIZE
    assert result.lineage_edges == SIZE - 2
    assert len(world.exported()["lineage_edges"]) == SIZE - 2
    again = world.run()
    assert (again.lineage_edges, again.report.failed) == (1, ())
    assert len(world.exported()["lineage_edges"]) == SIZE - 1


def test_a_catalog_that_is_lost_ends_the_run_and_the_next_one_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        apply, numbers = DataHubHandler.apply, count(1)

        def expiring(
            self: DataHubHandler, batch: Batch, seen: Mapping[str, Seen] | None = None
        ) -> None:
            if batch.datasets and next(numbers) > 1:
                raise PlatformAuthError("the token has expired")
            apply(self, batch, seen)

        patch.setattr(DataHubHandler, "apply", expiring)
        with pytest.raises(PlatformAuthError):
            world.run(batch_size=10)
    result = world.run(batch_size=10)
    # What it had taken is as wanted.
    assert result.unchanged == DataHubHandler.BATCH
    assert len(result.created) == SIZE - DataHubHandler.BATCH
    assert len(world.exported()["lineage_edges"]) == SIZE - 1


def test_the_report_of_a_run_that_was_cut_short_counts_what_arrived(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply = DataHubHandler.apply

    def expiring(
        self: DataHubHandler, batch: Batch, seen: Mapping[str, Seen] | None = None
    ) -> None:
        if batch.edges:
            raise PlatformAuthError("the token has expired")
        apply(self, batch, seen)

    monkeypatch.setattr(DataHubHandler, "apply", expiring)
    with pytest.raises(PlatformAuthError):
        world.run()
    with StateDatabase.open(world.state / "lumos.db", read_only=True) as database:
        (kept,) = RunRepository(database).recent()
    assert kept.report["counts"] == {"done": SIZE, "skipped": 0, "failed": 1}
    assert kept.report["warnings"] == ["it ended early: the token has expired"]


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
    compared, *sent = shown.told
    assert compared == SIZE
    assert sent[: SIZE // 10] == [*range(10, SIZE + 1, 10)]


def test_an_import_that_is_killed_loses_nothing_and_doubles_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = world.folder / "temporary"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    reached, released = held_up(world.double, monkeypatch)
    command = [sys.executable, "-m", "lumos", "--state-dir", "state", "import", "in.json"]
    child = subprocess.Popen(
        [*command, "--platform", "datahub", "--batch-size", "10"],
        env={**os.environ, "DATAHUB_GMS_URL": world.url, "TMPDIR": str(place)},
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
    left = [file for file in place.rglob("*") if file.name == "lumos.db"]
    assert [stat.S_IMODE(file.stat().st_mode) for file in left] == [0o600]
    result = world.run(batch_size=10)
    # What was sent is found there.
    assert len(result.updated) + result.unchanged > 10
    assert len(result.created) + len(result.updated) + result.unchanged == SIZE
    there = world.exported()
    assert len(there["datasets"]) == SIZE
    assert len(there["lineage_edges"]) == SIZE - 1
    assert world.run().unchanged == SIZE
    assert [*place.iterdir()] == []


def held_up(
    double: DataHubDouble, patch: pytest.MonkeyPatch
) -> tuple[threading.Event, threading.Event]:
    """Let the server take some datasets, and keep the answer back."""
    reached, released = threading.Event(), threading.Event()
    answer: Callable[[str, str, Any], tuple[int, Any]] = double.answer
    seen: set[str] = set()

    def late(method: str, target: str, body: Any) -> tuple[int, Any]:
        done = answer(method, target, body)
        asked = body if isinstance(body, list) else []
        seen.update(each["urn"] for each in asked if "schemaMetadata" in each)
        if len(seen) > 10:
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
