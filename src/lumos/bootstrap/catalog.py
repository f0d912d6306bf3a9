"""The commands on what is in the catalog: look, versions, owners and docs, report."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from lumos.bootstrap.parts import is_database
from lumos.bootstrap.snapshots import SnapshotCommands

if TYPE_CHECKING:
    from lumos.core.controllers.catalog_controller import CatalogController
    from lumos.core.controllers.people_controller import PeopleController
    from lumos.core.controllers.report_controller import ReportController
    from lumos.core.controllers.search_controller import SearchController
    from lumos.core.controllers.version_controller import VersionController
    from lumos.core.models import Urn
    from lumos.core.models.dataset_contributions import DatasetContributions
    from lumos.core.platform.interface import MetadataPlatformInterface
    from lumos.core.store.catalog.observations import ObservationTable
    from lumos.feature.versioning.publishing import Publisher
    from lumos.feature.versioning.sources import StoredStates


class CatalogCommands(SnapshotCommands):
    """What reads the catalog, its history and its people."""

    @cached_property
    def catalog(self) -> CatalogController:
        from lumos.core.controllers.catalog_controller import CatalogController

        return CatalogController(
            self._platform(None),
            self._versions(self._reader),
            contributions=self._said_of,
            observations=self._observations,
        )

    def _observations(self) -> ObservationTable:
        """Return what was measured of datasets, as far as the state of this project knows."""
        from lumos.core.store.catalog.observations import ObservationTable

        return ObservationTable(self._reader)

    def _said_of(self, urn: Urn) -> DatasetContributions:
        """Return who says what of a dataset, as far as the state of this project knows."""
        from lumos.core.store.catalog.contributions import ContributionTable

        return ContributionTable(self._reader).of(urn)

    @property
    def search(self) -> SearchController:
        from lumos.core.controllers.search_controller import CatalogNames, SearchController
        from lumos.core.platform.factory import PlatformFactory

        settings = self.settings
        names = CatalogNames(
            chosen=tuple(dict.fromkeys(settings.platforms)) or (settings.platform,),
            configured=frozenset(settings.platform_config),
            known=frozenset(PlatformFactory.names()),
            is_address=is_database,
        )
        return SearchController(
            names, open_platform=self._platform, timeout=settings.search.timeout_seconds
        )

    @cached_property
    def versions(self) -> VersionController:
        from lumos.core.controllers.version_controller import VersionController, VersionParts
        from lumos.core.platform.factory import EMBEDDED
        from lumos.feature.versioning.planning import VersionPlanner

        return VersionController(
            VersionParts(
                versions=lambda writing: self._versions(self._writer if writing else self._reader),
                history=lambda: self._history(self._reader),
                writer=lambda alerts: (self._history(self._writer, alerts=alerts), self._writer),
                state=self._stored_states,
                sync=self._following_sync,
                open_snapshot=self.snapshots.opened_for_writing,
                urn_of=self._urn_of,
                require=lambda urn: self._platform(EMBEDDED).get_dataset(urn),
                planner=VersionPlanner(
                    policy=self._policy, prefix=self.settings.cloud_version_prefix
                ),
                begin_run=self._begin_run,
                clock=self._clock,
                author=self.author,
            )
        )

    def _urn_of(self, reference: str) -> Urn:
        return self.catalog.urn_of(reference)

    def _stored_states(self, batch: int) -> StoredStates:
        from lumos.core.platform.factory import EMBEDDED
        from lumos.core.store.catalog.catalog_states import CatalogStates
        from lumos.feature.versioning.sources import StoredStates

        states = CatalogStates(self._reader)
        return StoredStates(states, name=EMBEDDED, at=self._clock(), batch=batch)

    @cached_property
    def people(self) -> PeopleController:
        from lumos.core.controllers.people_controller import PeopleController
        from lumos.core.models import Contributor, ContributorKind
        from lumos.core.platform.factory import EMBEDDED

        def catalog(name: str) -> tuple[MetadataPlatformInterface, Publisher]:
            by = Contributor(ContributorKind.DECLARED, name)
            platform = self._platform(EMBEDDED, writing=True, by=by)
            return platform, self._publisher(platform)

        return PeopleController(
            ownership=catalog("ownership"),
            enrichment=catalog("enrichment"),
            begin_run=self._begin_run,
            sync=self._following_sync,
            clock=self._clock,
        )

    @cached_property
    def reports(self) -> ReportController:
        from lumos.core.controllers.report_controller import ReportController
        from lumos.core.store.runs import RunRepository

        return ReportController(
            self._platform(None),
            history=self._history(self._reader),
            runs=RunRepository(self._reader),
            list_snapshots=self._snapshot_store.list,
            open_snapshot=self.snapshots.opened,
            clock=self._clock,
            policy=self._policy,
        )
