from __future__ import annotations

import re
from collections import Counter
from dataclasses import FrozenInstanceError, replace
from string import Formatter

import pytest

from change_cases import load_cases
from lumos.core.changes import RULES, RULES_BY_ID, Rule
from lumos.core.models import Bump, ChangeLevel, ChangeScope

WITHOUT_MIRROR = {
    "owner.none_left": "an extra warning beside owner.removed, whose mirror is owner.added",
}
TYPED_BY_PEOPLE = ("default.", "props.", "doc.", "sla.", "assertion.", "dataset.deprecation.")


def test_every_rule_has_its_own_id() -> None:
    assert [rule for rule, count in Counter(rule.id for rule in RULES).items() if count > 1] == []
    assert set(RULES_BY_ID) == {rule.id for rule in RULES}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_every_rule_explains_itself(rule: Rule) -> None:
    assert re.fullmatch(r"[a-z]+(\.[a-z_]+)+", rule.id)
    assert re.fullmatch(r"[A-Z_]+", rule.change_type)
    assert rule.title
    assert rule.rationale.endswith(".")
    assert rule.example
    names = {name for _, name, _, _ in Formatter().parse(rule.message) if name is not None}
    assert names <= {"at", "subject", "old", "new"}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_no_message_tells_a_value_that_people_typed_in(rule: Rule) -> None:
    if rule.id.startswith(TYPED_BY_PEOPLE):
        assert "{old}" not in rule.message
        assert "{new}" not in rule.message


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_every_rule_has_a_mirror_or_a_reason_why_not(rule: Rule) -> None:
    assert bool(rule.mirrors) != (rule.id in WITHOUT_MIRROR)
    for mirror in rule.mirrors:
        assert rule.id in RULES_BY_ID[mirror].mirrors


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_bumps_follow_the_version_algebra(rule: Rule) -> None:
    if rule.level is ChangeLevel.BREAKING:
        expected = Bump.MAJOR
    elif rule.level is ChangeLevel.NON_BREAKING and (
        rule.scope is ChangeScope.SCHEMA or rule.id == "dataset.added"
    ):
        expected = Bump.MINOR
    else:
        expected = Bump.PATCH
    assert rule.bump is expected


@pytest.mark.parametrize(
    ("rule", "level"),
    [
        ("field.removed", "BREAKING"),
        ("type.changed", "BREAKING"),
        ("type.widened", "BREAKING"),
        ("type.narrowed", "BREAKING"),
        ("null.tightened", "BREAKING"),
        ("field.added.nullable", "NON_BREAKING"),
        ("doc.added", "NON_BREAKING"),
        ("tag.added", "NON_BREAKING"),
        ("owner.added", "NON_BREAKING"),
        ("owner.removed", "NON_BREAKING"),
        ("owner.role.changed", "NON_BREAKING"),
        ("doc.edited", "INFORMATIONAL"),
    ],
)
def test_the_product_s_own_rules_hold_as_written(rule: str, level: str) -> None:
    assert RULES_BY_ID[rule].level == level


def test_every_change_from_one_type_to_another_is_breaking() -> None:
    within_one_type = ("enum.symbol.added", "enum.reordered", "union.branch.added")
    lax = {
        rule.id
        for rule in RULES
        if rule.change_type == "COLUMN_TYPE_CHANGED" and rule.level is not ChangeLevel.BREAKING
    }
    assert lax == set(within_one_type)


def test_caution_marks_only_what_passes() -> None:
    assert {rule.level for rule in RULES if rule.caution} == {ChangeLevel.NON_BREAKING}


def test_every_rule_has_a_golden_case_and_every_case_a_rule() -> None:
    assert [case.rule for case in sorted(load_cases(), key=lambda case: case.rule)] == sorted(
        RULES_BY_ID
    )


def test_rules_cannot_be_changed_at_run_time() -> None:
    with pytest.raises(FrozenInstanceError):
        RULES[0].level = ChangeLevel.BREAKING  # type: ignore[misc]


def test_a_profile_changes_levels_by_data_alone() -> None:
    lenient = {"lenient": ChangeLevel.NON_BREAKING, "strict": ChangeLevel.BREAKING}
    removed = replace(RULES_BY_ID["field.removed"], profiles=lenient)
    assert (removed.level_in("lenient"), removed.bump_in("lenient")) == ("NON_BREAKING", "MINOR")
    assert (removed.level_in("lumos"), removed.bump_in("lumos")) == ("BREAKING", "MAJOR")
    tag = replace(RULES_BY_ID["tag.removed"], profiles=lenient)
    assert (tag.bump_in("lumos"), tag.bump_in("strict")) == ("PATCH", "MAJOR")
    sunset = replace(RULES_BY_ID["dataset.sunset.earlier"], profiles=lenient)
    assert sunset.bump_in("lenient") == "PATCH"
