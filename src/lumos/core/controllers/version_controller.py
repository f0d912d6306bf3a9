"""Versions of datasets: shown, computed and applied in bulk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from lumos.core.changes.declared import declared_version_changes
from lumos.core.controllers.catalog_controller import CatalogController
from lumos.core.controllers.parts import following_sync
from lumos.core.controllers.snapshot_controller import SnapshotController
from lumos.core.errors import DamagedDocumentError
from lumos.core.events import running
from lumos.core.models import Bump, Change, Urn
from lumos.core.platform.batches import batches
from lumos.core.platform.factory import EMBEDDED
from lumos.core.platform.unreadable import Unreadable, outcomes
from lumos.core.progress import SILENT, Progress
from lumos.core.run_report import RunRecorder
from lumos.core.store.catalog.catalog_states import CatalogStates
from lumos.core.store.history import NewEntry
from lumos.core.store.snapshots.part_format import (
    dataset_item_of,
    dataset_of_line,
    hash_of,
    urn_of_line,
)
from lumos.feature.snapshot.pairs import aligned_buckets
from lumos.feature.sync.following_sync import with_sync
from lumos.feature.versioning.planning import VersionPlanner, is_removal
from lumos.feature.versioning.results import (
    ComputedVersion,
    CurrentVersion,
    VersionApplyResult,
    VersionCounts,
    VersionScanResult,
    VersionsResult,
)
from lumos.feature.versioning.scanning import ScannedVersion, VersionScan
from lumos.feature.versioning.sources import BATCH, GoneDatasets, SnapshotStates, StoredStates

if TYPE_CHECKING:
    from datetime import datetime

    from pydantic import JsonValue

    from lumos.core.models import LumosDataset
    from lumos.core.runtime.unit_of_work import UnitOfWork
    from lumos.core.store.history import HistoryRepository, KnownVersion
    from lumos.feature.snapshot.source import SnapshotSource
    from lumos.feature.versioning.models import VersionUpdateResult
    from lumos.feature.versioning.publishing import Transactional
    from lumos.feature.versioning.sources import VersionedStates

HISTORY = "history"
DEFAULT_LISTED = 1_000
_PAGE = 500
_COUNTED = {Bump.MAJOR: "major", Bump.MINOR: "minor", Bump.PATCH: "patch"}


@dataclass
class _Tally:
    """What a scan found so far; no more versions are held than are to be listed."""

    limit: int
    counts: dict[str, int] = field(default_factory=dict)
    listed: list[ComputedVersion] = field(default_factory=list)
    declared: list[Change] = field(default_factory=list)
    gone: int = 0
    outdated: int = 0
    damaged: list[Unreadable] = field(default_factory=list)

    def add(self, found: ScannedVersion) -> None:
        planned = found.planned
        self.count("first" if planned.is_first else _COUNTED[planned.bump])
        if self.limit and len(self.listed) >= self.limit:
            return
        version = planned.version
        self.listed.append(
            ComputedVersion(
                dataset=Urn(found.urn),
                version=version.version,
                previous_version=version.previous_version,
                cloud_version=version.cloud_version,
                bump=planned.bump.value,
                change_type=version.change_type,
                category=version.category.value if version.category else None,
                backward_compatible=version.backward_compatible,
                changes=len(planned.changes),
            )
        )

    def add_damaged(self, error: DamagedDocumentError) -> None:
        self.damaged.append(Unreadable(error.kind, error.name, error))

    def count(self, kind: str, number: int = 1) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + number

    def result(self, source: str, target: str, *, dry_run: bool) -> VersionScanResult:
        counts = VersionCounts(**self.counts)
        return VersionScanResult(
            source=source,
            target=target,
            dry_run=dry_run,
            counts=counts,
            gone=self.gone,
            outdated=self.outdated,
            versions=tuple(self.listed),
            omitted=counts.new - len(self.listed),
            declared=tuple(self.declared),
            failed=outcomes(self.damaged),
        )


class VersionController:
    """What `version show`, `compute` and `apply` do.

    A page of datasets is compared with the history by a fixed number of queries, and applied in
    one transaction: an interrupted run is finished by running it again.
    """

    def __init__(self, work: UnitOfWork, *, edited: bool = False) -> None:
        """Take the parts of a unit of work; with `edited`, accept edited documents."""
        self._work = work
        self._edited = edited
        self._planner = VersionPlanner(
            policy=work.policy, prefix=work.settings.cloud_version_prefix
        )

    def show(
        self, reference: str | None = None, *, limit: int = _PAGE, after: str = ""
    ) -> VersionsResult:
        """Return the version of one dataset with its cloud versions, or those of a page of all."""
        history = self._work.history(self._work.reader)
        if reference is None:
            page = history.currents_after(after, limit=limit, checked=True)
            known = tuple(CurrentVersion.of(each.urn, each.version) for each in page)
            return VersionsResult(datasets=known, total=history.count())
        urn = CatalogController(self._work).urn_of(reference)
        manager = self._work.versions(self._work.reader)
        version = manager.get_current_version(urn)
        if version is None:
            self._work.platform(EMBEDDED).get_dataset(
                urn
            )  # a dataset that is not there is not one without a version
        datasets = (CurrentVersion.of(urn, version),) if version else ()
        return VersionsResult(
            datasets=datasets, total=len(datasets), mapping=manager.get_version_mappings(urn)
        )

    def increment(
        self, reference: str, change_type: str, *, author: str | None = None
    ) -> VersionUpdateResult:
        """Add a version to a dataset by declaration: `SCHEMA_CHANGE`, `DATA_UPDATE`, ….

        Raises:
            VersionNotFoundError: the dataset has no version yet.
            PlatformError: the version is kept, and the catalog could not be brought up to date.
        """
        urn = CatalogController(self._work).urn_of(reference)
        work = self._work
        with work.begin_run("version"), work.writer.transaction():
            manager = work.versions(work.writer)
            result = manager.increment_version(urn, change_type, author=author)
        if (sync := following_sync(work)) is not None:
            sync(SILENT)
        return result

    @running("version compute")
    def compute(
        self,
        *,
        source: str | None = None,
        target: str | None = None,
        retire: bool = False,
        limit: int = DEFAULT_LISTED,
        progress: Progress = SILENT,
    ) -> VersionScanResult:
        """Return the versions that datasets would get; nothing is written.

        Args:
            source: the snapshot to compare with; the history if not given.
            target: the snapshot whose datasets are versioned; the state if not given.
            retire: also give versions to datasets that are gone.
            limit: how many versions to list; all of them if 0.
            progress: receives how far the scan is.
        """
        tally = _Tally(limit)
        states = self._states(target)
        progress.stage("comparing datasets", total=states.count(), unit="datasets")
        if source is not None:
            old = self._opened(source)
            new = self._as_snapshot(states)
            for found in self._between(old, new, retire=retire, at=states.at, tally=tally):
                tally.add(found)
            tally.damaged += getattr(new, "unreadable", ())
            return tally.result(old.name, states.name, dry_run=True)
        history = self._work.history(self._work.reader)
        for versions, done in self._against_history(states, history, retire=retire, tally=tally):
            for found in versions:
                tally.add(found)
            progress.advance(done)
        return tally.result(HISTORY, states.name, dry_run=True)

    @running("version apply")
    def apply(
        self,
        *,
        source: str | None = None,
        target: str | None = None,
        retire: bool = False,
        limit: int = DEFAULT_LISTED,
        batch_size: int = BATCH,
        alert: bool | None = None,
        progress: Progress = SILENT,
    ) -> VersionApplyResult:
        """Write the versions that datasets get, a batch in a transaction.

        What a snapshot holds has happened before: its owners are alerted only if `alert` says so.

        Args:
            source: a snapshot whose states are versioned first, those of the target after them.
            target: the snapshot whose datasets are versioned; the state if not given.
            retire: also give versions to datasets that are gone.
            limit: how many versions to list; all of them if 0.
            batch_size: how many datasets are versioned in one transaction.
            alert: whether alerts are made; of what the state holds now if not given.
            progress: receives how many datasets are committed.
        """
        recorder = RunRecorder("version apply", started_at=self._work.clock())
        tally = _Tally(limit)
        names = [source, target] if source else [target]
        steps = [self._states(name, batch_size) for name in names]  # a run would make a state
        with self._work.begin_run("version apply") as run:
            for states in steps:
                retires = retire and states is steps[-1]
                progress.stage("applying versions", total=states.count(), unit="datasets")
                alerts = alert if alert is not None else not states.declares
                written = self._writer(alerts=alerts)
                self._apply(states, written, retire=retires, tally=tally, run=(recorder, progress))
            for each in tally.damaged:
                recorder.failed(each.item, each.error)
            report = recorder.finish(at=self._work.clock())
            run.keep(report)
        report = with_sync(report, following_sync(self._work), progress=progress)
        found = tally.result(steps[0].name if source else HISTORY, steps[-1].name, dry_run=False)
        return VersionApplyResult(**dict(found), report=report)

    def _apply(
        self,
        states: VersionedStates,
        written: tuple[HistoryRepository, Transactional],
        *,
        retire: bool,
        tally: _Tally,
        run: tuple[RunRecorder, Progress],
    ) -> None:
        recorder, progress = run
        history, database = written
        pages = self._against_history(states, history, retire=retire, tally=tally)
        while True:
            with database.transaction():
                versions, done = next(pages, (None, 0))
                if versions is None:
                    return
                history.append_many(_entry(each) for each in versions)
            for each in versions:
                tally.add(each)
                recorder.done(each.urn)
            progress.advance(done)

    def _against_history(
        self, states: VersionedStates, history: HistoryRepository, *, retire: bool, tally: _Tally
    ) -> Iterator[tuple[list[ScannedVersion], int]]:
        """Yield the versions of each page, and how many datasets were looked at by then."""
        scan = VersionScan(
            planner=self._planner,
            history=history,
            at=states.at,
            author=self._work.author,
            check_declared=partial(self._check_declared, at=states.at) if states.declares else None,
        )
        ordered = not states.declares
        gone = GoneDatasets(lambda after: history.currents_after(after, limit=_PAGE))
        done = 0
        for page in states.pages():
            found = scan.page(page)
            urns = [*page.hashes]
            done += len(urns)
            tally.count("unchanged", found.unchanged)
            tally.outdated += len(found.outdated)
            tally.declared += found.declared
            for error in found.failed:
                tally.add_damaged(error)
            if ordered:
                missing = gone.before(urns, end=urns[-1])
                retires = retire and states.may_retire()
                found.versions += self._retired(missing, scan, retire=retires, tally=tally)
            yield found.versions, done
        tally.damaged += states.unreadable()
        if ordered:
            retires = retire and states.may_retire()
            for rest in batches(gone.before((), end=None), _PAGE):
                yield self._retired(rest, scan, retire=retires, tally=tally), done

    def _retired(
        self, missing: Iterable[KnownVersion], scan: VersionScan, *, retire: bool, tally: _Tally
    ) -> list[ScannedVersion]:
        lost = [known for known in missing if not self._is_retired(known, tally)]
        tally.gone += len(lost)
        if not retire or not lost:
            return []
        states = scan.history.current_states(
            [known.urn for known in lost], damaged=tally.add_damaged
        )
        versions = []
        for known in lost:
            if known.urn not in states:
                continue  # damaged
            planned = scan.planner.removal(
                known.version, states[known.urn], at=scan.at, author=scan.author
            )
            if planned:
                versions.append(ScannedVersion(known.urn, known.sequence + 1, planned))
        return versions

    def _is_retired(self, known: KnownVersion, tally: _Tally) -> bool:
        try:
            return is_removal(known.version)
        except DamagedDocumentError as error:
            tally.add_damaged(error)
            return True  # nothing is said of it

    def _between(
        self,
        old: SnapshotSource,
        new: SnapshotSource,
        *,
        retire: bool,
        at: datetime,
        tally: _Tally,
    ) -> Iterator[ScannedVersion]:
        """Yield the versions of a snapshot after those that another one says."""
        differing = 0
        for pair in aligned_buckets(old, new, section="datasets"):
            for before, after in pair.lines():
                known = {urn_of_line(line): line for line in before}
                for line in after:
                    other = known.pop(urn_of_line(line), None)
                    if other is not None and hash_of(other) == hash_of(line):
                        tally.declared += self._lowered(other, line, at=at)
                        continue
                    found = self._step(other, line, at=at, tally=tally)
                    if found:
                        differing += 1
                        yield found
                for line in known.values() if new.header.complete else ():
                    tally.gone += 1
                    if retire and (found := self._removal(line, at=at)):
                        yield found
        tally.count("unchanged", new.section_count("datasets") - differing)

    def _step(
        self, old: bytes | None, new: bytes, *, at: datetime, tally: _Tally
    ) -> ScannedVersion | None:
        planner, author = self._planner, self._work.author
        dataset = dataset_of_line(new)
        if old is None:
            planned = planner.first(dataset, at=at, author=author, first=dataset.version)
            return _uncounted(ScannedVersion(dataset.urn, 1, planned))
        state = dataset_of_line(old)
        current = planner.first(state, at=at, author=author, first=state.version).version
        successor = planner.next(current, state, new=dataset, at=at, author=author)
        if successor is None:
            return None
        tally.declared += self._check_declared(state, dataset, changes=successor.changes, at=at)
        return _uncounted(ScannedVersion(dataset.urn, 2, successor))

    def _lowered(self, old: bytes, new: bytes, *, at: datetime) -> tuple[Change, ...]:
        """Return what is wrong with the version that a dataset declares which is as it was."""
        if old == new or _version_in(old) == _version_in(new):
            return ()
        return self._check_declared(dataset_of_line(old), dataset_of_line(new), changes=(), at=at)

    def _check_declared(
        self, old: LumosDataset, new: LumosDataset, *, changes: Sequence[Change], at: datetime
    ) -> tuple[Change, ...]:
        """Return what is wrong with a declared version, unless the policy ignores that."""
        policy = self._planner.policy
        found = declared_version_changes(old, new, changes=changes, profile=policy.profile)
        judged = policy.adjusted(found, old=old, at=at)
        return tuple(each for each in judged if not (each.policy and each.policy.ignored))

    def _removal(self, line: bytes, *, at: datetime) -> ScannedVersion | None:
        planner, author = self._planner, self._work.author
        state = dataset_of_line(line)
        current = planner.first(state, at=at, author=author, first=state.version).version
        planned = planner.removal(current, state, at=at, author=author)
        return _uncounted(ScannedVersion(state.urn, 2, planned)) if planned else None

    def _writer(self, *, alerts: bool) -> tuple[HistoryRepository, Transactional]:
        """Return the histories for writing; breaking versions store alerts if asked."""
        return self._work.history(self._work.writer, alerts=alerts), self._work.writer

    def _opened(self, reference: str) -> SnapshotSource:
        return SnapshotController(self._work, edited=self._edited).opened_for_writing(reference)

    def _as_snapshot(self, states: VersionedStates) -> SnapshotSource:
        if isinstance(states, SnapshotStates):
            return states.source
        return self._opened(states.name)

    def _states(self, snapshot: str | None, batch: int = BATCH) -> VersionedStates:
        if snapshot is None:
            states = CatalogStates(self._work.reader)
            return StoredStates(states, name=EMBEDDED, at=self._work.clock(), batch=batch)
        return SnapshotStates(self._opened(snapshot), batch=batch)


def _version_in(line: bytes) -> JsonValue:
    return dataset_item_of(line).get("version")


def _entry(found: ScannedVersion) -> NewEntry:
    planned = found.planned
    return NewEntry(found.urn, found.sequence, planned.version, planned.dataset, planned.changes)


def _uncounted(found: ScannedVersion) -> ScannedVersion:
    """Leave out the cloud version, which only the history can count."""
    version = found.planned.version.model_copy(update={"cloud_version": None})
    return replace(found, planned=replace(found.planned, version=version))
