"""What a sandbox is asked to read: local files by their paths, stored ones with their bytes.

Of a stored file the range that its reader begins with is fetched ahead: the end of Parquet and
ORC, head, middle and end of CSV, the beginning of anything else, all of a small one. So most files
take one request.
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, Protocol, TypeVar

from typing_extensions import override

from lumos.core.errors import UnreadableItemError
from lumos.core.formats.sample import END_BYTES, SAMPLE_BYTES
from lumos.core.formats.sandbox_child import CONFINED, LOCAL, STORED, TABLE
from lumos.core.formats.sandbox_io import ERROR, FACTS, FRAME, packed, refuse_outside
from lumos.core.formats.sandbox_process import Task
from lumos.core.formats.tails import TAIL_BYTES

if TYPE_CHECKING:
    from lumos.core.formats.sandbox_process import Limits

_AT_ONCE: Final = 32
"""How many files of a storage are fetched at the same time for one reader."""
WHOLE_BYTES: Final = 128 * 1024
"""Files up to this size are fetched whole: that costs as little as a part of them."""
_HEAD_BYTES: Final = 64 * 1024
"""How much of a file's beginning is fetched: what readers look at first."""

_READ_FROM_END: Final = (".parquet", ".parq", ".pq", ".orc")
_DELIMITED: Final = (".csv", ".tsv", ".tab", ".psv")
_JSON: Final = (".json", ".jsonl", ".ndjson", ".jsonlines", ".geojson")
_ALL_OVER: Final = (".xlsx", ".xlsm")
_LARGEST_ARCHIVE: Final = 2 * 1024 * 1024
_MOST_QUESTIONS: Final = 2_000
_MOST_FILE_BYTES: Final = 64 * 1024 * 1024
_MOST_TABLE_BYTES: Final = 1024 * 1024 * 1024
_TOO_MUCH: Final = "reading it takes more of the file than Lumos fetches"


@dataclass(frozen=True, slots=True)
class FileItem:
    """A local file to read, as it was listed."""

    path: str
    size: int


class StoredItem(NamedTuple):
    """A file of a storage to read, or the root of a table."""

    path: bytes
    size: int
    table: str | None = None
    """The kind of table of which the path is the root; None for a file."""


class ListedChild(Protocol):
    """A file as its folder lists it."""

    @property
    def path(self) -> bytes: ...
    @property
    def size(self) -> int: ...
    @property
    def mtime_us(self) -> int: ...


class FileStore(Protocol):
    """What fetches bytes and lists folders for a child that cannot; see `core.storage.port`."""

    @property
    def local_folder(self) -> str | None: ...
    @property
    def is_confined(self) -> bool: ...

    def read(self, path: bytes, *, start: int, length: int) -> bytes: ...

    def children(self, folder: bytes) -> Sequence[ListedChild]: ...


Item = TypeVar("Item")


@dataclass(slots=True)
class Order(Generic[Item]):
    """One item to read, and the task that it is to a child."""

    item: Item
    task: Task
    questions: Questions | None = None

    def outcome(self) -> bytes | UnreadableItemError | None:
        """Return the answer; a failed fetch is the better reason than what came of it."""
        answer = self.task.answer
        if answer is None or isinstance(answer, bytes) or self.questions is None:
            return answer
        return self.questions.failed or answer


class Orders(ABC, Generic[Item]):
    """Orders in a fixed sequence, made as late as they are needed."""

    @abstractmethod
    def take(self, count: int, *, wait: bool) -> list[Order[Item]]:
        """Return the next orders, at most so many; without `wait`, only those at hand."""


class LocalOrders(Orders[Item]):
    """Local files and tables, which a child opens itself."""

    def __init__(self, items: Iterable[Item], order: Callable[[Item], Order[Item]]) -> None:
        self._orders = map(order, items)

    @override
    def take(self, count: int, *, wait: bool) -> list[Order[Item]]:
        return list(islice(self._orders, count))


def file_orders(
    items: Iterable[FileItem], *, limits: Limits, value_ranges: bool
) -> LocalOrders[FileItem]:
    """Return orders for local files by their whole paths."""
    seconds = limits.seconds
    return LocalOrders(
        items, lambda item: Order(item, Task(_local_line(item.path, value_ranges), seconds))
    )


def folder_orders(
    items: Iterable[StoredItem],
    folder: str,
    *,
    limits: Limits,
    value_ranges: bool,
    is_confined: bool = False,
) -> LocalOrders[StoredItem]:
    """Return orders for the files and tables of a local folder.

    Args:
        items: what to read.
        folder: the root of the source.
        limits: what one file or table may take.
        value_ranges: whether the smallest and largest values of columns are read.
        is_confined: whether files that symlinks place outside of the folder are refused.
    """
    start = os.path.join(folder, "")
    if is_confined:
        start = f"{folder}{CONFINED}"

    def order(item: StoredItem) -> Order[StoredItem]:
        path = os.fsdecode(item.path)
        if item.table is None:
            return Order(item, Task(_local_line(start + path, value_ranges), limits.seconds))
        seconds = limits.table_seconds
        line = _line([TABLE, item.table, path, folder, seconds, is_confined])
        return Order(item, Task(line, seconds))

    return LocalOrders(items, order)


