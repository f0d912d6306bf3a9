"""Reading a snapshot into the state or into another catalog."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from lumos.core.controllers.parts import following_sync, state_target
from lumos.core.controllers.results import ImportResult
from lumos.core.controllers.snapshot_controller import SnapshotController
from lumos.core.events import running
from lumos.core.models.dataset_contributions import IMPORT
from lumos.core.own_process import only_new_garbage
from lumos.core.platform.factory import EMBEDDED
from lumos.core.progress import SILENT, Progress
from lumos.core.run_report import RunRecorder
from lumos.core.runtime.runs import report_if_cut_short
from lumos.core.runtime.unit_of_work import is_database
from lumos.core.store.checkpoints import CheckpointRepository
from lumos.feature.importing.destination import (
    CatalogDestination,
    Destination,
    StateDestination,
)
from lumos.feature.importing.marks import ImportMarks
from lumos.feature.importing.plan import ImportMode
from lumos.feature.importing.tally import ImportTally
from lumos.feature.importing.to_catalog import CatalogTarget
from lumos.feature.sync.following_sync import with_sync

if TYPE_CHECKING:
    from pathlib import Path

    from lumos.core.platform.fidelity import AdapterRef, FidelityReport
    from lumos.core.runtime.unit_of_work import UnitOfWork
    from lumos.feature.snapshot.source import SnapshotSource

DEFAULT_BATCH = 500


class ImportController:
    """What `lumos import` does.

    The catalog of the settings gets what a snapshot says by way of the state and a sync; any other
    catalog by a plan and a sync. No more than a bucket of a snapshot is held at a time.
    """

    def __init__(
        self,
        work: UnitOfWork,
        platform: str | None = None,
        *,
        key: Path | None = None,
        edited: bool = False,
        migrating: bool = False,
    ) -> None:
        """Import into a platform, by default that of the settings.

        Args:
            work: what the import reads and writes.
            platform: the catalog.
            key: the file of a public key that snapshots have to be signed with; without one, as
                the settings say.
            edited: accept a document whose content does not match its checksum.
            migrating: whether Lumos just exported the snapshot itself. It then needs no signature,
                and goes into the catalog itself, also where that is the catalog of the settings.
        """
        self._work = work
        self._clock = work.clock
        self._key = key
        self._edited = edited
        self._migrating = migrating
        self._destination = _destination_of(work, platform, migrating=migrating)

    @running("import")
    def run(
        self,
        reference: str,
        *,
        mode: ImportMode = ImportMode.UPDATE,
        dry_run: bool = False,
        batch_size: int = DEFAULT_BATCH,
        restart: bool = False,
        planned: Callable[[FidelityReport], None] | None = None,
        progress: Progress = SILENT,
    ) -> ImportResult:
        """Bring the catalog up to what a snapshot says; datasets that it does not name stay.

        An import into the state that was interrupted goes on where it stopped, unless `restart` is
        asked for or something else was written since. For a catalog other than Lumos's own,
        `planned` is called before the first write with how well the catalog keeps each concept.
        """
        tally = ImportTally(RunRecorder("import", started_at=self._clock()))
        source = self._opened(reference)
        source.require_whole()
        if dry_run:
            fidelity = self._report_fidelity(planned, source)
            self._destination.rehearse(source, mode, tally=tally)
            report = tally.recorder.finish(at=self._clock())
        else:
            with self._work.begin_run("import") as kept, only_new_garbage():
                run = self._destination.begin(source, mode, tally=tally, progress=progress)
                fidelity = self._report_fidelity(planned, source)
                with report_if_cut_short(tally.recorder, kept.keep, clock=self._clock):
                    run.apply(source, batch_size, restart=restart)
                report = tally.recorder.finish(at=self._clock())
                kept.keep(report)
            report = with_sync(report, self._destination.sync, progress=progress)
        return ImportResult(
            dry_run=dry_run,
            created=tuple(sorted(tally.created)),
            updated=tuple(sorted(tally.updated)),
            unchanged=tally.unchanged,
            skipped=tally.skipped,
            resumed=tally.resumed,
            breaking=tally.breaking,
            lineage_edges=tally.edges,
            lineage_edges_removed=tally.removed_edges,
            fidelity=fidelity,
            report=report,
        )

    def _opened(self, reference: str) -> SnapshotSource:
        snapshots = SnapshotController(self._work, edited=self._edited)
        if self._migrating:
            return snapshots.opened(reference)
        return snapshots.opened_for_writing(reference, self._key)

    def _report_fidelity(
        self, planned: Callable[[FidelityReport], None] | None, source: SnapshotSource
    ) -> FidelityReport | None:
        """Report what the catalog keeps of each concept, where a caller wants to know."""
        adapter_ref = self._destination.adapter_ref() if planned is not None else None
        if planned is None or adapter_ref is None:
            return None
        from lumos.feature.snapshot.fidelity_count import counted_fidelity

        report = counted_fidelity(source, adapter_ref)
        planned(report)
        return report


def _destination_of(work: UnitOfWork, platform: str | None, *, migrating: bool) -> Destination:
    """Return where an import into a platform writes to, by default that of the settings.

    The catalog of the settings is filled by way of the state, but not in a migration.
    """
    configured = work.settings.platform
    name = configured if platform is None else platform
    is_own = work.is_own(name)

    def adapter_ref() -> AdapterRef | None:
        return None if is_own or is_database(name) else work.platform(name)

    if is_own or (not migrating and work.is_same(name, configured)):
        return StateDestination(
            look=lambda: work.platform_if_any(EMBEDDED),
            target=lambda: state_target(work, IMPORT),
            checkpoints=lambda: CheckpointRepository(work.writer),
            keeps_history=lambda: work.settings.features.schema_tracking,
            adapter_ref=adapter_ref,
            sync=None if is_own else following_sync(work),
            clock=work.clock,
        )

    def target() -> CatalogTarget:
        return CatalogTarget(
            work.platform(name, writing=True, by=IMPORT),
            ImportMarks(work.writer, work.place(name), clock=work.clock),
            work.settings.sync.workers,
        )

    return CatalogDestination(
        look=lambda: work.platform_if_any(name),
        target=target,
        adapter_ref=adapter_ref,
        clock=work.clock,
    )
