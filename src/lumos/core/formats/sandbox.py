"""Reads many files in a child process, so that no file can end or hang the one that asks.

A library that aborts, overflows its stack or never returns on a damaged file takes a child with
it; that file is reported, and the next child goes on with the rest. A child that cannot start is
an error of the whole task and is never blamed on a file. Local files are opened by the child; of
files in a storage it gets the bytes, and the network and the credentials stay on this side.
"""

from __future__ import annotations

import atexit
import os
import signal
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import closing
from types import TracebackType
from typing import Final, Self

import orjson

from lumos.core.errors import UnreadableItemError
from lumos.core.formats.facts import FileFacts
from lumos.core.formats.sandbox_orders import (
    FileItem,
    FileStore,
    Item,
    Order,
    Orders,
    StoredItem,
    StoredOrders,
    file_orders,
    folder_orders,
)
from lumos.core.formats.sandbox_process import (
    Child,
    Limits,
    LostError,
    Silence,
    Task,
    Zygote,
    not_started,
)

__all__ = [
    "DEFAULT_LIMITS",
    "FileItem",
    "Limits",
    "Sandbox",
    "StoredItem",
    "close_shared_sandboxes",
    "read_documents",
    "read_files",
    "shared_sandbox",
]

READER: Final = "lumos.core.formats.reader:read_document"
DEFAULT_LIMITS: Final = Limits()

_WINDOW = 192
_FEW_WAITING = 64
_MOST_ZYGOTES = 3
_MOST_FILES = 200_000
_AGAIN_AND_AGAIN = "the process that starts them ended again and again"
_HINT = "the file is damaged or hostile; leave it out with: exclude"


