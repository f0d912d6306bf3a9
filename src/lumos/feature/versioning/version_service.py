"""Gives datasets their versions and keeps the history of them."""

from __future__ import annotations

from collections.abc import Sequence
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
    diff_datasets,
    is_backward_compatible,
    next_cloud_version,
    next_version,
)
from lumos.core.errors import InvalidModelError, VersionNotFoundError
from lumos.core.models import (
    Bump,
    Change,
    DatasetVersion,
    LumosDataset,
    SemanticVersion,
    VersionCategory,
    VersionMapping,
)

_REMOVED = "dataset.removed"
_BUMPS = {"BREAKING_SCHEMA_CHANGE": Bump.MAJOR, "SCHEMA_CHANGE": Bump.MINOR}
_CATEGORIES = {
    "BREAKING_SCHEMA_CHANGE": VersionCategory.SCHEMA_CHANGE,
    "SCHEMA_CHANGE": VersionCategory.SCHEMA_CHANGE,
    "DATA_UPDATE": VersionCategory.DATA_UPDATE,
}


class HistoryPort(Protocol):
    """Where versions are kept: what is appended never changes."""

    def append(
        self, urn: str, version: DatasetVersion, *, dataset: LumosDataset, changes: Sequence[Change]
    ) -> None:
        """Add a version as the newest."""

    def versions(self, urn: str) -> tuple[DatasetVersion, ...]:
        """Return all versions of a dataset, newest last."""

    def current(self, urn: str) -> DatasetVersion | None:
        """Return the newest version of a dataset, if it has any."""

    def dataset_at(self, urn: str, version: str) -> LumosDataset:
        """Return the dataset as it was in a version."""


class VersionManager:
    """Numbers the states of datasets by what changed between them.

    The history itself is what a new state is compared with, so recording the same state again, or
    with an outdated `old`, neither renumbers nor forks it.
    """

    def __init__(
        self, history: HistoryPort, *, cloud_version_prefix: str = DEFAULT_CLOUD_VERSION_PREFIX
    ) -> None:
        self._history = history
        self._prefix = cloud_version_prefix

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
        current = self._history.current(new.urn)
        if current is None:
            begin = partial(self._begin, urn=new.urn, at=at, author=author, first=first)
            if old is None or not diff_datasets(old, new):
                return begin(new)
            current = begin(old)
        known = self._history.dataset_at(new.urn, current.version)
        is_back = current.change_type == change_type_of_rule(_REMOVED)
        changes = diff_datasets(None if is_back else known, new)
        return self._append(current, new, changes=changes, at=at, author=author)

    def retire(
        self, dataset: LumosDataset, *, at: datetime, author: str | None = None
    ) -> DatasetVersion | None:
        """Add a version that says the dataset is gone; one without history gets none."""
        current = self._history.current(dataset.urn)
        if current is None:
            return None
        changes = diff_datasets(dataset, None)
        return self._append(current, dataset, changes=changes, at=at, author=author)

    def increment_version(
        self, dataset_urn: str, change_type: str, *, at: datetime, author: str | None = None
    ) -> DatasetVersion:
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
        bump = _BUMPS.get(change_type, Bump.PATCH)
        version = DatasetVersion(
            version=_after(current, bump),
            timestamp=at,
            author=author,
            change_type=change_type,
            category=_CATEGORIES.get(change_type, VersionCategory.METADATA_UPDATE),
            backward_compatible=bump is not Bump.MAJOR,
            previous_version=current.version,
            cloud_version=next_cloud_version(current.cloud_version, prefix=self._prefix),
        )
        dataset = self._history.dataset_at(dataset_urn, current.version)
        self._history.append(dataset_urn, version, dataset=dataset, changes=())
        return version

    def get_current_version(self, dataset_urn: str) -> DatasetVersion | None:
        """Return the newest version of a dataset, if it has any."""
        return self._history.current(dataset_urn)

    def get_version_history(self, dataset_urn: str) -> tuple[DatasetVersion, ...]:
        """Return all versions of a dataset, newest last."""
        return self._history.versions(dataset_urn)

    def get_version_mappings(self, dataset_urn: str) -> tuple[VersionMapping, ...]:
        """Return which cloud version stands for which version, newest last."""
        return tuple(
            VersionMapping(cloud_version=version.cloud_version, schema_version=version.version)
            for version in self._history.versions(dataset_urn)
            if version.cloud_version
        )

    def compare_versions(self, dataset_urn: str, v1: str, v2: str) -> tuple[Change, ...]:
        """Return what changed from one version to another, in either direction.

        Raises:
            VersionNotFoundError: there is no such version; the known ones are named.
        """
        before = self._history.dataset_at(dataset_urn, v1)
        return diff_datasets(before, self._history.dataset_at(dataset_urn, v2))

    def _append(
        self,
        current: DatasetVersion,
        dataset: LumosDataset,
        *,
        changes: Sequence[Change],
        at: datetime,
        author: str | None,
    ) -> DatasetVersion | None:
        if not changes:
            return None
        version = DatasetVersion(
            version=_after(current, bump_of(changes)),
            timestamp=at,
            author=author,
            change_type=change_type_of(changes),
            category=category_of(changes),
            change_details=change_details_of(changes),
            backward_compatible=is_backward_compatible(changes),
            previous_version=current.version,
            cloud_version=next_cloud_version(current.cloud_version, prefix=self._prefix),
        )
        self._history.append(dataset.urn, version, dataset=dataset, changes=changes)
        return version

    def _begin(
        self,
        dataset: LumosDataset,
        *,
        urn: str,
        at: datetime,
        author: str | None,
        first: str | None,
    ) -> DatasetVersion:
        version = DatasetVersion(
            version=_semantic(first) or str(next_version(None, Bump.NONE)),
            timestamp=at,
            author=author,
            cloud_version=next_cloud_version(None, prefix=self._prefix),
            fields=tuple(field.name for field in dataset.schema.fields),
        )
        self._history.append(urn, version, dataset=dataset, changes=diff_datasets(None, dataset))
        return version


def _semantic(text: str | None) -> str | None:
    try:
        return str(SemanticVersion.parse(text or ""))
    except InvalidModelError:
        return None


def _after(current: DatasetVersion, bump: Bump) -> str:
    return str(next_version(SemanticVersion.parse(current.version), bump))
