"""The report on a catalog, put together from what is stored."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

import lumos
from lumos.core.controllers.parts import snapshot_opener
from lumos.core.errors import StateError, UsageError
from lumos.core.models import Change, Urn
from lumos.core.platform.unreadable import reading_report
from lumos.core.run_report import RunReport
from lumos.core.store.history import HistoryRepository
from lumos.core.store.runs import RunRepository, RunState
from lumos.core.store.snapshots.snapshot_files import FilesForOthers, storing, write_atomically
from lumos.feature.extraction.catalog_report import (
    CatalogReport,
    ChangeSummary,
    LimitedList,
    ReportedVersion,
    SnapshotRef,
    UnreadableEntry,
)
from lumos.feature.extraction.inventory import (
    DEFAULT_REPORT_LIMITS,
    ReportLimits,
    inventory_of,
    limited_list,
)
from lumos.feature.snapshot.diff import diff_snapshots
from lumos.feature.snapshot.pair_diff import FurtherDiffs

if TYPE_CHECKING:
    from lumos.core.runtime.unit_of_work import UnitOfWork
    from lumos.core.store.runs import StoredRun
    from lumos.core.store.snapshots.manifest import SnapshotInfo

_RUNS_LOOKED_AT = 50


class ReportController:
    """What `lumos report` does."""

    def __init__(self, work: UnitOfWork, *, limits: ReportLimits = DEFAULT_REPORT_LIMITS) -> None:
        self._work = work
        self._platform = work.platform()
        self._clock = work.clock
        self._limits = limits

    def build(self) -> CatalogReport:
        """Return the state of the catalog now, and what changed between the newest snapshots."""
        snapshots = self._work.snapshot_store.list()
        changes = self._changes([info for info in snapshots if info.problem is None])
        since = self._time_of_previous(snapshots) if changes else None
        runs, cut_off = self._newest_of_each_operation()
        damaged = [f"snapshot {each.id}: {each.problem}" for each in snapshots if each.problem]
        warnings = [*damaged, *cut_off, *(text for report in runs for text in report.warnings)]
        now = self._clock()
        inventory = inventory_of(self._platform.list(), self._limits)
        unread = reading_report("report", self._platform.unreadable(), done=0, at=now)
        return CatalogReport(
            generated_at=now,
            lumos_version=lumos.__version__,
            catalog=self._platform.name,
            inventory=inventory,
            changes=changes,
            versions_since=since,
            versions=self._versions(since),
            unreadable=limited_list(
                (item for report in (unread, *runs) for item in _unreadable(report)),
                self._limits.findings,
            ),
            warnings=limited_list(dict.fromkeys(warnings), self._limits.findings),
        )

    def write(self, output: Path) -> CatalogReport:
        """Write the report as one HTML page, which is replaced only when the new one is whole.

        Raises:
            UsageError: the path is that of something else than a file.
            StorageFullError: the disk is full; an earlier file of that name is untouched.
            StateReadOnlyError: the file may not be written.
        """
        from lumos.feature.extraction.report_page import report_page

        target = Path(os.path.realpath(output))  # a link is written through, not replaced
        if target.exists() and not target.is_file():
            raise UsageError(f"{output} is not a file", hint="name a file, such as report.html")
        report = self.build()
        files = FilesForOthers()
        with storing(target):
            write_atomically(target, [report_page(report).encode()], files=files)
            files.sync_folder(target.parent)
        return report

    def _changes(self, snapshots: Sequence[SnapshotInfo]) -> ChangeSummary | None:
        if len(snapshots) < 2:  # noqa: PLR2004 - a comparison takes two
            return None
        previous, latest = snapshots[-2:]
        at, policy, opener = self._clock(), self._work.policy, snapshot_opener(self._work)
        found = diff_snapshots(
            opener.opened(previous.id),
            opener.opened(latest.id),
            diff_datasets=partial(policy.judge, at=at),
            further=FurtherDiffs(partial(policy.judge_edges, at=at)),
        )
        return ChangeSummary(
            previous=_reference(previous),
            latest=_reference(latest),
            levels={level.value: count for level, count in found.counts_by_level.items()},
            added=limited_list(found.added, self._limits.findings),
            removed=limited_list(found.removed, self._limits.findings),
            changed=len(found.changed),
            unobserved=len(found.unobserved),
            changes=limited_list(sorted(found.changes, key=_worst_first), self._limits.changes),
        )

    def _time_of_previous(self, snapshots: Sequence[SnapshotInfo]) -> datetime | None:
        """Return when the snapshot before the newest was stored.

        Where its clock was ahead, the time of an earlier one counts: rather show too many versions.
        """
        readable = [info for info in snapshots if info.problem is None]
        newest = readable[-1].stored_at
        times = [info.stored_at for info in readable[:-1] if info.stored_at is not None]
        return max((at for at in times if newest is None or at <= newest), default=None)

    def _versions(self, since: datetime | None) -> LimitedList[ReportedVersion]:
        history = HistoryRepository(self._work.reader)
        total, newest = history.since(since, limit=self._limits.findings, now=self._clock())
        return LimitedList(
            total=total,
            items=tuple(
                ReportedVersion(
                    dataset=Urn(urn),
                    version=version.version,
                    previous_version=version.previous_version,
                    timestamp=version.timestamp,
                    change_type=version.change_type,
                    backward_compatible=version.backward_compatible,
                    author=version.author,
                )
                for urn, version in newest
            ),
        )

    def _newest_of_each_operation(self) -> tuple[list[RunReport], list[str]]:
        """Return the newest report of each operation, and say which runs after it have none."""
        newest: dict[str, StoredRun] = {}
        cut_off: list[str] = []
        for run in RunRepository(self._work.reader).recent(_RUNS_LOOKED_AT, now=self._clock()):
            if run.report:
                newest.setdefault(run.operation, run)
            elif run.state is RunState.EXPIRED and run.operation not in newest:
                cut_off.append(
                    f"{run.operation}: the run that began {run.started_at:%Y-%m-%d %H:%M} UTC "
                    "was killed or paused, and its lease has ended"
                )
        return [_report_of(run) for run in newest.values()], cut_off


def _report_of(run: StoredRun) -> RunReport:
    try:
        return RunReport.model_validate(run.report)
    except ValidationError:
        raise StateError(
            f"the report of the run {run.id} is not readable by this Lumos",
            hint="upgrade Lumos, or run the operation again",
        ) from None


def _unreadable(report: RunReport) -> list[UnreadableEntry]:
    return [
        UnreadableEntry(
            item=outcome.item,
            reason=outcome.reason or "no reason given",
            code=outcome.code,
            hint=outcome.hint,
            operation=report.operation,
            at=report.finished_at,
        )
        for outcome in report.failed
    ]


def _reference(info: SnapshotInfo) -> SnapshotRef:
    return SnapshotRef(id=info.id, stored_at=info.stored_at, complete=info.complete)


def _worst_first(change: Change) -> tuple[int, bool, str, str, str]:
    return (-change.level.rank, not change.caution, change.dataset, change.path, change.rule)
