"""Reading a snapshot into the state or into another catalog."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from lumos.core.controllers.results import ImportResult
from lumos.core.controllers.runs import report_if_cut_short
from lumos.core.events import running
from lumos.core.own_process import only_new_garbage
from lumos.core.progress import SILENT, Progress
from lumos.core.run_report import RunRecorder
from lumos.feature.importing.plan import ImportMode
from lumos.feature.importing.tally import ImportTally
from lumos.feature.sync.following_sync import with_sync

if TYPE_CHECKING:
    from lumos.core.controllers.runs import BeginRun
    from lumos.core.platform.fidelity import FidelityReport
    from lumos.core.run_report import Clock
    from lumos.feature.importing.destination import Destination
    from lumos.feature.snapshot.source import SnapshotSource

DEFAULT_BATCH = 500


class ImportController:
    """What `lumos import` does.

    The catalog of the settings gets what a snapshot says by way of the state and a sync; any other
    catalog by a plan and a sync. No more than a bucket of a snapshot is held at a time.
    """

    def __init__(
        self,
        *,
        open_snapshot: Callable[[str], SnapshotSource],
        destination: Destination,
        begin_run: BeginRun,
        clock: Clock,
    ) -> None:
        """Take the ways to the parts, so that a wrong input or a dry run touches no state.

        Args:
            open_snapshot: opens the snapshot that the user named.
            destination: where to write.
            begin_run: keeps other writers away, and stores what the run did.
            clock: the time.
        """
        self._open_snapshot = open_snapshot
        self._destination = destination
        self._begin_run = begin_run
        self._clock = clock

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
        source = self._open_snapshot(reference)
        source.require_whole()
        if dry_run:
            fidelity = self._told(planned, source)
            self._destination.rehearse(source, mode, tally=tally)
            report = tally.recorder.finish(at=self._clock())
        else:
            with self._begin_run("import") as kept, only_new_garbage():
                run = self._destination.begin(source, mode, tally=tally, progress=progress)
                fidelity = self._told(planned, source)
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
            lineage_edges=tally.edges,
            lineage_edges_removed=tally.removed_edges,
            fidelity=fidelity,
            report=report,
        )

    def _told(
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
