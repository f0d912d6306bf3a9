"""What every command is made of: settings, state, catalogs, the session."""

from __future__ import annotations

import getpass
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from lumos.bootstrap.settings import LumosSettings
    from lumos.core.changes import ChangePolicy
    from lumos.core.controllers.alert_controller import AlertController
    from lumos.core.controllers.runs import Run
    from lumos.core.log_settings import LoggingSettings
    from lumos.core.models import Contributor
    from lumos.core.platform.interface import MetadataPlatformInterface
    from lumos.core.settings import RawSettings
    from lumos.core.store.catalog.catalog_tables import CatalogTables
    from lumos.core.store.database import StateDatabase
    from lumos.core.store.leases import Request
    from lumos.core.store.snapshots.snapshot_store import SnapshotStore
    from lumos.feature.alerting.outbox_history import AlertingHistory
    from lumos.feature.ingestion.state_writer import StateWriter
    from lumos.feature.versioning.publishing import Publisher
    from lumos.feature.versioning.version_service import VersionManager
    from lumos.spark.handles import SparkSession


def is_database(name: str) -> bool:
    """Return whether a platform is named by the address of a state database."""
    from lumos.core.store.database import is_url

    return is_url(name)


def _now() -> datetime:
    return datetime.now(UTC)


def _ignore(_told: object) -> None:
    pass


