from __future__ import annotations

import struct
from itertools import product

import pytest

from lumos.core.changes.lattice import (
    DIGITS,
    FORMATS,
    LOSSY_PROMOTIONS,
    WIDENINGS,
    Promotion,
    accepted_by,
    widens,
)
from lumos.core.changes.profiles import PROFILES
from lumos.core.models import FieldType, TypeName

BITS = {f"{sign}INT{bits}": (sign, bits) for sign in ("", "U") for bits in (8, 16, 32, 64)}
STEPS = {(row.old, row.new) for row in WIDENINGS}


def _range(name: str) -> tuple[int, int]:
    sign, bits = BITS[name]
    return (0, 2**bits - 1) if sign else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


@pytest.mark.parametrize(("old", "new"), list(product(BITS, BITS)))
def test_whole_numbers_widen_exactly_where_the_range_grows(old: str, new: str) -> None:
    (low, high), (lowest, highest) = _range(old), _range(new)
    holds = old != new and lowest <= low and high <= highest
    assert ((TypeName(old), TypeName(new)) in STEPS) == holds


@pytest.mark.parametrize(("old", "code"), list(product(BITS, "fd")))
def test_whole_numbers_widen_to_floating_point_only_without_loss(old: str, code: str) -> None:
    float_type = TypeName.FLOAT if code == "f" else TypeName.DOUBLE
    edges = [number for end in _range(old) for number in (end - 1, end, end + 1)]
    values = [number for number in edges if _range(old)[0] <= number <= _range(old)[1]]
    exact = all(struct.unpack(code, struct.pack(code, value))[0] == value for value in values)
    assert ((TypeName(old), float_type) in STEPS) == exact


@pytest.mark.parametrize("name", BITS)
def test_the_digits_of_a_whole_number_type_are_those_of_its_largest_value(name: str) -> None:
    assert DIGITS[TypeName(name)] == max(len(str(abs(end))) for end in _range(name))


def test_widening_is_transitive_and_never_goes_both_ways() -> None:
    assert not {(new, old) for old, new in STEPS} & STEPS
    for (old, middle), (other, new) in product(STEPS, STEPS):
        if middle is other:
            assert (old, new) in STEPS


def test_a_decimal_holds_whole_numbers_when_it_has_the_digits() -> None:
    whole = FieldType(type=TypeName.INT32)
    fitting = FieldType(type=TypeName.DECIMAL, precision=12, scale=2)
    short = FieldType(type=TypeName.DECIMAL, precision=11, scale=2)
    coarse = FieldType(type=TypeName.DECIMAL, precision=12, scale=-2)
    assert [widens(whole, kind) for kind in (fitting, short, coarse)] == [True, False, False]
    assert not widens(whole, FieldType(type=TypeName.DECIMAL))


def test_formats_are_named_for_the_steps_that_they_promote() -> None:
    small, large = FieldType(type=TypeName.INT32), FieldType(type=TypeName.INT64)
    assert accepted_by(small, large) == ("avro", "delta", "iceberg", "iceberg_v3")
    assert accepted_by(large, small) == ()


@pytest.mark.parametrize("row", [*WIDENINGS, *LOSSY_PROMOTIONS])
def test_only_known_formats_promote_types(row: Promotion) -> None:
    assert set(row.accepted_by) <= set(FORMATS) <= set(PROFILES)


def test_no_step_is_both_lossless_and_lossy() -> None:
    assert not STEPS & {(row.old, row.new) for row in LOSSY_PROMOTIONS}
