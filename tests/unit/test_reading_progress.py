"""Those who wait while a catalog is read are told how much of it was."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typing_extensions import override

from given_work import open_work
from lumos.core.controllers.diff_controller import DiffController
from lumos.core.controllers.migration_controller import MigrationController
from lumos.core.controllers.snapshot_controller import SnapshotController
from lumos.core.platform.impl.embedded_handler import EmbeddedHandler
from lumos.core.progress import Progress
from lumos.core.runtime.unit_of_work import UnitOfWork
from lumos.core.store.database import StateDatabase
from lumos.feature.snapshot.forms import SnapshotForm
from lumos.testing.platform_samples import dataset

COUNT = 1_001
READ = [("reading embedded", "datasets"), 500, 1_000]


class Heard(Progress):
    """What was told, in order."""

    def __init__(self) -> None:
        self.told: list[object] = []

    @override
    def stage(self, name: str, *, total: int | None = None, unit: str = "files") -> None:
        self.told.append((name, unit))

    @override
    def advance(self, done: int) -> None:
        self.told.append(done)

    @override
    def note(self, text: str) -> None:
        self.told.append(text)


@pytest.fixture
def work(tmp_path: Path) -> Iterator[UnitOfWork]:
    state = tmp_path / "state"
    with StateDatabase.open(state / "lumos.db") as database, database.transaction():
        catalog = EmbeddedHandler(database)
        for number in range(COUNT):
            catalog.emit_dataset(dataset(f"t{number:04d}"))
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    with open_work(state_dir=state, environment={}, clock=lambda: moment) as opened:
        yield opened


def test_an_export_and_a_comparison_tell_how_many_datasets_were_read(
    work: UnitOfWork, tmp_path: Path
) -> None:
    exporting, comparing = Heard(), Heard()
    folder = tmp_path / "out"

    SnapshotController(work).export(folder, form=SnapshotForm.FOLDER, progress=exporting)
    with DiffController(work).streamed(str(folder), "embedded", progress=comparing) as found:
        assert found.totals.datasets.old == COUNT

    assert exporting.told == comparing.told == READ


def test_a_migration_tells_it_of_both_catalogs(work: UnitOfWork, tmp_path: Path) -> None:
    migrating = Heard()

    done = MigrationController(work).migrate(
        "embedded", f"sqlite:///{tmp_path / 'new.db'}", progress=migrating
    )

    assert done.verified
    told = migrating.told
    assert told[:4] == ["reading embedded", *READ]
    assert told[-4:] == [f"comparing with {done.target}", *READ]
