"""The bulk scan: which version each of many datasets gets, a page at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Protocol

from lumos.core.errors import DamagedDocumentError
from lumos.core.models import Change, LumosDataset, with_parts
from lumos.feature.versioning.planning import (
    KnownState,
    PlannedVersion,
    VersionedState,
    VersionPlanner,
    holds,
    semantic,
)


class ScannedHistory(Protocol):
    """What a scan reads of the history: many datasets with one question."""

    def currents(self, urns: Sequence[str]) -> Mapping[str, KnownState]:
        """Return the newest versions of datasets that have any."""

    def current_states(
        self, urns: Sequence[str], *, damaged: Callable[[DamagedDocumentError], None]
    ) -> Mapping[str, LumosDataset]:
        """Return datasets as they are in their newest versions, and report damaged ones."""

    def states(self, urn: str) -> Iterator[VersionedState]:
        """Yield every version of one dataset with its state, oldest first."""


@dataclass(frozen=True, slots=True)
class StatePage:
    """Some datasets by hash of their contract; a dataset is loaded only where that differs.

    What is loaded lacks datasets that are damaged: their source reports them.
    """

    hashes: Mapping[str, str]
    load: Callable[[Sequence[str]], Mapping[str, LumosDataset]]

    @classmethod
    def of(cls, datasets: Sequence[LumosDataset]) -> StatePage:
        """Make a page of datasets that are there already."""
        known: dict[str, LumosDataset] = {dataset.urn: dataset for dataset in datasets}
        return cls(
            {urn: dataset.contract_hash for urn, dataset in known.items()},
            lambda urns: {urn: known[urn] for urn in urns},
        )


@dataclass(frozen=True, slots=True)
class ScannedVersion:
    """A version that a dataset gets, and its place in the history."""

    urn: str
    sequence: int
    planned: PlannedVersion


@dataclass(slots=True)
class ScannedPage:
    """What a scan found on a page."""

    versions: list[ScannedVersion] = field(default_factory=list)
    declared: list[Change] = field(default_factory=list)
    unchanged: int = 0
    outdated: list[str] = field(default_factory=list)
    failed: list[DamagedDocumentError] = field(default_factory=list)
    """What the history holds and is damaged."""


class DeclaredCheck(Protocol):
    """Checks whether the version that a new state declares is too low for what changed."""

    def __call__(
        self, old: LumosDataset, new: LumosDataset, *, changes: Sequence[Change]
    ) -> tuple[Change, ...]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionScan:
    """Compares states with the history and plans their versions; it writes nothing.

    A state that is older than the newest version, as that of an old snapshot may be, gets none:
    the change to it would lead back.
    """

    planner: VersionPlanner
    history: ScannedHistory
    at: datetime
    author: str | None
    check_declared: DeclaredCheck | None = None

    def page(self, page: StatePage) -> ScannedPage:
        """Return the versions of a page of states, with a fixed number of questions."""
        found = ScannedPage()
        known = self.history.currents([*page.hashes])
        differing = self._differing(page, known, found=found)
        if not differing:
            return found
        loaded = page.load(differing)
        versioned = [urn for urn in loaded if urn in known]
        states = self.history.current_states(versioned, damaged=found.failed.append)
        for urn, dataset in loaded.items():
            if urn in known and urn not in states:
                continue  # damaged
            try:
                self._judge(urn, dataset, known=known.get(urn), state=states.get(urn), found=found)
            except DamagedDocumentError as error:
                found.failed.append(error)
        return found

    def _differing(
        self, page: StatePage, known: Mapping[str, KnownState], *, found: ScannedPage
    ) -> list[str]:
        differing = []
        for urn, digest in page.hashes.items():
            try:
                if holds(known.get(urn), digest):
                    found.unchanged += 1
                else:
                    differing.append(urn)
            except DamagedDocumentError as error:
                found.failed.append(error)
        return differing

    def _judge(
        self,
        urn: str,
        new: LumosDataset,
        *,
        known: KnownState | None,
        state: LumosDataset | None,
        found: ScannedPage,
    ) -> None:
        if known is None or state is None:
            planned = self.planner.first(new, at=self.at, author=self.author, first=new.version)
            found.versions.append(ScannedVersion(urn, 1, planned))
            return
        current = known.version
        successor = self.planner.next(
            current,
            state,
            new=new,
            at=self.at,
            author=self.author,
            states=partial(self.history.states, urn),
        )
        if successor is None:
            found.unchanged += 1
            return
        if current.timestamp > self.at:
            found.outdated.append(urn)
            return
        found.versions.append(ScannedVersion(urn, known.sequence + 1, successor))
        if self.check_declared and semantic(new.version):
            before = with_parts(state, version=current.version)
            found.declared += self.check_declared(before, new, changes=successor.changes)
