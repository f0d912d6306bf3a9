"""The commands that take a catalog somewhere: snapshots, diff, import, migrate, sync."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from lumos.bootstrap.parts import Parts, is_database

if TYPE_CHECKING:
    from pathlib import Path

    from lumos.core.controllers.diff_controller import DiffController
    from lumos.core.controllers.following_sync import FollowingSync
    from lumos.core.controllers.import_controller import ImportController
    from lumos.core.controllers.import_memory import ImportMemory
    from lumos.core.controllers.import_target import ImportTarget
    from lumos.core.controllers.migration_controller import MigrationController
    from lumos.core.controllers.snapshot_controller import SnapshotController
    from lumos.core.controllers.snapshot_opening import SnapshotOpener
    from lumos.core.controllers.sync_controller import SyncController, SyncTarget
    from lumos.core.models import Contributor, LumosDataset
    from lumos.core.platform.fidelity import Keeper
    from lumos.core.platform.interface import MetadataPlatformInterface
    from lumos.core.store.database import StateDatabase
    from lumos.feature.snapshot.source import SnapshotSource


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
            engines=self._engines,
            clock=self._clock,
            retention=lambda: self.settings.snapshots.retention,
            trusted_keys=lambda: self.settings.trusted_key_files,
        )

    @cached_property
    def diffs(self) -> DiffController:
        from lumos.core.controllers.diff_controller import DiffController

        return DiffController(
            self._opener.opened_pair,
            engines=self._engines,
            clock=self._clock,
            policy=self._policy,
            moved_to=self._moved_to,
        )

    def _moved_to(self, source: str, target: str) -> Keeper | None:
        """Return what tells how the second of two catalogs keeps things; None for files."""
        if not all(self._opener.is_catalog(name) for name in (source, target)):
            return None
        return self._keeper(target)

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

    def importer(
        self,
        platform: str | None = None,
        *,
        history: bool = True,
        key: Path | None = None,
        is_own: bool = False,
    ) -> ImportController:
        """Return what imports snapshots into a platform, by default that of the settings.

        Without `history` no versions are recorded: those of the snapshot are kept as they are.
        Snapshots have to be signed with the public `key` or, without one, as the settings say;
        those that Lumos just made itself (`is_own`) need no signature.
        """
        from lumos.core.controllers.import_controller import ImportController
        from lumos.core.controllers.import_target import ImportTarget
        from lumos.core.errors import NoCatalogError
        from lumos.core.models.dataset_contributions import IMPORT
        from lumos.core.store.checkpoints import CheckpointRepository

        def opened(reference: str) -> SnapshotSource:
            return self.snapshots.opened_for_writing(reference, key)

        def look() -> MetadataPlatformInterface | None:
            try:
                return self._platform(platform)
            except NoCatalogError:
                return None

        def target() -> ImportTarget:
            adapter = self._platform(platform, writing=True, by=IMPORT)
            publisher = self._publisher(adapter, history=history)
            workers = self.settings.sync.workers
            return ImportTarget(
                adapter,
                publisher,
                self._writer,
                self._place(platform),
                workers=workers,
                memory=self._import_memory(platform or self.settings.platform),
            )

        return ImportController(
            open_snapshot=self.snapshots.opened if is_own else opened,
            look=look,
            target=target,
            write_lock=self._write_lock,
            keep_report=self._keep_report,
            engines=self._engines,
            clock=self._clock,
            checkpoints=lambda: CheckpointRepository(self._writer),
            own_versions=lambda: history and self.settings.features.schema_tracking,
        )

    def _import_memory(self, name: str) -> ImportMemory | None:
        """Return what is remembered of a catalog, unless it lies where its versions do."""
        from lumos.core.controllers.import_memory import ImportMemory

        if self._is_own(name):
            return None
        return ImportMemory(self._writer, self._place(name), clock=self._clock)

    @cached_property
    def migrations(self) -> MigrationController:
        from lumos.core.controllers.migration_controller import MigrationController
        from lumos.core.store.state_folder import MIGRATIONS

        return MigrationController(
            snapshots=lambda: self.snapshots,
            diffs=lambda: self.diffs,
            importer=lambda name: self.importer(
                name, history=self._counts_versions(name), is_own=True
            ),
            keeper=self._keeper,
            place_of=self._place,
            is_same=self._is_same,
            counts_versions=self._counts_versions,
            folder=lambda: self.state_dir / MIGRATIONS,
        )

    def _place(self, name: str | None) -> str:
        """Return what tells a catalog from others, also of the same kind; it holds no secret."""
        from lumos.core.platform.place import place_of

        name = name or self.settings.platform
        return place_of(name, self.settings.platform_settings(name))

    def _counts_versions(self, name: str) -> bool:
        """Tell whether versions of a catalog that is migrated to are counted here."""
        return name == self.settings.platform

    def _keeper(self, name: str) -> Keeper:
        """Return what tells how a catalog keeps things; no database is made for it."""
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
            write_lock=self._write_lock,
            keep_report=self._keep_report,
            take_in=take_in,
            clock=self._clock,
        )

    @property
    def _following_sync(self) -> FollowingSync | None:
        """What brings the catalog of the settings up to date; None where the state is it."""
        name = self.settings.platform
        return None if self._is_own(name) else lambda: self.sync.sync(name)

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
