"""Scans the units of sources that yield records, and makes one flat row of each record.

Executors and small callers in this process use the same functions. Units of one source are
scanned beside each other up to its limit, and sources never wait for each other. Each unit is
scanned in a daemon thread of its own, by a copy of the handler. A thread cannot be ended from
outside, so one that hangs beyond its timeout is left behind: its unit is reported as failed, and
it keeps its slot until it comes back, because its connection is still open. When all slots of a
source are lost so, the other units of the source are reported as not scanned.
"""

from __future__ import annotations

import hashlib
import math
import pickle
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import orjson

from lumos.core.errors import LumosError, SourceError
from lumos.core.models import LineageEdge, LumosDataset, Observation
from lumos.core.models.base import canonical_json
from lumos.core.platform.entities import kind_of, name_of
from lumos.core.run_report import FOUND_TWICE
from lumos.core.settings.confidential import pickle_with_credentials
from lumos.core.storage.sealed import Sealed, seal
from lumos.feature.ingestion.handlers.base_ingestion_handler import RecordSourceSettings
from lumos.feature.ingestion.records import (
    PreviousScan,
    ScanMark,
    ScannedScope,
    ScanRecord,
    ScanUnit,
    ScanWarning,
    SkippedItem,
    Statement,
    UnlistedPart,
    UnreadableItem,
    printable,
)
from lumos.spark.stages.rows import (
    DATASET,
    EDGE,
    MARK,
    OBSERVATION,
    SCOPE,
    SKIPPED,
    UNIT_DONE,
    UNIT_FAILED,
    UNLISTED_PART,
    UNREADABLE,
    WARNING,
    ScannedRow,
    UnitToScan,
)

if TYPE_CHECKING:
    from pathlib import Path

    from lumos.feature.ingestion.handlers.base_ingestion_handler import (
        RecordHandler,
        SourceSettings,
    )

_HELD_BYTES = 4 * 1024 * 1024
"""So much of a unit is held in memory until it is complete; more goes to a temporary file."""
_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 30.0
_GRACE_SECONDS = 10.0
"""How long to wait for a slot of a source when the scans in all of them were given up."""
_DEFAULTS = RecordSourceSettings(type="any", name="any")
_HANGS_HINT = "raise timeout_seconds of the source if it is only slow"
T = TypeVar("T")


class ScanLimits(NamedTuple):
    """How a source wants to be scanned."""

    concurrency: int = _DEFAULTS.concurrency
    timeout_seconds: float = _DEFAULTS.timeout_seconds
    retries: int = _DEFAULTS.retries
    first_pause_seconds: float = _FIRST_PAUSE_SECONDS
    """How long to wait before the first retry; twice as long before each further one."""

    @classmethod
    def of(cls, settings: SourceSettings) -> ScanLimits:
        """Return what the settings of a source say, or the defaults where they have no limits."""
        if not isinstance(settings, RecordSourceSettings):
            return cls()
        return cls(settings.concurrency, settings.timeout_seconds, settings.retries)

    def pause(self, attempt: int) -> float:
        """Return how many seconds to wait after an attempt; the first is 0."""
        return min(self.first_pause_seconds * (1 << attempt), _LONGEST_PAUSE_SECONDS)


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

        A dataset that two units of a source found is there twice: only who sees all units can
        tell.
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
            yield _problem(UNIT_FAILED, unit.source, unit.number, item=item, error=error)


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
        call = _Call(partial(_plan, handler, known), ScanLimits.of(handler.settings), what=what)
        call.start()
        calls.append((handler.name, call))
    for name, call in calls:
        while not call.is_over.wait(max(0.0, call.deadline - time.monotonic())):
            if call.is_overdue:
                call.give_up()
                break
        if call.is_given_up:
            error = _hanging(f"source '{name}' did not plan its scan", call.limits)
            yield PlannedSource(name, (), error)
        elif call.outcome is None:
            yield PlannedSource(name, (), call.unexpected())
        else:
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
            yield from _each_dataset_once(early.pop(due).rows(), seen)
            due += 1


def scan_unit(handler: RecordHandler, unit: ScanUnit, *, number: int = 0) -> Iterator[ScannedRow]:
    """Yield one row for each record of a unit, in one attempt.

    Raises:
        LumosError: the rest of the unit cannot be scanned.
    """
    rows = (_row(record, handler.name, number) for record in handler.records(unit))
    yield from _each_dataset_once(rows, set())


