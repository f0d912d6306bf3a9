"""All commands of one project."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from lumos.core.runtime.project import Project, utc_now
from lumos.core.runtime.unit_of_work import UnitOfWork

if TYPE_CHECKING:
    from lumos.core.controllers.alert_controller import AlertController
    from lumos.core.controllers.catalog_controller import CatalogController
    from lumos.core.controllers.chain_controller import ChainController
    from lumos.core.controllers.demo_controller import DemoController
    from lumos.core.controllers.diff_controller import DiffController
    from lumos.core.controllers.engine_controller import EngineController
    from lumos.core.controllers.import_controller import ImportController
    from lumos.core.controllers.ingestion_controller import IngestionController
    from lumos.core.controllers.migration_controller import MigrationController
    from lumos.core.controllers.people_controller import PeopleController
    from lumos.core.controllers.profile_controller import ProfileController
    from lumos.core.controllers.report_controller import ReportController
    from lumos.core.controllers.run_timestamp_controller import RunTimestampController
    from lumos.core.controllers.search_controller import SearchController
    from lumos.core.controllers.snapshot_controller import SnapshotController
    from lumos.core.controllers.state_controller import StateController
    from lumos.core.controllers.sync_controller import SyncController
    from lumos.core.controllers.system_controller import SystemController
    from lumos.core.controllers.version_controller import VersionController
    from lumos.core.controllers.watch_controller import WatchController
    from lumos.core.log_settings import LoggingSettings


def _ignore(_value: object) -> None:
    pass


class Application(UnitOfWork):
    """A unit of work with the controllers of all commands."""

    def __init__(
        self,
        *,
        config: Path | None = None,
        state_dir: Path | None = None,
        environment: Mapping[str, str],
        clock: Callable[[], datetime] = utc_now,
        notice: Callable[[str], None] = _ignore,
        on_logging: Callable[[LoggingSettings], None] = _ignore,
    ) -> None:
        super().__init__(
            Project(
                config=config,
                given_state_dir=state_dir,
                environment=environment,
                clock=clock,
                notice=notice,
                on_logging=on_logging,
            )
        )

    @property
    def alerts(self) -> AlertController:
        from lumos.core.controllers.alert_controller import AlertController

        return AlertController(self)

    @property
    def snapshots(self) -> SnapshotController:
        from lumos.core.controllers.snapshot_controller import SnapshotController

        return SnapshotController(self)

    @property
    def diffs(self) -> DiffController:
        from lumos.core.controllers.diff_controller import DiffController

        return DiffController(self)

    def importer(self, platform: str | None = None, *, key: Path | None = None) -> ImportController:
        from lumos.core.controllers.import_controller import ImportController

        return ImportController(self, platform, key=key)

    @property
    def migrations(self) -> MigrationController:
        from lumos.core.controllers.migration_controller import MigrationController

        return MigrationController(self)

    @property
    def sync(self) -> SyncController:
        from lumos.core.controllers.sync_controller import SyncController

        return SyncController(self)

    @property
    def catalog(self) -> CatalogController:
        from lumos.core.controllers.catalog_controller import CatalogController

        return CatalogController(self)

    @property
    def search(self) -> SearchController:
        from lumos.core.controllers.search_controller import SearchController

        return SearchController(self)

    @property
    def version_scans(self) -> VersionController:
        from lumos.core.controllers.version_controller import VersionController

        return VersionController(self)

    @property
    def people(self) -> PeopleController:
        from lumos.core.controllers.people_controller import PeopleController

        return PeopleController(self)

    @property
    def reports(self) -> ReportController:
        from lumos.core.controllers.report_controller import ReportController

        return ReportController(self)

    @property
    def ingestion(self) -> IngestionController:
        from lumos.core.controllers.ingestion_controller import IngestionController

        return IngestionController(self)

    @property
    def run_timestamps(self) -> RunTimestampController:
        from lumos.core.controllers.run_timestamp_controller import RunTimestampController

        return RunTimestampController(self)

    @property
    def watching(self) -> WatchController:
        from lumos.core.controllers.watch_controller import WatchController

        return WatchController(self.project, self.spark_session)

    @property
    def profiling(self) -> ProfileController:
        from lumos.core.controllers.profile_controller import ProfileController

        return ProfileController(self)

    @property
    def engine(self) -> EngineController:
        from lumos.core.controllers.engine_controller import EngineController

        return EngineController(self)

    @property
    def system(self) -> SystemController:
        from lumos.core.controllers.system_controller import SystemController

        return SystemController(self)

    @property
    def state(self) -> StateController:
        from lumos.core.controllers.state_controller import StateController

        return StateController(self)

    @property
    def chains(self) -> ChainController:
        from lumos.core.controllers.chain_controller import ChainController
        from lumos.core.controllers.chain_operations import ChainOperations

        return ChainController(ChainOperations(self, clock=self.clock).by_name())

    @property
    def demo(self) -> DemoController:
        from lumos.core.controllers.demo_controller import DemoController

        return DemoController(self)

    def project_of(self, file: Path) -> Application:
        """Return the project of a settings file, which shares nothing with this one."""
        project = self.project.of(file)
        if project is self.project:
            return self
        other = Application(
            config=project.config,
            state_dir=project.given_state_dir,
            environment=project.environment,
            clock=project.clock,
            notice=project.notice,
            on_logging=project.on_logging,
        )
        return self._resources.enter_context(other)
