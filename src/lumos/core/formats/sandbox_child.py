"""The processes in which files are read, apart from the one that asks.

A zygote imports the readers once and forks a child whenever it is asked to; the child reads files
until one of them ends it. Each answer is written as soon as it is known, so that the first file
without an answer is the one at which a child died or hangs.
"""

from __future__ import annotations

import ctypes
import errno
import gc
import importlib
import json
import math
import os
import resource
import signal
import socket
import stat
import struct
import sys
import time
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, BinaryIO, Final, Protocol

from lumos.core.errors import UnreadableItemError
from lumos.core.formats import reader as readers
from lumos.core.models.base import canonical_json

if TYPE_CHECKING:
    from lumos.core.formats.facts import FileFacts

MESSAGE: Final = struct.Struct("<cq")
"""What the zygote is told: a command and a process id; forking also brings two pipes."""
REPLY: Final = struct.Struct("<q")
FRAME: Final = struct.Struct("<cI")
"""What stands before each answer of a child: its kind and its length."""

FORK, REAP = b"F", b"R"
UP, FACTS, ERROR = b"U", b"+", b"-"
READY: Final = b"!"

_PR_SET_PDEATHSIG = 1
_EXIT_FAILED = 70
_PAGES = "/proc/self/statm"
_KINDS: Final = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
)
_REASONS: Final = {
    errno.EACCES: "there is no permission to read it",
    errno.EPERM: "there is no permission to read it",
    errno.ENOENT: "it is gone since it was listed",
    errno.ENOTDIR: "it is gone since it was listed",
    errno.ESTALE: "it is gone since it was listed",
    errno.ELOOP: "its links lead in a circle",
    errno.EISDIR: "it is not a regular file: it is a folder",
    errno.ENXIO: "it is not a regular file",
}
_WORTH_ANOTHER_TRY: Final = (errno.EIO, errno.EMFILE, errno.ENFILE, errno.ESTALE, errno.ETIMEDOUT)


class Reader(Protocol):
    """What reads one file; see `lumos.core.formats.reader.read_file`."""

    def __call__(self, stream: BinaryIO, *, size: int, name: str) -> FileFacts: ...


def main(arguments: list[str]) -> None:
    """Serve as a zygote until the other end of the control socket is closed."""
    descriptor, reader, parent, seconds, memory = arguments
    _die_with_parent(int(parent))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one that asks decides when to stop
    warnings.simplefilter("ignore")
    module, _, name = reader.partition(":")
    read: Reader = getattr(importlib.import_module(module), name)
    readers.preload()
    gc.freeze()  # a child's first collection would otherwise copy every page it shares with this
    with socket.socket(fileno=int(descriptor)) as control:
        control.sendall(READY)
        _silence()
        _serve(control, lambda: _limited(read, float(seconds), int(memory)))


def _serve(
    control: socket.socket, prepare: Callable[[], Callable[[str], tuple[bytes, bytes]]]
) -> None:
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, MESSAGE.size, 2)
        if len(message) < MESSAGE.size:
            return
        command, number = MESSAGE.unpack(message)
        if command == FORK:
            control.sendall(REPLY.pack(_fork(control, descriptors, prepare)))
        else:
            control.sendall(REPLY.pack(_end(number)))


def _fork(
    control: socket.socket,
    descriptors: list[int],
    prepare: Callable[[], Callable[[str], tuple[bytes, bytes]]],
) -> int:
    zygote = os.getpid()
    child = os.fork()
    if child == 0:
        status = _EXIT_FAILED
        try:
            control.close()
            _die_with_parent(zygote)
            _work(*descriptors, answer=prepare())
            status = 0
        finally:
            os._exit(status)
    for descriptor in descriptors:
        os.close(descriptor)
    return child


def _end(child: int) -> int:
    """Kill a child, unless it is dead already, and return the status it ended with."""
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return status


def _work(requests: int, answers: int, *, answer: Callable[[str], tuple[bytes, bytes]]) -> None:
    with os.fdopen(requests, "rb") as incoming, os.fdopen(answers, "wb", buffering=0) as outgoing:
        _write(outgoing, UP, b"")
        for line in incoming:
            _write(outgoing, *answer(json.loads(line)))


def _write(outgoing: BinaryIO, kind: bytes, payload: bytes) -> None:
    rest = memoryview(FRAME.pack(kind, len(payload)) + payload)
    while rest:
        rest = rest[outgoing.write(rest) :]


def _limited(read: Reader, seconds: float, memory: int) -> Callable[[str], tuple[bytes, bytes]]:
    """Put limits on this process and return what reads one file under them."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _limit_memory(memory)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    allowed = math.ceil(seconds) + 1

    def answer(path: str) -> tuple[bytes, bytes]:
        # The limit counts the whole life of the process, so it moves on with each file.
        soft = math.ceil(time.process_time()) + allowed
        if hard == resource.RLIM_INFINITY or soft < hard:
            resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))
        try:
            return FACTS, canonical_json(_facts(read, path).to_json())
        except UnreadableItemError as error:
            return ERROR, _packed(error)
        except MemoryError:
            megabytes = memory // 1024 // 1024
            reason = f"reading it takes more than {megabytes} MB of memory"
            return ERROR, _packed(UnreadableItemError(reason))
        except Exception as error:  # noqa: BLE001 - one file must not end the others; it is named
            reason = f"the reader failed ({type(error).__name__})"
            return ERROR, _packed(UnreadableItemError(reason))

    return answer


def _facts(read: Reader, path: str) -> FileFacts:
    try:
        # Without O_NONBLOCK, opening a named pipe waits for somebody to write to it.
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
        with os.fdopen(os.open(path, flags), "rb") as stream:
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise UnreadableItemError(_irregular(status.st_mode))
            return read(stream, size=status.st_size, name=os.path.basename(path))
    except OSError as error:
        reason = _REASONS.get(error.errno or 0, f"it cannot be read: {error.strerror}")
        retryable = error.errno in _WORTH_ANOTHER_TRY
        raise UnreadableItemError(reason, retryable=retryable) from error


def _irregular(mode: int) -> str:
    kind = next((name for is_kind, name in _KINDS if is_kind(mode)), "a device")
    return f"it is not a regular file: it is {kind}"


def _packed(error: UnreadableItemError) -> bytes:
    return canonical_json([error.message, error.hint, error.retryable])


def _limit_memory(memory: int) -> None:
    try:
        with open(_PAGES, encoding="ascii") as pages:
            used = int(pages.read().split()[0]) * resource.getpagesize()
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        if hard == resource.RLIM_INFINITY or used + memory < hard:
            resource.setrlimit(resource.RLIMIT_AS, (used + memory, hard))
    except FileNotFoundError:
        return  # only Linux tells, and only Linux keeps to the limit


def _silence() -> None:
    """Send what libraries print about files to nowhere: it may quote them."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.close(nowhere)


def _die_with_parent(parent: int) -> None:
    """Let the system end this process when its parent ends, on systems that can."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(_EXIT_FAILED)


if __name__ == "__main__":
    main(sys.argv[1:])
