from __future__ import annotations

import re
import sys
from types import FrameType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue
from typing_extensions import override

from change_pairs import pairs
from conftest import FULL_SIZE
from lumos.core.changes import RULES_BY_ID, diff_datasets
from lumos.core.models import Change, Field, FieldType, LumosDataset, Schema, TypeName
from lumos.core.models.base import canonical_json
from lumos.core.models.types import PARAMETERS
from strategies import (
    CONTRACT,
    FIELD,
    NODE,
    OBSERVATIONS,
    datasets,
    same_contract_listed_differently,
)

STRING: dict[str, JsonValue] = {"type": "STRING"}


def _dataset(*columns: dict[str, JsonValue], **parts: object) -> LumosDataset:
    return LumosDataset.model_validate(
        {
            "urn": "lumos://pg/shop/orders",
            "name": "orders",
            "platform": "pg",
            "schema": {"fields": list(columns)},
            **parts,
        }
    )


def _rules(old: LumosDataset, new: LumosDataset) -> list[tuple[str, str]]:
    return [(change.rule, change.path) for change in diff_datasets(old, new)]


def _column(before: JsonValue, after: JsonValue) -> list[tuple[str, str]]:
    old, new = (_dataset({"name": "a", **_object(kind)}) for kind in (before, after))
    return _rules(old, new)


def _object(value: JsonValue) -> dict[str, JsonValue]:
    return value if isinstance(value, dict) else {"type": value}


def test_the_generated_datasets_vary_every_part_that_the_models_have() -> None:
    assert {*CONTRACT, *OBSERVATIONS, "urn", "name", "platform"} == set(LumosDataset.model_fields)
    parameters = {name for names in PARAMETERS.values() for name in names}
    assert {*NODE, *parameters, "type"} == set(FieldType.model_fields)
    assert {*FIELD, *parameters, "type", "name"} == set(Field.model_fields)


@settings(max_examples=2_000 if FULL_SIZE else 100)
@given(pairs)
def test_a_change_is_found_exactly_when_the_contracts_differ(
    pair: tuple[LumosDataset, LumosDataset],
) -> None:
    old, new = pair
    assert bool(diff_datasets(old, new)) == (old.contract_hash != new.contract_hash)


@given(datasets())
def test_nothing_changed_is_no_change(dataset: LumosDataset) -> None:
    again = LumosDataset.from_json(dataset.to_json())
    assert diff_datasets(dataset, dataset) == diff_datasets(dataset, again) == ()


@given(pairs, st.data())
def test_no_order_that_means_nothing_makes_a_difference(
    pair: tuple[LumosDataset, LumosDataset], data: st.DataObject
) -> None:
    old, new = pair
    relisted = st.composite(
        lambda draw: tuple(same_contract_listed_differently(one, draw) for one in pair)
    )
    old_again, new_again = data.draw(relisted())
    assert diff_datasets(old_again, new_again) == diff_datasets(old, new)


@given(pairs)
def test_the_way_back_mirrors_the_way_there(pair: tuple[LumosDataset, LumosDataset]) -> None:
    old, new = pair
    back = [change for change in diff_datasets(new, old) if RULES_BY_ID[change.rule].mirrors]
    for change in diff_datasets(old, new):
        mirrors = RULES_BY_ID[change.rule].mirrors
        if mirrors:
            back.remove(next(other for other in back if _mirrors(change, other, mirrors)))
    assert back == []


def _mirrors(change: Change, other: Change, mirrors: tuple[str, ...]) -> bool:
    there = canonical_json([_unnumbered(change), change.old, change.new])
    back = canonical_json([_unnumbered(other), other.new, other.old])
    return other.rule in mirrors and there == back


def _unnumbered(change: Change) -> str:
    """The path without the numbers of branches, which each side counts for itself."""
    return re.sub(r"<(\w+):\d+>", r"<\1>", change.path)


