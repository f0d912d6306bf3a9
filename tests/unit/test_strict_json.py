"""JSON in which an object has a key twice is refused, however it is spelt."""

from __future__ import annotations

import json
from collections.abc import Callable

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumos.core.strict_json import (
    DuplicateKeyError,
    parsed_unique,
    require_all_keys,
    require_few_values,
    shown_key,
    unique_pairs,
)

KEYS = st.sampled_from(["a", "b", ":", '"', "\\", "\\u003a", "ä", "é:", ""])


def spelt(text: str, *, escaped: bool) -> str:
    """Spell a string, all of it by escapes if wanted."""
    if not escaped:
        return json.dumps(text, ensure_ascii=False)
    return '"' + "".join(f"\\u{ord(each):04x}" for each in text) + '"'


texts = st.builds(spelt, KEYS, escaped=st.booleans())
space = st.sampled_from(["", " ", "\n", "\t"])
numbers = st.sampled_from(["0", "1e5", "-0.0", "1.50", "12345678901234567890", "true", "null"])


def objects(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    members = st.builds(
        lambda key, before, after, value: f"{key}{before}:{after}{value}",
        texts, space, space, inner,
    )  # fmt: skip
    return st.lists(members, max_size=4).map(lambda found: "{" + ",".join(found) + "}")


def lists(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(inner, max_size=3).map(lambda found: "[" + ", ".join(found) + "]")


documents = st.recursive(
    numbers | texts, lambda inner: objects(inner) | lists(inner), max_leaves=20
)


@given(documents)
def test_a_key_that_is_twice_is_found_exactly_where_it_is(text: str) -> None:
    assert repeated_by(lambda: parsed_unique(text.encode())) == repeated_by(
        lambda: json.loads(text, object_pairs_hook=unique_pairs)
    )
    assert repeated_by(lambda: require_all_keys(text, orjson.dumps(orjson.loads(text)))) == (
        repeated_by(lambda: parsed_unique(text.encode()))
    )


def repeated_by(act: Callable[[], object]) -> str | None:
    try:
        act()
    except DuplicateKeyError as error:
        return error.key
    return None


@pytest.mark.parametrize(
    "text",
    [
        b'{"a":1,"a":2}',
        b'{"a":1,"b":{"c":1,"c":1}}',
        b'{"a":"\\u003a","a":1}',
        b'{"a" :1,"a" :2,"b":"::"}',
        b'[{"a":1e5,"b":1,"b":1}]',
    ],
)
def test_a_key_is_found_that_is_hidden_by_other_spellings(text: bytes) -> None:
    with pytest.raises(DuplicateKeyError):
        parsed_unique(text)


def test_a_key_is_shown_quoted_escaped_and_short() -> None:
    assert shown_key("\x1b[31m\n") == '"\\u001b[31m\\n"'
    assert len(shown_key("k" * 1000)) < 80


def test_text_nested_without_end_is_no_json() -> None:
    with pytest.raises(ValueError, match="depth limit"):
        parsed_unique(b"[" * 5_000 + b"]" * 5_000)


def test_more_values_than_are_allowed_are_refused() -> None:
    require_few_values(b"[1,2,3]", most=4)
    with pytest.raises(ValueError, match="more than 3 values"):
        require_few_values(b"[1,2,3,4]", most=3)
