"""Scans the units of sources that yield records, and makes one flat row of each record.

Executors and small callers in this process use the same functions. Units of one source are
scanned beside each other up to its limit, and sources never wait for each other. Each unit is
scanned in a separate daemon thread, by a copy of the handler. A thread cannot be ended from
outside, so one that hangs beyond its timeout is left behind: its unit is reported as failed, and
it keeps its slot until it comes back, because its connection is still open. When all slots of a
source are lost so, the other units of the source are reported as not scanned.
"""

from __future__ import annotations

import pickle
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, NamedTuple

import orjson

from lumos.core.errors import LumosError, SourceError
from lumos.core.events import emit
from lumos.core.settings.confidential import pickle_with_credentials
from lumos.core.storage.sealed import Sealed, seal
from lumos.feature.ingestion.records import (
    PreviousScan,
    ScanUnit,
    printable,
)
from lumos.feature.ingestion.scan.calls import HANGS_HINT, Attempt, Call, ScanLimits, hanging
from lumos.feature.ingestion.scan.record_rows import (
    each_dataset_once,
    problem,
    scan_unit,
)
from lumos.spark.stages.rows import (
    DATASET,
    MARK,
    SCOPE,
    UNIT_DONE,
    UNIT_FAILED,
    ScannedRow,
    UnitLog,
    UnitRetry,
    UnitToScan,
)

if TYPE_CHECKING:
    import threading
    from pathlib import Path

    from lumos.feature.ingestion.handlers.base_ingestion_handler import (
        RecordHandler,
    )

_HELD_BYTES = 4 * 1024 * 1024
"""So much of a unit is held in memory until it is complete; more goes to a temporary file."""


class PlannedSource(NamedTuple):
    """What a source plans to scan, or why it cannot say."""

    name: str
    units: tuple[ScanUnit, ...]
    error: LumosError | None = None


@dataclass(frozen=True)
class RecordSource:
    """A source as it travels to executors: the pickle of its handler, sealed with credentials."""

    handler: bytes | Sealed[RecordHandler] = field(repr=False)
    limits: ScanLimits

    def content(self) -> bytes:
        """Return the handler as a pickle.

        Raises:
            SourceError: it is sealed, and the file cannot be read here.
        """
        return self.handler if isinstance(self.handler, bytes) else self.handler.content()


@dataclass(frozen=True)
class RecordFunctions:
    """The functions of a pipeline over records; they travel to the executors."""

    sources: Mapping[str, RecordSource]

    @classmethod
    def of(cls, handlers: Iterable[RecordHandler], *, folder: Path) -> RecordFunctions:
        """Return functions without credentials, which a private folder of the run keeps.

        Raises:
            OSError: the folder cannot be written.
        """
        return cls({each.name: _travelling(each, folder) for each in handlers})

    def units_of(self, source: str, units: Iterable[ScanUnit]) -> Iterator[UnitToScan]:
        """Yield the units of a source as they travel, dealt out to the slots of the source."""
        yield from _dealt(source, units, concurrency=self.sources[source].limits.concurrency)

    def scan_units(self, units: Iterable[UnitToScan]) -> Iterator[ScannedRow]:
        """Yield the rows of each unit when it ends; no more threads are used than there are slots.

        A dataset that two units of a source found is there twice: a later stage sees all units.
        """
        for ended in _UnitScans(self.sources, units).ended():
            yield from ended.rows()

    def unscanned(self, units: Iterable[UnitToScan], reason: str) -> Iterator[ScannedRow]:
        """Yield the rows of units whose executors failed."""
        for unit in units:
            error = SourceError(
                f"source '{unit.source}': Spark could not complete the scan: {reason}",
                hint="the source handler may have ended its process; scan the source alone",
                retryable=True,
            )
            item = _label(unit)
            yield problem(UNIT_FAILED, unit.source, unit.number, item=item, error=error)


def plan_sources(
    handlers: Iterable[RecordHandler], previous: Mapping[str, PreviousScan]
) -> Iterator[PlannedSource]:
    """Ask all sources at once what to scan, and yield the answers in the order of the handlers.

    A source that does not answer within its timeout is given up; one that fails in a way that may
    pass is asked again. One that could be planned can be sent to executors, too.
    """
    calls = []
    for handler in handlers:
        known = previous.get(handler.name, PreviousScan())
        what = f"source '{handler.name}' ended the planning of its scan"
        call = Call(partial(_plan, handler, known), ScanLimits.of(handler.settings), what=what)
        call.start()
        calls.append((handler.name, call))
    for name, call in calls:
        while not call.is_over.wait(max(0.0, call.deadline - time.monotonic())):
            if call.is_overdue:
                call.give_up()
                break
        for retry in call.retries:
            emit(
                "unit.retried",
                source=name,
                unit="its plan",
                attempt=retry.attempt,
                wait_seconds=retry.wait_seconds,
                reason=printable(retry.error.message),
                code=retry.error.code,
            )
        if call.is_given_up:
            error = hanging(f"source '{name}' did not plan its scan", call.limits)
            yield PlannedSource(name, (), error)
        elif call.outcome is None:
            yield PlannedSource(name, (), call.unexpected())
        else:
            if call.outcome.error is None:
                units = len(call.outcome.result)
                emit("source.planned", source=name, units=units, seconds=call.seconds)
            yield PlannedSource(name, call.outcome.result, call.outcome.error)


