"""An interrupted import goes on where it stopped, and never passes over what is not done."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest

from given_work import open_work
from lumos.core.controllers.catalog_controller import CatalogController
from lumos.core.controllers.import_controller import ImportController
from lumos.core.controllers.results import ImportResult
from lumos.core.controllers.snapshot_controller import SnapshotController
from lumos.core.errors import PlatformError
from lumos.core.models import LumosDataset
from lumos.feature.importing.plan import ImportMode
from lumos.feature.snapshot.export import export_document
from lumos.feature.snapshot.source import LoadedSource
from lumos.feature.versioning.publishing import Publisher
from snapshot_samples import sample_snapshot

SIZE = 60


class InterruptionError(Exception):
    """What a kill is to a test in one process: nothing after it is carried out."""


@pytest.fixture
def clock() -> Callable[[], datetime]:
    seconds = count()
    return lambda: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=next(seconds))


Run = Callable[..., ImportResult]


@pytest.fixture
def run(tmp_path: Path, clock: Callable[[], datetime]) -> Run:
    def imported(
        document: Path, *, mode: ImportMode = ImportMode.UPDATE, restart: bool = False
    ) -> ImportResult:
        with open_work(state_dir=tmp_path / "state", environment={}, clock=clock) as work:
            importer = ImportController(work)
            return importer.run(str(document), mode=mode, restart=restart, batch_size=10)

    return imported


@pytest.fixture
def document(tmp_path: Path) -> Path:
    target = tmp_path / "in.json"
    export_document(LoadedSource(sample_snapshot(SIZE), "memory"), target)
    return target


def interrupt_after(published: int, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    numbers = count(1)
    publish = Publisher.publish

    def counted(self: Publisher, dataset: LumosDataset) -> object:
        if next(numbers) > published:
            raise InterruptionError
        return publish(self, dataset)

    monkeypatch.setattr(Publisher, "publish", counted)
    return monkeypatch


def versions_and_edges(folder: Path) -> tuple[dict[str, list[str]], int]:
    with open_work(state_dir=folder / "state", environment={}) as work:
        snapshot = SnapshotController(work).opened("embedded").load()
        versions = {
            str(dataset.urn): [
                entry.version
                for entry in CatalogController(work).history(dataset.urn).schema_history
            ]
            for dataset in snapshot.datasets
        }
        return versions, len(snapshot.lineage_edges)


def test_the_next_run_does_only_what_is_left(
    tmp_path: Path,
    run: Run,
    document: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        interrupt_after(34, patch)
        with pytest.raises(InterruptionError):
            run(document)

    result = run(document)

    assert result.resumed == 30  # the batch that was under way is done again
    assert len(result.created) == SIZE - 30
    versions, edges = versions_and_edges(tmp_path)
    assert edges == SIZE - 1
    assert len(versions) == SIZE
    assert {tuple(found) for found in versions.values()} == {("1.0.0",)}
    assert run(document).resumed == 0


def test_what_somebody_else_wrote_meanwhile_is_looked_at_again(
    tmp_path: Path,
    run: Run,
    document: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        interrupt_after(34, patch)
        with pytest.raises(InterruptionError):
            run(document)
    other = tmp_path / "other.json"
    export_document(LoadedSource(sample_snapshot(5, note="other"), "memory"), other)
    run(other)

    result = run(document)

    assert result.resumed == 0
    assert len(result.created) + len(result.updated) + result.unchanged == SIZE
    versions, _ = versions_and_edges(tmp_path)
    assert len(versions) == SIZE


@pytest.mark.parametrize("options", [{"mode": ImportMode.OVERWRITE}, {"restart": True}])
def test_another_mode_or_a_restart_begins_anew(
    run: Run,
    document: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, object],
) -> None:
    with monkeypatch.context() as patch:
        interrupt_after(34, patch)
        with pytest.raises(InterruptionError):
            run(document)

    result = run(document, **options)

    assert result.resumed == 0
    assert result.unchanged + len(result.updated) == 30
    assert len(result.created) == SIZE - 30


def test_an_item_that_failed_is_tried_again(
    run: Run, document: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish = Publisher.publish
    numbers = count(1)

    def failing(self: Publisher, dataset: LumosDataset) -> object:
        number = next(numbers)
        if number == 15:
            raise PlatformError("refused")
        if number > 34:
            raise InterruptionError
        return publish(self, dataset)

    with monkeypatch.context() as patch:
        patch.setattr(Publisher, "publish", failing)
        with pytest.raises(InterruptionError):
            run(document)

    result = run(document)

    assert result.resumed == 10
    assert result.report.failed == ()
    looked_at = len(result.created) + len(result.updated) + result.unchanged
    assert looked_at + result.resumed == SIZE


def test_a_state_that_is_gone_takes_its_checkpoint_along(
    tmp_path: Path,
    run: Run,
    document: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        interrupt_after(34, patch)
        with pytest.raises(InterruptionError):
            run(document)
    shutil.rmtree(tmp_path / "state")

    result = run(document)

    assert (result.resumed, len(result.created)) == (0, SIZE)


def at_clock(folder: Path, start: datetime) -> Run:
    seconds = count()

    def imported(document: Path) -> ImportResult:
        with open_work(
            state_dir=folder / "state",
            environment={},
            clock=lambda: start + timedelta(seconds=next(seconds)),
        ) as work:
            return ImportController(work).run(str(document), mode=ImportMode.UPDATE, batch_size=10)

    return imported


NOW, AHEAD = datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)


def test_a_run_with_a_clock_ahead_does_not_keep_later_ones_from_being_resumed(
    tmp_path: Path, document: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other.json"
    export_document(LoadedSource(sample_snapshot(3), "memory"), other)
    at_clock(tmp_path, AHEAD)(other)
    with monkeypatch.context() as patch:
        interrupt_after(35, patch)
        with pytest.raises(InterruptionError):
            at_clock(tmp_path, NOW)(document)

    assert at_clock(tmp_path, NOW)(document).resumed > 0


def test_a_clock_set_back_does_not_hide_that_somebody_else_wrote_meanwhile(
    tmp_path: Path, document: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        interrupt_after(35, patch)
        with pytest.raises(InterruptionError):
            at_clock(tmp_path, AHEAD)(document)
    with open_work(state_dir=tmp_path / "state", environment={}, clock=lambda: NOW) as work:
        dataset = sample_snapshot(SIZE).datasets[0]
        work.writer.execute("DELETE FROM datasets WHERE urn = :urn", {"urn": dataset.urn})
        with work.begin_run("ingest"):
            pass

    result = at_clock(tmp_path, NOW)(document)

    assert result.resumed == 0
    with open_work(state_dir=tmp_path / "state", environment={}) as work:
        assert len(list(work.platform(None).list())) == SIZE
