"""What earlier runs knew of files, so that unchanged ones are not opened again.

The index is a cache: a folder of Parquet tables per run and a pointer to the newest. Deleting it
costs one full read, nothing else.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lumos.core.private_files import make_private_folder, tighten_below, write_private_text
from lumos.core.regular_files import read_regular
from lumos.spark.parquet_rows import scan_rows
from lumos.spark.stages.rows import CARRIED_PART, DATASETS, FILE_PART, ITEMS, SCHEMAS

if TYPE_CHECKING:
    import pyarrow.dataset as pads
    from pyspark.sql import DataFrame, SparkSession

_CURRENT = "CURRENT"
_ORIGIN = "origin.json"
_UNITS = "units.json"
_LARGEST_NAME = 1024
_LARGEST_NOTE = 256 * 1024 * 1024
_MAGIC = b"PAR1"
_TABLES = {"items": ITEMS, "schemas": SCHEMAS, "datasets": DATASETS}


class Origin(NamedTuple):
    """What an index was made with; what was read in another way is read again."""

    readers: str
    """The version of everything that reads and places files."""
    sources: Mapping[str, str]
    """For each source, what its paths and places depend on."""


class KnownUnit(NamedTuple):
    """A part of a source, as it was when all of its files were known."""

    digest: str | None
    """None where it must be looked at again in any case."""
    files: int
    """How many of its files belong to datasets."""
    fingerprint: str | None = None
    """What its storage computed just before it was listed, where the storage can."""


Session = Callable[[], "SparkSession"]
"""Gives a session; the first call may start Spark."""
KnownUnits = Mapping[str, Mapping[bytes, KnownUnit]]
"""By source and unit; a source is whole or not there."""


class IndexTables:
    """The tables of an index.

    Args:
        session: opens the Spark that reads them, where that is needed.
        folder: where they lie.
        without: the sources of which nothing is to be seen.
        units: what the listings were when the tables were made.
    """

    def __init__(
        self,
        session: Session,
        folder: Path,
        *,
        without: Sequence[str] = (),
        units: KnownUnits | None = None,
    ) -> None:
        self._session = session
        self.folder = folder
        self._without = list(without)
        self.units = {
            source: known for source, known in (units or {}).items() if source not in without
        }

    @cached_property
    def items(self) -> DataFrame:
        return self._of_sources("items")

    @cached_property
    def schemas(self) -> DataFrame:
        return parquet_table(self._session(), self.folder / "schemas", SCHEMAS)

    @cached_property
    def datasets(self) -> DataFrame:
        return self._of_sources("datasets")

    def rows(
        self,
        table: str,
        columns: Sequence[str],
        *,
        sources: Sequence[str],
        where: pads.Expression | None = None,
    ) -> Iterator[tuple[object, ...]]:
        """Yield some columns of what is known of some sources, without a job of Spark."""
        import pyarrow.dataset as pads

        seen = [source for source in sources if source not in self._without]
        is_seen = pads.field("source").isin(seen)
        found = is_seen if where is None else is_seen & where
        return scan_rows(self.folder / table, columns, found)

    def knows(self, source: str) -> bool:
        """Return whether earlier runs found anything in a source."""
        return next(self.rows("items", ("part",), sources=[source]), None) is not None

    def units_in_items(self, sources: Sequence[str]) -> dict[tuple[str, bytes], tuple[int, bool]]:
        """Count the files of datasets in each unit, and mark units with files to be tried again."""
        import pyarrow.dataset as pads

        counts: dict[tuple[str, bytes], tuple[int, bool]] = {}
        columns = ("source", "unit", "dataset", "retry")
        is_file = (pads.field("part") == FILE_PART) & pads.field("unit").is_valid()
        for source, unit, dataset, retry in self.rows(
            "items", columns, sources=sources, where=is_file
        ):
            key = (str(source), bytes(unit))  # type: ignore[call-overload]
            files, is_doubtful = counts.get(key, (0, False))
            counts[key] = (files + (dataset is not None), is_doubtful or bool(retry))
        return counts

    def _of_sources(self, name: str) -> DataFrame:
        table = parquet_table(self._session(), self.folder / name, _TABLES[name])
        return table.where(~table["source"].isin(self._without)) if self._without else table


class FileIndex:
    """The file index of one state folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()

    def read(self, session: Session, origin: Origin) -> IndexTables | None:
        """Return the tables of the last complete run; None where nothing can be used of them."""
        current = self._current()
        if current is None:
            return None
        made_with = _origin_of(current)
        if made_with is None or made_with.readers != origin.readers:
            return None
        moved = [
            name
            for name, place in made_with.sources.items()
            if origin.sources.get(name, place) != place
        ]
        return IndexTables(session, current, without=moved, units=_units_of(current))

    def unread(self) -> set[tuple[str, bytes]]:
        """Return source and path of files of which the last run knew only that it failed to read.

        Other readers may have made the index: they failed all the same.
        """
        import pyarrow as pa
        import pyarrow.dataset as pads

        current = self._current()
        if current is None:
            return set()
        is_told = pads.field("reason").is_valid() | (pads.field("part") == CARRIED_PART)
        try:
            rows = list(scan_rows(current / "items", ("source", "path", "part"), is_told))
        except (OSError, pa.ArrowInvalid):  # of a version with other columns
            return set()
        files = {(str(source), bytes(path)) for source, path, _ in rows}  # type: ignore[call-overload]
        carried = {row[:2] for row in rows if row[2] == CARRIED_PART}
        return files - carried

    def replace(
        self, tables: Path, origin: Origin, *, run: str, units: KnownUnits | None = None
    ) -> None:
        """Take over the tables that a run wrote into a folder, for later runs to begin with."""
        target = self._folder / run
        _remove(target)
        make_private_folder(target)
        for name in _TABLES:
            shutil.move(tables / name, target / name)
        tighten_below(target)  # tasks and Spark made them with other modes
        before = self._current()
        known = _origin_of(before) if before else None
        sources = {**(known.sources if known else {}), **origin.sources}
        document = json.dumps({"readers": origin.readers, "sources": sources})
        write_private_text(target / _ORIGIN, document)
        write_private_text(target / _UNITS, _units_text(units or {}))
        write_private_text(self._folder / _CURRENT, run)
        for other in self._folder.iterdir():
            if other.name not in {_CURRENT, run}:
                _remove(other)

    def keep_units(self, units: KnownUnits) -> None:
        """Remember listings of a run that found nothing new to write."""
        current = self._current()
        if current is not None:
            write_private_text(current / _UNITS, _units_text(units))

    def _current(self) -> Path | None:
        try:
            name = read_regular(self._folder / _CURRENT, most=_LARGEST_NAME).decode().strip()
        except (OSError, UnicodeDecodeError):
            return None
        folder = self._folder / name
        return folder if name and all(_is_whole_table(folder / each) for each in _TABLES) else None


