"""The commands that take a catalog somewhere: snapshots, diff, import, migrate, sync."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from lumos.bootstrap.parts import Parts, is_database

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from lumos.core.controllers.diff_controller import DiffController
    from lumos.core.controllers.import_controller import ImportController
    from lumos.core.controllers.migration_controller import MigrationController
    from lumos.core.controllers.snapshot_controller import SnapshotController
    from lumos.core.controllers.sync_controller import SyncController, SyncTarget
    from lumos.core.models import Contributor, LumosDataset
    from lumos.core.platform.fidelity import AdapterRef
    from lumos.core.platform.interface import MetadataPlatformInterface
    from lumos.core.store.database import StateDatabase
    from lumos.feature.importing.destination import Destination
    from lumos.feature.snapshot.opening import SnapshotOpener
    from lumos.feature.snapshot.source import SnapshotSource
    from lumos.feature.sync.following_sync import FollowingSync


class SnapshotCommands(Parts):
    """What moves and compares catalogs."""

    @cached_property
    def snapshots(self) -> SnapshotController:
        from lumos.core.controllers.snapshot_controller import SnapshotController
        from lumos.core.platform.factory import PlatformFactory

        return SnapshotController(
            self._snapshot_store,
            platform_of=self._platform,
            platform_names=PlatformFactory.names(),
            clock=self._clock,
            retention=lambda: self.settings.snapshots.retention,
            trusted_keys=lambda: self.settings.trusted_key_files,
        )

    @cached_property
    def diffs(self) -> DiffController:
        from lumos.core.controllers.diff_controller import DiffController

        return DiffController(
            self._opener.opened_pair,
            clock=self._clock,
            policy=self._policy,
            moved_to=self._moved_to,
        )

    def _moved_to(self, source: str, target: str) -> AdapterRef | None:
        """Return the adapter of the second of two catalogs, for its fidelity; None for files."""
        if not all(self._opener.is_catalog(name) for name in (source, target)):
            return None
        return self._adapter_ref(target)

    @cached_property
    def _opener(self) -> SnapshotOpener:
        from lumos.core.platform.factory import PlatformFactory
        from lumos.feature.snapshot.opening import SnapshotOpener

        return SnapshotOpener(
            self._snapshot_store,
            platform_of=self._platform,
            platform_names=PlatformFactory.names(),
            clock=self._clock,
        )

    def importer(self, platform: str | None = None, *, key: Path | None = None) -> ImportController:
        """Return what imports snapshots into a platform, by default that of the settings.

        Snapshots have to be signed with the public `key` or, without one, as the settings say.
        """

        def opened(reference: str) -> SnapshotSource:
            return self.snapshots.opened_for_writing(reference, key)

        configured = self.settings.platform
        name = configured if platform is None else platform
        if self._is_own(name) or self._is_same(name, configured):
            return self._importer(opened, self._state_destination(name))
        return self._importer(opened, self._catalog_destination(name))

    def _migration_importer(self, name: str) -> ImportController:
        """Return what brings into a catalog what Lumos just exported, which needs no signature."""
        is_own = self._is_own(name)
        destination = self._state_destination(name) if is_own else self._catalog_destination(name)
        return self._importer(self.snapshots.opened, destination)

    def _importer(
        self, open_snapshot: Callable[[str], SnapshotSource], destination: Destination
    ) -> ImportController:
        from lumos.core.controllers.import_controller import ImportController

        return ImportController(
            open_snapshot=open_snapshot,
            destination=destination,
            begin_run=self._begin_run,
            clock=self._clock,
        )

    def _state_destination(self, name: str) -> Destination:
        """Return the state, followed by the catalog of the settings where `name` is that."""
        from lumos.core.models.dataset_contributions import IMPORT
        from lumos.core.platform.factory import EMBEDDED
        from lumos.core.store.checkpoints import CheckpointRepository
        from lumos.feature.importing.destination import StateDestination
        from lumos.feature.versioning.publishing import StateTarget

        def target() -> StateTarget:
            adapter = self._platform(EMBEDDED, writing=True, by=IMPORT)
            return StateTarget(adapter, self._publisher(adapter), self._writer)

        return StateDestination(
            look=lambda: self._catalog_if_any(EMBEDDED),
            target=target,
            checkpoints=lambda: CheckpointRepository(self._writer),
            keeps_history=lambda: self.settings.features.schema_tracking,
            adapter_ref=lambda: self._lossy_adapter(name),
            sync=None if self._is_own(name) else self._following_sync,
            clock=self._clock,
        )

    def _catalog_destination(self, name: str) -> Destination:
        from lumos.core.models.dataset_contributions import IMPORT
        from lumos.feature.importing.destination import CatalogDestination
        from lumos.feature.importing.marks import ImportMarks
        from lumos.feature.importing.to_catalog import CatalogTarget

        def target() -> CatalogTarget:
            return CatalogTarget(
                self._platform(name, writing=True, by=IMPORT),
                ImportMarks(self._writer, self._place(name), clock=self._clock),
                self.settings.sync.workers,
            )

        return CatalogDestination(
            look=lambda: self._catalog_if_any(name),
            target=target,
            adapter_ref=lambda: self._lossy_adapter(name),
            clock=self._clock,
        )

    def _lossy_adapter(self, name: str) -> AdapterRef | None:
        """Return the adapter of a catalog, for its fidelity; None for the embedded one."""
        return None if self._is_own(name) or is_database(name) else self._platform(name)

    @cached_property
    def migrations(self) -> MigrationController:
        from lumos.core.controllers.migration_controller import MigrationController
        from lumos.core.store.state_folder import MIGRATIONS

        return MigrationController(
            snapshots=lambda: self.snapshots,
            diffs=lambda: self.diffs,
            importer=self._migration_importer,
            adapter_ref=self._adapter_ref,
            place_of=self._place,
            is_same=self._is_same,
            counts_versions=self._is_own,
            folder=lambda: self.state_dir / MIGRATIONS,
        )

    def _place(self, name: str | None) -> str:
        """Return an identifier of a catalog, unique among those of its kind, without secrets."""
        from lumos.core.platform.place import place_of

        name = name or self.settings.platform
        return place_of(name, self.settings.platform_settings(name))

    def _adapter_ref(self, name: str) -> AdapterRef:
        """Return the adapter of a catalog, for its fidelity; this opens no database."""
        from lumos.core.platform.factory import EMBEDDED, PlatformFactory

        if name == EMBEDDED or is_database(name):
            return PlatformFactory.handler(EMBEDDED)
        return self._platform(name)

    @cached_property
    def sync(self) -> SyncController:
        from lumos.core.controllers.sync_controller import SyncController
        from lumos.core.platform.factory import PlatformFactory

        def source(writing: bool) -> tuple[MetadataPlatformInterface, StateDatabase]:
            database = self._writer if writing else self._reader
            return PlatformFactory.embedded_over(database), database

        def take_in(dataset: LumosDataset, *, by: Contributor) -> None:
            self._state_writer().take_in(dataset, by=by)

        return SyncController(
            source=source,
            target=self._sync_target,
            settings=lambda: self.settings.sync,
            source_names=lambda: tuple(entry.name for entry in self.settings.sources),
            begin_run=self._begin_run,
            take_in=take_in,
            clock=self._clock,
        )

    @property
    def _following_sync(self) -> FollowingSync | None:
        """What brings the catalog of the settings up to date; None where the state is it."""
        name = self.settings.platform
        if self._is_own(name):
            return None
        return lambda progress: self.sync.sync(name, progress=progress)

    def _sync_target(self, name: str, writing: bool) -> SyncTarget:
        from lumos.core.controllers.sync_controller import SyncTarget
        from lumos.core.errors import UsageError
        from lumos.core.models.dataset_contributions import IMPORT
        from lumos.core.platform.factory import EMBEDDED

        if self._is_own(name):
            raise UsageError(
                "sync reads the embedded catalog and writes another one",
                hint="give --output datahub, openmetadata, atlas, amundsen, snowflake or sqlite:///FILE",
            )
        # A dry run asks a catalog for what it can only, and makes no database.
        chosen = EMBEDDED if is_database(name) and not writing else name
        platform = self._platform(chosen, writing=writing, by=IMPORT)
        return SyncTarget(platform, f"{platform.name} {self._place(name)}")
