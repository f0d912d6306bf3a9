"""Whether a catalog is still what the newest snapshot was made of, told without an export."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest

from given_work import GivenWork, given_project
from lumos.core.controllers.snapshot_controller import SnapshotController
from lumos.core.models import DatasetVersion, Tag, with_parts
from lumos.core.platform.batch import Batch, Identity
from lumos.core.platform.impl.embedded_handler import EmbeddedHandler
from lumos.core.store.database import StateDatabase
from lumos.core.store.history import HistoryRepository
from lumos.testing.platform_samples import dataset, edge
from state_databases import ENGINES, url_for

AT = datetime(2024, 1, 15, tzinfo=UTC)
Change = Callable[[EmbeddedHandler, StateDatabase], None]


def add_version(_: EmbeddedHandler, database: StateDatabase) -> None:
    version = DatasetVersion(version="2.0.0", timestamp=AT)
    HistoryRepository(database).append(dataset("a").urn, version, dataset=dataset("a"), changes=())


CHANGES: dict[str, Change] = {
    "a dataset is added": lambda to, _: to.emit_dataset(dataset("c")),
    "a dataset is altered": lambda to, _: to.emit_dataset(with_parts(dataset("a"), tags=("pii",))),
    "a dataset is removed": lambda to, _: to.delete(dataset("b").urn),
    "an edge is added": lambda to, _: to.apply(Batch(edges=[edge(dataset("a"), dataset("b"))])),
    "a tag is added": lambda to, _: to.apply(Batch(entities=[Tag(name="pii")])),
    "an identity is added": lambda to, _: to.apply(
        Batch(identities=[Identity(dataset("a").urn, "datahub", "urn:li:dataset:1")])
    ),
    "an extension is added": lambda to, _: to.apply(Batch(extensions={"acme": {"x": 1}})),
    "a version is added": add_version,
}


@pytest.fixture(params=ENGINES)
def database(request: pytest.FixtureRequest) -> Iterator[StateDatabase]:
    with StateDatabase.open(url_for(request.param, request)) as database:
        yield database


@pytest.fixture
def catalog(database: StateDatabase) -> EmbeddedHandler:
    catalog = EmbeddedHandler(database, clock=lambda: AT)
    catalog.emit_dataset(dataset("a"))
    catalog.emit_dataset(dataset("b"))
    return catalog


@pytest.fixture
def snapshots(catalog: EmbeddedHandler, tmp_path: Path) -> SnapshotController:
    clock = (AT + timedelta(seconds=second) for second in count()).__next__
    project = given_project(tmp_path, clock=clock)
    return SnapshotController(GivenWork(project, platforms={None: catalog}))


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_the_fingerprint_and_the_newest_snapshot_follow_every_change(
    catalog: EmbeddedHandler,
    database: StateDatabase,
    snapshots: SnapshotController,
    change: Change,
) -> None:
    before, first = catalog.content_fingerprint(), snapshots.create(reuse_identical=True)

    change(catalog, database)

    assert catalog.content_fingerprint() != before
    assert snapshots.create(reuse_identical=True).id != first.id


def test_a_catalog_that_is_as_it_was_is_not_read_again(
    catalog: EmbeddedHandler, snapshots: SnapshotController, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = snapshots.create(reuse_identical=True)

    def refused(*_: object, **__: object) -> None:
        raise AssertionError("a dataset was read")

    monkeypatch.setattr(EmbeddedHandler, "list", refused)
    assert snapshots.create(reuse_identical=True).id == first.id
    with pytest.raises(AssertionError, match="was read"):
        snapshots.create()


@pytest.mark.parametrize("note", ["", "[]", "{", '{"snapshot": "x", "fingerprint": 1}'])
def test_a_note_that_is_lost_or_damaged_costs_a_comparison_and_nothing_else(
    snapshots: SnapshotController, tmp_path: Path, note: str
) -> None:
    first = snapshots.create(reuse_identical=True)
    (tmp_path / "snapshots" / ".made-of.json").write_text(note)

    assert snapshots.create(reuse_identical=True).id == first.id
    assert len(snapshots.list().snapshots) == 1


def test_a_snapshot_that_lost_a_part_is_made_again(
    snapshots: SnapshotController, tmp_path: Path
) -> None:
    first = snapshots.create(reuse_identical=True)
    for part in (tmp_path / "snapshots" / first.id).glob("*.zst"):
        part.unlink()

    again = snapshots.create(reuse_identical=True)

    assert all(report.ok for report in snapshots.verify(again.id).reports)
