"""A policy: overrides, exceptions and deprecation windows, from the settings to a change."""

from __future__ import annotations

import pickle
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from hypothesis import given

from lumos.core.changes import ChangePolicy, DeprecationWindow, PolicyException, diff_datasets
from lumos.core.changes.policy import matches_dataset
from lumos.core.changes.policy_settings import policy_of
from lumos.core.models import Bump, ChangeLevel, LumosDataset, Urn, with_parts
from lumos.core.runtime.settings import load_settings
from lumos.core.settings import InvalidSettingsError
from strategies import datasets

NOW = datetime(2026, 11, 15, tzinfo=UTC)
ORDERS = LumosDataset.from_json(
    {
        "urn": "lumos://postgres/shop/orders",
        "name": "orders",
        "platform": "postgres",
        "schema": {
            "fields": [
                {"name": "id", "type": "INT64"},
                {"name": "note", "type": "STRING"},
            ]
        },
    }
)


def without_note(dataset: LumosDataset = ORDERS) -> LumosDataset:
    fields = [field for field in dataset.schema.fields if field.name != "note"]
    return with_parts(dataset, schema={"fields": fields})


def deprecated(since: str | None, sunset: str | None) -> LumosDataset:
    deprecation = {"since": since, "sunset": sunset}
    return with_parts(ORDERS, governance={"deprecation": deprecation})


@given(old=datasets(), new=datasets())
def test_the_default_policy_is_the_plain_diff(old: LumosDataset, new: LumosDataset) -> None:
    assert ChangePolicy().judge(old, new, at=NOW) == diff_datasets(old, new, at=NOW)


def test_a_policy_travels_to_workers() -> None:
    policy = ChangePolicy(
        rules={"field.removed": ChangeLevel.INFORMATIONAL},
        exceptions=(PolicyException(pattern="orders", reason="moved", expires=date(2027, 1, 1)),),
        deprecation_windows=(DeprecationWindow(days=90),),
    )
    assert pickle.loads(pickle.dumps(policy)) == policy


def test_an_override_replaces_level_and_bump_and_says_so() -> None:
    policy = ChangePolicy(rules={"field.removed": ChangeLevel.NON_BREAKING})
    (change,) = policy.judge(ORDERS, without_note(), at=NOW)
    assert (change.level, change.bump) == (ChangeLevel.NON_BREAKING, Bump.MINOR)
    assert change.policy is not None
    assert change.policy.source == "change_policy.rules.field.removed"
    assert change.policy.original_level is ChangeLevel.BREAKING
    assert "BREAKING without change_policy.rules.field.removed" in change.message
    assert change.passes_under == ()


def test_a_policy_does_not_change_the_fingerprint_of_a_finding() -> None:
    policy = ChangePolicy(rules={"field.removed": ChangeLevel.INFORMATIONAL})
    (plain,) = diff_datasets(ORDERS, without_note())
    (judged,) = policy.judge(ORDERS, without_note(), at=NOW)
    assert judged.fingerprint == plain.fingerprint


def test_a_milder_rule_can_be_made_breaking() -> None:
    policy = ChangePolicy(rules={"field.added.nullable": ChangeLevel.BREAKING})
    (change,) = policy.judge(without_note(), ORDERS, at=NOW)
    assert (change.level, change.bump) == (ChangeLevel.BREAKING, Bump.MAJOR)


def test_an_exception_ignores_and_keeps_reason_and_owner() -> None:
    exception = PolicyException(
        pattern="lumos://postgres/shop/*",
        rules=("field.*",),
        fields=("note",),
        reason="moved to comments",
        owner="data-platform",
    )
    (change,) = ChangePolicy(exceptions=(exception,)).judge(ORDERS, without_note(), at=NOW)
    assert change.level is ChangeLevel.INFORMATIONAL
    assert change.policy is not None
    assert change.policy.ignored
    assert (change.policy.reason, change.policy.owner) == ("moved to comments", "data-platform")


@pytest.mark.parametrize(
    "exception",
    [
        PolicyException(pattern="lumos://s3/*", reason="other place"),
        PolicyException(pattern="*", rules=("dataset.*",), reason="other rule"),
        PolicyException(pattern="*", fields=("id",), reason="other field"),
    ],
)
def test_an_exception_for_something_else_changes_nothing(exception: PolicyException) -> None:
    policy = ChangePolicy(exceptions=(exception,))
    assert policy.judge(ORDERS, without_note(), at=NOW) == diff_datasets(ORDERS, without_note())


