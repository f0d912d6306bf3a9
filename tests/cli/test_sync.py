"""`lumos sync` from the command line, killed in the middle too."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

from command_line import JANUARY, Lumos, checked
from lumos.core.models import LumosDataset
from lumos.core.platform.impl.embedded_handler import EmbeddedHandler
from lumos.core.store.database import StateDatabase

TEAM = "sqlite:///team.db"


def test_a_second_sync_sends_nothing_and_both_catalogs_are_equal(lumos: Lumos) -> None:
    lumos("import", JANUARY)
    planned = checked(lumos("sync", "--all", "--output", TEAM, "--dry-run", "--json"), "sync")
    assert planned["dry_run"]
    assert planned["kinds"]["dataset"]["new"] == 5
    assert {row["fidelity"] for row in planned["fidelity"]["rows"]} == {"native"}
    assert not Path("team.db").exists()
    assert checked(lumos("sync", "--all", "--output", TEAM, "--json"), "sync")["writes"] == 17
    assert checked(lumos("sync", "--all", "--output", TEAM, "--json"), "sync")["writes"] == 0


def test_what_to_sync_has_to_be_said(lumos: Lumos) -> None:
    assert "give either --all or --source" in lumos("sync", "--output", TEAM).error_line
    result = lumos("sync", "--all", "--source", "x", "--output", TEAM)
    assert result.exit_code == 2
    assert "writes another one" in lumos("sync", "--all", "--output", "embedded").error_line


def test_a_sync_that_was_killed_is_finished_by_the_next_one(lumos: Lumos, tmp_path: Path) -> None:
    count = 600
    with StateDatabase.open(Path(".lumos/lumos.db")) as database, database.transaction():
        catalog = EmbeddedHandler(database)
        for number in range(count):
            name = f"t{number:05d}"
            catalog.emit_dataset(
                LumosDataset(urn=f"lumos://s3/lake/{name}", name=name, platform="s3")  # type: ignore[arg-type]
            )
    Path("lumos.yaml").write_text("sync:\n  batch_size: 20\n", "utf-8")
    command = [sys.executable, "-m", "lumos", "sync", "--all", "--output", TEAM]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while child.poll() is None and acknowledged() < 40:
            time.sleep(0.01)
    finally:
        if child.poll() is None:
            os.kill(child.pid, signal.SIGKILL)
        child.wait()
    before = acknowledged()
    assert before >= 40
    done = checked(lumos("sync", "--all", "--output", TEAM, "--json"), "sync")
    assert done["kinds"]["dataset"]["unchanged"] == before
    assert done["kinds"]["dataset"]["new"] == count - before
    assert done["writes"] <= count - before
    with StateDatabase.open(Path("team.db"), read_only=True) as database:
        assert sum(1 for _ in EmbeddedHandler(database).list()) == count
    assert checked(lumos("sync", "--all", "--output", TEAM, "--json"), "sync")["writes"] == 0


def acknowledged() -> int:
    """Return how many datasets count as sent."""
    try:
        with closing(sqlite3.connect("file:.lumos/lumos.db?mode=ro", uri=True)) as connection:
            rows = connection.execute("SELECT count(*) FROM sync_states WHERE kind = 'dataset'")
            return int(rows.fetchone()[0])
    except sqlite3.OperationalError:  # locked for the moment
        return 0
