"""The processes in which files are read, apart from the one that asks.

A zygote imports the readers once and forks a child whenever it is asked to; the child reads files
until one of them ends it. It notes which file it begins in memory that its parent sees too, so
that the parent knows at which one a child died or hangs.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import math
import os
import resource
import signal
import socket
import struct
import sys
import time
import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Protocol, cast

from lumos.core.errors import UnreadableItemError
from lumos.core.formats import reader as readers
from lumos.core.formats.sandbox_io import (
    ERROR,
    FACTS,
    UP,
    Answers,
    FolderAccess,
    Parent,
    ParentAccess,
    PipeParent,
    ReadingProgress,
    Requests,
    SparseFile,
    opened,
    packed,
    unreadable,
)
from lumos.core.formats.tables import read_table
from lumos.core.models.base import canonical_json

if TYPE_CHECKING:
    from lumos.core.formats.facts import FileFacts

LOCAL, STORED, TABLE = "local", "stored", "table"
"""What a request may be about; text alone is the path of a local file."""
ChildRequest = str | list[Any]
CONFINED: Final = "\0/"
"""Stands in a local path between the folder that it must not leave and the rest."""

MESSAGE: Final = struct.Struct("<cq")
"""A message to the zygote: a command and a process id; to fork, also pipes and a page."""
REPLY: Final = struct.Struct("<q")

FORK, REAP = b"F", b"R"
READY: Final = b"!"

_DESCRIPTORS = 4
_PR_SET_PDEATHSIG = 1
_EXIT_FAILED = 70
_PAGES = "/proc/self/statm"


class Reader(Protocol):
    """What reads one file; see `lumos.core.formats.reader`."""

    def __call__(
        self, stream: BinaryIO, *, size: int, name: str, value_ranges: bool = False
    ) -> bytes | FileFacts: ...


ChildAnswer = tuple[bytes, bytes]
Work = Callable[[Requests, Requests, Answers, ReadingProgress], None]


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
        _serve(control, _Child(read, seconds=float(seconds), memory=int(memory)).work)


def _serve(control: socket.socket, work: Work) -> None:
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, MESSAGE.size, _DESCRIPTORS)
        if len(message) < MESSAGE.size:
            return
        command, number = MESSAGE.unpack(message)
        if command == FORK:
            control.sendall(REPLY.pack(_fork(control, descriptors, work)))
        else:
            control.sendall(REPLY.pack(_end(number)))


def _fork(control: socket.socket, descriptors: list[int], work: Work) -> int:
    zygote = os.getpid()
    child = os.fork()
    if child == 0:
        status = _EXIT_FAILED
        try:
            control.close()
            _die_with_parent(zygote)
            requests, replies, answers, page = descriptors
            work(Requests(requests), Requests(replies), Answers(answers), ReadingProgress(page))
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


class _Child:
    """What a forked process does: it reads one file after the other, within limits."""

    def __init__(self, read: Reader, *, seconds: float, memory: int) -> None:
        self._read = read
        self._seconds = seconds
        self._memory = memory
        self._allowed = 0

    def work(
        self, requests: Requests, replies: Requests, answers: Answers, progress: ReadingProgress
    ) -> None:
        """Answer each request in the order in which they come."""
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _limit_memory(self._memory)
        parent = PipeParent(answers, replies)
        answers.add(UP, b"", now=0.0)
        number = 0
        while True:
            if requests.is_empty:
                answers.flush()
            if not (line := requests.line()):
                return
            now = time.monotonic()
            progress.begin(number, now)
            number += 1
            answers.add(*self._answer(json.loads(line), requests, parent), now=now)

    def _answer(self, request: ChildRequest, incoming: Requests, parent: Parent) -> ChildAnswer:
        try:
            return FACTS, self._document(request, incoming, parent)
        except UnreadableItemError as error:
            return ERROR, packed(error)
        except MemoryError:
            megabytes = self._memory // 1024 // 1024
            reason = f"reading it takes more than {megabytes} MB of memory"
            return ERROR, packed(UnreadableItemError(reason))
        except Exception as error:  # noqa: BLE001 - one file must not end the others; it is named
            name = type(error).__name__
            reason = f"it is damaged, or written in an unknown way: its reader failed ({name})"
            return ERROR, packed(UnreadableItemError(reason))

    def _document(self, request: ChildRequest, incoming: Requests, parent: Parent) -> bytes:
        if isinstance(request, str):
            self._allow(self._seconds)
            return self._local(request, value_ranges=False)
        kind, *rest = request
        if kind == LOCAL:
            path, ranges = rest
            self._allow(self._seconds)
            return self._local(path, value_ranges=ranges)
        if kind == TABLE:
            table, root, folder, seconds, is_confined = rest
            self._allow(seconds)
            access = (
                ParentAccess(parent)
                if folder is None
                else FolderAccess(folder, is_confined=is_confined)
            )
            return canonical_json(read_table(table, root, access).to_json())
        name, size, ranges, pieces = rest
        stream = SparseFile(size, parent)
        for start, length in pieces:
            stream.add(start, incoming.read(length))
        self._allow(self._seconds)
        return self._one(cast("BinaryIO", stream), size=size, name=name, value_ranges=ranges)

    def _allow(self, seconds: float) -> None:
        """Let this process compute for so long; the limit counts its whole life: it moves on."""
        soft = math.ceil(time.process_time()) + math.ceil(seconds) + 1
        if soft == self._allowed:
            return
        self._allowed = soft
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        if hard == resource.RLIM_INFINITY or soft < hard:
            resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))

    def _local(self, path: str, *, value_ranges: bool) -> bytes:
        folder, is_confined, below = path.partition(CONFINED)
        inside = None
        if is_confined:
            path, inside = f"{folder}/{below}", _real_folder(folder)
        try:
            stream, size = opened(path, inside=inside)
            with stream:
                name = path.rpartition("/")[2]
                return self._one(stream, size=size, name=name, value_ranges=value_ranges)
        except OSError as error:
            raise unreadable(error) from error

    def _one(self, stream: BinaryIO, *, size: int, name: str, value_ranges: bool) -> bytes:
        more = {"value_ranges": True} if value_ranges else {}
        facts = self._read(stream, size=size, name=name, **more)
        return facts if isinstance(facts, bytes) else facts.to_document()


@lru_cache(maxsize=64)
def _real_folder(folder: str) -> str:
    return os.path.realpath(folder)


def _limit_memory(memory: int) -> None:
    try:
        with open(_PAGES, encoding="ascii") as pages:
            used = int(pages.read().split()[0]) * resource.getpagesize()
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        if hard == resource.RLIM_INFINITY or used + memory < hard:
            resource.setrlimit(resource.RLIMIT_AS, (used + memory, hard))
    except FileNotFoundError:
        return  # only Linux reports it, and only Linux keeps to the limit


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
