"""What Spark writes lies in a private folder, and is gone after the run or after the next one."""

from __future__ import annotations

import os
import pwd
import signal
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from command_line import run_in_child
from held_ingest import SECRETS, held_ingest, write_bucket_project
from lumos.core.store.state_folder import RUN_PREFIX
from open_ports import descendants
from s3_server import Bucket

pytestmark = pytest.mark.spark


class Places(NamedTuple):
    """Where a command runs, and where it and Spark put what is temporary."""

    project: Path
    temporary: Path
    spill: Path

    @property
    def environment(self) -> dict[str, str]:
        return {"TMPDIR": str(self.temporary), "SPARK_LOCAL_DIRS": f"{self.spill}, {self.spill}2"}

    def runs(self) -> list[Path]:
        """Return the private folders that are there."""
        places = (self.temporary, self.spill, Path(f"{self.spill}2"))
        return [each for place in places for each in sorted(place.glob("*"))]


@pytest.fixture
def places(s3_bucket: Bucket, tmp_path: Path) -> Places:
    places = Places(tmp_path / "project", tmp_path / "tmp", tmp_path / "spill")
    places.project.mkdir()
    places.temporary.mkdir()
    write_bucket_project(places.project, s3_bucket)
    return places


def files_below(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())


def test_spark_writes_to_private_folders_alone_and_no_secret_to_any_file(
    s3_bucket: Bucket, places: Places
) -> None:
    with held_ingest(places.project, s3_bucket, places.environment) as process:
        runs = places.runs()
        private = [run for run in runs if run.name.startswith(RUN_PREFIX)]
        modes = {stat.S_IMODE(run.stat().st_mode) for run in runs}
        names = {path.name for run in private for path in run.rglob("*")}
        leaks = [
            path
            for folder in (*runs, places.project / ".lumos")
            for path in files_below(folder)
            if any(secret in path.read_bytes() for secret in SECRETS)
        ]
        user = pwd.getpwuid(os.geteuid()).pw_name
        of_java = Path(os.sep, "tmp", f"hsperfdata_{user}")  # Java looks at no variable for it
        performance_files = [
            pid for pid in descendants(process.pid) if (of_java / str(pid)).exists()
        ]

    assert runs == private, "nothing else of Spark or PySpark is left while it runs"
    assert len(private) == 3
    assert modes == {0o700}
    assert "driver.log" in names
    assert any(name.startswith("blockmgr-") for name in names)
    assert "spark.properties" not in names, "the JVM has read it"
    assert leaks == []
    assert performance_files == []
    assert places.runs() == []


def test_what_a_killed_run_left_behind_is_removed_by_the_next(
    s3_bucket: Bucket, places: Places
) -> None:
    with held_ingest(
        places.project, s3_bucket, places.environment, exit_code=-signal.SIGKILL
    ) as process:
        for pid in sorted(descendants(process.pid)):  # first the command, then the JVM
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()
    s3_bucket.server.faults.clear()
    left = places.runs()
    assert len(left) == 3

    done = run_in_child("ingest", folder=places.project, environment=places.environment)

    assert done.exit_code == 0, done.stderr
    assert places.runs() == []
