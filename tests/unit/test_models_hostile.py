"""Whatever is read as a model, only Lumos's own errors come out."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import JsonValue

from lumos.core.errors import InvalidModelError
from lumos.core.models import Field, LumosDataset, Owner, Schema, Snapshot, User, load_snapshot
from lumos.core.models.base import CanonicalModel, canonical_json
from lumos.core.store.snapshots.snapshot_sections import MODEL_OF
from lumos.feature.snapshot.validation import validate_document
from strategies import datasets, snapshots

BASE: dict[str, Any] = {"urn": "lumos://pg/shop/orders", "name": "orders", "platform": "pg"}
HOSTILE: list[object] = [
    None,
    True,
    -1,
    0,
    5,
    2**63,
    2**64,
    -(2**63) - 1,
    10**5_000,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "x",
    "\ud800",
    "\udcff",
    "lumos://s3/\udcff",
    "lumos://s3/%ff",
    "lumos://s3/été",
    "lumos://s3/..",
    "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59-23:59",
    "-9999999999999",
    "P999999999D",
    "99999999999 days",
    "9" * 400 + "d",
    "9" * 5_000,
    "$" + "9" * 5_000,
    "1e999",
    "NaN",
    [],
    {},
    [None],
    [[]],
    {"a": "\ud800"},
    {"\ud800": "a"},
    {"upstream": 5},
    {"upstream": [5], "downstream": {"a": 1}},
    [5],
    b"\xff",
    {1: 2},
    object(),
]


def _nested(levels: int) -> dict[str, Any]:
    node: dict[str, Any] = {"name": "f", "type": "STRING"}
    for _ in range(levels):
        node = {"name": "f", "type": "STRUCT", "fields": [node]}
    return node


def _lists(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


def _places(value: Any) -> list[tuple[Any, Any]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    found: list[tuple[Any, Any]] = []
    for key, item in inner:
        found.append((value, key))
        if isinstance(item, dict | list):
            found += _places(item)
    return found


def _mutated(document: dict[str, JsonValue], seed: int) -> dict[str, Any]:
    """Return the document with a few of its values replaced, added, removed or doubled."""
    chance = random.Random(seed)
    for _ in range(chance.randint(1, 3)):
        places = _places(document)
        if not places:
            break
        holder, key = chance.choice(places)
        hostile = chance.choice([*HOSTILE, _lists(300), _lists(60), _nested(300)])
        match chance.randint(0, 3):
            case 0:
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder[chance.choice(["surprise", "lineage", "\ud800", key])] = hostile
            case 2 if isinstance(holder, list):
                holder.append(holder[key])
            case _:
                holder[key] = hostile
    return document


def _is_usable(model: CanonicalModel) -> None:
    """What was accepted can be written, and read again as the same."""
    document = model.to_json()
    canonical_json(document)
    assert type(model).from_json(document) == model


@given(datasets(), st.integers(0, 2**32))
def test_a_damaged_dataset_is_refused_or_usable(dataset: LumosDataset, seed: int) -> None:
    document = _mutated(dataset.to_json(), seed)
    try:
        loaded = LumosDataset.from_json(document)
    except InvalidModelError as error:
        error.message.encode()
        return
    _is_usable(loaded)
    assert len(loaded.contract_hash) == 64


@given(snapshots(), st.integers(0, 2**32), st.booleans())
def test_a_damaged_snapshot_is_refused_or_usable(
    snapshot: Snapshot, seed: int, versioned: bool
) -> None:
    document: dict[str, JsonValue] = snapshot.to_json()
    if not versioned:
        del document["snapshot_schema_version"]
    document = _mutated(document, seed)
    report = validate_document(document, "damaged")
    canonical_json(report.as_json())
    try:
        loaded = load_snapshot(document)
    except InvalidModelError as error:
        error.message.encode()
        refused = True
    else:
        _is_usable(loaded)
        refused = False
    assert not (refused and report.ok), "what cannot be loaded is told to be valid"


@pytest.mark.parametrize("model", MODEL_OF.values(), ids=lambda model: model.__name__)
def test_a_hostile_value_in_any_field_is_refused_or_usable(model: type[CanonicalModel]) -> None:
    good: dict[str, Any] = {
        "LumosDataset": BASE,
        "Job": {"urn": "lumos://airflow/a", "name": "a"},
        "LineageEdge": {"upstream_urn": "lumos://s3/a", "downstream_urn": "lumos://s3/b"},
        "User": {"username": "ana"},
    }.get(model.__name__, {"name": "a"})
    assert model.from_json(good)
    for name, value in product(model.model_fields, HOSTILE):
        try:
            loaded = model.from_json({**good, name: value})
        except InvalidModelError as error:
            error.message.encode()
        else:
            _is_usable(loaded)


@pytest.mark.parametrize(
    "moment", ["0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"], ids=["first", "last"]
)
@pytest.mark.parametrize(
    "part",
    [
        lambda moment: {"statistics": {"last_modified": moment}},
        lambda moment: {"quality": {"freshness": moment}},
    ],
    ids=["instant", "freshness"],
)
def test_a_moment_outside_the_calendar_is_refused(part: Any, moment: str) -> None:
    with pytest.raises(InvalidModelError, match="year"):
        LumosDataset.from_json({**BASE, **part(moment)})


@pytest.mark.parametrize(
    ("model", "document"),
    [
        (LumosDataset, {**BASE, "environment": "\udcff"}),
        (LumosDataset, {**BASE, "documentation": {"description": "a\ud800b"}}),
        (LumosDataset, {**BASE, "tags": ["\ud800"]}),
        (LumosDataset, {**BASE, "location": {"path": "\udcff"}}),
        (Field, {"name": "\udcff", "type": "STRING"}),
        (Field, {"name": "a", "type": "ENUM", "symbols": ["\udcff"]}),
        (Owner, {"user": "\udcff"}),
        (User, {"username": "a", "department_id": "\udcff"}),
    ],
)
def test_text_that_is_no_unicode_is_refused_when_it_comes_in(
    model: type[CanonicalModel], document: dict[str, JsonValue]
) -> None:
    with pytest.raises(InvalidModelError, match="unicode"):
        model.from_json(document)


@given(st.integers(0, 400))
@example(64)
@example(65)
@example(100_000)
def test_a_type_of_any_depth_is_refused_or_usable(levels: int) -> None:
    document = {**BASE, "schema": {"fields": [_nested(levels)]}}
    if levels < 64:
        dataset = LumosDataset.from_json(document)
        _is_usable(dataset)
        assert dataset.contract_hash
    else:
        with pytest.raises(InvalidModelError) as caught:
            LumosDataset.from_json(document)
        assert len(caught.value.message) < 400


def test_the_deepest_properties_in_the_deepest_type_can_be_written() -> None:
    node = _nested(63)
    inner = node
    while inner["type"] == "STRUCT":
        inner = inner["fields"][0]
    inner["properties"] = {"a": _lists(63)}
    dataset = LumosDataset.from_json({**BASE, "schema": {"fields": [node]}})
    assert dataset.contract_hash
    inner["properties"] = {"a": _lists(65)}
    with pytest.raises(InvalidModelError, match="deep"):
        Schema.from_json({"fields": [inner]})
