from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from change_cases import Case, as_finding, found, load_cases
from lumos.core.changes import PROFILES, RULES_BY_ID, diff_datasets
from lumos.core.models import Change, LumosDataset
from strategies import datasets

CASES = load_cases()
PLAIN_CASES = tuple(case for case in CASES if case.is_plain)
by_rule = pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)


@by_rule
def test_a_golden_case_gives_exactly_its_findings(case: Case) -> None:
    findings = found(case)
    assert findings == list(case.findings)
    assert case.rule in {finding["rule"] for finding in findings}


@pytest.mark.parametrize("case", PLAIN_CASES, ids=lambda case: case.rule)
@settings(max_examples=5)
@given(base=datasets())
def test_what_a_change_means_does_not_depend_on_the_rest_of_the_dataset(
    case: Case, base: LumosDataset
) -> None:
    before, after = case.datasets(base.to_json())
    told = [as_finding(change) for change in diff_datasets(before, after)]
    assert told == [
        {name: value for name, value in finding.items() if name != "levels"}
        for finding in case.findings
    ]


@by_rule
def test_a_level_differs_from_its_rule_only_where_the_rule_says_so(case: Case) -> None:
    for profile in PROFILES:
        for change in case.changes(profile=profile):
            rule = RULES_BY_ID[change.rule]
            if rule.level_in(profile) is not change.level:
                assert profile in {*rule.by_case, *({"full"} if rule.by_case else ())}


@by_rule
def test_full_is_the_worse_of_readers_and_writers(case: Case) -> None:
    readers, writers, full = (
        {change.fingerprint: change.level.rank for change in case.changes(profile=profile)}
        for profile in ("readers", "writers", "full")
    )
    for fingerprint in readers.keys() & writers.keys():
        assert full[fingerprint] == max(readers[fingerprint], writers[fingerprint])


@by_rule
def test_a_breaking_change_names_exactly_the_profiles_under_which_it_passes(case: Case) -> None:
    levels: dict[str, set[str]] = {}
    for profile in PROFILES:
        for change in case.changes(profile=profile):
            if change.level != "BREAKING":
                levels.setdefault(change.fingerprint, set()).add(profile)
    for change in case.changes():
        passes = levels.get(change.fingerprint, set()) if change.level == "BREAKING" else set()
        assert set(change.passes_under) == passes


@by_rule
def test_what_is_only_observed_or_declared_never_raises_a_version(case: Case) -> None:
    for change in case.changes():
        unversioned = ("obs.", "version.", "lineage.inferred.")
        observed = case.rule.startswith(unversioned) or not case.observed
        if observed and change.rule == case.rule:
            assert (change.bump, change.level) == ("NONE", "INFORMATIONAL")
        else:
            assert change.bump != "NONE"


@given(st.sampled_from(PLAIN_CASES), st.sampled_from(PLAIN_CASES))
def test_a_further_change_never_lowers_the_level(one: Case, other: Case) -> None:
    assume(None not in (one.before, one.after, other.before, other.after))
    assume(not one.touched & other.touched)
    first, second = one.datasets()
    assert first is not None
    assert second is not None
    before, _ = other.datasets(first.to_json())
    _, after = other.datasets(second.to_json())
    together = diff_datasets(before, after)
    alone = (*diff_datasets(first, second), *diff_datasets(*other.datasets()))
    assert sorted(change.rule for change in together) == sorted(change.rule for change in alone)
    assert _worst(together) == max(_worst(diff_datasets(first, second)), _worst(alone))


def _worst(changes: tuple[Change, ...]) -> int:
    return max(change.level.rank for change in changes)
