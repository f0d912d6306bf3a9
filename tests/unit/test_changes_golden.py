from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from change_cases import Case, as_finding, load_cases
from lumos.core.changes import diff_datasets
from lumos.core.models import Change, LumosDataset
from strategies import datasets

CASES = load_cases()
by_rule = pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)


@by_rule
def test_a_golden_case_gives_exactly_its_findings(case: Case) -> None:
    found = [as_finding(change) for change in diff_datasets(*case.datasets())]
    assert found == list(case.findings)
    assert case.rule in {finding["rule"] for finding in found}


@by_rule
@settings(max_examples=10)
@given(base=datasets())
def test_what_a_change_means_does_not_depend_on_the_rest_of_the_dataset(
    case: Case, base: LumosDataset
) -> None:
    before, after = case.datasets(base.to_json())
    assert [as_finding(change) for change in diff_datasets(before, after)] == list(case.findings)


@given(st.sampled_from(CASES), st.sampled_from(CASES))
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
