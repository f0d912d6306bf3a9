"""Looking things up: one dataset, its history, two of its versions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from lumos.core.controllers.catalog_results import (
    ComparisonResult,
    ShownContribution,
    ShownDataset,
    TrendResult,
)
from lumos.core.errors import DatasetNotFoundError, NoCatalogError
from lumos.core.models import LumosDataset, ObservationKind, SchemaHistory, Urn
from lumos.core.models.contribution import speakers
from lumos.core.models.facets import FACETS
from lumos.core.platform.dataset_reference import (
    DatasetFinder,
    DatasetReference,
    UnresolvedReferenceError,
)
from lumos.core.platform.interface import Capability
from lumos.feature.extraction.trends import TrendPoint, trend_of
from lumos.feature.versioning.reported_change import ReportedChange

if TYPE_CHECKING:
    from datetime import datetime

    from lumos.core.errors import DamagedDocumentError
    from lumos.core.runtime.unit_of_work import UnitOfWork
    from lumos.feature.versioning.results import BlameResult

_LOOKED_AT = 50
_ALL = 1_000_000


class CatalogController:
    """What `show`, `history` and `compare` do."""

    def __init__(self, work: UnitOfWork, platform: str | None = None) -> None:
        """Look into a catalog, by default that of the settings; histories are in the state."""
        self._work = work
        self._platform = work.platform(platform)
        self._versions = work.versions(work.reader)

    def show(self, reference: str) -> LumosDataset:
        """Return the dataset of a URN, or of a name that only one dataset has."""
        with self._suggesting(reference):
            return self._platform.get_dataset(self.urn_of(reference))

    def shown(self, reference: str, *, contributions: bool = False) -> ShownDataset:
        """Return a dataset as `show` does, with who states what of it if asked."""
        found = self.show(reference)
        values = {name: getattr(found, name) for name in LumosDataset.model_fields}
        said = self.contributions(found) if contributions else ()
        fields = {*found.model_fields_set, "contributions"}
        return ShownDataset.model_construct(fields, **values, contributions=said)

    def contributions(self, dataset: LumosDataset) -> tuple[ShownContribution, ...]:
        """Return who says what of a dataset, facet by facet, the one that counts first."""
        from lumos.core.store.catalog.contributions import ContributionTable

        said = ContributionTable(self._work.reader).of(dataset.urn).said
        shown = [
            ShownContribution(
                facet=facet.path,
                contributor=str(each.contributor),
                at=each.at_of(facet.path),
                confidence=each.confidence,
            )
            for facet in FACETS
            for each in speakers(facet, said)
            if facet.path in each.facets
        ]
        return tuple(shown)

    def trend(
        self, reference: str, *, since: datetime | None = None, limit: int | None = None
    ) -> TrendResult:
        """Return what was measured of a dataset over time, newest last.

        Args:
            reference: the dataset.
            since: only what was measured at this time or later.
            limit: of each kind only so many, the newest.
        """
        from lumos.core.store.catalog.observations import ObservationTable

        urn, name = self._named(reference)
        most = _ALL if limit is None else limit
        table = ObservationTable(self._work.reader)
        damaged: list[DamagedDocumentError] = []
        points: list[TrendPoint] = []
        for kind in ObservationKind:
            series = table.series(urn, kind, since=since, limit=most + 1, damaged=damaged.append)
            points += [*trend_of(series)][-most:]
        return TrendResult(
            dataset=name,
            urn=urn,
            observations=tuple(points),
            damaged=len(damaged),
        )

    def history(
        self, reference: str, *, since: datetime | None = None, limit: int | None = None
    ) -> SchemaHistory:
        """Return the versions of a dataset, newest last.

        Args:
            reference: the dataset.
            since: only versions made at this time or later.
            limit: only so many, the newest.
        """
        urn, name = self._named(reference)
        versions = self._versions.get_version_history(urn, since=since, limit=limit)
        return SchemaHistory(dataset=name, urn=urn, schema_history=versions)

    def blame(self, reference: str) -> BlameResult:
        """Return which version brought each column of a dataset in and which changed it last."""
        urn, name = self._named(reference)
        current = self._versions.get_current_version(urn)
        from lumos.feature.versioning.results import BlameResult

        return BlameResult(
            dataset=name,
            urn=urn,
            version=current.version if current else None,
            columns=self._versions.blame(urn),
        )

    def compare(
        self, reference: str, first: str = "previous", *, second: str = "latest"
    ) -> ComparisonResult:
        """Return how two versions of a dataset differ.

        A version is named by its number, by its cloud version, or as latest, previous or first.
        """
        with self._suggesting(reference):
            urn = self.urn_of(reference)
        changes = self._versions.compare_versions(urn, first, second)
        return ComparisonResult(
            dataset=urn,
            from_version=self._versions.find_version(urn, first),
            to_version=self._versions.find_version(urn, second),
            changes=tuple(ReportedChange.of(change) for change in changes),
        )

    def _named(self, reference: str) -> tuple[Urn, str]:
        """Return the URN and the name of a dataset, also of one that is gone."""
        with self._suggesting(reference):
            urn = self.urn_of(reference)
            return urn, self._name_of(urn)

    @contextmanager
    def _suggesting(self, reference: str) -> Iterator[None]:
        """Add names that are nearly the reference to the error that there is no such dataset."""
        try:
            yield
        except (DatasetNotFoundError, UnresolvedReferenceError) as error:
            from lumos.core.store.catalog.near_names import near_names

            near: list[str] = []
            with suppress(NoCatalogError):
                found = near_names(self._work.reader, reference)
                near = [name for name in found if name not in error.message]
            if near:
                error.hint = f"did you mean {' or '.join(near)}? Or {error.hint}"
            raise

    def _name_of(self, urn: Urn) -> str:
        """Return the name of a dataset, also of one that is gone and has a history."""
        current = self._versions.get_current_version(urn)
        if current is None:  # a dataset that is not there has no empty history
            return self._platform.get_dataset(urn).name
        return self._versions.dataset_at(urn, current.version).name

    def urn_of(self, reference: str) -> Urn:
        """Return the URN of a dataset, given as such or by a name that only one dataset has."""
        if "://" in reference:
            return Urn(reference)
        if Capability.SEARCH in self._platform.capabilities:
            hits = self._platform.search(reference, limit=_LOOKED_AT).hits
            named = [hit.urn for hit in hits if hit.name == reference]
            if len(named) == 1:
                return named[0]
        finder = DatasetFinder(self._platform)
        return finder.find(DatasetReference.from_json(reference)).urn
