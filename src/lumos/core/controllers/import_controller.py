"""Reading a snapshot into a catalog, so that it can be repeated and interrupted."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING

from lumos.core.controllers.cut_short import report_if_cut_short
from lumos.core.controllers.garbage import only_new_garbage
from lumos.core.controllers.import_checkpoint import ImportCheckpoint
from lumos.core.controllers.import_comparison import bulk_look_ups, compared_buckets
from lumos.core.controllers.import_run import ImportRun, written_only
from lumos.core.controllers.import_tally import ImportTally
from lumos.core.controllers.results import ImportResult
from lumos.core.platform.batches import batches
from lumos.core.platform.factory import EMBEDDED
from lumos.core.progress import SILENT, Progress
from lumos.core.run_report import RunRecorder, RunReport
from lumos.core.store.part_format import urn_of
from lumos.feature.snapshot.engine_choice import Engine
from lumos.feature.snapshot.import_plan import ImportMode

if TYPE_CHECKING:
    from lumos.core.controllers.import_checkpoint import Checkpoints
    from lumos.core.controllers.import_target import ImportTarget
    from lumos.core.controllers.publishing import Clock
    from lumos.core.platform.fidelity import FidelityReport
    from lumos.core.platform.interface import MetadataPlatformInterface
    from lumos.feature.snapshot.bucket_work import BucketEngine
    from lumos.feature.snapshot.engines import Engines
    from lumos.feature.snapshot.source import SnapshotSource

DEFAULT_BATCH = 500


class ImportController:
    """What `lumos import` does.

    Each batch is one transaction together with how far the import came, and everything written is
    an upsert: an interrupted import is finished by running it again. No more than a bucket of a
    snapshot is held at a time.
    """

    def __init__(
        self,
        *,
        open_snapshot: Callable[[str], SnapshotSource],
        look: Callable[[], MetadataPlatformInterface | None],
        target: Callable[[], ImportTarget],
        write_lock: Callable[[str], AbstractContextManager[None]],
        keep_report: Callable[[RunReport], None],
        engines: Engines,
        clock: Clock,
        checkpoints: Callable[[], Checkpoints] | None = None,
        own_versions: Callable[[], bool] = lambda: True,
    ) -> None:
        """Take the ways to the parts, so that a wrong input or a dry run touches no state.

        Args:
            open_snapshot: opens the snapshot that the user named.
            look: the catalog for reading only; None where there is none yet.
            target: the catalog for writing.
            write_lock: keeps other writers away.
            keep_report: stores what the run did.
            engines: who compares the snapshot with the catalog.
            clock: the time.
            checkpoints: keeps how far an interrupted import came; without it the next run looks
                at every dataset again.
            own_versions: whether the catalog's versions are counted here, for a dry run.
        """
        self._own_versions = own_versions
        self._checkpoints = checkpoints
        self._open_snapshot = open_snapshot
        self._look = look
        self._target = target
        self._write_lock = write_lock
        self._keep_report = keep_report
        self._engines = engines
        self._clock = clock

    def run(
        self,
        reference: str,
        *,
        mode: ImportMode = ImportMode.UPDATE,
        dry_run: bool = False,
        batch_size: int = DEFAULT_BATCH,
        restart: bool = False,
        engine: Engine = Engine.AUTO,
        tell: Callable[[str], None] = lambda _: None,
        planned: Callable[[FidelityReport], None] | None = None,
        progress: Progress = SILENT,
    ) -> ImportResult:
        """Bring the catalog up to what a snapshot says; datasets that it does not name stay.

        An import that was interrupted goes on where it stopped, unless `restart` is asked for or
        something else was written since. `planned` is told what becomes of each concept in a
        catalog other than Lumos's own, before anything is written to it.
        """
        tally = ImportTally(RunRecorder("import", started_at=self._clock()))
        source = self._open_snapshot(reference)
        source.require_whole()
        # Planning on Spark needs all of the catalog first: it never pays, but may be asked for.
        with self._engines.opened(engine, worth_spark=False, tell=tell) as worker:
            if dry_run:
                catalog = self._look()
                fidelity = _told(planned, source, catalog)
                self._rehearse(source, catalog, mode=mode, tally=tally, engine=worker)
                report = tally.recorder.finish(at=self._clock())
            else:
                with self._write_lock("import"), only_new_garbage():
                    target = self._target()
                    target.platform.reached()  # a wrong address is told once
                    fidelity = _told(planned, source, target.platform)
                    checkpoint = self._checkpoint(
                        source, mode, platform=target.place or target.platform.name
                    )
                    run = ImportRun(
                        target, mode, tally=tally, checkpoint=checkpoint, progress=progress
                    )
                    keep = partial(self._keep_cut_short, run)
                    with report_if_cut_short(tally.recorder, keep, clock=self._clock):
                        run.apply(source, batch_size, engine=worker, restart=restart)
                    tally.recorder.warnings(target.platform.remarks())
                    report = tally.recorder.finish(at=self._clock())
                    self._keep_report(report)
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

    def _keep_cut_short(self, run: ImportRun, report: RunReport) -> None:
        self._keep_report(report)
        run.keep_place()

    def _checkpoint(
        self, source: SnapshotSource, mode: ImportMode, *, platform: str
    ) -> ImportCheckpoint | None:
        if self._checkpoints is None:
            return None
        return ImportCheckpoint.of(
            self._checkpoints(), source, mode=mode, platform=platform, clock=self._clock
        )

    def _rehearse(
        self,
        source: SnapshotSource,
        catalog: MetadataPlatformInterface | None,
        *,
        mode: ImportMode,
        tally: ImportTally,
        engine: BucketEngine,
    ) -> None:
        own = self._own_versions()
        look_ups = bulk_look_ups(catalog, mode, source=source, engine=engine, own_versions=own)
        for bucket in compared_buckets(
            source, catalog, mode=mode, engine=engine, own_versions=own, look_ups=look_ups
        ):
            for lines in batches(bucket.lines, DEFAULT_BATCH):
                if look_ups:
                    look_ups.ahead(lines)
                for line in lines:
                    urn = urn_of(line).decode()
                    tally.count(urn, bucket.plan(line).action)
                    tally.count_edges(bucket.changes.pop(urn, ()))
            for changes in bucket.changes.values():
                tally.count_edges(written_only(changes))


def _told(
    planned: Callable[[FidelityReport], None] | None,
    source: SnapshotSource,
    catalog: MetadataPlatformInterface | None,
) -> FidelityReport | None:
    """Tell what becomes of each concept, where somebody listens and anything can become of it."""
    if planned is None or catalog is None or catalog.name == EMBEDDED:
        return None
    from lumos.feature.snapshot.fidelity_count import counted_fidelity

    report = counted_fidelity(source, catalog)
    planned(report)
    return report
