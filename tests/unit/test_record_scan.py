"""Units of record sources, scanned in this process: rows, retries, timeouts, slots."""

from __future__ import annotations

import pickle
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest
from pydantic import SecretStr
from pyspark import cloudpickle
from typing_extensions import override

from lumos.core.errors import SourceError, UnreadableItemError
from lumos.core.models import (
    Group,
    Job,
    LineageEdge,
    LumosDataset,
    Observation,
    ObservationKind,
    Tag,
    Urn,
    User,
)
from lumos.core.models.base import sha256_of
from lumos.feature.ingestion.handlers.base_ingestion_handler import (
    BaseIngestionHandler,
    RecordSourceSettings,
    SourceSettings,
)
from lumos.feature.ingestion.records import (
    PreviousScan,
    ScanMark,
    ScannedScope,
    ScanRecord,
    ScanUnit,
    ScanWarning,
    SkippedItem,
    UnlistedPart,
    UnreadableItem,
)
from lumos.feature.ingestion.scan import record_functions
from lumos.feature.ingestion.scan.calls import ScanLimits
from lumos.feature.ingestion.scan.record_functions import RecordFunctions, plan_sources, scan_here
from lumos.feature.ingestion.scan.record_rows import scan_unit
from lumos.spark.stages.rows import ScannedRow, UnitLog, UnitRetry

SECRET = "planted-secret-4f9d1c7be2a84f06"
AT = datetime(2024, 1, 31, tzinfo=UTC)
NOW = ScanLimits(first_pause_seconds=0.0)
SOON = ScanLimits(timeout_seconds=1.0, retries=0)  # enough for what does not hang
Script = Callable[[], Iterable[ScanRecord]]
SCRIPTS: dict[str, Script] = {}
"""What the scan of each unit does; handlers are copied by pickling, so they cannot hold it."""
ATTEMPTS: Counter[str] = Counter()


class ScriptSettings(RecordSourceSettings):
    password: SecretStr | None = None


class ScriptedHandler(BaseIngestionHandler[ScriptSettings]):
    source_type = "scripted"
    settings_model = ScriptSettings
    scans = 0

    @override
    def plan(self, previous: PreviousScan) -> Iterator[ScanUnit]:
        yield from map(ScanUnit, SCRIPTS)

    @override
    def scan(self, unit: ScanUnit) -> Iterator[ScanRecord]:
        self.scans += 1
        assert self.scans == 1, "each unit is scanned by a copy of the handler"
        ATTEMPTS[unit.target] += 1
        yield from SCRIPTS[unit.target]()


@pytest.fixture(autouse=True)
def scripts() -> Iterator[None]:
    SCRIPTS.clear()
    ATTEMPTS.clear()
    yield
    SCRIPTS.clear()


@pytest.fixture
def held() -> Iterator[threading.Event]:
    """Never set while the test runs: a scan that waits for it hangs."""
    event = threading.Event()
    yield event
    event.set()


def handler(name: str = "shop", **settings: Any) -> ScriptedHandler:
    return ScriptedHandler(ScriptSettings(type="scripted", name=name, **settings))


def dataset(name: str, *, description: str | None = None) -> LumosDataset:
    document = {
        "urn": f"lumos://shop/{name}",
        "name": name,
        "platform": "shop",
        "schema": {"fields": [{"name": "id", "type": "INT64"}]},
    }
    if description:
        document["documentation"] = {"description": description}
    return LumosDataset.from_json(document)


def scanned(limits: ScanLimits = NOW, **scripts: Script) -> list[ScannedRow]:
    SCRIPTS.update(scripts)
    return list(scan_here(handler(), map(ScanUnit, scripts), limits=limits))


def kinds_and_keys(rows: Iterable[ScannedRow]) -> list[tuple[str, str]]:
    return [(row.kind, row.key) for row in rows]


