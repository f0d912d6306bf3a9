"""The levers of a fast start are really in effect, and nothing fails where they cannot be had."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest

from lumos.spark.class_archive import ClassArchive, class_archive, trainer_command
from lumos.spark.java import JavaRuntime, cache_folder, find_java
from lumos.spark.session import _started
from lumos.spark.start_failures import SparkUnavailableError
from spark_jobs import normal_priority, run_job, run_jobs

STUCK_JAVA = """\
#!/bin/sh
case " $* " in
    *-XshowSettings*) {real} "$@" 2>&1 | sed "s|java.home = .*|java.home = {home}|" ;;
    *SharedArchiveFile*|*AOTCache=*) touch {home}/stuck; exec sleep 600 ;;
    *) exec {real} "$@" ;;
esac
"""


def java() -> JavaRuntime:
    """The Java that `make spark-archive` makes an archive for."""
    return find_java(os.environ)


@pytest.fixture(scope="module")
def trained_archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A class archive, made as the background process makes it, in a cache with a blank in it."""
    cache = tmp_path_factory.mktemp("a cache")
    with normal_priority(tmp_path_factory.mktemp("priority")):
        subprocess.run(trainer_command(java(), cache_dir=cache), check=True)
    (archive,) = (cache / "spark").glob("*.jsa")
    return archive


@pytest.fixture(scope="module")
def spark_archive(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the archive that `make spark-archive` made; one of its own where there is none."""
    made = class_archive(
        java(), spark_home=Path(pyspark.__file__).parent, cache_dir=cache_folder(os.environ)
    )
    if made.is_whole():
        return copied(made.path, tmp_path_factory.mktemp("a cache"))
    trained: Path = request.getfixturevalue("trained_archive")
    return trained


def test_the_jvm_maps_the_archive_and_runs_with_c1_and_the_serial_collector(
    spark_archive: Path,
) -> None:
    answer = job_on(spark_archive.parent.parent)

    assert answer["mapped"] == [str(spark_archive)]
    assert isinstance(answer["arguments"], list)
    assert {"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"} <= set(answer["arguments"])
    assert answer["environment_is_restored"] is True


@pytest.mark.full  # training takes a minute; `make spark-archive` does it before every other test
@pytest.mark.spark
def test_making_the_archive_leaves_nothing_else_behind(trained_archive: Path) -> None:
    left = {path.suffix for path in trained_archive.parent.iterdir()}

    assert left == {".jsa", ".lock", ".seal"}


def job_on(cache: Path) -> dict[str, object]:
    """Run a job with the archive in a cache."""
    return run_job("levers", cache=cache, master="local[2]")


def copied(archive: Path, cache: Path) -> Path:
    """Copy an archive and its seal into another cache."""
    copy = cache / "spark" / archive.name
    copy.parent.mkdir()
    for path in (archive, archive.with_suffix(".seal")):
        shutil.copy2(path, copy.with_suffix(path.suffix))
    copy.chmod(0o644)
    return copy


def test_a_damaged_archive_is_noticed_and_removed(spark_archive: Path, tmp_path: Path) -> None:
    broken = copied(spark_archive, tmp_path)
    with broken.open("r+b") as file:
        file.seek(broken.stat().st_size // 2)
        file.write(bytes(4_096))

    answer = job_on(tmp_path)

    assert (answer["count"], answer["mapped"]) == (10, [])
    assert not broken.exists()


def test_damage_that_nobody_noticed_does_no_harm(spark_archive: Path, tmp_path: Path) -> None:
    broken = copied(spark_archive, tmp_path)
    status = broken.stat()
    with broken.open("r+b") as file:
        chance = random.Random(3)
        for _ in range(200):
            file.seek(chance.randrange(status.st_size // 8, status.st_size - 4_096))
            file.write(chance.randbytes(64))
    os.utime(broken, ns=(status.st_atime_ns, status.st_mtime_ns))

    answer = job_on(tmp_path)

    assert answer["count"] == 10


@pytest.mark.spark
def test_a_jvm_that_an_archive_keeps_from_starting_is_killed_and_started_without(
    tmp_path: Path,
) -> None:
    home = tmp_path / "java"
    real = java().home / "bin" / "java"
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(STUCK_JAVA.format(real=real, home=home))
    program.chmod(0o755)
    runtime = find_java({"JAVA_HOME": str(home)})
    spark_home = Path(pyspark.__file__).parent
    archive = class_archive(runtime, spark_home=spark_home, cache_dir=tmp_path / "cache")
    archive.path.parent.mkdir(parents=True)
    made = tmp_path / "made.jsa"
    made.write_bytes(b"the JVM never gets as far as reading this")
    archive.put(made)

    (answer,) = run_jobs(
        "levers",
        [{"master": "local[2]"}],
        cache=tmp_path / "cache",
        java_home=home,
        stuck=home / "stuck",
    )

    assert answer["count"] == 10
    assert (home / "stuck").exists()
    assert not archive.path.exists()


def test_an_archive_that_keeps_the_jvm_from_starting_is_done_without_and_removed(
    tmp_path: Path,
) -> None:
    archive = ClassArchive(tmp_path / "java.jsa", java_major=25)
    archive.path.write_bytes(b"damaged")

    started_with = []

    @contextmanager
    def start(
        *, java_options: tuple[str, ...], start_seconds: float | None = None
    ) -> Iterator[None]:
        started_with.append(java_options)
        if set(java_options) & set(archive.using_options()):
            raise SparkUnavailableError("the JVM died")
        yield

    with _started(start, ("-Xmx1g",), archive=archive):  # type: ignore[arg-type]
        assert started_with == [("-Xmx1g", *archive.using_options()), ("-Xmx1g",)]
    assert not archive.path.exists()