def parquet_table(spark: SparkSession, folder: Path, schema: str) -> DataFrame:
    """Return the table in a local folder, whose name is never taken as a pattern."""
    return spark.read.schema(schema).option("__globPaths__", False).parquet(f"file://{folder}")


def _origin_of(folder: Path) -> Origin | None:
    try:
        document = json.loads(read_regular(folder / _ORIGIN, most=_LARGEST_NOTE))
        return Origin(document["readers"], dict(document["sources"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _units_text(units: KnownUnits) -> str:
    return json.dumps(
        {
            source: {os.fsdecode(unit): list(known) for unit, known in each.items()}
            for source, each in units.items()
        }
    )


def _units_of(folder: Path) -> KnownUnits:
    try:
        document = json.loads(read_regular(folder / _UNITS, most=_LARGEST_NOTE))
        return {
            source: {os.fsencode(unit): KnownUnit(*known) for unit, known in each.items()}
            for source, each in document.items()
        }
    except (OSError, ValueError, TypeError, AttributeError):
        return {}  # everything is compared file by file


def _is_whole_table(folder: Path) -> bool:
    return folder.is_dir() and all(map(_is_whole, sorted(folder.glob("*.parquet"))))


def _is_whole(part: Path) -> bool:
    """Return whether a part begins and ends as Parquet does; a damaged cache is no cache."""
    try:
        with part.open("rb") as stream:
            head = stream.read(len(_MAGIC))
            stream.seek(-len(_MAGIC), os.SEEK_END)
            return head == _MAGIC == stream.read()
    except OSError:
        return False


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
        return
    with suppress(OSError):
        path.unlink()
