"""A writer may be killed at any moment: nothing torn is visible, nothing acknowledged is lost."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import IO

import pytest

from kill_moments import Moments
from lumos.core.store.snapshots.folder_claim import CLAIM_NAME
from lumos.core.store.snapshots.snapshot_files import TEMP_PREFIX
from lumos.core.store.snapshots.snapshot_order import STORE_FILES
from lumos.core.store.snapshots.snapshot_store import SnapshotStore

FULL_SIZE = os.environ.get("LUMOS_TEST_FULL") == "1"
BATCHES = 20 if FULL_SIZE else 2
KILLS_PER_BATCH = 50  # each batch has a store of its own: looking through it stays quick
KILLS_OF_A_WRONG_PROTOCOL = 200
WRITES_PER_KILL = 100_000
TESTS = Path(__file__).parents[1]
KILLED = signal.SIGKILL.value


@dataclass
class Findings:
    kills: int = 0
    acknowledged: set[str] = field(default_factory=set)
    verified: set[str] = field(default_factory=set)
    torn: list[str] = field(default_factory=list)
    orphans: int = 0


class Writers:
    """The warm process, and one writer of it at a time."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        assert process.stdin is not None
        assert process.stdout is not None
        self._commands: IO[str] = process.stdin
        self._answers: IO[str] = process.stdout

    def start(self, number: int) -> tuple[int, list[str]]:
        """Start a writer; return its process id and what it acknowledged meanwhile."""
        self._commands.write(f"{number}\n")
        self._commands.flush()
        early: list[str] = []
        while True:
            word, _, rest = self.answer().partition(" ")
            if word == "started":
                return int(rest), early
            early.append(word)

    def answer(self) -> str:
        """Return the next line: an id, or who started or died.

        A writer that was not killed does not die: the next line would never come.
        """
        line = self._answers.readline().strip()
        assert line, "the process that forks the writers ended"
        word, _, status = line.partition(" ")
        assert word != "dead" or int(status) == KILLED, "the writer failed before it was killed"
        return line

    def kill(self, writer: int) -> list[str]:
        """Kill the writer and return what it had acknowledged."""
        os.kill(writer, signal.SIGKILL)
        acknowledged: list[str] = []
        while not (line := self.answer()).startswith("dead"):
            acknowledged.append(line)
        return acknowledged


@contextmanager
def writers(root: Path, protocol: str) -> Iterator[Writers]:
    command = [sys.executable, str(TESTS / "snapshot_crash_writer.py"), str(root), protocol]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Writers(process)
        assert process.stdin is not None
        process.stdin.close()


def seconds_until_the_second_commit(running: Writers, number: int) -> float:
    """Measure how long a writer may live so that kills hit its start and its commits alike."""
    begin = time.monotonic()
    writer, acknowledged = running.start(number)
    while len(acknowledged) < 2:
        acknowledged.append(running.answer())
    elapsed = time.monotonic() - begin
    running.kill(writer)
    return elapsed


def kill_at_random_moments(
    root: Path, protocol: str, *, kills: int, until_torn: bool = False
) -> Findings:
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")  # noqa: T201
    chance = random.Random(seed)
    findings = Findings()
    with writers(root, protocol) as running:
        trials = range(0, WRITES_PER_KILL, WRITES_PER_KILL // 4)
        longest = median(seconds_until_the_second_commit(running, trial) for trial in trials)
        moments = Moments(longest, chance)
        findings.orphans += len(SnapshotStore(root).collect_orphans())
        findings.verified.update(info.id for info in SnapshotStore(root).list())
        for kill in range(1, kills + 1):
            writer, early = running.start(kill * WRITES_PER_KILL)
            moments.wait()
            acknowledged = [*early, *running.kill(writer)]
            moments.got_somewhere(bool(acknowledged))
            findings.acknowledged.update(acknowledged)
            findings.kills = kill
            inspect(root, findings)
            if until_torn and findings.torn:
                break
    return findings


def inspect(root: Path, findings: Findings) -> None:
    store = SnapshotStore(root)
    for info in store.list():
        if info.id not in findings.verified:
            report = store.verify(info.id)
            findings.torn.extend(report.problems)
            findings.verified.add(info.id)
    findings.orphans += len(store.collect_orphans())


def test_a_killed_writer_leaves_no_torn_snapshot_and_loses_no_acknowledged_one(
    tmp_path: Path,
) -> None:
    batches = [
        kill_and_check(tmp_path / f"store-{number}", KILLS_PER_BATCH) for number in range(BATCHES)
    ]

    kills = sum(findings.kills for findings in batches)
    assert kills == BATCHES * KILLS_PER_BATCH
    acknowledged = sum(len(findings.acknowledged) for findings in batches)
    assert acknowledged > kills // 20, "hardly a commit came through"
    assert sum(findings.orphans for findings in batches) > kills // 20, "hardly a kill hit a commit"


def kill_and_check(root: Path, kills: int) -> Findings:
    findings = kill_at_random_moments(root, "right", kills=kills)
    store = SnapshotStore(root)
    assert findings.torn == []
    assert findings.acknowledged <= {info.id for info in store.list()}
    assert [info.id for info in store.list() if not store.verify(info.id).ok] == []
    left = [path for path in root.rglob("*") if path.name.startswith((TEMP_PREFIX, CLAIM_NAME))]
    assert left == []
    folders = [path for path in root.iterdir() if path.name not in STORE_FILES]
    assert all((folder / "manifest.json").is_file() for folder in folders)
    numbers = [info.sequence for info in store.list()]
    assert len(set(numbers)) == len(numbers) == len(folders)
    return findings


@pytest.mark.parametrize("protocol", ["manifest-first", "plain-overwrite"])
def test_the_same_harness_catches_a_wrong_protocol(tmp_path: Path, protocol: str) -> None:
    findings = kill_at_random_moments(
        tmp_path, protocol, kills=KILLS_OF_A_WRONG_PROTOCOL, until_torn=True
    )

    assert findings.torn, f"{findings.kills} kills found nothing wrong with {protocol}"


@pytest.mark.parametrize("life", range(40 if FULL_SIZE else 6))
def test_a_collector_never_takes_the_folder_of_a_live_writer(tmp_path: Path, life: int) -> None:
    # A store of its own for each writer: looking through a store that grew takes longer.
    store = SnapshotStore(tmp_path)
    with writers(tmp_path, "right") as running:
        writer, acknowledged = running.start(life)
        while len(acknowledged) < 10:
            for _ in range(5):
                store.collect_orphans()
            acknowledged.append(running.answer())
        acknowledged += running.kill(writer)

    listed = {info.id for info in store.list()}
    assert set(acknowledged) <= listed
    assert all(store.verify(identity).ok for identity in listed)
