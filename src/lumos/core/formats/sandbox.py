"""Reads many local files in a child process, so that no file can end or hang the one that asks.

A library that aborts, overflows its stack or never returns on a damaged file takes a child with
it; that file is reported, and the next child goes on with the rest. A child that cannot start is
an error of the whole task and is never blamed on a file.
"""

from __future__ import annotations

import atexit
import json
import math
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from itertools import islice
from types import TracebackType
from typing import Final, Self

import orjson

from lumos.core.errors import SourceError, UnreadableItemError
from lumos.core.formats.facts import FileFacts
from lumos.core.formats.sandbox_child import (
    ERROR,
    FORK,
    FRAME,
    MESSAGE,
    READY,
    REAP,
    REPLY,
    UP,
)

READER: Final = "lumos.core.formats.reader:read_file"
START_SECONDS: Final = 60.0

_CHILD = "lumos.core.formats.sandbox_child"
_WINDOW = 64
_FEW_WAITING = 16
_CHUNK_BYTES = 64 * 1024
_MOST_ZYGOTES = 3
_AGAIN_AND_AGAIN = "the process that starts them ended again and again"
_HINT = "the file is damaged or hostile; leave it out with: exclude"
# Credentials in the environment are no business of whoever parses unknown bytes.
_ENVIRONMENT: Final = (
    "PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "TMPDIR", "TZ",
    "PYTHONHOME", "PYTHONHASHSEED", "PYTHONUTF8", "VIRTUAL_ENV",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class FileItem:
    """A file to read, as it was listed."""

    path: str
    size: int


@dataclass(frozen=True, slots=True)
class Limits:
    """What one file may take before its reader is ended."""

    seconds: float = 10.0
    memory_bytes: int = 1024 * 1024 * 1024


DEFAULT_LIMITS: Final = Limits()


def read_files(
    items: Iterable[FileItem], *, limits: Limits = DEFAULT_LIMITS
) -> Iterator[tuple[FileItem, FileFacts | UnreadableItemError]]:
    """Yield the facts of each file, or why it cannot be read, in the order given.

    The first call in a process starts what reads; later calls use it again. Closing the iterator
    ends its child.

    Raises:
        SourceError: the readers could not be started.
    """
    return shared_sandbox(limits).read_files(items)


def read_documents(
    items: Iterable[FileItem], *, limits: Limits = DEFAULT_LIMITS
) -> Iterator[tuple[FileItem, bytes | UnreadableItemError]]:
    """Yield like `read_files`, with the facts as canonical JSON that was never parsed here.

    Raises:
        SourceError: the readers could not be started.
    """
    return shared_sandbox(limits).read_documents(items)


class _LostError(Exception):
    """The zygote is gone."""


class _Silence(Enum):
    """Why there is no answer to a file."""

    DEAD = auto()
    LATE = auto()


class Sandbox:
    """A place to read files in; may be shared by threads, not by processes.

    Args:
        reader: what reads a file, as `module:name`; it takes what `read_file` takes.
        limits: what one file may take.
    """

    def __init__(self, *, reader: str = READER, limits: Limits = DEFAULT_LIMITS) -> None:
        self._reader = reader
        self._limits = limits
        self._zygote: _Zygote | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End every process of this sandbox."""
        with self._lock:
            if self._zygote is not None:
                self._zygote.close()
            self._zygote = None

    def read_files(
        self, items: Iterable[FileItem]
    ) -> Iterator[tuple[FileItem, FileFacts | UnreadableItemError]]:
        """Yield the facts of each file, or why it cannot be read, in the order given.

        Raises:
            SourceError: the readers could not be started.
        """
        for item, answer in self.read_documents(items):
            if isinstance(answer, bytes):
                yield item, FileFacts.from_json(orjson.loads(answer))
            else:
                yield item, answer

    def read_documents(
        self, items: Iterable[FileItem]
    ) -> Iterator[tuple[FileItem, bytes | UnreadableItemError]]:
        """Yield like `read_files`, with the facts as canonical JSON that was never parsed here.

        Raises:
            SourceError: the readers could not be started.
        """
        waiting: deque[FileItem] = deque()
        source = iter(items)
        child: _Child | None = None
        lost = 0
        try:
            while True:
                new: list[FileItem] = []
                if len(waiting) <= _FEW_WAITING:
                    new = list(islice(source, _WINDOW - len(waiting)))
                    waiting.extend(new)
                if not waiting:
                    return
                if child is None:
                    child, new = self._child(), list(waiting)
                if new:
                    child.send(new)
                answer = child.answer(self._limits.seconds)
                if isinstance(answer, _Silence):
                    status, ended = self._ended(child), child
                    child = None
                    ended.close()
                    if status is None:  # the zygote took the child with it: no file is to blame
                        lost += 1
                        if lost == _MOST_ZYGOTES:
                            raise _not_started(_AGAIN_AND_AGAIN)
                        continue
                    answer = _reason(answer, status, self._limits)
                yield waiting.popleft(), answer
        finally:
            if child is not None:
                self._ended(child)
                child.close()

    def _child(self) -> _Child:
        """Return a child that is ready to read, from a new zygote where the old one is gone."""
        for _ in range(_MOST_ZYGOTES):
            with self._lock:
                if self._zygote is None:
                    self._zygote = _Zygote(self._reader, self._limits)
                try:
                    child = self._zygote.fork()
                except _LostError:
                    self._zygote.close()
                    self._zygote = None
                    continue
            if child.answer(START_SECONDS) == UP:
                return child
            status = self._ended(child)
            child.close()
            if status is not None:
                raise _not_started(f"the child ended at once ({_spelled(status)})")
        raise _not_started(_AGAIN_AND_AGAIN)

    def _ended(self, child: _Child) -> int | None:
        """End a child and return its status; None where the zygote that knows it is gone."""
        with self._lock:
            if self._zygote is not child.zygote:
                return None
            try:
                return child.zygote.reap(child.pid)
            except _LostError:
                child.zygote.close()
                self._zygote = None
                return None


class _Zygote:
    """The process that has the readers loaded and forks at once."""

    def __init__(self, reader: str, limits: Limits) -> None:
        self._control, theirs = socket.socketpair()
        with theirs, tempfile.TemporaryFile() as complaints:
            command = [
                sys.executable, "-P", "-W", "ignore", "-m", _CHILD, str(theirs.fileno()), reader,
                str(os.getpid()), str(limits.seconds), str(limits.memory_bytes),
            ]  # fmt: skip
            try:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=complaints,
                    pass_fds=[theirs.fileno()],
                    env=_environment(),
                )
            except OSError as error:
                self._control.close()
                raise _not_started(error.strerror or type(error).__name__) from error
            theirs.close()
            try:
                self._wait_until_ready()
            except _LostError:
                self.close()
                complaints.seek(0)
                lines = complaints.read().decode("utf-8", "replace").split("\n")
                said = next((line.strip() for line in reversed(lines) if line.strip()), "no answer")
                raise _not_started(said) from None

    def fork(self) -> _Child:
        """Return a new child.

        Raises:
            _LostError: the zygote is gone.
        """
        request_end, requests = os.pipe()
        answers, answer_end = os.pipe()
        try:
            pid = self._ask(FORK, 0, descriptors=[request_end, answer_end])
        except _LostError:
            os.close(requests)
            os.close(answers)
            raise
        finally:
            os.close(request_end)
            os.close(answer_end)
        return _Child(self, pid, requests=requests, answers=answers)

    def reap(self, pid: int) -> int:
        """Kill a child, unless it is dead already, and return the status it ended with.

        Raises:
            _LostError: the zygote is gone.
        """
        return self._ask(REAP, pid)

    def close(self) -> None:
        """End the zygote and with it all its children."""
        self._control.close()
        self._process.kill()
        self._process.wait()

    def _wait_until_ready(self) -> None:
        self._control.settimeout(START_SECONDS)
        if self._received(len(READY)) != READY:
            raise _LostError

    def _ask(self, command: bytes, number: int, *, descriptors: Iterable[int] = ()) -> int:
        try:
            message = MESSAGE.pack(command, number)
            socket.send_fds(self._control, [message], list(descriptors))
        except OSError:
            raise _LostError from None
        (reply,) = REPLY.unpack(self._received(REPLY.size))
        return int(reply)

    def _received(self, size: int) -> bytes:
        received = b""
        while len(received) < size:
            try:
                part = self._control.recv(size - len(received))
            except OSError:
                raise _LostError from None
            if not part:
                raise _LostError
            received += part
        return received


class _Child:
    """A process that reads files, and the pipes to it."""

    def __init__(self, zygote: _Zygote, pid: int, *, requests: int, answers: int) -> None:
        self.zygote = zygote
        self.pid = pid
        self._requests = requests
        self._answers = answers
        self._outgoing = bytearray()
        self._incoming = bytearray()
        os.set_blocking(requests, False)
        self._poll_answers, self._poll_both = select.poll(), select.poll()
        self._poll_answers.register(answers, select.POLLIN)
        self._poll_both.register(answers, select.POLLIN)
        self._poll_both.register(requests, select.POLLOUT)

    def send(self, items: Iterable[FileItem]) -> None:
        """Queue files; they are written while an answer is awaited, so neither side can block."""
        for item in items:
            self._outgoing += json.dumps(item.path).encode("ascii") + b"\n"

    def answer(self, seconds: float) -> bytes | UnreadableItemError | _Silence:
        """Return the next answer, as JSON, or why there is none.

        Only the time spent waiting here counts, so nobody is late because the caller was busy.
        """
        deadline = time.monotonic() + seconds
        while True:
            frame = self._frame()
            if frame is not None:
                return frame
            left = deadline - time.monotonic()
            if left <= 0:
                return _Silence.LATE
            readable, writable = self._ready(left)
            if readable:
                part = os.read(self._answers, _CHUNK_BYTES)
                if not part:
                    return _Silence.DEAD
                self._incoming += part
            elif writable:
                self._write()

    def _ready(self, seconds: float) -> tuple[bool, bool]:
        """Wait until there is something to read, or room to write what is to be written."""
        poll = self._poll_both if self._outgoing else self._poll_answers
        ready = [descriptor for descriptor, _ in poll.poll(math.ceil(seconds * 1000))]
        return self._answers in ready, self._requests in ready

    def close(self) -> None:
        os.close(self._requests)
        os.close(self._answers)

    def _frame(self) -> bytes | UnreadableItemError | None:
        if len(self._incoming) < FRAME.size:
            return None
        kind, length = FRAME.unpack_from(self._incoming)
        end = FRAME.size + length
        if len(self._incoming) < end:
            return None
        payload = bytes(self._incoming[FRAME.size : end])
        del self._incoming[:end]
        if kind == ERROR:
            message, hint, retryable = orjson.loads(payload)
            return UnreadableItemError(message, hint=hint, retryable=retryable)
        return UP if kind == UP else payload

    def _write(self) -> None:
        try:
            written = os.write(self._requests, self._outgoing[:_CHUNK_BYTES])
            del self._outgoing[:written]
        except BrokenPipeError:
            self._outgoing.clear()  # it is dead; what it has answered is still to be read
        except BlockingIOError:
            return


_shared: dict[tuple[int, Limits], Sandbox] = {}
_shared_lock = threading.Lock()


def shared_sandbox(limits: Limits = DEFAULT_LIMITS) -> Sandbox:
    """Return the sandbox of this process with these limits; it lives as long as the process."""
    with _shared_lock:
        key = (os.getpid(), limits)
        if key not in _shared:
            _shared[key] = Sandbox(limits=limits)
        return _shared[key]


@atexit.register
def close_shared_sandboxes() -> None:
    """End the processes of all shared sandboxes; the next call starts new ones."""
    with _shared_lock:
        for key in [key for key in _shared if key[0] == os.getpid()]:
            _shared.pop(key).close()


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    # Threads of numerical libraries would make forking unsafe.
    threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    return {**kept, **threads, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def _reason(silence: _Silence, status: int, limits: Limits) -> UnreadableItemError:
    if silence is _Silence.LATE:
        reason = f"reading it took longer than {limits.seconds:g} s"
        return UnreadableItemError(reason, hint=_HINT, retryable=True)
    return UnreadableItemError(f"the reader died ({_spelled(status)})", hint=_HINT)


def _spelled(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _not_started(why: str) -> SourceError:
    return SourceError(f"the file readers could not be started: {why}", retryable=True)