def test_each_record_is_a_row_with_its_key_and_what_it_is_about() -> None:
    orders, customers = Urn("lumos://shop/orders"), Urn("lumos://shop/customers")
    unreadable = UnreadableItemError("it is broken", hint="mend it", retryable=True)
    SCRIPTS["all"] = lambda: [
        dataset("orders"),
        LineageEdge(upstream_urn=customers, downstream_urn=orders),
        Job(urn=Urn("lumos://jobs/load"), name="load"),
        User(username="ada"),
        Group(name="sales"),
        Tag(name="internal"),
        Observation(urn=orders, kind=ObservationKind.USAGE, at=AT, document={"reads": 3}),
        ScannedScope("lumos://shop"),
        ScanMark("position", "17"),
        UnreadableItem("t\udce9", unreadable, urn=customers),
        UnlistedPart("schema x", unreadable),
        SkippedItem("temp", "it is temporary"),
        ScanWarning("orders", "it is large"),
    ]

    rows = list(scan_unit(handler(), ScanUnit("all"), number=3))

    assert {(row.source, row.unit) for row in rows} == {("shop", 3)}
    assert kinds_and_keys(rows) == [
        ("dataset", "lumos://shop/orders"),
        ("edge", '["lumos://shop/customers","lumos://shop/orders",""]'),
        ("job", "lumos://jobs/load"),
        ("user", "ada"),
        ("group", "sales"),
        ("tag", "internal"),
        ("observation", '["lumos://shop/orders","USAGE","2024-01-31T00:00:00+00:00"]'),
        ("scope", "lumos://shop"),
        ("mark", "position"),
        ("unreadable", "t\\xe9"),
        ("unlisted", "schema x"),
        ("skipped", "temp"),
        ("warning", "orders"),
    ]
    assert [row.urn for row in rows if row.urn] == [orders, orders, customers]
    assert rows[8].document == "17"
    problem = ("it is broken", "LUM-221", "mend it", True)
    assert rows[9][-4:] == rows[10][-4:] == problem
    assert [row.reason for row in rows[11:]] == ["it is temporary", "it is large"]


def test_the_hash_of_a_dataset_is_that_of_its_document() -> None:
    found = dataset("orders", description="Größe")

    (row, _) = scanned(all=lambda: [found])

    assert row.document is not None
    assert orjson.loads(row.document) == found.to_json()
    assert row.hash == sha256_of(found.to_json())


def test_a_unit_that_fails_in_a_way_that_may_pass_is_scanned_again_and_told_once() -> None:
    def at_the_third_attempt() -> Iterator[ScanRecord]:
        yield dataset("orders")
        if ATTEMPTS["unit"] < 3:
            raise SourceError("no connection", retryable=True)
        yield dataset("customers")

    rows = scanned(unit=at_the_third_attempt)

    assert kinds_and_keys(rows) == [
        ("dataset", "lumos://shop/orders"),
        ("dataset", "lumos://shop/customers"),
        ("unit_done", "unit"),
    ]
    assert ATTEMPTS["unit"] == 3
    log = UnitLog.from_json(rows[-1].document)
    assert log.datasets == 2
    assert log.retries == [
        UnitRetry(attempt, 0.0, "no connection", SourceError.code) for attempt in (1, 2)
    ]


def test_a_unit_that_fails_for_good_says_how_often_it_was_scanned() -> None:
    def never() -> Iterator[ScanRecord]:
        yield dataset("orders")
        raise SourceError("no connection", retryable=True)

    (*_, failed) = scanned(unit=never)

    assert failed.kind == "unit_failed"
    log = UnitLog.from_json(failed.document)
    assert (log.datasets, [each.attempt for each in log.retries]) == (1, [1, 2])


@pytest.mark.parametrize(("retryable", "attempts"), [(True, 3), (False, 1)])
def test_what_was_found_before_an_error_counts_but_proves_nothing_missing(
    retryable: bool, attempts: int
) -> None:
    def failing() -> Iterator[ScanRecord]:
        yield dataset("orders")
        yield ScanMark("position", "17")
        yield ScannedScope("lumos://shop")
        raise SourceError("no connection", hint="plug it in", retryable=retryable)

    rows = scanned(unit=failing, other=lambda: [dataset("customers")])

    assert kinds_and_keys(rows) == [
        ("dataset", "lumos://shop/orders"),
        ("unit_failed", "unit"),
        ("dataset", "lumos://shop/customers"),
        ("unit_done", "other"),
    ]
    assert rows[1][-4:] == ("no connection", "LUM-220", "plug it in", retryable)
    assert ATTEMPTS["unit"] == attempts


def test_a_foreign_error_names_source_and_unit_and_none_of_its_words() -> None:
    def foreign() -> Iterator[ScanRecord]:
        raise ValueError(SECRET)

    (row,) = scanned(unit=foreign)

    assert row.kind == "unit_failed"
    assert row.reason is not None
    assert row.reason.startswith("source 'shop' failed while scanning unit: ValueError at test_")
    assert SECRET not in repr(row)
    assert ATTEMPTS["unit"] == 1


