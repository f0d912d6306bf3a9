"""A warm process that forks appliers of versions, for a test that kills them.

Each line on standard input starts one at a state; it applies that state and all after it without
end, and prints the state and how many datasets are done once their commit has returned. After its
death the line `dead` follows.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path

from typing_extensions import override

from lumos.core.controllers.version_controller import VersionController
from lumos.core.progress import Progress
from lumos.core.runtime.project import Project
from lumos.core.runtime.unit_of_work import UnitOfWork
from lumos.core.store.history import HistoryRepository, NewEntry
from lumos.feature.snapshot.source import LoadedSource, SnapshotSource
from lumos.feature.versioning.publishing import Transactional
from version_states import snapshot_of, tables

DATASETS = 24
BATCH = 4


class Acknowledging(Progress):
    """Says what is done by now, as soon as it is told."""

    def __init__(self, state: int) -> None:
        self._state = state

    @override
    def stage(self, name: str, *, total: int | None = None, unit: str = "files") -> None:
        pass

    @override
    def advance(self, done: int) -> None:
        os.write(1, f"{self._state} {done}\n".encode())

    @override
    def note(self, text: str) -> None:
        pass


class OneByOne(HistoryRepository):
    """A wrong protocol: every version of a batch is a transaction of its own."""

    @override
    def append_many(self, entries: Iterable[NewEntry]) -> None:
        for entry in entries:
            super().append_many([entry])


class Untied:
    """A wrong protocol: the transaction around a batch is none."""

    def transaction(self) -> nullcontext[None]:
        return nullcontext()


def source_of(state: str) -> LoadedSource:
    return LoadedSource(snapshot_of(tables(DATASETS, int(state)), day=int(state)), state)


class Versioning(VersionController):
    """Versions made-up snapshots."""

    @override
    def _opened(self, reference: str) -> SnapshotSource:
        return source_of(reference)


class WrongVersioning(Versioning):
    """Writes each version in a transaction of its own."""

    @override
    def _writer(self, *, alerts: bool) -> tuple[HistoryRepository, Transactional]:
        return OneByOne(self._work.writer), Untied()


def opened(place: Path) -> UnitOfWork:
    return UnitOfWork(Project(given_state_dir=place, environment={}))


def apply_forever(place: Path, start: int, *, protocol: str) -> None:
    kind = WrongVersioning if protocol == "one-by-one" else Versioning
    with opened(place) as work:
        state = start
        while True:
            told = Acknowledging(state)
            kind(work).apply(target=str(state), batch_size=BATCH, progress=told)
            state += 1


def main() -> None:
    place, protocol = Path(sys.argv[1]), sys.argv[2]
    for folder in (place, place / "warm"):  # the database is there, and all is imported
        with opened(folder) as work:
            if folder != place:
                Versioning(work).apply(target="0")
            else:
                _ = work.writer
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                apply_forever(place, int(line), protocol=protocol)
            finally:
                os._exit(1)
        os.write(1, f"started {child}\n".encode())
        _, status = os.waitpid(child, 0)
        os.write(1, f"dead {status}\n".encode())


if __name__ == "__main__":
    main()
