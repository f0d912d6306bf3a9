"""Applying versions may be killed at any moment: no batch is torn, nothing acknowledged is lost."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from given_work import open_work
from kill_moments import Moments
from lumos.core.controllers.version_controller import VersionController
from lumos.core.models import LumosDataset
from lumos.core.store.database import StateDatabase
from lumos.core.store.history import HistoryRepository
from version_crash_writer import BATCH, DATASETS
from version_states import tables, write_snapshot

FULL_SIZE = os.environ.get("LUMOS_TEST_FULL") == "1"
KILLS = 400 if FULL_SIZE else 15
KILLS_OF_A_WRONG_PROTOCOL = 60
STATES_PER_KILL = 100
TESTS = Path(__file__).parents[1]
URNS = [dataset.urn for dataset in tables(DATASETS)]


class Appliers:
    """The warm process, and one applier of it at a time."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._commands, self._answers = process.stdin, process.stdout

    def start(self, state: int) -> int:
        self._commands.write(f"{state}\n")
        self._commands.flush()
        self._early: list[str] = []
        while not (line := self.answer()).startswith("started"):
            self._early.append(line)
        return int(line.split()[1])

    def answer(self) -> str:
        line = self._answers.readline().strip()
        assert line, "the process that forks the appliers ended"
        return line

    def kill(self, applier: int) -> list[tuple[int, int]]:
        """Kill the applier and return the states and counts that it had acknowledged."""
        os.kill(applier, signal.SIGKILL)
        lines = self._early
        while not (line := self.answer()).startswith("dead"):
            lines.append(line)
        assert int(line.split()[1]) == signal.SIGKILL.value, "it failed before it was killed"
        return [(int(state), int(done)) for state, done in (each.split() for each in lines)]


@contextmanager
def appliers(place: Path, protocol: str) -> Iterator[Appliers]:
    command = [sys.executable, str(TESTS / "version_crash_writer.py"), str(place), protocol]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Appliers(process)
        assert process.stdin is not None
        process.stdin.close()


def state_of(dataset: LumosDataset) -> int:
    return int(dataset.documentation.description or "-1")


def torn_batches(place: Path) -> tuple[list[int], list[int]]:
    """Return the states of all datasets, and the batches whose datasets differ in it."""
    with StateDatabase.open(place / "lumos.db", read_only=True) as database:
        found = HistoryRepository(database).current_states(URNS)
    states = [state_of(found[urn]) if urn in found else -1 for urn in URNS]
    batches = range(0, DATASETS, BATCH)
    return states, [at for at in batches if len(set(states[at : at + BATCH])) > 1]


def broken_chains(place: Path) -> list[str]:
    """Return the datasets whose history has a gap, a twin, or a version without its changes."""
    broken: list[str] = []
    with StateDatabase.open(place / "lumos.db", read_only=True) as database:
        history = HistoryRepository(database)
        for urn in URNS:
            told = [*history.states(urn)]
            numbers = [version.version for version, _ in told]
            before = [version.previous_version for version, _ in told]
            states = [state_of(dataset) for _, dataset in told]
            whole = all(history.changes(urn, number) for number in numbers)
            if before != [None, *numbers[:-1]] or states != sorted(set(states)) or not whole:
                broken.append(urn)
    return broken


def seconds_until_the_second_state(running: Appliers) -> float:
    """Measure how long an applier may live so that kills hit all of its work alike."""
    begin = time.monotonic()
    applier = running.start(0)
    while not running.answer().startswith("1 "):
        pass
    elapsed = time.monotonic() - begin
    running.kill(applier)
    return elapsed


def kill_at_random_moments(
    place: Path, protocol: str, *, kills: int, until_torn: bool = False
) -> tuple[int, int]:
    """Return how many batches were acknowledged, and how many were found torn."""
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")  # noqa: T201
    chance = random.Random(seed)
    acknowledged = torn = 0
    with appliers(place, protocol) as running:
        moments = Moments(seconds_until_the_second_state(running), chance)
        for kill in range(1, kills + 1):
            applier = running.start(kill * STATES_PER_KILL)
            moments.wait()
            told = running.kill(applier)
            moments.got_somewhere(bool(told))
            acknowledged += len(told)
            states, differing = torn_batches(place)
            torn += len(differing)
            for state, done in told:
                assert min(states[:done]) >= state, "an acknowledged version is lost"
            if until_torn and torn:
                break
    return acknowledged, torn


def test_a_killed_apply_tears_no_batch_and_loses_nothing_acknowledged(tmp_path: Path) -> None:
    acknowledged, torn = kill_at_random_moments(tmp_path, "right", kills=KILLS)

    assert torn == 0
    assert acknowledged > KILLS // 4, "hardly a commit came through"
    assert broken_chains(tmp_path) == []

    last = write_snapshot(tmp_path, tables(DATASETS, 10**6), day=10**6)
    with open_work(state_dir=tmp_path, environment={}) as work:
        done = VersionController(work).apply(target=last).counts
        again = VersionController(work).apply(target=last).counts
    assert (done.new, again.new, again.unchanged) == (DATASETS, 0, DATASETS)
    assert set(torn_batches(tmp_path)[0]) == {10**6}


def test_the_same_harness_catches_a_wrong_protocol(tmp_path: Path) -> None:
    _, torn = kill_at_random_moments(
        tmp_path, "one-by-one", kills=KILLS_OF_A_WRONG_PROTOCOL, until_torn=True
    )

    assert torn, f"{KILLS_OF_A_WRONG_PROTOCOL} kills found nothing wrong"


@pytest.mark.parametrize("moment", [0.1 * n for n in range(30)] if FULL_SIZE else [0.9])
def test_a_killed_command_is_finished_by_running_it_again(tmp_path: Path, moment: float) -> None:
    states = write_snapshot(tmp_path, tables(400))
    command = [sys.executable, "-m", "lumos", "version", "apply", "--to", states]
    with subprocess.Popen(
        [*command, "--batch-size", "5"], cwd=tmp_path, stdout=subprocess.DEVNULL
    ) as child:
        time.sleep(moment)
        child.send_signal(signal.SIGKILL)

    subprocess.run(command, cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)

    with open_work(state_dir=tmp_path / ".lumos", environment={}) as work:
        found = VersionController(work).show(limit=1_000)
        assert {each.version for each in found.datasets} == {"1.0.0"}
        assert found.total == 400
