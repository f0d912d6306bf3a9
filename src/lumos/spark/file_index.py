"""What earlier runs read from files, so that unchanged ones are not opened again.

The index is a cache: a folder of Parquet per run and a pointer to the newest. Deleting it costs
one full read, nothing else.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from lumos.spark.stages.facts import FACTS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CURRENT = "CURRENT"
_MAGIC = b"PAR1"


class FileIndex:
    """The file index of one state folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()

    def read(self, spark: SparkSession) -> DataFrame:
        """Return the facts of the last complete run; none where there was no run."""
        current = self._current()
        if current is None:
            return spark.createDataFrame([], FACTS)
        return spark.read.schema(FACTS).parquet(str(current))

    def replace(self, facts: DataFrame, *, run: str) -> None:
        """Write the facts of a run and let later runs begin with them."""
        target = self._folder / run
        facts.write.mode("overwrite").parquet(str(target))
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
        whole = name and (folder / "_SUCCESS").exists() and all(map(_is_whole, _parts(folder)))
        return folder if whole else None


def _parts(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.parquet"))


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
