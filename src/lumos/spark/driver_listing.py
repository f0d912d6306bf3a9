"""Lists small sources in this process, while Spark still starts or need not start at all.

A source of a few thousand files is listed here before a first job of Spark would have begun. One
that turns out to be larger is left to the executors.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from lumos.spark.listing import kind_folder
from lumos.spark.stages.arrow_rows import batches
from lumos.spark.stages.files import LISTED_ROWS, ListUnit, UnitListing
from lumos.spark.stages.rows import FILES, LOGS, UNITS, UNLISTED, ListedFile

MOST_FILES = 30_000
"""Bounds the memory of this process; more files than that are worth a job of Spark."""

_Row = tuple[object, ...]
_IS_SAME = ListedFile._fields.index("anchor")


class DriverListing:
    """A listing that runs in a thread.

    Args:
        list_unit: lists one unit.
        units: source, unit and what is known of it.
    """

    def __init__(self, list_unit: ListUnit, units: Iterable[tuple[str, bytes, str | None]]) -> None:
        self._list_unit = list_unit
        self._units = list(units)
        self._rows: list[_Row] = []
        self._seen = 0
        self._is_whole = threading.Event()
        self._is_given_up = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lumos-listing", daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Tell whether everything is listed, at the latest after so many seconds."""
        self._thread.join(seconds)
        return self._is_whole.is_set()

    @property
    def files(self) -> int:
        """How many files were told one by one; none where nothing is new."""
        return sum(row[-1] == FILES for row in self._rows)

    @property
    def has_news(self) -> bool:
        """Whether any unit is not as it was known to be."""
        return not all(row[_IS_SAME] for row in self._rows if row[-1] == UNITS)

    def give_up(self) -> None:
        """Stop listing: somebody else will."""
        self._is_given_up.set()

    def write(self, folder: Path, *, parts: int) -> None:
        """Write the rows as the executors would, the files in so many parts."""
        shutil.rmtree(folder, ignore_errors=True)
        by_kind: dict[str, list[_Row]] = {FILES: [], LOGS: [], UNLISTED: [], UNITS: []}
        for row in self._rows:
            by_kind[str(row[-1])].append(row)
        for kind, rows in by_kind.items():
            target = kind_folder(folder, kind)
            target.mkdir(parents=True)
            for number, part in enumerate(_stretches(rows, parts if kind == FILES else 1)):
                _write(target / f"part-{number:05}.parquet", part)

    def _run(self) -> None:
        try:
            for source, unit, known in self._units:
                self._rows.extend(UnitListing(source, unit, known).rows(self._few))
            self._is_whole.set()
        except Exception:  # noqa: BLE001 - the executors will meet it, too, and say so
            self._rows.clear()

    def _few(self, source: str, unit: str) -> Iterator[ListedFile]:
        """List a unit for as long as there are few files and somebody waits for them."""
        for found in self._list_unit(source, unit):
            self._seen += 1
            if self._seen > MOST_FILES or self._is_given_up.is_set():
                raise _TooLargeError
            yield found


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
