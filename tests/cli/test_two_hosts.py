"""Two hosts with one PostgreSQL: processes that share the database, and no folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from command_line import JANUARY, run_in_child
from lumos.core.errors import EXIT_UNREADABLE
from lumos.core.store.database import StateDatabase
from lumos.core.store.runs import RunRepository, RunState

pytestmark = pytest.mark.postgres


def host(folder: Path, **settings: object) -> Path:
    """Make the folder of a host."""
    folder.mkdir()
    (folder / "lumos.yaml").write_text(json.dumps(settings))
    return folder


def started(folder: Path, *arguments: str, url: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "lumos", *arguments],
        cwd=folder,
        env={**os.environ, "LUMOS_DATABASE_URL": url},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def many(folder: Path, name: str, count: int) -> Path:
    """Write a snapshot of many datasets."""
    document = json.loads(Path(JANUARY).read_text())
    template = document["datasets"][0]
    document["datasets"] = [
        {**template, "urn": f"lumos://s3/{name}/{number:05}", "name": f"{name}_{number}"}
        for number in range(count)
    ]
    file = folder / f"{name}.json"
    file.write_text(json.dumps(document))
    return file


def test_two_hosts_that_import_at_once_write_one_after_the_other(
    tmp_path: Path, postgres_database_url: str
) -> None:
    url = postgres_database_url
    hosts = [host(tmp_path / name, lock_seconds=600) for name in ("one", "two")]
    files = [many(folder, folder.name, 50) for folder in hosts]

    running = [
        started(folder, "import", str(file), url=url)
        for folder, file in zip(hosts, files, strict=True)
    ]
    ended = [(process.communicate(), process.returncode) for process in running]

    assert [code for _, code in ended] == [0, 0], ended
    environment = {"LUMOS_DATABASE_URL": url}
    listed = run_in_child("search", "--json", folder=hosts[0], environment=environment).json()
    assert listed["total"] == 100
    with StateDatabase.open(url, read_only=True) as database:
        runs = RunRepository(database).recent()
    assert [run.state for run in runs] == [RunState.DONE, RunState.DONE]


def test_a_host_is_told_which_other_host_writes(tmp_path: Path, postgres_database_url: str) -> None:
    url = postgres_database_url
    one = host(tmp_path / "one", lease_seconds=600)
    two = host(tmp_path / "two", lock_seconds=0)
    writing = paused_import(one, url)
    try:
        refused = run_in_child(
            "import", JANUARY, folder=two, environment={"LUMOS_DATABASE_URL": url}
        )
    finally:
        writing.kill()
        writing.communicate()

    assert refused.exit_code == EXIT_UNREADABLE
    assert f"is in use by process {writing.pid} on " in refused.error_line
    assert "(import) since " in refused.error_line


def test_a_paused_host_that_lost_its_lease_writes_nothing_when_it_wakes(
    tmp_path: Path, postgres_database_url: str
) -> None:
    url = postgres_database_url
    one = host(tmp_path / "one", lease_seconds=2)
    two = host(tmp_path / "two", lock_seconds=600, lease_seconds=2)
    paused = paused_import(one, url)
    try:
        other = run_in_child("import", JANUARY, folder=two, environment={"LUMOS_DATABASE_URL": url})
        with StateDatabase.open(url, read_only=True) as database:
            before = database.query("SELECT urn, document FROM datasets ORDER BY urn")
            os.kill(paused.pid, signal.SIGCONT)
            _, error = paused.communicate()
            after = database.query("SELECT urn, document FROM datasets ORDER BY urn")
            runs = RunRepository(database).recent()
    finally:
        paused.kill()

    assert other.exit_code == 0, other.stderr
    assert paused.returncode == EXIT_UNREADABLE
    # Which it is depends on where the process was paused: before, in or after a transaction.
    assert "is written" in error or "connection" in error, error
    assert [row.values for row in after] == [row.values for row in before]
    assert {run.state for run in runs} == {RunState.DONE, RunState.EXPIRED}


def paused_import(folder: Path, url: str) -> subprocess.Popen[str]:
    """Begin an import on a host, and pause its process once the run has begun."""
    with StateDatabase.open(url) as database:
        writing = started(folder, "import", str(many(folder, "slow", 5_000)), url=url)
        while not RunRepository(database).recent():
            time.sleep(0.01)
        os.kill(writing.pid, signal.SIGSTOP)
    return writing