def test_an_exception_holds_on_its_last_day_and_not_after() -> None:
    exception = PolicyException(pattern="*", reason="for now", expires=date(2026, 11, 15))
    policy = ChangePolicy(exceptions=(exception,))
    (held,) = policy.judge(ORDERS, without_note(), at=NOW)
    assert held.level is ChangeLevel.INFORMATIONAL
    later = datetime(2026, 11, 16, tzinfo=UTC)
    (lapsed,) = policy.judge(ORDERS, without_note(), at=later)
    assert lapsed.level is ChangeLevel.BREAKING
    assert lapsed.policy is not None
    assert lapsed.policy.expired
    assert lapsed.message.endswith("(change_policy.exceptions[0] expired on 2026-11-15)")
    assert policy.expired(later) == (exception,)


def test_the_next_exception_decides_where_the_first_expired() -> None:
    policy = ChangePolicy(
        exceptions=(
            PolicyException(pattern="*", reason="old", expires=date(2020, 1, 1)),
            PolicyException(pattern="*", reason="new", level=ChangeLevel.NON_BREAKING),
        )
    )
    (change,) = policy.judge(ORDERS, without_note(), at=NOW)
    assert change.level is ChangeLevel.NON_BREAKING
    assert change.policy is not None
    assert change.policy.source == "change_policy.exceptions[1]"


def test_an_exception_has_the_last_word_over_an_override() -> None:
    policy = ChangePolicy(
        rules={"field.removed": ChangeLevel.NON_BREAKING},
        exceptions=(PolicyException(pattern="*", reason="no", level=ChangeLevel.BREAKING),),
    )
    (change,) = policy.judge(ORDERS, without_note(), at=NOW)
    assert (change.level, change.bump) == (ChangeLevel.BREAKING, Bump.MAJOR)


def with_deprecated_note(deprecation: dict[str, str | None]) -> LumosDataset:
    fields = [
        {"name": "id", "type": "INT64"},
        {"name": "note", "type": "STRING", "deprecation": deprecation},
    ]
    return with_parts(ORDERS, schema={"fields": fields})


@pytest.mark.parametrize(
    ("since", "sunset", "level"),
    [
        ("2026-01-01", "2026-11-01", ChangeLevel.NON_BREAKING),
        ("2026-08-17", "2026-11-01", ChangeLevel.NON_BREAKING),
        ("2026-08-18", "2026-11-01", ChangeLevel.BREAKING),
        ("2026-01-01", "2026-11-15", ChangeLevel.BREAKING),
        ("2026-01-01", None, ChangeLevel.BREAKING),
        (None, "2026-11-01", ChangeLevel.BREAKING),
    ],
    ids=["both passed", "90 days", "89 days", "the last day", "no sunset", "since when?"],
)
def test_a_removal_passes_when_its_deprecation_window_has_passed(
    since: str | None, sunset: str | None, level: ChangeLevel
) -> None:
    policy = ChangePolicy(deprecation_windows=(DeprecationWindow(days=90),))
    (removed,) = policy.judge(deprecated(since, sunset), None, at=NOW)
    old = with_deprecated_note({"since": since, "sunset": sunset})
    (narrowed,) = policy.judge(old, without_note(old), at=NOW)
    assert removed.level is narrowed.level is level


def test_a_removal_that_came_too_soon_says_what_was_missing() -> None:
    policy = ChangePolicy(deprecation_windows=(DeprecationWindow(days=90),))
    (change,) = policy.judge(deprecated("2026-10-01", "2026-11-01"), None, at=NOW)
    assert change.policy is not None
    assert change.policy.source == "change_policy.deprecation_windows[0]"
    assert change.policy.reason == "deprecated for 45 of 90 days"
    assert change.bump is Bump.MAJOR


def test_a_nested_field_has_a_window_of_its_own() -> None:
    item = {"type": "STRUCT", "fields": [{"name": "kept", "type": "STRING"}]}
    with_fax = {
        "type": "STRUCT",
        "fields": [
            {"name": "kept", "type": "STRING"},
            {
                "name": "fax",
                "type": "STRING",
                "deprecation": {"since": "2020-01-01", "sunset": "2020-02-01"},
            },
        ],
    }
    old, new = (
        with_parts(ORDERS, schema={"fields": [{"name": "l", "type": "ARRAY", "items": each}]})
        for each in (with_fax, item)
    )
    policy = ChangePolicy(deprecation_windows=(DeprecationWindow(days=90),))
    (change,) = policy.judge(old, new, at=NOW)
    assert (change.path, change.level) == ("l[].fax", ChangeLevel.NON_BREAKING)


