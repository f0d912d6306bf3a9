"""What every source handler of records shares."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, cast

import pytest
from typing_extensions import override

from lumos.core.errors import SourceError, UnreadableItemError
from lumos.core.models import LumosDataset, Urn
from lumos.feature.ingestion.handlers.base_ingestion_handler import (
    BaseIngestionHandler,
    SourceSettings,
)
from lumos.feature.ingestion.handlers.factory import HandlerFactory
from lumos.feature.ingestion.records import (
    PreviousScan,
    ScanRecord,
    ScanUnit,
    UnreadableItem,
)

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


def handler(script: Script) -> ScriptedHandler:
    made: ScriptedHandler = type("Handler", (ScriptedHandler,), {"script": script})(SETTINGS)
    return made


def records(script: Script, unit: str = "u") -> list[ScanRecord]:
    return list(handler(script).records(ScanUnit(unit)))


def test_what_a_handler_yields_is_passed_on_as_it_is() -> None:
    broken = UnreadableItem("b", UnreadableItemError("it is cut off"))
    yielded: list[ScanRecord | Exception] = [dataset("a"), broken, dataset("c")]
    assert records({"u": yielded}) == yielded


def test_an_error_of_lumos_is_passed_on_after_what_came_before() -> None:
    passed = handler({"u": [dataset("a"), UnreadableItemError("gone")]}).records(ScanUnit("u"))
    assert next(passed) == dataset("a")
    with pytest.raises(UnreadableItemError, match="gone"):
        next(passed)


def test_a_foreign_error_names_source_unit_and_place_but_not_its_own_words() -> None:
    with pytest.raises(SourceError) as raised:
        records({"u": [KeyError("hunter2")]})
    error = raised.value
    where = "source 'made up' failed while scanning u: KeyError at test_ingestion"
    assert error.message.startswith(where)
    assert "hunter2" not in str(error.as_json())
    assert error.code == "LUM-220"


def test_a_record_of_no_known_kind_is_a_fault_of_the_handler() -> None:
    with pytest.raises(SourceError, match="TypeError"):
        records({"u": [cast("ScanRecord", "text")]})


class UnplannableHandler(ScriptedHandler):
    @override
    def plan(self, previous: PreviousScan) -> Iterator[ScanUnit]:
        yield ScanUnit("first")
        raise ZeroDivisionError("hunter2")


def test_a_plan_that_fails_is_a_source_error_before_anything_is_scanned() -> None:
    with pytest.raises(SourceError, match="failed while planning the scan: ZeroDivision") as raised:
        UnplannableHandler(SETTINGS).planned_units(PreviousScan())
    assert "hunter2" not in raised.value.message
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


def test_a_handler_of_records_has_no_storage_events_or_partitions() -> None:
    scripted = handler({})
    assert scripted.scanner() is scripted
    assert scripted.storages() == ()
    assert scripted.event_folders() == ()
    assert scripted.event_queues() == ()
    assert scripted.partition_naming() is None


def test_a_registered_handler_is_found_by_its_type() -> None:
    HandlerFactory.register("made_up", ScriptedHandler)
    found = HandlerFactory.get_handler({"type": "made_up", "name": "x"})
    assert isinstance(found, ScriptedHandler)
    assert "made_up" in HandlerFactory.names()
