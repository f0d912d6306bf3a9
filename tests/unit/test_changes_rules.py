from __future__ import annotations

import re
from collections import Counter
from dataclasses import FrozenInstanceError
from string import Formatter

import pytest

from change_cases import load_cases
from lumos.core.changes import (
    PROFILES,
    RULES,
    RULES_BY_ID,
    Profile,
    Rule,
    diff_datasets,
    resolve_profile,
)
from lumos.core.changes.profiles import BASES
from lumos.core.errors import UnknownNameError
from lumos.core.models import Bump, ChangeLevel, ChangeScope, Direction

TYPED_BY_PEOPLE = (
    "default.",
    "props.",
    "doc.",
    "sla.",
    "assertion.",
    "check.",
    "transform.",
    "dataset.deprecation.",
    "field.deprecation.",
)
COMING_AND_GOING = ("dataset.added", "dataset.removed.after_sunset")
HARDER_THAN_ITS_DIRECTION = {
    "type.narrowed": "values that exist may not fit, and a reader that casts them fails",
    "decimal.precision.down": "as type.narrowed",
    "decimal.precision_and_scale.down": "as type.narrowed",
    "varchar.length.down": "as type.narrowed",
    "timestamp.unit.coarser": "as type.narrowed; numbers change their meaning",
    "pk.added": "readers take rows as one for each key, and duplicates are merged",
    "access.tightened": "it is readers who are let in no more",
}


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
    assert bool(rule.mirrors) != bool(rule.unmirrored)
    for mirror in rule.mirrors:
        assert rule.id in RULES_BY_ID[mirror].mirrors
        assert RULES_BY_ID[mirror].direction is rule.direction.mirrored


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_bumps_follow_the_version_algebra(rule: Rule) -> None:
    if (
        rule.id.startswith(("obs.", "version.", "lineage.inferred."))
        or rule.id == "dataset.unobserved"
    ):
        expected = Bump.NONE
    elif rule.level is ChangeLevel.BREAKING:
        expected = Bump.MAJOR
    elif rule.level is ChangeLevel.NON_BREAKING and (
        rule.scope is ChangeScope.SCHEMA or rule.id in COMING_AND_GOING
    ):
        expected = Bump.MINOR
    else:
        expected = Bump.PATCH
    assert rule.bump is expected
    assert rule.bump_in("lumos") is expected


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_only_what_breaks_is_major_under_every_profile(rule: Rule) -> None:
    for profile in PROFILES:
        bump = rule.bump_in(profile)
        if rule.bump is Bump.NONE:
            assert bump is Bump.NONE
        else:
            assert (bump is Bump.MAJOR) == (rule.level_in(profile) is ChangeLevel.BREAKING)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_every_profile_has_its_level_and_full_follows_from_two(rule: Rule) -> None:
    assert set(rule.levels) == set(PROFILES) - {"full", *BASES}
    ranks = {name: rule.level_in(name).rank for name in PROFILES}
    assert ranks["full"] == max(ranks["readers"], ranks["writers"])
    assert set(rule.by_case) <= set(PROFILES)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_tightening_spares_readers_and_loosening_spares_writers(rule: Rule) -> None:
    if rule.id in HARDER_THAN_ITS_DIRECTION:
        return
    if rule.direction is Direction.TIGHTENS:
        assert rule.level_in("readers") is not ChangeLevel.BREAKING
    if rule.direction is Direction.LOOSENS:
        assert rule.level_in("writers") is not ChangeLevel.BREAKING


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
        RULES[0].title = ""  # type: ignore[misc]
    with pytest.raises(TypeError):
        RULES[0].levels["lumos"] = RULES[0].levels["readers"]  # type: ignore[index]


def test_a_profile_changes_levels_by_data_alone() -> None:
    removed = RULES_BY_ID["field.removed"]
    assert (removed.level_in("lumos"), removed.bump_in("lumos")) == ("BREAKING", "MAJOR")
    assert (removed.level_in("writers"), removed.bump_in("writers")) == ("NON_BREAKING", "MINOR")
    assert removed.verdict_in("writers").caution
    sunset = RULES_BY_ID["dataset.sunset.earlier"]
    assert (sunset.level_in("writers"), sunset.bump_in("writers")) == ("INFORMATIONAL", "PATCH")
    spec = RULES_BY_ID["dataset.partition_spec.changed"]
    assert (spec.bump_in("lumos"), spec.bump_in("iceberg")) == ("MINOR", "PATCH")
    assert spec.level_in("iceberg_v3") is spec.level_in("iceberg")


@pytest.mark.parametrize(
    ("name", "profile"),
    [
        ("lumos", Profile("lumos")),
        ("BACKWARD", Profile("writers")),
        ("FORWARD_TRANSITIVE", Profile("readers", transitive=True)),
        ("full-transitive", Profile("full", transitive=True)),
        (" Avro ", Profile("avro")),
    ],
)
def test_a_profile_is_found_by_name_or_alias(name: str, profile: Profile) -> None:
    assert resolve_profile(name) == profile
    assert resolve_profile(str(profile)) == profile


def test_a_profile_that_does_not_exist_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UnknownNameError) as refused:
        resolve_profile("reader")
    assert refused.value.hint == "did you mean readers?"
    with pytest.raises(UnknownNameError):
        diff_datasets(None, None, profile="nobody")
