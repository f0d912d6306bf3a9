"""Readers of parsed JSON return the type that they name, or name the place that has another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumos.core import json_reading as reading
from lumos.core.errors import LumosError, UnexpectedJsonError

Reader = Callable[[Any, str], Any]
JSON: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


def is_text(value: object) -> bool:
    return isinstance(value, str)


def is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def is_object(value: object) -> bool:
    return isinstance(value, dict)


def is_list(value: object) -> bool:
    return isinstance(value, list)


def is_list_of(member: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, list) and all(map(member, value))


STRICT: Final[Mapping[str, tuple[Reader, Callable[[object], bool], object]]] = {
    "object": (reading.as_object, is_object, {}),
    "list": (reading.as_list, is_list, []),
    "objects": (reading.as_objects, is_list_of(is_object), []),
    "texts": (reading.as_texts, is_list_of(is_text), []),
    "text": (reading.as_text, is_text, None),
    "integer": (reading.as_integer, is_integer, None),
}
"""Strict readers, what they take, and what null is for them."""
AT: Final = {
    "object": reading.object_at, "list": reading.list_at, "objects": reading.objects_at,
    "texts": reading.texts_at, "text": reading.text_at, "integer": reading.integer_at,
}  # fmt: skip


@pytest.mark.parametrize("name", STRICT)
@given(value=JSON)
def test_a_strict_reader_returns_its_type_or_names_the_place(name: str, value: Any) -> None:
    read, fits, nothing = STRICT[name]
    if value is None:
        assert read(value, "columns") == nothing
    elif fits(value):
        assert read(value, "columns") == (value or nothing if name == "text" else value)
    else:
        with pytest.raises(UnexpectedJsonError, match=r'^"columns" is not '):
            read(value, "columns")


@pytest.mark.parametrize("name", AT)
@given(value=JSON)
def test_a_reader_of_a_key_reads_as_that_of_its_value(name: str, value: Any) -> None:
    def outcome(read: Callable[[], object]) -> object:
        try:
            return read()
        except LumosError as error:
            return str(error)

    at, of = AT[name], STRICT[name][0]
    assert outcome(lambda: at({"k": value}, "k")) == outcome(lambda: of(value, "k"))
    assert at({}, "k") == STRICT[name][2]


@pytest.mark.parametrize("value", ["yes", 1, 0, [], {}])
def test_a_flag_is_true_or_false_only(value: Any) -> None:
    with pytest.raises(UnexpectedJsonError, match='"k" is not true or false'):
        reading.flag_at({"k": value}, "k")


def test_a_missing_flag_has_its_default() -> None:
    assert reading.flag_at({}, "k", default=True)
    assert not reading.flag_at({"k": None}, "k")
    assert reading.flag_at({"k": True}, "k")


@pytest.mark.parametrize("node", [{}, {"k": None}, {"k": ""}, {"k": 1}, {"k": ["x"]}])
def test_a_required_text_has_to_be_there(node: Any) -> None:
    with pytest.raises(UnexpectedJsonError, match='"k" is not text'):
        reading.required_text_at(node, "k")


@pytest.mark.parametrize("node", [{}, {"k": None}, {"k": "1"}, {"k": True}, {"k": 1.0}])
def test_a_required_number_has_to_be_there(node: Any) -> None:
    with pytest.raises(UnexpectedJsonError, match='"k" is not a whole number'):
        reading.required_integer_at(node, "k")


def test_a_required_value_is_returned() -> None:
    node: Any = {"text": "x", "number": 0}
    assert reading.required_text_at(node, "text") == "x"
    assert reading.required_integer_at(node, "number") == 0


@given(value=JSON)
def test_a_lenient_reader_leaves_out_what_is_of_another_type(value: Any) -> None:
    members = value if isinstance(value, list) else []
    assert reading.object_or_empty(value) == (value if isinstance(value, dict) else {})
    assert reading.list_or_empty(value) == members
    assert reading.objects_among(value) == [each for each in members if isinstance(each, dict)]
    assert reading.texts_among(value) == [each for each in members if isinstance(each, str)]
    assert reading.text_or_none(value) == (value or None if isinstance(value, str) else None)


def test_an_error_holds_no_value_and_no_long_name() -> None:
    with pytest.raises(UnexpectedJsonError) as raised:
        reading.as_object("a secret value", "key\n" * 500)

    assert "secret" not in str(raised.value)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 200


@given(value=JSON)
def test_a_value_is_found_along_keys_of_objects_alone(value: Any) -> None:
    node: Any = {"a": {"b": value}}
    assert reading.find_value(node, "a", "b") == value
    assert reading.find_value(node, "a", "other", "b") is None
    assert reading.find_value([node], "a") is None
    assert reading.find_object(node, "a", "b") == reading.object_or_empty(value)
    assert reading.find_objects(node, "a", "b") == reading.objects_among(value)
    assert reading.find_text(node, "a", "b") == reading.text_or_none(value)
    assert reading.find_texts(node, "a", "b") == reading.texts_among(value)
