"""Which snapshots a store keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lumos.core.settings.retention import RetentionSettings
    from lumos.core.store.manifest import SnapshotInfo


def prunable(
    snapshots: Sequence[SnapshotInfo], rules: RetentionSettings, *, now: datetime
) -> tuple[SnapshotInfo, ...]:
    """Return the snapshots that no rule keeps, oldest first.

    The newest one that can be read is always kept, since the latest state is told from it. One
    that cannot be read is kept too: what it held is for a person to decide on.
    """
    readable = [info for info in snapshots if info.problem is None and info.stored_at is not None]
    if not rules or not readable:
        return ()
    newest_first = sorted(readable, key=_moment, reverse=True)
    kept = {newest_first[0].id}
    if rules.keep_last:
        kept.update(info.id for info in newest_first[: rules.keep_last])
    if rules.keep_days:
        since = now - timedelta(days=rules.keep_days)
        kept.update(info.id for info in newest_first if _moment(info)[0] >= since)
    kept.update(_last_of_each(newest_first, rules.keep_daily, period=lambda at: at.date()))
    kept.update(
        _last_of_each(newest_first, rules.keep_weekly, period=lambda at: at.isocalendar()[:2])
    )
    kept.update(
        _last_of_each(newest_first, rules.keep_monthly, period=lambda at: (at.year, at.month))
    )
    return tuple(info for info in reversed(newest_first) if info.id not in kept)


def _last_of_each(
    newest_first: Iterable[SnapshotInfo],
    count: int | None,
    *,
    period: Callable[[datetime], object],
) -> set[str]:
    """Return the newest of each of the last periods in which there is any."""
    last: dict[object, str] = {}
    for info in newest_first:
        last.setdefault(period(_moment(info)[0]), info.id)
    return set(list(last.values())[: count or 0])


def _moment(info: SnapshotInfo) -> tuple[datetime, str]:
    if info.stored_at is None:
        raise ValueError("a snapshot that cannot be read has no time")
    return info.stored_at, info.id
