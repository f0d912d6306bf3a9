"""The pipeline over storage: list, compare, read, fold, build, each stage on the executors."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from lumos.core.events import emit, is_logged
from lumos.spark.driver_listing import MOST_FILES, MOST_FILES_PER_PART, DriverListing
from lumos.spark.file_index import IndexTables, KnownUnit, KnownUnits, Session, parquet_table
from lumos.spark.findings import Findings
from lumos.spark.listing import Listing, kind_folder, listing_of
from lumos.spark.options import is_local
from lumos.spark.parquet_rows import count_rows, scan_rows
from lumos.spark.stages import changed_files
from lumos.spark.stages.datasets import BuildDatasets, build_datasets, fold_files, schema_pieces
from lumos.spark.stages.files import (
    IsInTable,
    ListUnit,
    list_files,
    loose_files,
    tables,
    units_frame,
)
from lumos.spark.stages.part_files import Part, aside_of
from lumos.spark.stages.reading import TABLES, ReadItems, read_items
from lumos.spark.stages.rows import (
    BUILT,
    FILE_PART,
    ITEM,
    ITEMS,
    LISTED,
    PIECE,
    PIECES,
    READING_TIME,
    SCHEMA,
    SCHEMAS,
    ListedUnit,
)
from lumos.spark.task_progress import task_progress
from lumos.spark.work_tables import WorkTables, interpreting, most_tasks, tasks_at_once

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column, DataFrame

    from lumos.core.progress import Progress
    from lumos.spark.stages.changed_files import Scope
    from lumos.spark.stages.folding import NewFold

    FingerprintUnit = Callable[[str, str], str | None]
    InTables = Callable[[Iterable[tuple[str, bytes, str]]], IsInTable]

_FEWEST_FILES_PER_TASK = 32
_WORTH_A_TASK = 1_000
"""So many files, or datasets, keep a core busy for longer than another task costs."""
_MOST_REREAD_LOGGED = 1_000
_SECONDS_BEFORE_SPARK = 3.0
_SECONDS_AFTER_SPARK = 1.0
_STACK = 16
_MANY_UNITS = 200


class PipelineFunctions(Protocol):
    """What the stages do, written without Spark; all of it travels to the executors."""

    @property
    def list_unit(self) -> ListUnit: ...
    @property
    def fingerprint_unit(self) -> FingerprintUnit: ...
    @property
    def table_formats(self) -> Sequence[str]: ...
    @property
    def in_tables(self) -> InTables: ...
    @property
    def read_items(self) -> ReadItems: ...
    @property
    def new_fold(self) -> NewFold: ...
    @property
    def build_datasets(self) -> BuildDatasets: ...


class FileCounts(NamedTuple):
    """What happened to the files of a run."""

    listed: int = 0
    opened: int = 0
    unchanged: int = 0


class Pipeline(Findings):
    """One run over the files of some sources.

    What a stage leaves behind lies in `work` as Parquet, so that no stage runs twice and nothing
    that grows with the number of files passes through the driver.
    """

    def __init__(
        self, session: Session, functions: PipelineFunctions, *, work: Path, progress: Progress
    ) -> None:
        self._work = work.absolute()
        super().__init__(interpreting(session), Listing(self._work))
        self._tables = WorkTables(self._work)
        self._functions = functions
        self._progress = progress
        self._before: IndexTables | None = None
        self._fingerprints: dict[tuple[str, bytes], str | None] = {}
        self._is_partial = False
        self._is_redivided = False
        self._is_in_parts = False
        self.written: Path | None = None
        """Where the tables for the file index lie; None where nothing is new in them."""

    def run(
        self,
        units: Sequence[tuple[str, str]],
        index: IndexTables | None,
        *,
        full: bool = False,
        scope: Scope | None = None,
    ) -> FileCounts:
        """Carry out all stages for the units, given as source and unit.

        Args:
            units: what to scan.
            index: what earlier runs knew, if anything.
            full: open every file, also one that the index knows as it is.
            scope: the folders that the units are, where they are not the whole of their sources.
        """
        self._sources = sorted({source for source, _ in units})
        self._before = self._now = index
        self._is_partial = scope is not None
        to_list = [(source, os.fsencode(unit)) for source, unit in units]
        known = {} if full or scope is not None else _comparable(index, to_list)
        self._is_redivided = index is not None and scope is None and len(known) < len(self._sources)
        self._progress.stage("listing")
        if scope is None:
            self._fingerprints = self._fingerprints_of(to_list)
        if self._has_known_fingerprints(to_list, known):
            self._listing = Listing(self._work, units=_as_known(to_list, known))
            self._log_listed()
            return self._without_news()
        self._listing = self._listed(to_list, known, only_spark=_is_large(index, self._sources))
        self._log_listed()
        if not self._listing.has_news:
            return self._without_news()
        marks = self._marks()
        if index is not None and self._listing.same() and marks != self._known_marks(index):
            # Files may belong to tables, or no longer.
            self._listing = self._listed(to_list, {}, only_spark=True)
            marks = self._marks()
        return self._with_news(marks, full=full, scope=scope)

    @property
    def units(self) -> KnownUnits:
        """What the listings are that led to what is known now, for later runs to compare with."""
        before = self._before.units if self._before is not None else {}
        others = {name: each for name, each in before.items() if name not in self._sources}
        if self._is_partial:
            return others
        counted = self.tables.units_in_items(self._sources)
        now: dict[str, dict[bytes, KnownUnit]] = {source: {} for source in self._sources}
        for listed in self._listing.units:
            source, unit = listed.source, listed.unit
            files, is_doubtful = counted.get((source, unit), (0, False))
            digest = None if is_doubtful else listed.digest
            fingerprint = self._fingerprints.get((source, unit))
            now[source][unit] = KnownUnit(digest, files, fingerprint)
        return {**others, **now}

    @property
    def has_new_units(self) -> bool:
        """Whether there are listings or fingerprints that the next run could compare with."""
        before = self._before.units if self._before is not None else {}
        return self._listing.has_news or any(
            known.fingerprint != self._fingerprints.get((source, unit), known.fingerprint)
            for source, units in before.items()
            for unit, known in units.items()
        )

    def _fingerprints_of(
        self, units: Sequence[tuple[str, bytes]]
    ) -> dict[tuple[str, bytes], str | None]:
        """Ask for fingerprints before anything is listed: a later change then differs from them."""
        fingerprint = self._functions.fingerprint_unit
        return {(source, unit): fingerprint(source, os.fsdecode(unit)) for source, unit in units}

    def _has_known_fingerprints(
        self, units: Sequence[tuple[str, bytes]], known: KnownUnits
    ) -> bool:
        """Return whether no unit needs to be listed, because each is as it was."""
        return all(
            source in known and _is_as_known(known[source][unit], self._fingerprints[source, unit])
            for source, unit in units
        )

    def _listed(
        self, units: Sequence[tuple[str, bytes]], known: KnownUnits, *, only_spark: bool
    ) -> Listing:
        """List the sources; files of unchanged units are not listed again."""
        to_list = [
            (source, unit, known[source][unit].digest if source in known else None)
            for source, unit in units
        ]
        self._is_in_parts = not only_spark and self._listed_here(to_list, may_be_same=bool(known))
        if self._is_in_parts:
            return listing_of(self._work / "listed")
        found = list_files(units_frame(self._session(), to_list), self._functions.list_unit)
        return listing_of(self._tables.written("listed", found, by_kind=True))

    def _log_listed(self) -> None:
        units = Counter(unit.source for unit in self._listing.units)
        same = self._listing.same()
        took: Counter[str] = Counter()
        for unit in self._listing.units:
            took[unit.source] += unit.listing_us
        for source, files in self._listing.files_of().items():
            emit(
                "source.listed",
                source=source,
                files=files,
                units=units[source],
                units_unchanged=len(same.get(source, ())),
                seconds=round(took[source] / 1_000_000, 3),
            )

    def _log_read(self) -> None:
        """Log what was read of each source, and how long that took."""
        if not is_logged("source.read"):
            return
        columns = ("source", "files", "failed", "bytes", "microseconds")
        totals: dict[str, Counter[str]] = {}
        for source, *counts in scan_rows(kind_folder(self._work / "read", READING_TIME), columns):
            known = totals.setdefault(str(source), Counter())
            known.update(dict(zip(columns[1:], counts, strict=True)))
        for source, total in sorted(totals.items()):
            seconds = round(total.pop("microseconds") / 1_000_000, 3)
            emit("source.read", source=source, seconds=seconds, **total)

    def _listed_here(
        self, units: Sequence[tuple[str, bytes, str | None]], *, may_be_same: bool
    ) -> bool:
        """List the units in this process, where that is quick; return whether it was."""
        here = DriverListing(self._functions.list_unit, units, folder=self._work / "listed")
        if may_be_same and here.wait(_SECONDS_BEFORE_SPARK) and not here.has_news:
            here.write(parts=1)  # and Spark need not even start
            return True
        # What this process writes may be out of sight of executors on other machines.
        is_near = is_local(self._session().conf.get("spark.master") or "")
        if is_near and here.wait(None if here.is_in_one_piece else _SECONDS_AFTER_SPARK):
            here.write(parts=self._tasks(here.files))
            return True
        here.give_up()
        return False

    def _without_news(self) -> FileCounts:
        known = self.tables.units
        same = sum(known[unit.source][unit.unit].files for unit in self._listing.units)
        return FileCounts(same, 0, same)

    def _marks(self) -> set[tuple[str, bytes, str]]:
        """Return where tables lie, and of which kind they are."""
        if not self._listing.logs:
            return set()
        roots = self._roots().select("source", "path", "kind")
        return {(row[0], bytes(row[1]), row[2]) for row in roots.collect()}

    def _known_marks(self, index: IndexTables) -> set[tuple[str, bytes, str]]:
        import pyarrow.dataset as pads

        columns = ("source", "path", "kind")
        is_table = pads.field("kind").is_valid() & (pads.field("part") == FILE_PART)
        return set(index.rows("items", columns, sources=self._sources, where=is_table))  # type: ignore[arg-type]

    def _roots(self) -> DataFrame:
        logs = parquet_table(self._session(), self._listing.logs_folder, LISTED)
        return tables(logs, self._functions.table_formats)

    def _with_news(
        self, marks: set[tuple[str, bytes, str]], *, full: bool, scope: Scope | None
    ) -> FileCounts:
        before, listing = self._before, self._listing
        closed = listing.closed(doubt_empty=not full and scope is None)
        if before is None and not marks:
            to_read, news = self._there(marks), _News(listing.files, listing.files, 0)
            delta = None
        else:
            if before is not None and (scope is not None or closed):
                marks = marks | self._marks_elsewhere(before, scope=scope, closed=closed)
            delta, news = self._compared(self._there(marks), full=full, scope=scope, closed=closed)
            to_read = changed_files.to_read(delta)
            if is_logged("file.reread"):
                _log_reread(delta)
        same = news.same
        if before is not None:
            units = ((source, unit) for source, each in listing.same().items() for unit in each)
            same += sum(before.units[source][unit].files for source, unit in units)
        if before is not None and not (news.news or self._is_redivided):
            return FileCounts(same, 0, same)
        opened = self._read(to_read, files=news.to_read, is_all=delta is None)
        self._now = self._rebuilt(delta)
        self.written = self._work
        return FileCounts(same + opened, opened, same)

    def _marks_elsewhere(
        self, before: IndexTables, *, scope: Scope | None, closed: Scope
    ) -> set[tuple[str, bytes, str]]:
        """Return the tables that are known of where nobody looked; files may lie in them."""
        unlooked = changed_files.unseen(closed)
        if scope is not None:
            unlooked = unlooked | ~changed_files.in_scope(scope)
        known = before.items.where(unlooked).where("kind IS NOT NULL")
        rows = known.select("source", "path", "kind").collect()
        return {(row[0], bytes(row[1]), row[2]) for row in rows}

    def _there(self, marks: set[tuple[str, bytes, str]]) -> DataFrame:
        """Make one row of each table that was listed; its files are its own affair."""
        listed = self._listed_files()
        files = loose_files(listed, self._functions.in_tables(marks) if marks else None)
        return files.unionByName(self._roots()) if self._listing.logs else files

    def _listed_files(self) -> DataFrame:
        return parquet_table(self._session(), self._listing.files_folder, LISTED)

    def _compared(
        self, there: DataFrame, *, full: bool, scope: Scope | None, closed: Scope
    ) -> tuple[DataFrame, _News]:
        """Find what has to be read, and count what need not be."""
        from pyspark.sql import Observation
        from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

        seen = Observation("compared")
        is_same = F.col("status") == changed_files.SAME
        is_known = F.col("status").isin(changed_files.SAME, changed_files.UNSEEN)
        if self._before is None:
            every = changed_files.all_new(there)
        else:
            known = self._before.items
            if same := self._listing.same():
                known = known.where(~changed_files.in_units(same))
            looked = scope or dict.fromkeys(self._sources, (b"",))
            every = changed_files.compared(there, known, scope=looked, closed=closed, full=full)
        counted = every.observe(
            seen,
            F.count_if(~is_known).alias("news"),
            F.count_if(~is_known & (F.col("status") != changed_files.GONE)).alias("to_read"),
            # Housekeeping files are known, too, but belong to no dataset.
            F.count_if(is_same & F.col("old_dataset").isNotNull()).alias("same"),
        )
        folder = self._tables.written("delta", counted.where(~is_known))
        return parquet_table(self._session(), folder, changed_files.DELTA), _News(**seen.get)

    def _read(self, to_read: DataFrame, *, files: int, is_all: bool) -> int:
        """Read files and tables, and return how many of them are no mere housekeeping."""
        self._progress.stage("reading files", total=files)
        tasks = self._tasks(files)
        if is_all and self._is_in_parts:
            # Written in as many parts as there are to be tasks; no part is too small to be one.
            tasks = len(list(self._listing.files_folder.glob("*.parquet")))
            self._session().conf.set("spark.sql.files.minPartitionNum", str(max(1, tasks)))
            spread = to_read
        else:
            spread = to_read.repartitionById(tasks, self._task_of(tasks, is_all=is_all))
        with task_progress(self._session(), self._progress, items=files, tasks=tasks):
            parts = self._parts_read(spread)
        self._log_read()
        return sum(part.counted for part in parts if part.kind == ITEM)

    def _parts_read(self, spread: DataFrame) -> list[Part]:
        """Let tasks read and write what they find, and take over what they wrote."""
        folder = self._work / "read"
        aside = aside_of(folder)
        functions = self._functions
        told = read_items(spread, functions.read_items, new_fold=functions.new_fold, aside=aside)
        return self._tables.taken_over(
            told, aside, {kind: kind_folder(folder, kind) for kind in TABLES}
        )

    def _task_of(self, tasks: int, *, is_all: bool) -> Column:
        """Say which task reads a file.

        All files of a lake are cut into stretches: a dataset then lies in few tasks, and few of
        them meet its schemas. Some files may lie anywhere, and are dealt out in small stacks.
        """
        from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

        units = self._listing.units
        if not is_all or len(units) > _MANY_UNITS:
            stack = F.floor(F.col("position") / _STACK)
            return F.pmod(stack + F.crc32(F.coalesce("unit", F.lit(b""))), F.lit(tasks)).cast("int")
        start = F.lit(0)
        before = 0
        for unit in units:
            is_here = (F.col("source") == unit.source) & (F.col("unit") == F.lit(unit.unit))
            start = F.when(is_here, F.lit(before)).otherwise(start) if before else start
            before += unit.files
        place = (start + F.col("position") - 1) * tasks / max(1, before)
        return F.least(F.floor(place), F.lit(tasks - 1)).cast("int")

    def _rebuilt(self, delta: DataFrame | None) -> IndexTables:
        """Put the datasets together that have news; all others stay as they were."""
        self._progress.stage("merging schemas", unit="datasets")
        pieces = self._of_kind(PIECE, PIECES)
        if self._before is None or delta is None:
            for kind, name in ((ITEM, "items"), (SCHEMA, "schemas")):
                os.rename(kind_folder(self._work / "read", kind), self._work / name)
            return self._built(pieces)
        before, read = self._before, self._of_kind(ITEM, ITEMS)
        key = ["source", "dataset"]
        touched = changed_files.affected(before.items, delta, read)
        kept = changed_files.kept(before.items, delta).unionByName(
            changed_files.carried(before.items, read)
        )
        if self._is_redivided:
            kept = changed_files.with_units(kept, self._listed_files())
        self._tables.written("items", kept.unionByName(read).coalesce(self._parallel))
        texts = before.schemas.unionByName(self._of_kind(SCHEMA, SCHEMAS))
        folder = self._tables.written("schemas", texts.dropDuplicates(["fingerprint"]))
        files = kept.join(touched, key, "left_semi")
        folded = fold_files(files, self._functions.new_fold)
        schemas = schema_pieces(files, parquet_table(self._session(), folder, SCHEMAS))
        every = pieces.unionByName(folded).unionByName(schemas)
        self._tables.written("datasets", before.datasets.join(touched, key, "left_anti"))
        return self._built(every)

    def _built(self, pieces: DataFrame) -> IndexTables:
        """Add the datasets of these pieces to the table of them."""
        folder = self._work / "datasets"
        build, aside = self._functions.build_datasets, aside_of(folder)
        told = build_datasets(pieces, build, tasks=self._tasks_to_build(), aside=aside)
        self._tables.taken_over(told, aside, {BUILT: folder})
        return IndexTables(self._session, self._work)

    def _of_kind(self, kind: str, schema: str) -> DataFrame:
        """Return what was read, of one kind of rows."""
        return parquet_table(self._session(), kind_folder(self._work / "read", kind), schema)

    @property
    def _parallel(self) -> int:
        return most_tasks(self._session())

    @property
    def _at_once(self) -> int:
        return tasks_at_once(self._session())

    def _tasks(self, files: int) -> int:
        """Keep all cores busy; several tasks for each only where there is enough to do."""
        few = min(self._at_once, files // _FEWEST_FILES_PER_TASK)
        many = min(self._parallel, files // _WORTH_A_TASK)
        return max(1, few, many, files // MOST_FILES_PER_PART)

    def _tasks_to_build(self) -> int:
        pieces = count_rows(kind_folder(self._work / "read", PIECE))
        return max(self._at_once, min(self._parallel, pieces // _WORTH_A_TASK))


def _log_reread(delta: DataFrame) -> None:
    rows = delta.where(delta["status"] != changed_files.GONE).select("source", "path", "status")
    for source, path, status in rows.orderBy("source", "path").take(_MOST_REREAD_LOGGED):
        emit("file.reread", source=source, path=os.fsdecode(bytes(path)), status=status)


class _News(NamedTuple):
    """How a listing differs from what was known."""

    news: int
    to_read: int
    same: int


def _is_as_known(known: KnownUnit, fingerprint: str | None) -> bool:
    """Return whether a unit is as it was, and nothing in it has to be tried again."""
    is_whole = known.digest is not None and known.files > 0
    return is_whole and fingerprint is not None and fingerprint == known.fingerprint


def _as_known(units: Sequence[tuple[str, bytes]], known: KnownUnits) -> list[ListedUnit]:
    return [
        ListedUnit(source, unit, known[source][unit].files, known[source][unit].digest, True)
        for source, unit in units
    ]


def _is_large(index: IndexTables | None, sources: Sequence[str]) -> bool:
    """Return whether so many files are known that executors should list them."""
    if index is None:
        return False
    units = (unit for source in sources for unit in index.units.get(source, {}).values())
    return sum(unit.files for unit in units) > MOST_FILES


def _comparable(index: IndexTables | None, units: Sequence[tuple[str, bytes]]) -> KnownUnits:
    """Return what is known of sources that are still divided into the same units."""
    if index is None:
        return {}
    now: dict[str, set[bytes]] = {}
    for source, unit in units:
        now.setdefault(source, set()).add(unit)
    return {source: known for source, known in index.units.items() if now.get(source) == set(known)}
