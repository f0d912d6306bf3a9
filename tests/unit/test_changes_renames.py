from __future__ import annotations

import pytest
from hypothesis import given
from pydantic import JsonValue

from change_pairs import pairs
from lumos.core.changes import diff_datasets
from lumos.core.changes.renames import LEAST_CONFIDENCE, MOST_COMPARISONS
from lumos.core.models import Change, LumosDataset

Column = dict[str, JsonValue]


def _dataset(*columns: Column, positional: bool = False) -> LumosDataset:
    return LumosDataset.model_validate(
        {
            "urn": "lumos://pg/shop/orders",
            "name": "orders",
            "platform": "pg",
            "schema": {"fields": list(columns), "positional": positional},
        }
    )


def _text(name: str, **rest: JsonValue) -> Column:
    return {"name": name, "type": "STRING", **rest}


def _struct(name: str, *members: Column) -> Column:
    return {"name": name, "type": "STRUCT", "fields": list(members)}


def _with_id(name: str, number: int, **rest: JsonValue) -> Column:
    return {"name": name, "type": "INT32", "properties": {"field_id": number}, **rest}


def _renames(old: LumosDataset, new: LumosDataset) -> dict[str, str]:
    return {
        change.path: change.possible_rename_of
        for change in diff_datasets(old, new)
        if change.possible_rename_of
    }


def _confidence(old: LumosDataset, new: LumosDataset) -> float:
    (first, *_) = [change.rename_confidence for change in diff_datasets(old, new)]
    return first or 0.0


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("user_id", "userId"),
        ("user_id", "USER_ID"),
        ("cust_id", "customer_id"),
        ("adress", "address"),
        ("created_at", "create_at"),
    ],
)
def test_names_that_are_alike_make_a_pair_that_is_named_on_both_sides(
    before: str, after: str
) -> None:
    old = _dataset(_text(before), _text("zip"), _text("country"))
    new = _dataset(_text(after), _text("vat"), _text("country"))
    assert _renames(old, new) == {before: after, after: before}


def test_names_that_have_nothing_in_common_are_no_rename() -> None:
    assert _renames(_dataset(_text("zip")), _dataset(_text("country"))) == {}


def test_another_type_is_no_rename() -> None:
    assert _renames(_dataset(_text("user_id")), _dataset({"name": "userId", "type": "INT64"})) == {}


def test_the_same_description_makes_a_rename_likely_and_likelier_with_the_name() -> None:
    told: JsonValue = "who ordered"
    old = _dataset(_text("buyer", description=told))
    other = _confidence(old, _dataset(_text("kunde", description=told)))
    alike = _confidence(old, _dataset(_text("buyers", description=told)))
    assert LEAST_CONFIDENCE <= other < alike < 1


def test_the_place_counts_only_where_columns_are_found_by_it() -> None:
    def pair(positional: bool) -> tuple[LumosDataset, LumosDataset]:
        return (
            _dataset(_text("a"), _text("b"), positional=positional),
            _dataset(_text("a"), _text("x"), positional=positional),
        )

    assert _renames(*pair(positional=True)) == {"b": "x", "x": "b"}
    assert _renames(*pair(positional=False)) == {}


def test_a_pair_is_told_and_never_lowers_a_level() -> None:
    (removed, added) = diff_datasets(_dataset(_text("user_id")), _dataset(_text("userId")))
    assert (removed.rule, removed.level) == ("field.removed", "BREAKING")
    assert removed.message.endswith("; perhaps it was renamed to 'userId'")
    assert added.message.endswith("; perhaps it was renamed from 'user_id'")
    assert removed.rename_confidence == added.rename_confidence == 0.93


@pytest.mark.parametrize("profile", ["iceberg", "iceberg_v3", "delta"])
def test_a_rename_of_one_stable_id_passes_where_columns_are_found_by_id(profile: str) -> None:
    old, new = _dataset(_with_id("a", 7)), _dataset(_with_id("z", 7, type="INT64"))
    changes = diff_datasets(old, new, profile=profile)
    assert {change.level.value for change in changes} == {"NON_BREAKING"}
    assert {change.rename_confidence for change in changes} == {1.0}
    assert "BREAKING" in {change.level.value for change in diff_datasets(old, new)}


def test_a_stable_id_does_not_hide_what_else_changed() -> None:
    old = _dataset(_with_id("a", 7))
    for new in (_with_id("z", 7, type="STRING"), _with_id("z", 7, nullable=False)):
        levels = {c.level.value for c in diff_datasets(old, _dataset(new), profile="iceberg")}
        assert "BREAKING" in levels


def test_no_format_moves_a_field_between_structs() -> None:
    old = _dataset(_struct("s", _with_id("a", 7)), _struct("t"))
    new = _dataset(_struct("s"), _struct("t", _with_id("a", 7)))
    assert _renames(old, new) == {"s.a": "t.a", "t.a": "s.a"}
    changes = diff_datasets(old, new, profile="iceberg")
    assert changes[0].level == "BREAKING"


def test_different_stable_ids_are_different_fields_whatever_they_are_called() -> None:
    assert _renames(_dataset(_with_id("user_id", 1)), _dataset(_with_id("userId", 2))) == {}


def test_a_field_that_moved_into_or_out_of_a_struct_is_noted() -> None:
    flat, nested = _dataset(_text("city")), _dataset(_struct("address", _text("city")))
    assert _renames(flat, nested) == {"city": "address.city"}
    assert _renames(nested, flat) == {"city": "address.city"}


def test_the_more_fields_a_move_may_come_from_the_less_sure_it_is() -> None:
    one = _dataset(_struct("a", _text("x")))
    two = _dataset(_struct("a", _text("x")), _struct("b", _text("x")))
    assert _renames(one, _dataset(_text("x"))) == {"x": "a.x"}
    assert _renames(two, _dataset(_text("x"))) == {}


@given(pairs)
def test_no_field_is_in_two_pairs_and_levels_stay(
    pair: tuple[LumosDataset, LumosDataset],
) -> None:
    changes = diff_datasets(*pair)
    for side in ("field.removed", "field.added"):
        targets = [c.possible_rename_of for c in changes if _is_marked(c, side)]
        assert len(targets) == len(set(targets))
    for change in changes:
        assert (change.possible_rename_of is None) == (change.rename_confidence is None)
        assert change.rule != "field.removed" or change.level == "BREAKING"


def _is_marked(change: Change, side: str) -> bool:
    return change.rule.startswith(side) and change.possible_rename_of is not None


def test_a_schema_that_changed_wholly_is_paired_by_sure_signs_only() -> None:
    size = MOST_COMPARISONS
    old = _dataset(*(_text(f"first_name_{number}") for number in range(size)))
    new = _dataset(*(_text(f"firstName{number}") for number in range(size)))
    renames = _renames(old, new)
    assert len(renames) == 2 * size
    assert renames["first_name_7"] == "firstName7"
