from __future__ import annotations

import hashlib
import os
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from lumos.core.errors import InvalidUrnError
from lumos.core.models import Urn
from lumos.core.models.urn import LONGEST_URN
from strategies import path_parts

ANY_PARTS = st.lists(path_parts, min_size=1, max_size=4)


@given(ANY_PARTS)
def test_any_unicode_name_round_trips_through_a_urn(parts: list[str]) -> None:
    urn = Urn.of("s3", *parts)
    assert urn.parts == tuple(parts)
    assert urn.name == parts[-1]
    assert urn.platform == "s3"
    assert Urn(str(urn)) == urn


@given(ANY_PARTS, ANY_PARTS)
def test_urns_are_equal_exactly_when_their_names_are(one: list[str], other: list[str]) -> None:
    assert (Urn.of("s3", *one) == Urn.of("s3", *other)) == (one == other)


@given(ANY_PARTS)
def test_a_urn_holds_no_quote_space_backslash_or_dot_segment(parts: list[str]) -> None:
    urn = Urn.of("s3", *parts)
    assert not set(urn) & set("'\"\\ \t\n`<>|?#")
    assert urn.isascii()
    assert not {".", ".."} & set(urn.split("/"))


@pytest.mark.parametrize("part", [".", "..", "a/..", "../b", "/", "%2E%2E", "%"])
def test_names_that_look_like_paths_stay_names(part: str) -> None:
    urn = Urn.of("local", part, "x")
    assert urn.parts == (part, "x")
    assert ".." not in urn.split("/")


def test_dot_segments_in_text_are_encoded() -> None:
    assert Urn("lumos://s3/a/../b") == "lumos://s3/a/%2E%2E/b"


@given(st.binary(min_size=1, max_size=12).filter(lambda raw: b"/" not in raw and b"\0" not in raw))
def test_undecodable_file_names_round_trip(raw: bytes) -> None:
    name = os.fsdecode(raw)
    urn = Urn.of("local", name)
    assert urn.parts == (name,)
    assert os.fsencode(urn.name) == raw


@pytest.mark.parametrize(
    ("spelling", "canonical"),
    [
        ("lumos://s3/a%2db", "lumos://s3/a-b"),
        ("lumos://s3/caf%c3%a9", "lumos://s3/caf%C3%A9"),
        ("lumos://s3/café", "lumos://s3/caf%C3%A9"),
        ("lumos://s3/a b", "lumos://s3/a%20b"),
    ],
)
def test_equivalent_spellings_become_one(spelling: str, canonical: str) -> None:
    assert Urn(spelling) == canonical


@pytest.mark.parametrize(
    "text",
    [
        "",
        "orders",
        "lumos://",
        "lumos://s3",
        "lumos://s3/",
        "lumos://s3//b",
        "lumos://S3/b",
        "lumos:///b",
        "urn:li:dataset:(x,y,PROD)",
        "lumos://3s/b",
    ],
)
def test_text_that_is_no_urn_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidUrnError) as caught:
        Urn(text)
    assert "lumos://s3/bucket" in str(caught.value.hint)


def test_a_code_point_that_is_no_character_is_refused() -> None:
    with pytest.raises(InvalidUrnError, match="no character"):
        Urn.of("s3", "\ud800")


@pytest.mark.parametrize("parts", [(), ("",), ("a", "")])
def test_a_urn_needs_non_empty_parts(parts: tuple[str, ...]) -> None:
    with pytest.raises(InvalidUrnError, match="non-empty"):
        Urn.of("s3", *parts)


def test_a_model_refuses_a_bad_urn_without_echoing_it() -> None:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(Urn).validate_python("postgres://user:hunter2@host/db")
    (problem,) = caught.value.errors(include_input=False, include_url=False)
    assert "hunter2" not in str(problem)


def test_a_urn_is_a_string_that_sorts_pickles_and_shows_itself() -> None:
    urn = Urn.of("s3", "a")
    assert pickle.loads(pickle.dumps(urn)) == urn
    assert sorted([Urn.of("s3", "b"), urn]) == [urn, "lumos://s3/b"]
    assert repr(urn) == "Urn('lumos://s3/a')"
    assert TypeAdapter(Urn).dump_json(urn) == b'"lumos://s3/a"'


LONG_PARTS = st.lists(
    st.one_of(
        path_parts,
        st.builds(lambda part, times: (part * times)[:800], path_parts, st.integers(1, 400)),
        st.sampled_from([".", "..", "~" + "0" * 32]),
    ),
    min_size=1,
    max_size=40,
)


@given(LONG_PARTS)
def test_a_path_of_any_length_has_a_valid_urn_within_the_limit(parts: list[str]) -> None:
    urn = Urn.of_path("s3", *parts)
    assert len(urn.encode()) <= LONGEST_URN
    assert Urn(str(urn)) == urn
    assert Urn.of("s3", *urn.parts) == urn
    assert Urn.of_path("s3", *parts) == urn
    assert urn.is_shortened or urn == Urn.of("s3", *parts)
    assert all(urn.is_within("s3", *parts[:end]) for end in range(len(parts)))
    assert not urn.is_within("s4", *parts[:1])


@given(LONG_PARTS, LONG_PARTS)
def test_two_paths_have_two_urns(one: list[str], other: list[str]) -> None:
    assert (Urn.of_path("s3", *one) == Urn.of_path("s3", *other)) == (one == other)


@given(LONG_PARTS, st.integers(0, 3_000))
def test_paths_that_differ_at_their_end_only_have_two_urns(parts: list[str], length: int) -> None:
    padded = [*parts, "é" * length + "x"]
    assert Urn.of_path("s3", *padded, "a") != Urn.of_path("s3", *padded, "b")


def test_a_long_urn_keeps_its_path_up_to_a_character_and_ends_in_a_digest() -> None:
    whole = Urn.of("local", "数据" * 30, "表" * 300)
    urn = Urn.of_path("local", "数据" * 30, "表" * 300)
    path, _, digest = urn.rpartition("~")
    assert digest == hashlib.sha256(whole.encode()).hexdigest()[:32]
    assert whole.startswith(path)
    assert LONGEST_URN - 20 < len(urn) <= LONGEST_URN
    assert set(urn.parts[1].partition("~")[0]) == {"表"}


@pytest.mark.parametrize("length", range(LONGEST_URN - 60, LONGEST_URN + 60))
def test_a_name_that_looks_like_a_shortened_one_never_takes_its_urn(length: int) -> None:
    parts = ("a" * (length - len("lumos://s3/")),)
    urn = Urn.of_path("s3", *parts)
    lookalike = Urn.of_path("s3", *urn.parts)
    assert (lookalike == urn) == (urn.parts == parts)


def test_urns_that_fit_stay_as_they_are() -> None:
    natural = Urn.of("s3", "a" * (LONGEST_URN - len("lumos://s3/")))
    assert len(natural) == LONGEST_URN
    assert Urn.of_path("s3", *natural.parts) == natural
    assert not natural.is_shortened
    assert Urn.of_path("s3", "x~" + "0" * 32) == "lumos://s3/x~" + "0" * 32
