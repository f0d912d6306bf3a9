"""Whose datasets are versioned in bulk: the state or a snapshot, read page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeVar

from lumos.core.platform.batches import batches
from lumos.core.platform.unreadable import Unreadable
from lumos.core.store.snapshots.part_format import dataset_of_line, hash_of, urn_of_line
from lumos.feature.versioning.scanning import StatePage

if TYPE_CHECKING:
    from lumos.core.models import LumosDataset
    from lumos.core.store.catalog.catalog_states import CatalogStates
    from lumos.core.store.history import KnownVersion
    from lumos.feature.snapshot.source import SnapshotSource

T = TypeVar("T")
BATCH = 500


class VersionedStates(Protocol):
    """The states of many datasets at one time."""

    @property
    def name(self) -> str: ...

    @property
    def at(self) -> datetime:
        """The time of the states."""

    @property
    def declares(self) -> bool:
        """Whether the version in a state is what its author says, not what Lumos gave it."""

    def count(self) -> int | None:
        """Return how many there are, where that is known beforehand."""

    def pages(self) -> Iterator[StatePage]: ...

    def unreadable(self) -> tuple[Unreadable, ...]:
        """Return what the pages so far lack, because it cannot be read."""

    def may_retire(self) -> bool:
        """Return whether a dataset that no page has is surely gone."""


class StoredStates:
    """What the state holds, in ascending order of URN, read by hashes."""

    declares = False

    def __init__(
        self, states: CatalogStates, *, name: str, at: datetime, batch: int = BATCH
    ) -> None:
        self.name = name
        self.at = at
        self._states = states
        self._batch = batch

    def count(self) -> int | None:
        return self._states.count()

    @cached_property
    def _names_are_whole(self) -> bool:
        """Whether every row says whose it is; a dataset whose row does not only seems gone."""
        return not self._states.damaged_names()

    def pages(self) -> Iterator[StatePage]:
        for hashes in self._states.pages(self._batch):
            yield StatePage(hashes, self._states.load)

    def unreadable(self) -> tuple[Unreadable, ...]:
        damaged = self._states.damaged
        return tuple(Unreadable(each.kind, each.name, each) for each in damaged)

    def may_retire(self) -> bool:
        return self._names_are_whole


class SnapshotStates:
    """What a snapshot holds; its time is that of its export."""

    declares = True

    def __init__(self, source: SnapshotSource, *, batch: int = BATCH) -> None:
        self.source = source
        self.name = source.name
        self.at = source.header.export_timestamp
        self._batch = batch

    def count(self) -> int | None:
        return self.source.section_count("datasets")

    def pages(self) -> Iterator[StatePage]:
        for bucket in range(self.source.bucket_count()):
            for lines in batches(self.source.bucket_lines(bucket), self._batch):
                yield lines_page(lines)

    def unreadable(self) -> tuple[Unreadable, ...]:
        return ()

    def may_retire(self) -> bool:
        return self.source.header.complete


def lines_page(lines: Iterable[bytes]) -> StatePage:
    """Return the page of some lines of a snapshot."""
    known = {urn_of_line(line).decode(): line for line in lines}

    def load(urns: Sequence[str]) -> Mapping[str, LumosDataset]:
        return {urn: dataset_of_line(known[urn]) for urn in urns}

    return StatePage({urn: hash_of(line).decode() for urn, line in known.items()}, load)


class GoneDatasets:
    """Finds what the history has and a catalog lacks, while both are read in order of URN."""

    def __init__(self, history: Callable[[str], Sequence[KnownVersion]]) -> None:
        """Take what returns the newest versions after a URN, in ascending order."""
        self._after = history
        self._page: list[KnownVersion] = []
        self._ended = False
        self._last = ""

    def before(self, present: Iterable[str], *, end: str | None) -> Iterator[KnownVersion]:
        """Yield what is missing among the URNs up to `end`, or up to the last if that is None."""
        known = frozenset(present)
        while self._filled():
            while self._page and (end is None or self._page[0].urn <= end):
                version = self._page.pop(0)
                if version.urn not in known:
                    yield version
            if self._page:
                return

    def _filled(self) -> bool:
        if not self._page and not self._ended:
            self._page = list(self._after(self._last))
            self._ended = not self._page
            if self._page:
                self._last = self._page[-1].urn
        return bool(self._page)
