from __future__ import annotations

import pytest
from hypothesis import given, settings

from change_cases import Case, load_cases
from change_pairs import pairs
from conftest import FULL_SIZE
from lumos.core.changes import RULES, diff_datasets
from lumos.core.changes.applying import apply_changes
from lumos.core.errors import InvalidModelError
from lumos.core.models import Change, LumosDataset

CASES = [
    case
    for case in load_cases()
    if case.compares == "datasets" and case.before is not None and case.after is not None
]


@settings(max_examples=2_000 if FULL_SIZE else 80)
@given(pairs)
def test_applying_a_diff_to_the_old_state_gives_the_new_contract(
    pair: tuple[LumosDataset, LumosDataset],
) -> None:
    old, new = pair
    assert apply_changes(old, diff_datasets(old, new)).contract() == new.contract()


@settings(max_examples=2_000 if FULL_SIZE else 40)
@given(pairs)
def test_a_stored_diff_can_be_applied_as_well(pair: tuple[LumosDataset, LumosDataset]) -> None:
    old, new = pair
    stored = [Change.from_json(change.to_json()) for change in diff_datasets(old, new)]
    again = apply_changes(old, stored)
    assert again.contract_hash == new.contract_hash
    assert again.to_json().get("statistics") == old.to_json().get("statistics")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_what_each_golden_case_finds_leads_from_before_to_after(case: Case) -> None:
    before, after = case.datasets()
    assert before is not None
    assert after is not None
    assert apply_changes(before, diff_datasets(before, after)).contract() == after.contract()
    assert apply_changes(after, diff_datasets(after, before)).contract() == before.contract()


def test_every_rule_on_a_contract_is_applied_in_some_golden_case() -> None:
    rest = {case.rule for case in load_cases() if case.compares != "datasets"}
    of_whole_datasets = {rule.id for rule in RULES} - {case.rule for case in CASES} - rest
    assert of_whole_datasets == {
        "dataset.added",
        "dataset.removed",
        "dataset.removed.after_sunset",
        "dataset.unobserved",
    }


def test_the_coming_of_a_dataset_cannot_be_applied_to_one() -> None:
    (case,) = [case for case in CASES if case.rule == "field.removed"]
    before, _ = case.datasets()
    assert before is not None
    with pytest.raises(InvalidModelError, match=r"dataset\.added cannot be applied"):
        apply_changes(before, diff_datasets(None, before))
