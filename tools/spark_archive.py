"""Make the class archive with which Spark starts in half the time, if there is none yet.

Lumos makes it in the background when it first starts Spark. Tests start Spark some thirty times,
so they wait for it once, at normal priority.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from lumos.core.errors import LumosError
from lumos.spark.archive_trainer import make_archive
from lumos.spark.class_archive import class_archive
from lumos.spark.java import cache_folder, find_java


def main() -> int:
    """Return 0 in any case: tests pass without an archive, only later."""
    from pyspark.find_spark_home import _find_spark_home

    try:
        runtime = find_java(os.environ)
    except LumosError as error:
        print(f"spark-archive: {error}")
        return 0
    spark_home = Path(_find_spark_home())
    archive = class_archive(runtime, spark_home=spark_home, cache_dir=cache_folder(os.environ))
    if not archive.is_whole() and not archive.note.exists():
        made = make_archive(archive, runtime=runtime)
        print(f"spark-archive: {'made' if made else 'could not be made'} for {runtime.home}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
