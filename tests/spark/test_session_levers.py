"""The levers of a fast start are really in effect, and nothing fails where they cannot be had."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lumos.spark.class_archive import ClassArchive, trainer_command
from lumos.spark.java import find_java
from lumos.spark.session import SparkUnavailableError, _started
from spark_jobs import run_job


@pytest.fixture(scope="module")
def spark_archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A class archive, made as the background process makes it, in a cache with a blank in it."""
    cache = tmp_path_factory.mktemp("a cache")
    runtime = find_java({"HOME": os.environ.get("HOME", str(Path.home()))})
    subprocess.run(trainer_command(runtime, cache_dir=cache), check=True)
    (archive,) = (cache / "spark").glob("*.jsa")
    return archive


def test_the_jvm_maps_the_archive_and_runs_with_c1_and_the_serial_collector(
    spark_archive: Path,
) -> None:
    answer = run_job("levers", cache=spark_archive.parent.parent, master="local[2]")

    assert answer["mapped"] == [str(spark_archive)]
    assert isinstance(answer["arguments"], list)
    assert {"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"} <= set(answer["arguments"])
    assert answer["environment_is_restored"] is True


def test_making_the_archive_leaves_nothing_else_behind(spark_archive: Path) -> None:
    left = {path.suffix for path in spark_archive.parent.iterdir()}

    assert left == {".jsa", ".lock"}


def test_an_archive_that_is_cut_off_does_no_harm(spark_archive: Path, tmp_path: Path) -> None:
    broken = tmp_path / "spark" / spark_archive.name
    broken.parent.mkdir()
    shutil.copy(spark_archive, broken)
    os.truncate(broken, 1_000_000)

    answer = run_job("levers", cache=tmp_path, master="local[2]")

    assert (answer["count"], answer["mapped"]) == (10, [])


def test_an_archive_that_keeps_the_jvm_from_starting_is_done_without_and_removed(
    tmp_path: Path,
) -> None:
    archive = ClassArchive(tmp_path / "java.jsa", java_major=25)
    archive.path.write_bytes(b"damaged")

    started_with = []

    @contextmanager
    def start(*, java_options: tuple[str, ...]) -> Iterator[None]:
        started_with.append(java_options)
        if set(java_options) & set(archive.using_options()):
            raise SparkUnavailableError("the JVM died")
        yield

    with _started(start, ("-Xmx1g",), archive=archive):  # type: ignore[arg-type]
        assert started_with == [("-Xmx1g", *archive.using_options()), ("-Xmx1g",)]
    assert not archive.path.exists()


def test_an_archive_that_is_none_is_ignored(spark_archive: Path, tmp_path: Path) -> None:
    other = tmp_path / "spark" / spark_archive.name
    other.parent.mkdir()
    other.write_bytes(b"no archive")

    answer = run_job("levers", cache=tmp_path, master="local[2]")

    assert (answer["count"], answer["mapped"]) == (10, [])