def scan_here(
    handler: RecordHandler, units: Iterable[ScanUnit], *, limits: ScanLimits | None = None
) -> Iterator[ScannedRow]:
    """Scan units in this process and yield their rows in the order of the units.

    Args:
        handler: the source; each unit is scanned by a copy of it.
        units: what to scan.
        limits: in place of those of its settings.
    """
    limits = limits or ScanLimits.of(handler.settings)
    source = RecordSource(pickle_with_credentials(handler), limits)
    jobs = _dealt(handler.name, units, concurrency=limits.concurrency)
    early: dict[int, _EndedUnit] = {}
    due = 0
    seen: set[str] = set()
    for ended in _UnitScans({handler.name: source}, jobs).ended():
        early[ended.job.number] = ended
        while due in early:
            yield from each_dataset_once(early.pop(due).rows(), seen)
            due += 1


def _travelling(handler: RecordHandler, folder: Path) -> RecordSource:
    limits = ScanLimits.of(handler.settings)
    if handler.settings.has_credentials:
        return RecordSource(seal(handler, name=handler.name, folder=folder), limits)
    return RecordSource(pickle.dumps(handler), limits)  # which refuses credentials


def _dealt(source: str, units: Iterable[ScanUnit], *, concurrency: int) -> Iterator[UnitToScan]:
    for number, unit in enumerate(units):
        yield UnitToScan(source, number % concurrency, number, pickle.dumps(unit))


def _label(job: UnitToScan) -> str:
    """Return a unit as reports show it."""
    try:
        unit: ScanUnit = pickle.loads(job.content)  # noqa: S301 - the driver's own
        return printable(unit.label)
    except Exception:  # noqa: BLE001 - the scan says why
        return f"unit {job.number}"


