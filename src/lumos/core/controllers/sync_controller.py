"""Bringing another catalog up to what Lumos knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from lumos.core.controllers.parts import state_writer
from lumos.core.errors import UsageError
from lumos.core.events import emit, running
from lumos.core.models import Contributor, ContributorKind
from lumos.core.models.dataset_contributions import IMPORT
from lumos.core.own_process import only_new_garbage
from lumos.core.platform.factory import EMBEDDED, PlatformFactory
from lumos.core.progress import SILENT, Progress
from lumos.core.run_report import RunRecorder, RunReport
from lumos.core.runtime.runs import report_if_cut_short
from lumos.core.runtime.unit_of_work import is_database
from lumos.core.store.catalog.contributions import ContributionTable
from lumos.core.store.sync_states import SyncStates
from lumos.feature.sync.former_names import under_former_names
from lumos.feature.sync.plan import SyncPlan
from lumos.feature.sync.removals import Removals
from lumos.feature.sync.results import SyncedKind, SyncResult
from lumos.feature.sync.sync_run import SyncRun
from lumos.feature.sync.tally import Ends, SyncTally, noting_how_far

if TYPE_CHECKING:
    from lumos.core.platform.fidelity import FidelityReport
    from lumos.core.platform.interface import MetadataPlatformInterface
    from lumos.core.runtime.runs import Run
    from lumos.core.runtime.unit_of_work import UnitOfWork
    from lumos.core.store.database import StateDatabase
    from lumos.feature.sync.settings import SyncSettings


_OBJECTS_UNDER_WAY = 400_000
"""More than what the datasets consist of that are read, compared, converted and sent at a time."""


class SyncTarget(NamedTuple):
    """A catalog to be brought up to date, and what its states are kept under."""

    platform: MetadataPlatformInterface
    key: str
    """Differs for two servers of the same kind; it holds no secret."""


class _Asked(NamedTuple):
    """What a caller wants to be sent."""

    output: str
    sources: frozenset[str]
    full: bool
    confirmed: bool
    """Whether it was said how many may be removed."""
    planned: Callable[[FidelityReport], None]


class SyncController:
    """What `lumos sync` does."""

    def __init__(self, work: UnitOfWork) -> None:
        self._work = work
        self._clock = work.clock

    @running("sync")
    def sync(
        self,
        output: str,
        *,
        sources: tuple[str, ...] = (),
        full: bool = False,
        dry_run: bool = False,
        max_removals: int | None = None,
        planned: Callable[[FidelityReport], None] | None = None,
        progress: Progress = SILENT,
    ) -> SyncResult:
        """Send to a catalog what changed since it was last brought up to date.

        Args:
            output: the catalog.
            sources: only datasets that these sources have; nothing is removed then.
            full: look at everything again, also at what did not change here.
            dry_run: only say what would happen.
            max_removals: instead of that of the settings.
            planned: is called before the first write, with what the catalog keeps of each concept.
            progress: receives how much was sent.

        Raises:
            UsageError: the catalog is the one that is read, or there is no such source.
            PlatformError: the catalog is out of reach; run again to go on.
        """
        self._check_sources(sources)
        settings = self._work.settings.sync
        if max_removals is not None:
            settings = settings.model_copy(update={"max_removals": max_removals})
        tally = SyncTally(RunRecorder("sync", started_at=self._clock()))
        asked = _Asked(
            output,
            frozenset(sources),
            full=full,
            confirmed=max_removals is not None,
            planned=planned or _ignore,
        )
        if dry_run:
            return self._synced(asked, settings, tally=tally, progress=progress)
        begun = self._work.begin_run("sync")
        with begun as run, only_new_garbage(after=_OBJECTS_UNDER_WAY), noting_how_far(tally):
            return self._synced(asked, settings, tally=tally, progress=progress, run=run)

    def _synced(
        self,
        asked: _Asked,
        settings: SyncSettings,
        *,
        tally: SyncTally,
        progress: Progress,
        run: Run | None = None,
    ) -> SyncResult:
        writing = run is not None
        database = self._work.writer if writing else self._work.reader
        source = PlatformFactory.embedded_over(database)
        target = self._target(asked.output, writing=writing)
        if writing:
            target.platform.reached()  # a wrong address is one line, not one for each dataset
        states = SyncStates(database, target.key)
        ends = Ends(source, under_former_names(target.platform, states.former_names()), states)
        plan = SyncPlan(
            ends,
            tally=tally,
            sources=asked.sources,
            found=_found_by(asked.sources, database),
            full=asked.full,
        )
        keep = run.keep if run is not None else _forget
        with report_if_cut_short(tally.recorder, keep, clock=self._clock):
            progress.stage("comparing with the last sync")
            plan.make()
            for each in source.unreadable():
                tally.of(each.kind).failed += 1  # nothing is removed then
                tally.recorder.failed(each.item, each.error)
            asked.planned(tally.fidelity.report(target.platform))
            if writing:
                people = Contributor(ContributorKind.PEOPLE, target.platform.name)
                SyncRun(
                    ends,
                    settings,
                    plan=plan,
                    tally=tally,
                    clock=self._clock,
                    take_in=partial(state_writer(self._work).take_in, by=people),
                    progress=progress,
                ).send()
            if not asked.sources:
                removals = Removals(
                    ends, settings, tally=tally, dry_run=not writing, confirmed=asked.confirmed
                )
                removals.remove(datasets=plan.datasets, edges=plan.edges)
        for kind, counted in tally.kinds.items():
            emit("sync.counted", target=target.platform.name, kind=kind, **asdict(counted))
        tally.recorder.warnings(target.platform.notices())
        report = tally.recorder.finish(at=self._clock())
        keep(report)
        return SyncResult(
            target=target.platform.name,
            dry_run=not writing,
            writes=tally.writes,
            same_there=tally.same_there,
            kinds={kind: SyncedKind(**asdict(each)) for kind, each in tally.kinds.items()},
            conflicts=tuple(sorted(tally.conflicts)),
            fidelity=tally.fidelity.report(target.platform),
            report=report,
        )

    def _target(self, name: str, *, writing: bool) -> SyncTarget:
        work = self._work
        if work.is_own(name):
            raise UsageError(
                "sync reads the embedded catalog and writes another one",
                hint="give --output datahub, openmetadata, atlas, amundsen, snowflake or "
                "sqlite:///FILE",
            )
        # A dry run asks a catalog for what it can only, and makes no database.
        chosen = EMBEDDED if is_database(name) and not writing else name
        platform = work.platform(chosen, writing=writing, by=IMPORT)
        return SyncTarget(platform, f"{platform.name} {work.place(name)}")

    def _check_sources(self, sources: tuple[str, ...]) -> None:
        known = tuple(entry.name for entry in self._work.settings.sources)
        if unknown := set(sources) - set(known):
            raise UsageError(
                f"the settings have no source {', '.join(sorted(unknown))}",
                hint=f"they have {', '.join(known) or 'none'}",
            )


def _found_by(sources: frozenset[str], database: StateDatabase) -> frozenset[str]:
    """Return the URNs of which some sources speak."""
    table = ContributionTable(database)
    kinds = (ContributorKind.SOURCE, ContributorKind.DECLARED)
    contributors = (Contributor(kind, name) for name in sources for kind in kinds)
    return frozenset(urn for each in contributors for urn, _ in table.found_states(each))


def _forget(_report: RunReport) -> None:
    """Keep no report of what was only tried out."""


def _ignore(_fidelity: FidelityReport) -> None:
    """Do nothing."""
