from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from lumos.core.changes import diff_datasets
from lumos.core.changes.transitive import diff_against_history
from lumos.core.errors import UnknownNameError
from lumos.core.models import LumosDataset, Urn
from strategies import datasets

Column = dict[str, JsonValue]
ORDERS = Urn("lumos://pg/shop/orders")


def _dataset(*columns: Column, version: str | None = None) -> LumosDataset:
    return LumosDataset.model_validate(
        {
            "urn": ORDERS,
            "name": "orders",
            "platform": "pg",
            "version": version,
            "schema": {"fields": [*columns, {"name": "id", "type": "INT64"}]},
        }
    )


def _field(kind: str, **rest: JsonValue) -> Column:
    return {"name": "x", "type": kind, **rest}


def _breaks(*states: LumosDataset, profile: str) -> list[tuple[str, str]]:
    changes = diff_against_history(states[:-1], states[-1], profile=profile)
    return [(change.rule, change.path) for change in changes if change.level == "BREAKING"]


def test_a_field_that_comes_back_as_another_type_breaks_its_first_readers() -> None:
    states = (_dataset(_field("INT32")), _dataset(), _dataset(_field("STRING")))
    assert _breaks(*states, profile="lumos") == []
    assert _breaks(*states, profile="lumos_transitive") == [("type.changed", "x")]
    assert _breaks(*states, profile="FORWARD_TRANSITIVE") == [("type.changed", "x")]


def test_a_field_that_comes_back_as_it_was_breaks_nobody() -> None:
    states = (_dataset(_field("INT32")), _dataset(), _dataset(_field("INT32")))
    assert _breaks(*states, profile="lumos_transitive") == []


def test_what_was_broken_before_is_not_told_again() -> None:
    more: Column = {"name": "y", "type": "STRING"}
    states = (_dataset(_field("INT32")), _dataset(), _dataset(more))
    assert _breaks(*states, profile="lumos_transitive") == []


def test_a_break_of_the_last_version_is_told_once() -> None:
    states = tuple(_dataset(_field(kind)) for kind in ("INT32", "INT64", "STRING"))
    assert _breaks(*states, profile="lumos_transitive") == [("type.changed", "x")]


def test_a_default_that_is_given_up_breaks_readers_of_data_from_before_the_field() -> None:
    states = (
        _dataset(),
        _dataset(_field("STRING", default='"DE"')),
        _dataset(_field("STRING")),
    )
    assert _breaks(*states, profile="avro") == []
    assert _breaks(*states, profile="avro_transitive") == [("field.added.nullable", "x")]


def test_the_version_that_breaks_is_named() -> None:
    states = (_dataset(_field("INT32"), version="1.0.0"), _dataset())
    changes = diff_against_history(states, _dataset(_field("STRING")), profile="full_transitive")
    assert changes[0].message.endswith("(compared with version 1.0.0)")
    assert changes[0].bump == "MAJOR"


def test_without_earlier_states_the_dataset_is_new() -> None:
    (change,) = diff_against_history((), _dataset(), profile="lumos_transitive")
    assert change.rule == "dataset.added"


def test_an_unknown_profile_is_refused() -> None:
    with pytest.raises(UnknownNameError):
        diff_against_history((), _dataset(), profile="sideways_transitive")


histories = st.lists(datasets(urn=st.just(ORDERS)), min_size=2, max_size=4)


@settings(max_examples=60)
@given(histories, st.sampled_from(["lumos", "readers", "writers", "full", "avro"]))
def test_history_only_adds_to_what_the_last_step_tells(
    states: list[LumosDataset], profile: str
) -> None:
    *earlier, last, new = states
    step = {change.fingerprint for change in diff_datasets(last, new, profile=profile)}
    whole = diff_against_history([*earlier, last], new, profile=f"{profile}_transitive")
    assert step <= {change.fingerprint for change in whole}
    assert all(c.level == "BREAKING" for c in whole if c.fingerprint not in step)
    assert diff_against_history([*earlier, last], new, profile=profile) == diff_datasets(
        last, new, profile=profile
    )
