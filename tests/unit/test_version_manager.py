from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from lumos.core.changes import diff_datasets
from lumos.core.errors import VersionNotFoundError
from lumos.core.models import LumosDataset, SemanticVersion, Urn, VersionCategory, with_parts
from lumos.core.store.database import StateDatabase
from lumos.core.store.history import HistoryRepository
from lumos.feature.versioning.models import DatasetVersion, VersionMapping
from lumos.feature.versioning.version_service import VersionManager
from strategies import datasets

AT = datetime(2024, 1, 10, 9, tzinfo=UTC)
URN = Urn.of("kafka", "user_events")


def _events(*columns: str, **parts: object) -> LumosDataset:
    fields: list[JsonValue] = []
    for column in columns:
        name, kind = column.split(":")
        fields.append({"name": name, "type": kind})
    return LumosDataset.model_validate(
        {
            "urn": URN,
            "name": "user_events",
            "platform": "kafka",
            "schema": {"fields": fields},
            **parts,
        }
    )


FIRST = _events("event_id:STRING", "user_id:STRING")
SECOND = _events("event_id:STRING", "user_id:STRING", "session_id:STRING")
THIRD = _events("event_id:STRING", "user_id:INT64", "session_id:STRING")


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StateDatabase]:
    with StateDatabase.open(tmp_path_factory.mktemp("state") / "lumos.db") as opened:
        yield opened


@pytest.fixture
def history(database: StateDatabase) -> HistoryRepository:
    return _empty_history(database)


def _empty_history(database: StateDatabase) -> HistoryRepository:
    with database.transaction():
        database.execute("DELETE FROM changes", {})
        database.execute("DELETE FROM versions", {})
    return HistoryRepository(database)


@pytest.fixture
def manager(history: HistoryRepository) -> VersionManager:
    return VersionManager(history)


def _numbers(manager: VersionManager) -> list[str]:
    return [version.version for version in manager.get_version_history(URN)]


def test_the_history_of_the_product_documents_comes_out_as_written(
    manager: VersionManager,
) -> None:
    states = [FIRST, SECOND, THIRD]
    for day, (old, new) in enumerate(zip([None, *states], states, strict=False)):
        manager.record(old, new, at=AT + timedelta(days=day), author="jane")
    first, second, third = manager.get_version_history(URN)
    assert first == DatasetVersion(
        version="1.0.0",
        timestamp=AT,
        author="jane",
        cloud_version="S-1",
        fields=("event_id", "user_id"),
    )
    assert second == DatasetVersion(
        version="1.1.0",
        timestamp=AT + timedelta(days=1),
        author="jane",
        change_type="COLUMN_ADDED",
        category=VersionCategory.SCHEMA_CHANGE,
        change_details={"column": "session_id", "type": "STRING"},
        backward_compatible=True,
        previous_version="1.0.0",
        cloud_version="S-2",
    )
    assert third == DatasetVersion(
        version="2.0.0",
        timestamp=AT + timedelta(days=2),
        author="jane",
        change_type="COLUMN_TYPE_CHANGED",
        category=VersionCategory.SCHEMA_CHANGE,
        change_details={"column": "user_id", "old_type": "STRING", "new_type": "INT64"},
        backward_compatible=False,
        previous_version="1.1.0",
        cloud_version="S-3",
    )
    assert manager.get_current_version(URN) == third


def test_recording_again_neither_renumbers_nor_forks(manager: VersionManager) -> None:
    manager.record(None, FIRST, at=AT)
    manager.record(FIRST, SECOND, at=AT)
    assert manager.record(FIRST, SECOND, at=AT) is None
    assert manager.record(None, SECOND, at=AT) is None
    assert _numbers(manager) == ["1.0.0", "1.1.0"]


def test_an_outdated_old_state_does_not_hide_what_changed_since(manager: VersionManager) -> None:
    manager.record(None, FIRST, at=AT)
    manager.record(FIRST, THIRD, at=AT)
    version = manager.record(FIRST, FIRST, at=AT)
    assert version is not None
    assert (version.version, version.previous_version) == ("3.0.0", "2.0.0")


def test_observations_make_no_version(manager: VersionManager) -> None:
    manager.record(None, FIRST, at=AT)
    observed = with_parts(FIRST, statistics={"row_count": 7}, version="9.9.9")
    assert manager.record(FIRST, observed, at=AT) is None


def test_a_known_state_without_history_is_recorded_before_the_change_to_it(
    manager: VersionManager, history: HistoryRepository
) -> None:
    version = manager.record(FIRST, THIRD, at=AT, author="jane")
    assert version is not None
    assert version.version == "2.0.0"
    assert _numbers(manager) == ["1.0.0", "2.0.0"]
    assert history.dataset_at(URN, "1.0.0") == FIRST


def test_an_unchanged_dataset_without_history_begins_one(manager: VersionManager) -> None:
    version = manager.record(FIRST, FIRST, at=AT)
    assert version is not None
    assert version.version == "1.0.0"


def test_the_changes_of_a_version_are_kept_with_it(
    manager: VersionManager, history: HistoryRepository
) -> None:
    manager.record(None, FIRST, at=AT)
    manager.record(FIRST, SECOND, at=AT)
    assert [change.rule for change in history.changes(URN, "1.0.0")] == ["dataset.added"]
    assert history.changes(URN, "1.1.0") == diff_datasets(FIRST, SECOND)