@given(pairs)
def test_changes_round_trip_and_have_fingerprints_of_their_own(
    pair: tuple[LumosDataset, LumosDataset],
) -> None:
    for change in diff_datasets(*pair):
        assert Change.from_json(change.to_json()) == change
        assert change.fingerprint == Change.from_json(change.to_json()).fingerprint
        assert change.message.isprintable()


def test_a_dataset_that_comes_or_goes_is_one_change() -> None:
    dataset = _dataset({"name": "a", **STRING}, tags=["pii"])
    (added,) = diff_datasets(None, dataset)
    (removed,) = diff_datasets(dataset, None)
    assert (added.rule, removed.rule) == ("dataset.added", "dataset.removed")
    assert added.dataset == removed.dataset == dataset.urn
    assert diff_datasets(None, None) == ()


def test_the_most_severe_change_comes_first() -> None:
    old = _dataset({"name": "z", **STRING}, tags=["b"], documentation={"description": "x"})
    new = _dataset({"name": "a", **STRING}, tags=["a"], documentation={"description": "y"})
    assert [change.rule for change in diff_datasets(old, new)] == [
        "field.removed",
        "field.added.nullable",
        "tag.added",
        "tag.removed",
        "doc.edited",
    ]


def test_a_removed_or_added_struct_is_one_finding() -> None:
    inner: list[JsonValue] = [{"name": name, **STRING} for name in "xyz"]
    struct: dict[str, JsonValue] = {"name": "s", "type": "STRUCT", "fields": inner}
    assert _rules(_dataset(struct), _dataset()) == [("field.removed", "s")]
    assert _rules(_dataset(), _dataset(struct)) == [("field.added.nullable", "s")]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"type": "ARRAY", "items": "INT32"}, {"type": "ARRAY", "items": "INT64"}, "a[]"),
        (
            {"type": "MAP", "key": "STRING", "value": "INT32"},
            {"type": "MAP", "key": "STRING", "value": "INT64"},
            "a{value}",
        ),
        (
            {
                "type": "ARRAY",
                "items": {"type": "STRUCT", "fields": [{"name": "b", "type": "INT32"}]},
            },
            {
                "type": "ARRAY",
                "items": {"type": "STRUCT", "fields": [{"name": "b", "type": "INT64"}]},
            },
            "a[].b",
        ),
        (
            {"type": "STRUCT", "fields": [{"name": "x.y", "type": "INT32"}]},
            {"type": "STRUCT", "fields": [{"name": "x.y", "type": "INT64"}]},
            "a.`x.y`",
        ),
        (
            {"type": "UNION", "branches": ["STRING", {"type": "ARRAY", "items": "INT32"}]},
            {"type": "UNION", "branches": ["STRING", {"type": "ARRAY", "items": "INT64"}]},
            "a<ARRAY>[]",
        ),
    ],
)
def test_the_same_rules_hold_at_every_depth(
    before: JsonValue, after: JsonValue, expected: str
) -> None:
    before, after = _typed(before), _typed(after)
    assert _column(before, after) == [("type.widened", expected)]


def _typed(value: JsonValue) -> JsonValue:
    """Write out `items: INT32` as `items: {type: INT32}`, and branches likewise."""
    if not isinstance(value, dict):
        return [_typed(item) for item in value] if isinstance(value, list) else value
    whole: dict[str, JsonValue] = {}
    for name, inner in value.items():
        if name in ("items", "key", "value"):
            whole[name] = _typed(_object(inner))
        elif name == "branches" and isinstance(inner, list):
            whole[name] = [_typed(_object(branch)) for branch in inner]
        else:
            whole[name] = _typed(inner)
    return whole


def test_any_structural_change_of_a_map_key_is_one_breaking_finding() -> None:
    def mapped(key: dict[str, JsonValue]) -> dict[str, JsonValue]:
        return {"type": "MAP", "key": key, "value": STRING}

    two: list[JsonValue] = [{"name": "x", **STRING}, {"name": "y", **STRING}]
    assert _column(
        mapped({"type": "STRUCT", "fields": two}), mapped({"type": "STRUCT", "fields": []})
    ) == [("map.key.changed", "a{key}")]
    assert _column(mapped(STRING), mapped({**STRING, "nullable": False})) == [
        ("map.key.changed", "a{key}")
    ]
    assert _column(mapped(STRING), mapped({**STRING, "description": "x"})) == [
        ("doc.added", "a{key}")
    ]


