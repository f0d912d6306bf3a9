from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lumos.testing.frames import assert_frames_equal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        ("SELECT map('a', 1) AS x", "SELECT map(1, 'a') AS x"),
        ("SELECT CAST(NULL AS map<string,int>) AS x", "SELECT CAST(NULL AS map<int,string>) AS x"),
        ("SELECT CAST(1 AS decimal(10,2)) AS x", "SELECT CAST(1 AS decimal(38,0)) AS x"),
        ("SELECT CAST(1 AS int) AS x", "SELECT CAST(1 AS bigint) AS x"),
        ("SELECT 1 AS x, 2 AS y", "SELECT 2 AS y, 1 AS x"),
    ],
)
def test_frames_of_other_types_are_not_equal(
    spark: SparkSession, actual: str, expected: str
) -> None:
    with pytest.raises(AssertionError, match="is not"):
        assert_frames_equal(spark.sql(actual), spark.sql(expected))


@pytest.mark.parametrize(
    ("actual", "expected", "message"),
    [
        ("VALUES (1), (1), (2)", "VALUES (1), (2), (2)", r"missing: \(2\)\nnot expected: \(1\)"),
        ("VALUES (1)", "VALUES (1), (1)", r"^missing: \(1\)$"),
        ("VALUES (1), (NULL)", "VALUES (1)", r"^not expected: \(None\)$"),
        ("VALUES (map('a', 1))", "VALUES (map('a', 2))", "'a': 2"),
        ("VALUES (array(1, 2))", "VALUES (array(2, 1))", "missing"),
    ],
)
def test_frames_with_other_rows_are_not_equal(
    spark: SparkSession, actual: str, expected: str, message: str
) -> None:
    with pytest.raises(AssertionError, match=message):
        assert_frames_equal(spark.sql(actual), spark.sql(expected))


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        ("VALUES (1), (2), (2)", "VALUES (2), (1), (2)"),
        ("VALUES (map('a', 1, 'b', 2))", "VALUES (map('b', 2, 'a', 1))"),
        ("VALUES (struct(1, array('x', NULL)))", "VALUES (struct(1, array('x', NULL)))"),
    ],
)
def test_the_order_of_rows_and_of_map_entries_does_not_matter(
    spark: SparkSession, actual: str, expected: str
) -> None:
    assert_frames_equal(spark.sql(actual), spark.sql(expected))