def test_versions_are_compared_in_both_directions(manager: VersionManager) -> None:
    for state in (FIRST, SECOND, THIRD):
        manager.record(None, state, at=AT)
    forth = manager.compare_versions(URN, "1.0.0", "2.0.0")
    back = manager.compare_versions(URN, "2.0.0", "1.0.0")
    assert [change.rule for change in forth] == ["type.changed", "field.added.nullable"]
    assert [change.rule for change in back] == ["field.removed", "type.changed"]
    assert manager.compare_versions(URN, "1.1.0", "1.1.0") == ()


def test_comparing_with_an_unknown_version_names_the_known_ones(manager: VersionManager) -> None:
    manager.record(None, FIRST, at=AT)
    with pytest.raises(VersionNotFoundError) as caught:
        manager.compare_versions(URN, "1.0.0", "7.0.0")
    assert "1.0.0" in f"{caught.value} {caught.value.hint}"


@pytest.mark.parametrize(
    ("change_type", "version", "category", "compatible"),
    [
        ("BREAKING_SCHEMA_CHANGE", "2.0.0", "SCHEMA_CHANGE", False),
        ("SCHEMA_CHANGE", "1.1.0", "SCHEMA_CHANGE", True),
        ("DATA_UPDATE", "1.0.1", "DATA_UPDATE", True),
        ("METADATA_UPDATE", "1.0.1", "METADATA_UPDATE", True),
        ("OTHER", "1.0.1", "METADATA_UPDATE", True),
    ],
)
def test_a_version_can_be_incremented_by_declaration(
    manager: VersionManager, *, change_type: str, version: str, category: str, compatible: bool
) -> None:
    manager.record(None, FIRST, at=AT)
    result = manager.increment_version(URN, change_type, at=AT, author="jane")
    declared = result.update
    assert (declared.version, declared.category) == (version, category)
    assert (declared.change_type, declared.backward_compatible) == (change_type, compatible)
    assert (declared.previous_version, declared.cloud_version) == ("1.0.0", "S-2")
    assert manager.get_current_version(URN) == declared
    assert manager.record(FIRST, FIRST, at=AT) is None


def test_there_is_nothing_to_increment_without_a_first_version(manager: VersionManager) -> None:
    with pytest.raises(VersionNotFoundError, match="no version to increment"):
        manager.increment_version(URN, "SCHEMA_CHANGE", at=AT)
    assert manager.get_current_version(URN) is None
    assert manager.get_version_history(URN) == ()


def test_cloud_versions_have_the_configured_prefix_and_map_to_versions(
    history: HistoryRepository,
) -> None:
    manager = VersionManager(history, cloud_version_prefix="prod-")
    manager.record(None, FIRST, at=AT)
    manager.record(FIRST, SECOND, at=AT)
    assert manager.get_version_mappings(URN) == (
        VersionMapping(cloud_version="prod-1", schema_version="1.0.0"),
        VersionMapping(cloud_version="prod-2", schema_version="1.1.0"),
    )


@settings(max_examples=15)
@given(states=st.lists(datasets(urn=st.just(URN)), min_size=1, max_size=4))
def test_any_sequence_of_states_makes_one_rising_chain(
    database: StateDatabase, states: list[LumosDataset]
) -> None:
    history = _empty_history(database)
    manager = VersionManager(history)
    for old, new in zip([None, *states], states, strict=False):
        version = manager.record(old, new, at=AT)
        unchanged = old is not None and old.contract_hash == new.contract_hash
        assert (version is None) == unchanged
        assert manager.record(old, new, at=AT) is None
        current = manager.get_current_version(URN)
        assert current is not None
        assert history.dataset_at(URN, current.version).contract_hash == new.contract_hash
    chain = manager.get_version_history(URN)
    numbers = [SemanticVersion.parse(version.version) for version in chain]
    assert numbers == sorted(set(numbers))
    earlier = [version.version for version in chain[:-1]]
    assert [version.previous_version for version in chain] == [None, *earlier]


def test_a_version_that_says_the_dataset_is_gone_compares_as_that(
    manager: VersionManager,
) -> None:
    manager.record(None, FIRST, at=AT)
    manager.retire(FIRST, at=AT)
    manager.record(FIRST, SECOND, at=AT)

    def rules(*names: str) -> list[str]:
        return [change.rule for change in manager.compare_versions(URN, *names)]

    first, gone, back = (each.version for each in manager.get_version_history(URN))
    assert rules(first, gone) == ["dataset.removed"]
    assert rules(gone, back) == ["dataset.added"]
    assert rules(gone, gone) == []
    assert rules(first, back) == ["field.added.nullable"]


def test_a_comparison_judges_a_change_at_the_time_when_it_was_made(
    history: HistoryRepository,
) -> None:
    sunset = (AT + timedelta(days=30)).date().isoformat()
    old = {"name": "old", "type": "STRING", "deprecation": {"sunset": sunset}}
    before = _events(schema={"fields": [{"name": "id", "type": "INT64"}, old]})
    later = VersionManager(history, clock=lambda: AT + timedelta(days=300))
    later.record(None, before, at=AT)
    later.record(before, _events("id:INT64"), at=AT + timedelta(days=1))

    assert [version.version for version in later.get_version_history(URN)] == ["1.0.0", "2.0.0"]
    assert [change.rule for change in later.compare_versions(URN, "1.0.0", "2.0.0")] == [
        "field.removed"
    ]