def found_twice(row: ScannedRow) -> ScannedRow:
    """Return what is reported of a dataset that its source found before."""
    return ScannedRow(SKIPPED, row.source, row.unit, row.key, urn=row.urn, reason=FOUND_TWICE)


def _each_dataset_once(rows: Iterable[ScannedRow], seen: set[str]) -> Iterator[ScannedRow]:
    for row in rows:
        if row.kind != DATASET:
            yield row
        elif row.key in seen:
            yield found_twice(row)
        else:
            seen.add(row.key)
            yield row


def _travelling(handler: RecordHandler, folder: Path) -> RecordSource:
    limits = ScanLimits.of(handler.settings)
    if handler.settings.has_credentials:
        return RecordSource(seal(handler, name=handler.name, folder=folder), limits)
    return RecordSource(pickle.dumps(handler), limits)  # which refuses credentials


def _dealt(source: str, units: Iterable[ScanUnit], *, concurrency: int) -> Iterator[UnitToScan]:
    for number, unit in enumerate(units):
        yield UnitToScan(source, number % concurrency, number, pickle.dumps(unit))


def _row(record: ScanRecord, source: str, unit: int) -> ScannedRow:
    match record:
        case ScannedScope(urn_prefix=prefix):
            return ScannedRow(SCOPE, source, unit, str(prefix))
        case ScanMark(key=key, value=value):
            return ScannedRow(MARK, source, unit, printable(key), document=printable(value))
        case UnreadableItem(item=item, error=error, urn=urn):
            return _problem(UNREADABLE, source, unit, item=item, error=error, urn=urn)
        case UnlistedPart(item=item, error=error):
            return _problem(UNLISTED_PART, source, unit, item=item, error=error)
        case SkippedItem(item=item, reason=text):
            return ScannedRow(SKIPPED, source, unit, printable(item), reason=printable(text))
        case ScanWarning(item=item, text=text):
            return ScannedRow(WARNING, source, unit, printable(item), reason=printable(text))
    try:
        return _said(record, source, unit)
    except LumosError as error:  # of one record; the others go on
        about = record.urn if isinstance(record, LumosDataset) else None
        item = about or type(record).__name__
        return _problem(UNREADABLE, source, unit, item=item, error=error, urn=about)


def _said(record: Statement, source: str, unit: int) -> ScannedRow:
    urn: str | None = None
    kind: str
    match record:
        case LumosDataset():
            kind, key, urn = DATASET, str(record.urn), str(record.urn)
        case LineageEdge():
            kind, key = EDGE, canonical_json(list(map(str, record.key))).decode()
        case Observation():
            urn = str(record.urn)
            parts = [urn, record.kind.value, record.at.isoformat()]
            kind, key = OBSERVATION, canonical_json(parts).decode()
        case _:
            kind, key = kind_of(record), str(name_of(record))
    content = canonical_json(record.to_json())
    digest = hashlib.sha256(content).hexdigest()
    return ScannedRow(kind, source, unit, key, urn, digest, content.decode())


def _problem(
    kind: str, source: str, unit: int, *, item: str, error: LumosError, urn: str | None = None
) -> ScannedRow:
    return ScannedRow(
        kind,
        source,
        unit,
        printable(item),
        urn=urn,
        reason=printable(error.message),
        code=error.code,
        hint=error.hint and printable(error.hint),
        retryable=error.retryable,
    )


def _label(job: UnitToScan) -> str:
    """Return a unit as reports show it."""
    try:
        unit: ScanUnit = pickle.loads(job.content)  # noqa: S301 - the driver's own
        return printable(unit.label)
    except Exception:  # noqa: BLE001 - the scan says why
        return f"unit {job.number}"


def _hanging(what: str, limits: ScanLimits) -> SourceError:
    message = f"{what} within {limits.timeout_seconds:g} s"
    return SourceError(message, hint=_HANGS_HINT, retryable=True)


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


@dataclass
class _Attempt(Generic[T]):
    """What one attempt gave; with an error, it is what was there before that."""

    result: T
    error: LumosError | None = None


