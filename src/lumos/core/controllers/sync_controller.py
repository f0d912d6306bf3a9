"""Bringing another catalog up to what Lumos knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from lumos.core.controllers.runs import report_if_cut_short
from lumos.core.errors import UsageError
from lumos.core.events import emit, running
from lumos.core.models import Contributor, ContributorKind, LumosDataset
from lumos.core.own_process import only_new_garbage
from lumos.core.progress import SILENT, Progress
from lumos.core.run_report import RunRecorder, RunReport
from lumos.core.store.catalog.contributions import ContributionTable
from lumos.core.store.sync_states import SyncStates
from lumos.feature.sync.former_names import under_former_names
from lumos.feature.sync.plan import SyncPlan
from lumos.feature.sync.removals import Removals
from lumos.feature.sync.results import SyncedKind, SyncResult
from lumos.feature.sync.sync_run import SyncRun
from lumos.feature.sync.tally import Ends, SyncTally, telling_how_far

if TYPE_CHECKING:
    from lumos.core.controllers.runs import BeginRun, Run
    from lumos.core.platform.fidelity import FidelityReport
    from lumos.core.platform.interface import MetadataPlatformInterface
    from lumos.core.run_report import Clock
    from lumos.core.store.database import StateDatabase
    from lumos.feature.sync.settings import SyncSettings


_OBJECTS_UNDER_WAY = 400_000
"""More than what the datasets consist of that are read, compared, converted and sent at a time."""


class TakeIn(Protocol):
    """Writes a dataset to the state as a contributor wants it to be."""

    def __call__(self, dataset: LumosDataset, *, by: Contributor) -> None: ...


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

    def __init__(
        self,
        *,
        source: Callable[[bool], tuple[MetadataPlatformInterface, StateDatabase]],
        target: Callable[[str, bool], SyncTarget],
        settings: Callable[[], SyncSettings],
        source_names: Callable[[], tuple[str, ...]],
        begin_run: BeginRun,
        take_in: TakeIn,
        clock: Clock,
    ) -> None:
        """Take the ways to the parts, so that a wrong input or a dry run touches no state.

        Args:
            source: the embedded catalog and its database, for writing if so asked.
            target: the catalog of a name, for writing if so asked.
            settings: how to sync.
            source_names: the sources of the settings.
            begin_run: keeps other writers away, and stores what the run did.
            take_in: writes a dataset to the state as people of a catalog want it to be.
            clock: the time.
        """
        self._take_in = take_in
        self._source = source
        self._target = target
        self._settings = settings
        self._source_names = source_names
        self._begin_run = begin_run
        self._clock = clock

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
        settings = self._settings()
        if max_removals is not None:
            settings = settings.model_copy(update={"max_removals": max_removals})
        tally = SyncTally(RunRecorder("sync", started_at=self._clock()))
        asked = _Asked(
            output,
            frozenset(sources),
            full=full,
            confirmed=max_removals is not None,
            planned=planned or _untold,
        )
        if dry_run:
            return self._synced(asked, settings, tally=tally, progress=progress)
        begun = self._begin_run("sync")
        with begun as run, only_new_garbage(after=_OBJECTS_UNDER_WAY), telling_how_far(tally):
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
        source, database = self._source(writing)
        target = self._target(asked.output, writing)
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
                    take_in=partial(self._take_in, by=people),
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

    def _check_sources(self, sources: tuple[str, ...]) -> None:
        if unknown := set(sources) - set(self._source_names()):
            raise UsageError(
                f"the settings have no source {', '.join(sorted(unknown))}",
                hint=f"they have {', '.join(self._source_names()) or 'none'}",
            )


def _found_by(sources: frozenset[str], database: StateDatabase) -> frozenset[str]:
    """Return the URNs of which some sources speak."""
    table = ContributionTable(database)
    kinds = (ContributorKind.SOURCE, ContributorKind.DECLARED)
    contributors = (Contributor(kind, name) for name in sources for kind in kinds)
    return frozenset(urn for each in contributors for urn, _ in table.found_states(each))


def _forget(_report: RunReport) -> None:
    """Keep no report of what was only tried out."""


def _untold(_fidelity: FidelityReport) -> None:
    """Do nothing."""