def read_files(
    items: Iterable[FileItem], *, limits: Limits = DEFAULT_LIMITS
) -> Iterator[tuple[FileItem, FileFacts | UnreadableItemError]]:
    """Yield the facts of each local file, or why it cannot be read, in the order given.

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


class Sandbox:
    """A place to read files in; may be shared by threads, not by processes.

    Args:
        reader: what reads a file, as `module:name`; it takes what `read_document` takes.
        limits: what one file may take.
    """

    def __init__(self, *, reader: str = READER, limits: Limits = DEFAULT_LIMITS) -> None:
        self._reader = reader
        self._limits = limits
        self._zygote: Zygote | None = None
        self._idle: list[Child] = []
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
            idle, self._idle = self._idle, []
        for child in idle:
            self._ended(child)
            child.close()
        with self._lock:
            if self._zygote is not None:
                self._zygote.close()
            self._zygote = None

    def read_files(
        self, items: Iterable[FileItem]
    ) -> Iterator[tuple[FileItem, FileFacts | UnreadableItemError]]:
        """Yield the facts of each local file, or why it cannot be read, in the order given.

        Raises:
            SourceError: the readers could not be started.
        """
        for item, answer in self.read_documents(items):
            if isinstance(answer, bytes):
                yield item, FileFacts.from_json(orjson.loads(answer))
            else:
                yield item, answer

    def read_documents(
        self, items: Iterable[FileItem], *, value_ranges: bool = False
    ) -> Iterator[tuple[FileItem, bytes | UnreadableItemError]]:
        """Yield like `read_files`, with the facts as canonical JSON that was never parsed here.

        Raises:
            SourceError: the readers could not be started.
        """
        orders = file_orders(items, limits=self._limits, value_ranges=value_ranges)
        for order, answer in self._answers(orders):
            yield order.item, answer

    def read_stored(
        self, items: Iterable[StoredItem], store: FileStore, *, value_ranges: bool = False
    ) -> Iterator[bytes | UnreadableItemError]:
        """Yield the facts of each file or table of a storage as canonical JSON, in the order given.

        A child opens local files itself. Of others the bytes that a reader likely needs are
        fetched ahead, many files at once.

        Raises:
            SourceError: the readers could not be started.
        """
        folder, limits = store.local_folder, self._limits
        if folder is not None:
            local = folder_orders(
                items,
                folder,
                limits=limits,
                value_ranges=value_ranges,
                is_confined=store.is_confined,
            )
            yield from (answer for _, answer in self._answers(local))
            return
        stored = StoredOrders(items, store, limits=limits, value_ranges=value_ranges)
        with closing(stored):
            yield from (answer for _, answer in self._answers(stored))

    def _answers(
        self, orders: Orders[Item]
    ) -> Iterator[tuple[Order[Item], bytes | UnreadableItemError]]:
        waiting: deque[Order[Item]] = deque()
        child: Child | None = None
        lost = 0
        try:
            while True:
                new: list[Order[Item]] = []
                if len(waiting) <= _FEW_WAITING:
                    new = orders.take(_WINDOW - len(waiting), wait=not waiting)
                    waiting.extend(new)
                    if child is not None:
                        child.send(_open_tasks(new))
                if not waiting:
                    done, child = child, None
                    self._keep(done)
                    return
                outcome = waiting[0].outcome()
                if outcome is not None:
                    yield waiting.popleft(), outcome
                    continue
                if child is None:
                    child = self._child()
                    child.send(_open_tasks(waiting))
                silence = child.answer()
                if silence is None:
                    continue
                task, status = child.culprit(), self._ended(child)
                child.close()
                child = None
                if task is not None and status is not None:
                    task.answer = _reason(silence, status, task.seconds)
                    continue
                lost += 1  # it ended between files, or with the zygote: no file is to blame
                if lost == _MOST_ZYGOTES:
                    raise not_started(_AGAIN_AND_AGAIN)
        finally:
            if child is not None:
                self._ended(child)
                child.close()

    def _keep(self, child: Child | None) -> None:
        """Keep a child that answered everything for the next call: its caches are warm."""
        if child is None:
            return
        with self._lock:
            if self._zygote is child.zygote and child.answered < _MOST_FILES:
                self._idle.append(child)
                return
        self._ended(child)
        child.close()

    def _child(self) -> Child:
        """Return a child that is ready to read, from a new zygote where the old one is gone."""
        for _ in range(_MOST_ZYGOTES):
            with self._lock:
                while self._idle:
                    child = self._idle.pop()
                    if child.zygote is self._zygote:
                        return child
                    child.close()
                if self._zygote is None:
                    self._zygote = Zygote(self._reader, self._limits)
                try:
                    child = self._zygote.fork()
                except LostError:
                    self._zygote.close()
                    self._zygote = None
                    continue
            if child.is_up():
                return child
            status = self._ended(child)
            child.close()
            if status is not None:
                raise not_started(f"the child ended at once ({_spelled(status)})")
        raise not_started(_AGAIN_AND_AGAIN)

    def _ended(self, child: Child) -> int | None:
        """End a child and return its status; None where the zygote that knows it is gone."""
        with self._lock:
            if self._zygote is not child.zygote:
                return None
            try:
                return child.zygote.reap(child.pid)
            except LostError:
                child.zygote.close()
                self._zygote = None
                return None


_shared: dict[tuple[int, Limits, str], Sandbox] = {}
_shared_lock = threading.Lock()


def shared_sandbox(limits: Limits = DEFAULT_LIMITS, *, reader: str = READER) -> Sandbox:
    """Return the sandbox of this process with these limits; it lives as long as the process."""
    with _shared_lock:
        key = (os.getpid(), limits, reader)
        if key not in _shared:
            _shared[key] = Sandbox(limits=limits, reader=reader)
        return _shared[key]


@atexit.register
def close_shared_sandboxes() -> None:
    """End the processes of all shared sandboxes; the next call starts new ones."""
    with _shared_lock:
        for key in [key for key in _shared if key[0] == os.getpid()]:
            _shared.pop(key).close()


def _open_tasks(orders: Iterable[Order[Item]]) -> list[Task]:
    return [order.task for order in orders if order.task.answer is None]


CRASHED: Final = "it is damaged, or of a kind that no reader copes with: its reader crashed"


def _reason(silence: Silence, status: int, seconds: float) -> UnreadableItemError:
    if silence is Silence.LATE:
        reason = f"reading it took longer than {seconds:g} s"
        return UnreadableItemError(reason, hint=_HINT, retryable=True)
    return UnreadableItemError(f"{CRASHED} ({_spelled(status)})", hint=_HINT)


def _spelled(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
