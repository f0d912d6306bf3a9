from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from change_cases import load_cases
from lumos.core.changes import (
    RULES,
    bump_of,
    category_of,
    change_details_of,
    change_type_of,
    change_type_of_rule,
    is_backward_compatible,
    next_cloud_version,
    next_version,
    severity_order,
)
from lumos.core.models import Bump, Change, ChangeLevel, SemanticVersion, VersionCategory

CHANGES: dict[str, Change] = {
    change.rule: change
    for case in load_cases()
    for change in case.changes()
    if change.rule == case.rule
}
some_changes = st.lists(st.sampled_from(list(CHANGES.values())), max_size=5)
versions = st.builds(SemanticVersion, *(st.integers(0, 50) for _ in range(3)))


def _found(*rules: str) -> tuple[Change, ...]:
    return tuple(CHANGES[rule] for rule in rules)


@pytest.mark.parametrize(
    ("rules", "bump", "after"),
    [
        ((), Bump.NONE, "1.2.3"),
        (("doc.edited",), Bump.PATCH, "1.2.4"),
        (("tag.added", "owner.removed"), Bump.PATCH, "1.2.4"),
        (("lineage.edge.removed",), Bump.PATCH, "1.2.4"),
        (("dataset.format.changed",), Bump.PATCH, "1.2.4"),
        (("field.added.nullable", "doc.edited"), Bump.MINOR, "1.3.0"),
        (("unique.added",), Bump.MINOR, "1.3.0"),
        (("dataset.partition_key.changed",), Bump.MINOR, "1.3.0"),
        (("field.added.nullable", "field.removed"), Bump.MAJOR, "2.0.0"),
        (("type.widened",), Bump.MAJOR, "2.0.0"),
    ],
)
def test_the_next_version_follows_from_the_changes(
    rules: tuple[str, ...], bump: Bump, after: str
) -> None:
    changes = _found(*rules)
    assert bump_of(changes) is bump
    assert str(next_version(SemanticVersion(1, 2, 3), bump)) == after


@pytest.mark.parametrize("bump", Bump)
def test_the_first_version_is_1_0_0_whatever_changed(bump: Bump) -> None:
    assert str(next_version(None, bump)) == "1.0.0"


@given(versions, st.sampled_from(Bump))
def test_a_version_rises_exactly_when_something_changed(
    version: SemanticVersion, bump: Bump
) -> None:
    after = next_version(version, bump)
    assert (after > version) == (bump is not Bump.NONE)
    assert after >= version


@given(some_changes, some_changes)
def test_more_changes_never_make_a_smaller_bump_or_a_compatible_version(
    some: list[Change], more: list[Change]
) -> None:
    assert bump_of([*some, *more]).rank == max(bump_of(some).rank, bump_of(more).rank)
    assert is_backward_compatible([*some, *more]) == (
        is_backward_compatible(some) and is_backward_compatible(more)
    )


@given(some_changes)
def test_a_breaking_change_and_nothing_else_is_major(changes: list[Change]) -> None:
    breaking = any(change.level is ChangeLevel.BREAKING for change in changes)
    assert (bump_of(changes) is Bump.MAJOR) == breaking == (not is_backward_compatible(changes))


@pytest.mark.parametrize(
    ("current", "prefix", "after"),
    [
        (None, "S-", "S-1"),
        ("S-311", "S-", "S-312"),
        ("S-009", "S-", "S-010"),
        ("S-99", "S-", "S-100"),
        ("S-311", "prod-", "prod-312"),
        ("v2-9", "v2-", "v2-10"),
        ("draft", "S-", "S-1"),
        ("", "S-", "S-1"),
    ],
)
def test_cloud_versions_count_on(current: str | None, prefix: str, after: str) -> None:
    assert next_cloud_version(current, prefix=prefix) == after


