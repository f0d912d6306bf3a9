"""Versions by every name, and the calls of the product documents as they are written there."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lumos.core.changes.policy import ChangePolicy, PolicyException
from lumos.core.errors import VersionNotFoundError
from lumos.core.models import Bump, ChangeLevel, DatasetVersion, LumosDataset, Urn
from lumos.core.store.database import StateDatabase
from lumos.core.store.history import HistoryRepository
from lumos.feature.versioning.version_service import VersionManager

AT = datetime(2024, 1, 10, 9, tzinfo=UTC)
URN = Urn.of("kafka", "user_events")


def events(*columns: str, **parts: object) -> LumosDataset:
    fields = [dict(zip(("name", "type"), column.split(":"), strict=True)) for column in columns]
    return LumosDataset.from_json(
        {
            "urn": URN,
            "name": "user_events",
            "platform": "kafka",
            "schema": {"fields": fields},
            **parts,
        }
    )


FIRST = events("event_id:STRING", "user_id:STRING")
SECOND = events("event_id:STRING", "user_id:STRING", "session_id:STRING")
THIRD = events("event_id:STRING", "user_id:INT64", "session_id:STRING")


@pytest.fixture
def history(tmp_path: Path) -> Iterator[HistoryRepository]:
    with StateDatabase.open(tmp_path / "lumos.db") as database:
        yield HistoryRepository(database)


@pytest.fixture
def manager(history: HistoryRepository) -> VersionManager:
    manager = VersionManager(history, clock=lambda: AT + timedelta(days=9), author="jane")
    for day, state in enumerate((FIRST, SECOND, THIRD)):
        manager.record(None, state, at=AT + timedelta(days=day))
    return manager


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("1.1.0", "1.1.0"),
        ("latest", "2.0.0"),
        ("LATEST", "2.0.0"),
        ("current", "2.0.0"),
        ("previous", "1.1.0"),
        ("first", "1.0.0"),
        ("S-1", "1.0.0"),
        ("S-3", "2.0.0"),
    ],
)
def test_a_version_has_a_number_a_cloud_version_and_a_place(
    manager: VersionManager, name: str, number: str
) -> None:
    assert manager.find_version(URN, name) == number
    assert manager.compare_versions(URN, name, number) == ()


@pytest.mark.parametrize("name", ["S-9", "newest", "", "9.9.9", "v1.0.0"])
def test_an_unknown_name_is_answered_with_the_known_ones(
    manager: VersionManager, name: str
) -> None:
    with pytest.raises(VersionNotFoundError) as caught:
        manager.compare_versions(URN, "1.0.0", name)
    assert caught.value.hint == "it has 1.0.0, 1.1.0, 2.0.0"


def test_there_is_no_previous_version_of_the_only_one(history: HistoryRepository) -> None:
    manager = VersionManager(history)
    manager.record(None, FIRST, at=AT)
    with pytest.raises(VersionNotFoundError, match="no version previous"):
        manager.compare_versions(URN, "previous", "latest")


def test_the_calls_of_the_product_documents_work_as_they_are_written(
    manager: VersionManager,
) -> None:
    result = manager.increment_version(URN, "BREAKING_SCHEMA_CHANGE")
    assert (result.cloud_version, result.schema_version) == ("S-4", "3.0.0")
    assert result.previous_version == "2.0.0"
    assert (result.update.author, result.update.timestamp) == ("jane", AT + timedelta(days=9))
    assert [each.schema_version for each in manager.get_version_history(URN)] == [
        "1.0.0",
        "1.1.0",
        "2.0.0",
        "3.0.0",
    ]
    (change,) = manager.compare_versions(URN, v1="1.1.0", v2="2.0.0")
    assert change.path == "user_id"
    by_name = manager.increment_version(dataset_urn=URN, change_type="DATA_UPDATE")
    assert by_name.schema_version == "3.0.1"


def test_the_version_of_the_product_documents_is_made_by_its_keys() -> None:
    version = DatasetVersion.model_validate(
        {
            "cloud_version": "S-312",
            "schema_version": "2.1.0",
            "timestamp": AT,
            "author": "jane",
            "change_type": "SCHEMA_CHANGE",
            "change_details": {"column": "a"},
            "previous_version": "2.0.0",
        }
    )
    assert (version.schema_version, version.cloud_version) == ("2.1.0", "S-312")


def test_a_history_can_be_asked_for_its_newest_part(manager: VersionManager) -> None:
    newest = manager.get_version_history(URN, limit=2)
    assert [each.version for each in newest] == ["1.1.0", "2.0.0"]
    late = manager.get_version_history(URN, since=AT + timedelta(days=2))
    assert [each.version for each in late] == ["2.0.0"]
    assert manager.get_version_history(URN, since=AT + timedelta(days=3)) == ()


def test_a_policy_decides_what_a_change_does_to_the_number(history: HistoryRepository) -> None:
    lenient = ChangePolicy(rules={"type.changed": ChangeLevel.NON_BREAKING})
    manager = VersionManager(history, policy=lenient)
    manager.record(None, SECOND, at=AT)
    version = manager.record(None, THIRD, at=AT)
    assert version is not None
    assert (version.version, version.backward_compatible) == ("1.1.0", True)
    (change,) = manager.compare_versions(URN, "first", "latest")
    assert (change.level, change.bump) == (ChangeLevel.NON_BREAKING, Bump.MINOR)


def test_an_exception_of_a_policy_ends_with_the_time_of_the_version(
    history: HistoryRepository,
) -> None:
    until = PolicyException(pattern="user_events", reason="agreed", expires=AT.date())
    manager = VersionManager(history, policy=ChangePolicy(exceptions=(until,)))
    manager.record(None, SECOND, at=AT)
    excepted = manager.record(None, THIRD, at=AT)
    late = manager.record(None, SECOND, at=AT + timedelta(days=1))
    assert excepted is not None
    assert late is not None
    assert (excepted.version, late.version) == ("1.0.1", "2.0.0")


def test_a_dataset_that_is_gone_is_said_to_be_gone_once(manager: VersionManager) -> None:
    removed = manager.retire(THIRD, at=AT)
    assert removed is not None
    assert (removed.version, removed.change_type) == ("3.0.0", "DATASET_REMOVED")
    assert manager.retire(THIRD, at=AT) is None
    back = manager.record(None, THIRD, at=AT)
    assert back is not None
    assert back.change_type == "DATASET_ADDED"


def test_a_transitive_profile_judges_against_every_version_that_is_kept(
    history: HistoryRepository,
) -> None:
    without = events("event_id:STRING", "session_id:STRING")
    numbers = {}
    for profile in ("lumos", "lumos_transitive"):
        manager = VersionManager(history, policy=ChangePolicy(profile=profile))
        told = [manager.record(None, state, at=AT) for state in (SECOND, without, THIRD)]
        numbers[profile] = told[-1].version if told[-1] else None
        with history._database.transaction():
            history._database.execute("DELETE FROM versions")

    assert numbers == {"lumos": "2.1.0", "lumos_transitive": "3.0.0"}, "user_id came back as INT64"
