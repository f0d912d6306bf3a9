from __future__ import annotations

import re
import struct
from itertools import product
from pathlib import Path

import pytest

from lumos.core.changes.detectors.types import leaf_findings
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
from lumos.core.changes.rules import RULES_BY_ID
from lumos.core.models import FieldType, TypeName

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "profiles.md"
_NAMES = re.compile(r"`([^`]+)`")

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


def _documented() -> list[tuple[str, str, bool, set[str]]]:
    """The rows of the table in the docs, one for each pair of types."""
    lines = PAGE.read_text(encoding="utf-8").split("## Which types are promoted")[1].splitlines()
    cells = [line.strip("|").split("|") for line in lines if line.startswith("| `")]
    return [
        (old, new, holds.strip() == "yes", set(_NAMES.findall(formats)))
        for olds, news, holds, formats in cells
        for old, new in product(_NAMES.findall(olds), _NAMES.findall(news))
    ]


def _node(text: str) -> FieldType:
    name, _, rest = text.rstrip(")").partition("(")
    numbers = rest.split(",") if rest else []
    keys = {"DECIMAL": ("precision", "scale"), "STRING": ("length",), "BINARY": ("length",)}
    given = dict(zip(keys.get(name, ("unit",)), numbers, strict=False))
    return FieldType.model_validate({"type": name, **given})


@pytest.mark.parametrize(("old", "new", "holds", "formats"), _documented())
def test_the_table_in_the_docs_says_what_the_code_does(
    old: str, new: str, holds: bool, formats: set[str]
) -> None:
    before, after = _node(old), _node(new)
    told = {*formats, "iceberg_v3"} if "iceberg" in formats else formats
    assert set(accepted_by(before, after)) == told
    (finding,) = leaf_findings(before, after, "c")
    assert RULES_BY_ID[finding.rule].widening == holds


def test_the_table_in_the_docs_leaves_no_promotion_out() -> None:
    told = {(_node(old).type, _node(new).type) for old, new, _, _ in _documented()}
    promoted = {(row.old, row.new) for row in (*WIDENINGS, *LOSSY_PROMOTIONS) if row.accepted_by}
    assert promoted <= told