@given(some_changes.filter(bool))
def test_the_most_severe_change_names_the_version_whatever_the_order(
    changes: list[Change],
) -> None:
    worst = min(changes, key=severity_order)
    assert change_type_of(changes) == change_type_of(changes[::-1])
    assert change_type_of(changes) == change_type_of_rule(worst.rule)
    assert worst.level.rank == max(change.level.rank for change in changes)


def test_nothing_changed_has_no_name_and_no_category() -> None:
    assert change_type_of(()) is None
    assert category_of(()) is None
    assert change_details_of(()) == {}


@pytest.mark.parametrize(
    ("rule", "change_type", "details"),
    [
        ("field.added.nullable", "COLUMN_ADDED", {"column": "session_id", "type": "STRING"}),
        (
            "field.removed",
            "COLUMN_REMOVED",
            {"column": "address", "type": "STRUCT<city: STRING, street: STRING>"},
        ),
        (
            "type.changed",
            "COLUMN_TYPE_CHANGED",
            {"column": "user_id", "old_type": "STRING", "new_type": "INT64"},
        ),
        (
            "null.tightened",
            "COLUMN_NULLABILITY_CHANGED",
            {"column": "email", "old_nullable": True, "new_nullable": False},
        ),
        (
            "default.changed",
            "COLUMN_DEFAULT_CHANGED",
            {"column": "retries", "old_default": "0", "new_default": "1"},
        ),
        ("tag.added", "TAGS_CHANGED", {"new": "finance"}),
        ("pk.changed", "PRIMARY_KEY_CHANGED", {"old": ["id"], "new": ["id", "region"]}),
    ],
)
def test_a_single_change_is_told_as_the_documents_tell_it(
    rule: str, change_type: str, details: dict[str, object]
) -> None:
    changes = _found(rule)
    assert change_type_of(changes) == change_type
    assert change_details_of(changes) == details


def test_several_changes_are_told_by_the_worst_with_all_of_them_beside_it() -> None:
    details = change_details_of(_found("tag.added", "type.changed", "field.added.nullable"))
    assert details["column"] == "user_id"
    assert (details["old_type"], details["new_type"]) == ("STRING", "INT64")
    assert details["changes"] == [
        {
            "change_type": "COLUMN_TYPE_CHANGED",
            "rule": "type.changed",
            "level": "BREAKING",
            "column": "user_id",
            "old_type": "STRING",
            "new_type": "INT64",
        },
        {
            "change_type": "COLUMN_ADDED",
            "rule": "field.added.nullable",
            "level": "NON_BREAKING",
            "column": "session_id",
            "type": "STRING",
        },
        {
            "change_type": "TAGS_CHANGED",
            "rule": "tag.added",
            "level": "NON_BREAKING",
            "new": "finance",
        },
    ]


def test_the_category_tells_schema_from_metadata() -> None:
    assert category_of(_found("tag.added", "doc.edited")) is VersionCategory.METADATA_UPDATE
    assert category_of(_found("dataset.format.changed")) is VersionCategory.METADATA_UPDATE
    assert category_of(_found("tag.added", "pk.reordered")) is VersionCategory.SCHEMA_CHANGE
    assert category_of(_found("dataset.removed")) is VersionCategory.SCHEMA_CHANGE


def test_minor_and_major_versions_of_the_schema_are_schema_changes() -> None:
    for change in CHANGES.values():
        structural = category_of((change,)) is VersionCategory.SCHEMA_CHANGE
        if change.rule not in ("enum.reordered", "dataset.sunset.earlier", "field.sunset.earlier"):
            assert structural == (change.bump.rank >= Bump.MINOR.rank), change.rule


def test_every_rule_has_a_name_in_the_history_also_one_of_a_newer_lumos() -> None:
    assert {change_type_of_rule(rule.id) for rule in RULES} == {rule.change_type for rule in RULES}
    assert change_type_of_rule("field.moved") == "FIELD_MOVED"


def test_an_order_by_severity_is_total() -> None:
    for one, other in combinations(CHANGES.values(), 2):
        assert severity_order(one) != severity_order(other)
