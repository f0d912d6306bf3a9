"""The only place that puts parts together: settings in, controllers out."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.changes import ChangePolicy
    from lumos.core.controllers.alert_controller import AlertController
    from lumos.core.controllers.catalog_controller import CatalogController
    from lumos.core.controllers.chain_controller import ChainController
    from lumos.core.controllers.demo_controller import DemoController
    from lumos.core.controllers.diff_controller import DiffController
    from lumos.core.controllers.engine_controller import EngineController
    from lumos.core.controllers.import_controller import ImportController, ImportTarget
    from lumos.core.controllers.ingestion_controller import IngestionController
    from lumos.core.controllers.lazy_session import OpenSession
    from lumos.core.controllers.migration_controller import MigrationController
    from lumos.core.controllers.people_controller import PeopleController
    from lumos.core.controllers.profile_controller import ProfileController
    from lumos.core.controllers.publishing import Publisher
    from lumos.core.controllers.report_controller import ReportController
    from lumos.core.controllers.run_timestamp import RunTimestampController
    from lumos.core.controllers.snapshot_controller import SnapshotController
    from lumos.core.controllers.snapshot_opening import SnapshotOpener
    from lumos.core.controllers.sync_controller import SyncController, SyncTarget
    from lumos.core.controllers.system_controller import SystemController
    from lumos.core.controllers.version_controller import VersionController
    from lumos.core.controllers.version_sources import CatalogSource
    from lumos.core.controllers.watch_controller import WatchController
    from lumos.core.models import Change, LumosDataset, Urn
    from lumos.core.platform.fidelity import Keeper
    from lumos.core.platform.interface import MetadataPlatformInterface
    from lumos.core.run_report import RunReport
    from lumos.core.settings import LumosSettings, SourceEntry
    from lumos.core.store.database import StateDatabase
    from lumos.core.store.snapshot_store import SnapshotStore
    from lumos.feature.alerting.outbox_history import AlertingHistory
    from lumos.feature.snapshot.engines import Engines
    from lumos.feature.versioning.version_service import VersionManager
    from lumos.spark.handles import SparkSession

DATABASE_FILE = "lumos.db"
LOCK_SECONDS = 10.0


def _escaped(value: JsonValue) -> JsonValue:
    """Return a value in which nothing is a variable."""
    return value.replace("${", "$${") if isinstance(value, str) else value


def _is_database(name: str) -> bool:
    """Tell whether a platform is named by the address of a state database."""
    from lumos.core.store.database import is_url

    return is_url(name)


def _now() -> datetime:
    return datetime.now(UTC)


def _ignore(_notice: str) -> None:
    pass


class Application:
    """Lumos put together for one project; each part is made when it is first asked for."""

    def __init__(
        self,
        *,
        config: Path | None = None,
        state_dir: Path | None = None,
        environment: Mapping[str, str],
        clock: Callable[[], datetime] = _now,
        notice: Callable[[str], None] = _ignore,
    ) -> None:
        self._notice = notice
        self._config = config
        self._given_state_dir = state_dir
        self._environment = environment
        self._clock = clock
        self._resources = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._resources.close()

    @cached_property
    def settings(self) -> LumosSettings:
        from lumos.core.settings import ChangePolicySettings, load_settings

        settings = load_settings(self._config, self._environment)
        if problems := [*settings.alerts.problems()]:
            raise settings.refused(problems)
        if settings.change_policy != ChangePolicySettings():
            from lumos.core.changes.policy_settings import policy_of

            policy_of(settings)  # told with the other problems of the file, not halfway through
        return settings

    @cached_property
    def _policy(self) -> ChangePolicy:
        from lumos.core.changes.policy_settings import policy_of

        return policy_of(self.settings)

    @property
    def state_dir(self) -> Path:
        return self._given_state_dir or self.settings.state_dir

    @cached_property
    def author(self) -> str:
        """Who makes changes: the user of this machine."""
        try:
            return getpass.getuser()
        except (OSError, KeyError):
            return "unknown"

    @cached_property
    def system(self) -> SystemController:
        from lumos.core.controllers.system_controller import SystemController

        return SystemController(
            environment=self._environment,
            load_settings=self._describe_settings,
            state_dir=lambda: self.state_dir,
            make_state=lambda: self._writer.place,
            look_at_state=lambda: self._reader.place,
            reach_platform=self._describe_platform,
        )

    @cached_property
    def catalog(self) -> CatalogController:
        from lumos.core.controllers.catalog_controller import CatalogController

        return CatalogController(self._platform(None), self._versions(self._reader))

    @cached_property
    def versions(self) -> VersionController:
        from lumos.core.controllers.version_controller import VersionController, VersionParts
        from lumos.core.platform.factory import EMBEDDED
        from lumos.feature.versioning.planning import VersionPlanner

        embedded = self.settings.platform == EMBEDDED

        def tell(dataset: LumosDataset) -> None:
            self._platform(None, writing=True).emit_dataset(dataset)

        return VersionController(
            VersionParts(
                versions=lambda writing: self._versions(self._writer if writing else self._reader),
                history=lambda: self._history(self._reader),
                writer=lambda alerts: (self._history(self._writer, alerts=alerts), self._writer),
                catalog=self._catalog_source,
                tell_catalog=None if embedded else tell,  # the embedded one reads the history
                open_snapshot=self.snapshots.opened,
                urn_of=self._urn_of,
                require=lambda urn: self._platform(None).get_dataset(urn),
                planner=VersionPlanner(
                    policy=self._policy, prefix=self.settings.cloud_version_prefix
                ),
                write_lock=self._write_lock,
                keep_report=self._keep_report,
                clock=self._clock,
                author=self.author,
            )
        )

    def _urn_of(self, reference: str) -> Urn:
        return self.catalog.urn_of(reference)

    def _catalog_source(self, batch: int) -> CatalogSource:
        from lumos.core.controllers.version_sources import CatalogSource
        from lumos.core.platform.factory import EMBEDDED
        from lumos.core.store.catalog_states import CatalogStates

        embedded = self.settings.platform == EMBEDDED
        states = CatalogStates(self._reader) if embedded else None
        return CatalogSource(self._platform(None), states, at=self._clock(), batch=batch)

    @cached_property
    def snapshots(self) -> SnapshotController:
        from lumos.core.controllers.snapshot_controller import SnapshotController
        from lumos.core.platform.factory import PlatformFactory

        return SnapshotController(
            self._snapshot_store,
            platform_of=self._platform,
            platform_names=PlatformFactory.names(),
            engines=self._engines,
            clock=self._clock,
            retention=lambda: self.settings.snapshots.retention,
        )

    @cached_property
    def diffs(self) -> DiffController:
        from lumos.core.controllers.diff_controller import DiffController

        return DiffController(
            self._opener.opened_pair,
            engines=self._engines,
            clock=self._clock,
            policy=self._policy,
        )

    @cached_property
    def _opener(self) -> SnapshotOpener:
        from lumos.core.controllers.snapshot_opening import SnapshotOpener
        from lumos.core.platform.factory import PlatformFactory

        return SnapshotOpener(
            self._snapshot_store,
            platform_of=self._platform,
            platform_names=PlatformFactory.names(),
            clock=self._clock,
        )

    @cached_property
    def _engines(self) -> Engines:
        from lumos.feature.snapshot.engines import Engines

        return Engines(open_session=self._spark_session, runs_here=self._spark_runs_here)

    def _spark_runs_here(self) -> bool:
        from lumos.spark.options import is_on_this_machine

        spark = self.settings.spark
        return spark.remote is None and is_on_this_machine(spark.master)

    @cached_property
    def people(self) -> PeopleController:
        from lumos.core.controllers.people_controller import PeopleController

        platform = self._platform(None, writing=True)
        return PeopleController(
            platform,
            self._publisher(platform),
            write_lock=self._write_lock,
            keep_report=self._keep_report,
            clock=self._clock,
        )

    @cached_property
    def chains(self) -> ChainController:
        from lumos.core.controllers.chain_controller import ChainController
        from lumos.core.controllers.chain_operations import chain_operations

        return ChainController(
            chain_operations(
                snapshots=lambda: self.snapshots,
                importer=self.importer,
                people=lambda: self.people,
                ingest=self._ingested_with,
                reports=lambda: self.reports,
                clock=self._clock,
            )
        )

    def _ingested_with(self, file: Path) -> RunReport:
        self.use_settings(file)
        return self.ingestion.ingest().as_run_report()

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

    @cached_property
    def ingestion(self) -> IngestionController:
        return self._ingestion_on(self._spark_session)

    @cached_property
    def run_timestamps(self) -> RunTimestampController:
        from lumos.core.controllers.run_timestamp import RunTimestampController

        return RunTimestampController(
            ingestion_on=self._ingestion_on,
            open_session=self._spark_session,
            state_dir=lambda: self.state_dir,
            clock=self._clock,
        )

    @cached_property
    def watching(self) -> WatchController:
        from lumos.core.controllers.watch_controller import WatchController

        return WatchController(
            ingestion_on=self._ingestion_on,
            open_session=self._spark_session,
            settings=lambda: self.settings.watch,
            state_dir=lambda: self.state_dir,
            clock=self._clock,
        )

    def _ingestion_on(self, open_session: OpenSession) -> IngestionController:
        from lumos.core.controllers.import_controller import ImportTarget
        from lumos.core.controllers.ingestion_controller import IngestionController
        from lumos.core.store.history import HistoryRepository
        from lumos.feature.versioning.planning import earlier_states

        def target() -> ImportTarget:
            adapter = self._platform(None, writing=True)
            return ImportTarget(adapter, self._publisher(adapter), self._writer)

        def judge(old: LumosDataset | None, new: LumosDataset | None) -> tuple[Change, ...]:
            def earlier() -> list[LumosDataset]:
                urn = new.urn if new is not None else ""
                return earlier_states(lambda: HistoryRepository(self._reader).states(urn))

            return self._policy.judge(old, new, at=self._clock(), earlier=earlier)

        return IngestionController(
            entries=lambda: self.settings.sources,
            open_session=open_session,
            target=target,
            look_at_catalog=self._catalog_if_any,
            snapshots=lambda: self.snapshots,
            state_dir=lambda: self.state_dir,
            write_lock=self._write_lock,
            keep_report=self._keep_report,
            version_of=lambda urn: HistoryRepository(self._reader).current(urn),
            judge=judge,
            clock=self._clock,
        )

    @cached_property
    def sync(self) -> SyncController:
        from lumos.core.controllers.sync_controller import SyncController
        from lumos.core.platform.factory import PlatformFactory

        def source(writing: bool) -> tuple[MetadataPlatformInterface, StateDatabase]:
            database = self._writer if writing else self._reader
            return PlatformFactory.embedded_over(database), database

        return SyncController(
            source=source,
            target=self._sync_target,
            settings=lambda: self.settings.sync,
            source_names=lambda: tuple(entry.name for entry in self.settings.sources),
            write_lock=self._write_lock,
            keep_report=self._keep_report,
            clock=self._clock,
        )

    @cached_property
    def migrations(self) -> MigrationController:
        from lumos.core.controllers.migration_controller import MigrationController

        return MigrationController(
            snapshots=lambda: self.snapshots,
            diffs=lambda: self.diffs,
            importer=lambda name: self.importer(name, history=name == self.settings.platform),
            keeper=self._keeper,
            folder=lambda: self.state_dir / "migrations",
        )

    def _keeper(self, name: str) -> Keeper:
        """Return what tells how a catalog keeps things; no database is made for it."""
        from lumos.core.platform.factory import EMBEDDED, PlatformFactory

        if name == EMBEDDED or _is_database(name):
            return PlatformFactory.handler(EMBEDDED)
        return self._platform(name)

    def _sync_target(self, name: str, writing: bool) -> SyncTarget:
        from lumos.core.controllers.sync_controller import SyncTarget
        from lumos.core.errors import UsageError
        from lumos.core.models.base import sha256_of
        from lumos.core.platform.factory import EMBEDDED
        from lumos.core.redaction import looks_secret

        if name == EMBEDDED:
            raise UsageError(
                "sync reads the embedded catalog and writes another one",
                hint="give --output datahub, openmetadata, atlas, amundsen or sqlite:///FILE",
            )
        given = self.settings.platform_settings(name)
        place = {key: value for key, value in given.items() if not looks_secret(key)}
        # A dry run asks a catalog for what it can only, and makes no database.
        chosen = EMBEDDED if _is_database(name) and not writing else name
        platform = self._platform(chosen, writing=writing)
        return SyncTarget(platform, f"{platform.name} {sha256_of([name, place])}")

    @cached_property
    def engine(self) -> EngineController:
        from lumos.core.controllers.engine_controller import EngineController

        return EngineController(lambda: self.settings.spark, environment=self._environment)

    @cached_property
    def profiling(self) -> ProfileController:
        from lumos.core.controllers.profile_controller import ProfileController

        return ProfileController(
            entries=lambda: self.settings.sources,
            open_session=self._spark_session,
            catalog=lambda: self._platform(None),
            find=self._found_dataset,
            target=self._import_target,
            state_dir=lambda: self.state_dir,
            write_lock=self._write_lock,
            keep_report=self._keep_report,
            clock=self._clock,
        )

    def _found_dataset(self, reference: str) -> LumosDataset:
        return self.catalog.show(reference)

    def _import_target(self) -> ImportTarget:
        from lumos.core.controllers.import_controller import ImportTarget

        adapter = self._platform(None, writing=True)
        return ImportTarget(adapter, self._publisher(adapter), self._writer)

    @cached_property
    def demo(self) -> DemoController:
        from lumos.core.controllers.demo_controller import DemoController

        def open_project(folder: Path) -> Application:
            return Application(
                config=folder / "lumos.yaml",
                state_dir=folder / ".lumos",
                environment=self._environment,
                clock=self._clock,
            )

        return DemoController(open_project=open_project, open_session=self._spark_session)

    def use_settings(self, file: Path) -> None:
        """Take the settings from another file than the one given at first."""
        self._config = file
        for name in ("settings", "_policy", "alerts"):
            self.__dict__.pop(name, None)

    def entries_of(self, prefix: str) -> tuple[SourceEntry, ...]:
        """Return the source that a bare path stands for."""
        from lumos.core.settings import settings_from_mapping

        source = {key: _escaped(value) for key, value in self.source_of(prefix).items()}
        return settings_from_mapping({"sources": [source]}, self._environment).sources

    def source_of(self, prefix: str) -> dict[str, JsonValue]:
        """Return the settings of the source that a bare path or address stands for."""
        from lumos.feature.ingestion.source_addresses import source_mapping_of

        source = source_mapping_of(prefix)
        if source["type"] == "local":
            source["path"] = str(Path(str(source["path"])).expanduser().absolute())
        name = prefix.rstrip("/").rpartition("/")[2] or prefix
        return {"type": source.pop("type"), "name": name, **source}

    def _spark_session(self, tell: Callable[[str], None]) -> AbstractContextManager[SparkSession]:
        from lumos.spark.java import cache_folder
        from lumos.spark.session import spark_session

        return spark_session(
            self.settings.spark,
            environment=self._environment,
            cache_dir=cache_folder(self._environment),
            on_status=tell,
            on_notice=self._notice,
        )

    def _catalog_if_any(self, name: str | None = None) -> MetadataPlatformInterface | None:
        from lumos.core.errors import NoCatalogError

        try:
            return self._platform(name)
        except NoCatalogError:
            return None

    def importer(self, platform: str | None = None, *, history: bool = True) -> ImportController:
        """Return what imports snapshots into a platform, by default that of the settings.

        Without `history` no versions are recorded: those of the snapshot are kept as they are.
        """
        from lumos.core.controllers.import_controller import ImportController, ImportTarget
        from lumos.core.errors import NoCatalogError
        from lumos.core.store.checkpoints import CheckpointRepository

        def look() -> MetadataPlatformInterface | None:
            try:
                return self._platform(platform)
            except NoCatalogError:
                return None

        def target() -> ImportTarget:
            adapter = self._platform(platform, writing=True)
            publisher = self._publisher(adapter, history=history)
            return ImportTarget(adapter, publisher, self._writer, platform)

        return ImportController(
            open_snapshot=self.snapshots.opened,
            look=look,
            target=target,
            write_lock=self._write_lock,
            keep_report=self._keep_report,
            engines=self._engines,
            clock=self._clock,
            checkpoints=lambda: CheckpointRepository(self._writer),
        )

    @contextmanager
    def _write_lock(self, purpose: str) -> Iterator[None]:
        """Keep other writers out; what is to be told of the writing is told when it is over."""
        from lumos.core.store.state_lock import StateLock

        with StateLock(self.state_dir).acquire(purpose, LOCK_SECONDS):
            yield
        if self.settings.alerts.channels and "_writer" in self.__dict__:
            self.alerts.send_after_run(self._notice)

    @cached_property
    def alerts(self) -> AlertController:
        from lumos.core.controllers.alert_controller import AlertController
        from lumos.core.store.alerts import AlertRepository

        return AlertController(
            lambda: self.settings,
            reader=lambda: AlertRepository(self._reader),
            writer=lambda: AlertRepository(self._writer),
            clock=self._clock,
        )

    def _keep_report(self, report: RunReport) -> None:
        from lumos.core.store.runs import RunRepository

        RunRepository(self._writer).save(
            f"{report.started_at:%Y%m%dT%H%M%S%fZ} {report.operation}",
            report.as_json(),
            operation=report.operation,
            started_at=report.started_at,
            finished_at=report.finished_at,
        )

    @cached_property
    def _reader(self) -> StateDatabase:
        return self._opened(read_only=True)

    @cached_property
    def _writer(self) -> StateDatabase:
        return self._opened(read_only=False)

    def _opened(self, *, read_only: bool) -> StateDatabase:
        from lumos.core.store.database import StateDatabase

        url = self.settings.database_url
        place = url.get_secret_value() if url else self.state_dir / DATABASE_FILE
        return self._resources.enter_context(StateDatabase.open(place, read_only=read_only))

    @cached_property
    def _snapshot_store(self) -> SnapshotStore:
        from lumos.core.errors import ConfigurationError
        from lumos.core.store.snapshot_store import SnapshotStore

        if self.settings.snapshots.url is not None:
            raise ConfigurationError(
                "snapshots.url: this version keeps snapshots in a local folder",
                hint="set snapshots.path, or leave it out for the state folder",
            )
        return SnapshotStore(self.settings.snapshots.path or self.state_dir / "snapshots")

    def _platform(self, name: str | None, *, writing: bool = False) -> MetadataPlatformInterface:
        from lumos.core.errors import ConfigurationError
        from lumos.core.platform.factory import EMBEDDED, PlatformFactory

        chosen = name or self.settings.platform
        if _is_database(chosen):
            return self._other_catalog(chosen, writing=writing)
        given = self.settings.platform_settings(chosen)
        if chosen != EMBEDDED:
            return PlatformFactory.get_instance(chosen, given)
        if given:
            raise ConfigurationError(
                "platform_config.embedded: the embedded catalog has no settings of its own",
                hint="set database_url, or leave it out for the state folder",
            )
        return PlatformFactory.embedded_over(self._writer if writing else self._reader)

    def _other_catalog(self, url: str, *, writing: bool) -> MetadataPlatformInterface:
        """Return the embedded catalog over a database that is not this project's."""
        from lumos.core.platform.factory import PlatformFactory
        from lumos.core.store.database import StateDatabase

        opened = StateDatabase.open(url, read_only=not writing)
        return PlatformFactory.embedded_over(self._resources.enter_context(opened))

    def _history(self, database: StateDatabase, *, alerts: bool = True) -> AlertingHistory:
        from lumos.core.store.downstream import Downstream
        from lumos.feature.alerting.outbox_history import AlertingHistory
        from lumos.feature.alerting.planning import AlertPlanner

        planner = AlertPlanner(self.settings.alerts, Downstream(database)) if alerts else None
        return AlertingHistory(database, planner)

    def _versions(self, database: StateDatabase) -> VersionManager:
        from lumos.feature.versioning.version_service import VersionManager

        prefix = self.settings.cloud_version_prefix
        return VersionManager(
            self._history(database),
            cloud_version_prefix=prefix,
            policy=self._policy,
            clock=self._clock,
            author=self.author,
        )

    def _publisher(self, platform: MetadataPlatformInterface, *, history: bool = True) -> Publisher:
        from lumos.core.controllers.publishing import Publisher

        tracked = history and self.settings.features.schema_tracking
        return Publisher(
            platform,
            self._versions(self._writer) if tracked else None,
            database=self._writer,
            clock=self._clock,
            author=self.author,
        )

    def _describe_settings(self) -> str:
        file = self.settings.file
        if file is None:
            return "no lumos.yaml here; the defaults are used"
        if not self.settings.change_policy.exceptions:
            return f"{file} is valid"
        expired = len(self._policy.expired(self._clock()))
        told = f"; expired exceptions of the change policy: {expired}" if expired else ""
        return f"{file} is valid{told}"

    def _describe_platform(self) -> str:
        platform = self._platform(None)
        next(iter(platform.list(page_size=1)), None)
        return f"{platform.name} answers"
