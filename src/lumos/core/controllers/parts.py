"""Parts of features, put together from a unit of work for controllers that share them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lumos.core.models import Contributor
    from lumos.core.progress import Progress
    from lumos.core.runtime.unit_of_work import UnitOfWork
    from lumos.feature.ingestion.state_writer import StateWriter
    from lumos.feature.snapshot.opening import SnapshotOpener
    from lumos.feature.sync.following_sync import FollowingSync
    from lumos.feature.sync.results import SyncResult
    from lumos.feature.versioning.publishing import StateTarget


def state_writer(work: UnitOfWork) -> StateWriter:
    """Return what writes datasets and their versions to the state, as the settings say."""
    from lumos.core.store.catalog.catalog_tables import CatalogTables
    from lumos.feature.ingestion.state_writer import StateWriter

    tracked = work.settings.features.schema_tracking
    return StateWriter(
        work.writer,
        CatalogTables(work.writer, retention=work.settings.observations),
        versions=work.versions(work.writer) if tracked else None,
        clock=work.clock,
        author=work.author,
    )


def state_target(work: UnitOfWork, by: Contributor) -> StateTarget:
    """Return the state for writing, as a catalog, for the statements of one contributor."""
    from lumos.core.platform.factory import EMBEDDED
    from lumos.feature.versioning.publishing import Publisher, StateTarget

    platform = work.platform(EMBEDDED, writing=True, by=by)
    tracked = work.settings.features.schema_tracking
    publisher = Publisher(
        platform,
        work.versions(work.writer) if tracked else None,
        database=work.writer,
        clock=work.clock,
        author=work.author,
    )
    return StateTarget(platform, publisher, work.writer)


def snapshot_opener(work: UnitOfWork, *, edited: bool = False) -> SnapshotOpener:
    """Return what opens snapshots and catalogs of a project by any name, also edited documents."""
    from lumos.core.platform.factory import PlatformFactory
    from lumos.feature.snapshot.opening import SnapshotOpener

    return SnapshotOpener(
        work.snapshot_store,
        platform_of=work.platform,
        platform_names=PlatformFactory.names(),
        clock=work.clock,
        edited=edited,
    )


def following_sync(work: UnitOfWork) -> FollowingSync | None:
    """Return what brings the catalog of the settings up to date; None where the state is it."""
    name = work.settings.platform
    if work.is_own(name):
        return None

    def sync(progress: Progress) -> SyncResult:
        from lumos.core.controllers.sync_controller import SyncController

        return SyncController(work).sync(name, progress=progress)

    return sync
