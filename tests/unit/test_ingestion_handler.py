"""The loop that every source handler shares."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import ClassVar, cast

import pytest
from typing_extensions import override

from lumos.core.errors import SourceError, UnreadableItemError
from lumos.core.models import LumosDataset, Urn
from lumos.core.run_report import RunRecorder, RunReport
from lumos.feature.ingestion.handlers.base_ingestion_handler import (
    BaseIngestionHandler,
    SourceSettings,
)
from lumos.feature.ingestion.handlers.factory import HandlerFactory
from lumos.feature.ingestion.records import (
    PreviousScan,
    ScanRecord,
    ScanUnit,
    ScanWarning,
    SkippedItem,
    UnlistedPart,
    UnreadableItem,
)

START = datetime(2024, 1, 1, tzinfo=UTC)
SETTINGS = SourceSettings(type="made_up", name="made up")


def dataset(name: str) -> LumosDataset:
    return LumosDataset(urn=Urn.of("made_up", name), name=name, platform="made_up")


Script = dict[str, list[ScanRecord | Exception]]


class ScriptedHandler(BaseIngestionHandler[SourceSettings]):
    """Yields, or raises, what its script says for each unit."""

    source_type = "made_up"
    settings_model = SourceSettings
    script: ClassVar[Script] = {}

    @override
    def plan(self, previous: PreviousScan) -> Iterator[ScanUnit]:
        yield from (ScanUnit(name) for name in self.script)

    @override
    def scan(self, unit: ScanUnit) -> Iterator[ScanRecord]:
        for record in self.script[unit.target]:
            if isinstance(record, Exception):
                raise record
            yield record


def run(script: Script) -> tuple[list[str], RunReport]:
    handler = type("Handler", (ScriptedHandler,), {"script": script})(SETTINGS)
    recorder = RunRecorder("ingest", started_at=START)
    found = [each.name for each in handler.ingest(recorder)]
    return found, recorder.finish(at=START)


def test_an_unreadable_item_leaves_the_run_complete() -> None:
    broken = UnreadableItem("b", UnreadableItemError("it is cut off"))
    found, report = run({"u": [dataset("a"), broken, dataset("c")]})
    assert found == ["a", "c"]
    assert [(item.item, item.reason, item.code) for item in report.failed] == [
        ("b", "it is cut off", "LUM-221")
    ]
    assert report.complete


def test_a_part_that_was_not_listed_makes_the_run_incomplete() -> None:
    hole = UnlistedPart("folder", UnreadableItemError("no permission"))
    found, report = run({"u": [hole, dataset("c")]})
    assert (found, report.complete) == (["c"], False)
    assert report.failed[0].item == "folder"


def test_skipped_items_and_warnings_are_reported() -> None:
    found, report = run({"u": [SkippedItem("s", "not data"), ScanWarning("w", "odd")]})
    assert found == []
    assert [(item.item, item.reason) for item in report.skipped] == [("s", "not data")]
    assert report.warnings == ("w: odd",)
    assert report.complete


def test_a_unit_that_fails_is_named_and_the_next_ones_are_scanned() -> None:
    found, report = run(
        {"u1": [dataset("a"), UnreadableItemError("gone")], "u2": [dataset("b")], "u3": []}
    )
    assert found == ["a", "b"]
    assert [(item.item, item.reason) for item in report.failed] == [("made up: u1", "gone")]
    assert not report.complete


def test_a_foreign_error_names_source_unit_and_place_but_not_its_own_words() -> None:
    found, report = run({"u1": [KeyError("hunter2")], "u2": [dataset("b")]})
    assert found == ["b"]
    (failure,) = report.failed
    assert failure.item == "made up: u1"
    assert failure.reason is not None
    assert "source 'made up' failed while scanning u1: KeyError at test_ingestion" in failure.reason
    assert "hunter2" not in str(report.as_json())
    assert failure.code == "LUM-220"
    assert not report.complete


def test_a_record_of_no_known_kind_is_a_fault_of_the_handler() -> None:
    found, report = run({"u1": [cast("ScanRecord", "text")], "u2": [dataset("b")]})
    assert found == ["b"]
    assert "TypeError" in (report.failed[0].reason or "")


def test_a_dataset_found_twice_is_handed_over_once_and_named() -> None:
    found, report = run({"u1": [dataset("a")], "u2": [dataset("a")]})
    assert found == ["a"]
    assert [item.reason for item in report.skipped] == ["found twice in one source"]


class UnplannableHandler(ScriptedHandler):
    @override
    def plan(self, previous: PreviousScan) -> Iterator[ScanUnit]:
        yield ScanUnit("first")
        raise ZeroDivisionError("hunter2")


def test_a_plan_that_fails_is_a_source_error_before_anything_is_scanned() -> None:
    recorder = RunRecorder("ingest", started_at=START)
    with pytest.raises(SourceError, match="failed while planning the scan: ZeroDivision") as raised:
        next(UnplannableHandler(SETTINGS).ingest(recorder))
    assert "hunter2" not in raised.value.message
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


def test_an_error_of_the_caller_is_not_taken_for_one_of_the_source() -> None:
    handler = type("Handler", (ScriptedHandler,), {"script": {"u": [dataset("a")]}})(SETTINGS)
    recorder = RunRecorder("ingest", started_at=START)

    def publish() -> None:
        for _ in handler.ingest(recorder):
            raise UnreadableItemError("the catalog is full")

    with pytest.raises(UnreadableItemError, match="the catalog is full"):
        publish()
    report = recorder.finish(at=START)
    assert (report.counts.done, report.failed) == (0, ())


def test_a_registered_handler_is_found_by_its_type() -> None:
    HandlerFactory.register("made_up", ScriptedHandler)
    handler = HandlerFactory.get_handler({"type": "made_up", "name": "x"})
    assert isinstance(handler, ScriptedHandler)
    assert "made_up" in HandlerFactory.names()
