"""Writes what contributors say into the state, together with the versions that follow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from lumos.core.platform.entities import Entity, EntityKind, name_of

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.models import Contributor, LumosDataset, Urn
    from lumos.core.models.dataset_contributions import DatasetContributions
    from lumos.core.run_report import Clock
    from lumos.core.store.catalog.catalog_tables import CatalogTables
    from lumos.core.store.database import StateDatabase
    from lumos.feature.versioning.version_service import VersionManager


class StateWriter:
    """Writes a dataset and its version in one transaction."""

    def __init__(
        self,
        database: StateDatabase,
        tables: CatalogTables,
        *,
        versions: VersionManager | None,
        clock: Clock,
        author: str,
    ) -> None:
        """Write to a state; without `versions`, no history is kept."""
        self.database = database
        self.tables = tables
        self._versions = versions
        self._clock = clock
        self._author = author

    def write(self, said: DatasetContributions, dataset: LumosDataset) -> None:
        """Store what is said of a dataset, and the dataset that follows."""
        at = self._clock()
        with self.database.transaction():
            before = self.tables.dataset(said.urn)
            sole = said.sole
            if sole is not None:
                contributor = sole.contributor
                digest = said.found.get(contributor, "")
                self.tables.put_found(dataset, contributor, hash=digest, at=at)
            else:
                self.tables.put_said(said, at=at)
            after = self.tables.dataset(said.urn)
            if self._versions is not None and after is not None:
                self._versions.record(
                    before, after, at=at, author=self._author, first=after.version
                )

    def take_in(self, dataset: LumosDataset, *, by: Contributor) -> None:
        """Store what a contributor has to say so that a dataset is as it wants it to be."""
        with self.database.transaction():
            held = self.tables.contributions.of(dataset.urn)
            said = held.wanting(_said_here(dataset, held), by=by, at=self._clock())
            if said != held:
                self.write(said, said.dataset())

    def retire(self, dataset: LumosDataset, *, left: DatasetContributions) -> None:
        """Remove a dataset that no source finds any more; its history stays, with the removal.

        Args:
            dataset: as it was.
            left: what others go on saying of it, in case that it comes back.
        """
        with self.database.transaction():
            if self._versions is not None and self.tables.dataset(dataset.urn) is not None:
                self._versions.retire(dataset, at=self._clock(), author=self._author)
            self.tables.delete_dataset(dataset.urn, left=left)

    def put_entities(self, kind: EntityKind, entities: Iterable[Entity]) -> None:
        """Store people, tags, terms, domains and jobs; what the state says of them stays.

        A job is what its source says: nobody else describes it.
        """
        for entity in entities:
            name = name_of(entity)
            document = entity.to_json()
            if kind != "job" and (known := self.tables.entities.get(kind, name)) is not None:
                document = {**document, **known}
            self.tables.entities.put(kind, name, document=document, at=self._clock())

    def refresh(self, urn: Urn) -> None:
        """Version a dataset whose lineage changed."""
        dataset = self.tables.dataset(urn)
        if self._versions is not None and dataset is not None:
            at = self._clock()
            self._versions.record(None, dataset, at=at, author=self._author, first=dataset.version)

    def keep_found_states(
        self, contributor: Contributor, states: Sequence[tuple[str, str]]
    ) -> None:
        """Keep what a contributor was found to say, so that the next run passes over it."""
        self.tables.contributions.put_found_states(contributor, states)


def _said_here(dataset: LumosDataset, held: DatasetContributions) -> dict[str, JsonValue]:
    """Return a dataset without what follows from edges and history."""
    document = {
        name: value
        for name, value in dataset.to_json().items()
        if name not in ("lineage", "version")
    }
    stated = held.dataset().version
    return document if stated is None else {**document, "version": stated}
