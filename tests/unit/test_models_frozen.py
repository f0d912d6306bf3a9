from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator, Mapping
from typing import Any, get_origin

import orjson
import pytest
from hypothesis import given

from lumos.core import models
from lumos.core.errors import InvalidModelError
from lumos.core.models import CostReport, LumosDataset, Snapshot, Urn, with_parts
from lumos.core.models.base import CanonicalModel, canonical_json
from strategies import datasets, snapshots

ORDERS = {"urn": "lumos://pg/shop/orders", "name": "orders", "platform": "pg"}


def _dataset(**parts: object) -> LumosDataset:
    return LumosDataset.from_json({**ORDERS, **parts})


def _models() -> Iterator[type[CanonicalModel]]:
    for name in models.__all__:
        candidate = getattr(models, name)
        if isinstance(candidate, type) and issubclass(candidate, CanonicalModel):
            yield candidate


def test_the_mappings_that_models_hold_are_these_and_all_start_frozen() -> None:
    held = {
        f"{model.__name__}.{name}": field
        for model in _models()
        for name, field in model.model_fields.items()
        if get_origin(field.annotation) in (Mapping, dict)
    }
    assert set(held) == {
        "CostReport.trends",
        "DQAssertion.parameters",
        "DatasetVersion.change_details",
        "Field.properties",
        "Group.custom_properties",
        "Job.properties",
        "Observation.document",
        "LumosDataset.extensions",
        "LumosDataset.properties",
        "Snapshot.extensions",
        "Snapshot.identity_map",
        "User.custom_properties",
    }
    for field in held.values():
        empty = field.get_default(call_default_factory=True, validated_data={})
        with pytest.raises(TypeError, match="frozen"):
            empty["a"] = 1


CHANGES: dict[str, Callable[[Any], object]] = {
    "setting": lambda held: held.__setitem__("a", 2),
    "deleting": lambda held: held.__delitem__("a"),
    "updating": lambda held: held.update(a=2),
    "uniting": lambda held: held.__ior__({"a": 2}),
    "popping": lambda held: held.pop("a"),
    "popping any": lambda held: held.popitem(),
    "clearing": lambda held: held.clear(),
    "defaulting": lambda held: held.setdefault("b", 1),
    "setting inside": lambda held: held["deep"].__setitem__("a", 2),
    "appending inside": lambda held: held["deep"]["list"].append(3),
    "extending inside": lambda held: held["deep"]["list"].__iadd__([3]),
    "sorting inside": lambda held: held["deep"]["list"].sort(),
    "setting in a list": lambda held: held["deep"]["list"].__setitem__(0, 3),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_properties_cannot_be_changed_at_any_depth(change: Callable[[Any], object]) -> None:
    given_properties = {"a": 1, "deep": {"list": [2, 1]}}
    dataset = _dataset(properties=given_properties)
    before = dataset.contract_hash

    with pytest.raises(TypeError, match="frozen"):
        change(dataset.properties)

    assert dataset.properties == given_properties
    assert _dataset(**{**dataset.to_json(), **ORDERS}).contract_hash == before


def test_what_was_given_may_change_afterwards_without_the_model() -> None:
    given_properties: dict[str, Any] = {"deep": {"list": [1]}}
    dataset = _dataset(properties=given_properties)
    given_properties["deep"]["list"].append(2)
    assert dataset.properties == {"deep": {"list": [1]}}


def test_identities_and_amounts_cannot_be_changed() -> None:
    snapshot = Snapshot.from_json(
        {
            "snapshot_schema_version": 1,
            "lumos_version": "0.1.0",
            "export_timestamp": "2026-01-01T00:00:00Z",
            "source_platform": "x",
            "identity_map": {"lumos://pg/a": {"datahub": "1"}},
        }
    )
    report = CostReport.from_json(
        {
            "dataset": "a",
            "period": "2026",
            "summary": {"total_cost": 1, "direct_cost": 1, "attributed_cost": 0},
            "breakdown": {"by_type": {"storage": 1}, "by_team": {"a": 1}},
            "trends": {"month": "+1%"},
        }
    )
    mappings: list[Any] = [
        snapshot.identity_map,
        snapshot.identity_map[Urn("lumos://pg/a")],
        report.breakdown.by_type,
        report.breakdown.by_team,
        report.trends,
    ]
    for held in mappings:
        with pytest.raises(TypeError, match="frozen"):
            held["x"] = "y"


@given(datasets())
def test_a_dataset_survives_pickling_and_copying(dataset: LumosDataset) -> None:
    assert pickle.loads(pickle.dumps(dataset)) == dataset
    assert copy.deepcopy(dataset) == dataset
    assert dataset.model_copy(deep=True) == dataset


@given(snapshots())
def test_a_snapshot_survives_pickling(snapshot: Snapshot) -> None:
    assert pickle.loads(pickle.dumps(snapshot)) == snapshot


def test_frozen_properties_are_json_and_equal_plain_ones() -> None:
    plain = {"b": [1, {"c": None}], "a": {}}
    dataset = _dataset(properties=plain)
    assert dataset.properties == plain
    assert orjson.loads(canonical_json(dataset.properties)) == plain
    assert orjson.loads(dataset.model_dump_json())["properties"] == plain


def test_a_copy_with_other_parts_is_hashed_anew_and_validated() -> None:
    dataset = _dataset()
    before = dataset.contract_hash
    copied = dataset.model_copy(update={"tags": ("b", "a")})
    assert copied.tags == ("a", "b")
    assert copied.contract_hash == with_parts(dataset, tags=("a", "b")).contract_hash != before
    assert dataset.model_copy().contract_hash == before
    for wrong in ({"tags": 1}, {"surprise": 1}, {"name": ""}):
        with pytest.raises(InvalidModelError):
            dataset.model_copy(update=wrong)
