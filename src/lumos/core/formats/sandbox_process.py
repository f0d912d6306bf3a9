"""The processes of a sandbox as their parent sees them: the zygote, and the children it forks."""

from __future__ import annotations

import math
import mmap
import os
import select
import socket
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, NamedTuple

from lumos.core.errors import SourceError, UnreadableItemError
from lumos.core.formats.sandbox_child import FORK, MESSAGE, READY, REAP, REPLY
from lumos.core.formats.sandbox_io import ASK, ERROR, FRAME, UP, ReadingProgress, unpacked

START_SECONDS: Final = 60.0

_CHILD = "lumos.core.formats.sandbox_child"
_CHUNK_BYTES = 64 * 1024
# A process that parses unknown bytes gets no credentials of the environment.
_ENVIRONMENT: Final = (
    "PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "TMPDIR", "TZ",
    "PYTHONHOME", "PYTHONHASHSEED", "PYTHONUTF8", "VIRTUAL_ENV",
)  # fmt: skip

Serve = Callable[[bytes], bytes]
"""Answers a child's question with the frame that is sent back."""


@dataclass(slots=True)
class Task:
    """One file to read, as it is sent to a child, and later its answer."""

    message: bytes
    seconds: float
    serve: Serve | None = None
    answer: bytes | UnreadableItemError | None = None
    paused: float = 0.0
    """How long the child waited for replies."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one file may take before its reader is ended."""

    seconds: float = 10.0
    """For one file, without the time that fetching it from a storage takes."""
    memory_bytes: int = 1024 * 1024 * 1024
    table_seconds: float = 120.0
    """For one table, whose log may be long."""


class LostError(Exception):
    """The zygote is gone."""


class Silence(Enum):
    """Why there is no answer to a file."""

    DEAD = auto()
    LATE = auto()


class Zygote:
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
                raise not_started(error.strerror or type(error).__name__) from error
            theirs.close()
            try:
                self._wait_until_ready()
            except LostError:
                self.close()
                complaints.seek(0)
                lines = complaints.read().decode("utf-8", "replace").split("\n")
                said = next((line.strip() for line in reversed(lines) if line.strip()), "no answer")
                raise not_started(said) from None

    def fork(self) -> Child:
        """Return a new child.

        Raises:
            LostError: the zygote is gone.
        """
        request_end, requests = os.pipe()
        reply_end, replies = os.pipe()
        answers, answer_end = os.pipe()
        with tempfile.TemporaryFile() as page:
            page.truncate(mmap.PAGESIZE)
            progress = ReadingProgress(page.fileno())
            theirs = [request_end, reply_end, answer_end]
            try:
                pid = self._ask(FORK, 0, descriptors=[*theirs, page.fileno()])
            except LostError:
                for descriptor in (requests, replies, answers):
                    os.close(descriptor)
                progress.close()
                raise
            finally:
                for descriptor in theirs:
                    os.close(descriptor)
        return Child(self, pid, pipes=Pipes(requests, replies, answers), progress=progress)

    def reap(self, pid: int) -> int:
        """Kill a child, unless it is dead already, and return the status it ended with.

        Raises:
            LostError: the zygote is gone.
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
            raise LostError

    def _ask(self, command: bytes, number: int, *, descriptors: Iterable[int] = ()) -> int:
        try:
            message = MESSAGE.pack(command, number)
            socket.send_fds(self._control, [message], list(descriptors))
        except OSError:
            raise LostError from None
        (reply,) = REPLY.unpack(self._received(REPLY.size))
        return int(reply)

    def _received(self, size: int) -> bytes:
        received = b""
        while len(received) < size:
            try:
                part = self._control.recv(size - len(received))
            except OSError:
                raise LostError from None
            if not part:
                raise LostError
            received += part
        return received


class Pipes(NamedTuple):
    """The parent's ends of the pipes to a child."""

    requests: int
    replies: int
    answers: int


