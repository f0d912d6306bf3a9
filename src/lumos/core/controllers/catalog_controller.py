"""Looking things up: search, one dataset, its history, two of its versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lumos.core.controllers.results import ComparisonResult, ReportedChange
from lumos.core.models import LumosDataset, SchemaHistory, Urn
from lumos.core.platform.dataset_reference import DatasetFinder, DatasetReference
from lumos.core.platform.interface import Capability

if TYPE_CHECKING:
    from lumos.core.platform.interface import MetadataPlatformInterface, SearchFilters, SearchPage
    from lumos.feature.versioning.version_service import VersionManager

_LOOKED_AT = 50


class CatalogController:
    """What `search`, `show`, `history` and `compare` do."""

    def __init__(self, platform: MetadataPlatformInterface, versions: VersionManager) -> None:
        self._platform = platform
        self._versions = versions

    def search(
        self, query: str, filters: SearchFilters | None = None, *, limit: int = 20, offset: int = 0
    ) -> SearchPage:
        """Return the datasets that match, best first."""
        return self._platform.search(query, filters, limit=limit, offset=offset)

    def show(self, reference: str) -> LumosDataset:
        """Return the dataset of a URN, or of a name that only one dataset has."""
        return self._platform.get_dataset(self._urn_of(reference))

    def history(self, reference: str) -> SchemaHistory:
        """Return all versions of a dataset, newest last."""
        urn = self._urn_of(reference)
        versions = self._versions.get_version_history(urn)
        if not versions:
            self._platform.get_dataset(urn)  # a dataset that is not there has no empty history
        return SchemaHistory(dataset=urn, schema_history=versions)

    def compare(self, reference: str, first: str, *, second: str) -> ComparisonResult:
        """Return how two versions of a dataset differ."""
        urn = self._urn_of(reference)
        changes = self._versions.compare_versions(urn, first, second)
        return ComparisonResult(
            dataset=urn,
            from_version=first,
            to_version=second,
            changes=tuple(ReportedChange.of(change) for change in changes),
        )

    def _urn_of(self, reference: str) -> Urn:
        if "://" in reference:
            return Urn(reference)
        if Capability.SEARCH in self._platform.capabilities:
            hits = self._platform.search(reference, limit=_LOOKED_AT).hits
            named = [hit.urn for hit in hits if hit.name == reference]
            if len(named) == 1:
                return named[0]
        finder = DatasetFinder(self._platform)
        return finder.find(DatasetReference.from_json(reference)).urn
