"""Which snapshots stay."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumos.core.settings.retention import RetentionSettings
from lumos.core.store.manifest import SnapshotInfo
from lumos.core.store.retention import prunable
from lumos.core.store.snapshot_store import SnapshotStore
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
        assert max(info.stored_at for info in listed if info.stored_at) in {
            info.stored_at for info in rest
        }


def test_a_removed_snapshot_is_gone_with_its_folder(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path)
    first = store.write(sample_snapshot(2), at=AT)
    second = store.write(sample_snapshot(3), at=AT + timedelta(hours=1))

    assert store.remove(first.id)

    assert [info.id for info in store.list()] == [second.id]
    assert [path.name for path in tmp_path.iterdir()] == [second.id]
    assert not store.remove(first.id)


@pytest.mark.parametrize("rule", list(RetentionSettings.model_fields))
def test_a_rule_that_keeps_nothing_cannot_be_made(rule: str) -> None:
    with pytest.raises(ValueError, match="greater than or equal to 1"):
        RetentionSettings(**{rule: 0})