class StoredOrders(Orders[StoredItem]):
    """Files and tables of a storage; their bytes are fetched ahead, in order, many at once."""

    def __init__(
        self,
        items: Iterable[StoredItem],
        store: FileStore,
        *,
        limits: Limits,
        value_ranges: bool = False,
    ) -> None:
        self._items = iter(items)
        self._store = store
        self._limits = limits
        self._value_ranges = value_ranges
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="lumos-fetch")
        self._coming: deque[Future[Order[StoredItem]]] = deque()

    def close(self) -> None:
        """Fetch nothing more."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    @override
    def take(self, count: int, *, wait: bool) -> list[Order[StoredItem]]:
        missing = 2 * _AT_ONCE - len(self._coming)
        self._coming.extend(
            self._threads.submit(self._order, item) for item in islice(self._items, missing)
        )
        taken: list[Order[StoredItem]] = []
        while self._coming and len(taken) < count and (self._coming[0].done() or wait):
            taken.append(self._coming.popleft().result())
            wait = False
        return taken

    def _order(self, item: StoredItem) -> Order[StoredItem]:
        if item.table is not None:
            root = item.path.decode("utf-8", "surrogateescape")
            seconds = self._limits.table_seconds
            message = _line([TABLE, item.table, root, None, seconds, False])
            questions = Questions(self._store, None, most_bytes=_MOST_TABLE_BYTES)
            return Order(item, Task(message, seconds, questions.serve), questions)
        try:
            pieces = [
                (start, self._store.read(item.path, start=start, length=length))
                for start, length in first_ranges(item)
            ]
        except UnreadableItemError as error:
            return Order(item, Task(b"", 0, answer=error))
        name = item.path.rpartition(b"/")[2].decode("utf-8", "backslashreplace")
        lengths = [[start, len(content)] for start, content in pieces]
        line = _line([STORED, name, item.size, self._value_ranges, lengths])
        message = b"".join([line, *(content for _, content in pieces)])
        questions = Questions(self._store, item.path, most_bytes=_MOST_FILE_BYTES)
        return Order(item, Task(message, self._limits.seconds, questions.serve), questions)


class Questions:
    """Answers what a child asks while it reads one item, and keeps to limits."""

    def __init__(self, store: FileStore, path: bytes | None, *, most_bytes: int) -> None:
        self._store = store
        self._path = path
        self._left = most_bytes
        self._asked = 0
        self.failed: UnreadableItemError | None = None

    def serve(self, question: bytes) -> bytes:
        """Return the reply to a question, as a frame."""
        try:
            content = self._reply(*json.loads(question))
        except UnreadableItemError as error:
            self.failed = error
            content = packed(error)
            return FRAME.pack(ERROR, len(content)) + content
        return FRAME.pack(FACTS, len(content)) + content

    def _reply(
        self, verb: str, path: str | None, start: int = 0, length: int | None = None
    ) -> bytes:
        self._asked += 1
        if self._asked > _MOST_QUESTIONS:
            raise UnreadableItemError(_TOO_MUCH)
        if self._path is not None:
            return self._bytes(self._path, start, length)  # a file's reader gets that file alone
        where = (path or "").encode("utf-8", "surrogateescape")
        refuse_outside(path or "")
        return self._listing(where) if verb == "list" else self._bytes(where, start, length)

    def _bytes(self, path: bytes, start: int, length: int | None) -> bytes:
        wanted = self._left + 1 if length is None else length
        if wanted > self._left + 1:
            raise UnreadableItemError(_TOO_MUCH)
        content = self._store.read(path, start=start, length=wanted)
        self._left -= len(content)
        if self._left < 0:
            raise UnreadableItemError(_TOO_MUCH)
        return content

    def _listing(self, folder: bytes) -> bytes:
        found = self._store.children(folder)
        return json.dumps(
            [
                [
                    each.path.rpartition(b"/")[2].decode("utf-8", "surrogateescape"),
                    each.size,
                    each.mtime_us,
                ]
                for each in found
            ]
        ).encode()


def first_ranges(item: StoredItem) -> Iterator[tuple[int, int]]:
    """Yield the ranges of a file that its reader begins with, as start and length."""
    name = item.path[-16:].lower().decode("ascii", "replace")
    if item.size <= 0:
        return
    if item.size <= WHOLE_BYTES or (item.size <= _LARGEST_ARCHIVE and name.endswith(_ALL_OVER)):
        yield 0, item.size
    elif name.endswith(_DELIMITED):
        yield from _spread(item.size)
    elif name.endswith(_READ_FROM_END):
        yield item.size - TAIL_BYTES, TAIL_BYTES
    else:
        yield 0, _HEAD_BYTES
        if name.endswith(_JSON):
            yield item.size - END_BYTES, END_BYTES


def _spread(size: int) -> Iterator[tuple[int, int]]:
    """Yield what is looked at of a CSV file; see `Beginning.lines_elsewhere`."""
    if size <= SAMPLE_BYTES:
        yield 0, size
        return
    yield 0, SAMPLE_BYTES // 2
    yield size // 2, SAMPLE_BYTES // 4
    yield size - SAMPLE_BYTES // 4, SAMPLE_BYTES // 4


def _local_line(path: str, value_ranges: bool) -> bytes:
    return _line([LOCAL, path, True] if value_ranges else path)


def _line(request: str | Sequence[object]) -> bytes:
    return json.dumps(request).encode("ascii") + b"\n"
