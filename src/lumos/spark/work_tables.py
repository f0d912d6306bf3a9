"""The tables that stages leave behind in the folder of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING

from lumos.spark.failures import SparkRunError
from lumos.spark.listing import kind_folder
from lumos.spark.options import TASKS_PER_CORE
from lumos.spark.parquet_rows import count_rows
from lumos.spark.stages.part_files import Part, take_over
from lumos.spark.stages.rows import FILES, LOGS, ROW

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    Session = Callable[[], SparkSession]

_WITHOUT_COMPILING = {
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
}
"""The work is done in Python: to compile what hands rows over takes longer than it saves."""


class WorkTables:
    """Writes tables into the folder of a run, and makes sure that this process sees them.

    What executors write to a local disk would look like removed things.
    """

    def __init__(self, work: Path) -> None:
        self._work = work

    def written(self, name: str, frame: DataFrame, *, by_kind: bool = False) -> Path:
        """Write a table, or one for each kind of rows, and return its folder."""
        from pyspark.sql import Observation
        from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

        seen = Observation(f"written {name}")
        folder = self._work / name
        writer = frame.observe(seen, F.count(F.lit(1)).alias("rows")).write.mode("overwrite")
        (writer.partitionBy(ROW) if by_kind else writer).parquet(f"file://{folder}")
        if count_rows(folder) != seen.get["rows"]:
            raise self._not_shared()
        for kind in (FILES, LOGS) if by_kind else ():
            kind_folder(folder, kind).mkdir(exist_ok=True)
        return folder

    def taken_over(self, told: DataFrame, aside: Path, folders: Mapping[str, Path]) -> list[Part]:
        """Run a frame of files, and move these to the folders of their kinds."""
        parts = [Part(*row) for row in told.collect()]
        for folder in folders.values():
            folder.mkdir(parents=True, exist_ok=True)
        if take_over(parts, aside, folders):
            raise self._not_shared()
        return parts

    def _not_shared(self) -> SparkRunError:
        return SparkRunError(
            f"{self._work.parent} is not the same folder here and on the workers of Spark",
            hint="set state_dir (TMPDIR for a dry run) to a folder that all of them share",
        )


def interpreting(session: Session) -> Session:
    """Return what gives the session, which is ours alone, with plans that are not compiled."""

    @cache
    def opened() -> SparkSession:
        found = session()
        for name, value in _WITHOUT_COMPILING.items():
            found.conf.set(name, value)
        return found

    return opened


def most_tasks(spark: SparkSession) -> int:
    """Return how many tasks a large stage has: several for each core."""
    return int(spark.conf.get("spark.sql.leafNodeDefaultParallelism", "8") or 8)


def tasks_at_once(spark: SparkSession) -> int:
    """Return how many tasks run at the same time: one for each core."""
    return max(1, most_tasks(spark) // TASKS_PER_CORE)
