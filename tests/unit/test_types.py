from __future__ import annotations

import pytest
from hypothesis import given

from lumos.core.errors import InvalidModelError
from lumos.core.models import Field, FieldType, Schema, TimeUnit, TypeName
from lumos.core.models.types import PARAMETERS
from strategies import field_types

STRING: dict[str, object] = {"type": "STRING"}
VALUES: dict[str, object] = {
    "precision": 10,
    "scale": 2,
    "length": 5,
    "unit": "ms",
    "timezone": "UTC",
    "symbols": ["a"],
    "fields": [{"name": "a", **STRING}],
    "items": STRING,
    "key": STRING,
    "value": STRING,
    "branches": [STRING],
}
REQUIRED = {
    TypeName.ARRAY: {"items"},
    TypeName.MAP: {"key", "value"},
    TypeName.UNION: {"branches"},
    TypeName.ENUM: {"symbols"},
}


def _whole(kind: TypeName) -> dict[str, object]:
    return {"type": kind.value, **{name: VALUES[name] for name in PARAMETERS.get(kind, ())}}


@pytest.mark.parametrize("kind", TypeName)
def test_each_type_takes_its_own_parameters(kind: TypeName) -> None:
    assert FieldType.from_json(_whole(kind)).type is kind


@pytest.mark.parametrize("kind", TypeName)
@pytest.mark.parametrize("name", VALUES)
def test_a_type_refuses_the_parameters_of_others(kind: TypeName, name: str) -> None:
    if name in PARAMETERS.get(kind, ()):
        return
    with pytest.raises(InvalidModelError, match=f"{kind.value} takes no {name}"):
        FieldType.from_json({**_whole(kind), name: VALUES[name]})


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind in REQUIRED for name in sorted(REQUIRED[kind])]
)
def test_a_type_insists_on_what_it_cannot_be_without(kind: TypeName, name: str) -> None:
    document = _whole(kind)
    del document[name]
    with pytest.raises(InvalidModelError, match=f"{kind.value} needs {name}"):
        FieldType.from_json(document)


@pytest.mark.parametrize("kind", TypeName)
def test_parameters_are_optional_unless_the_type_is_nothing_without_them(kind: TypeName) -> None:
    document = {name: VALUES[name] for name in REQUIRED.get(kind, ())}
    assert FieldType.from_json({"type": kind.value, **document}).type is kind


def test_a_type_name_is_read_in_any_case_and_an_unknown_one_refused() -> None:
    assert FieldType.from_json({"type": "decimal"}).type is TypeName.DECIMAL
    with pytest.raises(InvalidModelError, match="type"):
        FieldType.from_json({"type": "VARCHAR"})


@pytest.mark.parametrize("name", ["precision", "length"])
def test_sizes_are_not_negative(name: str) -> None:
    kind = "DECIMAL" if name == "precision" else "STRING"
    with pytest.raises(InvalidModelError, match=name):
        FieldType.from_json({"type": kind, name: -1})


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ({"type": "DECIMAL", "precision": 10, "scale": 2}, "DECIMAL(10,2)"),
        ({"type": "DECIMAL", "precision": 10}, "DECIMAL(10)"),
        ({"type": "DECIMAL", "scale": 2}, "DECIMAL(*,2)"),
        ({"type": "TIMESTAMP", "timezone": "UTC"}, "TIMESTAMP(*,UTC)"),
        ({"type": "TIMESTAMP", "unit": "us"}, "TIMESTAMP(us)"),
        ({"type": "STRING"}, "STRING"),
        ({"type": "ARRAY", "items": STRING}, "ARRAY<STRING>"),
        ({"type": "MAP", "key": STRING, "value": {"type": "INT64"}}, "MAP<STRING, INT64>"),
        ({"type": "STRUCT", "fields": [{"name": "a", **STRING}]}, "STRUCT<a: STRING>"),
        ({"type": "UNION", "branches": [STRING, {"type": "INT8"}]}, "UNION<STRING, INT8>"),
        ({"type": "ENUM", "symbols": ["x", "y"]}, "ENUM(x, y)"),
    ],
)
def test_a_signature_is_the_type_as_people_write_it(document: object, text: str) -> None:
    assert FieldType.from_json(document).signature() == text


def test_whether_a_field_is_nullable_is_always_written_out() -> None:
    assert Field(name="a", type=TypeName.STRING).to_json() == {
        "name": "a",
        "type": "STRING",
        "nullable": True,
    }


def test_two_fields_of_one_name_are_refused_at_every_level() -> None:
    twice = [{"name": "a", **STRING}, {"name": "a", "type": "INT64"}]
    with pytest.raises(InvalidModelError, match="named alike"):
        Schema.from_json({"fields": twice})
    with pytest.raises(InvalidModelError, match="named alike"):
        Schema.from_json({"fields": [{"name": "s", "type": "STRUCT", "fields": twice}]})


def test_time_units_are_ordered_as_declared() -> None:
    assert [unit.value for unit in TimeUnit] == ["s", "ms", "us", "ns"]


@given(field_types())
def test_any_type_round_trips_through_json(one: FieldType) -> None:
    assert FieldType.from_json(one.to_json()) == one
