"""Statistics of columns: how they add up, what is told of a file, and what never is."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from lumos.core.errors import InvalidModelError
from lumos.core.formats.facts import FileFacts
from lumos.core.formats.reader import read_document, read_file
from lumos.core.models import ColumnFacts, ColumnStatistics, LumosDataset, OperationalMetadata
from lumos.core.models.base import canonical_json, sha256_of
from lumos.core.models.statistics import bound_of, merged_columns

TEXT = "data-value-4711"
counts = st.none() | st.integers(0, 2**40)


def _worth(bound: object) -> tuple[float, str]:
    text = str(bound)
    return (0.0, text) if "-01-" in text else (float(cast("float", bound)), repr(bound))


@st.composite
def statistics(draw: st.DrawFn) -> ColumnStatistics:
    sizes = (draw(counts), draw(counts))
    kind = draw(st.sampled_from(["none", "unknown", "number", "text", "boolean"]))
    if kind == "none":
        nulls = draw(st.integers(0, 100))
        return ColumnStatistics(nulls, nulls, *sizes)
    values, nulls_or_none = draw(st.integers(101, 200)), draw(st.none() | st.integers(0, 100))
    if kind == "unknown":
        return ColumnStatistics(draw(st.none() | st.just(values)), nulls_or_none, *sizes)
    bounds = {
        "number": st.integers(-9, 9) | st.floats(-9, 9) | st.integers(-9, 9).map(str),
        "text": st.sampled_from(["2024-01-01", "2024-01-02", "2025-01-01"]),
        "boolean": st.booleans(),
    }[kind]
    low, high = sorted(draw(st.tuples(bounds, bounds)), key=_worth)
    return ColumnStatistics(values, nulls_or_none, *sizes, low, high)


@given(statistics(), statistics(), statistics())
def test_statistics_add_up_in_any_order(
    one: ColumnStatistics, two: ColumnStatistics, three: ColumnStatistics
) -> None:
    together = one.merged_with(two).merged_with(three)
    assert repr(together) == repr(one.merged_with(two.merged_with(three)))
    assert repr(one.merged_with(two)) == repr(two.merged_with(one))


@given(statistics())
def test_the_statistics_of_nothing_change_nothing(one: ColumnStatistics) -> None:
    assert one.merged_with(ColumnStatistics()) == one == ColumnStatistics().merged_with(one)


@given(statistics())
def test_statistics_survive_json(one: ColumnStatistics) -> None:
    assert repr(ColumnStatistics.from_json(json.loads(canonical_json(one.to_json())))) == repr(one)


def test_what_one_file_does_not_know_is_unknown_of_all() -> None:
    known = ColumnStatistics(10, 1, 100, 200, 3, 7)
    assert known.merged_with(ColumnStatistics(5, None, None, 50)) == (
        15,
        None,
        None,
        250,
        None,
        None,
    )


def test_a_column_of_nulls_alone_leaves_the_range_as_it_is() -> None:
    known = ColumnStatistics(10, 1, 100, 200, 3, 7)
    assert known.merged_with(ColumnStatistics(5, 5, 1, 1))[4:] == (3, 7)


def test_a_range_of_numbers_and_a_range_of_days_make_no_range() -> None:
    numbers = ColumnStatistics(1, 0, 1, 1, 3, 7)
    days = ColumnStatistics(1, 0, 1, 1, "2024-01-01", "2024-01-02")
    assert numbers.merged_with(days)[4:] == (None, None)


def test_numbers_compare_by_worth_however_they_are_spelled() -> None:
    spelled = ColumnStatistics(1, 0, 1, 1, "9.50", "18446744073709551615")
    assert ColumnStatistics(1, 0, 1, 1, 10, 11).merged_with(spelled)[4:] == (
        "9.50",
        "18446744073709551615",
    )


def test_columns_of_several_files_add_up_by_path() -> None:
    one = {"a": ColumnStatistics(1, 0, 10, 20), "b": ColumnStatistics(1, 1, 5, 5)}
    two = {"a": ColumnStatistics(2, 1, 10, 20)}
    assert merged_columns([one, two]) == {"a": (3, 1, 20, 40, None, None), "b": one["b"]}


@pytest.mark.parametrize(
    ("value", "bound"),
    [
        (True, True),
        (5, 5),
        (2**64 - 1, "18446744073709551615"),
        (1.5, 1.5),
        (float("nan"), None),
        (float("inf"), None),
        (Decimal("1.50"), "1.50"),
        (Decimal("1E+3"), "1000"),
        (Decimal("NaN"), None),
        (date(2024, 1, 2), "2024-01-02"),
        (time(1, 2, 3), "01:02:03.000000"),
        (datetime(2024, 1, 2, 3, tzinfo=UTC), "2024-01-02T03:00:00.000000Z"),
        (datetime(2024, 1, 2, 3), "2024-01-02T03:00:00.000000"),
        (TEXT, None),
        (TEXT.encode(), None),
        (None, None),
    ],
)
def test_the_end_of_a_range_is_never_text_of_the_data(value: object, bound: object) -> None:
    assert bound_of(value) == bound


TABLE = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "name": pa.array([TEXT, None, None]),
        "blob": pa.array([TEXT.encode(), None, b"x"]),
        "kind": pa.array([TEXT, "x", TEXT]).dictionary_encode(),
        "price": pa.array([Decimal("1.50"), Decimal("-2.00"), None], pa.decimal128(9, 2)),
        "at": pa.array([5, 1, None], pa.timestamp("ns", tz="UTC")),
        "local": pa.array([5, 1, None], pa.timestamp("ms")),
        "day": pa.array([date(2024, 1, 2), date(2023, 1, 1), None]),
        "ok": pa.array([True, False, None]),
        "nothing": pa.array([None, None, None], pa.int32()),
        "deep": pa.array(
            [{"x.y": [1, 2]}, {"x.y": [None]}, None], pa.struct([("x.y", pa.list_(pa.int8()))])
        ),
        "pairs": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.float64())),
    }
)


def facts_of(*, value_ranges: bool, **options: Any) -> FileFacts:
    sink = io.BytesIO()
    pq.write_table(TABLE, sink, row_group_size=2, **options)
    content = sink.getvalue()
    return read_file(
        io.BytesIO(content), size=len(content), name="a.parquet", value_ranges=value_ranges
    )


def test_a_footer_tells_nulls_and_sizes_by_the_paths_that_changes_use() -> None:
    columns = facts_of(value_ranges=False).columns
    assert {path: column[:2] for path, column in columns.items()} == {
        "id": (3, 0),
        "name": (3, 2),
        "blob": (3, 1),
        "kind": (3, 0),
        "price": (3, 1),
        "at": (3, 1),
        "local": (3, 1),
        "day": (3, 1),
        "ok": (3, 1),
        "nothing": (3, 3),
        "deep.`x.y`[]": (4, 2),
        "pairs{key}": (3, 2),
        "pairs{value}": (3, 2),
    }
    assert all(column.compressed_bytes for column in columns.values())
    assert all(column.uncompressed_bytes for column in columns.values())


def test_no_value_is_told_unless_ranges_are_asked_for() -> None:
    assert all(
        column[4:] == (None, None) for column in facts_of(value_ranges=False).columns.values()
    )


def test_ranges_are_told_of_columns_without_text_alone() -> None:
    facts = facts_of(value_ranges=True)
    assert {path: column[4:] for path, column in facts.columns.items()} == {
        "id": (1, 3),
        "name": (None, None),
        "blob": (None, None),
        "kind": (None, None),
        "price": ("-2.00", "1.50"),
        "at": ("1970-01-01T00:00:00.000000Z", "1970-01-01T00:00:00.000000Z"),
        "local": ("1970-01-01T00:00:00.001000", "1970-01-01T00:00:00.005000"),
        "day": ("2023-01-01", "2024-01-02"),
        "ok": (False, True),
        "nothing": (None, None),
        "deep.`x.y`[]": (1, 2),
        "pairs{key}": (None, None),
        "pairs{value}": (1.0, 1.0),
    }
    assert TEXT not in repr(facts)


def test_a_writer_without_statistics_leaves_nulls_unknown() -> None:
    column = facts_of(value_ranges=True, write_statistics=False).columns["id"]
    assert (column.value_count, column.null_count, column.minimum) == (3, None, None)
    assert column.compressed_bytes


def test_a_document_is_the_json_of_the_facts_with_the_fingerprint_of_the_schema() -> None:
    sink = io.BytesIO()
    pq.write_table(TABLE, sink)
    content = sink.getvalue()
    for _ in range(2):
        facts = read_file(io.BytesIO(content), size=len(content), name="a.parquet")
        document = read_document(io.BytesIO(content), size=len(content), name="a.parquet")
        fingerprint = sha256_of(facts.schema.to_json())
        assert document == canonical_json({**facts.to_json(), "fingerprint": fingerprint})
        assert FileFacts.from_json(json.loads(document)) == facts


def test_a_schema_that_another_file_had_is_not_built_again() -> None:
    def schema_of(table: pa.Table) -> object:
        sink = io.BytesIO()
        pq.write_table(table, sink)
        return read_file(sink, size=len(sink.getvalue()), name="a.parquet").schema

    long, longer = (TABLE.replace_schema_metadata({"pandas": f"rows {n}"}) for n in (3, 4))
    other = TABLE.drop(["ok"])
    assert schema_of(TABLE) is schema_of(TABLE)
    assert schema_of(long) is schema_of(longer)
    assert schema_of(TABLE) != schema_of(other)


@pytest.mark.parametrize("columns", [{"a": [1, 2]}, {"a": "1234"}, ["a"]])
def test_facts_with_strange_columns_are_refused(columns: Any) -> None:
    with pytest.raises(InvalidModelError):
        FileFacts.from_json({"format": "parquet", "schema": {}, "columns": columns})


def test_statistics_of_columns_are_observed_and_no_part_of_the_contract() -> None:
    plain = LumosDataset.from_json({"urn": "lumos://s3/a/b", "name": "b", "platform": "s3"})
    column = ColumnStatistics(3, 1, 10, 20, "2023-01-01", "2024-01-01").facts("day")
    observed = plain.model_copy(update={"statistics": OperationalMetadata(columns=(column,))})
    assert observed.contract_hash == plain.contract_hash
    assert LumosDataset.from_json(observed.to_json()) == observed
    assert observed.to_json()["statistics"] == {
        "columns": [
            {
                "path": "day",
                "value_count": 3,
                "null_count": 1,
                "compressed_bytes": 10,
                "uncompressed_bytes": 20,
                "min": "2023-01-01",
                "max": "2024-01-01",
            }
        ]
    }


@pytest.mark.parametrize("bound", [True, 1, 1.5, "1.50"])
def test_the_end_of_a_range_keeps_its_kind_in_json(bound: object) -> None:
    facts = ColumnFacts.from_json({"path": "a", "min": bound})
    assert type(facts.to_json()["min"]) is type(bound)


def test_no_column_counts_less_than_nothing() -> None:
    with pytest.raises(ValidationError):
        ColumnStatistics(-1, 0, 0, 0).facts("a")