class Child:
    """A process that reads files, and the pipes to it."""

    def __init__(
        self, zygote: Zygote, pid: int, *, pipes: Pipes, progress: ReadingProgress
    ) -> None:
        self.zygote = zygote
        self.pid = pid
        self._requests, self._replies, self._answers = pipes
        self._progress = progress
        self._sent: deque[Task] = deque()
        self.answered = 0
        self._outgoing: deque[memoryview] = deque()
        self._incoming = b""
        self._at = 0
        os.set_blocking(self._requests, False)
        os.set_blocking(self._replies, False)
        self._poll_answers, self._poll_both = select.poll(), select.poll()
        self._poll_answers.register(self._answers, select.POLLIN)
        self._poll_both.register(self._answers, select.POLLIN)
        self._poll_both.register(self._requests, select.POLLOUT)

    def is_up(self) -> bool:
        """Return whether it came up; waits for it."""
        deadline = time.monotonic() + START_SECONDS
        while (frame := self._frame()) is None:
            if self._turn(deadline - time.monotonic()) is not None:
                return False
        return frame[0] == UP

    def send(self, tasks: Iterable[Task]) -> None:
        """Queue requests; they are written while an answer is awaited, so no side can block."""
        new = list(tasks)
        self._sent.extend(new)
        content = b"".join([task.message for task in new])
        if content:
            self._outgoing.append(memoryview(content))

    def answer(self) -> Silence | None:
        """Give the next task its answer, or the reason why there is none.

        Only the time that is spent waiting counts against a file, so nobody is late because the
        caller was busy, or because a storage took its time to answer a question of the child.
        """
        waiting_since = time.monotonic()
        while True:
            frame = self._frame()
            if frame is None:
                task = self.culprit() or self._sent[0]
                _, began = self._progress.current()
                since = max(began + task.paused, waiting_since)
                silence = self._turn(task.seconds - (time.monotonic() - since))
                if silence is not None:
                    return silence
                continue
            kind, payload = frame
            if kind == ASK:
                task = self._sent[0]
                asked = time.monotonic()
                reply = task.serve(payload) if task.serve is not None else b""
                self._reply(reply, time.monotonic() + task.seconds)
                task.paused += time.monotonic() - asked
                waiting_since += time.monotonic() - asked
                continue
            self.answered += 1
            self._sent.popleft().answer = unpacked(payload) if kind == ERROR else payload
            return None

    def culprit(self) -> Task | None:
        """Return the task at which a child died or hangs; None where it was at none."""
        number, began = self._progress.current()
        index = number - self.answered
        return self._sent[index] if began and 0 <= index < len(self._sent) else None

    def close(self) -> None:
        for descriptor in (self._requests, self._replies, self._answers):
            os.close(descriptor)
        self._progress.close()

    def _turn(self, seconds: float) -> Silence | None:
        """Read what there is to read, or write what is to be written, once."""
        if seconds <= 0:
            return Silence.LATE
        poll = self._poll_both if self._outgoing else self._poll_answers
        ready = [descriptor for descriptor, _ in poll.poll(math.ceil(seconds * 1000))]
        if self._answers in ready:
            part = os.read(self._answers, _CHUNK_BYTES)
            if not part:
                return Silence.DEAD
            self._incoming, self._at = self._incoming[self._at :] + part, 0
        elif self._requests in ready:
            self._write()
        return None

    def _frame(self) -> tuple[bytes, bytes] | None:
        start = self._at + FRAME.size
        if len(self._incoming) < start:
            return None
        kind, length = FRAME.unpack_from(self._incoming, self._at)
        end = start + length
        if len(self._incoming) < end:
            return None
        self._at = end
        return kind, self._incoming[start:end]

    def _write(self) -> None:
        try:
            written = os.write(self._requests, self._outgoing[0][:_CHUNK_BYTES])
        except BrokenPipeError:
            self._outgoing.clear()  # it is dead; what it has answered is still to be read
        except BlockingIOError:
            return
        else:
            rest = self._outgoing[0][written:]
            if rest:
                self._outgoing[0] = rest
            else:
                self._outgoing.popleft()

    def _reply(self, content: bytes, deadline: float) -> None:
        """Write a reply to a child that does nothing but wait for it."""
        rest = memoryview(content)
        poll = select.poll()
        poll.register(self._replies, select.POLLOUT)
        while rest and (left := deadline - time.monotonic()) > 0:
            poll.poll(math.ceil(left * 1000))
            try:
                rest = rest[os.write(self._replies, rest[:_CHUNK_BYTES]) :]
            except BrokenPipeError:
                return  # it is dead, as the next look at its answers will show
            except BlockingIOError:
                continue


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    # Threads of numerical libraries would make forking unsafe.
    threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    plugins = {"PYDANTIC_DISABLE_PLUGINS": "__all__"}  # looking for them takes time
    path = os.pathsep.join(filter(None, sys.path))
    return {**kept, **threads, **plugins, "PYTHONPATH": path}


def not_started(why: str) -> SourceError:
    return SourceError(f"the file readers could not be started: {why}", retryable=True)
