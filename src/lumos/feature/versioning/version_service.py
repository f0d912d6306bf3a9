"""Gives datasets their versions and keeps the history of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from typing import Protocol

from lumos.core.changes import DEFAULT_CLOUD_VERSION_PREFIX
from lumos.core.changes.policy import ChangePolicy
from lumos.core.errors import VersionNotFoundError
from lumos.core.models import Change, DatasetVersion, LumosDataset, Urn, VersionMapping
from lumos.feature.versioning.blame import FieldBlame, blame
from lumos.feature.versioning.models import VersionUpdateResult
from lumos.feature.versioning.planning import (
    KnownState,
    PlannedVersion,
    VersionedState,
    VersionPlanner,
    earlier_states,
    holds,
    is_removal,
    semantic,
)

_NEWEST = frozenset({"latest", "current"})
_NAMED = {"previous": -2, "first": 0}


class HistoryPort(Protocol):
    """Where versions are kept: what is appended never changes."""

    def append(
        self, urn: str, version: DatasetVersion, *, dataset: LumosDataset, changes: Sequence[Change]
    ) -> None:
        """Add a version as the newest."""

    def versions(
        self, urn: str, *, since: datetime | None = None, limit: int | None = None
    ) -> tuple[DatasetVersion, ...]:
        """Return the versions of a dataset, newest last; with a limit, the newest of them."""

    def current(self, urn: str) -> DatasetVersion | None:
        """Return the newest version of a dataset, if it has any."""

    def currents(self, urns: Sequence[str]) -> Mapping[str, KnownState]:
        """Return the newest versions of datasets that have any."""

    def dataset_at(self, urn: str, version: str) -> LumosDataset:
        """Return the dataset as it was in a version."""

    def states(self, urn: str) -> Iterator[tuple[DatasetVersion, LumosDataset]]:
        """Yield every version with the dataset as it was in it, oldest first."""


def _now() -> datetime:
    return datetime.now(UTC)


class VersionManager:
    """Numbers the states of datasets by what changed between them.

    The history itself is what a new state is compared with, so recording the same state again, or
    with an outdated `old`, neither renumbers nor forks it.
    """

    def __init__(
        self,
        history: HistoryPort,
        *,
        cloud_version_prefix: str = DEFAULT_CLOUD_VERSION_PREFIX,
        policy: ChangePolicy | None = None,
        clock: Callable[[], datetime] = _now,
        author: str | None = None,
    ) -> None:
        """Keep versions in a history.

        Args:
            history: where they are kept.
            cloud_version_prefix: what cloud versions begin with, as in `S-312`.
            policy: how changes are judged; by the rules of Lumos if not given.
            clock: the time, where a call does not give it.
            author: who makes versions, where a call does not say it.
        """
        self._history = history
        self._policy = policy or ChangePolicy()
        self._planner = VersionPlanner(policy=self._policy, prefix=cloud_version_prefix)
        self._clock = clock
        self._author = author

    def record(
        self,
        old: LumosDataset | None,
        new: LumosDataset,
        *,
        at: datetime,
        author: str | None = None,
        first: str | None = None,
    ) -> DatasetVersion | None:
        """Add a version for the new state; none is added, or returned, when nothing changed.

        A dataset without history begins at 1.0.0, or at `first` where that is a semantic version:
        with `old` where that is known and differs, so that the change to `new` is kept, and else
        with `new`.
        """
        kept = self._history.currents([new.urn]).get(new.urn)
        if holds(kept, new.contract_hash):
            return None
        current = kept.version if kept else None
        if current is None:
            begins = new if old is None or not self._policy.judge(old, new, at=at) else old
            begun = self._planner.first(begins, at=at, author=author, first=first)
            current = self._kept(new.urn, begun)
            if begins is new:
                return current
        known = self._history.dataset_at(new.urn, current.version)
        states = partial(self._history.states, new.urn)
        planned = self._planner.next(current, known, new=new, at=at, author=author, states=states)
        return self._kept(new.urn, planned) if planned else None

    def retire(
        self, dataset: LumosDataset, *, at: datetime, author: str | None = None
    ) -> DatasetVersion | None:
        """Add a version that says the dataset is gone; one without history gets none."""
        current = self._history.current(dataset.urn)
        if current is None:
            return None
        planned = self._planner.removal(current, dataset, at=at, author=author)
        return self._kept(dataset.urn, planned) if planned else None

    def increment_version(
        self,
        dataset_urn: str,
        change_type: str,
        *,
        at: datetime | None = None,
        author: str | None = None,
    ) -> VersionUpdateResult:
        """Add a version by declaration: the dataset stays, the number goes up.

        `BREAKING_SCHEMA_CHANGE` raises the major number, `SCHEMA_CHANGE` the minor one, and
        anything else, such as `DATA_UPDATE` or `METADATA_UPDATE`, the patch number.

        Raises:
            VersionNotFoundError: the dataset has no version yet.
        """
        current = self._history.current(dataset_urn)
        if current is None:
            raise VersionNotFoundError(
                f"{dataset_urn} has no version to increment",
                hint="the first ingestion of a dataset gives it version 1.0.0",
            )
        version = self._planner.declared(
            current, change_type, at=at or self._clock(), author=author or self._author
        )
        dataset = self._history.dataset_at(dataset_urn, current.version)
        self._history.append(dataset_urn, version, dataset=dataset, changes=())
        return VersionUpdateResult(dataset_urn=Urn(dataset_urn), update=version)

    def get_current_version(self, dataset_urn: str) -> DatasetVersion | None:
        """Return the newest version of a dataset, if it has any."""
        return self._history.current(dataset_urn)

    def get_version_history(
        self, dataset_urn: str, *, since: datetime | None = None, limit: int | None = None
    ) -> tuple[DatasetVersion, ...]:
        """Return the versions of a dataset, newest last.

        Args:
            dataset_urn: the dataset.
            since: only versions made at this time or later.
            limit: only so many, the newest.
        """
        return self._history.versions(dataset_urn, since=since, limit=limit)

    def get_version_mappings(self, dataset_urn: str) -> tuple[VersionMapping, ...]:
        """Return which cloud version stands for which version, newest last."""
        return tuple(
            VersionMapping(cloud_version=version.cloud_version, schema_version=version.version)
            for version in self._history.versions(dataset_urn)
            if version.cloud_version
        )

    def find_version(self, dataset_urn: str, name: str) -> str:
        """Return the number of the version that a name stands for.

        A name is a number, a cloud version such as `S-311`, `latest`, `previous` or `first`.

        Raises:
            VersionNotFoundError: there is no such version; the known ones are named.
        """
        if semantic(name):
            return name
        known = self._history.versions(dataset_urn)
        if known and name.lower() in _NEWEST:
            return known[-1].version
        place = _NAMED.get(name.lower())
        if place is not None and len(known) >= abs(place):
            return known[place].version
        for version in reversed(known):
            if version.cloud_version == name:
                return version.version
        return name

    def compare_versions(self, dataset_urn: str, v1: str, v2: str) -> tuple[Change, ...]:
        """Return what changed from one version to another, in either direction.

        Versions are named as `find_version` takes them; one that says the dataset is gone has no
        state. Forward, changes are judged at the time of the second version, and by a transitive
        profile also against the versions before the first; backward, they would be made now.

        Raises:
            VersionNotFoundError: there is no such version; the known ones are named.
        """
        old, new = (self.find_version(dataset_urn, name) for name in (v1, v2))
        before, after = (self._history.dataset_at(dataset_urn, name) for name in (old, new))
        known = self._history.versions(dataset_urn)
        gone = {version.version for version in known if is_removal(version)}
        places = {version.version: place for place, version in enumerate(known)}

        def up_to_the_first() -> Iterator[VersionedState]:
            return islice(self._history.states(dataset_urn), places[old] + 1)

        forward = places[old] < places[new]
        return self._policy.judge(
            None if old in gone else before,
            None if new in gone else after,
            at=known[places[new]].timestamp if forward else self._clock(),
            earlier=partial(earlier_states, up_to_the_first) if forward else tuple,
        )

    def blame(self, dataset_urn: str) -> tuple[FieldBlame, ...]:
        """Return which version brought each column in and which one changed it last."""
        return blame(self._history.states(dataset_urn))

    def dataset_at(self, dataset_urn: str, version: str) -> LumosDataset:
        """Return the dataset as it was in a version.

        Raises:
            VersionNotFoundError: there is no such version; the known ones are named.
        """
        return self._history.dataset_at(dataset_urn, self.find_version(dataset_urn, version))

    def _kept(self, urn: str, planned: PlannedVersion) -> DatasetVersion:
        version = planned.version
        self._history.append(urn, version, dataset=planned.dataset, changes=planned.changes)
        return version
