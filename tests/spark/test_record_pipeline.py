"""Record sources on executors: the same rows as in this process, slots, hanging sources, seals.

Executors import this module, so it imports nothing of the tests beside it.
"""

from __future__ import annotations

import fcntl
import logging
import os
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from pydantic import SecretStr
from pyspark import cloudpickle
from typing_extensions import override

from lumos.core.errors import SourceError, UnreadableItemError
from lumos.core.models import Job, LineageEdge, LumosDataset, Tag, Urn
from lumos.core.models.base import sha256_of
from lumos.core.progress import SILENT
from lumos.core.redaction import PROCESS_SECRETS
from lumos.core.run_report import RunRecorder
from lumos.feature.ingestion.handlers.base_ingestion_handler import (
    BaseIngestionHandler,
    RecordSourceSettings,
)
from lumos.feature.ingestion.records import (
    PreviousScan,
    ScanMark,
    ScannedScope,
    ScanRecord,
    ScanUnit,
    UnreadableItem,
)
from lumos.feature.ingestion.scan.record_functions import RecordFunctions, plan_sources, scan_here
from lumos.feature.ingestion.scan.records import RecordScan
from lumos.spark.record_pipeline import FoundScope, RecordCounts, RecordPipeline
from lumos.spark.stages.part_files import aside_of
from lumos.spark.stages.records import problem_row, scan_records, units_frame
from lumos.spark.stages.rows import PROBLEM_KINDS, BuiltDataset, ScannedRow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
SECRET = "planted-secret-4f9d1c7be2a84f06"
FOR_EVER = 3600.0


class ShopSettings(RecordSourceSettings):
    databases: tuple[str, ...] = ("a", "b", "c")
    tables: int = 3
    broken: str | None = None
    hanging: bool = False
    fails_once: Path | None = None
    crashing: bool = False
    shared_table: bool = False
    counter: Path | None = None
    password: SecretStr | None = None


class ShopHandler(BaseIngestionHandler[ShopSettings]):
    """A source made up of databases with numbered tables."""

    source_type = "test_shop"
    settings_model = ShopSettings

    @override
    def plan(self, previous: PreviousScan) -> Iterator[ScanUnit]:
        yield from map(ScanUnit, self._settings.databases)

    @override
    def scan(self, unit: ScanUnit) -> Iterator[ScanRecord]:
        settings = self._settings
        if settings.hanging:
            time.sleep(FOR_EVER)
        if settings.fails_once is not None and not settings.fails_once.exists():
            settings.fails_once.touch()
            raise SourceError(f"no connection for {SECRET}", retryable=True)
        if settings.crashing and "pyspark" in Path("/proc/self/cmdline").read_text():
            os._exit(9)
        if settings.counter is not None:
            with Counted(settings.counter):
                time.sleep(0.05)
        for number in range(settings.tables):
            yield self._table(unit.target, f"t{number}")
        if settings.shared_table:
            yield self._table("shared", "all", found_in=unit.target)
        upstream, downstream = (self._urn(unit.target, name) for name in ("t0", "t1"))
        yield LineageEdge(upstream_urn=upstream, downstream_urn=downstream)
        yield Job(urn=Urn.of("jobs", self.name, unit.target), name=unit.target)
        yield Tag(name=unit.target)
        broken = UnreadableItemError("it is broken", hint="mend it")
        yield UnreadableItem("t9", broken, urn=self._urn(unit.target, "t9"))
        if unit.target == settings.broken:
            raise SourceError("no connection")
        yield ScanMark(f"position of {unit.target}", "17")
        yield ScannedScope(f"lumos://shop/{self.name}/{unit.target}")

    def _urn(self, *parts: str) -> Urn:
        return Urn.of("shop", self.name, *parts)

    def _table(self, *parts: str, found_in: str = "") -> LumosDataset:
        return LumosDataset.from_json(
            {
                "urn": self._urn(*parts),
                "name": parts[-1],
                "platform": "shop",
                "schema": {"fields": [{"name": "id", "type": "INT64"}]},
                "documentation": {"description": f"found in {found_in or parts[0]}"},
            }
        )


