"""Make the class archive: `python -m lumos.spark.archive_trainer HOME VERSION MAJOR CACHE`.

Started by `lumos.spark.class_archive` after a session that went without one.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from lumos.core.errors import LumosError
from lumos.core.settings import SparkSettings
from lumos.spark.class_archive import ClassArchive, class_archive
from lumos.spark.driver import SHORT_LIFE
from lumos.spark.java import JavaRuntime
from lumos.spark.session import embedded_session

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

_LOWEST_PRIORITY = 19
_WRITING_SECONDS = 600
_MAKING = ".making-"
_ABANDONED_SECONDS = 3_600


def make_archive(archive: ClassArchive, *, runtime: JavaRuntime) -> bool:
    """Make the archive unless another process does, and leave a note where it cannot be made."""
    from filelock import FileLock, Timeout

    archive.path.parent.mkdir(parents=True, exist_ok=True)
    with suppress(Timeout), FileLock(archive.lock, timeout=0):
        if not archive.is_there:
            _sweep(archive.path.parent)
            _make(archive, runtime)
    return archive.is_there


def _make(archive: ClassArchive, runtime: JavaRuntime) -> None:
    with tempfile.TemporaryDirectory(prefix=_MAKING, dir=archive.path.parent) as folder:
        target = Path(folder) / archive.path.name
        reason = "the JVM wrote nothing"
        try:
            with embedded_session(
                SparkSettings(master="local[2]", app_name="lumos-class-archive"),
                runtime=runtime,
                java_options=(*SHORT_LIFE, *archive.making_options(target)),
                environment=os.environ,
                patience=_WRITING_SECONDS,
            ) as session:
                _load_classes(session, Path(folder) / "table")
        except LumosError as error:
            reason = str(error)
        if target.is_file():
            archive.put(target)
        else:
            archive.note.write_text(f"{reason}\n", encoding="utf-8")


def _sweep(folder: Path) -> None:
    """Remove what processes that were killed left behind."""
    for left in folder.glob(f"{_MAKING}*"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > _ABANDONED_SECONDS:
                shutil.rmtree(left)


def _load_classes(session: SparkSession, table: Path) -> None:
    """Use what the stages use, so that the classes behind it are in the archive."""
    from pyspark.sql import functions as F  # noqa: N812 - its common name

    numbers = session.range(0, 1_000, numPartitions=2).mapInArrow(_as_it_is, "id long")
    keyed = numbers.withColumn("key", F.sha2(F.col("id").cast("string"), 256))
    keyed.write.parquet(str(table))
    read = session.read.parquet(str(table))
    counted = read.groupBy((F.col("id") % 7).alias("rest")).agg(
        F.count("*").alias("count"), F.max("key").alias("key")
    )
    counted.join(read, "key").repartition(2, "rest").sortWithinPartitions("rest").collect()


def _as_it_is(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def main(arguments: list[str]) -> int:
    """Make the archive of the runtime that the arguments name."""
    from pyspark.find_spark_home import _find_spark_home

    home, version, major, cache = arguments
    os.nice(_LOWEST_PRIORITY)
    runtime = JavaRuntime(Path(home), version=version, major=int(major), origin="JAVA_HOME")
    archive = class_archive(runtime, spark_home=Path(_find_spark_home()), cache_dir=Path(cache))
    return 0 if make_archive(archive, runtime=runtime) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
