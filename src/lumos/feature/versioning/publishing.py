"""Brings new states of datasets into the state together with their versions."""

from __future__ import annotations

from contextlib import AbstractContextManager
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol

from lumos.core.errors import DamagedDocumentError
from lumos.core.models import DatasetVersion, LumosDataset, Urn, with_parts
from lumos.core.platform.batches import dataset_or_none

if TYPE_CHECKING:
    from lumos.core.platform.interface import MetadataPlatformInterface
    from lumos.core.run_report import Clock
    from lumos.feature.versioning.version_service import VersionManager


class Transactional(Protocol):
    """Something whose writes can be made all at once or not at all."""

    def transaction(self) -> AbstractContextManager[None]: ...


class PublishOutcome(StrEnum):
    """What publishing a dataset did."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"


class Publisher:
    """Writes a dataset and its version to the state in one transaction.

    The version is computed from what the state holds afterwards, compared with the last version
    in the history: history and state cannot drift apart, and repeating a run adds nothing.
    """

    def __init__(
        self,
        platform: MetadataPlatformInterface,
        versions: VersionManager | None,
        *,
        database: Transactional,
        clock: Clock,
        author: str,
    ) -> None:
        """Publish to the state, given as a catalog; without `versions`, no history is kept."""
        self._platform = platform
        self._versions = versions
        self._database = database
        self._clock = clock
        self._author = author
        self.breaking: set[Urn] = set()
        """The datasets that got a version with a breaking change."""

    @property
    def keeps_history(self) -> bool:
        """Whether versions are recorded."""
        return self._versions is not None

    def publish(self, dataset: LumosDataset) -> PublishOutcome:
        """Create or update a dataset; equal content changes nothing."""
        with self._database.transaction():
            before = self._before(dataset.urn)
            # A dataset that comes with a version, from elsewhere or from a backup, goes on from it.
            comes_with_one = dataset.version is not None and not self.keeps_history
            version = before.version if before and not comes_with_one else dataset.version
            if version != dataset.version:
                dataset = with_parts(dataset, version=version)
            self._platform.emit_dataset(dataset)
            after = self._platform.get_dataset(dataset.urn)
            self._record(after, before=before)
        if before is None:
            return PublishOutcome.CREATED
        return PublishOutcome.UNCHANGED if after == before else PublishOutcome.UPDATED

    def _before(self, urn: Urn) -> LumosDataset | None:
        """Return what the catalog holds; a damaged dataset is replaced as if it were not there."""
        try:
            return dataset_or_none(self._platform, urn)
        except DamagedDocumentError:
            return None

    def refresh(self, urn: Urn) -> DatasetVersion | None:
        """Version a dataset whose surroundings, such as its lineage, changed in the catalog."""
        with self._database.transaction():
            dataset = dataset_or_none(self._platform, urn)
            return self._record(dataset) if dataset else None

    def _record(
        self, dataset: LumosDataset, *, before: LumosDataset | None = None
    ) -> DatasetVersion | None:
        """Add a version, also where no history was kept so far of a state that Lumos holds."""
        if self._versions is None:
            return None
        version = self._versions.record(
            before, dataset, at=self._clock(), author=self._author, first=dataset.version
        )
        if version is not None and version.backward_compatible is False:
            self.breaking.add(dataset.urn)
        return version


class StateTarget(NamedTuple):
    """The state for writing: as a catalog, with its versions, and its database."""

    platform: MetadataPlatformInterface
    publisher: Publisher
    database: Transactional