class _RowSpool:
    """Holds the rows of one attempt until it is known how it ends."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=_HELD_BYTES)  # noqa: SIM115

    def add(self, row: ScannedRow) -> None:
        self._file.write(orjson.dumps(tuple(row)))
        self._file.write(b"\n")

    def taken(self) -> Iterator[ScannedRow]:
        """Yield the rows and close."""
        with self._file as file:
            file.seek(0)
            for line in file:
                yield ScannedRow(*orjson.loads(line))

    def close(self) -> None:
        self._file.close()


def _plan(
    handler: RecordHandler, previous: PreviousScan, is_given_up: threading.Event
) -> Attempt[tuple[ScanUnit, ...]]:
    try:
        units = handler.planned_units(previous)
        _check_travel(handler, units)
    except LumosError as error:
        return Attempt((), error)
    return Attempt(units)


def _check_travel(handler: RecordHandler, units: tuple[ScanUnit, ...]) -> None:
    try:
        pickle_with_credentials((handler, units))
    except Exception as error:
        raise SourceError(
            f"source '{handler.name}' or its units cannot be sent to Spark: {type(error).__name__}",
            hint="this is a fault of the source handler: it and its units must be picklable",
        ) from error


class _UnitScan:
    """One unit: what is scanned by which source, and the rows of the last attempt."""

    def __init__(
        self, job: UnitToScan, source: RecordSource, finished: SimpleQueue[_UnitScan]
    ) -> None:
        self.job = job
        self.label = _label(job)
        self._source = source
        self._finished = finished
        self._spool: _RowSpool | None = None
        self.call = Call(
            self._attempt,
            source.limits,
            what=f"source '{job.source}' ended the scan of {self.label}",
            when_over=self._over,
        )

    def _attempt(self, is_given_up: threading.Event) -> Attempt[None]:
        self.discard()
        self._spool = spool = _RowSpool()
        try:
            handler, unit = self._loaded()
            for row in scan_unit(handler, unit, number=self.job.number):
                if is_given_up.is_set():
                    break
                spool.add(row)
        except LumosError as error:
            return Attempt(None, error)
        return Attempt(None)

    def _loaded(self) -> tuple[RecordHandler, ScanUnit]:
        content = self._source.content()
        try:
            return pickle.loads(content), pickle.loads(self.job.content)  # noqa: S301
        except Exception as error:
            raise SourceError(
                f"source '{self.job.source}' cannot be loaded on a worker of Spark: "
                f"{type(error).__name__}",
                hint="install the package of the source handler on the workers too",
            ) from error

    def _over(self) -> None:
        if self.call.is_given_up:
            self.discard()
        self._finished.put(self)

    def discard(self) -> None:
        """Drop the rows."""
        if self._spool is not None:
            self._spool.close()

    def rows(self) -> Iterator[ScannedRow]:
        """Yield the rows of a unit that is over, and in the end its outcome.

        What was found before an error counts. What the unit says of itself as a whole does not.
        """
        outcome = self.call.outcome
        error = self.call.unexpected() if outcome is None else outcome.error
        datasets = 0
        for row in self._spool.taken() if self._spool else ():
            datasets += row.kind == DATASET
            if error is None or row.kind not in {SCOPE, MARK}:
                yield row
        if error is None:
            log = self._log(datasets)
            yield ScannedRow(UNIT_DONE, self.job.source, self.job.number, self.label, document=log)
        else:
            yield self.failed(error, datasets=datasets)

    def failed(self, error: LumosError, *, datasets: int = 0) -> ScannedRow:
        """Return the row that says why the unit failed."""
        job = self.job
        row = problem(UNIT_FAILED, job.source, job.number, item=self.label, error=error)
        return row._replace(document=self._log(datasets))

    def _log(self, datasets: int) -> str:
        """Return what the log of the driver says of the unit: executors have none."""
        retries = [
            UnitRetry(
                each.attempt,
                each.wait_seconds,
                printable(each.error.message),
                each.error.code,
            )
            for each in list(self.call.retries)
        ]
        return UnitLog(self.call.seconds, datasets, retries).to_json()


class _EndedUnit(NamedTuple):
    job: UnitToScan
    rows: Callable[[], Iterator[ScannedRow]]


class _UnitScans:
    """Scans units of several sources at the same time, each source within its slots."""

    def __init__(self, sources: Mapping[str, RecordSource], units: Iterable[UnitToScan]) -> None:
        self._sources = sources
        self._finished: SimpleQueue[_UnitScan] = SimpleQueue()
        self._waiting: dict[str, deque[UnitToScan]] = {}
        self._running: dict[str, set[_UnitScan]] = {}
        slots: dict[str, set[int]] = {}
        for unit in units:
            self._waiting.setdefault(unit.source, deque()).append(unit)
            slots.setdefault(unit.source, set()).add(unit.slot)
        self._slots = {source: len(each) for source, each in slots.items()}

    def ended(self) -> Iterator[_EndedUnit]:
        """Yield each unit when it is over, failed or given up."""
        try:
            while True:
                yield from self._started_or_stuck()
                deadline = min(self._deadlines(), default=None)
                if deadline is None:
                    return
                scan = self._next(deadline)
                if scan is None:
                    yield from self._overdue()
                    continue
                self._running[scan.job.source].discard(scan)
                if scan.call.is_given_up:
                    scan.discard()
                else:
                    yield _EndedUnit(scan.job, scan.rows)
        finally:
            for scan in self._scans():
                scan.call.give_up()

    def _scans(self) -> Iterator[_UnitScan]:
        for running in self._running.values():
            yield from running

    def _deadlines(self) -> Iterator[float]:
        """Yield until when each source can be waited for; nothing for one that is over."""
        for source, running in self._running.items():
            live = [scan.call.deadline for scan in running if not scan.call.is_given_up]
            if live:
                yield min(live)
            elif self._waiting[source]:
                yield max(scan.call.deadline for scan in running)

    def _started_or_stuck(self) -> Iterator[_EndedUnit]:
        """Use every free slot; where all slots of a source hang, give up what is left of it."""
        for source, waiting in self._waiting.items():
            running = self._running.setdefault(source, set())
            while waiting and len(running) < self._slots[source]:
                scan = self._scan(waiting.popleft())
                running.add(scan)
                scan.call.start()
            if waiting and all(scan.call.is_lost for scan in running):
                error = SourceError(
                    f"source '{source}': not scanned, because the scans before it hang",
                    hint=HANGS_HINT,
                    retryable=True,
                )
                while waiting:
                    yield _given_up(self._scan(waiting.popleft()), error)

    def _scan(self, unit: UnitToScan) -> _UnitScan:
        return _UnitScan(unit, self._sources[unit.source], self._finished)

    def _next(self, deadline: float) -> _UnitScan | None:
        """Return the next scan that is over; None where a deadline passes before."""
        try:
            return self._finished.get(timeout=max(0.0, deadline - time.monotonic()))
        except Empty:
            return None

    def _overdue(self) -> Iterator[_EndedUnit]:
        for scan in list(self._scans()):
            if scan.call.is_overdue and not scan.call.is_given_up:
                scan.call.give_up()
                what = f"source '{scan.job.source}' did not complete the scan of {scan.label}"
                yield _given_up(scan, hanging(what, scan.call.limits))


def _given_up(scan: _UnitScan, error: LumosError) -> _EndedUnit:
    return _EndedUnit(scan.job, lambda: iter((scan.failed(error),)))
