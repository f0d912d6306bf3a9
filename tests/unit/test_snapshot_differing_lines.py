"""Two parts are compared in strides; what differs is found wherever a stride ends."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lumos.core.store.snapshots.part_format import differing_lines, plain_of

SIZES = st.sampled_from([0, 1, 40, 3_900, 4_096, 5_000, 17_000, 70_000])
STATES = st.tuples(SIZES, st.sampled_from("ab"), st.sampled_from("xy"))
SIDES = st.dictionaries(st.integers(0, 60), STATES, max_size=40)


def line(number: int, state: tuple[int, str, str]) -> bytes:
    size, contract, observed = state
    body = "." * size + observed
    return f'{{"urn":"u{number:02}","contract_hash":"{contract * 64}","dataset":"{body}"}}'.encode()


def text(side: dict[int, tuple[int, str, str]]) -> bytes:
    return plain_of(line(number, side[number]) for number in sorted(side))


@given(SIDES, SIDES, st.booleans())
def test_exactly_the_lines_of_other_contracts_are_found(
    base: dict[int, tuple[int, str, str]], edits: dict[int, tuple[int, str, str]], alike: bool
) -> None:
    old, new = base, {**base, **edits} if alike else edits

    expected = [
        (
            line(number, old[number]) if number in old else None,
            line(number, new[number]) if number in new else None,
        )
        for number in sorted(old.keys() | new.keys())
        if number not in old or number not in new or old[number][1] != new[number][1]
    ]

    assert list(differing_lines(text(old), text(new))) == expected
    assert list(differing_lines(text(new), text(old))) == [(b, a) for a, b in expected]


def test_a_text_is_equal_to_itself_however_long() -> None:
    whole = text(dict.fromkeys(range(60), (70000, "a", "x")))

    assert list(differing_lines(whole, whole)) == []
    assert list(differing_lines(b"", b"")) == []
