from __future__ import annotations

import pytest
from hypothesis import given

from lumos.core.changes.text import listed, member_path, printable, quoted, shown_value
from strategies import names, texts


@pytest.mark.parametrize(
    ("parent", "name", "path"),
    [
        ("", "a", "a"),
        ("a", "b", "a.b"),
        ("a[]", "b", "a[].b"),
        ("", "a.b", "`a.b`"),
        ("", "a`b", "`a``b`"),
        ("", " a", "` a`"),
        ("a", "{key}", "a.`{key}`"),
        ("", "名前", "名前"),
    ],
)
def test_a_path_cannot_be_mistaken_for_another(parent: str, name: str, path: str) -> None:
    assert member_path(parent, name) == path


@given(names, names, names)
def test_different_members_have_different_paths(one: str, two: str, three: str) -> None:
    assert member_path("", f"{one}.{two}") != member_path(member_path("", one), two)
    assert (member_path("", one) == member_path("", three)) == (one == three)


@given(texts)
def test_printable_text_is_one_line_without_control_characters(text: str) -> None:
    assert printable(text).isprintable()
    assert quoted(text).isprintable()
    assert printable(text) == text or not text.isprintable()


def test_long_text_is_cut() -> None:
    assert len(printable("x" * 1000)) == 200
    assert printable("x" * 1000).endswith("…")
    assert len(quoted("x" * 1000)) == 122


def test_marks_that_turn_the_direction_of_text_are_written_out() -> None:
    assert quoted("a\u202eb\U000e0001") == "'a\\u202eb\\U000e0001'"
    assert quoted("it's") == "'it\\'s'"


def test_a_list_names_a_few_and_counts_the_rest() -> None:
    assert listed(["a"]) == "'a'"
    assert listed(list("abcdefg")) == "'a', 'b', 'c', 'd', 'e' and 2 more"


def test_values_are_shown_as_people_write_them() -> None:
    assert shown_value(None) == "none"
    assert shown_value(["a", "b\n"]) == "(a, b\\u000a)"
    assert shown_value("x") == "x"
