"""One item that fails spares the others or ends the run, alike in an import and in a sync."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import count
from pathlib import Path

import pytest

from given_work import open_work
from lumos.core.controllers.import_controller import ImportController
from lumos.core.controllers.results import ImportResult
from lumos.core.errors import (
    InvalidModelError,
    LumosError,
    PlatformAuthError,
    PlatformConflictError,
    PlatformError,
    PlatformUnavailableError,
)
from lumos.core.models import LumosDataset, Tag
from lumos.core.platform.batch import Batch
from lumos.core.platform.entity_writer import EntityWriter
from lumos.core.platform.impl.embedded_handler import EmbeddedHandler
from lumos.core.platform.refusals import ends_run
from lumos.core.run_report import RunRecorder
from lumos.core.settings.item_document import ItemDocument
from lumos.core.store.database import StateDatabase
from lumos.core.store.runs import RunRepository
from lumos.feature.snapshot.export import export_document
from lumos.feature.snapshot.source import LoadedSource
from lumos.feature.versioning.publishing import Publisher
from lumos.testing.platform_samples import AT
from snapshot_samples import sample_snapshot

SIZE = 20
SPARING = [PlatformError, PlatformConflictError, InvalidModelError]
ENDING = [PlatformUnavailableError, PlatformAuthError]


@pytest.fixture
def document(tmp_path: Path) -> Path:
    target = tmp_path / "in.json"
    export_document(LoadedSource(sample_snapshot(SIZE), "memory"), target)
    return target


seconds = count()


def clock() -> datetime:
    return AT + timedelta(seconds=next(seconds))


def run(folder: Path, document: Path) -> ImportResult:
    with open_work(state_dir=folder / "state", environment={}, clock=clock) as work:
        return ImportController(work).run(str(document), batch_size=5)


class Refusing:
    """Lets publishing fail from one dataset on, for as many as asked for."""

    def __init__(self, error: LumosError, *, first: int, times: int = SIZE) -> None:
        self.tried = 0
        self._refused = range(first, first + times)
        self._error = error
        self._numbers = count(1)
        self._publish = Publisher.publish

    def into(self, patch: pytest.MonkeyPatch) -> None:
        def publish(publisher: Publisher, dataset: LumosDataset) -> object:
            self.tried += 1
            if next(self._numbers) in self._refused:
                raise self._error
            return self._publish(publisher, dataset)

        patch.setattr(Publisher, "publish", publish)


@pytest.mark.parametrize("kind", SPARING)
def test_a_dataset_that_is_refused_spares_the_others_and_is_imported_the_next_time(
    tmp_path: Path, document: Path, monkeypatch: pytest.MonkeyPatch, kind: type[LumosError]
) -> None:
    with monkeypatch.context() as patch:
        Refusing(kind("not this one"), first=7, times=1).into(patch)
        result = run(tmp_path, document)
    assert len(result.created) == SIZE - 1
    assert [item.reason for item in result.report.failed] == ["not this one"]
    again = run(tmp_path, document)
    assert again.created == tuple(item.item for item in result.report.failed)
    assert again.report.failed == ()


@pytest.mark.parametrize("kind", ENDING)
def test_a_catalog_that_is_lost_ends_an_import_at_once_and_the_report_is_kept(
    tmp_path: Path, document: Path, monkeypatch: pytest.MonkeyPatch, kind: type[LumosError]
) -> None:
    refusing = Refusing(kind("no more"), first=8)
    with monkeypatch.context() as patch:
        refusing.into(patch)
        with pytest.raises(kind):
            run(tmp_path, document)
    assert refusing.tried == 8
    with StateDatabase.open(tmp_path / "state" / "lumos.db", read_only=True) as database:
        (kept,) = RunRepository(database).recent()
    assert kept.report["complete"] is False
    assert kept.report["warnings"] == ["it ended early: no more"]
    result = run(tmp_path, document)
    assert result.resumed == 5  # one batch was acknowledged as a whole
    assert len(result.created) == SIZE - 5
    assert result.report.failed == ()


@pytest.mark.parametrize("kind", [*SPARING, *ENDING])
def test_what_ends_a_run_is_said_in_one_place(kind: type[LumosError]) -> None:
    assert ends_run(kind("x")) is (kind in ENDING)


@pytest.mark.parametrize("kind", [PlatformConflictError, PlatformAuthError])
def test_vocabulary_is_not_tried_word_by_word_on_a_catalog_that_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[LumosError]
) -> None:
    told: list[object] = []

    def refuse(_platform: EmbeddedHandler, batch: Batch) -> None:
        told.extend(batch.entities)
        raise kind("no")

    monkeypatch.setattr(EmbeddedHandler, "apply", refuse)
    document = ItemDocument({"tags": [{"name": name} for name in "abc"]}, known=("tags",))
    items = document.items("tags")
    recorder = RunRecorder("tags", started_at=AT)
    with StateDatabase.open(tmp_path / "lumos.db") as database:
        writer = EntityWriter(EmbeddedHandler(database))
        if kind in ENDING:
            with pytest.raises(kind):
                writer.write(items, Tag, kind="tag", recorder=recorder)
        else:
            writer.write(items, Tag, kind="tag", recorder=recorder)
    assert len(told) == (1 if kind in ENDING else 3)
