"""The sync that follows a command where `platform` names a catalog other than the state."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from lumos.core.errors import LumosError, notes_of
from lumos.core.progress import SILENT, Progress
from lumos.core.run_report import ItemOutcome, RunReport

if TYPE_CHECKING:
    from lumos.feature.sync.results import SyncResult

CATALOG_IS_BEHIND = "the catalog is not up to date"
"""The item of a report that says so."""
FollowingSync = Callable[[Progress], "SyncResult"]


def with_sync(
    report: RunReport, sync: FollowingSync | None, *, progress: Progress = SILENT
) -> RunReport:
    """Bring the catalog up to date, and return the report with what went wrong there.

    Args:
        report: of what was written to the state; that is kept, also when the sync fails.
        sync: brings the catalog up to date; None where the state is the catalog.
        progress: receives how much was sent.
    """
    if sync is None:
        return report
    try:
        sent = sync(progress).report
    except LumosError as error:
        failed: tuple[ItemOutcome, ...] = (
            ItemOutcome(
                item=CATALOG_IS_BEHIND,
                status="failed",
                reason="; ".join((error.message, *notes_of(error))),
                code=error.code,
                hint=error.hint,
                retryable=error.retryable,
            ),
        )
        return _joined(report, failed, warnings=(), finished=report)
    return _joined(report, sent.failed, warnings=sent.warnings, finished=sent)


def _joined(
    report: RunReport,
    failed: tuple[ItemOutcome, ...],
    *,
    warnings: tuple[str, ...],
    finished: RunReport,
) -> RunReport:
    counts = report.counts.model_copy(update={"failed": report.counts.failed + len(failed)})
    return report.model_copy(
        update={
            "counts": counts,
            "items": (*report.items, *failed),
            "warnings": (*report.warnings, *warnings),
            "finished_at": finished.finished_at,
        }
    )