def test_a_changed_branch_of_a_union_is_told_from_a_new_one() -> None:
    def union(*branches: JsonValue) -> JsonValue:
        return {"type": "UNION", "branches": [_object(branch) for branch in branches]}

    assert _column(union("INT32", "STRING"), union("STRING", "INT32")) == []
    assert _column(union("STRING"), union({**STRING, "length": 5})) == [
        ("varchar.length.down", "a<STRING>")
    ]
    assert _column(union("INT32", "STRING"), union("BOOLEAN", "STRING")) == [
        ("union.branch.removed", "a"),
        ("union.branch.added", "a"),
    ]


def test_the_spelling_of_a_known_type_is_no_change_but_that_of_an_unknown_one_is() -> None:
    assert (
        _column(
            {"type": "INT32", "native_type": "int4"}, {"type": "INT32", "native_type": "integer"}
        )
        == []
    )
    (change,) = diff_datasets(
        _dataset({"name": "a", "type": "UNKNOWN", "native_type": "xml"}),
        _dataset({"name": "a", "type": "UNKNOWN", "native_type": "point"}),
    )
    assert (change.rule, change.old, change.new) == (
        "type.changed",
        "UNKNOWN(xml)",
        "UNKNOWN(point)",
    )


@pytest.mark.parametrize(
    ("before", "after", "rule"),
    [
        ("DECIMAL", {"type": "DECIMAL", "precision": 5}, "decimal.parameters.changed"),
        (
            {"type": "DECIMAL", "precision": 5},
            {"type": "DECIMAL", "precision": 6},
            "decimal.precision.up",
        ),
        ("INT32", {"type": "DECIMAL", "precision": 10}, "type.widened"),
        ("INT32", {"type": "DECIMAL", "precision": 11, "scale": 2}, "type.changed"),
        ({"type": "DECIMAL", "precision": 19}, "INT64", "type.narrowed"),
        ("INT64", "DOUBLE", "type.changed"),
        ("DATE", "TIMESTAMP_NTZ", "type.widened"),
        ("DATE", "TIMESTAMP", "type.changed"),
        ("UNKNOWN", {"type": "ARRAY", "items": STRING}, "type.changed"),
        ({"type": "ENUM", "symbols": ["long"]}, {**STRING, "length": 2}, "type.changed"),
        ({"type": "TIMESTAMP", "timezone": "UTC"}, "TIMESTAMP", "timestamp.tz.changed"),
        (
            {"type": "DURATION", "unit": "s"},
            {"type": "DURATION", "unit": "ns"},
            "timestamp.unit.finer",
        ),
        (STRING, "BINARY", "type.changed"),
        (
            {"type": "ARRAY", "items": STRING},
            {"type": "MAP", "key": STRING, "value": STRING},
            "shape.changed",
        ),
    ],
)
def test_types_are_classified_by_whether_values_still_fit(
    before: JsonValue, after: JsonValue, rule: str
) -> None:
    assert _column(before, after) == [(rule, "a")]


def test_a_type_change_is_one_finding_with_both_signatures() -> None:
    (change,) = diff_datasets(
        _dataset({"name": "user_id", **STRING}), _dataset({"name": "user_id", "type": "INT64"})
    )
    assert (change.old, change.new, change.level) == ("STRING", "INT64", "BREAKING")
    assert change.message == "the type of field 'user_id' changed from STRING to INT64"


def test_a_widening_says_so_and_names_who_would_accept_it() -> None:
    (change,) = diff_datasets(
        _dataset({"name": "n", "type": "INT32"}), _dataset({"name": "n", "type": "INT64"})
    )
    assert change.widening
    assert change.passes_under == ("writers", "iceberg", "iceberg_v3", "delta", "avro")
    assert change.message.endswith("(not breaking under writers, iceberg, delta, avro)")


