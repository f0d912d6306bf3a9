"""Two states of a dataset built beside each other share what is equal, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from lumos.core.changes import diff_datasets
from lumos.core.errors import InvalidModelError
from lumos.core.models import LumosDataset, with_parts
from lumos.core.models.sharing import Known, built_beside
from strategies import datasets

ORDERS = LumosDataset.from_json(
    {
        "urn": "lumos://s3/lake/orders",
        "name": "orders",
        "platform": "s3",
        "schema": {"fields": [{"name": "id", "type": "INT64"}, {"name": "note", "type": "STRING"}]},
        "properties": {"retries": 1},
    }
)


def known(dataset: LumosDataset) -> Known:
    return Known(dataset.to_json(), dataset)


@given(datasets(), st.data())
def test_what_is_built_beside_another_equals_what_is_built_alone(
    old: LumosDataset, data: st.DataObject
) -> None:
    other = data.draw(datasets(urn=st.just(old.urn)))
    parts = data.draw(st.sets(st.sampled_from([*other.to_json()])))
    new = LumosDataset.from_json(
        {**old.to_json(), **{name: other.to_json()[name] for name in parts}}
    )

    built = built_beside(new.to_json(), known(old))

    assert built == new
    assert built.contract_hash == new.contract_hash
    assert diff_datasets(old, built) == diff_datasets(old, new)


def test_columns_that_did_not_change_are_the_same_objects() -> None:
    first = ORDERS.schema.fields[0].to_json()
    fields: JsonValue = [{"name": "note", "type": "BINARY"}, first]

    built = built_beside({**ORDERS.to_json(), "schema": {"fields": fields}}, known(ORDERS))

    assert built.schema.fields[1] is ORDERS.schema.fields[0]
    assert built.schema.fields[0].type == "BINARY"


def test_true_is_not_taken_for_one() -> None:
    properties: JsonValue = {"retries": True}

    built = built_beside({**ORDERS.to_json(), "properties": properties}, known(ORDERS))

    assert built.properties["retries"] is True


@pytest.mark.parametrize("fields", [None, "many", [{"name": "id"}], [["id"]]])
def test_what_is_no_dataset_is_refused(fields: JsonValue) -> None:
    document: dict[str, JsonValue] = {**ORDERS.to_json(), "schema": {"fields": fields}}

    with pytest.raises(InvalidModelError, match="not a valid LumosDataset"):
        built_beside(document, known(with_parts(ORDERS, tags=("new",))))
