"""Which snapshots stay."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumos.core.store.settings import RetentionSettings
from lumos.core.store.snapshots.manifest import SnapshotInfo
from lumos.core.store.snapshots.retention import from_the_future, prunable
from lumos.core.store.snapshots.snapshot_order import STORE_FILES
from lumos.core.store.snapshots.snapshot_store import SnapshotStore
from snapshot_samples import AT, sample_snapshot

NOW = datetime(2026, 3, 31, 12, tzinfo=UTC)


def infos(*moments: datetime) -> list[SnapshotInfo]:
    return [
        SnapshotInfo(id=f"{moment:%Y%m%dT%H%M%SZ}-{number:08x}", stored_at=moment)
        for number, moment in enumerate(moments)
    ]


def kept(moments: list[datetime], **rules: int) -> list[datetime]:
    listed = infos(*moments)
    removed = {info.id for info in prunable(listed, RetentionSettings(**rules), now=NOW)}
    return [info.stored_at for info in listed if info.id not in removed and info.stored_at]


DAYS = [NOW - timedelta(days=days) for days in range(99, -1, -1)]


def test_the_last_few_stay() -> None:
    assert kept(DAYS, keep_last=3) == DAYS[-3:]


def test_all_of_the_last_days_stay() -> None:
    assert kept(DAYS, keep_days=5) == DAYS[-6:]


def test_the_last_of_each_day_week_and_month_stays() -> None:
    hours = [NOW - timedelta(hours=hours) for hours in range(24 * 20, -1, -1)]

    assert kept(hours, keep_daily=2) == [NOW.replace(day=30, hour=23), NOW]
    assert kept(hours, keep_weekly=2) == [NOW.replace(day=29, hour=23), NOW]
    assert kept(DAYS, keep_monthly=3) == [NOW.replace(month=1), NOW.replace(month=2, day=28), NOW]


AHEAD = timedelta(days=365)


def test_a_snapshot_stored_with_a_clock_ahead_does_not_count_as_the_newest() -> None:
    moments = [NOW - timedelta(days=2), NOW - timedelta(days=1) + AHEAD, NOW]

    assert kept(moments, keep_last=1) == [NOW]
    assert kept(moments, keep_days=1) == moments[1:]
    assert kept(moments, keep_daily=1) == [NOW]


def test_a_clock_that_is_ahead_now_leaves_the_last_days_before_the_newest() -> None:
    listed = infos(*DAYS)

    removed = prunable(listed, RetentionSettings(keep_days=7), now=NOW + AHEAD)

    assert [info.stored_at for info in listed if info not in removed] == DAYS[-8:]


def test_a_clock_that_jumped_ahead_before_the_newest_leaves_the_days_before_the_jump() -> None:
    listed = infos(*DAYS, NOW + AHEAD)

    removed = prunable(listed, RetentionSettings(keep_days=7), now=NOW + AHEAD)

    assert [info.stored_at for info in listed if info not in removed] == [*DAYS[-8:], NOW + AHEAD]


@pytest.mark.parametrize("rule", [*RetentionSettings.model_fields])
@pytest.mark.parametrize("now", [NOW - AHEAD, NOW, NOW + AHEAD])
@pytest.mark.parametrize("last", [NOW - AHEAD, NOW, NOW + AHEAD])
def test_the_one_stored_last_stays_whatever_the_clock_says(
    rule: str, now: datetime, last: datetime
) -> None:
    listed = infos(*DAYS, last)

    assert listed[-1] not in prunable(listed, RetentionSettings(**{rule: 1}), now=now)


def test_only_a_snapshot_beyond_the_slack_is_from_the_future() -> None:
    near, far = infos(NOW + timedelta(minutes=4), NOW + timedelta(minutes=6))

    assert from_the_future(near, now=NOW) is None
    assert near.id not in (told := from_the_future(far, now=NOW) or "")
    assert far.id in told


def test_rules_add_up() -> None:
    assert kept(DAYS, keep_last=2, keep_monthly=2) == [NOW.replace(month=2, day=28), *DAYS[-2:]]


def test_without_a_rule_everything_stays() -> None:
    assert kept(DAYS) == DAYS


def test_what_cannot_be_read_stays_and_does_not_count() -> None:
    damaged = SnapshotInfo(id="20260401T000000Z-00000000", problem="damaged")
    listed = [*infos(*DAYS[-3:]), damaged]

    removed = prunable(listed, RetentionSettings(keep_last=1), now=NOW)

    assert [info.stored_at for info in removed] == DAYS[-3:-1]


@given(
    st.lists(st.datetimes(datetime(2000, 1, 1), datetime(2040, 1, 1)), max_size=30),
    st.fixed_dictionaries(
        {},
        optional={name: st.integers(1, 5) for name in RetentionSettings.model_fields},
    ),
)
def test_the_newest_always_stays_and_pruning_again_changes_nothing(
    moments: list[datetime], rules: dict[str, int]
) -> None:
    listed = infos(*(moment.replace(tzinfo=UTC) for moment in moments))
    settings = RetentionSettings(**rules)

    removed = prunable(listed, settings, now=NOW)
    rest = [info for info in listed if info not in removed]

    assert prunable(rest, settings, now=NOW) == ()
    if listed:
        assert listed[-1] in rest


def test_a_removed_snapshot_is_gone_with_its_folder(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path)
    first = store.write(sample_snapshot(2), at=AT)
    second = store.write(sample_snapshot(3), at=AT + timedelta(hours=1))

    assert store.remove(first.id)

    assert [info.id for info in store.list()] == [second.id]
    assert {path.name for path in tmp_path.iterdir()} - STORE_FILES == {second.id}
    assert not store.remove(first.id)


@pytest.mark.parametrize("rule", list(RetentionSettings.model_fields))
def test_a_rule_that_keeps_nothing_cannot_be_made(rule: str) -> None:
    with pytest.raises(ValueError, match="greater than or equal to 1"):
        RetentionSettings(**{rule: 0})
