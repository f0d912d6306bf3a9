"""Which snapshots a store keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from lumos.core.store.documents import CLOCK_SLACK

if TYPE_CHECKING:
    from lumos.core.store.settings import RetentionSettings
    from lumos.core.store.snapshots.manifest import SnapshotInfo

    _Timed = tuple[SnapshotInfo, datetime]


def prunable(
    snapshots: Sequence[SnapshotInfo], rules: RetentionSettings, *, now: datetime
) -> tuple[SnapshotInfo, ...]:
    """Return the snapshots that no rule keeps, oldest first.

    The snapshot that was stored last is always kept, and so is the last one that can be read. One
    that cannot be read is kept too: what it held is for a person to decide on.

    Args:
        snapshots: all that are stored, in the order in which they were, as a store lists them.
        rules: what to keep.
        now: the time of this machine's clock, which may be wrong.
    """
    readable = [info for info in snapshots if info.problem is None and info.stored_at is not None]
    if not rules or not readable:
        return ()
    newest_first = _with_plausible_times(readable[::-1], now=now)
    kept = {readable[-1].id}
    if rules.keep_last:
        kept.update(info.id for info, _ in newest_first[: rules.keep_last])
    if rules.keep_days:
        kept.update(_of_last_days(newest_first, timedelta(days=rules.keep_days)))
    kept.update(_last_of_each(newest_first, rules.keep_daily, period=lambda at: at.date()))
    kept.update(
        _last_of_each(newest_first, rules.keep_weekly, period=lambda at: at.isocalendar()[:2])
    )
    kept.update(
        _last_of_each(newest_first, rules.keep_monthly, period=lambda at: (at.year, at.month))
    )
    return tuple(info for info in readable if info.id not in kept)


def from_the_future(info: SnapshotInfo, *, now: datetime) -> str | None:
    """Return a warning where a snapshot is dated later than the clock of this machine says."""
    if info.stored_at is None or info.stored_at <= now + CLOCK_SLACK:
        return None
    return (
        f"snapshot {info.id} is dated in the future: the clock was wrong when it was stored, or "
        f"is wrong now ({now:%Y-%m-%d %H:%M} UTC)"
    )


def _with_plausible_times(newest_first: Iterable[SnapshotInfo], *, now: datetime) -> list[_Timed]:
    """Give each snapshot a time that is no later than that of the one stored after it."""
    timed: list[_Timed] = []
    latest = now
    for info in newest_first:
        latest = min(latest, info.stored_at or latest)
        timed.append((info, latest))
    return timed


def _of_last_days(newest_first: Sequence[_Timed], days: timedelta) -> set[str]:
    """Return the snapshots of the last days before the newest, whatever time it is now.

    Where nothing was stored for longer than that before the newest, a clock may have jumped: the
    days before the one before count too.
    """
    starts = [moment for _, moment in newest_first[:2]]
    if len(starts) > 1 and starts[0] - starts[1] <= days:
        del starts[1]
    return {
        info.id
        for info, moment in newest_first
        if any(start - days <= moment <= start for start in starts)
    }


def _last_of_each(
    newest_first: Iterable[_Timed],
    count: int | None,
    *,
    period: Callable[[datetime], object],
) -> set[str]:
    """Return the newest of each of the last periods in which there is any."""
    last: dict[object, str] = {}
    for info, moment in newest_first:
        last.setdefault(period(moment), info.id)
    return set(list(last.values())[: count or 0])