class Counted:
    """Counts, in a file that several processes share, who is inside and how many were at most."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        self._add(1)

    def __exit__(self, *_: object) -> None:
        self._add(-1)

    def _add(self, change: int) -> None:
        with self._path.open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            inside, most, total = map(int, file.read().split())
            inside += change
            file.seek(0)
            file.truncate()
            file.write(f"{inside} {max(most, inside)} {total + (change > 0)}")
            file.flush()


@pytest.fixture
def log() -> Iterator[list[dict[str, Any]]]:
    """The events of a test, as a log gets them."""
    events: list[dict[str, Any]] = []

    class Kept(logging.Handler):
        @override
        def emit(self, record: logging.LogRecord) -> None:
            fields: dict[str, Any] = record.fields  # type: ignore[attr-defined]
            events.append({"event": record.event, **fields})  # type: ignore[attr-defined]

    kept, logger = Kept(logging.DEBUG), logging.getLogger("lumos")
    logger.addHandler(kept)
    logger.setLevel(logging.DEBUG)
    yield events
    logger.removeHandler(kept)
    logger.setLevel(logging.NOTSET)


def shop(name: str = "shop", **settings: Any) -> ShopHandler:
    return ShopHandler(ShopSettings(type="test_shop", name=name, **settings))


class Scanned(NamedTuple):
    pipeline: RecordPipeline
    counts: RecordCounts


def scan(spark: SparkSession, handlers: Sequence[ShopHandler], work: Path) -> Scanned:
    functions = RecordFunctions.of(handlers, folder=work)
    planned = plan_sources(handlers, {})
    units = [unit for plan in planned for unit in functions.units_of(plan.name, plan.units)]
    pipeline = RecordPipeline(lambda: spark, functions, work=work, progress=SILENT)
    return Scanned(pipeline, pipeline.run(units))


def here(*handlers: ShopHandler) -> list[ScannedRow]:
    return [row for each in handlers for row in scan_here(each, each.planned_units(PreviousScan()))]


def of_kind(rows: Sequence[ScannedRow], kind: str) -> list[tuple[Any, ...]]:
    found = ((row.source, row.key, row.urn, row.hash, row.document) for row in rows)
    return sorted(each for row, each in zip(rows, found, strict=True) if row.kind == kind)


def test_executors_find_what_this_process_finds(spark: SparkSession, tmp_path: Path) -> None:
    handlers = [
        shop(broken="b", shared_table=True, concurrency=2),
        shop("mart", databases=("x",), concurrency=1),
    ]

    pipeline, counts = scan(spark, handlers, tmp_path)

    rows = here(*handlers)
    found = list(pipeline.found())
    assert [each.urn for each in found] == sorted(each.urn for each in found)
    assert sorted(
        (each.source, each.urn, each.urn, each.hash, each.document) for each in found
    ) == (of_kind(rows, "dataset"))
    for kind in ("edge", "job", "tag"):
        assert sorted(map(tuple, pipeline.records(kind))) == of_kind(rows, kind)
    assert list(pipeline.edges()) == list(pipeline.records("edge"))
    assert list(pipeline.observations()) == []
    told = sorted((each.kind, each.source, each.unit, *each[3:]) for each in pipeline.problems())
    assert told == sorted(problem_row(row)[:-1] for row in rows if row.kind in PROBLEM_KINDS)
    scopes = [FoundScope(row.source, row.key) for row in rows if row.kind == "scope"]
    assert list(pipeline.scopes()) == sorted(scopes)
    assert counts == RecordCounts(units=4, failed_units=1, datasets=len(found))


def test_a_dataset_of_several_units_counts_once_and_is_the_one_of_the_first(
    spark: SparkSession, tmp_path: Path
) -> None:
    pipeline, counts = scan(spark, [shop(shared_table=True)], tmp_path)

    (built,) = [each for each in pipeline.found() if each.urn == "lumos://shop/shop/shared/all"]
    assert "found in a" in built.document
    skipped = [each for each in pipeline.problems() if each.kind == "skipped"]
    assert [(each.unit, each.item, each.reason) for each in skipped] == [
        (unit, built.urn, "found twice in one source") for unit in (1, 2)
    ]
    assert counts.datasets == 3 * 3 + 1


@pytest.mark.parametrize("few", [5_000, 0], ids=["read here", "joined by Spark"])
def test_only_what_differs_is_yielded_and_what_was_not_found_as_its_urn(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    pipeline, _ = scan(spark, [shop(databases=("a",)), shop("mart", databases=("a",))], tmp_path)
    found = {(each.source, each.urn): each for each in pipeline.found()}
    same, other, new = (f"lumos://shop/shop/a/t{number}" for number in range(3))
    gone = "lumos://shop/shop/a/gone"
    states = [(same, found["shop", same].hash), (other, "0" * 64), (gone, "1" * 64)]

    monkeypatch.setattr("lumos.spark.findings._FEW_DATASETS", few)
    differing = list(pipeline.differing(states, source="shop"))

    assert differing == [gone, found["shop", other], found["shop", new]]
    everywhere = list(pipeline.differing(states))
    marts = [each for each in found.values() if each.source == "mart"]
    assert everywhere == [*marts, *differing]
    built = found["shop", new]
    assert isinstance(built, BuiltDataset)
    assert built.format == "shop"
    assert built.dataset == '["shop","a","t2"]'
    assert built.hash == sha256_of(shop()._table("a", "t2").to_json())
    assert [(each.format, each.datasets) for each in pipeline.formats()] == [("shop", 6)]
    assert pipeline.may_need_spark == (few == 0)


def test_the_marks_of_a_source_that_was_not_scanned_in_full_are_not_kept(
    spark: SparkSession, tmp_path: Path
) -> None:
    handlers = [shop(broken="b"), shop("mart", databases=("x", "y"))]

    pipeline, _ = scan(spark, handlers, tmp_path)

    assert pipeline.complete_sources() == {"mart"}
    assert pipeline.marks() == {"mart": {"position of x": "17", "position of y": "17"}}


def test_a_source_that_hangs_is_named_and_delays_and_fails_no_other(
    spark: SparkSession, tmp_path: Path
) -> None:
    """All in one task, as on a single core, and the hanging sources come first."""
    dead = [
        shop(name, hanging=True, timeout_seconds=1.0, retries=0, concurrency=2)
        for name in ("a_dead", "b_dead")
    ]
    handlers = [*dead, shop("quick")]
    functions = RecordFunctions.of(handlers, folder=tmp_path)
    units = [
        unit
        for each in handlers
        for unit in functions.units_of(each.name, each.planned_units(PreviousScan()))
    ]
    frame = units_frame(spark, units, tasks=1)
    told = scan_records(frame, functions.scan_units, aside=aside_of(tmp_path / "x"))
    assert frame.rdd.getNumPartitions() == 1
    assert {row[0] for row in told.collect()} == {"dataset", "record", "problem"}

    pipeline, counts = scan(spark, handlers, tmp_path)

    assert {each.source for each in pipeline.found()} == {"quick"}
    assert pipeline.complete_sources() == {"quick"}
    failed = [each for each in pipeline.problems() if each.kind == "unit_failed"]
    assert [(each.source, each.item) for each in failed] == [
        (name, item) for name in ("a_dead", "b_dead") for item in "abc"
    ]
    assert all(each.retryable and each.hint for each in failed)
    assert counts.failed_units == 6


def test_a_source_that_ends_its_process_is_named_and_fails_no_other(
    spark: SparkSession, tmp_path: Path
) -> None:
    handlers = [shop("fatal", crashing=True), shop("good"), shop("mart", shared_table=True)]

    pipeline, counts = scan(spark, handlers, tmp_path)

    assert {each.source for each in pipeline.found()} == {"good", "mart"}
    assert counts == RecordCounts(units=9, failed_units=3, datasets=9 + 10)
    failed = [each for each in pipeline.problems() if each.kind == "unit_failed"]
    assert [(each.source, each.unit, each.item) for each in failed] == [
        ("fatal", number, item) for number, item in enumerate("abc")
    ]
    assert failed[0].reason.startswith("source 'fatal': Spark could not complete the scan: ")


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_source_is_never_scanned_by_more_threads_than_it_allows(
    spark: SparkSession, tmp_path: Path, concurrency: int
) -> None:
    counter = tmp_path / "counter"
    counter.write_text("0 0 0")
    databases = tuple(f"d{number}" for number in range(12))

    _, counts = scan(
        spark,
        [shop(databases=databases, concurrency=concurrency, counter=counter), shop("other")],
        tmp_path,
    )

    inside, most, total = map(int, counter.read_text().split())
    assert counts.failed_units == 0
    assert (inside, total) == (0, len(databases))
    assert most <= concurrency
    assert (most > 1) == (concurrency > 1), "units of a source overlap where it allows that"


def test_units_of_a_slot_are_scanned_by_one_task(spark: SparkSession, tmp_path: Path) -> None:
    handlers = [shop(databases=tuple("abcdefgh"), concurrency=3), shop("mart", concurrency=1)]
    functions = RecordFunctions.of(handlers, folder=tmp_path)
    units = [
        unit
        for each in handlers
        for unit in functions.units_of(each.name, each.planned_units(PreviousScan()))
    ]

    rows = units_frame(spark, units, tasks=2).collect()

    tasks: dict[tuple[str, int], set[int]] = {}
    for row in rows:
        tasks.setdefault((row["source"], row["slot"]), set()).add(row["task"])
    assert len(rows) == len(units)
    assert {len(each) for each in tasks.values()} == {1}
    assert set.union(*tasks.values()) == {0, 1}
    assert len({slot for source, slot in tasks if source == "shop"}) == 3


def test_credentials_are_in_nothing_that_is_handed_to_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    handlers = [shop(password=SECRET)]
    functions = RecordFunctions.of(handlers, folder=tmp_path)
    content: bytes = cloudpickle.dumps(functions.scan_units)  # type: ignore[no-untyped-call]
    assert SECRET.encode() not in content

    pipeline, counts = scan(spark, handlers, tmp_path)

    assert counts == RecordCounts(units=3, failed_units=0, datasets=9)
    assert pipeline.complete_sources() == {"shop"}
    for file in tmp_path.rglob("*"):
        assert file.is_dir() or SECRET.encode() not in file.read_bytes()


def test_the_log_has_the_retries_on_executors_and_where_the_time_of_a_source_went(
    spark: SparkSession, tmp_path: Path, log: list[dict[str, Any]]
) -> None:
    PROCESS_SECRETS.add(SECRET)
    flaky = shop("flaky", databases=("a",), fails_once=tmp_path / "failed")
    others = shop("others", broken="b", concurrency=1)
    recorder = RunRecorder("ingest", started_at=datetime(2024, 1, 31, tzinfo=UTC))

    RecordScan.of(
        [flaky, others],
        lambda: spark,
        work=tmp_path,
        previous={},
        recorder=recorder,
        progress=SILENT,
    )

    retried = [each for each in log if each["event"] == "unit.retried"]
    assert retried == [
        {
            "event": "unit.retried",
            "source": "flaky",
            "unit": "a",
            "attempt": 1,
            "wait_seconds": 0.5,
            "reason": "no connection for ***",
            "code": SourceError.code,
        }
    ]
    scanned = {each["source"]: each for each in log if each["event"] == "source.scanned"}
    assert scanned["flaky"]["retries"] == 1
    assert scanned["flaky"]["seconds"] >= 0.5  # the wait before the second attempt
    assert scanned["flaky"]["slowest"] == "a"
    assert (scanned["others"]["units"], scanned["others"]["failed"]) == (3, 1)
    assert scanned["others"]["datasets"] == 9
    units = [each["unit"] for each in log if each["event"] == "unit.scanned"]
    assert units == ["a", "a", "b", "c"]
    planned = {each["source"]: each["units"] for each in log if each["event"] == "source.planned"}
    assert planned == {"flaky": 1, "others": 3}


def test_without_any_unit_spark_does_not_start(tmp_path: Path) -> None:
    def no_session() -> SparkSession:
        raise AssertionError("Spark is not needed")

    pipeline = RecordPipeline(no_session, RecordFunctions({}), work=tmp_path, progress=SILENT)

    assert pipeline.run([]) == RecordCounts()
    assert list(pipeline.differing([("lumos://shop/x", "1")])) == ["lumos://shop/x"]
    assert [*pipeline.problems(), *pipeline.scopes(), *pipeline.edges()] == []
    assert pipeline.formats() == []
