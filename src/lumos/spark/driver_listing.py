"""Lists sources in this process, while Spark still starts or need not start at all.

A source of a few thousand files is listed here before a first job of Spark would have begun. A
larger one that is in one piece is listed by one process in any case: here, its files go to disk as
they are found. Others that turn out to be large are left to the executors.
"""

from __future__ import annotations

import shutil
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from lumos.spark.listing import kind_folder
from lumos.spark.stages.arrow_rows import batches
from lumos.spark.stages.files import LISTED_ROWS, ListUnit, UnitListing
from lumos.spark.stages.rows import FILES, LINKS, LOGS, UNITS, UNLISTED, ListedFile

MOST_FILES = 30_000
"""As many as this process holds in memory; more files than that are worth a job of Spark."""
MOST_FILES_PER_PART = 5_000
"""Bounds what one task holds that reads them, and what is lost with it."""

_Row = tuple[object, ...]
_KINDS = (FILES, LOGS, UNLISTED, LINKS, UNITS)
_IS_SAME = ListedFile._fields.index("anchor")


class DriverListing:
    """A listing that runs in a thread.

    Args:
        list_unit: lists one unit.
        units: source, unit and what is known of it.
        folder: where the rows go, as executors would write them.
    """

    def __init__(
        self,
        list_unit: ListUnit,
        units: Iterable[tuple[str, bytes, str | None]],
        *,
        folder: Path,
    ) -> None:
        self._list_unit = list_unit
        self._units = list(units)
        self._folder = folder
        self._rows: dict[str, list[_Row]] = {kind: [] for kind in _KINDS}
        self._seen = 0
        self._parts: Counter[str] = Counter()
        self._is_whole = threading.Event()
        self._is_given_up = threading.Event()
        self._aside = folder.with_name(f"{folder.name}.aside")
        for kind in _KINDS:
            kind_folder(self._aside, kind).mkdir(parents=True)
        self._thread = threading.Thread(target=self._run, name="lumos-listing", daemon=True)
        self._thread.start()

    @property
    def is_in_one_piece(self) -> bool:
        """Whether nobody else could be faster, because there is nothing to share out."""
        return len(self._units) == 1

    def wait(self, seconds: float | None) -> bool:
        """Return whether everything is listed, at the latest after so many seconds."""
        self._thread.join(seconds)
        return self._is_whole.is_set()

    @property
    def files(self) -> int:
        """How many files were listed one by one and wait to be written; none if nothing is new."""
        return len(self._rows[FILES])

    @property
    def has_news(self) -> bool:
        """Whether any unit is not as it was known to be."""
        return not all(row[_IS_SAME] for row in self._rows[UNITS])

    def give_up(self) -> None:
        """Stop listing: somebody else will."""
        self._is_given_up.set()

    def write(self, *, parts: int) -> None:
        """Write the rows, the files in so many parts unless there are more than memory holds."""
        for kind, rows in self._rows.items():
            is_divided = kind == FILES and not self._parts[kind]
            for part in _stretches(rows, parts if is_divided else 1):
                self._write_part(kind, part)
        shutil.rmtree(self._folder, ignore_errors=True)
        self._aside.rename(self._folder)

    def _run(self) -> None:
        try:
            for source, unit, known in self._units:
                for row in UnitListing(source, unit, known).rows(self._wanted):
                    self._take(row)
            self._is_whole.set()
        except Exception:  # noqa: BLE001 - the executors will meet it, too, and say so
            self._rows = {kind: [] for kind in _KINDS}

    def _take(self, row: _Row) -> None:
        kind = str(row[-1])
        rows = self._rows[kind]
        rows.append(row)
        while len(rows) > (MOST_FILES_PER_PART if self._parts[kind] else MOST_FILES):
            self._write_part(kind, rows[:MOST_FILES_PER_PART])
            del rows[:MOST_FILES_PER_PART]

    def _wanted(self, source: str, unit: str) -> Iterator[ListedFile]:
        """List a unit for as long as somebody waits for it, and it is worth while."""
        for found in self._list_unit(source, unit):
            self._seen += 1
            is_too_large = self._seen > MOST_FILES and not self.is_in_one_piece
            if is_too_large or self._is_given_up.is_set():
                raise _TooLargeError
            yield found

    def _write_part(self, kind: str, rows: Sequence[_Row]) -> None:
        _write(kind_folder(self._aside, kind) / f"part-{self._parts[kind]:05}.parquet", rows)
        self._parts[kind] += 1


class _TooLargeError(Exception):
    """There is more than this process should list."""


def _stretches(rows: Sequence[_Row], parts: int) -> Iterator[Sequence[_Row]]:
    size = -(-len(rows) // parts) or 1
    return (rows[start : start + size] for start in range(0, len(rows), size))


def _write(path: Path, rows: Sequence[_Row]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_batches(batches(rows, LISTED_ROWS)).drop_columns(["row"])
    pq.write_table(table, path, compression="snappy")