def test_a_handler_that_ends_its_thread_fails_its_unit_only() -> None:
    def leaving() -> Iterator[ScanRecord]:
        raise SystemExit

    rows = scanned(unit=leaving, other=lambda: [dataset("orders")])

    assert rows[0].kind == "unit_failed"
    assert rows[0].reason == "source 'shop' ended the scan of unit: SystemExit"
    assert kinds_and_keys(rows[1:]) == [
        ("dataset", "lumos://shop/orders"),
        ("unit_done", "other"),
    ]


def test_a_unit_that_hangs_is_given_up_and_named(held: threading.Event) -> None:
    def hanging() -> Iterator[ScanRecord]:
        yield dataset("orders")
        held.wait()

    rows = scanned(SOON, slow=hanging, quick=lambda: [dataset("customers")])

    assert kinds_and_keys(rows) == [
        ("unit_failed", "slow"),
        ("dataset", "lumos://shop/customers"),
        ("unit_done", "quick"),
    ]
    assert rows[0].reason == "source 'shop' did not complete the scan of slow within 1 s"
    assert rows[0].retryable
    assert rows[0].hint


def test_where_all_slots_hang_the_rest_of_the_source_is_named_and_not_begun(
    held: threading.Event,
) -> None:
    def hanging() -> Iterator[ScanRecord]:
        held.wait()
        yield dataset("orders")

    scripts = dict.fromkeys(("a", "b", "c", "d"), hanging)
    rows = scanned(SOON._replace(concurrency=2), **scripts)

    assert kinds_and_keys(rows) == [("unit_failed", name) for name in "abcd"]
    assert [row.reason for row in rows[2:]] == [
        "source 'shop': not scanned, because the scans before it hang"
    ] * 2
    assert set(ATTEMPTS) == {"a", "b"}


def test_a_scan_that_is_only_slow_stops_when_it_is_given_up_and_frees_its_slot(
    held: threading.Event,
) -> None:
    def endless() -> Iterator[ScanRecord]:
        while not held.wait(0.01):
            yield SkippedItem("x", "again")

    rows = scanned(SOON._replace(concurrency=1), slow=endless, quick=lambda: [dataset("orders")])

    assert kinds_and_keys(rows) == [
        ("unit_failed", "slow"),
        ("dataset", "lumos://shop/orders"),
        ("unit_done", "quick"),
    ]


def test_no_more_units_are_scanned_at_the_same_time_than_the_source_allows() -> None:
    lock = threading.Lock()
    running: list[int] = [0, 0]
    both = threading.Barrier(2)

    def counted() -> Iterator[ScanRecord]:
        with lock:
            running[0] += 1
            running[1] = max(running)
        both.wait()  # two are under way at least
        with lock:
            running[0] -= 1
        yield SkippedItem("x", "nothing here")

    scanned(NOW._replace(concurrency=2), **{f"unit_{number}": counted for number in range(8)})

    assert running[1] == 2


def test_a_dataset_that_is_found_twice_counts_in_the_first_unit_however_late_it_ends() -> None:
    second_is_over = threading.Event()

    def first() -> Iterator[ScanRecord]:
        second_is_over.wait()
        yield dataset("orders", description="first")
        yield dataset("orders", description="again")

    def second() -> Iterator[ScanRecord]:
        yield dataset("orders", description="second")
        second_is_over.set()

    rows = scanned(first=first, second=second)

    assert [(row.kind, row.unit) for row in rows] == [
        ("dataset", 0),
        ("skipped", 0),
        ("unit_done", 0),
        ("skipped", 1),
        ("unit_done", 1),
    ]
    assert rows[0].document is not None
    assert "first" in rows[0].document
    assert rows[1].reason == "found twice in one source"


def test_a_large_unit_waits_for_its_end_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_functions, "_HELD_BYTES", 1_000)
    names = [f"t{number}" for number in range(100)]

    rows = scanned(unit=lambda: map(dataset, names))

    assert [row.key for row in rows[:-1]] == [f"lumos://shop/{name}" for name in names]


def test_a_record_that_cannot_be_written_down_costs_no_other() -> None:
    broken = Tag.model_construct(name="x", description="\udce9")

    rows = scanned(unit=lambda: [broken, Tag(name="y")])

    assert [row.kind for row in rows] == ["unreadable", "tag", "unit_done"]


