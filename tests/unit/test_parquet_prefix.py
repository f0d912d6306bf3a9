"""The bytes of a footer that spell its schema tell schemas apart, and nothing else."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumos.core.formats.parquet_prefix import KnownPrefixes

_STRUCT = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))])
_TYPES = (
    pa.int8(), pa.int64(), pa.uint16(), pa.float64(), pa.string(), pa.binary(), pa.bool_(),
    pa.date32(), pa.timestamp("us"), pa.timestamp("ns", "UTC"), pa.decimal128(10, 2),
    pa.list_(pa.int32()), pa.map_(pa.string(), pa.int64()), _STRUCT, pa.list_(_STRUCT),
)  # fmt: skip


def _footer(table: pa.Table) -> bytes:
    written = io.BytesIO()
    pq.write_table(table, written, store_schema=False)
    content = written.getvalue()
    length = int.from_bytes(content[-8:-4], "little")
    return content[-8 - length : -8]


def _empty(schema: pa.Schema) -> bytes:
    return _footer(schema.empty_table())


def test_files_of_one_schema_begin_alike_whatever_they_hold() -> None:
    few = pa.table({"a": [1, 2], "b": ["x", None]})
    many = pa.table({"a": list(range(1000)), "b": ["y" * 100] * 1000})
    prefixes = KnownPrefixes()
    assert prefixes.of(_footer(few)) == prefixes.of(_footer(many)) is not None
    assert KnownPrefixes().of(_footer(many)) == prefixes.of(_footer(few))


@st.composite
def _schemas(draw: st.DrawFn) -> pa.Schema:
    count = draw(st.sampled_from((1, 2, 3, 14, 15, 20)))
    return pa.schema(
        [
            pa.field(
                draw(st.sampled_from(("a", "b", "column", "ä", "n" * 200))) + str(place),
                draw(st.sampled_from(_TYPES)),
                nullable=draw(st.booleans()),
            )
            for place in range(count)
        ]
    )


_SHARED = KnownPrefixes()


@given(_schemas(), _schemas())
def test_two_schemas_have_one_beginning_only_where_they_are_equal(
    one: pa.Schema, two: pa.Schema
) -> None:
    first, second = _SHARED.of(_empty(one)), _SHARED.of(_empty(two))
    assert first is not None
    assert (first == second) == one.equals(two)


@pytest.mark.parametrize("footer", [b"", b"\x15", b"\x15\x02", b"\x15\x02\x19", b"\x19\x2c\x00"])
def test_what_does_not_begin_as_a_footer_has_none(footer: bytes) -> None:
    assert KnownPrefixes().of(footer) is None


@given(st.binary(max_size=200), st.integers(0, 400))
def test_no_bytes_make_it_fail(tail: bytes, kept: int) -> None:
    footer = _empty(pa.schema([("a", _STRUCT), ("b", pa.int32())]))
    damaged = footer[:kept] + tail
    found = KnownPrefixes().of(damaged)
    assert found is None or damaged.startswith(found)
