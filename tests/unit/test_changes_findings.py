"""What the change engine never does: guess, repeat itself, or follow the wording."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from pydantic import JsonValue

from lumos.core.changes import (
    RULES_BY_ID,
    declared_version_changes,
    diff,
    diff_datasets,
    diff_observations,
)
from lumos.core.changes.detectors.promises import promise_verb
from lumos.core.changes.detectors.sets import is_sensitive
from lumos.core.changes.policy import ChangePolicy
from lumos.core.models import Change, ChangeLevel, LumosDataset
from strategies import OBSERVATIONS, datasets


def _dataset(*fields: dict[str, JsonValue], **parts: object) -> LumosDataset:
    document = {"urn": "lumos://pg/shop/orders", "name": "orders", "platform": "pg"}
    return LumosDataset.model_validate({**document, "schema": {"fields": list(fields)}, **parts})


def _rules(changes: tuple[Change, ...]) -> list[str]:
    return [change.rule for change in changes]


@given(datasets())
def test_a_dataset_that_was_not_observed_is_never_removed(dataset: LumosDataset) -> None:
    (change,) = diff_datasets(dataset, None, observed=False)
    assert (change.rule, change.level, change.bump) == (
        "dataset.unobserved",
        "INFORMATIONAL",
        "NONE",
    )


@pytest.mark.parametrize(
    ("at", "rule"),
    [
        (None, "field.removed"),
        (datetime(2026, 6, 30, 23, tzinfo=UTC), "field.removed"),
        (datetime(2026, 7, 1, tzinfo=UTC), "field.removed.after_sunset"),
    ],
)
def test_a_sunset_passes_at_the_end_of_its_day(at: datetime | None, rule: str) -> None:
    fax: dict[str, JsonValue] = {
        "name": "fax",
        "type": "STRING",
        "deprecation": {"sunset": "2026-06-30"},
    }
    assert _rules(diff_datasets(_dataset(fax), _dataset(), at=at)) == [rule]


def test_a_fingerprint_follows_from_values_and_not_from_the_wording(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    old = _dataset({"name": "a", "type": "INT32"})
    new = _dataset({"name": "a", "type": "INT64"})
    (before,) = diff_datasets(old, new)
    reworded = replace(RULES_BY_ID["type.widened"], message="{at} now holds more")
    monkeypatch.setattr(diff, "RULES_BY_ID", {"type.widened": reworded})
    (after,) = diff_datasets(old, new, profile="avro")
    assert before.message != after.message
    assert before.level != after.level
    assert before.fingerprint == after.fingerprint


def test_spellings_of_a_dialect_are_no_change_and_leave_no_trace_in_a_fingerprint() -> None:
    def typed(kind: str, native: str) -> LumosDataset:
        inner: JsonValue = {"type": kind, "native_type": native}
        return _dataset({"name": "a", "type": "ARRAY", "native_type": native, "items": inner})

    assert diff_datasets(typed("INT32", "int4"), typed("INT32", "integer")) == ()
    one = diff_datasets(typed("INT32", "int4"), typed("INT64", "int8"))
    other = diff_datasets(typed("INT32", "integer"), typed("INT64", "bigint"))
    assert [change.fingerprint for change in one] == [change.fingerprint for change in other]


def test_a_removed_struct_is_one_finding_at_any_depth_and_under_every_profile() -> None:
    leaf: JsonValue = [{"name": name, "type": "STRING"} for name in "xyz"]
    inner: JsonValue = [{"name": "inner", "type": "STRUCT", "fields": leaf}]
    outer: dict[str, JsonValue] = {
        "name": "outer",
        "type": "ARRAY",
        "items": {"type": "STRUCT", "fields": inner},
    }
    empty: dict[str, JsonValue] = {**outer, "items": {"type": "STRUCT", "fields": []}}
    for profile in ("lumos", "writers", "avro"):
        (change,) = diff_datasets(_dataset(outer), _dataset(empty), profile=profile)
        assert (change.rule, change.path) == ("field.removed", "outer[].inner")


def test_a_widening_says_under_which_profiles_it_passes() -> None:
    old = _dataset({"name": "n", "type": "INT32"})
    (change,) = diff_datasets(old, _dataset({"name": "n", "type": "DOUBLE"}))
    assert change.widening
    assert change.level is ChangeLevel.BREAKING
    assert set(change.passes_under) == {"writers", "delta", "avro"}
    assert change.message.endswith("(not breaking under writers, delta, avro)")


def test_files_that_move_break_their_readers_and_tables_do_not() -> None:
    def placed(kind: str, path: str) -> LumosDataset:
        return _dataset(kind=kind, location={"path": path})

    for kind, level in (("FILES", "BREAKING"), ("TABLE", "NON_BREAKING")):
        (change,) = diff_datasets(placed(kind, "a"), placed(kind, "b"), profile="full")
        assert change.level == level


@settings(max_examples=30)
@given(datasets(), datasets())
def test_observations_change_no_version(old: LumosDataset, new: LumosDataset) -> None:
    mixed = new.model_copy(update={name: getattr(old, name) for name in OBSERVATIONS})
    assert diff_observations(old, mixed) == ()
    changes = diff_observations(old, new)
    assert {change.bump for change in changes} <= {"NONE"}
    assert len(diff_observations(new, old)) == len(changes)


@pytest.mark.parametrize(
    ("declared", "rule"),
    [
        (("1.4.0", "2.0.0"), None),
        (("1.4.0", "1.5.0"), "version.major_missing"),
        (("1.4.0", "1.4.0"), "version.not_bumped"),
        (("1.4.0", "1.3.9"), "version.decreased"),
        (("0.4.0", "0.5.0"), None),
        (("0.4.0", "0.4.1"), "version.minor_missing"),
        (("1.4.0", None), None),
        (("2024-01", "2024-01"), None),
    ],
)
def test_a_declared_version_is_held_against_what_changed(
    declared: tuple[str | None, str | None], rule: str | None
) -> None:
    old = _dataset({"name": "a", "type": "STRING"}, version=declared[0])
    new = _dataset(version=declared[1])
    changes = diff_datasets(old, new)
    assert _rules(declared_version_changes(old, new, changes=changes)) == ([rule] if rule else [])
    assert declared_version_changes(None, new, changes=changes) == ()


def test_a_policy_cannot_make_an_observation_raise_a_version() -> None:
    policy = ChangePolicy(rules={"dataset.unobserved": ChangeLevel.BREAKING})
    (change,) = policy.judge(_dataset(), None, observed=False)
    assert (change.level, change.bump) == ("BREAKING", "NONE")


@pytest.mark.parametrize(
    ("old", "new", "verb"),
    [
        ("24h", "6 hours", "tightened"),
        ("1 day", "2d", "loosened"),
        ("99%", "99.9 %", "tightened"),
        ("24h", "99%", "changed"),
        ("24h", "1d", "changed"),
        ("by 06:00", "by 08:00", "changed"),
        ("1d", f"{'9' * 40}d", "changed"),
    ],
)
def test_service_levels_are_compared_only_where_they_can_be(old: str, new: str, verb: str) -> None:
    assert promise_verb(old, new) == verb


@pytest.mark.parametrize(
    ("tag", "sensitive"),
    [
        ("pii", True),
        ("PII.Email", True),
        ("data:restricted", True),
        ("gdpr-art-9", True),
        ("non-pii", False),
        ("not_sensitive", False),
        ("pipeline", False),
        ("secretary", False),
    ],
)
def test_a_tag_is_sensitive_by_its_words(tag: str, sensitive: bool) -> None:
    assert is_sensitive(tag) is sensitive
