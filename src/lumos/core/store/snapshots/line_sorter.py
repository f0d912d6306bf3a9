"""Sorting more lines than fit into memory."""

from __future__ import annotations

import heapq
import struct
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Self

if TYPE_CHECKING:
    from lumos.core.store.snapshots.snapshot_files import DurableFiles

MEMORY_BYTES = 64 * 1024 * 1024
_RECORD = struct.Struct("<III")
_OVERHEAD = 200  # what Python adds to a line, its key and their tuple


class SortedLine(NamedTuple):
    """A line with what it is sorted by."""

    rank: int
    key: bytes
    line: bytes


class LineSorter:
    """Lines put in any order, given back by rank and key; what is too much waits on disk."""

    def __init__(
        self, folder: Path, *, files: DurableFiles, memory_bytes: int = MEMORY_BYTES
    ) -> None:
        self._folder = folder
        self._files = files
        self._memory_bytes = memory_bytes
        self._held: list[SortedLine] = []
        self._held_bytes = 0
        self._runs: list[BinaryIO] = []
        self._open = ExitStack()
        self.count = 0
        self.plain_bytes = 0

    def add(self, rank: int, key: bytes, *, line: bytes) -> None:
        self._held.append(SortedLine(rank, key, line))
        self.count += 1
        self.plain_bytes += len(line) + 1
        self._held_bytes += len(line) + len(key) + _OVERHEAD
        if self._held_bytes > self._memory_bytes:
            self._spill()

    def __iter__(self) -> Iterator[SortedLine]:
        self._held.sort()
        return heapq.merge(*(_read_run(run) for run in self._runs), self._held)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._held.clear()
        self._open.close()

    def _spill(self) -> None:
        self._held.sort()
        self._files.make_folder(self._folder)
        run = self._open.enter_context(self._files.open_spill(self._folder))
        for rank, key, line in self._held:
            run.write(_RECORD.pack(rank, len(key), len(line)) + key + line)
        run.flush()
        self._runs.append(run)
        self._held.clear()
        self._held_bytes = 0


def _read_run(run: BinaryIO) -> Iterator[SortedLine]:
    run.seek(0)
    while header := run.read(_RECORD.size):
        rank, key_length, line_length = _RECORD.unpack(header)
        yield SortedLine(rank, run.read(key_length), run.read(line_length))
