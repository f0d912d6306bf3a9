"""Make the class archive: `python -m lumos.spark.archive_trainer HOME VERSION MAJOR CACHE`.

Started by `lumos.spark.class_archive` after a session that went without one.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from lumos.core.errors import LumosError
from lumos.spark.class_archive import ClassArchive, class_archive
from lumos.spark.driver import SHORT_LIFE
from lumos.spark.java import JavaRuntime
from lumos.spark.session import embedded_session
from lumos.spark.settings import SparkSettings
from lumos.spark.warm_up import warm_up

_LOWEST_PRIORITY = 19
_WRITING_SECONDS = 600
_MAKING = ".making-"
_ABANDONED_SECONDS = 3_600


def make_archive(archive: ClassArchive, *, runtime: JavaRuntime) -> bool:
    """Make the archive unless another process does, and leave a note where it cannot be made."""
    from filelock import FileLock, Timeout

    archive.prepare_folder()
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
                warm_up(session, Path(folder) / "table")
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
            # A time far ahead is that of a clock that was wrong, and would never pass.
            if abs(time.time() - left.stat().st_mtime) > _ABANDONED_SECONDS:
                shutil.rmtree(left)


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