def test_without_a_window_the_sunset_alone_decides() -> None:
    (change,) = ChangePolicy().judge(deprecated(None, "2026-11-01"), None, at=NOW)
    assert change.level is ChangeLevel.NON_BREAKING
    (early,) = ChangePolicy().judge(deprecated(None, "2026-11-15"), None, at=NOW)
    assert early.level is ChangeLevel.BREAKING


def test_the_first_window_whose_pattern_fits_decides() -> None:
    policy = ChangePolicy(
        deprecation_windows=(
            DeprecationWindow(days=3650, pattern="lumos://postgres/*"),
            DeprecationWindow(days=0),
        )
    )
    (change,) = policy.judge(deprecated("2026-01-01", "2026-11-01"), None, at=NOW)
    assert change.level is ChangeLevel.BREAKING


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [
        ("*", True),
        ("orders", True),
        ("shop/orders", True),
        ("shop/*", True),
        ("/shop/*", True),
        ("/orders", False),
        ("rders", False),
        ("lumos://postgres/*", True),
        ("lumos://s3/*", False),
        ("ord[e]rs", False),
        ("order?", True),
    ],
)
def test_a_pattern_names_urns_paths_and_ends_of_paths(pattern: str, fits: bool) -> None:
    assert matches_dataset(pattern, Urn("lumos://postgres/shop/orders")) is fits


def test_a_transitive_profile_looks_at_every_earlier_state() -> None:
    fields = [{"name": "id", "type": "INT64"}, {"name": "note", "type": "INT64"}]
    back_as_a_number = with_parts(ORDERS, schema={"fields": fields})
    policy = ChangePolicy(profile="full_transitive")
    alone = policy.judge(without_note(), back_as_a_number, at=NOW)
    assert {change.rule for change in alone} == {"field.added.nullable"}
    changes = policy.judge(without_note(), back_as_a_number, at=NOW, earlier=lambda: (ORDERS,))
    assert [change.level for change in changes][:1] == [ChangeLevel.BREAKING]


def test_earlier_states_are_not_looked_up_for_a_plain_profile() -> None:
    def refuse() -> tuple[LumosDataset, ...]:
        raise AssertionError("nobody asked for them")

    assert ChangePolicy().judge(ORDERS, without_note(), at=NOW, earlier=refuse)


def policy_in(file: Path) -> ChangePolicy:
    settings = load_settings(file, {})
    return policy_of(settings.change_policy, settings)


def written(folder: Path, text: str) -> Path:
    file = folder / "lumos.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_a_policy_is_read_from_the_settings(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        """
change_policy:
  profile: FORWARD
  rules:
    field.removed: NON_BREAKING
  exceptions:
    - pattern: lumos://s3/tmp/*
      level: ignore
      reason: scratch space
      expires: 2027-01-31
  deprecation_windows:
    - days: 90
""",
    )
    policy = policy_in(file)
    assert policy.profile == "readers"
    assert policy.rules == {"field.removed": ChangeLevel.NON_BREAKING}
    assert policy.exceptions[0].expires == date(2027, 1, 31)
    assert policy.exceptions[0].level is None
    assert policy.deprecation_windows == (DeprecationWindow(days=90),)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "changes:\n  rules:\n    field.remvoed: breaking\n",
            "lumos.yaml:3: change_policy.rules.field.remvoed is no rule; "
            "did you mean 'field.removed'?",
        ),
        (
            "change_policy:\n  profile: readrs\n",
            "lumos.yaml:2: change_policy.profile is not a profile of change rules; "
            "did you mean 'readers'?",
        ),
        (
            "change_policy:\n  exceptions:\n    - pattern: x\n      reason: y\n"
            "      rules: [dataset.remoed]\n",
            "lumos.yaml:5: change_policy.exceptions[0].rules[0] is no rule; "
            "did you mean 'dataset.removed'?",
        ),
        (
            "change_policy:\n  exceptions:\n    - pattern: x\n",
            "lumos.yaml:3: key 'reason' is missing in change_policy.exceptions[0]",
        ),
        (
            "change_policy:\n  rules: {field.removed: fatal}\n",
            "lumos.yaml:2: change_policy.rules.field.removed must be one of "
            "'breaking', 'non_breaking' or 'informational'",
        ),
        (
            "change_policy:\n  exceptions:\n    - {pattern: x, reason: y, expires: soon}\n",
            "lumos.yaml:3: change_policy.exceptions[0].expires must be a date such as 2024-01-31",
        ),
    ],
)
def test_a_wrong_policy_names_line_and_remedy(tmp_path: Path, text: str, said: str) -> None:
    file = written(tmp_path, text)
    with pytest.raises(InvalidSettingsError) as refused:
        policy_in(file)
    assert str(refused.value).removeprefix(f"{tmp_path}/") == said
