"""In which concepts two states of a dataset differ: nothing that differs is left out."""

from __future__ import annotations

import copy
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from lossy_catalog import LOSSES
from lumos.core.models import LumosDataset, Urn
from lumos.core.models.base import canonical_json
from lumos.core.platform.concept_parts import (
    Outcome,
    dataset_outcomes,
    edge_outcomes,
    item_outcome,
)
from lumos.core.platform.fidelity import CONCEPTS
from strategies import datasets
from whole_snapshot import ORDERS, whole_snapshot

Json = dict[str, JsonValue]
ONE = st.just(Urn("lumos://s3/lake/orders"))


def orders() -> Json:
    (found,) = (each for each in whole_snapshot().datasets if each.urn == ORDERS)
    return copy.deepcopy(found.to_json())


def edge() -> Json:
    (found,) = (each for each in whole_snapshot().lineage_edges if each.column_mappings)
    return found.to_json()


def compared(document: Json) -> bytes:
    left = {name: document[name] for name in document if name not in ("lineage", "version")}
    return canonical_json(left)


@given(datasets(urn=ONE), datasets(urn=ONE))
def test_whatever_differs_is_of_some_concept(one: LumosDataset, other: LumosDataset) -> None:
    old, new = one.to_json(), other.to_json()
    found = dataset_outcomes(old, new)
    assert found.keys() <= set(CONCEPTS)
    if compared(old) != compared(new):
        assert found
    else:
        assert found.keys() <= {"version"}


@given(datasets(urn=ONE))
def test_what_is_the_same_differs_in_nothing(dataset: LumosDataset) -> None:
    assert (
        dataset_outcomes(dataset.to_json(), LumosDataset.from_json(dataset.to_json()).to_json())
        == {}
    )


@given(datasets(urn=ONE), datasets(urn=ONE))
def test_what_one_lacks_the_other_has_more_of(one: LumosDataset, other: LumosDataset) -> None:
    old, new = one.to_json(), other.to_json()
    there, back = dataset_outcomes(old, new), dataset_outcomes(new, old)
    more = {concept for concept, outcome in there.items() if outcome is Outcome.MORE}
    assert all(back[concept] in (Outcome.LACKING, Outcome.DIFFERING) for concept in more)


@pytest.mark.parametrize("concept", LOSSES)
def test_what_is_gone_is_lacking_and_what_came_is_more(concept: str) -> None:
    whole, left = orders(), orders()
    LOSSES[concept](left)
    assert dataset_outcomes(whole, left)[concept] is Outcome.LACKING
    back = dataset_outcomes(left, whole)
    if concept == "version":
        assert concept not in back
    elif concept == "nested_field":
        assert back[concept] is Outcome.DIFFERING  # another type holds them
    else:
        assert back[concept] is Outcome.MORE


def test_a_version_that_the_target_counts_is_its_own() -> None:
    counted = {**orders(), "version": "9.0.0"}
    assert dataset_outcomes(orders(), counted) == {"version": Outcome.DIFFERING}
    bare = {name: value for name, value in orders().items() if name != "version"}
    assert dataset_outcomes(bare, orders()) == {}


def test_the_neighbours_follow_from_the_edges() -> None:
    assert dataset_outcomes(orders(), {**orders(), "lineage": {"upstream": [ORDERS]}}) == {}


@pytest.mark.parametrize(("name", "value"), [("name", "other"), ("database", None)])
def test_what_is_of_no_other_concept_is_of_the_dataset(name: str, value: str | None) -> None:
    new = {**orders(), name: value}
    if value is None:
        del new[name]
    assert dataset_outcomes(orders(), new) == {"dataset": Outcome.DIFFERING}


def test_columns_in_another_order_differ() -> None:
    new = orders()
    cast("dict[str, list[JsonValue]]", new["schema"])["fields"].reverse()
    assert dataset_outcomes(orders(), new) == {"field": Outcome.DIFFERING}


def test_numbers_that_python_takes_for_equal_differ() -> None:
    old, new = orders(), orders()
    old["properties"], new["properties"] = {"x": 1}, {"x": True}
    assert dataset_outcomes(old, new) == {"property": Outcome.DIFFERING}


def test_words_inside_a_column_are_of_their_concept() -> None:
    new = orders()
    fields = cast("dict[str, list[dict[str, dict[str, list[Json]]]]]", new["schema"])["fields"]
    fields[4]["items"]["fields"][0]["description"] = "Another"
    assert dataset_outcomes(orders(), new) == {"field_description": Outcome.DIFFERING}


def test_an_edge_differs_in_its_columns_or_in_itself() -> None:
    mappings = cast("list[Json]", edge()["column_mappings"])
    for columns, outcome in (
        (mappings[:1], Outcome.LACKING),
        ([*mappings, {"upstream_column": "x", "downstream_column": "y"}], Outcome.MORE),
        ([mappings[0], {**mappings[1], "transformation": "other"}], Outcome.DIFFERING),
    ):
        new = {**edge(), "column_mappings": cast("JsonValue", columns)}
        assert edge_outcomes(edge(), new) == {"column_lineage": outcome}
    assert edge_outcomes(edge(), {**edge(), "confidence": 0.5}) == {
        "lineage_edge": Outcome.DIFFERING
    }
    less = {name: value for name, value in edge().items() if name != "provenance"}
    assert edge_outcomes(edge(), less) == {"lineage_edge": Outcome.DIFFERING}
    assert edge_outcomes(edge(), edge()) == {}


def test_other_things_differ_unless_they_only_have_more() -> None:
    old: Json = {"urn": ORDERS, "ids": {"a": "1", "b": "2"}}
    assert item_outcome(old, dict(reversed(old.items()))) is None
    assert item_outcome(old, {**old, "ids": {"a": "1", "b": "2", "c": "3"}}) is Outcome.MORE
    assert item_outcome(old, {**old, "ids": {"a": "1"}}) is Outcome.DIFFERING
    assert item_outcome({"x": [1, 2]}, {"x": [2, 3, 1]}) is Outcome.MORE
    assert item_outcome({"x": [1, 2]}, {"x": [2, 3]}) is Outcome.DIFFERING
