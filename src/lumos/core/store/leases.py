"""Leases in the state database: one holder at a time, also when holders run on several hosts.

A holder renews its lease from a separate thread. Each transaction that writes checks, inside the
transaction, that the lease still is the holder's: a process that was paused until its lease ended
cannot write any more when it wakes up.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from lumos.core.errors import LeaseLostError, StateError, StateLockedError
from lumos.core.events import emit, since
from lumos.core.store.documents import as_moment
from lumos.core.store.sql_text import storable

if TYPE_CHECKING:
    from lumos.core.store.database import StateDatabase
    from lumos.core.store.engine import Row, SqlValue

LEASE_SECONDS: Final = 45.0
"""Less than commands wait by default, so that they outwait a dead holder on another host."""
_RENEWALS: Final = 4
"""How often a lease is renewed before it would end."""
_POLL_SECONDS: Final = 0.1
_MOMENT_SECONDS: Final = 1.0
"""A shorter wait is not reported."""


class LeaseKey(NamedTuple):
    """What a lease gives the right to."""

    operation: str
    scope: str


WRITE_STATE: Final = LeaseKey("write", "state")
"""All commands that write to a state: each folds all of it, and stores a snapshot of all of it."""


class Holder(NamedTuple):
    """Who has a lease."""

    host: str
    pid: int
    machine: str
    """Equal for processes that see the same process ids; empty where that is not known."""
    clock: str
    """Which run of the monotonic clock this is: another one after each start of the machine."""
    token: str
    """Differs for each lease, also within one process."""

    @classmethod
    def here(cls) -> Self:
        """Return this process."""
        boot, processes = _boot_id(), _process_namespace()
        machine = f"{boot} {processes}" if boot and processes else ""
        return cls(socket.gethostname(), os.getpid(), machine, boot, secrets.token_hex(8))


class LeaseRequest(NamedTuple):
    """How a lease is asked for."""

    purpose: str
    """What the holder does, in a few words; shown to processes that wait."""
    wait: float = 0.0
    """For how many seconds another holder is waited for."""
    seconds: float = LEASE_SECONDS
    """How long the lease lasts when it is not renewed."""
    on_wait: Callable[[str], None] = lambda _: None
    """Is called with the holder of the lease, where the wait is longer than a moment."""


class Lease:
    """A lease that this process has, until it is released or ends unrenewed.

    Leaving the `with` block releases it. While it lasts, `database` writes under its fence.
    """

    def __init__(
        self,
        database: StateDatabase,
        key: LeaseKey,
        *,
        holder: Holder,
        seconds: float,
        fence: int,
        asked: float,
    ) -> None:
        """Describe a lease that was taken; `asked` is the monotonic time just before that."""
        self.fence = fence
        """Grows with every holder and never shrinks."""
        self._database = database
        self._seconds = seconds
        self._sql = _Statements(database)
        self._mine: dict[str, SqlValue] = {
            **key._asdict(),
            "fence": fence,
            "token": holder.token,
            "seconds": seconds,
            "idle": f"{1000 * seconds * (_RENEWALS - 1) / _RENEWALS:.0f}",
        }
        self._renewed = asked
        self._is_lost = False
        self._ended = threading.Event()
        self._heartbeat = threading.Thread(target=self._beat, name="lumos-lease", daemon=True)

    def __enter__(self) -> Self:
        self._database.fence = self
        self._heartbeat.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._heartbeat.join()
        self._database.fence = None
        with suppress(StateError):  # it ends by itself
            self._database.execute(self._sql.release, self._mine)

    def check(self) -> None:
        """Refuse to write once the lease has ended; called in the transaction that writes.

        Raises:
            LeaseLostError: it has ended.
        """
        if not self._database.query(self._sql.check, self._mine):
            raise self._lost()

    def confirm(self) -> None:
        """Check and renew the lease; the last statement of a transaction that writes.

        Raises:
            LeaseLostError: it has ended.
        """
        asked = time.monotonic()
        if not self._database.execute(self._sql.confirm, self._mine):
            raise self._lost()
        self._renewed = asked

    def require(self) -> None:
        """Refuse to write to anything else, such as a catalog, once the lease may have ended.

        It asks no database: the lease lasts for its seconds after the last renewal began.

        Raises:
            LeaseLostError: it has ended, or another process has it.
        """
        if self._is_lost or time.monotonic() >= self._renewed + self._seconds:
            raise self._lost()

    def _beat(self) -> None:
        """Renew the lease over a separate connection until it is released or lost."""
        other: StateDatabase | None = None
        while not self._ended.wait(self._seconds / _RENEWALS):
            # A database that is busy or out of reach now may be there before the lease ends.
            with suppress(StateError):
                other = other or self._database.another_connection()
                asked = time.monotonic()
                if not other.execute(self._sql.renew, self._mine):
                    self._is_lost = True
                    break
                self._renewed = asked
        if other is not None:
            other.close()

    def _lost(self) -> LeaseLostError:
        return LeaseLostError(
            f"the lease on {self._database.place} ended before it was renewed: nothing is written",
            hint="run the command again; a process that was paused or could not reach the database "
            "loses its lease, and another one may write",
        )


def acquire(
    database: StateDatabase, key: LeaseKey, *, request: LeaseRequest, clock: Callable[[], datetime]
) -> Lease:
    """Return the lease of a key once nobody else has it.

    A lease that ended is taken over, and so is one whose holder is a dead process of this host.

    Raises:
        StateLockedError: another holder has it; the error says who, since when and for how long.
    """
    holder = Holder.here()
    started = time.monotonic()
    other: str | None = None
    while True:
        asked = time.monotonic()
        fence = _taken(database, key, holder=holder, request=request, clock=clock)
        if fence is not None:
            if other is not None:
                emit("lock.waited", holder=other, seconds=since(started))
            return Lease(
                database, key, holder=holder, seconds=request.seconds, fence=fence, asked=asked
            )
        waited = time.monotonic() - started
        if waited >= request.wait:
            raise _in_use(database, key)
        if other is None and waited >= min(_MOMENT_SECONDS, request.wait):
            other = holder_of(database, key) or "another process"
            request.on_wait(f"waiting up to {request.wait:g} s for {other}")
        time.sleep(min(_POLL_SECONDS, request.wait - waited))


def holder_of(database: StateDatabase, key: LeaseKey) -> str | None:
    """Return in a few words who has a lease and since when; None where nobody has."""
    row = _row(database, key)
    return None if row is None or row["token"] is None else _described(row)


def current_fence(database: StateDatabase, key: LeaseKey) -> int | None:
    """Return the number of the lease that somebody has; None where it is free or has ended."""
    row = _row(database, key)
    is_free = row is None or _is_free(row, Holder.here(), database)
    return None if row is None or is_free else row.integer("fence")


class _Statements:
    """The SQL of leases, with the clock of the database."""

    def __init__(self, database: StateDatabase) -> None:
        now = database.clock
        mine = "operation = :operation AND scope = :scope AND fence = :fence AND token = :token"
        lasting = f"{mine} AND expires_at > {now}"
        renewed = f"UPDATE leases SET heartbeat_at = {now}, expires_at = {now} + :seconds WHERE "  # noqa: S608
        # The server ends the transaction of a process that is paused in the midst of it before the
        # lease ends, so that rows which it has locked are free for the next holder.
        idle = "set_config('idle_in_transaction_session_timeout', :idle, true)"
        held = idle if database.dialect == "postgresql" else "1"
        self.check = f"SELECT {held} AS held FROM leases WHERE {lasting}"  # noqa: S608
        self.renew = renewed + lasting
        # A transaction of SQLite excludes every other writer: once it has begun in time, the lease
        # cannot go to anybody else, and the heartbeat cannot renew it before the transaction ends.
        self.confirm = renewed + (mine if database.dialect == "sqlite" else lasting)
        self.release = f"UPDATE leases SET token = NULL WHERE {mine}"  # noqa: S608


def _taken(
    database: StateDatabase,
    key: LeaseKey,
    *,
    holder: Holder,
    request: LeaseRequest,
    clock: Callable[[], datetime],
) -> int | None:
    """Take a lease if it is free, and return its number."""
    row = _row(database, key)
    if row is not None and not _is_free(row, holder, database):
        return None
    now = database.clock
    try:
        with database.transaction():
            database.execute(
                "INSERT INTO leases (operation, scope, fence) VALUES (:operation, :scope, 0) "
                "ON CONFLICT (operation, scope) DO NOTHING",
                key._asdict(),
            )
            row = _row(database, key, locked=True)
            if row is None or not _is_free(row, holder, database):
                return None
            fence = row.integer("fence") + 1
            database.execute(  # the only text put in is the clock of the engine
                "UPDATE leases SET fence = :fence, host = :host, pid = :pid, machine = :machine, "  # noqa: S608
                "clock = :clock, token = :token, purpose = :purpose, acquired_at = :acquired_at, "
                f"seconds = :seconds, heartbeat_at = {now}, expires_at = {now} + :seconds "
                "WHERE operation = :operation AND scope = :scope",
                {
                    **key._asdict(),
                    **holder._asdict(),
                    "host": storable(holder.host),
                    "fence": fence,
                    "purpose": storable(request.purpose),
                    "acquired_at": as_moment(clock()),
                    "seconds": request.seconds,
                },
            )
    except StateLockedError:  # others take it at the same time, or a transaction goes on
        return None
    return fence


def _row(database: StateDatabase, key: LeaseKey, *, locked: bool = False) -> Row | None:
    """Return a lease, with the seconds that it still lasts."""
    lock = " FOR UPDATE" if locked and database.dialect == "postgresql" else ""
    rows = database.query(
        f"SELECT *, expires_at - {database.clock} AS remaining FROM leases "  # noqa: S608
        f"WHERE operation = :operation AND scope = :scope{lock}",
        key._asdict(),
    )
    return rows[0] if rows else None


def _is_free(row: Row, asker: Holder, database: StateDatabase) -> bool:
    """Return whether a lease may be taken: released, ended, or of a process that is dead."""
    if row["token"] is None:
        return True
    if database.dialect == "sqlite" and row.text("clock") != asker.clock:
        return True  # the machine was restarted: the holder is gone, and its times mean nothing
    remaining = row.optional_number("remaining") or 0.0
    seconds = row.optional_number("seconds") or 0.0
    if remaining <= 0 or remaining > 2 * seconds:  # more than it ever gets: the clock went back
        return True
    if asker.machine and row.text("machine") == asker.machine:
        return _is_dead(row.integer("pid"))
    return False


def _in_use(database: StateDatabase, key: LeaseKey) -> StateLockedError:
    holder = holder_of(database, key) or "another Lumos process"
    return StateLockedError(
        f"{database.place} is in use by {holder}",
        hint="wait until it has ended, or raise lock_seconds in the settings",
    )


def _described(row: Row) -> str:
    """Return who has a lease, since when and how long it lasts unless it is renewed."""
    since = row.text("acquired_at")[:19].replace("T", " ")
    remaining = max(row.optional_number("remaining") or 0.0, 0.0)
    return (
        f"process {row.integer('pid')} on {row.text('host')} ({row.text('purpose')}) "
        f"since {since} UTC; its lease ends in {remaining:.0f} s unless it is renewed"
    )


def _is_dead(pid: int) -> bool:
    """Return whether no process of this machine has a pid, or only one that has ended."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:  # it belongs to another user
        return False
    with suppress(OSError, IndexError):
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return stat.rpartition(")")[2].split()[0] == "Z"
    return False


@cache
def _boot_id() -> str:
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return ""


@cache
def _process_namespace() -> str:
    """Return the namespace of process ids, which differs between containers of one machine."""
    with suppress(OSError):
        return os.readlink("/proc/self/ns/pid")
    return ""