def test_columns_found_by_position_break_when_one_slips_in_between() -> None:
    def positional(*names: str) -> LumosDataset:
        columns = [{"name": name, **STRING} for name in names]
        return _dataset(schema={"fields": columns, "positional": True})

    assert _rules(positional("a", "b"), positional("a", "b", "c")) == [
        ("field.added.nullable", "c")
    ]
    assert _rules(positional("a", "b"), positional("a", "c", "b")) == [
        ("field.reordered", ""),
        ("field.added.nullable", "c"),
    ]


def test_properties_are_compared_as_json_and_not_as_python() -> None:
    one, other = (_dataset(properties={"x": value}) for value in (1, True))
    assert [change.rule for change in diff_datasets(one, other)] == ["props.changed"]


def test_filling_in_a_blank_description_is_an_addition() -> None:
    blank, empty, full = (_dataset(documentation={"description": t}) for t in ("", " ", "x"))
    assert _rules(blank, full) == _rules(_dataset(), full) == [("doc.added", "")]
    assert _rules(full, empty) == [("doc.removed", "")]
    assert _rules(blank, _dataset()) == [("doc.edited", "")]


def test_no_value_that_people_typed_in_gets_into_a_message() -> None:
    secret = "hunter2"
    plain = _dataset({"name": "a", **STRING})
    full = _dataset(
        {
            "name": "a",
            **STRING,
            "default": secret,
            "description": secret,
            "properties": {"key": secret},
        },
        properties={"key": secret},
        documentation={
            "description": secret,
            "sla": secret,
            "links": [{"url": f"https://x.example/?token={secret}"}],
        },
        governance={"deprecation": {"note": secret}},
        assertions=[{"name": "check", "expression": secret, "parameters": {"value": secret}}],
        location={"path": secret},
    )
    for old, new in ((plain, full), (full, plain)):
        assert not [change for change in diff_datasets(old, new) if secret in change.message]


def test_a_hostile_name_cannot_steer_a_terminal_or_forge_a_line() -> None:
    name = "a\x1b[31m\nBREAKING: 'x'\u202e" + "y" * 500
    (change,) = diff_datasets(_dataset(), _dataset({"name": name, **STRING}))
    assert change.message.isprintable()
    assert len(change.message) < 300
    assert "\\u001b" in change.message


class _CountedName(str):
    __slots__ = ()
    comparisons = 0

    @override
    def __eq__(self, other: object) -> bool:
        _CountedName.comparisons += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def _work_of_diff(size: int) -> tuple[int, int]:
    """Count calls and name comparisons of a diff in which every tenth column changes."""

    def column(index: int, kind: TypeName) -> Field:
        field = Field(name=f"c{index}", type=kind)
        object.__setattr__(field, "name", _CountedName(field.name))  # validation would drop it
        return field

    def schema(other: TypeName, order: range) -> Schema:
        kinds = {0: other}
        columns = tuple(column(index, kinds.get(index % 10, TypeName.INT32)) for index in order)
        return Schema().model_copy(update={"fields": columns, "positional": True})

    old = _dataset().model_copy(update={"schema": schema(TypeName.INT32, range(size))})
    new = _dataset().model_copy(update={"schema": schema(TypeName.INT64, range(size)[::-1])})
    calls = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    _CountedName.comparisons = 0
    sys.setprofile(count)
    try:
        changes = diff_datasets(old, new)
    finally:
        sys.setprofile(None)
    assert len(changes) == size // 10 + 1
    return calls, _CountedName.comparisons


def test_the_work_of_a_diff_grows_with_the_number_of_fields_and_not_its_square() -> None:
    small_calls, small_comparisons = _work_of_diff(500)
    large_calls, large_comparisons = _work_of_diff(2_000)
    assert large_calls < 5 * small_calls
    assert large_comparisons < 5 * max(small_comparisons, 500)
