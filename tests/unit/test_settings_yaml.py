"""The reader of settings files keeps to JSON's values, to its limits and to one line per error."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumos.core.errors import InputUnreadableError, LumosError
from lumos.core.settings import InvalidSettingsError, SettingsDocument, read_document
from lumos.core.settings.yaml_document import MAX_BYTES


def _value(text: str) -> object:
    return SettingsDocument(text, file="f.yaml").value


def _refusal(text: str, *, is_json: bool = False) -> str:
    with pytest.raises(InvalidSettingsError) as caught:
        SettingsDocument(text, file="f.yaml", is_json=is_json)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", "yes"),
        ("on", "on"),
        ("True", True),
        ("~", None),
        ("null", None),
        ("010", 10),
        ("0o17", 15),
        ("0x1F", 31),
        ("-0x10", -16),
        ("+7", 7),
        ("45_000_000", 45_000_000),
        ("1,247", "1,247"),
        ("1:30", "1:30"),
        ("1e3", 1000.0),
        ("3.8", 3.8),
        ("1.0.0", "1.0.0"),
        ("'3.8'", "3.8"),
        ("2024-01-15", "2024-01-15"),
        ("2024-01-15T08:00:00Z", "2024-01-15T08:00:00Z"),
        ("=", "="),
        ("!!str 12", "12"),
        ("9" * 5000, "9" * 5000),
        ('"\\ud83d\\ude00"', "\U0001f600"),
        ("''", ""),
    ],
)
def test_a_scalar_is_what_json_would_hold(text: str, value: object) -> None:
    read: Any = _value(f"a: {text}")
    assert read == {"a": value}
    assert type(read["a"]) is type(value)


def test_anchors_and_merges_are_expanded_and_own_keys_win() -> None:
    text = "base: &b {x: 1, y: 2}\nother: &o {y: 9, z: 3}\nc: {<<: [*b, *o], x: 5}\nd: *b\n"
    assert _value(text) == {
        "base": {"x": 1, "y": 2},
        "other": {"y": 9, "z": 3},
        "c": {"x": 5, "y": 2, "z": 3},
        "d": {"x": 1, "y": 2},
    }


def test_keys_are_text_even_where_they_look_like_something_else() -> None:
    assert _value("1: a\ntrue: b\n2024-01-01: c\n") == {"1": "a", "true": "b", "2024-01-01": "c"}


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("a: 1\nb: 2\na: 3\n", "f.yaml:3: key 'a' is given twice, first on line 1"),
        ("a:\n  b: 1\n  b: 2\n", "f.yaml:3: key 'b' is given twice, first on line 2"),
        ("x: 1\na: !!python/name:os.system ''\n", "f.yaml:2: a YAML tag is not allowed here"),
        ("a: !!python/object/apply:os.system [ls]", "f.yaml:1: a YAML tag is not allowed here"),
        ("a: !custom {b: 1}", "f.yaml:1: a YAML tag is not allowed here"),
        ("a: !!binary aGVsbG8=", "f.yaml:1: a YAML tag is not allowed here"),
        ("? [a, b]\n: c\n", "f.yaml:1: a key must be plain text"),
        ("a: {<<: 3}", "f.yaml:1: only mappings can be merged with '<<'"),
        ('a: "\\ud83d"', "f.yaml:1: half of a surrogate pair is not text"),
    ],
)
def test_what_settings_must_not_hold_is_refused_with_its_line(text: str, refusal: str) -> None:
    assert _refusal(text) == refusal


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: [1\nb: 2\n", 2),
        ("a: 1\n\tb: 2\n", 2),
        ("a: 1\n---\nb: 2\n", 2),
        ("a: *nothing\n", 1),
        ("a: 'open\n", 2),
        ("a: b: c\n", 1),
    ],
)
def test_malformed_yaml_is_one_line_with_its_place(text: str, line: int) -> None:
    assert _refusal(text).startswith(f"f.yaml:{line}: not valid YAML: ")


def test_control_characters_are_malformed_yaml() -> None:
    assert _refusal("a: \x00").startswith("f.yaml: not valid YAML")


def test_several_problems_are_told_together() -> None:
    assert _refusal("a: !x 1\nb: 1\nb: 2\n").endswith("(and 1 more problem)")


def test_an_alias_bomb_is_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 20)]
    assert "more than 100,000 values" in _refusal("\n".join(lines))


@pytest.mark.parametrize("text", ["&a [*a]", "a: &a {b: *a}", "a: &a {<<: *a}"])
def test_a_document_that_contains_itself_is_refused(text: str) -> None:
    assert "nested deeper than 50 levels" in _refusal(text)


@pytest.mark.parametrize("is_json", [False, True])
def test_nesting_is_limited(*, is_json: bool) -> None:
    assert "nested deeper than 50 levels" in _refusal("[" * 60 + "]" * 60, is_json=is_json)
    assert "nested deeper" in _refusal("[" * 100_000 + "]" * 100_000, is_json=is_json)


def test_a_large_file_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "big.yaml"
    path.write_bytes(b"# x\n" * (MAX_BYTES // 4 + 1))
    with pytest.raises(InvalidSettingsError, match=r"larger than 1,000,000 bytes"):
        read_document(path)


def test_text_that_is_not_utf8_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "lumos.yaml"
    path.write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(InvalidSettingsError, match=r"lumos.yaml:2: not UTF-8 text$"):
        read_document(path)


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    path = tmp_path / "lumos.yaml"
    path.write_text("platform: x\n", encoding="utf-8-sig")
    assert read_document(path).value == {"platform": "x"}


def test_a_pipe_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    path = tmp_path / "pipe.yaml"
    os.mkfifo(path)
    refused: list[LumosError] = []

    def read() -> None:
        try:
            read_document(path)
        except LumosError as error:
            refused.append(error)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    thread.join(300)
    assert [type(error) for error in refused] == [InputUnreadableError]


def test_a_file_whose_name_ends_in_json_is_read_strictly(tmp_path: Path) -> None:
    path = tmp_path / "sources.json"
    path.write_text('{\n\t"a": [1, 2,]\n}', encoding="utf-8")
    with pytest.raises(InvalidSettingsError, match=r"sources.json:2: not valid JSON: "):
        read_document(path)


def test_a_key_given_twice_in_json_is_refused_with_its_line() -> None:
    refusal = _refusal('{\n"a": 1,\n"a": 2\n}', is_json=True)
    assert refusal == "f.yaml:3: key 'a' is given twice, first on line 2"


def test_lines_are_found_in_json_with_tabs() -> None:
    document = SettingsDocument('{\n\t"a": [\n\t\t{"b": 1}\n\t]\n}', file="f", is_json=True)
    assert document.line_of(("a",)) == 2
    assert document.line_of(("a", 0, "b")) == 3
    assert document.line_of(("a", 0, "missing", "deeper")) == 3


def test_lines_are_found_through_merges() -> None:
    document = SettingsDocument("base: &b\n  x: 1\nc:\n  <<: *b\n  y: 2\n", file="f")
    assert document.line_of(("c", "x")) == 2
    assert document.line_of(("c", "y")) == 5
    assert document.line_of(()) == 1


_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=15,
)


@given(_json)
def test_json_reads_the_same_as_json_and_as_yaml(value: object) -> None:
    text = json.dumps(value)
    assert SettingsDocument(text, file="f", is_json=True).value == value
    if '"<<"' not in text:  # YAML merges mappings under this key
        assert SettingsDocument(text, file="f").value == value


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_by_name(text: str) -> None:
    try:
        document = SettingsDocument(text, file="f")
    except InvalidSettingsError as error:
        refused = error.problems
    else:
        refused = ()
        json.dumps(document.value)
    assert all(problem.message for problem in refused)


@pytest.mark.parametrize("name", ["lumos.yaml", "lumos.json"])
@pytest.mark.parametrize("value", ["0", "[]", "{}"])
def test_a_file_of_tiny_values_is_refused_before_all_of_them_are_built(
    tmp_path: Path, name: str, value: str
) -> None:
    path = tmp_path / name
    path.write_text("[" + ",".join([value] * 240_000) + "]", encoding="utf-8")
    with pytest.raises(LumosError, match="more than 100,000 values") as raised:
        read_document(path)
    assert "aliases" not in str(raised.value), "it was counted after it had been built"
