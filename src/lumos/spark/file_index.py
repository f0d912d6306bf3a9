"""What earlier runs knew of files, so that unchanged ones are not opened again.

The index is a cache: a folder of Parquet tables per run and a pointer to the newest. Deleting it
costs one full read, nothing else.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lumos.spark.stages.rows import DATASETS, ITEMS, SCHEMAS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CURRENT = "CURRENT"
_ORIGIN = "origin.json"
_MAGIC = b"PAR1"
_TABLES = {"items": ITEMS, "schemas": SCHEMAS, "datasets": DATASETS}


class Origin(NamedTuple):
    """What an index was made with; what was read in another way is read again."""

    readers: str
    """The version of everything that reads and places files."""
    sources: Mapping[str, str]
    """For each source, what its paths and places depend on."""


class IndexTables(NamedTuple):
    """The tables of an index."""

    items: DataFrame
    schemas: DataFrame
    datasets: DataFrame


class FileIndex:
    """The file index of one state folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()

    def read(self, spark: SparkSession, origin: Origin) -> IndexTables | None:
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
        tables = [parquet_table(spark, current / name, schema) for name, schema in _TABLES.items()]
        if moved:
            tables = [
                table.where(~table["source"].isin(moved)) if "source" in table.columns else table
                for table in tables
            ]
        return IndexTables(*tables)

    def replace(self, tables: Path, origin: Origin, *, run: str) -> None:
        """Take over the tables that a run wrote into a folder, for later runs to begin with."""
        target = self._folder / run
        _remove(target)
        target.mkdir(parents=True)
        for name in _TABLES:
            shutil.move(tables / name, target / name)
        before = self._current()
        known = _origin_of(before) if before else None
        sources = {**(known.sources if known else {}), **origin.sources}
        document = json.dumps({"readers": origin.readers, "sources": sources})
        (target / _ORIGIN).write_text(document, encoding="utf-8")
        pointer = self._folder / f"{_CURRENT}.{run}"
        pointer.write_text(run, encoding="utf-8")
        os.replace(pointer, self._folder / _CURRENT)
        for other in self._folder.iterdir():
            if other.name not in {_CURRENT, run}:
                _remove(other)

    def _current(self) -> Path | None:
        try:
            name = (self._folder / _CURRENT).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            return None
        folder = self._folder / name
        return folder if name and all(_is_whole_table(folder / each) for each in _TABLES) else None


def parquet_table(spark: SparkSession, folder: Path, schema: str) -> DataFrame:
    """Return the table in a local folder, whose name is never taken as a pattern."""
    return spark.read.schema(schema).option("__globPaths__", False).parquet(f"file://{folder}")


def rows_in(folder: Path) -> int:
    """Return how many rows the table in a folder has, as far as this process sees them."""
    import pyarrow.parquet as pq

    return sum(pq.read_metadata(part).num_rows for part in folder.glob("*.parquet"))


def _origin_of(folder: Path) -> Origin | None:
    try:
        document = json.loads((folder / _ORIGIN).read_text(encoding="utf-8"))
        return Origin(document["readers"], dict(document["sources"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _is_whole_table(folder: Path) -> bool:
    return (folder / "_SUCCESS").exists() and all(map(_is_whole, sorted(folder.glob("*.parquet"))))


def _is_whole(part: Path) -> bool:
    """Tell whether a part begins and ends as Parquet does; a damaged cache is no cache."""
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