def test_limits_come_from_the_settings_of_the_source_or_are_the_defaults() -> None:
    given = handler(concurrency=7, timeout_seconds=3.0, retries=1).settings

    assert ScanLimits.of(given)[:3] == (7, 3.0, 1)
    assert ScanLimits.of(SourceSettings(type="x", name="x")) == ScanLimits()
    assert [ScanLimits().pause(attempt) for attempt in (0, 1, 9)] == [0.5, 1.0, 30.0]


class PlanningHandler(ScriptedHandler):
    @override
    def plan(self, previous: PreviousScan) -> Iterator[ScanUnit]:
        ATTEMPTS[self.name] += 1
        for _ in SCRIPTS[self.name]():
            yield ScanUnit(previous.marks.get("position", "all"))


def test_sources_are_planned_side_by_side_and_one_that_hangs_or_fails_stops_no_other(
    held: threading.Event,
) -> None:
    def hanging() -> Iterator[ScanRecord]:
        held.wait()
        yield SkippedItem("x", "x")

    def failing() -> Iterator[ScanRecord]:
        raise ValueError(SECRET)

    SCRIPTS.update(slow=hanging, broken=failing, good=lambda: [SkippedItem("x", "x")], late=hanging)
    handlers = [
        PlanningHandler(
            ScriptSettings(
                type="x", name=name, timeout_seconds=0.05 if name in {"slow", "late"} else 60
            )
        )
        for name in ("slow", "broken", "good", "late")
    ]

    plans = {
        plan.name: plan
        for plan in plan_sources(handlers, {"good": PreviousScan({"position": "17"})})
    }

    assert plans["good"] == ("good", (ScanUnit("17"),), None)
    for name in ("slow", "late"):
        error = plans[name].error
        assert error is not None
        assert error.message == f"source '{name}' did not plan its scan within 0.05 s"
    broken = plans["broken"].error
    assert broken is not None
    assert "failed while planning the scan: ValueError" in broken.message
    assert SECRET not in broken.message


def test_a_source_that_cannot_be_sent_to_executors_is_named_when_it_is_planned() -> None:
    shop = handler()
    shop.connection = threading.Lock()  # type: ignore[attr-defined]

    (plan,) = plan_sources([shop], {})

    assert plan.error is not None
    assert plan.error.message == "source 'shop' or its units cannot be sent to Spark: TypeError"


def test_credentials_of_a_handler_are_in_nothing_that_travels(tmp_path: Path) -> None:
    shop = handler(password=SECRET)
    SCRIPTS["unit"] = lambda: [dataset("orders")]

    functions = RecordFunctions.of([shop], folder=tmp_path)
    units = list(functions.units_of("shop", [ScanUnit("unit")]))
    travelled: bytes = cloudpickle.dumps(functions.scan_units)  # type: ignore[no-untyped-call]

    assert SECRET.encode() not in travelled
    assert SECRET not in repr(functions)
    rows = pickle.loads(travelled)(units)
    assert kinds_and_keys(rows) == [("dataset", "lumos://shop/orders"), ("unit_done", "unit")]
    with pytest.raises(TypeError, match="source 'shop' holds credentials and must not be pickled"):
        pickle.dumps(shop)


def test_a_worker_that_cannot_read_the_credentials_fails_the_units_of_that_source(
    tmp_path: Path,
) -> None:
    functions = RecordFunctions.of([handler(password=SECRET), handler("free")], folder=tmp_path)
    SCRIPTS["unit"] = lambda: [dataset("orders")]
    units = [*functions.units_of("shop", [ScanUnit("unit")])]
    units += functions.units_of("free", [ScanUnit("unit")])
    for file in tmp_path.iterdir():
        file.unlink()

    rows = sorted(functions.scan_units(units))

    assert [(row.source, row.kind) for row in rows] == [
        ("free", "dataset"),
        ("free", "unit_done"),
        ("shop", "unit_failed"),
    ]
    assert "its credentials cannot be read" in str(rows[-1].reason)


def test_units_are_dealt_out_to_as_many_slots_as_the_source_allows(tmp_path: Path) -> None:
    functions = RecordFunctions.of([handler(concurrency=2)], folder=tmp_path)

    units = list(functions.units_of("shop", map(ScanUnit, "abcde")))

    assert [(unit.slot, unit.number) for unit in units] == [(0, 0), (1, 1), (0, 2), (1, 3), (0, 4)]