class _Call(Generic[T]):
    """A function in a daemon thread: tried again where that may help, given up when it hangs.

    Args:
        attempt: is called once for each attempt, with the event that says to stop.
        limits: how long an attempt may take, and how many there may be.
        what: what failed, for an error that `attempt` lets out.
        when_over: is called by the thread in the end.
    """

    def __init__(
        self,
        attempt: Callable[[threading.Event], _Attempt[T]],
        limits: ScanLimits,
        *,
        what: str,
        when_over: Callable[[], None] = lambda: None,
    ) -> None:
        self._attempt = attempt
        self.limits = limits
        self._what = what
        self._when_over = when_over
        self._is_given_up = threading.Event()
        self.is_over = threading.Event()
        self.deadline = math.inf
        """When the attempt under way counts as hanging, by the monotonic clock.

        Once it is given up, how long it is worth to wait for its thread to stop.
        """
        self.outcome: _Attempt[T] | None = None
        """Whatever the last attempt gave; None where it let an error out."""
        self._let_out = ""

    def start(self) -> None:
        self.deadline = time.monotonic() + self.limits.timeout_seconds
        threading.Thread(target=self._run, name="lumos-scan", daemon=True).start()

    def give_up(self) -> None:
        """Let the thread stop as soon as it looks, which may be soon if it is only slow."""
        self.deadline = time.monotonic() + min(self.limits.timeout_seconds, _GRACE_SECONDS)
        self._is_given_up.set()

    @property
    def is_given_up(self) -> bool:
        return self._is_given_up.is_set()

    @property
    def is_overdue(self) -> bool:
        return not self.is_over.is_set() and time.monotonic() >= self.deadline

    @property
    def is_lost(self) -> bool:
        """Whether it was given up, and its thread did not stop soon after."""
        return self.is_given_up and self.is_overdue

    def unexpected(self) -> SourceError:
        """Return the error of a call that ended without an outcome."""
        return SourceError(
            f"{self._what}: {self._let_out}", hint="check disk space and memory of the workers"
        )

    def _run(self) -> None:
        try:
            self.outcome = self._tried()
        except BaseException as error:  # noqa: BLE001 - also sys.exit; whoever waits must know
            self._let_out = type(error).__name__
        finally:
            self.is_over.set()
            self._when_over()

    def _tried(self) -> _Attempt[T]:
        number = 0
        while True:
            outcome = self._attempt(self._is_given_up)
            error = outcome.error
            if error is None or not error.retryable or number >= self.limits.retries:
                return outcome
            pause = self.limits.pause(number)
            self.deadline = time.monotonic() + pause + self.limits.timeout_seconds
            if self._is_given_up.wait(pause):
                return outcome
            number += 1


def _plan(
    handler: RecordHandler, previous: PreviousScan, is_given_up: threading.Event
) -> _Attempt[tuple[ScanUnit, ...]]:
    try:
        units = handler.planned_units(previous)
        _check_travel(handler, units)
    except LumosError as error:
        return _Attempt((), error)
    return _Attempt(units)


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
        self.call = _Call(
            self._attempt,
            source.limits,
            what=f"source '{job.source}' ended the scan of {self.label}",
            when_over=self._over,
        )

    def _attempt(self, is_given_up: threading.Event) -> _Attempt[None]:
        self.discard()
        self._spool = spool = _RowSpool()
        try:
            handler, unit = self._loaded()
            for row in scan_unit(handler, unit, number=self.job.number):
                if is_given_up.is_set():
                    break
                spool.add(row)
        except LumosError as error:
            return _Attempt(None, error)
        return _Attempt(None)

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
        """Yield the rows of a unit that is over, and in the end what became of it.

        What was found before an error counts. What the unit says of itself as a whole does not.
        """
        outcome = self.call.outcome
        error = self.call.unexpected() if outcome is None else outcome.error
        for row in self._spool.taken() if self._spool else ():
            if error is None or row.kind not in {SCOPE, MARK}:
                yield row
        if error is None:
            yield ScannedRow(UNIT_DONE, self.job.source, self.job.number, self.label)
        else:
            yield self.failed(error)

    def failed(self, error: LumosError) -> ScannedRow:
        """Return the row that says why the unit failed."""
        job = self.job
        return _problem(UNIT_FAILED, job.source, job.number, item=self.label, error=error)


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
                    hint=_HANGS_HINT,
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
                yield _given_up(scan, _hanging(what, scan.call.limits))


def _given_up(scan: _UnitScan, error: LumosError) -> _EndedUnit:
    return _EndedUnit(scan.job, lambda: iter((scan.failed(error),)))
