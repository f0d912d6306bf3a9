"""What one run, or one read, holds open: connections, adapters, leases."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from datetime import datetime

    from lumos.core.changes import ChangePolicy
    from lumos.core.models import Contributor
    from lumos.core.platform.fidelity import AdapterRef
    from lumos.core.platform.interface import MetadataPlatformInterface
    from lumos.core.runtime.project import Project
    from lumos.core.runtime.runs import Run
    from lumos.core.runtime.settings import LumosSettings
    from lumos.core.settings import RawSettings
    from lumos.core.store.catalog.catalog_tables import CatalogTables
    from lumos.core.store.database import StateDatabase
    from lumos.core.store.leases import LeaseRequest
    from lumos.core.store.snapshots.snapshot_store import SnapshotStore
    from lumos.feature.alerting.outbox_history import AlertingHistory
    from lumos.feature.versioning.version_service import VersionManager
    from lumos.spark.handles import SparkSession
    from lumos.spark.lazy_session import OpenSession, Tell


def is_database(name: str) -> bool:
    """Return whether a platform is named by the address of a state database."""
    from lumos.core.store.database import is_url

    return is_url(name)


class UnitOfWork:
    """The resources of one run or read of a project.

    Each is opened when it is first needed, and all are closed when the `with` block ends, also by
    an error. It is used once.
    """

    def __init__(self, project: Project, *, open_session: OpenSession | None = None) -> None:
        """Take the project, and the Spark of the caller where it keeps one for several runs."""
        self.project = project
        self._given_session = open_session
        self._resources = ExitStack()
        self._run_resources = ExitStack()
        """What is given back when the run ends, before the lease of this project's state."""
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
        with self._resources, self._run_resources:
            pass

    # The project.

    @property
    def settings(self) -> LumosSettings:
        return self.project.settings

    @property
    def policy(self) -> ChangePolicy:
        return self.project.policy

    @property
    def state_dir(self) -> Path:
        return self.project.state_dir

    @property
    def environment(self) -> Mapping[str, str]:
        return self.project.environment

    @property
    def author(self) -> str:
        return self.project.author

    def clock(self) -> datetime:
        return self.project.clock()

    def notice(self, text: str) -> None:
        """Print one line for people that is no error."""
        self.project.notice(text)

    # Spark.

    def spark_session(self, tell: Tell) -> AbstractContextManager[SparkSession]:
        """Start Spark for the length of a `with` block, or lend that of the caller."""
        if self._given_session is not None:
            return self._given_session(tell)
        from lumos.spark.java import cache_folder
        from lumos.spark.session import spark_session

        return spark_session(
            self.settings.spark,
            environment=self.environment,
            cache_dir=cache_folder(self.environment),
            on_status=tell,
            on_notice=self.notice,
        )

    # The state.

    @cached_property
    def reader(self) -> StateDatabase:
        """The state database, to be read.

        Raises:
            NoCatalogError: there is none yet.
        """
        return self._opened(read_only=True)

    @cached_property
    def writer(self) -> StateDatabase:
        """The state database, to be written; it is made where there is none."""
        if not self.settings.database_url:
            self.prepare_state_folder()
        return self._opened(read_only=False)

    def existing_state(self) -> StateDatabase:
        """Return the state database for writing; one that does not exist is not made.

        Raises:
            NoCatalogError: there is none.
        """
        _ = self.reader
        return self._opened(read_only=False)

    def prepare_state_folder(self) -> None:
        """Make the state folder where there is none."""
        from lumos.core.store.snapshots.snapshot_files import storing
        from lumos.core.store.state_folder import prepare_state_folder

        with storing(self.state_dir):
            prepare_state_folder(self.state_dir)

    def tables_if_any(self) -> CatalogTables | None:
        """Return the tables of the state, to be read; None where there is no state."""
        from lumos.core.errors import NoCatalogError
        from lumos.core.store.catalog.catalog_tables import CatalogTables

        try:
            return CatalogTables(self.reader)
        except NoCatalogError:
            return None

    def history(self, database: StateDatabase, *, alerts: bool = True) -> AlertingHistory:
        """Return the histories of datasets; breaking versions that it adds store `alerts`."""
        from lumos.core.store.catalog.downstream import Downstream
        from lumos.feature.alerting.outbox_history import AlertingHistory
        from lumos.feature.alerting.planning import AlertPlanner

        planner = AlertPlanner(self.settings.alerts, Downstream(database)) if alerts else None
        return AlertingHistory(database, planner)

    def versions(self, database: StateDatabase) -> VersionManager:
        """Return the versions of single datasets."""
        from lumos.feature.versioning.version_service import VersionManager

        return VersionManager(
            self.history(database),
            cloud_version_prefix=self.settings.cloud_version_prefix,
            policy=self.policy,
            clock=self.clock,
            author=self.author,
        )

    @cached_property
    def snapshot_store(self) -> SnapshotStore:
        from lumos.core.errors import ConfigurationError
        from lumos.core.store.snapshots.snapshot_store import SnapshotStore
        from lumos.core.store.state_folder import SNAPSHOTS

        if self.settings.snapshots.url is not None:
            raise ConfigurationError(
                "snapshots.url: this version keeps snapshots in a local folder",
                hint="set snapshots.path, or leave it out for the state folder",
            )
        return SnapshotStore(self.settings.snapshots.path or self.state_dir / SNAPSHOTS)

    # Leases.

    def lease_request(self, purpose: str) -> LeaseRequest:
        from lumos.core.store.leases import LeaseRequest

        settings = self.settings
        return LeaseRequest(purpose, settings.lock_seconds, settings.lease_seconds, self.notice)

    @contextmanager
    def exclude_writers(self, purpose: str) -> Iterator[None]:
        """Hold the lease to write, over a connection that nothing else is done with."""
        from lumos.core.store.leases import WRITE_STATE, acquire

        request = self.lease_request(purpose)
        with acquire(self.writer, WRITE_STATE, request=request, clock=self.clock):
            yield

    @contextmanager
    def begin_run(self, operation: str) -> Iterator[Run]:
        """Keep other writers out for the length of a `with` block, and store what the run did.

        Alerts that the run stored are sent when it is over.

        Raises:
            StateLockedError: another run goes on.
            LeaseLostError: this run was paused, or cut off from the database, until its lease
                ended.
        """
        from lumos.core.runtime.runs import stored_run

        alerts = self.settings.alerts  # refused before anything is written
        request = self.lease_request(operation)
        database = self.writer
        self.prepare_state_folder()  # also where the database is elsewhere: the index is in it
        with (
            stored_run(database, operation, request=request, clock=self.clock) as run,
            self._run_resources,
        ):
            yield run
        if alerts.channels:
            from lumos.core.store.alerts import AlertRepository
            from lumos.feature.alerting.sending import AlertSender

            sender = AlertSender.of(alerts, AlertRepository(database), self.clock)
            sender.send_after_run(self.notice)

    # Catalogs.

    def platform(
        self, name: str | None = None, *, writing: bool = False, by: Contributor | None = None
    ) -> MetadataPlatformInterface:
        """Return a catalog by name, or that of the settings.

        Args:
            name: the catalog.
            writing: whether it is going to be written.
            by: the contributor whose statements are written, where the catalog keeps that.
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
        database = self.writer if writing else self.reader
        retention = self.settings.observations
        return PlatformFactory.embedded_over(database, contributor=by, retention=retention)

    def platform_if_any(self, name: str | None = None) -> MetadataPlatformInterface | None:
        """Return a catalog to be read; None where it is a state that does not exist yet."""
        from lumos.core.errors import NoCatalogError

        try:
            return self.platform(name)
        except NoCatalogError:
            return None

    def is_own(self, name: str) -> bool:
        """Return whether a catalog is the one of this project, by whatever address."""
        from lumos.core.platform.factory import EMBEDDED

        return self.is_same(name, EMBEDDED)

    def is_same(self, one: str, other: str) -> bool:
        """Return whether two names mean the same catalog, also by the address of its database."""
        from lumos.core.platform.factory import EMBEDDED
        from lumos.core.store.same_database import same_database

        own = str(self.project.state_address)
        one, other = (own if name == EMBEDDED else name for name in (one, other))
        if one == other:
            return True
        databases = all(name == own or is_database(name) for name in (one, other))
        return databases and same_database(one, other)

    def place(self, name: str | None) -> str:
        """Return an identifier of a catalog, unique among those of its kind, without secrets."""
        from lumos.core.platform.place import place_of

        name = name or self.settings.platform
        return place_of(name, self.settings.platform_settings(name))

    def adapter_ref(self, name: str) -> AdapterRef:
        """Return the adapter of a catalog, for its fidelity; this opens no database."""
        from lumos.core.platform.factory import EMBEDDED, PlatformFactory

        if name == EMBEDDED or is_database(name):
            return PlatformFactory.handler(EMBEDDED)
        return self.platform(name)

    def _opened(self, *, read_only: bool) -> StateDatabase:
        from lumos.core.store.database import StateDatabase

        self._mention_unused_state()
        opened = StateDatabase.open(self.project.state_address, read_only=read_only)
        return self._resources.enter_context(opened)

    def _mention_unused_state(self) -> None:
        """Say that the state in the current folder is not used by settings that lie elsewhere."""
        from lumos.core.settings.models import STATE_FOLDER
        from lumos.core.store.state_folder import DATABASE_FILE

        file = self.settings.file
        if file is None:
            return
        address = file.parent / STATE_FOLDER / DATABASE_FILE
        here = Path(STATE_FOLDER) / DATABASE_FILE
        if self.project.state_address == address and here.exists() and not address.exists():
            self.notice(
                f"the state of {file} is kept in {address.parent}; the one in {here.parent} of this"
                f" folder is not used (to use it, give --state-dir {here.parent})"
            )

    def _adapter(self, name: str, given: RawSettings) -> MetadataPlatformInterface:
        """Return the one adapter that this unit of work has of a catalog."""
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
            request = self.lease_request("a write from another project")
            lease = acquire(database, WRITE_STATE, request=request, clock=self.clock)
            self._run_resources.enter_context(lease)
        else:
            database = self._resources.enter_context(opened)
        return PlatformFactory.embedded_over(database, contributor=by)
