"""Which version the new state of a dataset gets: pure, for one dataset at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Protocol

from lumos.core.changes import (
    DEFAULT_CLOUD_VERSION_PREFIX,
    bump_of,
    category_of,
    change_details_of,
    change_type_of,
    change_type_of_rule,
    is_backward_compatible,
    next_cloud_version,
    next_version,
)
from lumos.core.changes.policy import ChangePolicy
from lumos.core.errors import InvalidModelError
from lumos.core.models import (
    Bump,
    Change,
    DatasetVersion,
    LumosDataset,
    SemanticVersion,
    VersionCategory,
    with_parts,
)

VersionedState = tuple[DatasetVersion, LumosDataset]
_REMOVED = change_type_of_rule("dataset.removed")
_BUMPS = {"BREAKING_SCHEMA_CHANGE": Bump.MAJOR, "SCHEMA_CHANGE": Bump.MINOR}
_CATEGORIES = {
    "BREAKING_SCHEMA_CHANGE": VersionCategory.SCHEMA_CHANGE,
    "SCHEMA_CHANGE": VersionCategory.SCHEMA_CHANGE,
    "DATA_UPDATE": VersionCategory.DATA_UPDATE,
}


class KnownState(Protocol):
    """The newest version of a dataset in the history."""

    @property
    def sequence(self) -> int: ...
    @property
    def contract_hash(self) -> str | None: ...
    @property
    def document(self) -> str: ...
    @property
    def version(self) -> DatasetVersion: ...


@dataclass(frozen=True, slots=True)
class PlannedVersion:
    """A version that a dataset gets, with the state and the changes that are kept with it."""

    version: DatasetVersion
    dataset: LumosDataset
    changes: tuple[Change, ...]
    bump: Bump

    @property
    def is_first(self) -> bool:
        return self.version.previous_version is None


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionPlanner:
    """Numbers new states by what changed, as a policy judges it."""

    policy: ChangePolicy = field(default_factory=ChangePolicy)
    prefix: str = DEFAULT_CLOUD_VERSION_PREFIX

    def first(
        self, dataset: LumosDataset, *, at: datetime, author: str | None, first: str | None = None
    ) -> PlannedVersion:
        """Return the version that a history begins with: `first` if that is one, else 1.0.0."""
        version = DatasetVersion(
            version=semantic(first) or str(next_version(None, Bump.NONE)),
            timestamp=at,
            author=author,
            cloud_version=next_cloud_version(None, prefix=self.prefix),
            fields=tuple(each.name for each in dataset.schema.fields),
        )
        return PlannedVersion(version, dataset, self.policy.judge(None, dataset, at=at), Bump.NONE)

    def next(
        self,
        current: DatasetVersion,
        known: LumosDataset,
        *,
        new: LumosDataset,
        at: datetime,
        author: str | None,
        states: Callable[[], Iterable[VersionedState]] = tuple,
    ) -> PlannedVersion | None:
        """Return the version after `current`, whose state is `known`; none if nothing changed.

        Args:
            current: the newest version.
            known: the dataset as it is in it.
            new: the dataset as it is now.
            at: the time of the new state.
            author: who makes the version.
            states: gives every version with its state, oldest first, for transitive profiles.
        """
        old = None if is_removal(current) else known
        earlier = partial(earlier_states, states)
        changes = self.policy.judge(old, new, at=at, earlier=earlier)
        return self._after(current, new, changes=changes, at=at, author=author)

    def removal(
        self, current: DatasetVersion, dataset: LumosDataset, *, at: datetime, author: str | None
    ) -> PlannedVersion | None:
        """Return the version that says the dataset is gone; none where the last one says so."""
        if is_removal(current):
            return None
        changes = self.policy.judge(dataset, None, at=at)
        return self._after(current, dataset, changes=changes, at=at, author=author)

    def declared(
        self, current: DatasetVersion, change_type: str, *, at: datetime, author: str | None
    ) -> DatasetVersion:
        """Return the version after `current` for a change that somebody declares."""
        bump = _BUMPS.get(change_type, Bump.PATCH)
        return DatasetVersion(
            version=_raised(current, bump),
            timestamp=at,
            author=author,
            change_type=change_type,
            category=_CATEGORIES.get(change_type, VersionCategory.METADATA_UPDATE),
            backward_compatible=bump is not Bump.MAJOR,
            previous_version=current.version,
            cloud_version=next_cloud_version(current.cloud_version, prefix=self.prefix),
        )

    def _after(
        self,
        current: DatasetVersion,
        dataset: LumosDataset,
        *,
        changes: Sequence[Change],
        at: datetime,
        author: str | None,
    ) -> PlannedVersion | None:
        bump = bump_of(changes)
        if bump is Bump.NONE:
            return None
        version = DatasetVersion(
            version=_raised(current, bump),
            timestamp=at,
            author=author,
            change_type=change_type_of(changes),
            category=category_of(changes),
            change_details=change_details_of(changes),
            backward_compatible=is_backward_compatible(changes),
            previous_version=current.version,
            cloud_version=next_cloud_version(current.cloud_version, prefix=self.prefix),
        )
        return PlannedVersion(version, dataset, tuple(changes), bump)


def earlier_states(states: Callable[[], Iterable[VersionedState]]) -> list[LumosDataset]:
    """Return all states but the newest, each with the number of its version."""
    known = [
        with_parts(dataset, version=version.version)
        for version, dataset in states()
        if not is_removal(version)
    ]
    return known[:-1]


def is_removal(version: DatasetVersion) -> bool:
    """Return whether a version says that the dataset is gone."""
    return version.change_type == _REMOVED


def holds(known: KnownState | None, digest: str) -> bool:
    """Return, mostly without reading the version, whether it is of a state of that hash."""
    if known is None or known.contract_hash != digest:
        return False
    return "REMOVED" not in known.document or not is_removal(known.version)


def semantic(text: str | None) -> str | None:
    """Return a semantic version, or nothing where the text is none."""
    try:
        return str(SemanticVersion.parse(text or ""))
    except InvalidModelError:
        return None


def _raised(current: DatasetVersion, bump: Bump) -> str:
    return str(next_version(SemanticVersion.parse(current.version), bump))
