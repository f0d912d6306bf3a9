"""Leases: one writer at a time, and none that lost its lease; on SQLite and PostgreSQL alike."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lumos.core.errors import LeaseLostError, LumosError, StateLockedError
from lumos.core.run_report import RunRecorder
from lumos.core.runtime.runs import stored_run
from lumos.core.store import leases
from lumos.core.store.database import StateDatabase
from lumos.core.store.leases import WRITE_STATE, Holder, Lease, LeaseKey, LeaseRequest, acquire
from lumos.core.store.runs import RunRepository, RunState
from state_databases import ENGINES, url_for

HOLDER = Path(__file__).parents[1] / "lease_holder.py"
TAG = "INSERT INTO entities (kind, name, document, updated_at) VALUES ('tag', :name, '{}', '')"
LOST = LeaseLostError.code
LONG = 600.0
SHORT = 1.0
AT = datetime(2026, 5, 1, 12, 30, tzinfo=UTC)


@pytest.fixture(params=ENGINES)
def url(request: pytest.FixtureRequest) -> str:
    return url_for(request.param, request)


@pytest.fixture
def database(url: str) -> Iterator[StateDatabase]:
    with StateDatabase.open(url) as database:
        yield database


class Process:
    """A real process that holds the lease, and writes when it is told to."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.fence = int(self.heard().removeprefix("held "))

    @property
    def pid(self) -> int:
        return self.process.pid

    def heard(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def pause(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)
        while Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
            time.sleep(0.01)

    def wake(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        self.process.kill()


@contextmanager
def holder(url: str, seconds: float = LONG) -> Iterator[Process]:
    command = [sys.executable, str(HOLDER), url, str(seconds)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield Process(process)
        finally:
            process.kill()


def taken(database: StateDatabase, purpose: str = "import", **how: float) -> Lease:
    return acquire(database, WRITE_STATE, request=LeaseRequest(purpose, **how), clock=lambda: AT)  # type: ignore[arg-type]


def names(database: StateDatabase) -> list[str]:
    return [row.text("name") for row in database.query("SELECT name FROM entities ORDER BY name")]


def remaining(database: StateDatabase) -> float:
    (row,) = database.query(f"SELECT expires_at - {database.clock} AS left_over FROM leases")  # noqa: S608
    return row.optional_number("left_over") or 0.0


def outlast(database: StateDatabase) -> None:
    """Wait until the lease has ended by the clock of the database."""
    while remaining(database) > 0:
        time.sleep(0.05)


def test_a_second_process_is_told_who_holds_the_lease_since_when_and_for_how_long(
    url: str, database: StateDatabase
) -> None:
    with holder(url) as process, pytest.raises(StateLockedError) as caught:
        taken(database)

    message = caught.value.message
    assert f"process {process.pid} on " in message
    assert "(ingest of lake) since " in message
    assert "its lease ends in 600 s unless it is renewed" in message
    assert database.place in message
    assert caught.value.code == "LUM-301"
    assert caught.value.retryable
    assert caught.value.hint


def test_a_killed_holder_of_this_host_is_replaced_at_once(
    url: str, database: StateDatabase
) -> None:
    with holder(url) as process:
        process.kill()
        process.process.wait()

        with taken(database) as lease:
            assert lease.fence == process.fence + 1
            database.execute(TAG, {"name": "after"})

    assert names(database) == ["after"]


def test_a_holder_that_was_killed_and_is_not_reaped_yet_is_dead(
    url: str, database: StateDatabase
) -> None:
    with holder(url) as process:
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

        with taken(database) as lease:
            assert lease.fence == process.fence + 1


def test_a_holder_of_another_host_is_replaced_once_its_lease_has_ended(
    url: str, database: StateDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "_process_namespace", lambda: "of another container")
    with holder(url, SHORT) as process:
        process.kill()
        process.process.wait()

        with taken(database, wait=LONG) as lease:
            assert remaining(database) > SHORT
            assert lease.fence == process.fence + 1


def test_a_living_holder_keeps_its_lease_by_renewing_it(url: str, database: StateDatabase) -> None:
    with holder(url, SHORT) as process:
        (row,) = database.query("SELECT heartbeat_at FROM leases")
        first = row.optional_number("heartbeat_at") or 0.0
        while True:
            (row,) = database.query("SELECT heartbeat_at FROM leases")
            if (row.optional_number("heartbeat_at") or 0.0) > first + 2 * SHORT:
                break
            time.sleep(0.05)

        with pytest.raises(StateLockedError):
            taken(database)
        process.tell("still mine")
        assert process.heard() == "written"


def test_a_process_that_was_paused_until_its_lease_ended_cannot_write(
    url: str, database: StateDatabase
) -> None:
    with holder(url, SHORT) as process:
        process.tell("before")
        assert process.heard() == "written"
        process.pause()
        outlast(database)
        process.wake()
        process.tell("after")

        assert process.heard() == f"refused {LOST}"

    assert names(database) == ["before"]


def test_a_lease_that_was_not_renewed_in_time_lets_nothing_be_sent_elsewhere(
    database: StateDatabase,
) -> None:
    not_renewed = taken(database, seconds=0.01)  # no thread renews it before its block is entered

    time.sleep(0.01)

    with pytest.raises(LeaseLostError):
        not_renewed.require()


def test_a_paused_process_cannot_write_once_another_has_taken_over(
    url: str, database: StateDatabase
) -> None:
    with holder(url, SHORT) as process:
        process.pause()
        with taken(database, wait=LONG) as lease:
            process.wake()
            process.tell("stale")

            assert process.heard() == f"refused {LOST}"
            database.execute(TAG, {"name": "new"})
            assert lease.fence == process.fence + 1

    assert names(database) == ["new"]


@pytest.mark.postgres
def test_a_transaction_that_was_open_while_the_lease_ended_is_not_committed(
    postgres_database_url: str,
) -> None:
    with (
        StateDatabase.open(postgres_database_url) as database,
        holder(postgres_database_url, SHORT) as process,
    ):
        process.tell("begin stale")
        assert process.heard() == "open"
        process.pause()
        with taken(database, wait=LONG):
            database.execute(TAG, {"name": "stale"})  # the server has let go of the row
        process.wake()
        process.tell("commit")

        assert process.heard().startswith("refused LUM-30")
        assert names(database) == ["stale"]


def test_a_long_transaction_is_committed_by_whoever_still_holds_the_lease(
    url: str, database: StateDatabase
) -> None:
    with holder(url, SHORT) as process:
        process.tell("begin long")
        assert process.heard() == "open"
        for _ in range(20):  # heartbeats of PostgreSQL go on; SQLite lets nobody else write
            time.sleep(SHORT / 10)
            process.tell("step")
        process.tell("commit")

        assert process.heard() == "written"
        process.tell("next")
        assert process.heard() == "written"

    assert names(database) == ["long", "next"]


def test_of_many_processes_exactly_one_gets_the_lease(url: str, database: StateDatabase) -> None:
    command = [sys.executable, str(HOLDER), url, str(LONG)]
    running = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    try:
        heard = sorted(process.stdout.readline().strip() for process in running if process.stdout)
    finally:
        for process in running:
            process.kill()
            process.communicate()

    assert heard == ["held 1", *["refused LUM-301"] * 3]


def test_of_many_threads_that_wait_each_gets_the_lease_in_turn(url: str) -> None:
    StateDatabase.open(url).close()
    fences: list[int] = []
    inside = threading.Lock()

    def write(number: int) -> None:
        with StateDatabase.open(url) as own, taken(own, str(number), wait=LONG) as lease:
            assert inside.acquire(blocking=False)
            fences.append(lease.fence)
            own.execute(TAG, {"name": f"tag {number}"})
            inside.release()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert fences == [1, 2, 3, 4, 5, 6]
    with StateDatabase.open(url) as database:
        assert len(names(database)) == 6


def test_two_holders_in_one_process_exclude_each_other(url: str, database: StateDatabase) -> None:
    with (
        StateDatabase.open(url) as other,
        taken(database, "first"),
        pytest.raises(StateLockedError, match="first"),
    ):
        taken(other, "second")


def test_leases_of_other_operations_and_scopes_are_independent(database: StateDatabase) -> None:
    with taken(database):
        for key in (LeaseKey("write", "another"), LeaseKey("send", "state")):
            with database.another_connection() as other:
                request = LeaseRequest("something else")
                with acquire(other, key, request=request, clock=lambda: AT) as lease:
                    assert lease.fence == 1


def test_a_lease_is_released_also_after_an_error(database: StateDatabase) -> None:
    with pytest.raises(RuntimeError, match="inside"), taken(database):
        raise RuntimeError("inside")

    with taken(database) as lease:
        assert lease.fence == 2
    database.execute(TAG, {"name": "without a lease"})  # nobody asks for one any more


def test_who_waits_is_told_for_whom(url: str, database: StateDatabase) -> None:
    told: list[str] = []
    with holder(url) as process:

        def release(text: str) -> None:
            told.append(text)
            process.kill()

        request = LeaseRequest("import", wait=LONG, on_wait=release)
        with acquire(database, WRITE_STATE, request=request, clock=lambda: AT):
            pass

    (said,) = told
    assert f"process {process.pid} " in said
    assert "waiting up to 600 s" in said


def test_who_need_not_wait_is_told_nothing(url: str, database: StateDatabase) -> None:
    told: list[str] = []
    request = LeaseRequest("import", wait=LONG, on_wait=told.append)
    with acquire(database, WRITE_STATE, request=request, clock=lambda: AT):
        pass
    now = LeaseRequest("import", on_wait=told.append)
    with holder(url), pytest.raises(StateLockedError):
        acquire(database, WRITE_STATE, request=now, clock=lambda: AT)

    assert told == []


def test_a_lease_of_before_a_restart_of_the_machine_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with StateDatabase.open(tmp_path / "lumos.db") as database:
        lease = taken(database)
        before = Holder.here()
        monkeypatch.setattr(leases, "_boot_id", lambda: "another start")

        assert Holder.here().clock != before.clock
        with taken(database) as after:
            assert after.fence == lease.fence + 1


def test_a_lease_of_a_clock_that_was_set_back_does_not_last_for_ever(
    database: StateDatabase,
) -> None:
    taken(database)
    database.execute("UPDATE leases SET expires_at = expires_at + 86400, pid = 0")

    with taken(database) as lease:
        assert lease.fence == 2


class TestRuns:
    def test_a_run_has_a_row_from_its_beginning_to_its_end(self, database: StateDatabase) -> None:
        runs = RunRepository(database)
        request = LeaseRequest("ingest")
        with stored_run(database, "ingest", request=request, clock=lambda: AT) as run:
            (begun,) = runs.recent()
            run.keep(RunRecorder("ingest", started_at=AT).finish(at=AT))

        (ended,) = runs.recent()
        assert (begun.operation, begun.state, begun.finished_at) == (
            "ingest",
            RunState.RUNNING,
            None,
        )
        assert (ended.id, ended.state, ended.finished_at) == (begun.id, RunState.DONE, AT)
        assert ended.report["complete"] is True

    @pytest.mark.parametrize(
        ("error", "state", "reason"),
        [
            (LumosError("the disk is full"), RunState.FAILED, "the disk is full"),
            (ValueError("a value that nobody may see"), RunState.FAILED, "ValueError"),
            (KeyboardInterrupt(), RunState.ABORTED, "KeyboardInterrupt"),
        ],
    )
    def test_a_run_that_fails_or_is_stopped_is_finished_too(
        self, database: StateDatabase, error: BaseException, state: RunState, reason: str
    ) -> None:
        request = LeaseRequest("ingest")
        with (
            pytest.raises(type(error)),
            stored_run(database, "ingest", request=request, clock=lambda: AT),
        ):
            raise error

        (ended,) = RunRepository(database).recent()
        assert (ended.state, ended.finished_at) == (state, AT)
        assert ended.report["warnings"] == [f"it ended early: {reason}"]
        assert ended.report["complete"] is False

    def test_a_run_whose_lease_has_ended_is_expired_before_and_after_the_next_one(
        self, url: str, database: StateDatabase
    ) -> None:
        request = LeaseRequest("ingest", seconds=SHORT)
        runs = RunRepository(database)
        lost = stored_run(database, "ingest", request=request, clock=lambda: AT)
        lost.__enter__()
        lease = database.fence
        assert isinstance(lease, Lease)
        lease._ended.set()  # no more heartbeats
        outlast(database)

        assert runs.recent()[0].state is RunState.EXPIRED
        with pytest.raises(LeaseLostError):
            lost.__exit__(None, None, None)
        with (
            StateDatabase.open(url) as other,
            stored_run(other, "import", request=LeaseRequest("import"), clock=lambda: AT),
        ):
            states = {run.operation: run.state for run in RunRepository(other).recent()}

        assert states == {"ingest": RunState.EXPIRED, "import": RunState.RUNNING}