class Parts:
    """The settings of one project and what reads and writes its state."""

    def __init__(
        self,
        *,
        config: Path | None = None,
        state_dir: Path | None = None,
        environment: Mapping[str, str],
        clock: Callable[[], datetime] = _now,
        notice: Callable[[str], None] = _ignore,
        on_logging: Callable[[LoggingSettings], None] = _ignore,
    ) -> None:
        """Open the project of a settings file; nothing is read yet.

        Args:
            config: the settings file; None looks for `lumos.yaml` here.
            state_dir: instead of that of the settings.
            environment: the variables that settings may use.
            clock: the time.
            notice: is called with a line for people that is no error.
            on_logging: is called with the settings of logs, which only programs set up.
        """
        self._notice = notice
        self._on_logging = on_logging
        self._config = config
        self._given_state_dir = state_dir
        self._environment = environment
        self._clock = clock
        self._resources = ExitStack()
        self._run_resources = ExitStack()
        """What the run that goes on gives back when it ends."""
        self._adapters: dict[str, MetadataPlatformInterface] = {}
        self._adapters_lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._run_resources.close()
        self._resources.close()

    @cached_property
    def settings(self) -> LumosSettings:
        from lumos.bootstrap.settings import load_settings
        from lumos.core.changes.settings import ChangePolicySettings

        settings = load_settings(self._config, self._environment)
        self._on_logging(settings.logging)
        if "alerts" not in settings.unset_sections:
            self._check_alerts(settings)
        if unread := (*settings.without_effect, *self._check_types(settings)):
            file = settings.file or "the settings"
            self._notice(f"{file}: without effect in this version: {', '.join(unread)}")
        if settings.change_policy != ChangePolicySettings():
            from lumos.core.changes.policy_settings import policy_of

            # Reported with the other problems of the file, not halfway through.
            policy_of(settings.change_policy, settings)
        return settings

    @staticmethod
    def _check_types(settings: LumosSettings) -> tuple[str, ...]:
        """Refuse unknown types of sources; return those that nothing reads yet."""
        if not settings.sources:
            return ()
        from lumos.feature.ingestion.source_types import planned_types, type_problems

        if problems := [*type_problems(settings.sources)]:
            raise settings.refused(problems)
        return tuple(f"sources of type {name}" for name in planned_types(settings.sources))

    @staticmethod
    def _check_alerts(settings: LumosSettings) -> None:
        if problems := [*settings.alerts.problems()]:
            raise settings.refused(problems)

    @cached_property
    def _policy(self) -> ChangePolicy:
        from lumos.core.changes.policy_settings import policy_of

        return policy_of(self.settings.change_policy, self.settings)

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

    @cached_property
    def alerts(self) -> AlertController:
        from lumos.core.controllers.alert_controller import AlertController
        from lumos.core.store.alerts import AlertRepository

        return AlertController(
            lambda: self.settings.alerts,
            reader=lambda: AlertRepository(self._reader),
            writer=lambda: AlertRepository(self._writer),
            clock=self._clock,
        )

    @contextmanager
    def _begin_run(self, operation: str) -> Iterator[Run]:
        """Keep other writers out; alerts are sent when the write is over."""
        from lumos.core.controllers.runs import stored_run

        channels = self.settings.alerts.channels  # refused before anything is written
        request = self._lease_request(operation)
        database = self._writer
        self._prepare_state_folder()  # also where the database is elsewhere: the index is in it
        with (
            stored_run(database, operation, request=request, clock=self._clock) as run,
            self._run_resources,
        ):
            yield run
        if channels:
            self.alerts.send_after_run(self._notice)

    def _lease_request(self, purpose: str) -> Request:
        from lumos.core.store.leases import Request

        settings = self.settings
        return Request(purpose, settings.lock_seconds, settings.lease_seconds, self._notice)

    @cached_property
    def _reader(self) -> StateDatabase:
        return self._opened(read_only=True)

    @cached_property
    def _writer(self) -> StateDatabase:
        if not self.settings.database_url:
            self._prepare_state_folder()
        return self._opened(read_only=False)

    def _prepare_state_folder(self) -> None:
        from lumos.core.store.snapshots.snapshot_files import storing
        from lumos.core.store.state_folder import prepare_state_folder

        with storing(self.state_dir):
            prepare_state_folder(self.state_dir)

    def _opened(self, *, read_only: bool) -> StateDatabase:
        from lumos.core.store.database import StateDatabase

        self._mention_unused_state()
        opened = StateDatabase.open(self._state_address, read_only=read_only)
        return self._resources.enter_context(opened)

    def _mention_unused_state(self) -> None:
        """Say that the state in the current folder is not used by settings that lie elsewhere."""
        from lumos.core.settings.models import STATE_FOLDER
        from lumos.core.store.state_folder import DATABASE_FILE

        file = self.settings.file
        if file is None or self._state_address != file.parent / STATE_FOLDER / DATABASE_FILE:
            return
        address = file.parent / STATE_FOLDER / DATABASE_FILE
        here = Path(STATE_FOLDER) / DATABASE_FILE
        if here.exists() and not address.exists():
            self._notice(
                f"the state of {file} is kept in {address.parent}; the one in {here.parent} of this"
                f" folder is not used (to use it, give --state-dir {here.parent})"
            )

    @property
    def _state_address(self) -> str | Path:
        from lumos.core.store.state_folder import DATABASE_FILE

        url = self.settings.database_url
        return url.get_secret_value() if url else self.state_dir / DATABASE_FILE

    def _is_own(self, name: str) -> bool:
        """Return whether a catalog is the one of this project, by whatever address."""
        from lumos.core.platform.factory import EMBEDDED

        return self._is_same(name, EMBEDDED)

    def _is_same(self, one: str, other: str) -> bool:
        """Return whether two names mean the same catalog, also by the address of its database."""
        from lumos.core.platform.factory import EMBEDDED
        from lumos.core.store.same_database import same_database

        own = str(self._state_address)
        one, other = (own if name == EMBEDDED else name for name in (one, other))
        if one == other:
            return True
        databases = all(name == own or is_database(name) for name in (one, other))
        return databases and same_database(one, other)

    @cached_property
    def _snapshot_store(self) -> SnapshotStore:
        from lumos.core.errors import ConfigurationError
        from lumos.core.store.snapshots.snapshot_store import SnapshotStore
        from lumos.core.store.state_folder import SNAPSHOTS

        if self.settings.snapshots.url is not None:
            raise ConfigurationError(
                "snapshots.url: this version keeps snapshots in a local folder",
                hint="set snapshots.path, or leave it out for the state folder",
            )
        return SnapshotStore(self.settings.snapshots.path or self.state_dir / SNAPSHOTS)

    def _platform(
        self, name: str | None, *, writing: bool = False, by: Contributor | None = None
    ) -> MetadataPlatformInterface:
        """Return a catalog by name, or that of the settings.

        Args:
            name: the catalog.
            writing: whether it is going to be written.
            by: who says what is written, where the catalog keeps that.
        """
        from lumos.core.errors import ConfigurationError, UsageError
        from lumos.core.platform.factory import EMBEDDED, PlatformFactory

        if name is not None and not name.strip():
            raise UsageError(
                "the name of the catalog is empty",
                hint="is a variable of the command not set? Leave the option out for the catalog "
                "of the settings",
            )
        chosen = self.settings.platform if name is None else name
        if is_database(chosen):
            return self._other_catalog(chosen, writing=writing, by=by)
        given = self.settings.platform_settings(chosen)
        if chosen != EMBEDDED:
            try:
                return self._adapter(chosen, given)
            except ConfigurationError as error:
                if not given and error.hint is None:
                    error.hint = self._misspelt(chosen, known=PlatformFactory.names())
                raise
        if given:
            raise ConfigurationError(
                "platform_config.embedded: the embedded catalog has no settings",
                hint="set database_url, or leave it out for the state folder",
            )
        database = self._writer if writing else self._reader
        retention = self.settings.observations
        return PlatformFactory.embedded_over(database, contributor=by, retention=retention)

    def _adapter(self, name: str, given: RawSettings) -> MetadataPlatformInterface:
        """Return this project's adapter of a catalog, which is closed with the project."""
        from lumos.core.platform.factory import PlatformFactory

        with self._adapters_lock:  # a search opens several catalogs at once
            if name not in self._adapters:
                adapter = PlatformFactory.create(name, given)
                self._adapters[name] = adapter
                self._resources.callback(adapter.close)
            return self._adapters[name]

    def _misspelt(self, name: str, *, known: tuple[str, ...]) -> str:
        """Say where the settings of a catalog may have gone that has none."""
        from lumos.core.settings.problems import nearest

        near = nearest(name, sorted(set(self.settings.platform_config).difference(known)))
        return f"platform_config has no '{name}'" + (f", but '{near}'" if near else "")

    def _other_catalog(
        self, url: str, *, writing: bool, by: Contributor | None
    ) -> MetadataPlatformInterface:
        """Return the embedded catalog over a database that is not this project's."""
        from lumos.core.platform.factory import PlatformFactory
        from lumos.core.store.database import StateDatabase
        from lumos.core.store.leases import WRITE_STATE, acquire

        opened = StateDatabase.open(url, read_only=not writing)
        if writing:  # its own project may write to it at the same time
            database = self._run_resources.enter_context(opened)
            request = self._lease_request("a write from another project")
            lease = acquire(database, WRITE_STATE, request=request, clock=self._clock)
            self._run_resources.enter_context(lease)
        else:
            database = self._resources.enter_context(opened)
        return PlatformFactory.embedded_over(database, contributor=by)

    def _state_writer(self) -> StateWriter:
        from lumos.core.store.catalog.catalog_tables import CatalogTables
        from lumos.feature.ingestion.state_writer import StateWriter

        tracked = self.settings.features.schema_tracking
        return StateWriter(
            self._writer,
            CatalogTables(self._writer, retention=self.settings.observations),
            versions=self._versions(self._writer) if tracked else None,
            clock=self._clock,
            author=self.author,
        )

    def _state_if_any(self) -> CatalogTables | None:
        from lumos.core.errors import NoCatalogError
        from lumos.core.store.catalog.catalog_tables import CatalogTables

        try:
            return CatalogTables(self._reader)
        except NoCatalogError:
            return None

    def _catalog_if_any(self, name: str | None = None) -> MetadataPlatformInterface | None:
        from lumos.core.errors import NoCatalogError

        try:
            return self._platform(name)
        except NoCatalogError:
            return None

    def _history(self, database: StateDatabase, *, alerts: bool = True) -> AlertingHistory:
        from lumos.core.store.catalog.downstream import Downstream
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

    def _publisher(self, platform: MetadataPlatformInterface) -> Publisher:
        from lumos.feature.versioning.publishing import Publisher

        tracked = self.settings.features.schema_tracking
        return Publisher(
            platform,
            self._versions(self._writer) if tracked else None,
            database=self._writer,
            clock=self._clock,
            author=self.author,
        )
