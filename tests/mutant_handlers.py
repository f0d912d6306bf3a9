"""Source handlers that break a promise of the contract, each with the test that must find it.

Executors import this module, so it imports nothing of the tests beside it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Final

from typing_extensions import override

from lumos.core.models import LumosDataset, with_parts
from lumos.feature.ingestion.handlers.dbt.handler import DbtHandler
from lumos.feature.ingestion.records import (
    PreviousScan,
    ScannedScope,
    ScanRecord,
    ScanUnit,
    UnreadableItem,
)


class StopsAtTheBrokenItem(DbtHandler):
    """Raises where it should yield an unreadable item."""

    @override
    def scan(self, unit: ScanUnit) -> Iterator[ScanRecord]:
        for record in super().scan(unit):
            if isinstance(record, UnreadableItem):
                raise record.error
            yield record


class LeaksAForeignError(DbtHandler):
    @override
    def scan(self, unit: ScanUnit) -> Iterator[ScanRecord]:
        yield from super().scan(unit)
        raise KeyError("hunter2")


class HidesTheBrokenItem(DbtHandler):
    @override
    def scan(self, unit: ScanUnit) -> Iterator[ScanRecord]:
        return (record for record in super().scan(unit) if not isinstance(record, UnreadableItem))


class WritesAMarker(DbtHandler):
    @override
    def scan(self, unit: ScanUnit) -> Iterator[ScanRecord]:
        (self.settings.manifest_path.parent / "_lumos_was_here").touch()
        yield from super().scan(unit)


class ReadsWhilePlanning(DbtHandler):
    @override
    def plan(self, previous: PreviousScan) -> Iterator[ScanUnit]:
        self.settings.manifest_path.read_bytes()
        yield from super().plan(previous)


class YieldsTwice(DbtHandler):
    @override
    def scan(self, unit: ScanUnit) -> Iterator[ScanRecord]:
        yield from super().scan(unit)
        yield from super().scan(unit)


class UnitsThatCannotTravel(DbtHandler):
    @override
    def plan(self, previous: PreviousScan) -> Iterator[ScanUnit]:
        for unit in super().plan(previous):
            object.__setattr__(unit, "connection", lambda: None)
            yield unit


class SaysNoScope(DbtHandler):
    """Never says what it has listed in full, so nothing is ever removed."""

    @override
    def scan(self, unit: ScanUnit) -> Iterator[ScanRecord]:
        return (record for record in super().scan(unit) if not isinstance(record, ScannedScope))


class IsAlwaysNew(DbtHandler):
    """Puts the time of the scan into its datasets, so every run has news."""

    @override
    def scan(self, unit: ScanUnit) -> Iterator[ScanRecord]:
        for record in super().scan(unit):
            if isinstance(record, LumosDataset):
                yield with_parts(record, properties={"scanned": str(time.time_ns())})
            else:
                yield record


class TakesAMissingSourceForAnEmptyOne(DbtHandler):
    @override
    def plan(self, previous: PreviousScan) -> Iterator[ScanUnit]:
        yield ScanUnit("manifest")

    @override
    def scan(self, unit: ScanUnit) -> Iterator[ScanRecord]:
        if self.settings.manifest_path.exists():
            for each in super().plan(PreviousScan()):
                yield from super().scan(each)
        yield ScannedScope("lumos://postgres/shop")


Mutants = Mapping[str, tuple[str, type[DbtHandler]]]
_BROKEN_ITEM: Final = "a_broken_item_is_named_with_its_reason_and_stops_nothing"
_STORES: Final = "check_that_every_dataset_is_stored"

PLANNING_MUTANTS: Mutants = {
    "stops": (_BROKEN_ITEM, StopsAtTheBrokenItem),
    "leaks": (_BROKEN_ITEM, LeaksAForeignError),
    "hides": (_BROKEN_ITEM, HidesTheBrokenItem),
    "reads": ("planning_reads_no_data", ReadsWhilePlanning),
    "twice": ("a_scan_never_yields_a_dataset_twice", YieldsTwice),
    "untravelled": ("handler_and_units_travel_to_executors", UnitsThatCannotTravel),
    "unscoped": (
        "every_dataset_lies_in_a_scope_that_its_unit_listed_in_full",
        SaysNoScope,
    ),
    "news": ("scanning_twice_gives_equal_records_in_the_same_order", IsAlwaysNew),
}
INGESTION_MUTANTS: Mutants = {
    "stops": (_STORES, StopsAtTheBrokenItem),
    "hides": (_STORES, HidesTheBrokenItem),
    "writes": (_STORES, WritesAMarker),
    "news": ("check_that_a_second_ingest_finds_no_news", IsAlwaysNew),
    "empty": (
        "check_that_a_missing_source_removes_nothing",
        TakesAMissingSourceForAnEmptyOne,
    ),
    "unscoped": (
        "check_that_a_removed_dataset_is_reported",
        SaysNoScope,
    ),
}
